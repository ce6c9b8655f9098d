// Tile kernels: the schedule of a contraction and the epilogue of its tile
// fusion.  A value of the epilogue is a tile with the extents of its tensor in
// the block's tile of the result: BM or 1 rows, BN or 1 columns.

#include "codegen/tile.h"
#include "codegen/program.h"

#include <assert.h>
#include <string.h>

typedef struct {
    Emit emit; // for the expressions of operations
    Arena *a;
    const Graph *g;
    const TileFusion *fusion;
    TileSchedule *s;
    NodeId call;
    const Expr **value; // of each node that has one
    int values;
} TileEmit;

// ---- sizes ----

// The least power of two that is at least n, between two others.
static int power_for(int64_t n, int least, int most) {
    int power = least;
    while (power < most && power < n)
        power *= 2;
    return power;
}

// A block for each multiprocessor at least, with a smaller tile if need be.
static TileSizes choose_sizes(const TileSchedule *s, int64_t processors) {
    enum { ROWS = 128, FEW_ROWS = 64, LEAST_ROWS = 32, LEAST = 16 };
    enum { DEPTH = 64, FLAT = 32 };
    TileSizes size = {.rows = power_for(s->space.rows, LEAST_ROWS, ROWS),
                      .columns = power_for(s->space.columns, LEAST, ROWS),
                      .depth = power_for(s->depth, LEAST,
                                         s->load == WINDOW_FLAT ? FLAT : DEPTH),
                      .warps = 8};
    TileSchedule trial = *s;
    trial.size = size;
    bool is_gradient = s->load == WINDOW_GRAD || s->load == WEIGHT_GRAD;
    if (is_gradient && size.columns > FEW_ROWS)
        trial.size.columns = FEW_ROWS; // else some spill on sm_80
    if (trial.size.columns > FEW_ROWS && tile_blocks(&trial) < processors)
        trial.size.columns = FEW_ROWS;
    if (size.rows > FEW_ROWS && tile_blocks(&trial) < processors)
        trial.size.rows = FEW_ROWS;
    if (trial.size.rows * trial.size.columns <= FEW_ROWS * FEW_ROWS)
        trial.size.warps = 4;
    return trial.size;
}

// Sizes of candidate i, with the same tile of the result.
static TileSizes candidate_sizes(TileSizes size, int i) {
    enum { LEAST = 16, WARPS = 4 + 8 };
    if (i % 2 == 1)
        size.warps = WARPS - size.warps;
    if (i >= 2 && size.depth > LEAST)
        size.depth /= 2;
    return size;
}

// ---- contractions ----

static void schedule_matmul(TileSchedule *s, const Graph *g, const Node *d) {
    Type a = *g->node[d->arg[0]].type;
    s->ta = node_int(d, ATTR_ta, 0);
    s->tb = node_int(d, ATTR_tb, 0);
    s->load = MATRIX_ROWS;
    s->depth = a.dim[a.rank - (s->ta ? 2 : 1)];
}

// Describes windows of images x with a result of pixels like y.  Whether a
// window is a row of a matrix: of one element, and without gaps.
static bool describe_window(TileSchedule *s, const Node *d, Type x, Type w,
                            Type y) {
    TileWindow *to = &s->window;
    *to = (TileWindow){.n = x.dim[0],
                       .h = x.dim[1],
                       .w = x.dim[2],
                       .c = x.dim[3],
                       .r = w.dim[1],
                       .s = w.dim[2],
                       .oh = y.dim[1],
                       .ow = y.dim[2]};
    bool is_dense = to->r == 1 && to->s == 1;
    for (int i = 0; i < 2; i++) {
        to->stride[i] = node_ints(d, ATTR_stride, i, 1);
        to->dilation[i] = node_ints(d, ATTR_dilation, i, 1);
        to->pad[i] = node_ints(d, ATTR_pad, 2 * i, 0);
        is_dense &= to->stride[i] == 1 && to->pad[i] == 0;
    }
    return is_dense && to->oh == to->h && to->ow == to->w;
}

static void schedule_conv(TileSchedule *s, const Graph *g, const Node *d) {
    enum { FEW_CHANNELS = 16 };
    const TileWindow *w = &s->window;
    bool is_dense = describe_window(s, d, *g->node[d->arg[0]].type,
                                    *g->node[d->arg[1]].type, *d->type);
    s->tb = true;
    s->load = is_dense              ? MATRIX_ROWS
              : w->c < FEW_CHANNELS ? WINDOW_FLAT
                                    : WINDOW_TAPS;
    s->depth = s->load == WINDOW_FLAT ? w->r * w->s * w->c : w->c;
}

// A pixel of the gradient is in the window of the pixel behind it by its tap.
static void schedule_grad_input(TileSchedule *s, const Graph *g,
                                const Node *d) {
    bool is_dense = describe_window(s, d, *g->node[d->arg[0]].type,
                                    *g->node[d->arg[1]].type, *d->type);
    for (int i = 0; i < 2; i++) {
        s->window.dilation[i] = -s->window.dilation[i];
        s->window.pad[i] = -s->window.pad[i];
    }
    s->load = is_dense ? MATRIX_ROWS : WINDOW_GRAD;
    s->depth = s->window.c;
}

static void schedule_grad_weight(TileSchedule *s, const Graph *g,
                                 const Node *d) {
    Type dy = *g->node[d->arg[0]].type;
    bool is_dense =
        describe_window(s, d, *g->node[d->arg[1]].type, *d->type, dy);
    s->ta = true;
    s->load = is_dense ? MATRIX_ROWS : WEIGHT_GRAD;
    s->depth = space_rows(&dy);
}

static void schedule(TileSchedule *s, const Graph *g, const Node *d) {
    switch (d->op) {
    case OP_conv:
        schedule_conv(s, g, d);
        break;
    case OP_conv_grad_input:
        schedule_grad_input(s, g, d);
        break;
    case OP_conv_grad_weight:
        schedule_grad_weight(s, g, d);
        break;
    default:
        schedule_matmul(s, g, d);
    }
}

// ---- epilogues ----

static const Expr *name_new(const TileEmit *t, const char *stem, int number) {
    return x_name(t->a, arena_format(t->a, "%s%d", stem, number));
}

static const Expr *call_of(const TileEmit *t, const char *name, int count,
                           const Expr *const *arg) {
    Expr *x = x_list(t->a, count);
    x->kind = X_CALL;
    x->name = name;
    for (int i = 0; i < count; i++)
        list_add(x, arg[i]);
    return x;
}

static const Expr *call_with(const TileEmit *t, const char *name,
                             const Expr *x) {
    return call_of(t, name, 1, &x);
}

static Stmt *stmt_new(TileEmit *t, Stmt own) {
    Stmt *s = ARENA_NEW(t->a, Stmt);
    *s = own;
    block_add(&t->s->statements, s);
    return s;
}

static const Expr *declare(TileEmit *t, NodeId n, const Expr *x) {
    const Expr *name = name_new(t, "v", ++t->values);
    stmt_new(t, (Stmt){.kind = S_DECLARE,
                       .node = n,
                       .word = "const",
                       .type = "auto",
                       .name = name,
                       .value = x});
    return name;
}

// The extents of a tensor in the block's tile, as BM, 1.
static const char *tile_text(const TileEmit *t, const bool whole[3]) {
    return arena_format(t->a, "%s, %s", whole[1] ? "BM" : "1",
                        whole[2] ? "BN" : "1");
}

static const char *tensor_text(const TileEmit *t, const bool whole[3]) {
    return arena_format(t->a, "%s, %s, %s", whole[0] ? "Z" : "1",
                        whole[1] ? "M" : "1", whole[2] ? "N" : "1");
}

static void place_of(const TileEmit *t, const bool whole[3],
                     const Expr *place[3]) {
    static const char *const index[] = {"z", "mb", "nb"};
    for (int i = 0; i < 3; i++)
        place[i] = whole[i] ? x_name(t->a, index[i]) : x_number(t->a, 0);
}

// Which axes of the result n has whole; the others have extent 1.
static void extents_of(const TileEmit *t, NodeId n, bool whole[3]) {
    tile_extents(&t->s->space, *t->g->node[n].type, whole);
}

static const Expr *parameter_of(const TileEmit *t, NodeId n) {
    const Kernel *k = t->s->epilogue;
    NodeId base = node_base(t->g, n);
    int i = 0;
    while (i < k->num_args && k->arg[i].node != base)
        i++;
    assert(i < k->num_args); // the kernel reads it, too
    return name_new(t, "p", i);
}

static const Expr *load(TileEmit *t, NodeId n) {
    bool whole[3];
    const Expr *arg[4];
    extents_of(t, n, whole);
    arg[0] = parameter_of(t, n);
    place_of(t, whole, arg + 1);
    const Expr *x =
        call_of(t,
                arena_format(t->a, "load_tile<%s, 1, %s>",
                             tensor_text(t, whole), tile_text(t, whole)),
                4, arg);
    x = call_with(t, arena_format(t->a, "matrix<%s>", tile_text(t, whole)), x);
    if (t->g->node[n].type->dtype == ACT)
        x = call_with(t, "to_float", x);
    return declare(t, n, x);
}

static const Expr *value_of(TileEmit *t, NodeId n);

static bool is_constant(const TileEmit *t, NodeId n) {
    return t->g->node[n].op == OP_constant;
}

// Operand m of node n, with the extents of n.
static const Expr *operand_of(TileEmit *t, NodeId n, NodeId m) {
    bool own[3], whole[3];
    const Expr *x = value_of(t, m);
    extents_of(t, n, own);
    extents_of(t, m, whole);
    const char *name = arena_format(t->a, "spread<%s>", tile_text(t, own));
    if (is_constant(t, m) || (own[1] == whole[1] && own[2] == whole[2]))
        return x;
    return call_with(t, name, x);
}

// A choice between two numbers needs one of them as a tile.
static const Expr *filled(TileEmit *t, NodeId n, const Expr *x) {
    bool whole[3];
    extents_of(t, n, whole);
    return call_with(t, arena_format(t->a, "filled<%s>", tile_text(t, whole)),
                     x);
}

// A cast from one type of floats to another: values are f32 until they are
// stored.
static bool is_rounding(const Graph *g, const Node *d) {
    return d->op == OP_cast && dtype_float(d->type->dtype) &&
           dtype_float(g->node[d->arg[0]].type->dtype);
}

static const Expr *compute(TileEmit *t, NodeId n) {
    const Node *d = &t->g->node[n];
    const Expr *operand[4] = {NULL};
    if (d->op == OP_reshape || is_rounding(t->g, d))
        return value_of(t, d->arg[0]);
    for (int i = 0; i < d->num_args; i++)
        operand[i] = operand_of(t, n, d->arg[i]);
    if (d->op == OP_select && is_constant(t, d->arg[1]) &&
        is_constant(t, d->arg[2]))
        operand[1] = filled(t, n, operand[1]);
    return declare(t, n, pointwise_expr(&t->emit, n, operand));
}

static const Expr *value_of(TileEmit *t, NodeId n) {
    double number;
    if (is_constant(t, n) && node_number(&t->g->node[n], &number))
        return literal(t->a, t->g->node[n].type->dtype, number);
    if (node_base(t->g, n) == t->call)
        n = t->call;
    if (t->value[n] == NULL)
        t->value[n] =
            group_has(t->s->epilogue->group, n) ? compute(t, n) : load(t, n);
    return t->value[n];
}

// Stores x, of a number of elements to a column of the result, at p.
static void store(TileEmit *t, NodeId n, const char *columns, const Expr *p,
                  const Expr *x) {
    const Expr *arg[5] = {p, x};
    const bool whole[3] = {true, true, true};
    place_of(t, whole, arg + 2);
    stmt_new(t,
             (Stmt){.kind = S_CALL,
                    .node = n,
                    .value = call_of(
                        t,
                        arena_format(t->a, "store_tile<Z, M, N%s, 1, BM, BN%s>",
                                     columns, columns),
                        5, arg)});
}

static void store_output(TileEmit *t, NodeId n) {
    const Node *d = &t->g->node[n];
    const Expr *p = parameter_of(t, n);
    if (d->op == OP_pack)
        store(t, n, " / 8", p,
              call_with(t, "pack<BM, BN, 1>", value_of(t, d->arg[0])));
    else
        store(t, n, "", p,
              d->type->dtype == F32 ? value_of(t, n)
              : d->type->dtype == ACT
                  ? call_with(t, "to_act", value_of(t, n))
                  : call_with(t, "to_byte", value_of(t, n)));
}

// The gradient of weights is [M][R * S][N].
static void store_result(TileEmit *t, const Expr *x) {
    const Expr *out = x_name(t->a, "out");
    const Expr *arg[5] = {out, x, x_name(t->a, "mb"), x_name(t->a, "z"),
                          x_name(t->a, "nb")};
    if (t->s->load == WEIGHT_GRAD)
        stmt_new(t, (Stmt){.kind = S_CALL,
                           .node = t->call,
                           .value = call_of(t, "store_tile<M, Z, N, BM, 1, BN>",
                                            5, arg)});
    else
        store(t, t->call, "", out, x);
}

// Others read the result rounded, so that the epilogue does, too.
static void build_statements(TileEmit *t) {
    const Expr *acc = x_name(t->a, "acc");
    t->value[t->call] = acc;
    if (t->fusion->stores) {
        const Expr *stored = declare(t, t->call, call_with(t, "to_act", acc));
        store_result(t, stored);
        if (t->fusion->kernel >= 0)
            t->value[t->call] =
                declare(t, t->call, call_with(t, "to_float", stored));
    }
    if (t->fusion->kernel < 0)
        return;
    const Group *group = t->s->epilogue->group;
    for (int i = 0; i < group->num_outputs; i++)
        store_output(t, group->output[i]);
}

// ---- kernels ----

static TileSchedule *build(const Launches *l, const TileFusion *f, Arena *a) {
    const Graph *g = l->plan->graph;
    TileSchedule *s = ARENA_NEW(a, TileSchedule);
    const Kernel *call = &l->kernel[f->call];
    NodeId n = group_first(g, call->group, CALLS);
    *s = (TileSchedule){.act = g->act,
                        .space = tile_space(g, n),
                        .epilogue =
                            f->kernel < 0 ? NULL : &l->kernel[f->kernel]};
    s->name = arena_format(a, "t%s", call->name + 1);
    s->heading = f->kernel < 0 ? arena_format(a, "// %s\n", call->name)
                               : arena_format(a, "// %s and %s\n", call->name,
                                              s->epilogue->name);
    schedule(s, g, &g->node[n]);
    s->size = choose_sizes(s, g->multiprocessors);
    TileEmit t = {.a = a,
                  .g = g,
                  .fusion = f,
                  .s = s,
                  .call = n,
                  .value = ARENA_ARRAY(a, g->count, const Expr *)};
    emit_init(&t.emit, g, g, a, call->group, l->plan->stored,
              ARENA_ARRAY(a, g->count, int));
    build_statements(&t);
    return s;
}

// The text without names: equal kernels have the same.
static const char *body_of(Arena *a, const TileSchedule *s) {
    TileSchedule own = *s;
    Text t = text_new(a);
    own.name = own.heading = "";
    tile_print(&t, &own);
    return text_string(&t);
}

static TileKernel kernel_of(const TileFusion *f, const TileSchedule *s,
                            Arena *a) {
    TileKernel k = {.fusion = f,
                    .name = s->name,
                    .body = body_of(a, s),
                    .grid = (int)tile_blocks(s)};
    for (int i = 0; i < TILE_CANDIDATES; i++) {
        TileSchedule own = *s;
        Text t = text_new(a);
        own.size = candidate_sizes(s->size, i);
        tile_print(&t, &own);
        k.text[i] = text_string(&t);
    }
    return k;
}

TileKernel *codegen_tile_kernels(const Launches *l, Arena *a) {
    const TileFusions *f = &l->plan->tiles;
    TileKernel *k = ARENA_ARRAY(a, (size_t)f->count + 1, TileKernel);
    for (int i = 0; i < f->count; i++)
        k[i] = kernel_of(&f->fusion[i], build(l, &f->fusion[i], a), a);
    return k;
}

// ---- the table of a trainer ----

int tile_equal(const TileKernel *list, int count, const TileKernel *k) {
    int i = 0;
    while (i < count && strcmp(list[i].body, k->body) != 0)
        i++;
    return i;
}

static void add_rows(const Writer *w, TileTexts *out, int step, Text *rows) {
    const PlannedStep *s = &w->step[step];
    const TileFusions *f = &s->launches->plan->tiles;
    const TileKernel *k = codegen_tile_kernels(s->launches, out->arena);
    for (int i = 0; i < f->count; i++) {
        if (!k[i].fusion->taken)
            continue;
        int number = tile_equal(out->kernel, out->count, &k[i]);
        if (number == out->count)
            ARENA_APPEND(out->arena, out->kernel, out->count, k[i]);
        text_add(rows,
                 "    {.name = \"%s\", .code = %d, .grid = %d,\n"
                 "     .call = %s, .launch = %d},\n",
                 out->kernel[number].name, number, k[i].grid,
                 s->kernel[k[i].fusion->call].name, k[i].fusion->kernel);
    }
}

void tiles_write(Writer *w, Text *t, TileTexts *out) {
    Text rows = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++)
        add_rows(w, out, i, &rows);
    w->tiles = rows.length > 0;
    if (w->tiles)
        text_add(t,
                 "\n// Tile kernels on CUDA.\n"
                 "static const RtTile tiles[] = {\n%s};\n",
                 text_string(&rows));
}
