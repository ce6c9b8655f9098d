// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Optimizer shards: parts of the parameters, each with its optimizer states.
//
// Parameters are dealt whole, the largest first, each to the shard that has the
// fewest bytes so far, as PyTorch's ZeroRedundancyOptimizer deals them (greedy
// number partitioning; Graham, "Bounds on multiprocessing timing anomalies",
// 1969).

#include "ir/program.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t bytes; // of its optimizer states
    int number;    // in the order of the updates
    int shard;
} Dealt;

typedef struct {
    Dealt *param;
    int count;
} Deal;

static int64_t state_bytes(const Graph *g, const Node *update) {
    int64_t slots = 0;
    for (int i = 0; i < num_optimizer_slots; i++)
        slots += optimizer_slots[i].op == update->op &&
                 optimizer_slots[i].scope == SLOT_own;
    return slots * graph_bytes(g, g->node[update->arg[0]].type);
}

static int by_bytes(const void *a, const void *b) {
    const Dealt *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->number - y->number;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const Dealt *)a)->name, ((const Dealt *)b)->name);
}

static int by_first(const void *a, const void *b) {
    int order = by_name(a, b);
    return order != 0 ? order
                      : ((const Dealt *)a)->number - ((const Dealt *)b)->number;
}

static void add_updates(Deal *d, const Graph *g, Arena *a) {
    for (NodeId n = 0; n < g->count; n++)
        if (is_optimizer(g->node[n].op))
            ARENA_APPEND(
                a, d->param, d->count,
                ((Dealt){.name = node_text(&g->node[g->node[n].arg[0]],
                                           ATTR_name),
                         .bytes = state_bytes(g, &g->node[n]),
                         .number = d->count}));
}

// Keeps the first update of each parameter; later stages have others.
static void keep_first(Deal *d) {
    int kept = 0;
    qsort(d->param, (size_t)d->count, sizeof *d->param, by_first);
    for (int i = 0; i < d->count; i++)
        if (i == 0 || by_name(&d->param[kept - 1], &d->param[i]) != 0)
            d->param[kept++] = d->param[i];
    d->count = kept;
}

static void deal(const Deal *d, int shards, Arena *a) {
    int64_t *bytes = ARENA_ARRAY(a, (size_t)shards, int64_t);
    for (int i = 0; i < d->count; i++) {
        int least = 0;
        for (int k = 1; k < shards; k++)
            least = bytes[k] < bytes[least] ? k : least;
        d->param[i].shard = least;
        bytes[least] += d->param[i].bytes;
    }
}

static void mark(const Deal *d, Graph *g) {
    for (NodeId n = 0; g != NULL && n < g->count; n++) {
        if (g->node[n].op != OP_param)
            continue;
        Dealt key = {.name = node_text(&g->node[n], ATTR_name)};
        const Dealt *own = bsearch(&key, d->param, (size_t)d->count,
                                   sizeof *d->param, by_name);
        if (own != NULL)
            leaf_set(g, n, ATTR_optimizer_shard, own->shard);
    }
}

void program_divide_optimizer(Program *p, Arena *a) {
    Deal d = {0};
    if (!recipe_divides_optimizer(&p->recipe))
        return;
    for (int i = 0; i < p->num_stages; i++)
        add_updates(&d, p->stage[i].train, a);
    if (d.count == 0)
        return;
    keep_first(&d);
    qsort(d.param, (size_t)d.count, sizeof *d.param, by_bytes);
    deal(&d, p->recipe.optimizer_shards, a);
    qsort(d.param, (size_t)d.count, sizeof *d.param, by_name);
    mark(&d, p->collect);
    mark(&d, p->init);
    for (int i = 0; i < p->num_stages; i++)
        mark(&d, p->stage[i].train);
    mark(&d, p->average);
    mark(&d, p->eval);
    mark(&d, p->predict);
}
