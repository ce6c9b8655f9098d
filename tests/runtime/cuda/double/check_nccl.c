// The double of NCCL ends ranks that differ, or capture what has not run.
#include "tests/runtime/cuda/double/check_double.h"
#include "tests/runtime/cuda/double/nccl.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100 };

typedef struct {
    ncclComm_t comm;
    CUstream stream;
    CUdeviceptr memory; // of COUNT floats
    int rank;
} Rank;

static void settle(ncclComm_t c, ncclResult_t result) {
    while (result == ncclInProgress)
        if (ncclCommGetAsyncError(c, &result) != ncclSuccess)
            abort();
    if (result != ncclSuccess)
        _exit(EXIT_FAILURE);
}

static void reduce(const Rank *r, size_t count) {
    void *at = (void *)(uintptr_t)r->memory;
    settle(r->comm, ncclAllReduce(at, at, count, ncclFloat32, ncclSum, r->comm,
                                  r->stream));
}

static void broadcast(const Rank *r) {
    void *at = (void *)(uintptr_t)r->memory;
    settle(r->comm,
           ncclBroadcast(at, at, COUNT, ncclUint8, 0, r->comm, r->stream));
}

static void capture(const Rank *r, size_t first, size_t second) {
    CUgraph graph;
    GOOD(cuStreamBeginCapture_v2(r->stream,
                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    reduce(r, first);
    reduce(r, second);
    GOOD(cuStreamEndCapture(r->stream, &graph));
}

// ---- cases: the ranks do the same, or differ in one thing ----

static void same_calls(const Rank *r) {
    reduce(r, COUNT);
    broadcast(r);
    capture(r, 3, 4);
}

static void other_calls(const Rank *r) {
    if (r->rank == 0)
        reduce(r, COUNT);
    else
        broadcast(r);
}

static void other_counts(const Rank *r) {
    reduce(r, COUNT - (size_t)r->rank);
}

// The other rank must have captured its calls before.
static void other_captures(const Rank *r) {
    reduce(r, COUNT);
    GOOD(cuStreamSynchronize(r->stream));
    if (r->rank == 0)
        capture(r, 3, 4);
    broadcast(r);
    GOOD(cuStreamSynchronize(r->stream));
    if (r->rank == 1)
        capture(r, 4, 3);
}

static void captures_first(const Rank *r) {
    capture(r, 3, 4);
}

static void calls_early(const Rank *r) {
    void *at = (void *)(uintptr_t)r->memory;
    for (int i = 0; i < 2; i++)
        ncclAllReduce(at, at, COUNT, ncclFloat32, ncclSum, r->comm, r->stream);
}

static const struct {
    void (*run)(const Rank *r);
    bool ends; // a rank
} cases[] = {{same_calls, false},    {other_calls, true},
             {other_counts, true},   {other_captures, true},
             {captures_first, true}, {calls_early, true}};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

static void rank_runs(ncclUniqueId id, int rank, int which) {
    ncclConfig_t config = {
        .size = sizeof config, .magic = 0xcafebeef, .version = 21400};
    CUcontext context;
    CUdevice device;
    Rank r = {.rank = rank};
    GOOD(cuInit(0));
    GOOD(cuDeviceGet(&device, rank));
    GOOD(cuDevicePrimaryCtxRetain(&context, device));
    GOOD(cuCtxSetCurrent(context));
    r.stream = double_stream();
    r.memory = double_memory(COUNT * sizeof(float));
    ncclResult_t result = ncclCommInitRankConfig(&r.comm, 2, id, rank, &config);
    settle(r.comm, result);
    cases[which].run(&r);
    GOOD(cuStreamSynchronize(r.stream));
    _exit(EXIT_SUCCESS);
}

START_TEST(ranks_that_differ_end) {
    ncclUniqueId id;
    pid_t process[2];
    bool ended = false;
    setenv("SINTER_DOUBLE_DEVICES", "2", 1);
    ck_assert_int_eq(ncclGetUniqueId(&id), ncclSuccess);
    for (int rank = 0; rank < 2; rank++)
        if ((process[rank] = fork()) == 0)
            rank_runs(id, rank, _i);
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t one = wait(&status);
        bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        ended |= aborted;
        ck_assert(aborted || WIFSIGNALED(status) || status == 0);
        // The other may wait for it.
        if (aborted)
            kill(one == process[0] ? process[1] : process[0], SIGKILL);
    }
    ck_assert(ended == cases[_i].ends);
}
END_TEST

Suite *nccl_suite(void) {
    Suite *s = suite_create("nccl");
    TCase *c = tcase_create("nccl");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, ranks_that_differ_end, 0, NUM_CASES);
    suite_add_tcase(s, c);
    return s;
}
