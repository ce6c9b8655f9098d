// Calls of functions of the file, whose bodies are expanded in the scope of
// their definition, and of builtins.

#include "frontend/expand/interpreter.h"

enum { MAX_CALLS = 100 };

bool call_is_active(const Expansion *e, Atom name) {
    for (const struct CallFrame *a = e->call_stack; a != NULL; a = a->outer)
        if (a->function->name == name)
            return true;
    return false;
}

// ---- functions of the file ----

static bool can_call(Expansion *e, const Function *f, Span at) {
    int depth = e->call_stack ? e->call_stack->depth : 0;
    if (depth < MAX_CALLS)
        return true;
    expand_stop(e, D_recursion, at,
                arena_format(e->arena, "`%s` is called more than %d calls deep",
                             f->name, MAX_CALLS));
    return false;
}

static bool match_function(Expansion *e, const Function *f,
                           const ActualArg *given, int num_args, Span at,
                           int *slot) {
    size_t count = (size_t)f->num_params + 1;
    const char **name = ARENA_ARRAY(e->arena, count, const char *);
    bool *optional = ARENA_ARRAY(e->arena, count, bool);
    for (int i = 0; i < f->num_params; i++) {
        name[i] = f->param[i].name;
        optional[i] = f->param[i].otherwise != NULL;
    }
    Signature s = {.function = f->name,
                   .at = at,
                   .declared_at = f->name_at,
                   .num_params = f->num_params,
                   .name = name,
                   .optional = optional};
    return match_arguments(e, &s, given, num_args, slot);
}

// Evaluates the arguments in the caller's scope; NONE for a default.  False
// if one is poison.
static bool expand_arguments(Expansion *e, const Function *f,
                             const ActualArg *given, const int *slot,
                             Value *arg) {
    bool good = true;
    for (int i = 0; i < f->num_params; i++) {
        const ActualArg *g = slot[i] < 0 ? NULL : &given[slot[i]];
        arg[i] = g == NULL  ? (Value){.kind = VALUE_NONE}
                 : g->value ? *g->value
                            : expand(e, g->expr);
        good &= arg[i].kind != VALUE_POISON;
    }
    return good;
}

static bool bind_params(Expansion *e, const Function *f, const Value *arg) {
    for (int i = 0; i < f->num_params; i++) {
        const Param *p = &f->param[i];
        Value v = arg[i];
        if (v.kind == VALUE_NONE && p->otherwise != NULL)
            v = expand(e, p->otherwise);
        if (v.kind == VALUE_NONE)
            report(e->diags, D_wrong_kind, p->at, "`%s` has no value", p->name);
        const char *subject = arena_format(e->arena, "`%s`", p->name);
        if (v.kind == VALUE_NONE || v.kind == VALUE_POISON ||
            !type_check(e, f, p->type, v, p->at, subject))
            return false;
        scope_bind(e, p->name, v);
    }
    return true;
}

// Whether the value of a model fits its result or its named outputs.
static bool check_result(Expansion *e, const Function *f, Value v, Span at) {
    const char *subject = arena_format(e->arena, "the result of `%s`", f->name);
    if (f->num_outputs == 0)
        return type_check(e, f, f->result, v, at, subject);
    if (!advise_kind(e, v, VALUE_LIST, at, subject,
                     "a model with named outputs ends with a list of them"))
        return false;
    if (v.list.count != f->num_outputs) {
        Diagnostic *d = report(e->diags, D_wrong_length, at,
                               "%s must be a list of its %d outputs, and has "
                               "%d",
                               subject, f->num_outputs, v.list.count);
        diag_secondary(d, f->output[0].at, "they are named here");
        return false;
    }
    bool good = true;
    for (int i = 0; good && i < f->num_outputs; i++) {
        const Param *p = &f->output[i];
        Value own = v.list.item[i];
        good = type_check(e, f, p->type, own, own.at.source ? own.at : at,
                          arena_format(e->arena, "the output `%s`", p->name));
    }
    return good;
}

static Value expand_body(Expansion *e, const Function *f, const Value *arg,
                         Span at) {
    if (!bind_params(e, f, arg))
        return value_poison();
    Value v = expand_block(e, &f->body);
    if (e->stopped)
        return value_poison();
    if (v.kind == VALUE_NONE) {
        Diagnostic *d = report(e->diags, D_wrong_kind, f->name_at,
                               "`%s` gives no value", f->name);
        const Stmt *last =
            f->body.count ? &f->body.stmt[f->body.count - 1] : NULL;
        if (last != NULL && last->kind == STMT_ASSIGN)
            diag_secondary(d, last->at, "an assignment has no value");
        diag_note(d, "its last line must be a value");
        return value_poison();
    }
    return check_result(e, f, v, v.at.source ? v.at : at) ? v : value_poison();
}

// Nobody edits a module of std/: its mistakes are those of its caller.
static void label_caller(Expansion *e, const Function *f, Span at, int first) {
    if (at.source == NULL || std_text(f->name_at.source->path) == NULL ||
        std_text(at.source->path) != NULL)
        return;
    for (int i = first; i < e->diags->count; i++)
        if (e->diags->list[i]->label[0].at.start != at.start ||
            e->diags->list[i]->label[0].at.source != at.source)
            diag_secondary(e->diags->list[i], at, "in this call of `%s`",
                           f->name);
}

Value expand_function(Expansion *e, Value function, const Value *arg, Span at) {
    const Function *f = function.closure.function;
    int first = e->diags->count;
    if (!can_call(e, f, at))
        return value_poison();
    Binding *scope = e->scope, *frame = e->frame;
    struct CallFrame call = {f, e->call_stack,
                             e->call_stack ? e->call_stack->depth + 1 : 1, at,
                             std_text(f->name_at.source->path) != NULL};
    e->call_stack = &call;
    e->scope = e->frame = function.closure.scope;
    Value v = expand_body(e, f, arg, at);
    label_caller(e, f, at, first);
    e->scope = scope;
    e->frame = frame;
    e->call_stack = call.outer;
    return v;
}

static Value call_function(Expansion *e, Value function, const Expr *by,
                           const ActualArg *given, int num_args, Span at) {
    const Function *f = function.closure.function;
    size_t count = (size_t)f->num_params + 1;
    int *slot = ARENA_ARRAY(e->arena, count, int);
    Value *arg = ARENA_ARRAY(e->arena, count, Value);
    if (!match_function(e, f, given, num_args, at, slot) ||
        !expand_arguments(e, f, given, slot, arg))
        return value_poison();
    Value v = expand_function(e, function, arg, at);
    if (v.kind == VALUE_TENSOR) {
        v.at = at;
        v.by = by;
    }
    return v;
}

// ---- builtins ----

static bool is_allowed_in(Class c, Phase p) {
    switch (c) {
    case ANYWHERE:
    case FUNCTION:
    case ACTIVATION:
    case INITIAL:
        return true;
    case LAYER:
    case NORM:
        return p == PHASE_MODEL;
    case IMAGE:
        return p == PHASE_MODEL || p == PHASE_INPUT;
    case AUGMENT:
        return p == PHASE_INPUT;
    case LOSS:
        return p == PHASE_LOSS;
    case OPTIMIZER:
    case CLIP:
    case AVERAGE:
    case SCHEDULE:
    case DATA:
        return p == PHASE_KEYS;
    case EVAL_VIEW: // only views.c calls it
        return false;
    }
    return false;
}

static bool has_tensor(Value v) {
    bool some = v.kind == VALUE_TENSOR;
    for (int i = 0; v.kind == VALUE_LIST && i < v.list.count; i++)
        some |= has_tensor(v.list.item[i]);
    return some;
}

static bool accepts_tensor(const Call *c) {
    bool some = false;
    for (int i = 0; i < builtin_num_params(c->builtin); i++)
        some |= has_tensor(c->arg[i]);
    return some;
}

static Value computed(Expansion *e, const Call *c, bool boolean, double x) {
    if (boolean)
        return (Value){.kind = VALUE_BOOL, .boolean = x != 0, .at = c->at};
    return number_checked(e, x, c->at);
}

// A function of numbers is a number: a graph of its own is evaluated at once.
static Value compute(Expansion *e, const Call *c) {
    enum { WORK = 5000 };
    Graph *outer = e->graph;
    Arena *scratch = arena_new();
    e->work += WORK;
    e->graph = graph_new(scratch, "constant");
    Value v = c->builtin->lower(e, c);
    if (v.kind == VALUE_TENSOR) {
        double **all = graph_eval(e->graph, scratch, NULL, false);
        bool boolean = node_type(e, v.node)->dtype == BOOL;
        v = computed(e, c, boolean, *all[v.node]);
    }
    e->graph = outer;
    arena_free(scratch);
    return v;
}

static Value call_builtin(Expansion *e, const Builtin *b, const Expr *by,
                          const ActualArg *given, int num_args, Span at) {
    Call *c = ARENA_NEW(e->arena, Call);
    *c =
        (Call){.builtin = b, .by = by, .piped = num_args > by->count, .at = at};
    if (!is_allowed_in(b->class, e->phase)) {
        Diagnostic *d = report(e->diags, D_wrong_context, at,
                               "`%s` is %s and belongs in %s", b->name,
                               class_name(b->class), class_context(b->class));
        if (b->class == LOSS && e->phase == PHASE_KEYS)
            diag_note(d,
                      "write a part of it as a function, as in: fn "
                      "error(output, label) = %s(output, label)",
                      b->name);
        if (builtin_id(b) == B_norm)
            diag_note(d, "the length of rows is sqrt(sum(square(x), channels, "
                         "keep))");
        return value_poison();
    }
    if (b->class == SCHEDULE && e->graph == NULL) {
        report(e->diags, D_wrong_context, at,
               "this value must stay constant during the run");
        return value_poison();
    }
    if (!bind_builtin(e, c, given, num_args) || !within_limits(e, at))
        return value_poison();
    Value v;
    if ((b->class == FUNCTION || b->class == ACTIVATION) && !accepts_tensor(c))
        return number_function(e, c, &v) ? v : compute(e, c);
    if (e->path != NULL && b->class != ANYWHERE && b->class != INITIAL)
        c->path = path_layer(e, b->name, builtin_trains(b));
    origin_set(e, at, c->path);
    v = b->lower(e, c);
    if (v.kind != VALUE_POISON) {
        v.at = at;
        v.by = by;
    }
    return v;
}

// ---- either ----

static Value call_value(Expansion *e, Value f, const Expr *by,
                        const ActualArg *given, int num_args, Span at) {
    switch (f.kind) {
    case VALUE_POISON:
        return f;
    case VALUE_FUNCTION:
        return call_function(e, f, by, given, num_args, at);
    case VALUE_BUILTIN:
        return call_builtin(e, f.builtin, by, given, num_args, at);
    default:
        report(e->diags, D_not_a_function, at, "this is %s, not a function",
               value_kind_name(f.kind));
        return value_poison();
    }
}

// The function that a call names.  Keys and variables of a train block are no
// functions, so a key may have the name of a schedule: step(0.1, every=5
// epoch).
static Value expand_callee(Expansion *e, const Expr *x) {
    const Builtin *b = x->kind == EXPR_NAME ? builtin_find(x->text) : NULL;
    if (b == NULL || b->class != SCHEDULE)
        return expand(e, x);
    const Binding *other = scope_find(e, x->text, NULL);
    if (other == NULL || other->value.kind != VALUE_LAZY)
        return expand(e, x);
    return (Value){.kind = VALUE_BUILTIN, .builtin = b, .at = x->at};
}

Value expand_call(Expansion *e, const Expr *x, const Value *piped) {
    bool call = x->kind == EXPR_CALL;
    const Expr *callee = call ? x->left : x;
    int count = call ? x->count : 0, first = piped != NULL;
    ActualArg *given = ARENA_ARRAY(e->arena, (size_t)count + 1, ActualArg);
    if (piped != NULL)
        given[0] = (ActualArg){.at = x->at, .value = piped};
    for (int i = 0; i < count; i++)
        given[first + i] = actual_arg(&x->argument[i]);
    Value f = expand_callee(e, callee);
    return call_value(e, f, x, given, first + count, x->at);
}
