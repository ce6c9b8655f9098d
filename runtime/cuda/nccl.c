// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NCCL: the collectives of ranks that have a GPU each.
//
// A sum goes piece by piece: grouped sends and receives give each rank its
// share of every rank's terms, a built-in kernel adds them as the tree over
// ranks, and an all-gather sends the shares of the result to all.  Its bits so
// depend on no order of the library's.  If each machine has a subtree of that
// tree, its ranks exchange and add first, and one sum of each machine goes to
// the others.  `fast` is one all-reduce.
//
// All of it is work of a stream of its own, behind an event of the device's
// stream that is recorded when the terms are stored; the device's stream waits
// for its end.  With a step's hooks it is recorded with the step.  The first
// run of a step is not recorded, so the library has made its connections before
// it is captured, and all ranks capture the same calls in the same order.  A sum
// between two segments of a step is queued between their graphs.
//
// Flags are exchanged before the sums of a step, and copied to the host's
// memory with a number by which the host knows that they have come, while the
// GPU computes the step.
//
// The communicator does not block: calls return while the library works, and
// its state is polled.  Abort may come from another thread at any time.
#define _POSIX_C_SOURCE 200809L

#include "runtime/cuda/nccl.h"

#include "runtime/cuda/launch/launch.h"
#include "runtime/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
typedef CUstream cudaStream_t;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/nccl.def"
};

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
_Static_assert(sizeof(ncclUniqueId) == RT_UNIQUE_ID_BYTES, "as it is sent");

// NCCL 2.14 was the first with a configuration, and had this one.  Later
// versions have more members behind; `size` and `version` tell them that it
// ends here.
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig_t;

enum {
    CONFIG_MAGIC = 0xcafebeef,
    CONFIG_VERSION = 21400,
    POLL_MICROSECONDS = 20,
    WATCHDOG_SECONDS = 10,
    FLAG_BYTES = 256,           // keeps what is behind it aligned
    FLAG_INTS = 2,              // of a Flag
    HOST_FLOATS = 1 << 18,      // a piece of memory of the host
    MAX_PIECE_FLOATS = 1 << 24, // 64 MiB
    SHARE_FLOATS = 4,           // shares are multiples: 16 bytes
    FLOATS_OF_THREAD = 4
};

typedef struct {
    void *library;
#define NCCL(member, function, arguments) ncclResult_t(*member) arguments;
#include "runtime/cuda/nccl.def"
    const char *(*error_string)(ncclResult_t result);
    const char *(*last_error)(ncclComm_t comm);
} Functions;

// A rank's flag, and the number of the exchange: eight bytes that a copy
// writes at once.
typedef struct {
    int32_t number, flag;
} Flag;
_Static_assert(sizeof(Flag) == sizeof(int64_t), "as it is read");

typedef struct {
    RtCollectives base;
    Functions nccl;
    RtCuda *cuda;
    int rank, size;
    // Ranks of this machine, 1 if there is one level; machines then.
    int near, far;
    ncclComm_t comm;
    const RtFunction *add; // the built-in kernel
    CUstream stream;
    CUevent began, done, polled;
    // A flag, a piece of memory of the host, and all ranks' terms of a share.
    CUdeviceptr memory;
    size_t piece;      // floats of a piece in the arena
    Flag *flag;        // pinned: this rank's, and the largest of all ranks
    int32_t exchanged; // flags so far
    int *flag_to;      // of a sum's caller; NULL: it is finished
} Nccl;

// ---- the library ----

static const char *const files[] = {"libnccl.so.2", NULL};

static const RtSymbol symbols[] = {
#define NCCL(member, function, arguments)                                      \
    {#function, offsetof(Functions, member)},
#include "runtime/cuda/nccl.def"
    {"ncclGetErrorString", offsetof(Functions, error_string)},
    {"ncclGetLastError", offsetof(Functions, last_error)},
};

static const RtLibrary library = {
    .needed = "several GPUs need",
    .files = files,
    .remedy = "install NCCL 2.14 or later, or add gradients in the host's "
              "memory with --collectives=shared",
    .status = EXIT_DEVICE,
    .symbol = symbols,
    .num_symbols = sizeof symbols / sizeof symbols[0],
};

static bool open_library(Functions *f, RtError *e) {
    f->library = rt_library_open(&library, f, e);
    return f->library != NULL;
}

// A variable that the user has set stays.
static bool set_variable(const char *name, const char *value, RtError *e) {
    return setenv(name, value, 0) == 0 ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

// The order of the library's own sums: NVLink SHARP adds in an order that
// changes from run to run; ring and tree, and the protocols, divide the terms
// in other ways.
static bool fix_order(bool fast, RtError *e) {
    return !fast || (set_variable("NCCL_NVLS_ENABLE", "0", e) &&
                     set_variable("NCCL_ALGO", "Ring", e) &&
                     set_variable("NCCL_PROTO", "Simple", e));
}

static bool unique_id(char id[RT_UNIQUE_ID_BYTES], RtError *e) {
    Functions f;
    ncclUniqueId own;
    if (!open_library(&f, e))
        return false;
    ncclResult_t result = f.unique_id(&own);
    memcpy(id, own.internal, sizeof own.internal);
    return result == ncclSuccess ||
           rt_fail(e, EXIT_DEVICE,
                   "NCCL cannot start: %s; %s; NCCL_DEBUG=WARN "
                   "shows more",
                   f.error_string(result), f.last_error(NULL));
}

// ---- calls ----

static const char *remedy_of(ncclResult_t result) {
    switch (result) {
    case ncclInvalidUsage:
        return "each rank needs a GPU of its own, or --collectives=shared";
    case ncclRemoteError:
        return "another rank has ended";
    default:
        return "NCCL_DEBUG=WARN shows more";
    }
}

static bool fail(const Nccl *n, ncclResult_t result, const char *what,
                 RtError *e) {
    return rt_fail(e, EXIT_DEVICE,
                   "rank %d cannot %s: NCCL reports: %s; %s; %s", n->rank, what,
                   n->nccl.error_string(result), n->nccl.last_error(n->comm),
                   remedy_of(result));
}

// Waits until a call is over that returned `result`.
static bool settle(Nccl *n, ncclResult_t result, const char *what, RtError *e) {
    while (result == ncclInProgress) {
        nanosleep(&(struct timespec){.tv_nsec = POLL_MICROSECONDS * 1000},
                  NULL);
        ncclResult_t asked = n->nccl.async_error(n->comm, &result);
        result = asked != ncclSuccess ? asked : result;
    }
    return result == ncclSuccess || fail(n, result, what, e);
}

// The first result of a group that is an error.
static ncclResult_t worse(ncclResult_t a, ncclResult_t b) {
    return a == ncclSuccess || a == ncclInProgress ? b : a;
}

// An error is most often the end of another rank, which the watchdog reports.
static void check(const Nccl *n, bool good) {
    if (good)
        return;
    nanosleep(&(struct timespec){.tv_sec = WATCHDOG_SECONDS}, NULL);
    rt_cuda_check(n->cuda, false);
}

static void *pointer(CUdeviceptr at) {
    return (void *)(uintptr_t)at; // NOLINT: an address of the device
}

static CUdeviceptr floats(CUdeviceptr at, size_t count) {
    return at + count * sizeof(float);
}

static CUdeviceptr host_piece(const Nccl *n) {
    return n->memory + FLAG_BYTES;
}

static CUdeviceptr terms_of_all(const Nccl *n) {
    return floats(host_piece(n), HOST_FLOATS);
}

// ---- sums ----

// Sends `count` floats of `from + i * step` to rank i, for all of them, and
// receives as many of each, one rank's behind the other's.
static ncclResult_t exchange(Nccl *n, CUdeviceptr from, size_t step,
                             CUdeviceptr to, size_t count) {
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < n->size && count > 0; i++) {
        size_t rank = (size_t)i;
        result = worse(result,
                       n->nccl.send(pointer(floats(from, rank * step)), count,
                                    ncclFloat32, i, n->comm, n->stream));
        result = worse(result,
                       n->nccl.receive(pointer(floats(to, rank * count)), count,
                                       ncclFloat32, i, n->comm, n->stream));
    }
    return result;
}

// The same for the shares of this machine's ranks and of those that have their
// numbers on other machines: to rank i of the machine those of its number.
static ncclResult_t exchange_near(Nccl *n, CUdeviceptr from, CUdeviceptr to,
                                  size_t share) {
    ncclResult_t result = ncclSuccess;
    int first = n->rank / n->near * n->near, next = 0;
    for (int i = 0; i < n->near && share > 0; i++)
        for (int far = 0; far < n->far; far++) {
            size_t rank = (size_t)(far * n->near + i);
            size_t index = (size_t)next++;
            result =
                worse(result,
                      n->nccl.send(pointer(floats(from, rank * share)), share,
                                   ncclFloat32, first + i, n->comm, n->stream));
            result = worse(result,
                           n->nccl.receive(pointer(floats(to, index * share)),
                                           share, ncclFloat32, first + i,
                                           n->comm, n->stream));
        }
    return result;
}

// The same for one share of each machine.
static ncclResult_t exchange_far(Nccl *n, CUdeviceptr from, CUdeviceptr to,
                                 size_t share) {
    ncclResult_t result = n->nccl.group_start();
    for (int far = 0; far < n->far; far++) {
        int peer = far * n->near + n->rank % n->near;
        size_t at = (size_t)far * share;
        result =
            worse(result, n->nccl.send(pointer(floats(from, at)), share,
                                       ncclFloat32, peer, n->comm, n->stream));
        result = worse(result,
                       n->nccl.receive(pointer(floats(to, at)), share,
                                       ncclFloat32, peer, n->comm, n->stream));
    }
    return worse(result, n->nccl.group_end());
}

// Adds so many ranks' `count` floats, one rank's behind the other's.
static bool add(const Nccl *n, CUdeviceptr terms, CUdeviceptr to, size_t count,
                int ranks, RtError *e) {
    int stride = (int)count;
    CUdeviceptr end = floats(to, count);
    size_t blocks = count / (RT_BUILTIN_THREADS * FLOATS_OF_THREAD) + 1;
    if (blocks > (size_t)n->add->resident)
        blocks = (size_t)n->add->resident;
    void *argument[] = {&to, &end, &terms, &stride, &ranks};
    const RtDriver *cu = &n->cuda->cu;
    return count == 0 ||
           rt_driver_good(cu,
                          cu->launch(n->add->function, (unsigned)blocks, 1, 1,
                                     RT_BUILTIN_THREADS, 1, 1, 0, n->stream,
                                     argument, NULL),
                          e, "launch kernel sum_ranks");
}

// Adds the terms of this machine in their place, where nobody reads them any
// more, and those of all machines.
static bool add_levels(Nccl *n, CUdeviceptr at, CUdeviceptr terms,
                       CUdeviceptr own, size_t share, RtError *e) {
    return share == 0 ||
           (add(n, terms, at, (size_t)n->far * share, n->near, e) &&
            settle(n, exchange_far(n, at, terms, share), "exchange gradients",
                   e) &&
            add(n, terms, own, share, n->far, e));
}

// Every rank adds the rest that no shares are made of.
static bool sum_as_tree(Nccl *n, CUdeviceptr at, size_t count, RtError *e) {
    static const char what[] = "exchange gradients";
    size_t size = (size_t)n->size, rank = (size_t)n->rank;
    size_t share = count / size / SHARE_FLOATS * SHARE_FLOATS;
    size_t rest = count - share * size;
    CUdeviceptr terms = terms_of_all(n), tail = floats(at, share * size);
    CUdeviceptr tails = floats(terms, share * size);
    CUdeviceptr own = floats(at, rank * share);
    ncclResult_t result = n->nccl.group_start();
    result = worse(result, n->near > 1 ? exchange_near(n, at, terms, share)
                                       : exchange(n, at, share, terms, share));
    result = worse(result, exchange(n, tail, 0, tails, rest));
    result = worse(result, n->nccl.group_end());
    return settle(n, result, what, e) &&
           (n->near > 1 ? add_levels(n, at, terms, own, share, e)
                        : add(n, terms, own, share, n->size, e)) &&
           add(n, tails, tail, rest, n->size, e) &&
           (share == 0 ||
            settle(n,
                   n->nccl.all_gather(pointer(own), pointer(at), share,
                                      ncclFloat32, n->comm, n->stream),
                   what, e));
}

static bool sum_piece(Nccl *n, CUdeviceptr at, size_t count, bool fast,
                      RtError *e) {
    return fast ? settle(n,
                         n->nccl.all_reduce(pointer(at), pointer(at), count,
                                            ncclFloat32, ncclSum, n->comm,
                                            n->stream),
                         "add gradients", e)
                : sum_as_tree(n, at, count, e);
}

// Work of n's stream comes after earlier work of the device's, and before later
// work.
static bool fork_stream(const Nccl *n, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    return rt_driver_good(cu, cu->event_record(n->began, n->cuda->stream), e,
                          "record the start of a collective") &&
           rt_driver_good(cu, cu->stream_wait(n->stream, n->began, 0), e,
                          "wait for a step");
}

static bool join_stream(const Nccl *n, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    return rt_driver_good(cu, cu->event_record(n->done, n->stream), e,
                          "record the end of a collective") &&
           rt_driver_good(cu, cu->stream_wait(n->cuda->stream, n->done, 0), e,
                          "wait for a collective");
}

static bool sum_range(Nccl *n, CUdeviceptr at, size_t count, bool fast,
                      RtError *e) {
    bool good = true;
    for (size_t done = 0; good && done < count; done += n->piece) {
        size_t left = count - done;
        good = sum_piece(n, floats(at, done), left < n->piece ? left : n->piece,
                         fast, e);
    }
    return good;
}

// ---- flags ----

static void set_flag(Nccl *n, int flag) {
    n->flag[0] = (Flag){n->exchanged + 1, flag};
}

static bool exchange_flags(Nccl *n, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    return rt_driver_good(cu,
                          cu->copy_to_device(n->memory, &n->flag[0],
                                             sizeof *n->flag, n->stream),
                          e, "copy a flag to the GPU") &&
           settle(n,
                  n->nccl.all_reduce(pointer(n->memory), pointer(n->memory),
                                     FLAG_INTS, ncclInt32, ncclMax, n->comm,
                                     n->stream),
                  "exchange flags", e) &&
           rt_driver_good(cu,
                          cu->copy_to_host(&n->flag[1], n->memory,
                                           sizeof *n->flag, n->stream),
                          e, "copy a flag from the GPU");
}

static bool flags_came(Nccl *n, int *flag) {
    Flag got;
    int64_t bits =
        __atomic_load_n((int64_t *)(void *)&n->flag[1], __ATOMIC_ACQUIRE);
    memcpy(&got, &bits, sizeof got);
    if (got.number != n->exchanged + 1)
        return false;
    n->exchanged++;
    *flag = got.flag;
    return true;
}

// The event ends the wait if the GPU fails.
static bool await_flags(Nccl *n, int *flag, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    if (!rt_driver_good(cu, cu->event_record(n->polled, n->cuda->stream), e,
                        "record the end of a step"))
        return false;
    while (!flags_came(n, flag)) {
        CUresult state = cu->event_query(n->polled);
        if (state == CUDA_SUCCESS)
            return flags_came(n, flag) ||
                   rt_fail(e, EXIT_DEVICE, "flags of ranks were not exchanged");
        if (state != CUDA_ERROR_NOT_READY)
            return rt_driver_good(cu, state, e, "run a step");
        nanosleep(&(struct timespec){.tv_nsec = POLL_MICROSECONDS * 1000},
                  NULL);
    }
    return true;
}

static bool sum_memory(Nccl *n, float *memory, size_t count, bool fast,
                       int *flag, RtError *e) {
    RtStaging *staging = &n->cuda->staging;
    CUdeviceptr at = host_piece(n);
    bool good = true;
    int own = *flag;
    for (size_t done = 0; good && (done < count || done == 0);
         done += HOST_FLOATS) {
        size_t left = count - done;
        size_t piece = left < HOST_FLOATS ? left : HOST_FLOATS;
        size_t bytes = piece * sizeof *memory;
        set_flag(n, own);
        good = rt_staging_write(staging, at, memory + done, bytes, e) &&
               fork_stream(n, e) && exchange_flags(n, e) &&
               sum_range(n, at, piece, fast, e) && join_stream(n, e) &&
               rt_staging_read(staging, memory + done, at, bytes, e) &&
               await_flags(n, flag, e);
    }
    return good;
}

// ---- the functions of RtCollectives ----

// An error in a capture makes the step go on one by one.
static void check_queued(const Nccl *n, bool good) {
    if (n->cuda->is_capturing)
        rt_cuda_check_launch(n->cuda, good);
    else
        check(n, good);
}

static void nccl_set_flag(RtCollectives *c, int flag) {
    set_flag((Nccl *)c, flag);
}

static void nccl_queue_flags(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    RtError *e = &n->cuda->error;
    if (!n->cuda->is_refused)
        check_queued(n, fork_stream(n, e) && exchange_flags(n, e));
}

static void nccl_queue_sum(RtCollectives *c, const RtBuffer *b, size_t count,
                           bool fast) {
    Nccl *n = (Nccl *)c;
    RtError *e = &n->cuda->error;
    if (!n->cuda->is_refused)
        check_queued(
            n, fork_stream(n, e) &&
                   sum_range(n, n->cuda->arena + b->offset, count, fast, e));
}

static void nccl_queue_join(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    if (!n->cuda->is_refused)
        check_queued(n, join_stream(n, &n->cuda->error));
}

static int nccl_await_flag(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    int flag = 0;
    check(n, await_flags(n, &flag, &n->cuda->error));
    return flag;
}

static void nccl_start_sum(RtCollectives *c, const RtBuffer *b, size_t count,
                           int *flag, bool fast) {
    Nccl *n = (Nccl *)c;
    if (b->device == NULL) {
        check(n, sum_memory(n, b->memory, count, fast, flag, &n->cuda->error));
        return;
    }
    nccl_set_flag(c, *flag);
    nccl_queue_flags(c);
    nccl_queue_sum(c, b, count, fast);
    nccl_queue_join(c);
    n->flag_to = flag;
}

static void nccl_finish(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    if (n->flag_to != NULL)
        *n->flag_to = nccl_await_flag(c);
    n->flag_to = NULL;
}

static bool nccl_progress(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    if (n->flag_to != NULL && flags_came(n, n->flag_to))
        n->flag_to = NULL;
    return n->flag_to == NULL;
}

static bool broadcast(Nccl *n, int from, CUdeviceptr at, size_t bytes,
                      RtError *e) {
    return fork_stream(n, e) &&
           settle(n,
                  n->nccl.broadcast(pointer(at), pointer(at), bytes, ncclUint8,
                                    from, n->comm, n->stream),
                  "send a rank's state", e) &&
           join_stream(n, e);
}

static bool broadcast_memory(Nccl *n, int from, char *memory, size_t bytes,
                             RtError *e) {
    RtStaging *staging = &n->cuda->staging;
    const size_t most = HOST_FLOATS * sizeof(float);
    CUdeviceptr at = host_piece(n);
    bool good = true;
    for (size_t done = 0; good && done < bytes; done += most) {
        size_t piece = bytes - done < most ? bytes - done : most;
        good = (n->rank != from ||
                rt_staging_write(staging, at, memory + done, piece, e)) &&
               broadcast(n, from, at, piece, e) &&
               (n->rank == from || memory == NULL ||
                rt_staging_read(staging, memory + done, at, piece, e));
    }
    return good;
}

static void nccl_broadcast(RtCollectives *c, int from, const RtBuffer *b,
                           size_t bytes) {
    Nccl *n = (Nccl *)c;
    RtError *e = &n->cuda->error;
    check(n, b->device != NULL
                 ? broadcast(n, from, n->cuda->arena + b->offset, bytes, e)
                 : broadcast_memory(n, from, b->memory, bytes, e));
}

// A group of broadcasts is the all-gather of parts that have other sizes.
static bool share(Nccl *n, const RtRange *part, RtError *e) {
    ncclResult_t result = n->nccl.group_start();
    for (int i = 0; i < n->size; i++) {
        void *at = pointer(n->cuda->arena + part[i].begin);
        size_t bytes = part[i].end - part[i].begin;
        if (bytes > 0)
            result = worse(result,
                           n->nccl.broadcast(at, at, bytes, ncclUint8, i,
                                             n->comm, n->stream));
    }
    return settle(n, worse(result, n->nccl.group_end()), "send parameters", e);
}

static void nccl_share(RtCollectives *c, RtDevice *d, const RtRange *part) {
    Nccl *n = (Nccl *)c;
    RtError *e = &n->cuda->error;
    (void)d; // n's own
    check(n, fork_stream(n, e) && share(n, part, e) && join_stream(n, e));
}

static void nccl_barrier(RtCollectives *c) {
    float any = 0;
    int flag = 0;
    nccl_start_sum(c, &(RtBuffer){.memory = &any}, 1, &flag, false);
}

static void nccl_abort(RtCollectives *c) {
    Nccl *n = (Nccl *)c;
    n->nccl.abort(n->comm);
}

// ---- opening ----

// Ignores errors: after some of them every call fails.
static void nccl_close(RtCollectives *c, bool good) {
    Nccl *n = (Nccl *)c;
    const RtDriver *cu = &n->cuda->cu;
    RtError ignored;
    if (n->comm != NULL && good &&
        settle(n, n->nccl.finalize(n->comm), "end", &ignored))
        n->nccl.destroy(n->comm);
    else if (n->comm != NULL)
        n->nccl.abort(n->comm);
    rt_event_destroy(cu, n->began);
    rt_event_destroy(cu, n->done);
    rt_event_destroy(cu, n->polled);
    if (n->stream != NULL)
        cu->stream_free(n->stream);
    if (n->flag != NULL)
        cu->pinned_free(n->flag);
    if (n->memory != 0)
        cu->memory_free(n->memory);
    free(n);
}

// Terms of all ranks: of a piece, and of the rest of its shares.
static bool allocate(Nccl *n, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    size_t size = (size_t)n->size, floats_of_plan;
    void *pinned = NULL;
    floats_of_plan = n->cuda->plan->partial_bytes / sizeof(float);
    n->piece = floats_of_plan < HOST_FLOATS        ? HOST_FLOATS
               : floats_of_plan < MAX_PIECE_FLOATS ? floats_of_plan
                                                   : MAX_PIECE_FLOATS;
    size_t bytes =
        FLAG_BYTES +
        (HOST_FLOATS + n->piece + SHARE_FLOATS * size * size) * sizeof(float);
    CUresult result = cu->memory_alloc(&n->memory, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "cannot allocate %.0f MiB to add gradients of %d ranks: "
                       "use a smaller batch",
                       (double)bytes / (1 << 20), n->size);
    bool good =
        rt_driver_good(cu, result, e, "allocate %zu bytes of memory", bytes) &&
        rt_driver_good(cu, cu->pinned_alloc(&pinned, 2 * sizeof *n->flag, 0), e,
                       "allocate pinned memory");
    n->flag = pinned;
    if (good)
        memset(n->flag, 0, 2 * sizeof *n->flag);
    return good;
}

static bool open_stream(Nccl *n, RtError *e) {
    const RtDriver *cu = &n->cuda->cu;
    return rt_driver_good(
               cu, cu->stream_create(&n->stream, CU_STREAM_NON_BLOCKING, 0), e,
               "create a stream") &&
           rt_event_create(cu, &n->began, CU_EVENT_DISABLE_TIMING, e) &&
           rt_event_create(cu, &n->done, CU_EVENT_DISABLE_TIMING, e) &&
           rt_event_create(cu, &n->polled, CU_EVENT_DISABLE_TIMING, e);
}

static bool connect_ranks(Nccl *n, const char *id, RtError *e) {
    ncclConfig_t config = {.size = sizeof config,
                           .magic = CONFIG_MAGIC,
                           .version = CONFIG_VERSION,
                           .blocking = 0};
    ncclUniqueId own;
    memcpy(own.internal, id, sizeof own.internal);
    return settle(n, n->nccl.init(&n->comm, n->size, own, n->rank, &config),
                  "connect to the other ranks' GPUs", e);
}

static const RtCollectives collectives = {
    .name = "NCCL",
    .start_sum = nccl_start_sum,
    .progress = nccl_progress,
    .finish = nccl_finish,
    .broadcast = nccl_broadcast,
    .share = nccl_share,
    .barrier = nccl_barrier,
    .set_flag = nccl_set_flag,
    .queue_flags = nccl_queue_flags,
    .queue_sum = nccl_queue_sum,
    .queue_join = nccl_queue_join,
    .await_flag = nccl_await_flag,
    .abort = nccl_abort,
    .close = nccl_close,
};

static RtCollectives *open_gpus(const RtRankInfo *p, const char *id,
                                RtDevice *d, bool fast, RtError *e) {
    Nccl *n = calloc(1, sizeof *n);
    if (n == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    *n = (Nccl){.base = collectives,
                .cuda = rt_cuda_of(d),
                .rank = p->rank,
                .size = p->size,
                .near = p->near < p->size ? p->near : 1};
    n->far = n->size / n->near;
    if (fix_order(fast, e) && open_library(&n->nccl, e) && allocate(n, e) &&
        open_stream(n, e) && connect_ranks(n, id, e)) {
        n->add = rt_builtin_load(&n->cuda->builtins, RT_SUM_RANKS, e);
        if (n->add != NULL)
            return &n->base;
    }
    nccl_close(&n->base, false);
    return NULL;
}

const RtGpuCollectives rt_nccl = {
    .name = "nccl", .unique_id = unique_id, .open = open_gpus};
