// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step: its first run launches one by one, since libraries prepare then.  The
// second captures a CUDA graph and launches it, as later runs do.
//
// A run with hooks has graphs of its own, which replay what the hooks queue.
//
// Several training steps may be one launch (step_group.c).
//
// The path of a run: rt_cuda_run, at the end of this file; then one launch of
// the graph, or rt_cuda_launch_step and the step's function in the trainer,
// which calls rt_cuda_phase, rt_cuda_launch and rt_cuda_library_call in order
// (launch.c).
//
// A step with calls on the host is never captured.  If the driver or a library
// refuses a capture or its graph, the step goes on one by one.

#include "runtime/cuda/launch/launch.h"

// One timed run stands for this many.  Each event is a node of the graph
// between two launches, so events cost less than one part in TIMED_EVERY if a
// node takes no longer than a launch.
enum { TIMED_EVERY = 128 };

bool rt_step_graph_open(RtStepGraph *g, const RtDriver *cu, int events,
                        RtError *e) {
    *g = (RtStepGraph){.has_times = events > 0};
    return rt_timing_events_open(&g->events, cu, events, e);
}

void rt_step_graph_close(RtStepGraph *g) {
    const RtDriver *cu = g->events.cu;
    if (g->plain != NULL)
        cu->graph_exec_free(g->plain);
    if (g->timed != NULL)
        cu->graph_exec_free(g->timed);
    rt_timing_events_close(&g->events);
    *g = (RtStepGraph){0};
}

// ---- capture: the second run ----

// The capture and launches of other threads do not affect each other.  The
// function ends the capture after an error, too, and reports the first one.
static bool capture(RtCuda *c, RtEnqueue *queue, const void *context,
                    CUgraph *graph, RtError *e) {
    RtError later;
    if (!rt_driver_good(
            &c->cu,
            c->cu.capture_begin(c->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            e, "begin to capture a step"))
        return false;
    queue(c, context);
    bool refused = c->is_refused;
    c->is_refused = false;
    if (refused)
        *e = c->why;
    return rt_driver_good(&c->cu, c->cu.capture_end(c->stream, graph),
                          refused ? &later : e, "capture a step") &&
           !refused;
}

static bool upload(const RtCuda *c, CUgraphExec exec, RtError *e) {
    if (rt_driver_good(&c->cu, c->cu.graph_upload(exec, c->stream), e,
                       "upload the graph of a step to the GPU"))
        return true;
    c->cu.graph_exec_free(exec);
    return false;
}

bool rt_graph_build(RtCuda *c, RtEnqueue *queue, const void *context,
                    CUgraphExec *out, RtError *e) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    bool good = capture(c, queue, context, &graph, e) &&
                rt_driver_good(&c->cu, c->cu.graph_instantiate(&exec, graph, 0),
                               e, "instantiate the graph of a step") &&
                upload(c, exec, e);
    if (graph != NULL)
        c->cu.graph_free(graph);
    *out = good ? exec : NULL;
    return good;
}

static void queue_step(RtCuda *c, const void *timed) {
    rt_cuda_launch_step(c, true, *(const bool *)timed);
}

static bool build_graph(RtCuda *c, bool timed, CUgraphExec *out, RtError *e) {
    return rt_graph_build(c, queue_step, &timed, out, e);
}

// Reports why a step runs in a lesser way.
static void warn(const RtCuda *c, const char *how, const RtError *why) {
    rt_warn("%s: step %s %s: %s", c->name, rt_cuda_step_name(c), how,
            why->text);
}

// Captures a second graph, with the events that measure phases.  Drops the
// times of runs so far, as a graph takes less.
static void capture_timed(RtCuda *c, RtStepGraph *g) {
    RtError why;
    g->events.pending = false;
    rt_timing_events_forget(&g->events);
    rt_timing_events_begin(&g->events);
    g->has_times = build_graph(c, true, &g->timed, &why);
    if (!g->has_times)
        warn(c, "has no per-phase timing", &why);
}

static void leave_graphs(RtCuda *c, RtStepGraph *g, const RtError *why) {
    g->one_by_one = true;
    warn(c, "runs without a CUDA graph, which is slower", why);
}

static void capture_step(RtCuda *c, RtStepGraph *g) {
    RtError why;
    if (!build_graph(c, false, &g->plain, &why))
        leave_graphs(c, g, &why);
    else if (g->has_times)
        capture_timed(c, g);
}

// ---- replay: later runs ----

static bool is_graph(const RtStepGraph *g) {
    return g->runs > 1 && !g->one_by_one;
}

// False: the driver refuses the graph, and has launched nothing of it.
static bool launch_graph(RtCuda *c, RtStepGraph *g, bool timed) {
    CUresult result =
        c->cu.graph_launch(timed ? g->timed : g->plain, c->stream);
    if (rt_driver_good(&c->cu, result, &c->error, "launch the graph of a step"))
        return true;
    rt_cuda_check(c, c->cu.stream_sync(c->stream) == CUDA_SUCCESS);
    leave_graphs(c, g, &c->error);
    return false;
}

static bool is_due(const RtStepGraph *g, int ahead) {
    return g->has_times && !g->events.pending &&
           (g->events.reads == 0 || g->untimed + ahead + 1 >= TIMED_EVERY);
}

bool rt_step_graph_replays(const RtStepGraph *g, int ahead) {
    return g->plain != NULL && !g->one_by_one && !is_due(g, ahead);
}

void rt_step_graph_run(RtCuda *c, RtStepGraph *g, RtStepHooks *hooks) {
    rt_cuda_check(c, rt_timing_events_read(&g->events, &c->error));
    if (is_graph(g) && g->plain == NULL)
        capture_step(c, g);
    bool timed = is_due(g, 0);
    g->events.runs++;
    g->untimed = timed ? 0 : g->untimed + 1;
    bool replayed = is_graph(g) && launch_graph(c, g, timed);
    if (!replayed) {
        if (timed)
            rt_timing_events_begin(&g->events);
        rt_cuda_launch_step(c, false, timed);
    } else if (hooks != NULL) {
        hooks->replayed = true;
    }
    if (timed)
        rt_cuda_check(c,
                      rt_timing_events_end(&g->events, c->stream, &c->error));
}

// A segment has a graph for each shard, whose addresses are others, and is not
// timed.
static RtStepGraph *graph_of(const RtCuda *c) {
    const RtSegment *p = c->device.segment;
    if (p != NULL)
        return &c->segment[c->step][p->number * c->device.shards + p->shard];
    return &c->graph[c->step +
                     (c->device.hooks != NULL ? c->plan->num_steps : 0)];
}

// A step that is watched or traced launches one by one.
void rt_cuda_run(RtDevice *d, const RtStep *step) {
    RtCuda *c = rt_cuda_of(d);
    if (rt_step_group_run(c, step))
        return;
    rt_step_group_flush(c);
    c->step = (int)(step - c->plan->step);
    RtStepGraph *g = graph_of(c);
    c->running = g;
    g->runs++;
    if (d->watch != NULL || c->spans.trace != NULL)
        rt_cuda_launch_step(c, false, false);
    else
        rt_step_graph_run(c, g, d->hooks);
}
