// Tile kernels: the schedule of a contraction, and the kernels of a plan.

#include "codegen/tile.h"
#include "codegen/program.h"

#include <assert.h>
#include <string.h>

// ---- contractions ----

static void schedule_matmul(TileSchedule *s, const Graph *g, const Node *d) {
    Type a = *g->node[d->arg[0]].type;
    s->ta = node_int(d, ATTR_ta, 0);
    s->tb = node_int(d, ATTR_tb, 0);
    s->splits = s->ta;
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
    bool is_dense = to->r == 1 && to->s == 1 && s->groups == 1;
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
    s->depth = s->load == WINDOW_FLAT ? w->r * w->s * w->c : w->c / s->groups;
}

// Input pixel p is tap t of window o if p + pad = o * stride + t * dilation.
static void schedule_grad_input(TileSchedule *s, const Graph *g,
                                const Node *d) {
    bool is_dense = describe_window(s, d, *g->node[d->arg[0]].type,
                                    *g->node[d->arg[1]].type, *d->type);
    TileWindow *w = &s->window;
    bool is_strided = w->stride[0] > 1 || w->stride[1] > 1;
    for (int i = 0; i < 2; i++) {
        w->dilation[i] = -w->dilation[i];
        w->pad[i] = -w->pad[i];
    }
    s->load = is_dense ? MATRIX_ROWS : is_strided ? STRIDED_GRAD : WINDOW_GRAD;
    s->depth = w->c / s->groups;
    if (!is_strided)
        return;
    s->cover.batch = w->stride[0] * w->stride[1];
    s->cover.rows =
        w->n * divide_up(w->oh, w->stride[0]) * divide_up(w->ow, w->stride[1]);
}

static void schedule_grad_weight(TileSchedule *s, const Graph *g,
                                 const Node *d) {
    Type dy = *g->node[d->arg[0]].type;
    bool is_dense =
        describe_window(s, d, *g->node[d->arg[1]].type, *d->type, dy);
    s->ta = true;
    s->load = is_dense ? MATRIX_ROWS : WEIGHT_GRAD;
    s->depth = space_rows(&dy);
    s->splits = true;
    s->space.rows /= s->groups;
    s->cover = s->space;
}

static void schedule(TileSchedule *s, const Graph *g, const Node *d) {
    s->groups = node_int(d, ATTR_groups, 1);
    s->cover = s->space;
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

// ---- kernels ----

// Names the kernels in the order of their work.
static const char *heading_of(const Launches *l, const TileFusion *f,
                              Arena *a) {
    Text t = text_new(a);
    text_add(&t, "// %s\n", l->kernel[f->call].name);
    for (int i = 0; i < TILE_OPERANDS; i++) {
        int k = f->prologue[i];
        if (k >= 0)
            text_add(&t, "// prologue of %s: %s\n", i == 0 ? "a" : "b",
                     l->kernel[k].name);
    }
    if (f->epilogue >= 0)
        text_add(&t, "// epilogue: %s\n", l->kernel[f->epilogue].name);
    if (f->pool >= 0)
        text_add(&t, "// pool: %s\n", l->kernel[f->pool].name);
    return text_string(&t);
}

double tile_instructions(const Kernel *k, const Type *elements) {
    return k->row_instructions * BLOCK_THREADS / (double)type_count(elements);
}

static TileSchedule *build(const Launches *l, const TileFusion *f, Arena *a) {
    const Graph *g = l->plan->graph;
    TileSchedule *s = ARENA_NEW(a, TileSchedule);
    const Kernel *call = &l->kernel[f->call];
    NodeId n = group_first(g, call->group, CALLS);
    *s = (TileSchedule){.act = g->act,
                        .space = tile_space(g, n),
                        .epilogue =
                            f->epilogue < 0 ? NULL : &l->kernel[f->epilogue]};
    s->name = arena_format(a, "t%s", call->name + 1);
    s->heading = heading_of(l, f, a);
    schedule(s, g, &g->node[n]);
    for (int i = 0; i < TILE_OPERANDS; i++)
        if (f->prologue[i] >= 0) {
            NodeId operand = node_base(g, g->node[n].arg[i]);
            tile_prologue(s, l, f->prologue[i], i, operand, a);
            s->operand[i].instructions = tile_instructions(
                &l->kernel[f->prologue[i]], g->node[operand].type);
        }
    tile_epilogue(s, l, f, a);
    const int epilogue[] = {f->epilogue, f->pool};
    for (size_t i = 0; i < sizeof epilogue / sizeof *epilogue; i++)
        if (epilogue[i] >= 0)
            s->instructions +=
                tile_instructions(&l->kernel[epilogue[i]], g->node[n].type);
    return s;
}

// The text without names: equal kernels have the same.
static const char *body_of(Arena *a, const TileSchedule *s) {
    TileSchedule copy = *s;
    Text t = text_new(a);
    copy.name = copy.heading = "";
    tile_print(&t, &copy);
    return text_string(&t);
}

static void find_reads(TileKernel *k, const TileSchedule *s, Arena *a) {
    const TileFusedKernel *from[] = {&s->operand[0], &s->operand[1],
                                     &s->pool_kernel};
    const int kernels = (int)(sizeof from / sizeof *from);
    int capacity = 1, count = 0;
    for (int o = 0; o < kernels; o++)
        if (from[o]->kernel != NULL)
            capacity += from[o]->kernel->num_args;
    NodeId *read = ARENA_ARRAY(a, (size_t)capacity, NodeId);
    for (int o = 0; o < kernels; o++) {
        const Kernel *own = from[o]->kernel;
        for (int i = 0; own != NULL && i < own->num_args; i++)
            if (from[o]->used[i])
                read[count++] = own->arg[i].node;
    }
    k->read = read;
    k->num_reads = count;
}

static TileKernel kernel_of(const TileFusion *f, const Launches *l,
                            const TileModels *models, Arena *a) {
    TileSchedule *s = build(l, f, a);
    TileKernel k = {.fusion = f, .name = s->name};
    find_reads(&k, s, a);
    tile_configure(&k, s, l, models, a);
    for (int i = 0; i < k.num_configs; i++) {
        Text t = text_new(a);
        tile_apply(s, &k.config[i]);
        tile_print(&t, s);
        k.config[i].text = text_string(&t);
    }
    tile_apply(s, &k.config[0]);
    k.body = body_of(a, s);
    return k;
}

TileKernel *codegen_tile_kernels(const Launches *l, const TileModels *models,
                                 Arena *a) {
    const TileFusions *f = &l->plan->tiles;
    TileKernel *k = ARENA_ARRAY(a, (size_t)f->count + 1, TileKernel);
    for (int i = 0; i < f->count; i++)
        k[i] = f->fusion[i].call < 0
                   ? tile_attention(l, &f->fusion[i], models, a)
                   : kernel_of(&f->fusion[i], l, models, a);
    return k;
}

// ---- the table of a trainer ----

int tile_equal(const TileKernel *list, int count, const TileKernel *k) {
    int i = 0;
    while (i < count && strcmp(list[i].body, k->body) != 0)
        i++;
    return i;
}

// The number of the code of its first configuration.
int tile_code(const TileTexts *t, int kernel) {
    int number = 0;
    for (int i = 0; i < kernel; i++)
        number += t->kernel[i].num_configs;
    return number;
}

static void add_row(Text *rows, const Graph *g, const PlannedStep *s, int step,
                    const TileFusion *f, const TileKernel *k,
                    const TileTexts *texts, int number, bool host) {
    const TileKernel *equal = &texts->kernel[number];
    int config = tile_code(texts, number);
    text_add(rows,
             "    {.name = \"%s\", .code = %d, .config = tile_configs + %d,\n"
             "     .num_configs = %d, .call = %s, .step = %d, .launch = %d, "
             ".number = %d",
             equal->name, host ? number : config, config, equal->num_configs,
             f->call < 0 ? "-1" : s->kernel[f->call].name, step, f->epilogue,
             k->number);
    if (k->num_reads > 0)
        text_add(rows, ",\n     .args = %d, .arg = (const size_t[]){",
                 k->num_reads);
    for (int i = 0; i < k->num_reads; i++)
        text_add(rows, "%s%lld", i > 0 ? ", " : "",
                 (long long)g->node[k->read[i]].offset);
    text_add(rows, "%s},\n", k->num_reads > 0 ? "}" : "");
}

static void add_rows(const Writer *w, TileTexts *out, int step, Text *rows) {
    const PlannedStep *s = &w->step[step];
    const GraphPlan *p = s->plan[w->tiled];
    Launches copy = *s->launches;
    copy.plan = p;
    const TileKernel *all =
        codegen_tile_kernels(&copy, w->options->tiles, out->arena);
    for (int i = 0; i < p->tiles.count; i++) {
        const TileFusion *f = &p->tiles.fusion[i];
        for (const TileKernel *k = &all[i]; k != NULL && f->taken;
             k = k->second) {
            int number = tile_equal(out->kernel, out->count, k);
            if (number == out->count)
                ARENA_APPEND(out->arena, out->kernel, out->count, *k);
            add_row(rows, p->graph, s, step, f, k, out, number,
                    w->tiled == HOST_PLAN);
        }
    }
}

// "128x64x64, 8 warps, 4 parts, swizzle 8"
const char *tile_config_text(const TileConfig *c, Arena *a) {
    const char *text = arena_format(a, "%dx%dx%d, %d warps", c->rows,
                                    c->columns, c->depth, c->warps);
    if (c->parts > 1)
        text = arena_format(a, "%s, %d parts", text, c->parts);
    if (c->swizzle > 1)
        text = arena_format(a, "%s, swizzle %d", text, c->swizzle);
    return text;
}

static void add_configs(const TileTexts *out, Text *t) {
    text_add(t, "\n// Configurations of tile kernels.\n"
                "static const RtTileConfig tile_configs[] = {\n");
    for (int i = 0; i < out->count; i++)
        for (int k = 0; k < out->kernel[i].num_configs; k++) {
            const TileConfig *c = &out->kernel[i].config[k];
            text_add(t, "    {\"%s\", %d, %d, %lld},\n",
                     tile_config_text(c, out->arena), c->grid, c->sum_grid,
                     (long long)c->workspace);
        }
    text_add(t, "};\n");
}

// The kernels that tile kernels make unnecessary, and the calls of these.
static void add_prologues(const Writer *w, int step, Text *rows) {
    const PlannedStep *s = &w->step[step];
    const TileFusions *f = &s->plan[w->tiled]->tiles;
    for (int i = 0; i < f->num_prologues; i++) {
        if (!tile_skips(f, i))
            continue;
        for (int k = 0; k < f->count; k++)
            for (int o = 0; o < TILE_OPERANDS; o++)
                if (f->fusion[k].prologue[o] == f->prologue[i].kernel)
                    text_add(rows,
                             "    {.step = %d, .launch = %d, .call = %s},\n",
                             step, f->prologue[i].kernel,
                             s->kernel[f->fusion[k].call].name);
    }
    for (int i = 0; i < f->count; i++)
        if (f->fusion[i].taken && f->fusion[i].pool >= 0)
            text_add(rows, "    {.step = %d, .launch = %d, .call = %s},\n",
                     step, f->fusion[i].pool,
                     s->kernel[f->fusion[i].call].name);
}

void tiles_write(Writer *w, Text *t, TileTexts *out) {
    Text rows = text_new(w->a), prologues = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++) {
        add_rows(w, out, i, &rows);
        add_prologues(w, i, &prologues);
    }
    w->tiles = rows.length > 0;
    w->prologues = prologues.length > 0;
    if (w->tiles) {
        add_configs(out, t);
        text_add(t,
                 "\n// Tile kernels %s.\n%s"
                 "static const RtTile tiles[] = {\n%s};\n",
                 w->tiled == HOST_PLAN ? "on the host" : "on CUDA",
                 w->tiled == HOST_PLAN
                     ? "extern const RtHostTile sinter_tiles[];\n"
                     : "",
                 text_string(&rows));
    }
    if (w->prologues)
        text_add(t,
                 "\n// Launches that they make unnecessary.\n"
                 "static const RtFusedLaunch fused_launches[] = {\n%s};\n",
                 text_string(&prologues));
}
