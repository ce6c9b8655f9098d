// Literals: range, and tensors from lists or from one value.

#include "frontend/functions/functions.h"

// Constants are tables in the kernels, and are folded up to this size.
enum { MAX_LITERAL = 4096 };

// Work of a number: it needs memory.
enum { WORK_PER_NUMBER = 8 };

Value lower_range(Expansion *e, const Call *c) {
    int64_t count = call_count(c, P_range_count);
    if (count > MAX_LITERAL) {
        report(e->diags, D_out_of_range, call_arg(c, P_range_count)->at,
               "a range has at most %d numbers", MAX_LITERAL);
        return value_poison();
    }
    Value *item = ARENA_ARRAY(e->arena, (size_t)count + 1, Value);
    e->work += WORK_PER_NUMBER * count;
    for (int i = 0; i < count; i++)
        item[i] = value_number(i, c->at);
    return (Value){.kind = VALUE_LIST, .at = c->at, .list = {item, (int)count}};
}

// Infers sizes from a list: its length, and the sizes of its first item.  Lists
// may share items, so all are checked only if they are few.  False after a
// report.
static bool infer_sizes(Expansion *e, Span at, const Value *list, Type *t) {
    int64_t count = 1;
    *t = (Type){.dtype = F32};
    for (const Value *v = list; v->kind == VALUE_LIST; v = v->list.item) {
        if (v->list.count == 0) {
            Diagnostic *d =
                report(e->diags, D_wrong_length, at, "a tensor needs numbers");
            diag_secondary(d, v->at, "this list is empty");
            return false;
        }
        if (t->rank == MAX_RANK) {
            report(e->diags, D_wrong_rank, at,
                   "a tensor has at most %d axes, and these are lists in lists "
                   "of more",
                   MAX_RANK);
            return false;
        }
        t->dim[t->rank++] = v->list.count;
        if ((count *= v->list.count) > MAX_LITERAL) {
            report(e->diags, D_out_of_range, at,
                   "a tensor that is written has at most %d numbers",
                   MAX_LITERAL);
            return false;
        }
    }
    return true;
}

// Reports an item that is not a number, or not a list like the first.
static bool report_item(Expansion *e, Span at, const Value *v, int axis,
                        Type t) {
    bool list = v->kind == VALUE_LIST, number = v->kind == VALUE_NUMBER;
    int expected = axis < t.rank ? (int)t.dim[axis] : 0;
    Diagnostic *d = report(
        e->diags, list || (number && expected) ? D_wrong_length : D_wrong_kind,
        at, "the items of a tensor are all numbers, or lists of one length");
    if (!list && !number)
        diag_secondary(d, v->at, "this is %s", value_kind_name(v->kind));
    else if (number && expected == 0)
        diag_secondary(d, v->at, "this has a unit");
    else if (number)
        diag_secondary(d, v->at,
                       "this is a number, and the first is a list of %d",
                       expected);
    else if (expected == 0)
        diag_secondary(d, v->at,
                       "this is a list of %d, and the first is a number",
                       v->list.count);
    else
        diag_secondary(d, v->at, "this has %d, and the first has %d",
                       v->list.count, expected);
    return false;
}

// Writes the numbers of a list along an axis to *to.  False after a report.
static bool write_numbers(Expansion *e, Span at, const Value *v, int axis,
                          Type t, double **to) {
    bool list = v->kind == VALUE_LIST;
    bool number = v->kind == VALUE_NUMBER && v->unit == UNIT_NONE;
    if (axis < t.rank ? !list || v->list.count != t.dim[axis] : !number)
        return report_item(e, at, v, axis, t);
    if (number)
        *(*to)++ = v->number;
    for (int i = 0; list && i < v->list.count; i++)
        if (!write_numbers(e, at, &v->list.item[i], axis + 1, t, to))
            return false;
    return true;
}

bool expect_literal(Expansion *e, Span at, const Value *list, Literal *n) {
    if (!infer_sizes(e, at, list, &n->type))
        return false;
    int64_t count = type_count(&n->type);
    e->work += WORK_PER_NUMBER * count;
    double *end = ARENA_ARRAY(e->arena, (size_t)count, double);
    n->number = end;
    return write_numbers(e, at, list, 0, n->type, &end);
}

// Whether tensors are allowed here; a report with a note if not.
static bool expect_graph(Expansion *e, const Call *c, const char *note) {
    if (e->graph != NULL && e->phase != PHASE_KEYS)
        return true;
    Diagnostic *d =
        report(e->diags, D_wrong_context, c->at,
               "`%s` belongs in a model, an input or a loss", c->builtin->name);
    diag_note(d, "%s", note);
    return false;
}

Value lower_tensor(Expansion *e, const Call *c) {
    Literal n;
    if (!expect_graph(e, c,
                      "a name for its list can stand anywhere, as in: let "
                      "taps = [1, 2, 1], and tensor(taps) in the model") ||
        !expect_literal(e, c->at, call_arg(c, P_tensor_numbers), &n))
        return value_poison();
    return value_tensor(graph_values(e->graph, n.type, n.number), c->at);
}

// ---- one value ----

bool expect_sizes(Expansion *e, const Call *c, const Value *sizes,
                  const char *subject, Type *t) {
    bool list = sizes->kind == VALUE_LIST;
    *t = (Type){.dtype = F32, .rank = list ? sizes->list.count : 1};
    bool good = t->rank <= MAX_RANK;
    for (int i = 0; good && i < t->rank; i++) {
        const Value *size = list ? &sizes->list.item[i] : sizes;
        t->dim[i] = (int64_t)size->number;
        good = t->dim[i] >= 1;
    }
    if (!good)
        report(e->diags, D_out_of_range, sizes->at.source ? sizes->at : c->at,
               "a %s has 1 to %d sizes from 1", subject, MAX_RANK);
    return good;
}

Value lower_full(Expansion *e, const Call *c) {
    Type t;
    if (!expect_graph(e, c, "elsewhere the value alone is enough") ||
        !expect_sizes(e, c, call_arg(c, P_full_shape), "tensor", &t))
        return value_poison();
    if (fits_as_numbers(t))
        return value_tensor(
            graph_constant(e->graph, t, call_number(c, P_full_value)), c->at);
    report(e->diags, D_tensor_too_large, c->at,
           "full: the result is too large");
    return value_poison();
}
