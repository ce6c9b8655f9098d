// Matches arguments to parameters, by position, by name, then by default; and
// converts the arguments of builtins to the kinds of their parameters.

#include "frontend/expand/interpreter.h"
#include "frontend/foreign.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KNOTS = 1000 };

ActualArg actual_arg(const Argument *a) {
    return (ActualArg){.name = a->name,
                       .at = a->name ? a->name_at : a->value->at,
                       .expr = a->value,
                       .overrides = a->overrides};
}

// ---- matching ----

// "conv(x, channels, size, stride=..., ...)"
static const char *usage(Expansion *e, const Signature *s) {
    Text t = text_new(e->arena);
    text_add(&t, "%s(", s->function);
    for (int i = 0; i < s->num_params; i++)
        text_add(&t, "%s%s%s", i ? ", " : "", s->name[i],
                 s->optional[i] ? "=..." : "");
    text_add(&t, ")");
    return text_string(&t);
}

static void explain(Expansion *e, const Signature *s, Diagnostic *d) {
    if (s->declared_at.source != NULL)
        diag_secondary(d, s->declared_at, "it is defined here");
    else
        diag_note(d, "it is %s", usage(e, s));
}

// Notes an argument that the function of this name takes in other systems.
static void note_surplus(const Signature *s, Diagnostic *d) {
    if (s->declared_at.source == NULL)
        foreign_note(FOREIGN_SURPLUS, s->function, d);
}

static int param_named(const Signature *s, Atom name) {
    for (int i = 0; i < s->num_params; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    return -1;
}

static void report_unknown(Expansion *e, const Signature *s,
                           const ActualArg *g) {
    Diagnostic *d = report(e->diags, D_unknown_argument, g->at,
                           "%s has no argument `%s`", s->function, g->name);
    Nearest near = nearest_to(g->name);
    for (int i = 0; i < s->num_params; i++)
        nearest_offer(&near, s->name[i]);
    if (!foreign_argument_note(g->name, s->name, s->num_params, d))
        nearest_note(&near, d);
    explain(e, s, d);
    note_surplus(s, d);
}

// `0,5` is two numbers.
static void note_comma(const ActualArg *given, int index, Diagnostic *d) {
    const Expr *a = index > 0 ? given[index - 1].expr : NULL;
    const Expr *b = given[index].expr;
    if (a && b && a->kind == EXPR_NUMBER && b->kind == EXPR_NUMBER &&
        a->at.end + 1 == b->at.start)
        diag_note(d, "a decimal point is a point: %g.%g", a->number, b->number);
}

// Notes a positional argument that other systems have here: the parameters for
// an optimizer, the input channels for a layer.
static void note_twice(const Signature *s, const ActualArg *first,
                       Diagnostic *d) {
    const Expr *x = first->expr;
    if (first->name != NULL || s->declared_at.source != NULL)
        return;
    if (x != NULL && x->kind == EXPR_CALL && x->left->kind == EXPR_MEMBER)
        foreign_note(FOREIGN_METHOD, x->left->text, d);
    else if (param_named(s, "channels") >= 0)
        diag_note(d, "the channels of the input are known; leave them out");
}

// Puts the argument `index` into the slot of its parameter.
static bool match_argument(Expansion *e, const Signature *s,
                           const ActualArg *given, int index, int position,
                           int *slot) {
    const ActualArg *g = &given[index];
    int param = g->name ? param_named(s, g->name) : position;
    if (param < 0) {
        report_unknown(e, s, g);
        return false;
    }
    if (param > s->num_params)
        return false; // an earlier error is reported
    if (param == s->num_params) {
        Diagnostic *d = report(e->diags, D_too_many_arguments, g->at,
                               "%s takes %d argument%s", s->function,
                               s->num_params, s->num_params == 1 ? "" : "s");
        note_comma(given, index, d);
        if (s->list)
            diag_note(d, "a list stands between [ and ]: %s(%s[...])",
                      s->function, s->num_params > 1 ? "x, " : "");
        explain(e, s, d);
        note_surplus(s, d);
        return false;
    }
    if (slot[param] >= 0 && !g->overrides) {
        Diagnostic *d =
            report(e->diags, D_duplicate_argument, g->at,
                   "`%s` of %s is given twice", s->name[param], s->function);
        diag_secondary(d, given[slot[param]].at, "it was given here");
        note_twice(s, &given[slot[param]], d);
        return false;
    }
    slot[param] = index;
    return true;
}

static bool check_missing(Expansion *e, const Signature *s,
                          const ActualArg *given, const int *slot) {
    for (int i = 0; i < s->num_params; i++) {
        if (slot[i] >= 0 || s->optional[i])
            continue;
        Diagnostic *d = report(e->diags, D_missing_argument, s->at,
                               "%s needs `%s`", s->function, s->name[i]);
        bool number = slot[0] >= 0 && given[slot[0]].expr != NULL &&
                      given[slot[0]].expr->kind == EXPR_NUMBER;
        if (i > 0 && number && strcmp(s->name[0], "x") == 0)
            diag_note(d, "`x` comes first, or before a |>: x |> %s(...)",
                      s->function);
        explain(e, s, d);
        return false;
    }
    return true;
}

bool match_arguments(Expansion *e, const Signature *s, const ActualArg *given,
                     int num_args, int *slot) {
    int position = 0;
    bool good = true;
    for (int i = 0; i < s->num_params; i++)
        slot[i] = -1;
    for (int i = 0; i < num_args; i++) {
        e->work += s->num_params;
        if (!within_limits(e, s->at))
            return false;
        if (s->rest && !given[i].name && position == s->num_params)
            continue;
        good &= match_argument(e, s, given, i, position, slot);
        position += given[i].name == NULL;
    }
    return good && check_missing(e, s, given, slot);
}

// ---- values of the wrong kind ----

static const char *describe(Expansion *e, Value v) {
    if (v.kind == VALUE_TENSOR)
        return tensor_text(e, v.node);
    if (v.kind == VALUE_NUMBER)
        return arena_format(e->arena, "%.9g%s", v.number,
                            is_plain(v) ? "" : " with a unit");
    return value_described(v);
}

// The first item of a list that is not a tensor; the list if all are.
static Value first_other_item(Value list) {
    for (int i = 0; i < list.list.count; i++)
        if (list.list.item[i].kind != VALUE_TENSOR)
            return list.list.item[i];
    return list;
}

static Signature signature_of(Expansion *e, const Call *c) {
    const ParamInfo *p = &param_info[c->builtin->first];
    int count = builtin_num_params(c->builtin);
    const char **name = ARENA_ARRAY(e->arena, (size_t)count + 1, const char *);
    bool *optional = ARENA_ARRAY(e->arena, (size_t)count + 1, bool);
    for (int i = 0; i < count; i++) {
        name[i] = p[i].name;
        optional[i] = p[i].otherwise != NULL;
    }
    return (Signature){.function = c->builtin->name,
                       .at = c->at,
                       .num_params = count,
                       .name = name,
                       .optional = optional,
                       .rest = count > 0 && p[count - 1].kind == KNOTS,
                       .list = count > 0 && p[count - 1].kind == SIZES};
}

// Notes a function's name in quotes, or a schedule without its call.
static void note_quoted(const ParamInfo *p, Value v, Diagnostic *d) {
    const char *ours =
        v.kind == VALUE_STRING ? foreign_name(FOREIGN_FUNCTION, v.text) : NULL;
    const Builtin *b = ours                     ? builtin_find(ours)
                       : v.kind == VALUE_STRING ? builtin_find_loose(v.text)
                                                : NULL;
    if (b != NULL && p->kind == INITIALISER)
        diag_note(d, "a function stands without quotes: %s", b->name);
    if (v.kind == VALUE_BUILTIN && (p->kind == SCALAR || p->kind == RATE))
        diag_note(d, "it is written as a call: %s(...)", v.builtin->name);
}

static bool takes_axes(const ParamInfo *p) {
    return p->kind == AXES || p->kind == AXES_OR_NUMBER;
}

// Notes the likely meaning of a value of another kind.
static void note_likely_meaning(const Call *c, const ParamInfo *p, Value v,
                                Diagnostic *d) {
    bool function = v.kind == VALUE_FUNCTION || v.kind == VALUE_BUILTIN;
    bool layer = c->builtin->class == LAYER || c->builtin->class == NORM;
    if (function && p->kind != INITIALISER && layer)
        diag_note(d,
                  "an activation is a function of its own: `|> %s(...) |> "
                  "relu`",
                  c->builtin->name);
    if (v.kind == VALUE_TENSOR && p->kind == TENSORS)
        diag_note(d, "as in: %s([a, b])", c->builtin->name);
    if (v.kind == VALUE_TENSOR && p->kind == LIST)
        diag_note(d, "a tensor has channels_of(x), and images height_of(x) and "
                     "width_of(x)");
    if (v.kind == VALUE_TENSOR && builtin_id(c->builtin) == B_round)
        diag_note(d, "floor(x + 0.5) rounds a tensor");
    if (v.kind == VALUE_TENSOR && takes_axes(p))
        diag_note(d, "the larger of two is maximum(a, b), the smaller "
                     "minimum(a, b), their sum a + b");
    if (p->kind == TENSOR || p->kind == OPERAND)
        note_initialiser(v, d);
    note_quoted(p, v, d);
    if (v.kind == VALUE_BOOL && p->kind == TENSOR)
        diag_note(d, "`if` chooses before the run, as in: fn either(a, b) { if "
                     "deep { a } else { b } }");
    if (v.kind == VALUE_LIST && p->kind == TENSORS) {
        Value odd = first_other_item(v);
        diag_secondary(d, odd.at, "this is %s", value_described(odd));
        note_initialiser(odd, d);
    }
    if (v.kind == VALUE_CALL && v.call->builtin->class == DATA)
        diag_note(d, "an input begins with `data.train`");
    if (v.kind == VALUE_TENSOR && c->builtin->class == INITIAL)
        diag_note(d, "an initializer sets a parameter's start value; noise(x) "
                     "draws new numbers in each step");
    if (v.kind == VALUE_NUMBER || v.kind == VALUE_LIST)
        foreign_note(FOREIGN_SURPLUS, c->builtin->name, d);
}

static void report_kind(Expansion *e, const Call *c, const ParamInfo *p,
                        Value v, Span at) {
    bool range = v.kind == VALUE_NUMBER && p->kind != TENSOR &&
                 p->kind != FLAG && p->kind != STRING && p->kind != WORD;
    Diagnostic *d = report(e->diags, range ? D_out_of_range : D_wrong_kind, at,
                           "`%s` of %s must be %s", p->name, c->builtin->name,
                           kind_expected(e, p));
    diag_label(d, "this is %s", describe(e, v));
    if (v.kind == VALUE_STRING && p->words && word_allowed(p->words, v.text))
        diag_note(d, "a word stands without quotes: %s", v.text);
    const Signature signature = signature_of(e, c);
    if (v.kind == VALUE_NUMBER && p->kind == FLAG)
        diag_note(d, "it is %s%s", usage(e, &signature),
                  param_named(&signature, "channels") >= 0
                      ? "; the channels of the input are known"
                      : "");
    note_likely_meaning(c, p, v, d);
    if (p->kind == TIME_POINT && is_plain(v) && v.number > 1)
        diag_note(d, "for a time, write `%.9g epoch` or `%.9g step`", v.number,
                  v.number);
    if (v.at.source != NULL &&
        (v.at.source != at.source || v.at.start != at.start))
        diag_secondary(d, v.at, "it comes from here");
}

// Whether a name is an enumerator, such as `reflect`.
static bool is_word(Expansion *e, const ParamInfo *p, const Expr *x) {
    bool axis = p->kind == AXIS || takes_axes(p);
    return p->words != NULL && x != NULL && x->kind == EXPR_NAME &&
           (word_allowed(p->words, x->text) ||
            (p->kind == WORD && !name_defined(e, x->text)) ||
            (axis && !name_exists(e, x->text)));
}

static void report_word(Expansion *e, const Call *c, const ParamInfo *p,
                        const Expr *x) {
    Diagnostic *d =
        report(e->diags, D_wrong_kind, x->at, "`%s` of %s must be one of: %s",
               p->name, c->builtin->name, word_list(e, p->words));
    Nearest near = nearest_to(x->text);
    const char *rest = p->words;
    for (const char *w; (w = next_word(e, &rest)) != NULL;)
        nearest_offer(&near, w);
    const char *ours = foreign_name(FOREIGN_WORD, x->text);
    if (ours == NULL || !word_allowed(p->words, ours) ||
        !foreign_note(FOREIGN_WORD, x->text, d))
        nearest_note(&near, d);
}

// [1, 2, 3]
static Value default_list(Expansion *e, const char *text) {
    Value *item = NULL;
    int count = 0;
    for (char *end; *text != ']'; text = end)
        ARENA_APPEND(e->arena, item, count,
                     value_number(strtod(text + 1, &end), (Span){0}));
    return (Value){.kind = VALUE_LIST, .list = {item, count}};
}

static bool is_flag(const ParamInfo *p) {
    return p->kind == FLAG || p->kind == NAMES;
}

static Value default_value(Expansion *e, const ParamInfo *p) {
    const char *text = p->otherwise;
    if (*text == '\0')
        return (Value){.kind = VALUE_NONE};
    if (*text == '[')
        return default_list(e, text);
    if (is_flag(p))
        return (Value){.kind = VALUE_BOOL, .boolean = *text == 't'};
    if (p->words != NULL && word_allowed(p->words, text))
        return (Value){.kind = VALUE_WORD, .text = text};
    char *unit;
    Value v = value_number(strtod(text, &unit), (Span){0});
    if (strcmp(unit, " epoch") == 0)
        v.unit = UNIT_EPOCH;
    else if (p->kind == TIME)
        v.unit = UNIT_STEP;
    return v;
}

// The enumerator, if the parameter allows it.
static Value enumerator(Expansion *e, const Call *c, const ParamInfo *p,
                        const Expr *x) {
    if (word_allowed(p->words, x->text))
        return (Value){.kind = VALUE_WORD, .text = x->text, .at = x->at};
    report_word(e, c, p, x);
    return value_poison();
}

// A list of axes, some by name.
static Value axis_list(Expansion *e, const Call *c, const ParamInfo *p,
                       const Expr *x) {
    Value *item = ARENA_ARRAY(e->arena, (size_t)x->count + 1, Value);
    for (int i = 0; i < x->count; i++) {
        item[i] = is_word(e, p, x->item[i]) ? enumerator(e, c, p, x->item[i])
                                            : expand(e, x->item[i]);
        if (item[i].kind == VALUE_POISON)
            return value_poison();
    }
    return (Value){.kind = VALUE_LIST, .at = x->at, .list = {item, x->count}};
}

// An initialiser's name alone is a call without arguments.
static Value call_by_name(Expansion *e, Value v) {
    if (v.kind != VALUE_BUILTIN || v.builtin->class != INITIAL)
        return v;
    Call *c = ARENA_NEW(e->arena, Call);
    *c = (Call){.builtin = v.builtin, .at = v.at};
    if (!bind_builtin(e, c, NULL, 0))
        return value_poison();
    return (Value){.kind = VALUE_CALL, .call = c, .at = v.at};
}

// METRIC(OUTPUT)
static Value metric_of_output(Expansion *e, const Expr *x) {
    const char *name = metric_measured(e, x);
    return name != NULL ? (Value){.kind = VALUE_WORD, .text = name, .at = x->at}
                        : value_poison();
}

static Value argument_value(Expansion *e, const Call *c, const ParamInfo *p,
                            const ActualArg *g) {
    if (g->value != NULL)
        return *g->value;
    if (is_word(e, p, g->expr))
        return enumerator(e, c, p, g->expr);
    if (p == &param_info[P_plateau_metric] && g->expr->kind == EXPR_CALL)
        return metric_of_output(e, g->expr);
    if (takes_axes(p) && g->expr->kind == EXPR_LIST)
        return axis_list(e, c, p, g->expr);
    Value v = expand(e, g->expr);
    return p->kind == INITIALISER ? call_by_name(e, v) : v;
}

static bool convert(Expansion *e, const Call *c, const ParamInfo *p,
                    const ActualArg *g, Value *out) {
    *out = argument_value(e, c, p, g);
    if (out->kind == VALUE_POISON)
        return false;
    if (out->kind == VALUE_LIST)
        e->work += out->list.count;
    if (p->kind == WORD && out->kind == VALUE_STRING &&
        word_allowed(p->words, out->text)) // functions of modules pass it on
        out->kind = VALUE_WORD;
    if (kind_accepts(e, p, *out))
        return true;
    report_kind(e, c, p, *out, g->expr ? g->expr->at : g->at);
    return false;
}

// All positional arguments from `first` on, as one list.
static bool convert_rest(Expansion *e, const Call *c, const ParamInfo *p,
                         const ActualArg *given, int first, int num_args,
                         Value *out) {
    if (num_args - first > MAX_KNOTS) {
        report(e->diags, D_wrong_length, given[first].at,
               "%s has %d knots; at most %d are allowed", c->builtin->name,
               num_args - first, MAX_KNOTS);
        return false;
    }
    Value *item = ARENA_ARRAY(e->arena, (size_t)(num_args - first), Value);
    int count = 0;
    bool good = true;
    for (int i = first; i < num_args && good; i++)
        if (given[i].name == NULL)
            good = convert(e, c, p, &given[i], &item[count++]);
    *out = (Value){.kind = VALUE_LIST, .list = {item, count}};
    return good;
}

// A variable with the name of a flag is ambiguous unless it is true.
static const Value *flag_value(Expansion *e, const Expr *x) {
    static const Value yes = {.kind = VALUE_BOOL, .boolean = true},
                       poison = {.kind = VALUE_POISON};
    if (!name_defined(e, x->text))
        return &yes;
    Value v = expand(e, x);
    if (v.kind == VALUE_POISON || (v.kind == VALUE_BOOL && v.boolean))
        return v.kind == VALUE_POISON ? &poison : &yes;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, x->at,
               "`%s` alone means true, but it is also the name of a value here",
               x->text);
    diag_label(d, "this is %s",
               v.kind == VALUE_BOOL ? "false" : value_kind_name(v.kind));
    diag_note(d, "write %s=%s for its value, or %s=true", x->text, x->text,
              x->text);
    return &poison;
}

// Takes an unknown name that is near a flag's for the flag.
static ActualArg as_misspelt_flag(Expansion *e, const Signature *s,
                                  const Nearest *near, ActualArg g) {
    static const Value poison = {.kind = VALUE_POISON};
    if (near->best == NULL || name_defined(e, g.expr->text))
        return g;
    Diagnostic *d = report(e->diags, D_unknown_argument, g.at,
                           "%s has no flag `%s`", s->function, near->name);
    nearest_note(near, d);
    return (ActualArg){.name = near->best, .at = g.at, .value = &poison};
}

// Accepts a flag by its name alone, as `nesterov`.
static ActualArg as_flag(Expansion *e, const Call *c, const Signature *s,
                         ActualArg g) {
    if (g.name != NULL || g.expr == NULL || g.expr->kind != EXPR_NAME)
        return g;
    Nearest near = nearest_to(g.expr->text);
    for (int i = 0; i < builtin_num_params(c->builtin); i++) {
        const ParamInfo *p = &param_info[(int)c->builtin->first + i];
        if (is_flag(p) && strcmp(p->name, g.expr->text) == 0)
            return (ActualArg){
                .name = p->name, .at = g.at, .value = flag_value(e, g.expr)};
        if (is_flag(p))
            nearest_offer(&near, p->name);
        else if (p->words != NULL && word_allowed(p->words, g.expr->text))
            return g;
    }
    return as_misspelt_flag(e, s, &near, g);
}

bool bind_builtin(Expansion *e, Call *c, const ActualArg *given, int num_args) {
    Signature s = signature_of(e, c);
    const ParamInfo *p = &param_info[c->builtin->first];
    ActualArg *g = ARENA_ARRAY(e->arena, (size_t)num_args + 1, ActualArg);
    int *slot = ARENA_ARRAY(e->arena, (size_t)s.num_params + 1, int);
    bool good = true;
    for (int i = 0; i < num_args; i++)
        g[i] = as_flag(e, c, &s, given[i]);
    if (!match_arguments(e, &s, g, num_args, slot))
        return false;
    c->arg = ARENA_ARRAY(e->arena, (size_t)s.num_params + 1, Value);
    for (int i = 0; i < s.num_params; i++) {
        Value *out = &c->arg[i];
        if (slot[i] < 0)
            *out = default_value(e, &p[i]);
        else if (p[i].kind == KNOTS)
            good &= convert_rest(e, c, &p[i], g, slot[i], num_args, out);
        else
            good &= convert(e, c, &p[i], &g[slot[i]], out);
        // The next ones may be tensors that should be in the list.
        if (!good && p[i].kind == TENSORS)
            return false;
    }
    return good;
}
