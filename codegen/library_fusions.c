// Library fusions: tables of the kernels that a library call can replace.

#include "codegen/emit.h"
#include "passes/plan/library_fusion.h"

static long long offset_of(const Graph *g, NodeId n) {
    return n == NO_NODE ? 0 : (long long)g->node[n].offset;
}

static void norm_row(FusionTables *t, const Graph *g,
                     const LibraryFusions *fusions, const Norm *n) {
    int64_t channels = space_columns(g->node[n->x].type);
    int64_t room = g->arena_bytes - fusions->bytes;
    text_add(&t->norms,
             "    {.x = %lld, .sum = %lld, .var = %lld, .number = %d,\n"
             "     .channels = %lld, .count = %lld",
             offset_of(g, n->x), offset_of(g, n->sum), offset_of(g, n->var),
             n->number,
             (long long)channels,
             (long long)(type_count(g->node[n->x].type) / channels));
    if (n->bn_params >= 0) {
        text_add(
            &t->norms,
            ",\n     .scale = %lld, .bias = %lld, .y = %lld,\n"
            "     .bn_params = %lld, .bn_param_bytes = %lld,\n     .epsilon = ",
            offset_of(g, n->scale), offset_of(g, n->bias), offset_of(g, n->y),
            (long long)(room + n->bn_params),
            (long long)bn_param_bytes(channels));
        text_double(&t->norms, n->epsilon);
    }
    text_add(&t->norms, "},\n");
}

static void fusion_row(FusionTables *t, const Graph *g, const Kernel *kernel,
                       int step, const LibraryFusion *fusion) {
    static const char *const kind[NUM_FUSIONS] = {
        [FUSION_statistics] = "RT_FUSED_STATISTICS",
        [FUSION_prologue] = "RT_FUSED_PROLOGUE",
        [FUSION_prologue_weight] = "RT_FUSED_PROLOGUE_WEIGHT",
        [FUSION_backward] = "RT_FUSED_BACKWARD",
    };
    Text *f = &t->fusions;
    text_add(f, "    {.kind = %s, .step = %d, .norm = %d,\n     .call = %s,\n",
             kind[fusion->kind], step, t->num_norms + fusion->norm,
             kernel[fusion->call].name);
    text_add(f, "     .launch = %d, .paired = %d", fusion->kernel,
             fusion->paired < 0 ? -1 : t->num_fusions + fusion->paired);
    if (fusion->kind == FUSION_backward)
        text_add(f, ", .d_scale = %lld, .d_bias = %lld",
                 offset_of(g, fusion->d_scale),
                 offset_of(g, fusion->d_bias));
    text_add(f, "},\n");
}

static bool has_number(const LibraryFusions *fusions, int64_t number) {
    for (int i = 0; i < fusions->num_norms; i++)
        if (fusions->norm[i].number == number)
            return true;
    return false;
}

// Rows for variances that no call of this step computes.  A call of another
// step may have the same number, and kernels look it up by number.
static int fixed_rows(FusionTables *t, const Graph *g,
                      const LibraryFusions *fusions) {
    int rows = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        int64_t number = node_int(d, ATTR_number, -1);
        if (d->op != OP_var_finalize || has_number(fusions, number))
            continue;
        text_add(&t->norms, "    {.number = %lld},\n", (long long)number);
        rows++;
    }
    return rows;
}

void fusions_emit(FusionTables *t, const Launches *l, int step) {
    const Graph *g = l->plan->graph;
    const LibraryFusions *fusions = &l->plan->fusions;
    for (int i = 0; i < fusions->num_norms; i++)
        norm_row(t, g, fusions, &fusions->norm[i]);
    for (int i = 0; i < fusions->count; i++)
        fusion_row(t, g, l->kernel, step, &fusions->fusion[i]);
    t->num_norms += fusions->num_norms + fixed_rows(t, g, fusions);
    t->num_fusions += fusions->count;
}
