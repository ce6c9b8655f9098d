// Expansion: interprets the tree.  It inlines calls, executes `for` and `if`,
// and adds nodes to a graph.
//
// The language is total: a name is visible only after its definition, so a
// function cannot call itself by name.  Limits on calls, depth and work stop
// recursion through functions as arguments.

#include "frontend/expand/interpreter.h"

#include <math.h>
#include <string.h>

// ---- statements ----

// Poisons the names that a block assigns, if its condition is unknown.
static void poison_block(Expansion *e, const Block *b) {
    for (int i = 0; i < b->count && within_limits(e, b->at); i++) {
        const Stmt *s = &b->stmt[i];
        if (s->kind == STMT_FUNCTION)
            scope_assign(e, s->function->name, value_poison());
        if (s->kind == STMT_ASSIGN)
            targets_assign(e, &s->to, value_poison(), s->at, scope_assign);
        poison_block(e, &s->body);
        poison_block(e, &s->otherwise);
    }
}

static Value expand_for(Expansion *e, const Stmt *s) {
    Value list = expand(e, s->value);
    if (!advise_kind(e, list, VALUE_LIST, s->value->at, "the operand of `for`",
                     "as in: for i in [0, 1, 2] { ... }")) {
        poison_block(e, &s->body);
        return value_poison();
    }
    for (int i = 0; i < list.list.count && within_limits(e, s->at); i++) {
        const Value *item = &list.list.item[i];
        if (!targets_assign(e, &s->to, *item, item->at, scope_assign)) {
            poison_block(e, &s->body);
            return value_poison();
        }
        expand_block(e, &s->body);
    }
    return (Value){.kind = VALUE_NONE};
}

static Value poison_if(Expansion *e, const Stmt *s) {
    poison_block(e, &s->body);
    poison_block(e, &s->otherwise);
    return value_poison();
}

// Evaluates a condition to *is.  False after a report.
static bool expand_condition(Expansion *e, const Expr *x, bool *is) {
    Value v = expand(e, x);
    const char *advice =
        v.kind == VALUE_TENSOR
            ? "where(condition, a, b) chooses element by element"
            : NULL;
    *is = v.kind == VALUE_BOOL && v.boolean;
    return advise_kind(e, v, VALUE_BOOL, x->at, "a condition", advice);
}

static Value expand_if(Expansion *e, const Stmt *s) {
    bool is;
    if (!expand_condition(e, s->value, &is))
        return poison_if(e, s);
    return expand_block(e, is ? &s->body : &s->otherwise);
}

// precision(f32): keywords, not names.
static bool is_full_precision(const Expr *x) {
    return x->kind == EXPR_CALL && x->left->kind == EXPR_NAME &&
           strcmp(x->left->text, "precision") == 0 && x->count == 1 &&
           x->argument[0].name == NULL &&
           x->argument[0].value->kind == EXPR_NAME &&
           strcmp(x->argument[0].value->text, "f32") == 0;
}

static void set_full_precision(Expansion *e, bool full) {
    e->full_precision = full;
    if (e->graph != NULL)
        e->graph->origin.full_precision = full;
}

static Value expand_with(Expansion *e, const Stmt *s) {
    if (!is_full_precision(s->value)) {
        Diagnostic *d = report(e->diags, D_key_value, s->value->at,
                               "`with` sets precision(f32)");
        diag_note(d, "as in: with precision(f32) { x |> softmax }");
        return value_poison();
    }
    bool full = e->full_precision;
    set_full_precision(e, true);
    Value v = expand_block(e, &s->body);
    set_full_precision(e, full);
    return v;
}

static Value expand_stmt(Expansion *e, const Stmt *s) {
    switch (s->kind) {
    case STMT_ASSIGN:
        targets_bind(e, s, scope_assign);
        return (Value){.kind = VALUE_NONE};
    case STMT_FUNCTION:
        scope_bind(e, s->function->name,
                   (Value){.kind = VALUE_FUNCTION,
                           .at = s->function->name_at,
                           .closure = {s->function, e->scope}});
        return (Value){.kind = VALUE_NONE};
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

Value expand_block(Expansion *e, const Block *b) {
    Value v = {.kind = VALUE_NONE};
    for (int i = 0; i < b->count && !e->stopped; i++, e->work++)
        v = expand_stmt(e, &b->stmt[i]);
    return v;
}

// ---- expressions ----

// The stage from i on with an `as` name; x->count for none.
static int naming_stage(const Expr *x, int i) {
    while (i < x->count && x->stage[i].name == NULL)
        i++;
    return i;
}

// The number of layers with parameters in an expression; many if it calls a
// function of the file, which may have any number.
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
    if (x->kind == EXPR_EACH)
        count *= MANY;
    return count < MANY ? count : MANY;
}

// Enters the `as` name of the stages from i on.
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

// Expands stages from `first` on, up to the stage with an `as` name or the end;
// returns the next.  After an error it still checks their names and arguments.
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

// A chain.  Its first operand belongs to the first name, too.
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

// Adds the value of a comprehension for one item, if that meets the condition.
// False after a report.
static bool add_each(Expansion *e, const Expr *x, Value from, Value *item,
                     int *count) {
    bool is = true;
    if (!targets_assign(e, &x->to, from, from.at, scope_bind))
        return false;
    if (x->count > 0 && !expand_condition(e, x->item[0], &is))
        return false;
    if (!is)
        return true;
    item[*count] = expand(e, x->left);
    return item[(*count)++].kind != VALUE_POISON;
}

// A comprehension; its names end with it.
static Value expand_each(Expansion *e, const Expr *x) {
    Value list = expand(e, x->right), v = {.kind = VALUE_LIST, .at = x->at};
    if (!advise_kind(e, list, VALUE_LIST, x->right->at, "the operand of `for`",
                     "as in: [2 * i for i in range(3)]"))
        return value_poison();
    Value *item = ARENA_ARRAY(e->arena, (size_t)list.list.count + 1, Value);
    Binding *scope = e->scope;
    bool good = true;
    for (int i = 0; good && i < list.list.count; i++) {
        good = within_limits(e, x->at) &&
               add_each(e, x, list.list.item[i], item, &v.list.count);
        e->scope = scope;
    }
    v.list.item = item;
    return good ? v : value_poison();
}

static Value expand_choice(Expansion *e, const Expr *x) {
    bool is;
    if (!expand_condition(e, x->item[0], &is))
        return value_poison();
    return expand(e, x->item[is ? 1 : 2]);
}

// An item of a list, counted from 0, or from the last, which is -1.
static Value expand_index(Expansion *e, const Expr *x) {
    Value list = expand(e, x->left), at = expand(e, x->right);
    if (list.kind == VALUE_TENSOR) {
        Diagnostic *d =
            report(e->diags, D_wrong_kind, x->at, "a tensor cannot be indexed");
        diag_note(d, "`slice` takes a part of it, as in: "
                     "slice(x, channels, 0, 3)");
        return value_poison();
    }
    if (at.kind == VALUE_POISON ||
        !expect_kind(e, list, VALUE_LIST, x->left->at, "an indexed value") ||
        !expect_kind(e, at, VALUE_NUMBER, x->right->at, "an index"))
        return value_poison();
    int count = list.list.count;
    double index = at.number < 0 ? at.number + count : at.number;
    if (at.unit == UNIT_NONE && index == floor(index) && index >= 0 &&
        index < count)
        return list.list.item[(int)index];
    Diagnostic *d = report(e->diags, D_out_of_range, x->right->at,
                           "this list has no item %g", at.number);
    diag_note(d, "it has %d items, counted from 0", count);
    if (x->left->kind == EXPR_LIST)
        diag_note(d, "a comma is missing between two lists");
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
    if (!expect_kind(e, v, VALUE_NUMBER, x->left->at, "a value with a unit"))
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

// data.train, or a member of input, output or label.
static Value expand_member(Expansion *e, const Expr *x) {
    Value v = {.kind = VALUE_NONE};
    const Binding *b = x->left->kind == EXPR_NAME
                           ? scope_find(e, x->left->text, NULL)
                           : NULL;
    if (b != NULL && b->value.kind == VALUE_LAZY &&
        lazy_has_members(b->value.lazy))
        return lazy_member(e, b->value.lazy, x->text, x->at);
    if (!name_unknown(e, path_root(x)))
        v = expand(e, x->left);
    if (v.kind == VALUE_POISON)
        return v;
    bool data = v.kind == VALUE_CALL && v.call->builtin->class == DATA;
    if (data && strcmp(x->text, "train") == 0 && e->phase == PHASE_INPUT)
        return value_tensor(input_node(e, INPUT_IMAGE), x->at);
    if (!data)
        return unknown_member(e, x, v);
    report(e->diags, D_unknown_name, x->at,
           "`data.%s` is unknown; an input begins with `data.train`, and eval "
           "reads `data.test`",
           x->text);
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
        v.kind = VALUE_BOOL;
        v.boolean = x->boolean;
    }
    return v;
}

static Value expand_any(Expansion *e, const Expr *x) {
    switch (x->kind) {
    case EXPR_BAD:
        return value_poison();
    case EXPR_NUMBER:
    case EXPR_STRING:
    case EXPR_BOOL:
        return expand_leaf(x);
    case EXPR_NAME:
        return expand_name(e, x);
    case EXPR_LIST:
        return expand_list(e, x);
    case EXPR_EACH:
        return expand_each(e, x);
    case EXPR_IF:
        return expand_choice(e, x);
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
