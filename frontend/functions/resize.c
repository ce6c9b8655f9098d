// resize: images of another size, nearest or bilinear.

#include "frontend/functions/functions.h"

#include <math.h>

// Reads the new size, or computes it from a factor; false after a report.
static bool read_size(Expansion *e, const Call *c, Type t, int64_t size[2]) {
    const Value *factor = call_arg(c, P_resize_factor);
    bool given = call_arg(c, P_resize_size)->kind != VALUE_NONE;
    if (given == (factor->kind != VALUE_NONE)) {
        Diagnostic *d =
            report(e->diags, given ? D_too_many_arguments : D_missing_argument,
                   c->at, "resize needs either a size or a factor");
        diag_note(d, "as in: resize([64, 64]), or resize(factor=2)");
        return false;
    }
    if (given)
        call_pair(c, P_resize_size, size);
    for (int i = 0; i < 2; i++) {
        double scaled = given ? (double)size[i]
                              : floor((double)t.dim[1 + i] * factor->number);
        if (!(scaled >= 1 && scaled <= INT32_MAX)) {
            report(e->diags, D_out_of_range, c->at,
                   "resize would leave %g rows or columns", scaled);
            return false;
        }
        size[i] = (int64_t)scaled;
    }
    return true;
}

Value lower_resize(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_resize_x);
    int64_t size[2];
    if (!expect_rank(e, c, x, 4) ||
        !read_size(e, c, *node_type(e, x->node), size))
        return value_poison();
    NodeId in = as_float(e, x->node);
    const char *mode = call_arg(c, P_resize_mode)->text;
    Attr attr[] = {attr_text(ATTR_mode, mode), attr_ints(ATTR_size, 2, size)};
    NodeId y = add_checked(e, c,
                           (Node){.op = OP_resize,
                                  .num_args = 1,
                                  .arg = &in,
                                  .num_attrs = 2,
                                  .attr = attr});
    if (y != NO_NODE && e->phase == PHASE_INPUT)
        transform_add(e, c, x->node, y,
                      (Transform){.kind = TRANSFORM_RESIZE, .mode = mode});
    return value_tensor(y, c->at);
}
