// Broadcasting: whether the shapes of two operands broadcast, and the report if
// not.

#include "frontend/functions/functions.h"

#include <math.h>

static const char *axis_name(int axis) {
    static const char *const name[] = {"batch sizes", "heights", "widths",
                                       "channels"};
    return name[axis];
}

// "; stride=2 on line 12 halved one of them", if that explains heights or
// widths.
static const char *stride_note(Expansion *e, Value v, int64_t small,
                               int64_t large) {
    const Expr *by = v.by;
    for (int i = 0; by != NULL && by->kind == EXPR_CALL && i < by->count; i++) {
        const Argument *arg = &by->argument[i];
        if (arg->name == NULL || arg->value->kind != EXPR_NUMBER ||
            *arg->name != 's' || arg->value->number < 2 ||
            small != (int64_t)ceil((double)large / arg->value->number))
            continue;
        int line = source_line_of(arg->name_at.source, arg->name_at.start);
        return arena_format(e->arena, "; %s=%g on line %d %s one of them",
                            arg->name, arg->value->number, line,
                            arg->value->number == 2 ? "halved" : "divided");
    }
    return "";
}

static Type operand_type(const Expansion *e, Value v) {
    return v.kind == VALUE_TENSOR ? *node_type(e, v.node) : type_scalar(F32);
}

// Whether both have samples and different ranks: broadcasting aligns the last
// axes, so samples would meet other axes.
static bool crosses_samples(Expansion *e, Value a, Value b) {
    Type s = operand_type(e, a), t = operand_type(e, b);
    return s.rank != t.rank && s.rank > 0 && t.rank > 0 &&
           s.dim[0] == e->recipe.batch && t.dim[0] == e->recipe.batch &&
           has_samples(e, a.node) && has_samples(e, b.node);
}

// Whether a sample's sizes equal a larger one's from its axis on.
static bool fits_from(Type few, Type many, int axis) {
    for (int i = 1; i < few.rank; i++)
        if (few.dim[i] != many.dim[axis + i - 1])
            return false;
    return true;
}

// Notes a reshape that aligns the sizes of each sample with a tensor of higher
// rank: with its first axes if only those match, else with its last.
static void note_samples(Diagnostic *d, Arena *a, Type few, Type many) {
    int more = many.rank - few.rank;
    bool last = fits_from(few, many, 1 + more) || !fits_from(few, many, 1);
    Text shape = text_new(a);
    for (int i = 0; last && i < more; i++)
        text_add(&shape, ", 1");
    for (int i = 1; i < few.rank; i++)
        text_add(&shape, ", %lld", (long long)few.dim[i]);
    for (int i = 0; !last && i < more; i++)
        text_add(&shape, ", 1");
    diag_note(d,
              "shapes are aligned at the last axis, so each sample would meet "
              "other samples; use reshape([-1%s]), or `keep` in a mean, sum or "
              "max, which keeps the axes in place",
              text_string(&shape));
}

// Axes count from the last, as in broadcasting; beyond the rank sizes are 1.
static int64_t size_from_last(Type t, int axis) {
    return axis < t.rank ? t.dim[t.rank - 1 - axis] : 1;
}

// The first axis at which the shapes do not broadcast; -1: none.
static int differing_axis(Type s, Type t) {
    for (int i = 0, rank = s.rank > t.rank ? s.rank : t.rank; i < rank; i++) {
        int axis = rank - 1 - i;
        int64_t of_s = size_from_last(s, axis), of_t = size_from_last(t, axis);
        if (of_s != of_t && of_s != 1 && of_t != 1)
            return axis;
    }
    return -1;
}

static void note_difference(Expansion *e, Diagnostic *d, Value a, Value b,
                            Type s, Type t) {
    if (s.rank != t.rank)
        diag_note(d, "one has %d dimensions, the other %d", s.rank, t.rank);
    if (crosses_samples(e, a, b)) {
        note_samples(d, e->arena, s.rank < t.rank ? s : t,
                     s.rank < t.rank ? t : s);
        return;
    }
    int axis = differing_axis(s, t), rank = s.rank > t.rank ? s.rank : t.rank;
    if (axis < 0)
        return;
    int64_t of_s = size_from_last(s, axis), of_t = size_from_last(t, axis);
    int64_t small = of_s < of_t ? of_s : of_t;
    int64_t large = of_s < of_t ? of_t : of_s;
    const char *name = rank == 4   ? axis_name(3 - axis)
                       : axis == 0 ? "channels"
                                   : "sizes";
    bool strides = rank == 4 && (axis == 1 || axis == 2);
    diag_note(d, "the %s differ: %lld and %lld%s", name, (long long)of_s,
              (long long)of_t,
              strides ? stride_note(e, of_s < of_t ? a : b, small, large) : "");
}

static bool shapes_broadcast(Expansion *e, Value a, Value b) {
    Type s = operand_type(e, a), t = operand_type(e, b), both;
    return type_broadcast(&s, &t, &both) && !crosses_samples(e, a, b);
}

bool expect_broadcast(Expansion *e, Span at, const char *verb, Value a,
                      Value b) {
    Type s = operand_type(e, a), t = operand_type(e, b);
    if (shapes_broadcast(e, a, b))
        return true;
    Diagnostic *d = report(e->diags, D_incompatible_shapes, at,
                           "cannot %s tensors of different shapes", verb);
    diag_secondary(d, a.at, "this is %s", operand_text(e, a));
    diag_label(d, "and this is %s", operand_text(e, b));
    note_difference(e, d, a, b, s, t);
    return false;
}

bool expect_broadcast_call(Expansion *e, const Call *c, Value a, Value b) {
    Type s = operand_type(e, a), t = operand_type(e, b);
    if (shapes_broadcast(e, a, b))
        return true;
    Diagnostic *d =
        report(e->diags, D_incompatible_shapes, c->at,
               "%s needs tensors of shapes that fit", c->builtin->name);
    diag_secondary(d, a.at, "this is %s", operand_text(e, a));
    diag_secondary(d, b.at, "and this is %s", operand_text(e, b));
    note_difference(e, d, a, b, s, t);
    return false;
}

NodeId add_broadcast(Expansion *e, const Call *c, Op op, Value a, Value b) {
    if (!expect_broadcast_call(e, c, a, b))
        return NO_NODE;
    NodeId arg[] = {operand_node(e, &a), operand_node(e, &b)};
    return add_checked(e, c, (Node){.op = op, .num_args = 2, .arg = arg});
}
