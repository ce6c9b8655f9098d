// Capture and graphs.
#include "tests/runtime/cuda/double/check_double.h"

#include <signal.h>

static const CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

// A stream that is being captured.
static CUstream capturing(void) {
    double_open("2");
    CUstream s = double_stream();
    GOOD(cuStreamBeginCapture_v2(s, mode));
    return s;
}

static void ends_with(CUstream s, CUresult error) {
    CUgraph graph;
    ck_assert_int_eq(cuStreamEndCapture(s, &graph), error);
    ck_assert_ptr_null(graph);
}

START_TEST(a_graph_does_it_again) {
    unsigned char got = 0;
    CUgraph graph;
    CUgraphExec exec;
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(2);
    GOOD(cuMemsetD8Async(p, 1, 2, s));
    GOOD(cuStreamBeginCapture_v2(s, mode));
    GOOD(cuMemcpyDtoDAsync_v2(p + 1, p, 1, s));
    GOOD(cuStreamEndCapture(s, &graph));
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cuGraphDestroy(graph));
    for (unsigned char i = 5; i < 8; i++) {
        GOOD(cuMemsetD8Async(p, i, 1, s));
        GOOD(cuMemcpyDtoHAsync_v2(&got, p + 1, 1, s));
        ck_assert_int_eq(got, i == 5 ? 1 : i - 1);
        GOOD(cuGraphLaunch(exec, s));
        GOOD(cuMemcpyDtoHAsync_v2(&got, p + 1, 1, s));
        ck_assert_int_eq(got, i);
    }
    GOOD(cuGraphExecDestroy(exec));
}
END_TEST

START_TEST(what_waits_or_allocates_ends_a_capture) {
    CUdeviceptr p;
    CUstream s = capturing();
    const CUresult error = _i == 0   ? cuStreamSynchronize(s)
                           : _i == 1 ? cuMemAlloc_v2(&p, 1)
                           : _i == 2 ? cuCtxSynchronize()
                                     : cuStreamQuery(s);
    ck_assert_int_eq(error, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_with(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

START_TEST(pageable_memory_is_not_captured) {
    char host = 0;
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(1);
    GOOD(cuStreamBeginCapture_v2(s, mode));
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(p, &host, 1, s),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_with(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

// A second stream joins the capture and does something; whether it is waited
// for.
static CUstream forked(bool joined) {
    CUevent fork, join;
    double_open("2");
    CUstream s = double_stream(), t = double_stream();
    CUdeviceptr p = double_memory(1);
    GOOD(cuEventCreate(&fork, 0));
    GOOD(cuEventCreate(&join, 0));
    GOOD(cuStreamBeginCapture_v2(s, mode));
    GOOD(cuEventRecord(fork, s));
    GOOD(cuStreamWaitEvent(t, fork, 0));
    GOOD(cuMemsetD8Async(p, 1, 1, t));
    GOOD(cuEventRecord(join, t));
    ck_assert_int_eq(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    if (joined)
        GOOD(cuStreamWaitEvent(s, join, 0));
    return s;
}

START_TEST(a_fork_must_join) {
    CUgraph graph;
    GOOD(cuStreamEndCapture(forked(true), &graph));
    ends_with(forked(false), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}
END_TEST

START_TEST(events_from_outside_are_refused) {
    CUevent e;
    double_open("2");
    CUstream s = double_stream();
    GOOD(cuEventCreate(&e, 0));
    GOOD(cuEventRecord(e, s));
    GOOD(cuStreamBeginCapture_v2(s, mode));
    ck_assert_int_eq(cuStreamWaitEvent(s, e, 0),
                     CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    ends_with(s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

START_TEST(a_graph_can_take_times) {
    float ms = 0;
    CUgraph graph;
    CUgraphExec exec;
    CUevent from, to;
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(1 << 20);
    GOOD(cuEventCreate(&from, 0));
    GOOD(cuEventCreate(&to, 0));
    GOOD(cuStreamBeginCapture_v2(s, mode));
    GOOD(cuEventRecordWithFlags(from, s, CU_EVENT_RECORD_EXTERNAL));
    GOOD(cuMemsetD8Async(p, 0, 1 << 20, s));
    GOOD(cuEventRecordWithFlags(to, s, CU_EVENT_RECORD_EXTERNAL));
    GOOD(cuStreamEndCapture(s, &graph));
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cuGraphLaunch(exec, s));
    GOOD(cuStreamSynchronize(s));
    GOOD(cuEventElapsedTime(&ms, from, to));
    ck_assert_float_gt(ms, 0.0f);
}
END_TEST

START_TEST(a_graph_is_gone_when_it_is_destroyed) {
    CUgraph graph;
    CUgraphExec exec;
    CUstream s = capturing();
    GOOD(cuStreamEndCapture(s, &graph));
    GOOD(cuGraphDestroy(graph));
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuGraphInstantiateWithFlags(&exec, graph, 0),
                     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

// A graph does not keep its events alive.
START_TEST(events_of_a_graph_stay) {
    CUgraph graph;
    CUgraphExec exec;
    CUevent e;
    CUstream s = capturing();
    GOOD(cuEventCreate(&e, 0));
    GOOD(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL));
    GOOD(cuStreamEndCapture(s, &graph));
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cuEventDestroy_v2(e));
    GOOD(cuGraphLaunch(exec, s));
    cuStreamSynchronize(s);
}
END_TEST

Suite *capture_suite(void) {
    Suite *s = suite_create("capture");
    TCase *c = tcase_create("capture");
    tcase_add_test(c, a_graph_does_it_again);
    tcase_add_loop_test(c, what_waits_or_allocates_ends_a_capture, 0, 4);
    tcase_add_test(c, pageable_memory_is_not_captured);
    tcase_add_test(c, a_fork_must_join);
    tcase_add_test(c, events_from_outside_are_refused);
    tcase_add_test(c, a_graph_can_take_times);
    tcase_add_test(c, a_graph_is_gone_when_it_is_destroyed);
    tcase_add_test_raise_signal(c, events_of_a_graph_stay, SIGABRT);
    suite_add_tcase(s, c);
    return s;
}
