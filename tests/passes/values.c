// Graphs from text, and their values by name.
#include "tests/passes/values.h"

#include "passes/live_range.h"
#include "passes/plan/group.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_SEEDS = 3 };

Graph *graph_from(Arena *a, const char *text) {
    const char *error = NULL;
    Graph *g = graph_read(a, text, strlen(text), &error);
    ck_assert_msg(g != NULL, "line %s in\n%s", error, text);
    error = graph_verify(g, a);
    if (error == NULL)
        error = groups_verify(g, a);
    ck_assert_msg(error == NULL, "%s in\n%s", error, text);
    return g;
}

char *numbers_read(Arena *a, const char *name) {
    enum { MOST = 1 << 20 };
    const char *source = getenv("SINTER_SOURCE");
    const char *path = arena_format(a, "%s/tests/golden/numbers/%s",
                                    source ? source : ".", name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot read %s", path);
    char *text = ARENA_ARRAY(a, MOST, char);
    size_t length = fread(text, 1, MOST - 1, f);
    ck_assert(length > 0 && length < MOST - 1 && !ferror(f));
    fclose(f);
    return text;
}

Graph *run_pass(Graph *g, const char *pass, DType act) {
    PassOptions o = {
        .device = "cuda", .act = act, .level = 1, .deep_verify = true};
    return pass_run(g, &o, pass_find(pass));
}

int count_ops(const Graph *g, Op op) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        count += g->node[n].op == op;
    return count;
}

static double element(const Node *n, uint32_t seed, int64_t i, double low,
                      double high) {
    uint32_t stream = (uint32_t)stream_of(node_text(n, ATTR_name));
    double draw = random_uniform(seed, stream, 0, (uint32_t)i);
    switch (n->type->dtype) {
    case BOOL:
        return draw < 0.5;
    case I32:
        return floor(3 * draw);
    case U8:
        return floor(256 * draw);
    default:
        return low + (high - low) * draw;
    }
}

double **leaf_values(const Graph *g, Arena *a, uint32_t seed, double low,
                     double high) {
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId id = 0; id < g->count; id++) {
        const Node *n = &g->node[id];
        if (n->op != OP_input && n->op != OP_param && n->op != OP_state)
            continue;
        const char *kind = node_text(n, ATTR_kind);
        if (kind != NULL && strcmp(kind, STATE_RUN) == 0)
            continue;
        int64_t count = type_count(n->type);
        leaf[id] = ARENA_ARRAY(a, (size_t)count + 1, double);
        bool moment = kind != NULL && strcmp(kind, STATE_OPTIMIZER) == 0;
        for (int64_t i = 0; i < count; i++)
            leaf[id][i] = element(n, seed, i, moment ? 0 : low, high);
    }
    return leaf;
}

// The name by which an effect is known: an output's own, or its target's.
static const char *effect_name(const Graph *g, NodeId n) {
    const Node *node = &g->node[n];
    if (node->op == OP_assign)
        node = &g->node[node->arg[0]];
    else if (node->op != OP_output)
        return NULL;
    return node_text(node, ATTR_name);
}

static NodeId find_effect(const Graph *g, Op op, const char *name) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op && strcmp(effect_name(g, n), name) == 0)
            return n;
    return NO_NODE;
}

const double *value_named(const Graph *g, double *const *value,
                          const char *name) {
    NodeId n = find_effect(g, OP_output, name);
    if (n == NO_NODE)
        n = find_effect(g, OP_assign, name);
    return n == NO_NODE ? NULL : value[n];
}

static bool close_to(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    double scale = fmax(1, fmax(fabs(a), fabs(b)));
    return fabs(a - b) <= tolerance * scale;
}

static void check_effect(const Graph *before, double *const *a,
                         const Graph *after, double *const *b, NodeId n,
                         double tolerance) {
    const char *name = effect_name(before, n);
    NodeId m = find_effect(after, before->node[n].op, name);
    ck_assert_msg(m != NO_NODE, "%s is gone", name);
    ck_assert_msg(type_is(before->node[n].type, after->node[m].type),
                  "%s has another type", name);
    for (int64_t i = 0; i < type_count(before->node[n].type); i++)
        ck_assert_msg(close_to(a[n][i], b[m][i], tolerance),
                      "%s[%lld] was %.17g and is %.17g", name, (long long)i,
                      a[n][i], b[m][i]);
}

void check_same_values(const Graph *before, const Graph *after,
                       double tolerance) {
    for (uint32_t seed = 0; seed < NUM_SEEDS; seed++) {
        Arena *a = arena_new();
        double **x =
            graph_eval(before, a, leaf_values(before, a, seed, -2, 2), false);
        double **y =
            graph_eval(after, a, leaf_values(after, a, seed, -2, 2), false);
        for (NodeId n = 0; n < before->count; n++)
            if (effect_name(before, n) != NULL)
                check_effect(before, x, after, y, n, tolerance);
        arena_free(a);
    }
}

int64_t graph_bound(const Graph *g) {
    Arena *a = arena_new();
    int count;
    LibraryFusions fusions = graph_library_fusions(g, a);
    Buffer *buffer = graph_buffers(g, &fusions, false, a, &count);
    int64_t bytes = leaves_bytes(g, true) + leaves_bytes(g, false) +
                    buffers_bound(buffer, count) + fusions.bytes;
    arena_free(a);
    return bytes;
}
