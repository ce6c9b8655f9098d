// Numbers: the list of the first ones, and tensors that are written as lists.

#include "frontend/expand.h"

// Constants are tables in the kernels that read them, and are folded up to as
// many numbers.
enum { MOST_NUMBERS = 4096 };

Value lower_range(Expansion *e, const Call *c) {
    enum { WORK = 8 }; // of an item: it takes memory
    int64_t count = call_count(c, P_range_count);
    if (count > MOST_NUMBERS) {
        report(e->diags, D_range, call_arg(c, P_range_count)->at,
               "a range has at most %d numbers", MOST_NUMBERS);
        return value_poison();
    }
    Value *item = ARENA_ARRAY(e->arena, (size_t)count, Value);
    e->work += WORK * count;
    for (int i = 0; i < count; i++)
        item[i] = value_number(i, c->at);
    return (Value){.kind = VALUE_LIST, .at = c->at, .list = {item, (int)count}};
}

// The sizes of a list: how many items it has, and those of its first one.
// False after a report.
static bool sizes_of(Expansion *e, const Value *list, Type *t) {
    int64_t count = 1;
    *t = (Type){.dtype = F32};
    for (const Value *v = list; v->kind == VALUE_LIST; v = v->list.item) {
        if (t->rank == MAX_RANK) {
            report(e->diags, D_rank, list->at,
                   "a tensor has at most %d axes, and these are lists in lists "
                   "of more",
                   MAX_RANK);
            return false;
        }
        t->dim[t->rank++] = v->list.count;
        if ((count *= v->list.count) > MOST_NUMBERS) {
            report(e->diags, D_range, list->at,
                   "a tensor that is written has at most %d numbers",
                   MOST_NUMBERS);
            return false;
        }
    }
    return true;
}

static bool report_uneven(Expansion *e, const Value *v, int axis, Type t) {
    int there = v->kind == VALUE_LIST ? v->list.count : 0;
    int wanted = axis < t.rank ? (int)t.dim[axis] : 0;
    Diagnostic *d =
        report(e->diags, D_length, v->at,
               "the items of a tensor are all numbers, or lists of one length");
    if (there == 0)
        diag_label(d, "this is a number, and the first is a list of %d",
                   wanted);
    else if (wanted == 0)
        diag_label(d, "this is a list of %d, and the first is a number", there);
    else
        diag_label(d, "this has %d, and the first has %d", there, wanted);
    return false;
}

// Writes the numbers of a list that is along an axis from *to on.  False after
// a report.
static bool numbers_of(Expansion *e, const Value *v, int axis, Type t,
                       double **to) {
    bool list = v->kind == VALUE_LIST;
    if (list != (axis < t.rank) || (list && v->list.count != t.dim[axis]))
        return report_uneven(e, v, axis, t);
    if (!list)
        *(*to)++ = v->number;
    for (int i = 0; list && i < v->list.count; i++)
        if (!numbers_of(e, &v->list.item[i], axis + 1, t, to))
            return false;
    return true;
}

Value lower_tensor(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_tensor_numbers);
    Type t;
    if (e->graph == NULL || e->phase == PHASE_KEYS) {
        Diagnostic *d = report(e->diags, D_wrong_place, c->at,
                               "`tensor` belongs in a model, an input or a "
                               "loss");
        diag_note(d, "a name for its list can stand anywhere, as in: let "
                     "taps = [1, 2, 1], and tensor(taps) in the model");
        return value_poison();
    }
    if (!sizes_of(e, list, &t))
        return value_poison();
    int64_t count = type_count(&t);
    double *number = ARENA_ARRAY(e->arena, (size_t)count, double);
    double *end = number;
    if (!numbers_of(e, list, 0, t, &end))
        return value_poison();
    Attr attr = attr_floats(ATTR_values, (int)count, number);
    return value_tensor(graph_add(e->graph, (Node){.op = OP_constant,
                                                   .type = &t,
                                                   .num_attrs = 1,
                                                   .attr = &attr,
                                                   .group = -1}),
                        c->at);
}
