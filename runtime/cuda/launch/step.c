// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replay: steps are recorded by capturing a stream.

#include "runtime/cuda/launch/step.h"

// Runs that one with marks stands for.  Each mark is a node of the graph
// between two launches, so that where a node takes no longer than a launch does
// on the whole, marks cost less than one part in so many.
enum { MARK_EVERY = 128 };

bool rt_step_graph_open(RtStepGraph *r, const RtDriver *cu, int marks,
                        RtError *e) {
    *r = (RtStepGraph){.is_measured = marks > 0};
    return rt_timing_events_open(&r->marks, cu, marks, e);
}

void rt_step_graph_close(RtStepGraph *r) {
    const RtDriver *cu = r->marks.cu;
    if (r->plain != NULL)
        cu->graph_exec_free(r->plain);
    if (r->marked != NULL)
        cu->graph_exec_free(r->marked);
    rt_timing_events_close(&r->marks);
    *r = (RtStepGraph){0};
}

// Launches of other threads do not disturb the capture, nor does it them.  It
// has to be ended whatever became of it; the first error is its reason.
static bool capture(const RtMaker *maker, bool marked, CUgraph *graph,
                    RtError *e) {
    const RtDriver *cu = maker->cu;
    RtError later;
    if (!rt_driver_good(cu,
                        cu->capture_begin(maker->stream,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                        e, "begin to capture a step"))
        return false;
    bool made = maker->make(maker->arg, true, marked, e);
    return rt_driver_good(cu, cu->capture_end(maker->stream, graph),
                          made ? e : &later, "capture a step") &&
           made;
}

static bool upload(const RtMaker *maker, CUgraphExec made, RtError *e) {
    const RtDriver *cu = maker->cu;
    if (rt_driver_good(cu, cu->graph_upload(made, maker->stream), e,
                       "upload the graph of a step to the GPU"))
        return true;
    cu->graph_exec_free(made);
    return false;
}

static bool record(const RtMaker *maker, bool marked, CUgraphExec *out,
                   RtError *e) {
    const RtDriver *cu = maker->cu;
    CUgraph graph = NULL;
    CUgraphExec made = NULL;
    bool good = capture(maker, marked, &graph, e) &&
                rt_driver_good(cu, cu->graph_instantiate(&made, graph, 0), e,
                               "instantiate the graph of a step") &&
                upload(maker, made, e);
    if (graph != NULL)
        cu->graph_free(graph);
    *out = good ? made : NULL;
    return good;
}

static bool is_graph(const RtStepGraph *r) {
    return r->runs > 1 && !r->one_by_one;
}

// What the runs so far have measured is not what graphs will take.
static void record_marked(RtStepGraph *r, const RtMaker *maker) {
    RtError why;
    r->marks.pending = false;
    rt_timing_events_forget(&r->marks);
    rt_timing_events_begin(&r->marks);
    r->is_measured = record(maker, true, &r->marked, &why);
    if (!r->is_measured)
        maker->refused(maker->arg, true, &why);
}

static void record_both(RtStepGraph *r, const RtMaker *maker) {
    RtError why;
    r->one_by_one = !record(maker, false, &r->plain, &why);
    if (r->one_by_one)
        maker->refused(maker->arg, false, &why);
    else if (r->is_measured)
        record_marked(r, maker);
}

static bool is_due(const RtStepGraph *r) {
    return r->is_measured && !r->marks.pending &&
           (r->marks.reads == 0 || r->unmarked + 1 >= MARK_EVERY);
}

// A graph that is not taken, by a GPU that has not failed, has done nothing.
static bool launch(RtStepGraph *r, const RtMaker *maker, bool marked,
                   RtError *e) {
    const RtDriver *cu = maker->cu;
    CUresult result =
        cu->graph_launch(marked ? r->marked : r->plain, maker->stream);
    if (rt_driver_good(cu, result, e, "launch the graph of a step"))
        return true;
    r->one_by_one = cu->stream_sync(maker->stream) == CUDA_SUCCESS;
    if (r->one_by_one)
        maker->refused(maker->arg, false, e);
    return false;
}

static bool run(RtStepGraph *r, const RtMaker *maker, bool marked, RtError *e) {
    if (is_graph(r)) {
        bool good = launch(r, maker, marked, e);
        if (!r->one_by_one)
            return good;
    }
    if (marked)
        rt_timing_events_begin(&r->marks);
    return maker->make(maker->arg, false, marked, e);
}

bool rt_step_graph_run(RtStepGraph *r, const RtMaker *maker, RtError *e) {
    r->runs++;
    if (!rt_timing_events_read(&r->marks, e))
        return false;
    if (is_graph(r) && r->plain == NULL)
        record_both(r, maker);
    bool marked = is_due(r);
    r->marks.runs++;
    r->unmarked = marked ? 0 : r->unmarked + 1;
    return run(r, maker, marked, e) &&
           (!marked || rt_timing_events_end(&r->marks, maker->stream, e));
}
