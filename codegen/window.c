// Windows: what an element computes from several of its operand, in loops of
// its own: pools, and gradients that a pixel collects from all that it is part
// of.

#include "codegen/emit.h"

#include <string.h>

// ---- pools ----

typedef struct {
    int64_t rows, columns, stride[2], pad[2];
    bool disjoint; // windows neither overlap nor leave gaps
    bool covers;   // no row or column is left over behind the last of them
    bool leaves;   // some windows have places outside of the image
} Pool;

// `image` is the larger tensor, `pooled` has an element for each window.
static Pool pool_of(const Node *d, Type image, Type pooled) {
    Pool w = {
        node_ints(d, ATTR_window, 0, 1),
        node_ints(d, ATTR_window, 1, 1),
        {node_ints(d, ATTR_stride, 0, 1), node_ints(d, ATTR_stride, 1, 1)},
        {node_ints(d, ATTR_pad, 0, 0), node_ints(d, ATTR_pad, 2, 0)},
        false,
        pooled.dim[1] * node_ints(d, ATTR_stride, 0, 1) >= image.dim[1] &&
            pooled.dim[2] * node_ints(d, ATTR_stride, 1, 1) >= image.dim[2],
        false};
    bool pads = w.pad[0] != 0 || w.pad[1] != 0;
    w.disjoint = w.rows == w.stride[0] && w.columns == w.stride[1] && !pads;
    w.leaves = pads ||
               (pooled.dim[1] - 1) * w.stride[0] + w.rows > image.dim[1] ||
               (pooled.dim[2] - 1) * w.stride[1] + w.columns > image.dim[2];
    return w;
}

// What an average takes an element of a window times.
static const char *share_of(Emit *e, Pool w) {
    return scale_text(e, 1.0 / (double)(w.rows * w.columns));
}

static const char *axis_in_window(Emit *e, Scope *s, const char *stem,
                                  const char *index, int64_t stride,
                                  const char *offset, int64_t pad) {
    const char *value = arena_format(e->a, "%s * " SIZE " + %s", index,
                                     (long long)stride, offset);
    if (pad)
        value = arena_format(e->a, "%s - %lld", value, (long long)pad);
    return index_new(e, s, stem, value);
}

// The other pool over the same windows, computed in the same loop, or NO_NODE.
static NodeId pool_twin(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    Op want = d->op == OP_max_pool ? OP_max_pool_index : OP_max_pool;
    for (NodeId m = e->group->first; m <= e->group->last; m++) {
        const Node *other = &e->g->node[m];
        if (other->op != want || other->arg[0] != d->arg[0])
            continue;
        bool same = true;
        for (int i = 0; i < 4; i++)
            same &= node_ints(d, ATTR_window, i & 1, 0) ==
                        node_ints(other, ATTR_window, i & 1, 0) &&
                    node_ints(d, ATTR_stride, i & 1, 0) ==
                        node_ints(other, ATTR_stride, i & 1, 0) &&
                    node_ints(d, ATTR_pad, i, 0) ==
                        node_ints(other, ATTR_pad, i, 0);
        if (same)
            return m;
    }
    return NO_NODE;
}

// Opens loops over the rows and columns of a window, r1 and q1 for number 1.
static Scope *loops_open(Emit *e, Scope *s, Pool w, const char *lanes,
                         int number) {
    Scope *inner = block_open(e, s, lanes, 2);
    text_line(&inner->before, "for (int r%d = 0; r%d < " SIZE "; r%d++)",
              number, number, (long long)w.rows, number);
    inner->before.indent++;
    text_line(&inner->before, "for (int q%d = 0; q%d < " SIZE "; q%d++) {",
              number, number, (long long)w.columns, number);
    inner->before.indent++;
    return inner;
}

// Opens the loops over a window of `image` for the window at p.
static Scope *window_open(Emit *e, Scope *s, Pool w, Place p, Type image,
                          Place *inner_place) {
    const char *r = arena_format(e->a, "r%d", ++e->num_indices);
    const char *q = arena_format(e->a, "q%d", e->num_indices);
    Scope *inner = loops_open(e, s, w, p.lanes, e->num_indices);
    Place at = p;
    at.whole = false;
    at.index[1] =
        axis_in_window(e, inner, "h", p.index[1], w.stride[0], r, w.pad[0]);
    at.index[2] =
        axis_in_window(e, inner, "w", p.index[2], w.stride[1], q, w.pad[1]);
    at.dim[1] = image.dim[1];
    at.dim[2] = image.dim[2];
    if (w.leaves)
        text_line(&inner->before,
                  "if (%s < 0 || %s >= %lld || %s < 0 || %s >= %lld) continue;",
                  at.index[1], at.index[1], (long long)image.dim[1],
                  at.index[2], at.index[2], (long long)image.dim[2]);
    *inner_place = at;
    return inner;
}

// Closes two loops, of which the inner one has braces.
static void window_close(Text *t, Scope *inner) {
    scope_close(inner, t);
    t->indent++;
    text_line(t, "}");
    t->indent--;
}

// Statements over lanes, or over the only element.
static Text *lane_text(Scope *s, Place p) {
    return p.lanes != NULL ? &s->lanes : &s->before;
}

static const char *element(Emit *e, const char *name, Place p) {
    return p.lanes != NULL ? arena_format(e->a, "%s[k]", name) : name;
}

// A variable or array with a starting value.
static const char *running(Emit *e, Scope *s, NodeId n, Place p,
                           const char *first) {
    const char *type = held_type(e->g->node[n].type->dtype);
    const char *name = value_name(e, "v", n);
    if (p.lanes == NULL) {
        text_line(&s->before, "%s %s = %s;", type, name, first);
    } else {
        text_line(&s->before, "%s %s[%s];", type, name, p.lanes);
        text_line(&s->before, "LANES_DO(k, %s) %s[k] = %s;", p.lanes, name,
                  first);
    }
    value_define(e, s, n, p, p.lanes ? HELD_ARRAY : HELD_ONCE, name);
    return element(e, name, p);
}

// The first row or column of a window that is inside of the image.
static const char *first_inside(Emit *e, const char *index, int64_t stride,
                                int64_t pad) {
    return pad == 0 ? "0"
                    : arena_format(e->a, "clamp(%lld - %s * %lld, %lld)",
                                   (long long)pad, index, (long long)stride,
                                   (long long)pad + 1);
}

// What a place is before any is compared: where all are -INF none is larger.
static const char *first_place(Emit *e, Pool w, Place p) {
    const char *r = first_inside(e, p.index[1], w.stride[0], w.pad[0]);
    const char *q = first_inside(e, p.index[2], w.stride[1], w.pad[1]);
    return w.pad[0] == 0 ? q
                         : arena_format(e->a, "%s * " SIZE " + %s", r,
                                        (long long)w.columns, q);
}

static void max_pool(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type image = *e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, *d->type);
    NodeId twin = pool_twin(e, n);
    NodeId value = d->op == OP_max_pool ? n : twin;
    NodeId index = d->op == OP_max_pool ? twin : n;
    bool real = dtype_float(image.dtype);
    const char *most, *where = NULL;
    if (value != NO_NODE) {
        most = running(e, s, value, p, real ? "-INF" : "INT_LEAST");
    } else { // the index alone: the largest value is kept all the same
        const char *name = arena_format(e->a, "m%d", ++e->num_indices);
        text_line(&s->before, "%s %s%s%s%s;", held_type(image.dtype), name,
                  p.lanes ? "[" : "", p.lanes ? p.lanes : "",
                  p.lanes ? "]" : "");
        most = element(e, name, p);
        if (p.lanes)
            text_line(&s->before, "LANES_DO(k, %s) %s = %s;", p.lanes, most,
                      real ? "-INF" : "INT_LEAST");
        else
            text_line(&s->before, "%s = %s;", most,
                      real ? "-INF" : "INT_LEAST");
    }
    if (index != NO_NODE)
        where = running(e, s, index, p, first_place(e, w, p));
    Place at;
    Scope *inner = window_open(e, s, w, p, image, &at);
    int loop = e->num_indices - 2; // r and q of window_open
    const char *x = value_at(e, inner, d->arg[0], at);
    Text *t = lane_text(inner, p);
    // A value that is not a number wins, so that divergence shows.  Each
    // choice has one comparison, or gcc would not vectorise it.
    const char *here = arena_format(e->a, "r%d * " SIZE " + q%d", loop,
                                    (long long)w.columns, loop);
    for (int i = 0; i < 2; i++) {
        const char *wins = i == 0 ? arena_format(e->a, "%s > %s", x, most)
                                  : arena_format(e->a, "%s != %s", x, x);
        if (where != NULL)
            text_line(t, "%s = %s ? %s : %s;", where, wins, here, where);
        text_line(t, "%s = %s ? %s : %s;", most, wins, x, most);
    }
    window_close(&s->before, inner);
}

static void avg_pool(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type image = *e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, *d->type);
    const char *sum = running(e, s, n, p, "0.0f");
    Place at;
    Scope *inner = window_open(e, s, w, p, image, &at);
    const char *x = value_at(e, inner, d->arg[0], at);
    text_line(lane_text(inner, p), "%s += %s * %s;", sum, x, share_of(e, w));
    window_close(&s->before, inner);
}

// The gradient of a pool, gathered: an element of the image collects from each
// window that contains it.
static const char *pool_grad_term(Emit *e, Scope *s, const Node *d, Pool w,
                                  Place at, const char *place) {
    NodeId dy = d->arg[d->num_args - 1];
    const char *gradient = value_at(e, s, dy, at);
    if (d->op == OP_avg_pool_grad)
        return arena_format(e->a, "%s * %s", gradient, share_of(e, w));
    const char *index = value_at(e, s, d->arg[0], at);
    return arena_format(e->a, "%s == %s ? %s : 0", index, place, gradient);
}

// Row h1 or column w1 of the windows, or the last one for what is left over.
static const char *bounded(Emit *e, Pool w, const char *stem, int number,
                           int64_t count) {
    return arena_format(e->a, w.covers ? "%s%d" : "clamp(%s%d, %lld)", stem,
                        number, (long long)count);
}

// The gradient of a pool: n at p, and the pooled gradient whose windows hold p.
typedef struct {
    NodeId n;
    const Node *node;
    Type pooled;
    Pool window;
    Place p, at;
} Unpooled;

static Unpooled unpooled(Emit *e, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type pooled = *e->g->node[d->arg[0]].type;
    Place at = p;
    at.whole = false;
    at.dim[1] = pooled.dim[1];
    at.dim[2] = pooled.dim[2];
    return (Unpooled){n, d, pooled, pool_of(d, *d->type, pooled), p, at};
}

// One window holds a pixel, or none.
static const char *disjoint_grad(Emit *e, Scope *s, Unpooled u) {
    Pool w = u.window;
    Place p = u.p;
    int i = ++e->num_indices;
    text_line(&s->before, "const int h%d = %s / %lld;", i, p.index[1],
              (long long)w.rows);
    text_line(&s->before, "const int w%d = %s / %lld;", i, p.index[2],
              (long long)w.columns);
    u.at.index[1] = bounded(e, w, "h", i, u.at.dim[1]);
    u.at.index[2] = bounded(e, w, "w", i, u.at.dim[2]);
    const char *place = arena_format(e->a, "place%d", i);
    if (u.node->op == OP_max_pool_grad)
        text_line(&s->before,
                  "const int %s = (%s - h%d * " SIZE ") * " SIZE
                  " + %s - w%d * " SIZE ";",
                  place, p.index[1], i, (long long)w.rows, (long long)w.columns,
                  p.index[2], i, (long long)w.columns);
    const char *term = pool_grad_term(e, s, u.node, w, u.at, place);
    if (!w.covers)
        term = arena_format(e->a, "h%d < " SIZE " && w%d < " SIZE " ? (%s) : 0",
                            i, (long long)u.at.dim[1], i,
                            (long long)u.at.dim[2], term);
    return value_set(e, s, u.n, p, term);
}

// How many windows hold a pixel at most, along each axis.
static Pool windows_near(Pool w) {
    w.rows = (w.rows + w.stride[0] - 1) / w.stride[0];
    w.columns = (w.columns + w.stride[1] - 1) / w.stride[1];
    return w;
}

// Which window it is, from the last that may hold the pixel backwards, and the
// pixel's place in it; goes on to the next where there is no such window.
static void window_holds(Text *t, const Unpooled *u, int i) {
    const Pool *w = &u->window;
    text_line(t, "const int h%d = (%s + %lld) / %lld - r%d;", i, u->p.index[1],
              (long long)w->pad[0], (long long)w->stride[0], i);
    text_line(t, "const int w%d = (%s + %lld) / %lld - q%d;", i, u->p.index[2],
              (long long)w->pad[1], (long long)w->stride[1], i);
    text_line(t, "const int a%d = %s + %lld - h%d * %lld;", i, u->p.index[1],
              (long long)w->pad[0], i, (long long)w->stride[0]);
    text_line(t, "const int b%d = %s + %lld - w%d * %lld;", i, u->p.index[2],
              (long long)w->pad[1], i, (long long)w->stride[1]);
    text_line(t,
              "if (h%d < 0 || h%d >= %lld || a%d >= %lld || w%d < 0 || w%d >= "
              "%lld || b%d >= %lld) continue;",
              i, i, (long long)u->pooled.dim[1], i, (long long)w->rows, i, i,
              (long long)u->pooled.dim[2], i, (long long)w->columns);
}

static const char *overlapping_grad(Emit *e, Scope *s, Unpooled u) {
    const char *sum = running(e, s, u.n, u.p, "0.0f");
    int i = ++e->num_indices;
    Scope *inner = loops_open(e, s, windows_near(u.window), u.p.lanes, i);
    window_holds(&inner->before, &u, i);
    u.at.index[1] = arena_format(e->a, "h%d", i);
    u.at.index[2] = arena_format(e->a, "w%d", i);
    const char *place = arena_format(e->a, "a%d * " SIZE " + b%d", i,
                                     (long long)u.window.columns, i);
    const char *term = pool_grad_term(e, inner, u.node, u.window, u.at, place);
    text_line(lane_text(inner, u.p), "%s += %s;", sum, term);
    window_close(&s->before, inner);
    return sum;
}

static const char *pool_grad(Emit *e, Scope *s, NodeId n, Place p) {
    Unpooled u = unpooled(e, n, p);
    return u.window.disjoint ? disjoint_grad(e, s, u)
                             : overlapping_grad(e, s, u);
}

// The value of n at p, kept for scopes behind the lane loop of s.
static const char *keep(Emit *e, Scope *s, NodeId n, Place p,
                        const char *stem) {
    if (is_uniform(*e->g->node[n].type, p))
        return value_at(e, s, n, p);
    const char *name = value_name(e, stem, n);
    const char *value = value_at(e, s, n, p);
    text_line(&s->before, "%s %s[%s];", held_type(e->g->node[n].type->dtype),
              name, p.lanes);
    text_line(&s->lanes, "%s[k] = %s;", name, value);
    return arena_format(e->a, "%s[k]", name);
}

// Opens a loop over the rows or columns of the window with this index; the last
// window has those that are left over.
static void unfold_open(Scope *s, const char *name, const char *index,
                        int64_t window, int64_t count, int64_t size,
                        const char *end) {
    long long w = (long long)window;
    int64_t rest = size - count * window;
    if (rest > 0)
        text_line(&s->before,
                  "for (int %s = 0; %s < (%s < " SIZE
                  " ? %lld : %lld); %s++)%s",
                  name, name, index, (long long)count - 1, w,
                  w + (long long)rest, name, end);
    else
        text_line(&s->before, "for (int %s = 0; %s < " SIZE "; %s++)%s", name,
                  name, w, name, end);
    s->before.indent++;
}

void emit_unfolded(Emit *e, Scope *s, NodeId n, Place p) {
    NodeId pool = pool_unfolded(e->g, n);
    const Node *d = &e->g->node[pool];
    NodeId dy = d->arg[d->num_args - 1];
    Pool w = pool_of(d, *d->type, *e->g->node[dy].type);
    const char *term = keep(e, s, dy, p, "dy");
    int i = ++e->num_indices;
    const char *r = arena_format(e->a, "r%d", i);
    const char *q = arena_format(e->a, "q%d", i);
    if (d->op == OP_max_pool_grad)
        term = arena_format(e->a, "%s == %s * " SIZE " + %s ? %s : 0",
                            keep(e, s, d->arg[0], p, "at"), r,
                            (long long)w.columns, q, term);
    else
        term = arena_format(e->a, "%s * %s", term, share_of(e, w));
    if (!w.covers)
        term =
            arena_format(e->a, "%s < " SIZE " && %s < " SIZE " ? (%s) : 0", r,
                         (long long)w.rows, q, (long long)w.columns, term);
    Scope *inner = block_open(e, s, p.lanes, 2);
    unfold_open(inner, r, p.index[1], w.rows, p.dim[1], d->type->dim[1], "");
    unfold_open(inner, q, p.index[2], w.columns, p.dim[2], d->type->dim[2],
                " {");
    Place at = p;
    at.whole = false;
    at.dim[1] = d->type->dim[1];
    at.dim[2] = d->type->dim[2];
    at.index[1] = axis_in_window(e, inner, "h", p.index[1], w.rows, r, 0);
    at.index[2] = axis_in_window(e, inner, "w", p.index[2], w.columns, q, 0);
    const char *value = value_set(e, inner, pool, at, term);
    emit_place(e, inner, n, at, n == pool ? value : value_at(e, inner, n, at));
    window_close(&s->after, inner);
}

// ---- what was resized ----

// Opens a loop over the rows or columns of the result, of which there are `to`,
// that pixel `index` of `from` may be part of.
static void blend_open(Scope *inner, bool nearest, const char *name,
                       const char *index, int64_t from, int64_t to,
                       const char *end) {
    long long f = (long long)from, t = (long long)to;
    if (nearest)
        text_line(&inner->before,
                  "for (int %s = (%s * " SIZE " + " SIZE ") / %lld; "
                  "%s < ((%s + 1) * " SIZE " + " SIZE ") / %lld; %s++)%s",
                  name, index, t, f - 1, f, name, index, t, f - 1, f, name,
                  end);
    else
        text_line(&inner->before,
                  "for (int %s = clamp(((2 * %s - 1) * " SIZE
                  " - %lld) / %lld, %lld); %s <= clamp(((2 * %s + 3) * " SIZE
                  " + " SIZE ") / %lld, %lld); %s++)%s",
                  name, index, t, f, 2 * f, t, name, index, t, f - 1, 2 * f, t,
                  name, end);
    inner->before.indent++;
}

// How much of row or column `name` of the result is pixel `index`.
static const char *blend_share(Emit *e, const char *name, const char *index,
                               int64_t from, int64_t to) {
    return arena_format(e->a, "blend_share(%s, %s, %s, %lld)", name, index,
                        scale_text(e, (double)from / (double)to),
                        (long long)from);
}

static bool is_nearest(const Node *d) {
    return strcmp(node_text(d, ATTR_mode), "nearest") == 0;
}

static void resize_grad(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type image = *d->type, dy = *e->g->node[d->arg[0]].type;
    bool nearest = is_nearest(d);
    const char *sum = running(e, s, n, p, "0.0f");
    int i = ++e->num_indices;
    const char *r = arena_format(e->a, "r%d", i);
    const char *q = arena_format(e->a, "q%d", i);
    Scope *inner = block_open(e, s, p.lanes, 2);
    blend_open(inner, nearest, r, p.index[1], image.dim[1], dy.dim[1], "");
    blend_open(inner, nearest, q, p.index[2], image.dim[2], dy.dim[2], " {");
    const char *share = "";
    if (!nearest) {
        text_line(&inner->before, "const float share%d = %s", i,
                  blend_share(e, r, p.index[1], image.dim[1], dy.dim[1]));
        text_line(&inner->before, "    * %s;",
                  blend_share(e, q, p.index[2], image.dim[2], dy.dim[2]));
        text_line(&inner->before, "if (share%d == 0.0f) continue;", i);
        share = arena_format(e->a, " * share%d", i);
    }
    Place at = p;
    at.whole = false;
    at.dim[1] = dy.dim[1];
    at.dim[2] = dy.dim[2];
    at.index[1] = r;
    at.index[2] = q;
    const char *x = value_at(e, inner, d->arg[0], at);
    text_line(lane_text(inner, p), "%s += %s%s;", sum, x, share);
    window_close(&s->before, inner);
}

bool window_skips(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (!(op_info[d->op].facts & WINDOW))
        return false;
    Type first = *g->node[d->arg[0]].type;
    switch (d->op) {
    case OP_max_pool:
    case OP_max_pool_index:
    case OP_avg_pool:
        return pool_of(d, first, *d->type).leaves;
    case OP_resize_grad:
        return !is_nearest(d);
    default:
        return !pool_of(d, *d->type, first).disjoint;
    }
}

const char *window_value(Emit *e, Scope *s, NodeId n, Place p) {
    switch (e->g->node[n].op) {
    case OP_max_pool:
    case OP_max_pool_index:
        max_pool(e, s, n, p);
        break;
    case OP_avg_pool:
        avg_pool(e, s, n, p);
        break;
    case OP_resize_grad:
        resize_grad(e, s, n, p);
        break;
    default:
        return pool_grad(e, s, n, p);
    }
    return value_at(e, s, n, p); // defined now
}
