// Windows: values with loops over a window of the operand: pools, and gradients
// that a pixel gathers from the windows that contain it.

#include "codegen/emit.h"

#include "base/round_up.h"

#include <string.h>

// ---- pools ----

typedef struct {
    int64_t rows, columns, stride[2], pad[2];
    bool disjoint; // windows do not overlap, and have no pads
    bool covers_image; // the windows cover all rows and columns
    bool crosses_edge; // some windows extend past the image
} Pool;

// `image` is the larger tensor, `pooled` has an element for each window.
static Pool pool_of(const Node *d, Type image, Type pooled) {
    Pool w = {
        .rows = node_ints(d, ATTR_window, 0, 1),
        .columns = node_ints(d, ATTR_window, 1, 1),
        .stride = {node_ints(d, ATTR_stride, 0, 1),
                   node_ints(d, ATTR_stride, 1, 1)},
        .pad = {node_ints(d, ATTR_pad, 0, 0), node_ints(d, ATTR_pad, 2, 0)}};
    bool pads = w.pad[0] != 0 || w.pad[1] != 0;
    w.disjoint = w.rows <= w.stride[0] && w.columns <= w.stride[1] && !pads;
    w.covers_image = pooled.dim[1] * w.stride[0] >= image.dim[1] &&
                     pooled.dim[2] * w.stride[1] >= image.dim[2];
    w.crosses_edge =
        pads || (pooled.dim[1] - 1) * w.stride[0] + w.rows > image.dim[1] ||
        (pooled.dim[2] - 1) * w.stride[1] + w.columns > image.dim[2];
    return w;
}

// The weight of a window's element in an average.
static const Expr *share_of(Emit *e, Pool w) {
    return x_constant(e->a, 1.0 / (double)(w.rows * w.columns));
}

static const Expr *axis_in_window(Emit *e, Scope *s, const char *stem,
                                  const Expr *index, int64_t stride,
                                  const Expr *offset, int64_t pad) {
    const Expr *value =
        EXPR(e, "$ * $ + $", index, x_size(e->a, stride), offset);
    if (pad)
        value = EXPR(e, "$ - $", value, x_number(e->a, pad));
    return index_new(e, s, stem, value);
}

// Another pool over the same windows, fused into the same loop, or NO_NODE.
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

// A window's loop variables, and the scope of their body.
typedef struct {
    Scope *inner;
    const Expr *r, *q; // row and column in the window
    int number;        // suffix of the window's names
} Window;

static const Expr *numbered(Emit *e, const char *stem, int number) {
    return x_name(e->a, arena_format(e->a, "%s%d", stem, number));
}

static Window window_new(Emit *e, Scope *s, const Expr *lanes) {
    int number = ++e->num_indices;
    return (Window){scope_open(e, s, lanes), numbered(e, "r", number),
                    numbered(e, "q", number), number};
}

enum { ROW = 8 }; // columns of a window that may be loaded at once

static bool has_loops(const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        if (s->kind == S_FOR ||
            (s->kind == S_REPEAT && strcmp(s->value->name, "UNROLLED") == 0) ||
            has_loops(&s->body))
            return true;
    return false;
}

// Whether statements have functions, such as exp, of each row.
static bool has_functions(const Emit *e, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        const Node *d = s->node != NO_NODE ? &e->g->node[s->node] : NULL;
        if ((d != NULL && (op_info[d->op].traits & MATH) &&
             space_rows(d->type) > 1) ||
            has_functions(e, &s->body))
            return true;
    }
    return false;
}

// Appends the loops over the window to b.  Few elements are all loaded before
// the first is used, and so is a row of more, unless the body skips some, has
// another loop or is long.
static void loops_close(Emit *e, Stmts *b, Window w, Pool pool, bool skips) {
    enum { FEW = 4 };
    const Expr *rows = x_size(e->a, pool.rows);
    const Expr *columns = x_size(e->a, pool.columns);
    const Stmts *body = scope_close(e, w.inner);
    int64_t most = has_loops(body) ? 0 : has_functions(e, body) ? FEW : ROW;
    if (!skips && pool.rows * pool.columns <= FEW)
        CODE(e, b, NO_NODE, "UNROLLED($, $) UNROLLED($, $) { ~ }", w.r, rows,
             w.q, columns, body);
    else if (!skips && pool.columns <= most)
        CODE(e, b, NO_NODE, "for (int $ = 0; $ < $; $++) UNROLLED($, $) { ~ }",
             w.r, w.r, rows, w.r, w.q, columns, body);
    else
        CODE(e, b, NO_NODE,
             "for (int $ = 0; $ < $; $++) for (int $ = 0; $ < $; $++) { ~ }",
             w.r, w.r, rows, w.r, w.q, w.q, columns, w.q, body);
}

// The index expression in `image` of an element of p's window, which may be
// past its edge.
static Index pixel_index(Emit *e, const Window *v, Pool w, Index p,
                         Type image) {
    Index at = p;
    at.is_identity = false;
    at.index[1] = axis_in_window(e, v->inner, "h", p.index[1], w.stride[0],
                                 v->r, w.pad[0]);
    at.index[2] = axis_in_window(e, v->inner, "w", p.index[2], w.stride[1],
                                 v->q, w.pad[1]);
    at.dim[1] = image.dim[1];
    at.dim[2] = image.dim[2];
    return at;
}

// Whether a pixel is past the edge of the image.
static const Expr *is_outside(Emit *e, Index at) {
    return EXPR(e, "$ < 0 || $ >= $ || $ < 0 || $ >= $", at.index[1],
                at.index[1], x_number(e->a, at.dim[1]), at.index[2],
                at.index[2], x_number(e->a, at.dim[2]));
}

// On a GPU moves a pixel past the edge onto the edge, which is in the same
// window, and returns its row or column in the window, which is r or q.
static const Expr *clamp_to_image(Emit *e, const Window *v, Index *at, int axis,
                                  const Expr *window, int64_t stride,
                                  int64_t pad) {
    const Expr *inside =
        index_new(e, v->inner, axis == 1 ? "h" : "w",
                  EXPR(e, "HOST_GPU($, clamp_index($, $))", at->index[axis],
                       at->index[axis], x_number(e->a, at->dim[axis])));
    at->index[axis] = inside;
    return index_new(e, v->inner, axis == 1 ? "r" : "q",
                     EXPR(e, "HOST_GPU($, $ - $ * $ + $)",
                          axis == 1 ? v->r : v->q, inside, window,
                          x_size(e->a, stride), x_number(e->a, pad)));
}

// Statements over lanes, or over the only element.
static Stmts *lane_stmts(Scope *s, Index p) {
    return p.lanes != NULL ? &s->lanes : &s->before;
}

static const Expr *element(Emit *e, const Expr *name, Index p) {
    return p.lanes != NULL ? lane_of(e, name) : name;
}

// Declares a variable or an array of lanes, with an initial value.
static void start(Emit *e, Scope *s, NodeId n, Index p, const char *type,
                  const Expr *name, const Expr *first) {
    if (p.lanes == NULL)
        CODE(e, &s->before, n, arena_format(e->a, "%s $ = $;", type), name,
             first);
    else
        CODE(e, &s->before, n,
             arena_format(e->a, "%s $[$]; LANES_DO(k, $) $[k] = $;", type),
             name, p.lanes, p.lanes, name, first);
}

// The value of n, which a window's loops accumulate.
static const Expr *running(Emit *e, Scope *s, NodeId n, Index p,
                           const Expr *first) {
    const Expr *name = value_name(e, "v", n);
    start(e, s, n, p, held_type(e->g->node[n].type->dtype), name, first);
    value_define(e, s, n, p, p.lanes ? HELD_ARRAY : HELD_ONCE, name);
    return element(e, name, p);
}

// The first row or column of a window that is inside of the image.
static const Expr *first_inside(Emit *e, const Expr *index, int64_t stride,
                                int64_t pad) {
    return pad == 0
               ? e->zero
               : EXPR(e, "clamp_index($ - $ * $, $)", x_number(e->a, pad),
                      index, x_number(e->a, stride), x_number(e->a, pad + 1));
}

// Initial index of a maximum: it stays if all elements are -INF.
static const Expr *first_index(Emit *e, Pool w, Index p) {
    const Expr *r = first_inside(e, p.index[1], w.stride[0], w.pad[0]);
    const Expr *q = first_inside(e, p.index[2], w.stride[1], w.pad[1]);
    return w.pad[0] == 0 ? q
                         : EXPR(e, "$ * $ + $", r, x_size(e->a, w.columns), q);
}

static void max_pool(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Type image = *e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, *d->type);
    NodeId twin = pool_twin(e, n);
    NodeId value = d->op == OP_max_pool ? n : twin;
    NodeId index = d->op == OP_max_pool ? twin : n;
    bool real = dtype_float(image.dtype);
    const Expr *least = EXPR(e, real ? "-INF" : "INT_LEAST");
    const Expr *most, *where = NULL;
    if (value != NO_NODE) {
        most = running(e, s, value, p, least);
    } else { // the index only: the loop still needs the maximum
        const Expr *name = index_name(e, "m");
        start(e, s, n, p, held_type(image.dtype), name, least);
        most = element(e, name, p);
    }
    if (index != NO_NODE)
        where = running(e, s, index, p, first_index(e, w, p));
    Window v = window_new(e, s, p.lanes);
    const Expr *r = v.r, *q = v.q;
    Index at = pixel_index(e, &v, w, p, image);
    bool clamps = w.crosses_edge && w.columns <= ROW;
    if (w.crosses_edge)
        CODE(e, &v.inner->before, NO_NODE,
             clamps ? "if (HOST_GPU($, 0)) continue;" : "if ($) continue;",
             is_outside(e, at));
    if (clamps) {
        r = clamp_to_image(e, &v, &at, 1, p.index[1], w.stride[0], w.pad[0]);
        q = clamp_to_image(e, &v, &at, 2, p.index[2], w.stride[1], w.pad[1]);
    }
    const Expr *x = value_at(e, v.inner, d->arg[0], at);
    Stmts *b = lane_stmts(v.inner, p);
    // A NaN wins, so divergence shows.  Each select has one comparison, as gcc
    // would not vectorize two.  On a GPU, which unrolls a window's row, the
    // first element is compared with nothing.
    const Expr *here = EXPR(e, "$ * $ + $", r, x_size(e->a, w.columns), q);
    for (int i = 0; i < 2; i++) {
        const Expr *wins =
            i == 1 ? EXPR(e, "$ != $", x, x)
                   : EXPR(e, "HOST_GPU($ > $, ($ + $ == 0) | ($ > $))", x, most,
                          v.r, v.q, x, most);
        if (where != NULL)
            CODE(e, b, index, "$ = $ ? $ : $;", where, wins, here, where);
        CODE(e, b, value, "$ = $ ? $ : $;", most, wins, x, most);
    }
    loops_close(e, &s->before, v, w, w.crosses_edge && !clamps);
}

static void avg_pool(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Type image = *e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, *d->type);
    const Expr *sum = running(e, s, n, p, literal(e->a, F32, 0));
    Window v = window_new(e, s, p.lanes);
    Index at = pixel_index(e, &v, w, p, image);
    if (w.crosses_edge)
        CODE(e, &v.inner->before, NO_NODE, "if ($) continue;",
             is_outside(e, at));
    const Expr *x = value_at(e, v.inner, d->arg[0], at);
    CODE(e, lane_stmts(v.inner, p), n, "$ += $ * $;", sum, x, share_of(e, w));
    loops_close(e, &s->before, v, w, w.crosses_edge);
}

// The gradient of a pool as a gather: an element of the image sums over the
// windows that contain it.
static const Expr *pool_grad_term(Emit *e, Scope *s, const Node *d, Pool w,
                                  Index at, const Expr *tap) {
    NodeId dy = d->arg[d->num_args - 1];
    const Expr *gradient = value_at(e, s, dy, at);
    if (d->op == OP_avg_pool_grad)
        return EXPR(e, "$ * $", gradient, share_of(e, w));
    const Expr *index = value_at(e, s, d->arg[0], at);
    return EXPR(e, "$ == $ ? $ : 0", index, tap, gradient);
}

// Row h1 or column w1 of the windows, clamped to the last window.
static const Expr *bounded(Emit *e, Pool w, const Expr *name, int64_t count) {
    return w.covers_image
               ? name
               : EXPR(e, "clamp_index($, $)", name, x_number(e->a, count));
}

// The gradient of a pool: n at p, and the pooled gradient of p's windows.
typedef struct {
    NodeId n;
    const Node *node;
    Type pooled;
    Pool window;
    Index p, at;
} Unpooled;

static Unpooled unpooled(Emit *e, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Type pooled = *e->g->node[d->arg[0]].type;
    Index at = p;
    at.is_identity = false;
    at.dim[1] = pooled.dim[1];
    at.dim[2] = pooled.dim[2];
    return (Unpooled){n, d, pooled, pool_of(d, *d->type, pooled), p, at};
}

// At most one window contains a pixel.
static const Expr *disjoint_grad(Emit *e, Scope *s, Unpooled u) {
    Pool w = u.window;
    Index p = u.p;
    int i = ++e->num_indices;
    const Expr *h = numbered(e, "h", i), *c = numbered(e, "w", i);
    const Expr *tap = numbered(e, "tap", i);
    const Expr *rows = x_size(e->a, w.stride[0]);
    const Expr *columns = x_size(e->a, w.stride[1]);
    CODE(e, &s->before, NO_NODE, "const int $ = $ / $; const int $ = $ / $;", h,
         p.index[1], x_number(e->a, w.stride[0]), c, p.index[2],
         x_number(e->a, w.stride[1]));
    u.at.index[1] = bounded(e, w, h, u.at.dim[1]);
    u.at.index[2] = bounded(e, w, c, u.at.dim[2]);
    if (u.node->op == OP_max_pool_grad)
        CODE(e, &s->before, NO_NODE,
             "const int $ = ($ - $ * $) * $ + $ - $ * $;", tap, p.index[1], h,
             rows, x_size(e->a, w.columns), p.index[2], c, columns);
    const Expr *term = pool_grad_term(e, s, u.node, w, u.at, tap);
    if (!w.covers_image)
        term = EXPR(e, "$ < $ && $ < $ ? $ : 0", h, x_size(e->a, u.at.dim[1]),
                    c, x_size(e->a, u.at.dim[2]), term);
    if (w.rows < w.stride[0] || w.columns < w.stride[1])
        term = EXPR(e, "$ - $ * $ < $ && $ - $ * $ < $ ? $ : 0", p.index[1], h,
                    rows, x_size(e->a, w.rows), p.index[2], c, columns,
                    x_size(e->a, w.columns), term);
    return value_set(e, s, u.n, p, term);
}

// The most windows that contain a pixel, along each axis.
static Pool windows_near(Pool w) {
    w.rows = divide_up(w.rows, w.stride[0]);
    w.columns = divide_up(w.columns, w.stride[1]);
    return w;
}

// Along an axis, the number of a window that may contain the pixel, counted
// back from the last, and the pixel's index in it.
static void declare_window(Emit *e, Scope *s, const Unpooled *u, int axis,
                           const Expr *window, const Expr *tap,
                           const Expr *loop) {
    const Pool *w = &u->window;
    const Expr *index = u->p.index[axis + 1];
    const Expr *pad = x_number(e->a, w->pad[axis]);
    const Expr *stride = x_number(e->a, w->stride[axis]);
    CODE(e, &s->before, NO_NODE, "const int $ = ($ + $) / $ - $;", window,
         index, pad, stride, loop);
    CODE(e, &s->before, NO_NODE, "const int $ = $ + $ - $ * $;", tap, index,
         pad, window, stride);
}

static const Expr *overlapping_grad(Emit *e, Scope *s, Unpooled u) {
    const Expr *sum = running(e, s, u.n, u.p, literal(e->a, F32, 0));
    Window v = window_new(e, s, u.p.lanes);
    const Pool *w = &u.window;
    const Expr *h = numbered(e, "h", v.number), *c = numbered(e, "w", v.number);
    const Expr *a = numbered(e, "a", v.number), *b = numbered(e, "b", v.number);
    declare_window(e, v.inner, &u, 0, h, a, v.r);
    declare_window(e, v.inner, &u, 1, c, b, v.q);
    // This window may not exist.
    CODE(e, &v.inner->before, NO_NODE,
         "if ($ < 0 || $ >= $ || $ >= $ || $ < 0 || $ >= $ || $ >= $)"
         "    continue;",
         h, h, x_number(e->a, u.pooled.dim[1]), a, x_number(e->a, w->rows), c,
         c, x_number(e->a, u.pooled.dim[2]), b, x_number(e->a, w->columns));
    u.at.index[1] = h;
    u.at.index[2] = c;
    const Expr *tap = EXPR(e, "$ * $ + $", a, x_size(e->a, w->columns), b);
    const Expr *term = pool_grad_term(e, v.inner, u.node, *w, u.at, tap);
    CODE(e, lane_stmts(v.inner, u.p), u.n, "$ += $;", sum, term);
    loops_close(e, &s->before, v, windows_near(*w), true);
    return sum;
}

static const Expr *pool_grad(Emit *e, Scope *s, NodeId n, Index p) {
    Unpooled u = unpooled(e, n, p);
    return u.window.disjoint ? disjoint_grad(e, s, u)
                             : overlapping_grad(e, s, u);
}

// The value of n at p in an array, for scopes after the lane loop of s.
static const Expr *lanes_stored(Emit *e, Scope *s, NodeId n, Index p,
                                const char *stem) {
    if (is_uniform(*e->g->node[n].type, p))
        return value_at(e, s, n, p);
    const Expr *name = value_name(e, stem, n), *value = value_at(e, s, n, p);
    CODE(e, &s->before, n,
         arena_format(e->a, "%s $[$];", held_type(e->g->node[n].type->dtype)),
         name, p.lanes);
    CODE(e, &s->lanes, n, "$[k] = $;", name, value);
    return lane_of(e, name);
}

// Number of rows or columns of a window; the last one has the remainder, too.
static const Expr *window_size(Emit *e, const Expr *index, int64_t window,
                               int64_t count, int64_t size) {
    int64_t rest = size - count * window;
    return rest > 0
               ? EXPR(e, "($ < $ ? $ : $)", index, x_size(e->a, count - 1),
                      x_number(e->a, window), x_number(e->a, window + rest))
               : x_size(e->a, window);
}

void emit_window_grads(Emit *e, Scope *s, NodeId n, Index p) {
    NodeId pool = disjoint_pool_grad(e->g, n);
    const Node *d = &e->g->node[pool];
    NodeId dy = d->arg[d->num_args - 1];
    Pool w = pool_of(d, *d->type, *e->g->node[dy].type);
    const Expr *term = lanes_stored(e, s, dy, p, "dy");
    Window v = window_new(e, s, p.lanes);
    if (d->op == OP_max_pool_grad)
        term = EXPR(e, "$ == $ * $ + $ ? $ : 0",
                    lanes_stored(e, s, d->arg[0], p, "at"), v.r,
                    x_size(e->a, w.columns), v.q, term);
    else
        term = EXPR(e, "$ * $", term, share_of(e, w));
    if (!w.covers_image)
        term = EXPR(e, "$ < $ && $ < $ ? $ : 0", v.r, x_size(e->a, w.rows), v.q,
                    x_size(e->a, w.columns), term);
    Index at = p;
    at.is_identity = false;
    at.dim[1] = d->type->dim[1];
    at.dim[2] = d->type->dim[2];
    at.index[1] = axis_in_window(e, v.inner, "h", p.index[1], w.rows, v.r, 0);
    at.index[2] =
        axis_in_window(e, v.inner, "w", p.index[2], w.columns, v.q, 0);
    const Expr *value = value_set(e, v.inner, pool, at, term);
    emit_place(e, v.inner, n, at,
               n == pool ? value : value_at(e, v.inner, n, at));
    CODE(e, &s->after, NO_NODE,
         "for (int $ = 0; $ < $; $++) for (int $ = 0; $ < $; $++) { ~ }", v.r,
         v.r, window_size(e, p.index[1], w.rows, p.dim[1], d->type->dim[1]),
         v.r, v.q, v.q,
         window_size(e, p.index[2], w.columns, p.dim[2], d->type->dim[2]), v.q,
         scope_close(e, v.inner));
}

// ---- resize ----

// The result has `to` rows or columns; pixel `index` of `from` may contribute
// to some: the first, and a test for the others.
static const Expr *blend_first(Emit *e, bool nearest, const Expr *index,
                               int64_t from, int64_t to) {
    const Expr *f = x_number(e->a, from), *t = x_size(e->a, to);
    if (nearest)
        return EXPR(e, "($ * $ + $) / $", index, t, x_size(e->a, from - 1), f);
    return EXPR(e, "clamp_index(((2 * $ - 1) * $ - $) / $, $)", index, t, f,
                x_number(e->a, 2 * from), x_number(e->a, to));
}

static const Expr *blend_test(Emit *e, bool nearest, const Expr *name,
                              const Expr *index, int64_t from, int64_t to) {
    const Expr *f = x_number(e->a, from), *t = x_size(e->a, to);
    const Expr *up = x_size(e->a, from - 1);
    if (nearest)
        return EXPR(e, "$ < (($ + 1) * $ + $) / $", name, index, t, up, f);
    return EXPR(e, "$ <= clamp_index(((2 * $ + 3) * $ + $) / $, $)", name,
                index, t, up, x_number(e->a, 2 * from), x_number(e->a, to));
}

// The weight of pixel `index` in row or column `name` of the result.
static const Expr *blend_share(Emit *e, const Expr *name, const Expr *index,
                               int64_t from, int64_t to) {
    return EXPR(e, "blend_share($, $, $, $)", name, index,
                x_constant(e->a, (double)from / (double)to),
                x_number(e->a, from));
}

static bool is_nearest(const Node *d) {
    return strcmp(node_text(d, ATTR_mode), "nearest") == 0;
}

static void resize_grad(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Type image = *d->type, dy = *e->g->node[d->arg[0]].type;
    bool nearest = is_nearest(d);
    const Expr *sum = running(e, s, n, p, literal(e->a, F32, 0));
    Window v = window_new(e, s, p.lanes);
    const Expr *share = numbered(e, "share", v.number);
    if (!nearest)
        CODE(e, &v.inner->before, NO_NODE,
             "const float $ = $ * $; if ($ == 0.0f) continue;", share,
             blend_share(e, v.r, p.index[1], image.dim[1], dy.dim[1]),
             blend_share(e, v.q, p.index[2], image.dim[2], dy.dim[2]), share);
    Index at = p;
    at.is_identity = false;
    at.dim[1] = dy.dim[1];
    at.dim[2] = dy.dim[2];
    at.index[1] = v.r;
    at.index[2] = v.q;
    const Expr *x = value_at(e, v.inner, d->arg[0], at);
    if (!nearest)
        x = EXPR(e, "$ * $", x, share);
    CODE(e, lane_stmts(v.inner, p), n, "$ += $;", sum, x);
    CODE(e, &s->before, NO_NODE,
         "for (int $ = $; $; $++) for (int $ = $; $; $++) { ~ }", v.r,
         blend_first(e, nearest, p.index[1], image.dim[1], dy.dim[1]),
         blend_test(e, nearest, v.r, p.index[1], image.dim[1], dy.dim[1]), v.r,
         v.q, blend_first(e, nearest, p.index[2], image.dim[2], dy.dim[2]),
         blend_test(e, nearest, v.q, p.index[2], image.dim[2], dy.dim[2]), v.q,
         scope_close(e, v.inner));
}

bool window_skips(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    if (!(op_info[d->op].traits & WINDOW))
        return false;
    Type first = *e->g->node[d->arg[0]].type;
    switch (d->op) {
    case OP_max_pool:
    case OP_max_pool_index:
        return pool_of(d, first, *d->type).crosses_edge &&
               node_ints(d, ATTR_window, 1, 1) > ROW;
    case OP_avg_pool:
        return pool_of(d, first, *d->type).crosses_edge;
    case OP_resize_grad:
        return !is_nearest(d);
    default:
        return !pool_of(d, *d->type, first).disjoint;
    }
}

const Expr *window_value(Emit *e, Scope *s, NodeId n, Index p) {
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
    return value_at(e, s, n, p);
}
