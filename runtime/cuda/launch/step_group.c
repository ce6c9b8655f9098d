// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step group: several training steps as one launch of a CUDA graph.
//
// A small model's step takes a few microseconds for each of its kernels, and
// its batch, its graph and the gaps around them as much again.  Nothing is
// decided between two steps but which batch comes next, and that is in a slot
// of the copy stream by then.  So the device holds batches and runs until there
// are enough for a graph that takes each batch from its slot and runs the step.
//
// All other users of the stream flush first: held steps are then launched one
// by one, so evaluations, checkpoints, metrics and the end of a run see the
// same states.  A run that is timed is launched alone.

#include "runtime/cuda/launch/launch.h"

#include "base/round_up.h"

#include <string.h>

// Limits of a group: its launches, beside more of which the launch of a graph
// costs little, and the bytes of a set of slots.  RT_MAX_GROUP limits the steps
// that a signal waits for.
enum { GROUP_LAUNCHES = 256, GROUP_BYTES = 16 << 20 };

static size_t batch_bytes(const RtStep *step) {
    size_t bytes = 0;
    for (int i = 0; i < step->num_inputs; i++)
        bytes += rt_input_bytes(&step->input[i]);
    return bytes;
}

// Other processes' parts of a step, and shards, come between launches.
int rt_step_group_of(const RtPlan *plan) {
    const RtStep *step = rt_step_find(plan, RT_TRAIN, 0);
    if (step == NULL || step->num_launches == 0 || plan->ungrouped ||
        plan->one_by_one || plan->partial_bytes > 0)
        return 1;
    int most = GROUP_LAUNCHES / (step->num_launches + step->num_inputs);
    size_t bytes = 1;
    for (int i = 0; i < plan->num_steps; i++) // a slot fits each step's batch
        if (batch_bytes(&plan->step[i]) > bytes)
            bytes = batch_bytes(&plan->step[i]);
    if ((size_t)most > GROUP_BYTES / bytes)
        most = (int)(GROUP_BYTES / bytes);
    return most < 1 ? 1 : most < RT_MAX_GROUP ? most : RT_MAX_GROUP;
}

void rt_step_group_close(RtCuda *c) {
    for (int i = 0; i < 2; i++) {
        if (c->group.graph[i] != NULL)
            c->cu.graph_exec_free(c->group.graph[i]);
        c->group.graph[i] = NULL;
    }
}

// ---- step by step ----

static void launch_held(RtCuda *c, int i) {
    RtStepGroup *p = &c->group;
    const RtHeldBatch *b = &p->held[i];
    rt_cuda_check(c, rt_copy_stream_take(&c->copies, p->first + i, c->arena,
                                         b->piece, b->pieces, &c->error));
    if (i >= p->runs)
        return;
    c->running->runs++;
    rt_step_graph_run(c, c->running, NULL);
}

void rt_step_group_flush(RtCuda *c) {
    RtStepGroup *p = &c->group;
    RtPhase phase = c->phase;
    if (p->batches == 0)
        return;
    c->phase = RT_OTHER;
    for (int i = 0; i < p->batches; i++)
        launch_held(c, i);
    p->batches = p->runs = 0;
    c->phase = phase;
}

// ---- a whole group ----

static void queue_group(RtCuda *c, const void *set) {
    const RtStepGroup *p = &c->group;
    int first = *(const int *)set * p->steps;
    const RtHeldBatch *b = &p->batch[*(const int *)set];
    c->is_refused = false;
    for (int i = 0; i < p->steps && !c->is_refused; i++) {
        c->is_capturing = true;
        rt_cuda_check_launch(c, rt_copy_stream_copy(&c->copies, first + i,
                                                    c->arena, b->piece,
                                                    b->pieces, &c->error));
        if (!c->is_refused)
            rt_cuda_launch_step(c, true, false);
    }
    c->is_capturing = false;
}

static bool is_same(const RtHeldBatch *a, const RtHeldBatch *b) {
    bool same = a->pieces == b->pieces;
    for (int i = 0; same && i < a->pieces; i++)
        same = a->piece[i].to == b->piece[i].to &&
               a->piece[i].bytes == b->piece[i].bytes &&
               a->piece[i].kept == b->piece[i].kept;
    return same;
}

static bool are_like(const RtStepGroup *p, const RtHeldBatch *b) {
    bool like = true;
    for (int i = 0; i < p->batches; i++)
        like &= is_same(&p->held[i], b);
    return like;
}

// Ends grouping: the driver refuses a group's graph.
static void ungroup(RtCuda *c, const RtError *why) {
    rt_warn("%s: steps of %s are launched one by one: %s", c->name,
            rt_cuda_step_name(c), why->text);
    c->group.steps = 1;
}

// Captures the graph of a set of slots, if there is none for these batches.
static bool has_graph(RtCuda *c, int set) {
    RtStepGroup *p = &c->group;
    RtError why;
    if (p->step != c->step && (p->graph[0] != NULL || p->graph[1] != NULL)) {
        rt_cuda_check(c, rt_driver_good(&c->cu, c->cu.stream_sync(c->stream),
                                        &c->error, "finish its queued work"));
        rt_step_group_close(c);
    }
    p->step = c->step;
    if (p->graph[set] != NULL)
        return are_like(p, &p->batch[set]);
    p->batch[set] = p->held[0];
    if (!are_like(p, &p->batch[set]))
        return false;
    if (rt_graph_build(c, queue_group, &set, &p->graph[set], &why))
        return true;
    ungroup(c, &why);
    return false;
}

// The batches were copied in turn, so the last one's is the last wait.  False:
// the driver refuses the graph, and has launched nothing of it.
static bool launch_group(RtCuda *c, int set) {
    const RtStepGroup *p = &c->group;
    int last = p->first + p->steps - 1;
    rt_cuda_check(c, rt_copy_stream_wait(&c->copies, last, &c->error));
    if (!rt_driver_good(&c->cu, c->cu.graph_launch(p->graph[set], c->stream),
                        &c->error, "launch the graph of a group of steps")) {
        rt_cuda_check(c, c->cu.stream_sync(c->stream) == CUDA_SUCCESS);
        ungroup(c, &c->error);
        return false;
    }
    for (int i = 0; i < p->steps; i++)
        rt_cuda_check(
            c, rt_copy_stream_empty(&c->copies, p->first + i, &c->error));
    return true;
}

static void run_group(RtCuda *c) {
    RtStepGroup *p = &c->group;
    int set = p->first / p->steps;
    RtStepGraph *g = c->running;
    rt_cuda_check(c, rt_timing_events_read(&g->events, &c->error));
    if (!has_graph(c, set) || !launch_group(c, set)) {
        rt_step_group_flush(c);
        return;
    }
    g->runs += p->steps;
    g->untimed += p->steps;
    g->events.runs += p->steps;
    p->batches = p->runs = 0;
}

// ---- holding ----

// Whether the next run of the last step may wait.  Observers and hooks look at
// each one.
static bool may_hold(const RtCuda *c, int ahead) {
    const RtDevice *d = &c->device;
    return c->group.steps > 1 && c->step >= 0 &&
           c->plan->step[c->step].kind == RT_TRAIN && d->watch == NULL &&
           d->hooks == NULL && d->segment == NULL && d->shards == 0 &&
           c->spans.trace == NULL && c->timer == NULL &&
           c->running == &c->graph[c->step] &&
           rt_step_graph_replays(c->running, ahead);
}

// A group begins with a set of slots.
static void begin_group(RtCuda *c) {
    int set = (int)divide_up(c->copies.next, c->group.steps) % 2;
    c->group.first = c->copies.next = set * c->group.steps;
}

int64_t rt_cuda_submit_batch(RtDevice *d, const RtPiece *piece, int count) {
    RtCuda *c = rt_cuda_of(d);
    RtStepGroup *p = &c->group;
    int slot;
    if (p->batches > p->runs || !may_hold(c, p->batches) ||
        count > RT_MAX_INPUTS) {
        rt_step_group_flush(c);
        rt_cuda_check(c, rt_copy_stream_submit(&c->copies, c->arena, piece,
                                               count, &c->error));
        return c->copies.submitted;
    }
    if (p->batches == 0)
        begin_group(c);
    RtHeldBatch *b = &p->held[p->batches++];
    memcpy(b->piece, piece, (size_t)count * sizeof *piece);
    b->pieces = count;
    rt_cuda_check(
        c, rt_copy_stream_fill(&c->copies, piece, count, &slot, &c->error));
    return c->copies.submitted;
}

bool rt_step_group_run(RtCuda *c, const RtStep *step) {
    RtStepGroup *p = &c->group;
    if (p->batches == p->runs || step != &c->plan->step[c->step] ||
        !may_hold(c, p->runs))
        return false;
    if (++p->runs == p->steps)
        run_group(c);
    return true;
}
