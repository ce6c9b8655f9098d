// Parameter groups: `params GLOB { }` gives matching parameters another
// optimizer, or its arguments other values.
//
// Inside the block the arguments of the train block's optimizer are names with
// their values.  If two groups match a parameter, the later one overrides the
// earlier.

#include "frontend/train/train.h"

#include <string.h>

// The optimizer that a group derives from the one before it.
typedef struct Regrouped {
    const Entry *group;
    const Call *from, *to;
    struct Regrouped *next;
} Regrouped;

static bool is_group(const Entry *entry) {
    return strcmp(entry->name, "params") == 0 && entry->glob != NULL;
}

static const Entry *group_key(const Entry *group, const char *name) {
    for (int i = 0; i < group->num_keys; i++)
        if (strcmp(group->key[i].name, name) == 0)
            return &group->key[i];
    return NULL;
}

// ---- the names inside a block ----

static void bind_arguments(Expansion *e, const Call *optimizer) {
    const ParamInfo *p = &param_info[optimizer->builtin->first];
    for (int i = 0; i < builtin_num_params(optimizer->builtin); i++)
        if (optimizer->arg[i].kind != VALUE_NONE)
            scope_bind(e, atom_of(e->atoms, p[i].name, strlen(p[i].name)),
                       optimizer->arg[i]);
}

// ---- another optimizer ----

static const Call *optimizer_of(Expansion *e, const Entry *key) {
    Value v = expand(e, key->value);
    bool called = key_call(e, v, key->value->at, OPTIMIZER, "`optimizer`",
                           "an optimizer, as adamw(lr=1e-3)");
    return called ? v.call : NULL;
}

// The call with the arguments that the group overrides.
static const Call *replaced(Expansion *e, const Call *from,
                            const Entry *group) {
    const ParamInfo *p = &param_info[from->builtin->first];
    int count = builtin_num_params(from->builtin), num_args = 0;
    size_t most = (size_t)count + (size_t)group->num_keys;
    ActualArg *given = ARENA_ARRAY(e->arena, most, ActualArg);
    for (int i = 0; i < count; i++)
        if (from->arg[i].kind != VALUE_NONE &&
            group_key(group, p[i].name) == NULL)
            given[num_args++] = (ActualArg){
                .name = p[i].name, .at = from->at, .value = &from->arg[i]};
    for (int i = 0; i < group->num_keys; i++) {
        const Entry *key = &group->key[i];
        if (strcmp(key->name, "optimizer") != 0)
            given[num_args++] = (ActualArg){
                .name = key->name, .at = key->at, .expr = key->value};
    }
    Call *to = ARENA_NEW(e->arena, Call);
    *to = *from;
    return bind_builtin(e, to, given, num_args) ? to : NULL;
}

static const Call *regroup(Expansion *e, TrainBlock *t, const Call *base,
                           const Entry *group, const Call *from) {
    const Entry *optimizer = group_key(group, "optimizer");
    Binding *scope = e->scope;
    e->scope = t->lazy[0].scope;
    if (base != NULL)
        bind_arguments(e, base);
    origin_set(e, group->at, NULL);
    if (optimizer != NULL)
        from = optimizer_of(e, optimizer);
    else if (from == NULL)
        report(e->diags, D_no_optimizer, group->at,
               "these parameters have no optimizer");
    const Call *to = from ? replaced(e, from, group) : NULL;
    e->scope = scope;
    return to;
}

// As regroup, memoized for each graph, group and optimizer.
static const Call *group_apply(Expansion *e, TrainBlock *t, const Call *base,
                               const Entry *group, const Call *from) {
    for (const Regrouped *r = t->regrouped; r != NULL; r = r->next, e->work++)
        if (r->group == group && r->from == from)
            return r->to;
    if (!within_limits(e, group->at))
        return NULL;
    Regrouped *r = ARENA_NEW(e->arena, Regrouped);
    *r = (Regrouped){group, from, regroup(e, t, base, group, from),
                     t->regrouped};
    t->regrouped = r;
    return r->to;
}

// ---- all groups ----

// A group whose parameters never train has no effect.
static bool check_trains(Expansion *e, const TrainBlock *t,
                         const Entry *group) {
    for (int i = 0; i < e->num_parameters; i++)
        if (glob_matches(e, t, group, e->parameter[i].name) &&
            !is_frozen(e, t, &e->parameter[i], 0))
            return true;
    if (!e->stopped)
        report(e->diags, D_unmatched_pattern, group->glob_at,
               "every parameter that \"%s\" matches is frozen, so no optimizer "
               "updates it",
               group->glob);
    return false;
}

bool groups_check(Expansion *e, const TrainBlock *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *group = &t->entry[i];
        if (!is_group(group))
            continue;
        good &= glob_check(e, t, group) && check_trains(e, t, group);
        good &= keys_check(e, group->at, group->key, group->num_keys) &&
                keys_check_bare(e, group->key, group->num_keys);
    }
    return good;
}

bool groups_have_optimizer(const TrainBlock *t) {
    for (int i = 0; i < t->num_entries; i++)
        if (is_group(&t->entry[i]) && group_key(&t->entry[i], "optimizer"))
            return true;
    return false;
}

const Call *group_optimizer(Expansion *e, TrainBlock *t, const Call *base,
                            const Parameter *p) {
    const Call *c = base;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *group = &t->entry[i];
        if (!is_group(group) || !glob_matches(e, t, group, p->name))
            continue;
        c = group_apply(e, t, base, group, c);
        if (c == NULL)
            return NULL;
    }
    if (c != NULL)
        return c;
    Diagnostic *d = report(e->diags, D_no_optimizer, p->at,
                           "no optimizer updates `%s`", p->name);
    diag_note(d, "the key `optimizer` is for all parameters that no `params` "
                 "block gives another one");
    return NULL;
}
