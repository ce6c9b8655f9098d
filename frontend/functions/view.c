// Functions of views: fixed changes of an image, which are noted as steps so
// that they can be undone in an output.

#include "frontend/functions/functions.h"

#include <math.h>
#include <string.h>

enum { MAX_SHIFT = 1 << 16 };

Value lower_identity(Expansion *e, const Call *c) {
    (void)e;
    return *call_arg(c, P_identity_x);
}

static void view_step_add(Expansion *e, ViewStep step) {
    ViewStep *added = ARENA_NEW(e->arena, ViewStep);
    *added = step;
    added->before = e->view_step;
    e->view_step = added;
}

NodeId view_mirrored(Expansion *e, NodeId x) {
    Type each = type_of(BOOL, 1, &e->recipe.batch);
    NodeId always = graph_constant(e->graph, each, 1);
    return graph_op2(e->graph, OP_flip, x, always);
}

Value view_flip(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_flip_lr_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    view_step_add(e, (ViewStep){.mirrors = true});
    return value_tensor(view_mirrored(e, x->node), c->at);
}

NodeId view_moved(Expansion *e, NodeId x, const int64_t by[2],
                  const char *mode) {
    Type each = type_of(I32, 1, &e->recipe.batch);
    NodeId arg[] = {x, graph_constant(e->graph, each, (double)-by[0]),
                    graph_constant(e->graph, each, (double)-by[1])};
    Attr attr = attr_text(ATTR_mode, mode);
    return graph_add(e->graph, (Node){.op = OP_shift,
                                      .num_args = 3,
                                      .arg = arg,
                                      .num_attrs = 1,
                                      .attr = &attr,
                                      .group = -1});
}

// The distance of a shift along an axis, up to a limit: for reflected edges,
// less than the image's size.
static bool read_distance(Expansion *e, const Call *c, ParamId p, int64_t size,
                          int64_t *out) {
    const Value *v = call_arg(c, p);
    bool reflect = strcmp(call_arg(c, P_shift_mode)->text, "reflect") == 0;
    int64_t most = reflect ? size - 1 : MAX_SHIFT;
    if (v->kind == VALUE_NONE)
        return true;
    if (v->number == floor(v->number) && fabs(v->number) <= (double)most) {
        *out = (int64_t)v->number;
        return true;
    }
    Diagnostic *d =
        report(e->diags, D_out_of_range, v->at,
               "shift moves by whole pixels, %lld at most", (long long)most);
    diag_label(d, "this is %g", v->number);
    if (reflect)
        diag_note(d, "mode=reflect needs fewer than the %lld of the image",
                  (long long)size);
    return false;
}

Value lower_shift(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_shift_x);
    ViewStep step = {0};
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!read_distance(e, c, P_shift_dy, t.dim[1], &step.by[0]))
        return value_poison();
    step.by[1] = step.by[0];
    if (!read_distance(e, c, P_shift_dx, t.dim[2], &step.by[1]))
        return value_poison();
    if (step.by[0] == 0 && step.by[1] == 0)
        return *x;
    view_step_add(e, step);
    return value_tensor(
        view_moved(e, x->node, step.by, call_arg(c, P_shift_mode)->text),
        c->at);
}
