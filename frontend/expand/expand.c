// Expansion: functions are called, `for` and `if` are carried out, and what is
// left are the nodes of a graph.
//
// The language is total: a name can be used only after its definition, so a
// function cannot reach itself by name; what functions as arguments could
// still do is stopped by a limit on depth and one on work.

#include "frontend/functions/functions.h"
#include "frontend/foreign.h"

#include <math.h>
#include <string.h>

enum { MOST_CALLS = 100, MOST_DEPTH = 1500 };

// A function that is being expanded.
struct Active {
    const Function *function;
    const struct Active *outer;
    int depth;
};

// ---- limits ----

static Value stop(Expansion *e, DiagId id, Span at, const char *why) {
    if (!e->stopped)
        report(e->diags, id, at, "%s", why);
    e->stopped = true;
    return value_poison();
}

static const char too_many_nodes[] =
    "the model expands to more than 180,000 operations";

bool within_limits(Expansion *e, Span at) {
    if (e->stopped || e->diags->more)
        return false;
    if (e->depth > MOST_DEPTH) {
        stop(e, D_nesting, at, "the expansion is nested too deep here");
        return false;
    }
    bool large = e->graph != NULL && e->graph->count > MAX_STEP_NODES;
    if (!large && (e->work += 50) <= MOST_WORK)
        return true;
    stop(e, D_too_much, at,
         large ? too_many_nodes : "the expansion takes too many steps");
    return false;
}

bool has_room(Expansion *e, Span at, int64_t nodes) {
    if (nodes <= MAX_STEP_NODES - (int64_t)e->graph->count)
        return true;
    stop(e, D_too_much, at, too_many_nodes);
    return false;
}

// ---- names ----

void scope_bind(Expansion *e, Atom name, Value v) {
    Binding *b = ARENA_NEW(e->arena, Binding);
    *b = (Binding){name, v, e->scope};
    e->scope = b;
}

static Binding *scope_find(Expansion *e, Atom name, const Binding *end) {
    for (Binding *b = e->scope; b != end; b = b->next, e->work++)
        if (b->name == name)
            return b;
    return NULL;
}

bool name_defined(Expansion *e, Atom name) {
    return scope_find(e, name, NULL) != NULL;
}

bool name_known(Expansion *e, Atom name) {
    return name_defined(e, name) || builtin_find(name) != NULL;
}

// An assignment gives a name of the current function a new value.
static void scope_assign(Expansion *e, Atom name, Value v) {
    Binding *b = scope_find(e, name, e->frame);
    if (b != NULL)
        b->value = v;
    else
        scope_bind(e, name, v);
}

// Where the file defines a name at its top level; no source where it does not.
static Span defined_later(const Expansion *e, Atom name) {
    for (int i = 0; e->file != NULL && i < e->file->count; i++) {
        const Item *item = &e->file->item[i];
        if (item->kind == ITEM_LET && item->let.name == name)
            return item->let.name_at;
        if (item->function != NULL && item->function->name == name)
            return item->function->name_at;
    }
    return (Span){0};
}

static bool is_active(const Expansion *e, Atom name) {
    for (const struct Active *a = e->active; a != NULL; a = a->outer)
        if (a->function->name == name)
            return true;
    return false;
}

// Whether `as` has given the name to layers with parameters.
static bool names_layers(const Expansion *e, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < e->num_parameters; i++)
        if (strncmp(e->parameter[i].name, name, length) == 0 &&
            e->parameter[i].name[length] == '.')
            return true;
    return false;
}

// What a name that nothing defines was meant to be.
static void note_name(Expansion *e, Atom name, Diagnostic *d) {
    if (names_layers(e, name)) {
        diag_note(d, "it names layers; a value is named by %s = ...", name);
        return;
    }
    if (foreign_note(FOREIGN_FUNCTION, name, d))
        return;
    Nearest near = nearest_to(name);
    for (const Binding *n = e->scope; n != NULL; n = n->next)
        nearest_offer(&near, n->name);
    for (int i = 0; i < NUM_BUILTINS; i++)
        nearest_offer(&near, builtin_info[i].name);
    nearest_note(&near, d);
}

static Value report_name(Expansion *e, const Expr *x) {
    Span later = defined_later(e, x->text);
    const char *module = std_module_of(x->text);
    if (is_active(e, x->text)) {
        report(e->diags, D_recursion, x->at,
               "`%s` cannot call itself: every model expands to a finite graph",
               x->text);
    } else if (later.source != NULL) {
        Diagnostic *d = report(e->diags, D_too_early, x->at,
                               "`%s` is used before its definition", x->text);
        diag_place(d, later, "it is defined here");
    } else if (module != NULL) {
        Diagnostic *d = report(e->diags, D_not_imported, x->at,
                               "`%s` is not imported", x->text);
        diag_note(d, "begin the file with: import \"%s\" { %s }", module,
                  x->text);
    } else {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "nothing here is called `%s`", x->text);
        note_name(e, x->text, d);
    }
    return value_poison();
}

static Value expand_name(Expansion *e, const Expr *x) {
    Binding *b = scope_find(e, x->text, NULL);
    if (b != NULL)
        return b->value.kind == VALUE_LAZY ? lazy_force(e, b->value.lazy, x->at)
                                           : b->value;
    const Builtin *builtin = builtin_find(x->text);
    if (builtin != NULL && builtin->module == NULL)
        return (Value){.kind = VALUE_BUILTIN, .builtin = builtin, .at = x->at};
    return report_name(e, x);
}

// As expect_kind, with advice.
static bool advise_kind(Expansion *e, Value v, ValueKind kind, Span at,
                        const char *what, const char *advice) {
    if (v.kind == kind)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    Diagnostic *d =
        report(e->diags, D_kind, at, "%s must be %s, and this is %s", what,
               value_kind_name(kind), value_kind_name(v.kind));
    if (advice != NULL)
        diag_note(d, "%s", advice);
    return false;
}

bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *what) {
    return advise_kind(e, v, kind, at, what, NULL);
}

// Whether x is a name that nothing has, as of a module of another language.
static bool is_unknown(Expansion *e, const Expr *x) {
    return x->kind == EXPR_NAME && !name_known(e, x->text);
}

// ---- types ----

static bool is_dimension_name(const Expr *x) {
    return x->kind == EXPR_NAME && x->text[0] >= 'A' && x->text[0] <= 'Z';
}

// Whether a size of type t is, or is made of, a parameter that comes after the
// tensor; reported if so.  It may be called as something else of the file is.
static bool report_later(Expansion *e, const Function *f, const TypeExpr *t,
                         const Expr *x) {
    bool later = false;
    if (x == NULL)
        return false;
    e->work += f->num_params;
    for (int i = 0; x->kind == EXPR_NAME && i < f->num_params; i++) {
        later |= f->param[i].type == t;
        if (!later || f->param[i].name != x->text)
            continue;
        Diagnostic *d = report(e->diags, D_too_early, x->at,
                               "`%s` is used before its definition", x->text);
        diag_place(d, f->param[i].at, "it is defined here");
        diag_note(d, "parameters are read in their order; one that is a size "
                     "comes before the tensor");
        return true;
    }
    for (int i = 0; i < expr_num_parts(x); i++)
        if (report_later(e, f, t, expr_part(x, i)))
            return true;
    return false;
}

// The size that a dimension of a type stands for.  A new name takes the size
// that is found; -1 after a report.
static int64_t expand_dimension(Expansion *e, const Function *f,
                                const TypeExpr *t, const Expr *x,
                                int64_t found) {
    if (report_later(e, f, t, x))
        return -1;
    if (x->kind == EXPR_NAME && is_unknown(e, x) && !is_dimension_name(x)) {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "nothing here is called `%s`", x->text);
        diag_note(d, "a dimension's name begins with an upper-case letter, as "
                     "`N`");
        return -1;
    }
    if (is_dimension_name(x) && scope_find(e, x->text, NULL) == NULL) {
        if (found < 1) {
            report(e->diags, D_data, x->at, "nothing says how large `%s` is",
                   x->text);
            return -1;
        }
        scope_bind(e, x->text, value_number((double)found, x->at));
        return found;
    }
    Value v = expand(e, x);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number >= 1 &&
        v.number <= INT32_MAX && v.number == (double)(int64_t)v.number)
        return (int64_t)v.number;
    if (v.kind != VALUE_POISON)
        report(e->diags, D_range, x->at,
               "a dimension must be a whole number from 1");
    return -1;
}

bool type_expand(Expansion *e, const Function *f, const TypeExpr *t, Type found,
                 Type *out) {
    *out = (Type){.dtype = t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) {
        out->dim[i] = expand_dimension(e, f, t, t->dim[i],
                                       i < found.rank ? found.dim[i] : 1);
        if (out->dim[i] < 0)
            return false;
    }
    return true;
}

// A tensor of pixels may be declared u8 and be numbers already.
static bool dtype_fits(DType declared, DType found) {
    return declared == found || (declared == U8 && found == F32) ||
           (declared == F32 && found == U8);
}

// A first size that a type names is that of the batch, where they are equal.
static const char *declared_text(Expansion *e, const TypeExpr *t, Type type) {
    bool named = t->rank > 0 && t->dim[0]->kind == EXPR_NAME;
    return named ? samples_text(e, type) : type_text(e, type);
}

// Whether v is what its type in a function says; what is the subject of the
// report.
static bool check_type(Expansion *e, const Function *f, const TypeExpr *t,
                       Value v, Span at, const char *what) {
    if (t == NULL || v.kind == VALUE_POISON)
        return true;
    const char *advice =
        v.kind == VALUE_LIST ? "`concat` makes one of several" : NULL;
    if (!advise_kind(e, v, VALUE_TENSOR, at, what, advice))
        return false;
    Type found = *node_type(e, v.node), declared;
    if (!type_expand(e, f, t, found, &declared))
        return false;
    if (type_has_shape(&found, &declared) &&
        dtype_fits(declared.dtype, found.dtype))
        return true;
    Diagnostic *d = report(e->diags, D_annotation, at,
                           "%s is not what its type says", what);
    diag_label(d, "this is %s", tensor_text(e, v.node));
    diag_place(d, t->at, "the type says %s", declared_text(e, t, declared));
    if (declared.rank > 0 && declared.dim[0] == e->recipe.batch &&
        (found.rank == 0 || found.dim[0] != e->recipe.batch))
        diag_note(d, "the batch is no longer its first axis; axes count from "
                     "0, which is the batch, and the larger of two is "
                     "maximum(a, b)");
    if (v.at.start != at.start || v.at.source != at.source)
        diag_place(d, v.at, "it comes from here");
    return false;
}

// ---- statements ----

static Value expand_block(Expansion *e, const Block *b);

// What a block would name is not missing where nobody knows whether it runs.
static void poison_block(Expansion *e, const Block *b) {
    for (int i = 0; i < b->count && within_limits(e, b->at); i++) {
        const Stmt *s = &b->stmt[i];
        if (s->kind == STMT_ASSIGN || s->kind == STMT_FUNCTION)
            scope_assign(e, s->name, value_poison());
        poison_block(e, &s->body);
        poison_block(e, &s->otherwise);
    }
}

static Value expand_for(Expansion *e, const Stmt *s) {
    Value list = expand(e, s->value);
    if (!advise_kind(e, list, VALUE_LIST, s->value->at, "what `for` goes over",
                     "as in: for i in [0, 1, 2] { ... }")) {
        poison_block(e, &s->body);
        return value_poison();
    }
    for (int i = 0; i < list.list.count && within_limits(e, s->at); i++) {
        scope_assign(e, s->name, list.list.item[i]);
        expand_block(e, &s->body);
    }
    return (Value){.kind = VALUE_NOTHING};
}

static Value poison_if(Expansion *e, const Stmt *s) {
    poison_block(e, &s->body);
    poison_block(e, &s->otherwise);
    return value_poison();
}

static Value expand_if(Expansion *e, const Stmt *s) {
    Value v = expand(e, s->value);
    if (v.kind == VALUE_TENSOR) {
        Diagnostic *d = report(e->diags, D_kind, s->value->at,
                               "a condition must be true or false, and this "
                               "is a tensor");
        diag_note(d, "where(condition, a, b) chooses for each of its numbers");
        return poison_if(e, s);
    }
    if (!expect_kind(e, v, VALUE_TRUTH, s->value->at, "a condition"))
        return poison_if(e, s);
    return expand_block(e, v.truth ? &s->body : &s->otherwise);
}

// precision(f32): words, not names.
static bool is_full_precision(const Expr *x) {
    return x->kind == EXPR_CALL && x->left->kind == EXPR_NAME &&
           strcmp(x->left->text, "precision") == 0 && x->count == 1 &&
           x->argument[0].name == NULL &&
           x->argument[0].value->kind == EXPR_NAME &&
           strcmp(x->argument[0].value->text, "f32") == 0;
}

static void set_full(Expansion *e, bool full) {
    e->full = full;
    if (e->graph != NULL)
        e->graph->at.full = full;
}

static Value expand_with(Expansion *e, const Stmt *s) {
    if (!is_full_precision(s->value)) {
        Diagnostic *d = report(e->diags, D_key_value, s->value->at,
                               "`with` sets precision(f32)");
        diag_note(d, "as in: with precision(f32) { x |> softmax }");
        return value_poison();
    }
    bool full = e->full;
    set_full(e, true);
    Value v = expand_block(e, &s->body);
    set_full(e, full);
    return v;
}

static Value expand_stmt(Expansion *e, const Stmt *s) {
    switch (s->kind) {
    case STMT_ASSIGN: {
        Value v = expand(e, s->value);
        scope_assign(e, s->name, v);
        return (Value){.kind = VALUE_NOTHING};
    }
    case STMT_FUNCTION:
        scope_bind(e, s->name,
                   (Value){.kind = VALUE_FUNCTION,
                           .at = s->name_at,
                           .closure = {s->function, e->scope}});
        return (Value){.kind = VALUE_NOTHING};
    case STMT_FOR:
        return expand_for(e, s);
    case STMT_IF:
        return expand_if(e, s);
    case STMT_WITH:
        return expand_with(e, s);
    case STMT_VALUE:
        break;
    }
    return expand(e, s->value);
}

// The value of a block is that of its last statement.
static Value expand_block(Expansion *e, const Block *b) {
    Value v = {.kind = VALUE_NOTHING};
    for (int i = 0; i < b->count && !e->stopped; i++, e->work++)
        v = expand_stmt(e, &b->stmt[i]);
    return v;
}

// ---- calls of the user's functions ----

static bool can_call(Expansion *e, const Function *f, Span at) {
    int depth = e->active ? e->active->depth : 0;
    if (depth < MOST_CALLS)
        return true;
    stop(e, D_recursion, at,
         arena_format(e->arena, "`%s` is called more than %d calls deep",
                      f->name, MOST_CALLS));
    return false;
}

static bool match_function(Expansion *e, const Function *f, const Given *given,
                           int num_given, Span at, int *slot) {
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
    return match_arguments(e, &s, given, num_given, slot);
}

// The values of the arguments, in the scope of the caller; NOTHING where the
// default is to be taken.  False when one of them is poison.
static bool expand_given(Expansion *e, const Function *f, const Given *given,
                         const int *slot, Value *arg) {
    bool good = true;
    for (int i = 0; i < f->num_params; i++) {
        const Given *g = slot[i] < 0 ? NULL : &given[slot[i]];
        arg[i] = g == NULL  ? (Value){.kind = VALUE_NOTHING}
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
        if (v.kind == VALUE_NOTHING && p->otherwise != NULL)
            v = expand(e, p->otherwise);
        if (v.kind == VALUE_NOTHING)
            report(e->diags, D_kind, p->at, "`%s` has no value", p->name);
        const char *what = arena_format(e->arena, "`%s`", p->name);
        if (v.kind == VALUE_NOTHING || v.kind == VALUE_POISON ||
            !check_type(e, f, p->type, v, p->at, what))
            return false;
        scope_bind(e, p->name, v);
    }
    return true;
}

static Value expand_body(Expansion *e, const Function *f, const Value *arg,
                         Span at) {
    if (!bind_params(e, f, arg))
        return value_poison();
    Value v = expand_block(e, &f->body);
    if (e->stopped)
        return value_poison();
    if (v.kind == VALUE_NOTHING) {
        Diagnostic *d = report(e->diags, D_kind, f->name_at,
                               "`%s` gives no value", f->name);
        diag_note(d, "its last line must be a value");
        return value_poison();
    }
    const char *what = arena_format(e->arena, "the result of `%s`", f->name);
    if (!check_type(e, f, f->result, v, v.at.source ? v.at : at, what))
        return value_poison();
    return v;
}

Value expand_function(Expansion *e, Value function, const Value *arg, Span at) {
    const Function *f = function.closure.function;
    if (!can_call(e, f, at))
        return value_poison();
    Binding *scope = e->scope, *frame = e->frame;
    struct Active active = {f, e->active, e->active ? e->active->depth + 1 : 1};
    e->active = &active;
    e->scope = e->frame = function.closure.scope;
    Value v = expand_body(e, f, arg, at);
    e->scope = scope;
    e->frame = frame;
    e->active = active.outer;
    return v;
}

static Value call_function(Expansion *e, Value function, const Expr *by,
                           const Given *given, int num_given, Span at) {
    const Function *f = function.closure.function;
    size_t count = (size_t)f->num_params + 1;
    int *slot = ARENA_ARRAY(e->arena, count, int);
    Value *arg = ARENA_ARRAY(e->arena, count, Value);
    if (!match_function(e, f, given, num_given, at, slot) ||
        !expand_given(e, f, given, slot, arg))
        return value_poison();
    Value v = expand_function(e, function, arg, at);
    if (v.kind == VALUE_TENSOR) {
        v.at = at;
        v.by = by;
    }
    return v;
}

// ---- calls of builtins ----

static bool belongs(Class c, Phase p) {
    switch (c) {
    case ANYWHERE:
    case FUNCTION:
    case INITIAL:
        return true;
    case LAYER:
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
    case EVAL_VIEW: // called by views.c alone
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

static bool takes_tensor(const Call *c) {
    bool some = false;
    for (int i = 0; i < builtin_num_params(c->builtin); i++)
        some |= has_tensor(c->arg[i]);
    return some;
}

static Value computed(Expansion *e, const Call *c, bool truth, double x) {
    if (truth)
        return (Value){.kind = VALUE_TRUTH, .truth = x != 0, .at = c->at};
    if (number_fits(x))
        return value_number(x, c->at);
    report(e->diags, D_range, c->at, "the result is not finite in f32");
    return value_poison();
}

// A function of numbers is a number: a graph of its own is computed at once.
static Value compute(Expansion *e, const Call *c) {
    enum { WORK = 5000 };
    Graph *outer = e->graph;
    Arena *scratch = arena_new();
    e->work += WORK;
    e->graph = graph_new(scratch, "constant");
    Value v = c->builtin->lower(e, c);
    if (v.kind == VALUE_TENSOR) {
        double **all = graph_eval(e->graph, scratch, NULL, false);
        bool truth = node_type(e, v.node)->dtype == BOOL;
        v = computed(e, c, truth, *all[v.node]);
    }
    e->graph = outer;
    arena_free(scratch);
    return v;
}

static Value call_builtin(Expansion *e, const Builtin *b, const Expr *by,
                          const Given *given, int num_given, Span at) {
    Call *c = ARENA_NEW(e->arena, Call);
    *c = (Call){
        .builtin = b, .by = by, .piped = num_given > by->count, .at = at};
    if (!belongs(b->class, e->phase)) {
        Diagnostic *d =
            report(e->diags, D_wrong_place, at, "`%s` is %s and belongs in %s",
                   b->name, class_name(b->class), class_place(b->class));
        if (b->class == LOSS && e->phase == PHASE_KEYS)
            diag_note(d,
                      "a part of it is a function, as in: "
                      "fn error(output, label) = %s(output, label)",
                      b->name);
        return value_poison();
    }
    if (b->class == SCHEDULE && e->graph == NULL) {
        report(e->diags, D_wrong_place, at,
               "what is needed here must not change during the run");
        return value_poison();
    }
    if (!bind_builtin(e, c, given, num_given) || !within_limits(e, at))
        return value_poison();
    if (b->class == FUNCTION && !takes_tensor(c))
        return compute(e, c);
    if (e->path != NULL && b->class != ANYWHERE && b->class != INITIAL)
        c->path = path_layer(e, b->name, builtin_trains(b));
    origin_set(e, at, c->path);
    Value v = b->lower(e, c);
    if (v.kind != VALUE_POISON) {
        v.at = at;
        v.by = by;
    }
    return v;
}

// ---- expressions ----

static Value call_value(Expansion *e, Value f, const Expr *by,
                        const Given *given, int num_given, Span at) {
    switch (f.kind) {
    case VALUE_POISON:
        return f;
    case VALUE_FUNCTION:
        return call_function(e, f, by, given, num_given, at);
    case VALUE_BUILTIN:
        return call_builtin(e, f.builtin, by, given, num_given, at);
    default:
        report(e->diags, D_not_a_function, at, "this is %s and no function",
               value_kind_name(f.kind));
        return value_poison();
    }
}

// The function that a call names.  Keys and variables of a train block are no
// functions, so one may have the name of a schedule: step(0.1, every=5 epoch).
static Value expand_callee(Expansion *e, const Expr *x) {
    const Builtin *b = x->kind == EXPR_NAME ? builtin_find(x->text) : NULL;
    if (b == NULL || b->class != SCHEDULE)
        return expand(e, x);
    const Binding *other = scope_find(e, x->text, NULL);
    if (other == NULL || other->value.kind != VALUE_LAZY)
        return expand(e, x);
    return (Value){.kind = VALUE_BUILTIN, .builtin = b, .at = x->at};
}

// x |> f and x |> f(a) call f with x before its other arguments.
static Value expand_call(Expansion *e, const Expr *x, const Value *piped) {
    bool call = x->kind == EXPR_CALL;
    const Expr *callee = call ? x->left : x;
    int count = call ? x->count : 0, first = piped != NULL;
    Given *given = ARENA_ARRAY(e->arena, (size_t)count + 1, Given);
    if (piped != NULL)
        given[0] = (Given){.at = x->at, .value = piped};
    for (int i = 0; i < count; i++)
        given[first + i] = argument_given(&x->argument[i]);
    Value f = expand_callee(e, callee);
    return call_value(e, f, x, given, first + count, x->at);
}

// The stage that bears the name of those from i on; x->count for none.
static int naming_stage(const Expr *x, int i) {
    while (i < x->count && x->stage[i].name == NULL)
        i++;
    return i;
}

// How many layers with parameters an expression has; many where it calls a
// function of the file, which may have any.
static int count_layers(Expansion *e, const Expr *x) {
    enum { MANY = 2 };
    if (x == NULL || !within_limits(e, x->at))
        return 0;
    int count = 0;
    if (x->kind == EXPR_NAME) {
        const Binding *b = scope_find(e, x->text, NULL);
        const Builtin *builtin = b == NULL ? builtin_find(x->text)
                                 : b->value.kind == VALUE_BUILTIN
                                     ? b->value.builtin
                                     : NULL;
        if (b != NULL && b->value.kind == VALUE_FUNCTION)
            return MANY;
        return builtin != NULL && builtin_trains(builtin);
    }
    for (int i = 0; i < expr_num_parts(x); i++)
        count += count_layers(e, expr_part(x, i));
    return count < MANY ? count : MANY;
}

// Enters the name that the stages from i on bear.
static bool enter_name(Expansion *e, const Expr *x, int i) {
    int last = naming_stage(x, i);
    if (e->path == NULL || last == x->count)
        return false;
    int layers = i == 0 ? count_layers(e, x->left) : 0;
    for (int k = i; k <= last; k++)
        layers += count_layers(e, x->stage[k].call);
    path_enter(e, x->stage[last].name, layers == 1);
    return true;
}

// Stages first .. of one name, up to the stage that bears it or to the end.
// Behind a mistake their names and arguments are looked at all the same.
// Returns where the next begin.
static int expand_stages(Expansion *e, const Expr *x, int first, Value *v) {
    int i = first;
    for (bool last = false; i < x->count && !last; i++) {
        last = x->stage[i].name != NULL;
        Value piped = *v;
        *v = e->stopped ? value_poison()
                        : expand_call(e, x->stage[i].call, &piped);
    }
    return i;
}

// A chain.  What it begins with belongs to the first name, too.
static Value expand_pipe(Expansion *e, const Expr *x) {
    Value v = {0};
    for (int i = 0, start = 1; i < x->count; start = 0) {
        bool named = enter_name(e, x, i);
        if (start)
            v = expand(e, x->left);
        i = expand_stages(e, x, i, &v);
        if (named)
            path_leave(e);
    }
    return v;
}

static Value expand_list(Expansion *e, const Expr *x) {
    Value *item = ARENA_ARRAY(e->arena, (size_t)x->count + 1, Value);
    for (int i = 0; i < x->count; i++) {
        item[i] = expand(e, x->item[i]);
        if (item[i].kind == VALUE_POISON)
            return value_poison();
    }
    return (Value){.kind = VALUE_LIST, .at = x->at, .list = {item, x->count}};
}

// An item of a list, counted from 0, or from the last, which is -1.
static Value expand_index(Expansion *e, const Expr *x) {
    Value list = expand(e, x->left), at = expand(e, x->right);
    if (list.kind == VALUE_TENSOR) {
        Diagnostic *d =
            report(e->diags, D_kind, x->at, "a tensor has no index");
        diag_note(d, "`slice` takes a part of it, as in: "
                     "slice(x, channels, 0, 3)");
        return value_poison();
    }
    if (at.kind == VALUE_POISON ||
        !expect_kind(e, list, VALUE_LIST, x->left->at, "what has items") ||
        !expect_kind(e, at, VALUE_NUMBER, x->right->at, "the place of an item"))
        return value_poison();
    int count = list.list.count;
    double place = at.number < 0 ? at.number + count : at.number;
    if (at.unit == UNIT_NONE && place == floor(place) && place >= 0 &&
        place < count)
        return list.list.item[(int)place];
    Diagnostic *d = report(e->diags, D_range, x->right->at,
                           "this list has no item %g", at.number);
    diag_note(d, "it has %d, counted from 0", count);
    return value_poison();
}

static Value expand_knot(Expansion *e, const Expr *x) {
    Value *item = ARENA_ARRAY(e->arena, 2, Value);
    item[0] = expand(e, x->left);
    item[1] = expand(e, x->right);
    if (item[0].kind == VALUE_POISON || item[1].kind == VALUE_POISON)
        return value_poison();
    return (Value){.kind = VALUE_KNOT, .at = x->at, .list = {item, 2}};
}

static Value expand_unit(Expansion *e, const Expr *x) {
    Value v = expand(e, x->left);
    if (!expect_kind(e, v, VALUE_NUMBER, x->left->at, "what carries a unit"))
        return value_poison();
    v.at = x->at;
    switch (x->unit) {
    case UNIT_PERCENT:
        v.number /= 100;
        break;
    case UNIT_KIB:
        v.number *= 1 << 10;
        break;
    case UNIT_MIB:
        v.number *= 1 << 20;
        break;
    case UNIT_GIB:
        v.number *= 1 << 30;
        break;
    default:
        v.unit = x->unit;
    }
    return v;
}

static void report_member(Expansion *e, const Expr *x) {
    bool module = is_unknown(e, x->left);
    Diagnostic *d = module ? report(e->diags, D_unknown_name, x->at,
                                    "nothing here is called `%s.%s`",
                                    x->left->text, x->text)
                           : report(e->diags, D_unknown_name, x->at,
                                    "`.%s` has no meaning here", x->text);
    if (!module && builtin_find(x->text) != NULL)
        diag_note(d, "a function is applied by |>, as in: x |> %s", x->text);
    else
        note_name(e, x->text, d);
}

// data.train, the only member there is.
static Value expand_member(Expansion *e, const Expr *x) {
    Value v = {.kind = VALUE_NOTHING};
    if (!is_unknown(e, x->left))
        v = expand(e, x->left);
    if (v.kind == VALUE_POISON)
        return v;
    bool data = v.kind == VALUE_CALL && v.call->builtin->class == DATA;
    if (data && strcmp(x->text, "train") == 0 && e->phase == PHASE_INPUT)
        return value_tensor(input_node(e, INPUT_IMAGE), x->at);
    if (data)
        report(e->diags, D_unknown_name, x->at,
               "`data.%s` has no meaning here; `data.train` is what an input "
               "begins with, `data.test` what eval is on",
               x->text);
    else
        report_member(e, x);
    return value_poison();
}

static Value expand_leaf(const Expr *x) {
    Value v = {.kind = VALUE_NUMBER, .at = x->at};
    if (x->kind == EXPR_NUMBER) {
        v.number = x->number;
    } else if (x->kind == EXPR_STRING) {
        v.kind = VALUE_STRING;
        v.text = x->text;
    } else {
        v.kind = VALUE_TRUTH;
        v.truth = x->truth;
    }
    return v;
}

static Value expand_any(Expansion *e, const Expr *x) {
    switch (x->kind) {
    case EXPR_BAD:
        return value_poison();
    case EXPR_NUMBER:
    case EXPR_STRING:
    case EXPR_TRUTH:
        return expand_leaf(x);
    case EXPR_NAME:
        return expand_name(e, x);
    case EXPR_LIST:
        return expand_list(e, x);
    case EXPR_KNOT:
        return expand_knot(e, x);
    case EXPR_CALL:
        return expand_call(e, x, NULL);
    case EXPR_PIPE:
        return expand_pipe(e, x);
    case EXPR_MEMBER:
        return expand_member(e, x);
    case EXPR_INDEX:
        return expand_index(e, x);
    case EXPR_UNIT:
        return expand_unit(e, x);
    case EXPR_UNARY:
        return expand_unary(e, x, expand(e, x->right));
    case EXPR_BINARY: {
        Value left = expand(e, x->left);
        return expand_binary(e, x, left, expand(e, x->right));
    }
    }
    return value_poison();
}

Value expand(Expansion *e, const Expr *x) {
    if (!within_limits(e, x->at))
        return value_poison();
    e->depth++;
    Value v = expand_any(e, x);
    e->depth--;
    return v;
}
