// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Program: its graphs as a list of steps.

#include "ir/program.h"

#include <stdlib.h>
#include <string.h>

static void add(Step *step, int *count, StepKind kind, int stage,
                Graph *graph) {
    if (graph != NULL)
        step[(*count)++] = (Step){.kind = kind,
                                  .stage = stage,
                                  .name = graph->name,
                                  .graph = graph};
}

Step *program_steps(const Program *p, Arena *a, int *count) {
    Step *step = ARENA_ARRAY(a, 2 * (size_t)p->num_stages + 5, Step);
    *count = 0;
    if (p->predicts_only) {
        add(step, count, STEP_AVERAGE, 0, p->average);
        add(step, count, STEP_PREDICT, 0, p->predict);
        return step;
    }
    add(step, count, STEP_COLLECT, 0, p->collect);
    add(step, count, STEP_INIT, 0, p->init);
    for (int i = 0; i < p->num_stages; i++)
        add(step, count, STEP_TRAIN, i, p->stage[i].train);
    for (int i = 0; i < p->num_stages; i++)
        add(step, count, STEP_ACCUMULATE, i, p->stage[i].accumulate);
    add(step, count, STEP_AVERAGE, 0, p->average);
    add(step, count, STEP_EVAL, 0, p->eval);
    add(step, count, STEP_PREDICT, 0, p->predict);
    return step;
}

static int by_path(const void *path, const void *site) {
    return strcmp(path, ((const CallSite *)site)->path);
}

CallSite program_site(const Program *p, const Origin *from) {
    CallSite own = {from->path, from->file, from->line};
    const CallSite *site =
        from->path == NULL || p->num_sites == 0
            ? NULL
            : bsearch(from->path, p->site, (size_t)p->num_sites,
                      sizeof *p->site, by_path);
    return site != NULL ? *site : own;
}

int64_t recipe_batch(const Recipe *r) {
    return r->shards > 0 ? r->shards * r->batch : r->batch;
}

int recipe_update_batches(const Recipe *r) {
    return r->shards > 0 ? r->shards * r->accumulate : r->accumulate;
}

// The digits of a binary counter that stops before `count`.
static int digits_of(int count) {
    int digits = 0;
    while ((count - 1) >> digits != 0)
        digits++;
    return digits;
}

bool program_in_lockstep(const Program *p) {
    for (int i = 0; i < p->num_stages; i++) {
        const Graph *g = p->stage[i].train;
        for (NodeId n = 0; n < g->count; n++)
            if (op_info[g->node[n].op].traits & COLLECTIVE)
                return true;
    }
    return false;
}

int program_waiting_sums(const Program *p) {
    const Recipe *r = &p->recipe;
    if (r->shards == 0)
        return 0;
    int shards = program_in_lockstep(p) ? 0 : digits_of(r->shards);
    return shards + digits_of(r->accumulate);
}

int64_t recipe_update_samples(const Recipe *r) {
    return r->batch * recipe_update_batches(r);
}

bool recipe_divides_optimizer(const Recipe *r) {
    return r->optimizer_shards > 1;
}

int step_runs(const Recipe *r, const Step *s) {
    if (s->stage > 0)
        return 0;
    switch (s->kind) {
    case STEP_DERIVE:
        return recipe_divides_optimizer(r) ? 1 : 0;
    case STEP_TRAIN:
        return r->shards > 0 ? recipe_update_batches(r) : 1;
    case STEP_OPTIMIZE:
    case STEP_APPLY:
        return 1;
    case STEP_ACCUMULATE:
        return r->accumulate - 1;
    default:
        return 0;
    }
}

int64_t recipe_epoch_updates(const Recipe *r, int64_t samples) {
    int64_t of_update = recipe_update_samples(r);
    bool rest = !r->drop_last && samples % of_update != 0;
    return samples / of_update + rest;
}

bool recipe_has_several(const Recipe *r) {
    return r->num_arrays > 0 || r->num_output_names > 0;
}

bool time_is_each_step(Time t) {
    return t.unit == IN_STEPS && t.count == 1;
}

bool program_averages_each_step(const Program *p) {
    return p->average != NULL && time_is_each_step(p->average_every) &&
           !recipe_divides_optimizer(&p->recipe);
}

const Step *step_named(const Step *step, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(step[i].name, name) == 0)
            return &step[i];
    return NULL;
}
