// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MPI: the collectives of ranks on several machines.
//
// The library is the one of the launcher, OpenMPI's or MPICH's, opened at run
// time.  A sum goes piece by piece: an all-to-all gives each rank its share of
// every rank's terms, the rank adds them as the tree over ranks, and an
// all-gather sends the shares of the result to all.  Its bits depend on no
// order of the library's.
//
// If each machine has a subtree of that tree, its ranks exchange and add first,
// and one sum of each machine goes to the others, and so back.
//
// Requests are polled and never waited for in a call, since ranks may have to
// share a core.
#define _POSIX_C_SOURCE 200809L

#include "base/round_up.h"
#include "runtime/distributed/distributed.h"
#include "runtime/library.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A handle is a pointer in OpenMPI and an int in MPICH.  Either takes one
// register, or eight bytes of the stack, of an x86-64 or aarch64 processor, so
// both are called with a pointer's number.  MPICH stores a request in its first
// four bytes, the low ones there; the others stay 0.
typedef uintptr_t MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Errhandler;
typedef struct {
    char byte[64]; // the most of both
} MPI_Status;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/distributed/mpi.def"
    MAX_ERROR_BYTES = 1024, // of both
    PIECE_FLOATS = 1 << 20, // 4 MiB
    ROOM_FLOATS = PIECE_FLOATS + RT_MAX_RANKS,
    // Polls before others get the core, and before the rank sleeps.
    SPINS = 100,
    YIELDS = 10000,
    SLEEP_NANOSECONDS = 50000,
    WATCHDOG_SECONDS = 40 // in which the watchdog finds a missing rank
};

// A sum in flight: the piece from `done` on is read from the buffer, its terms
// are added, and the result is written back, each once MPI is done.
typedef enum { READ, ADD_NEAR, ADD, GATHER_NEAR, WRITE, FINISHED } Phase;

typedef struct {
    RtBuffer buffer;
    size_t count, done;
    int *flag;
    bool fast;
    Phase next;
} Sum;

typedef struct {
    RtCollectives base;
    int rank, size;
    void *library;
#define MPI(member, function, arguments) int(*member) arguments;
#define HANDLE(type, member, name, symbol, number) type member;
#include "runtime/distributed/mpi.def"
    // Ranks of this machine, 1 if there is one level; those of each machine
    // that have the same number on it.
    int near, far;
    MPI_Comm near_comm, far_comm;
    MPI_Request piece, flags;
    int flag[2]; // this rank's, and the largest
    Sum sum;
    // own: this rank's terms, then its share of the result.  other: all ranks'
    // terms of its share, then the result.
    float *own, *other;
} Mpi;

// ---- calls ----

// An error is most often the end of another rank, which the watchdog reports.
static void check(const Mpi *m, const char *function, int code) {
    char why[MAX_ERROR_BYTES] = "";
    int length;
    RtError e;
    if (code == MPI_SUCCESS)
        return;
    m->error_string(code, why, &length);
    nanosleep(&(struct timespec){.tv_sec = WATCHDOG_SECONDS}, NULL);
    rt_fail(&e, EXIT_DEVICE, "rank %d: %s: %s", m->rank, function, why);
    rt_print_error(&e);
    rt_leave(EXIT_DEVICE);
}

static bool is_done(const Mpi *m, MPI_Request *request) {
    MPI_Status ignored;
    int done;
    check(m, "MPI_Test", m->test(request, &done, &ignored));
    return done != 0;
}

// Before the next poll, after `polls` in vain.
static void rest(int polls) {
    if (polls >= YIELDS)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NANOSECONDS}, NULL);
    else if (polls >= SPINS)
        sched_yield();
}

static void wait_for(const Mpi *m, MPI_Request *request) {
    for (int i = 0; !is_done(m, request); i += i < YIELDS)
        rest(i);
}

// ---- sums ----

static void mpi_start_sum(RtCollectives *c, const RtBuffer *b, size_t count,
                          int *flag, bool fast) {
    Mpi *m = (Mpi *)c;
    m->sum = (Sum){.buffer = *b, .count = count, .flag = flag, .fast = fast};
    m->flag[0] = *flag;
    check(m, "MPI_Iallreduce",
          m->iallreduce(&m->flag[0], &m->flag[1], 1, m->int_type, m->max_op,
                        m->comm_world, &m->flags));
}

static void exchange(Mpi *m, int count, MPI_Comm comm) {
    check(m, "MPI_Ialltoall",
          m->ialltoall(m->own, count, m->float_type, m->other, count,
                       m->float_type, comm, &m->piece));
}

static void gather(Mpi *m, const float *from, float *to, int count,
                   MPI_Comm comm) {
    check(m, "MPI_Iallgather",
          m->iallgather(from, count, m->float_type, to, count, m->float_type,
                        comm, &m->piece));
}

// Copies shares between their order by rank and that of two levels: of the
// ranks with the same number on each machine, side by side.
static void order_shares(const Mpi *m, const float *from, float *to, int share,
                         bool by_rank) {
    for (int near = 0; near < m->near; near++)
        for (int far = 0; far < m->far; far++) {
            size_t rank = (size_t)(far * m->near + near) * (size_t)share;
            size_t level = (size_t)(near * m->far + far) * (size_t)share;
            memcpy(to + (by_rank ? rank : level),
                   from + (by_rank ? level : rank), (size_t)share * sizeof *to);
        }
}

// Starts the exchange of a piece.  The shares of ranks are equal: the last ones
// may have places that nothing reads.
static Phase send_terms(Mpi *m, size_t piece, int share) {
    size_t at = m->sum.done * sizeof *m->own;
    bool two_levels = m->near > 1 && !m->sum.fast;
    rt_buffer_read(&m->sum.buffer, at, two_levels ? m->other : m->own,
                   piece * sizeof *m->own);
    if (two_levels) {
        order_shares(m, m->other, m->own, share, false);
        exchange(m, m->far * share, m->near_comm);
        return ADD_NEAR;
    }
    if (m->sum.fast)
        check(m, "MPI_Iallreduce",
              m->iallreduce(m->own, m->other, (int)piece, m->float_type,
                            m->sum_op, m->comm_world, &m->piece));
    else
        exchange(m, share, m->comm_world);
    return m->sum.fast ? WRITE : ADD;
}

static Phase send_near_sums(Mpi *m, int share) {
    size_t count = (size_t)m->far * (size_t)share;
    rt_ranks_sum(m->other, count, m->near, count, m->own);
    exchange(m, share, m->far_comm);
    return ADD;
}

static Phase send_share(Mpi *m, int share) {
    rt_ranks_sum(m->other, (size_t)share, m->size / m->near, (size_t)share,
                 m->own);
    bool two_levels = m->near > 1;
    gather(m, m->own, m->other, share,
           two_levels ? m->far_comm : m->comm_world);
    return two_levels ? GATHER_NEAR : WRITE;
}

static Phase send_far_sums(Mpi *m, int share) {
    gather(m, m->other, m->own, m->far * share, m->near_comm);
    return WRITE;
}

static Phase write_result(Mpi *m, size_t piece, int share) {
    size_t at = m->sum.done * sizeof *m->other;
    if (m->near > 1 && !m->sum.fast)
        order_shares(m, m->own, m->other, share, true);
    *m->sum.flag = m->flag[1];
    rt_buffer_write(&m->sum.buffer, at, m->other, piece * sizeof *m->other);
    m->sum.done += piece;
    return m->sum.done < m->sum.count ? READ : FINISHED;
}

static bool is_ready(Mpi *m) {
    return m->sum.next == READ ||
           (is_done(m, &m->piece) &&
            (m->sum.next != WRITE || is_done(m, &m->flags)));
}

// Does the next phase.  False: MPI is not done with the last one, or it was the
// last.
static bool advance(Mpi *m) {
    if (m->sum.next == FINISHED || !is_ready(m))
        return false;
    size_t left = m->sum.count - m->sum.done;
    size_t piece = left < PIECE_FLOATS ? left : PIECE_FLOATS;
    int share = (int)divide_up((int64_t)piece, m->size);
    switch (m->sum.next) {
    case READ:
        m->sum.next = send_terms(m, piece, share);
        break;
    case ADD_NEAR:
        m->sum.next = send_near_sums(m, share);
        break;
    case ADD:
        m->sum.next = send_share(m, share);
        break;
    case GATHER_NEAR:
        m->sum.next = send_far_sums(m, share);
        break;
    default:
        m->sum.next = write_result(m, piece, share);
    }
    return true;
}

static bool mpi_progress(RtCollectives *c) {
    Mpi *m = (Mpi *)c;
    while (advance(m)) {
    }
    return m->sum.next == FINISHED;
}

static void mpi_finish(RtCollectives *c) {
    Mpi *m = (Mpi *)c;
    for (int polls = 0; m->sum.next != FINISHED;) {
        bool moved = advance(m);
        polls = moved ? 0 : polls + (polls < YIELDS);
        rest(polls);
    }
}

// ---- other collectives ----

static void mpi_broadcast(RtCollectives *c, int from, const RtBuffer *b,
                          size_t bytes) {
    Mpi *m = (Mpi *)c;
    const size_t most = PIECE_FLOATS * sizeof *m->own;
    for (size_t at = 0; at < bytes; at += most) {
        size_t piece = bytes - at < most ? bytes - at : most;
        if (m->rank == from)
            rt_buffer_read(b, at, m->own, piece);
        check(m, "MPI_Ibcast",
              m->ibcast(m->own, (int)piece, m->byte_type, from, m->comm_world,
                        &m->piece));
        wait_for(m, &m->piece);
        if (m->rank != from)
            rt_buffer_write(b, at, m->own, piece);
    }
}

// A round of it: pieces of `most` bytes.
static void share_pieces(Mpi *m, RtDevice *d, const RtRange *part, size_t at,
                         size_t most) {
    int count[RT_MAX_RANKS], displacement[RT_MAX_RANKS];
    char *all = (char *)m->other;
    for (int i = 0; i < m->size; i++) {
        RtRange piece = rt_range_piece(&part[i], at, most);
        count[i] = (int)(piece.end - piece.begin);
        displacement[i] = (int)(most * (size_t)i);
    }
    RtRange own = rt_range_piece(&part[m->rank], at, most);
    if (count[m->rank] > 0)
        d->read(d, m->own, own.begin, own.end - own.begin);
    check(m, "MPI_Iallgatherv",
          m->iallgatherv(m->own, count[m->rank], m->byte_type, all, count,
                         displacement, m->byte_type, m->comm_world, &m->piece));
    wait_for(m, &m->piece);
    for (int i = 0; i < m->size; i++)
        if (i != m->rank && count[i] > 0)
            d->write(d, rt_range_piece(&part[i], at, most).begin,
                     all + displacement[i], (size_t)count[i]);
}

static void mpi_share(RtCollectives *c, RtDevice *d, const RtRange *part) {
    Mpi *m = (Mpi *)c;
    size_t most = PIECE_FLOATS / (size_t)m->size * sizeof *m->own;
    size_t longest = rt_longest(part, m->size);
    for (size_t at = 0; at < longest; at += most)
        share_pieces(m, d, part, at, most);
}

static void mpi_barrier(RtCollectives *c) {
    Mpi *m = (Mpi *)c;
    check(m, "MPI_Ibarrier", m->ibarrier(m->comm_world, &m->piece));
    wait_for(m, &m->piece);
}

static void mpi_close(RtCollectives *c, bool good) {
    Mpi *m = (Mpi *)c;
    if (good)
        m->finalize(); // waits for all ranks
    rt_library_close(m->library);
    free(m->own);
    free(m->other);
    free(m);
}

// ---- opening ----

static const RtCollectives mpi = {
    .name = "MPI",
    .start_sum = mpi_start_sum,
    .progress = mpi_progress,
    .finish = mpi_finish,
    .broadcast = mpi_broadcast,
    .share = mpi_share,
    .barrier = mpi_barrier,
    .close = mpi_close,
};

static const RtSymbol functions[] = {
#define MPI(member, function, arguments) {#function, offsetof(Mpi, member)},
#include "runtime/distributed/mpi.def"
};

// The library of the launcher comes first: MPICH's sets PMI_SIZE.
static bool open_library(Mpi *m, RtError *e) {
    static const char *const files[] = {"libmpi.so.40", "libmpi.so.12",
                                        "libmpich.so.12", "libmpi.so.40", NULL};
    const RtLibrary library = {
        .needed = "ranks on several machines need",
        .files = files + (getenv("PMI_SIZE") != NULL),
        .remedy = "install OpenMPI or MPICH, whose mpirun starts the ranks",
        .status = EXIT_DEVICE,
        .symbol = functions,
        .num_symbols = sizeof functions / sizeof *functions};
    m->library = rt_library_open(&library, m, e);
    return m->library != NULL;
}

static void find_handles(Mpi *m) {
    bool open_mpi = dlsym(m->library, "ompi_mpi_comm_world") != NULL;
#define HANDLE(type, member, name, symbol, number)                             \
    m->member =                                                                \
        open_mpi ? (uintptr_t)dlsym(m->library, #symbol) : (uintptr_t)number;
#include "runtime/distributed/mpi.def"
}

static bool begin(Mpi *m, const RtRankInfo *p, RtError *e) {
    int threads = 0;
    if (m->init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads) !=
        MPI_SUCCESS)
        return rt_fail(e, EXIT_DEVICE, "rank %d: MPI_Init_thread fails",
                       p->rank);
    m->set_errhandler(m->comm_world, m->errors_return);
    m->comm_size(m->comm_world, &m->size);
    m->comm_rank(m->comm_world, &m->rank);
    if (threads < MPI_THREAD_SERIALIZED)
        return rt_fail(e, EXIT_DEVICE,
                       "this MPI is for one thread: it needs "
                       "MPI_THREAD_SERIALIZED");
    return (m->size == p->size && m->rank == p->rank) ||
           rt_fail(e, EXIT_DEVICE,
                   "%s starts rank %d of %d, which is rank %d of %d in MPI: "
                   "start ranks with the mpirun of this MPI, or with srun "
                   "--mpi=pmix",
                   p->launcher, p->rank, p->size, m->rank, m->size);
}

// Ranks of one machine need no second level.
static bool split(Mpi *m, const RtRankInfo *p, RtError *e) {
    m->near = p->near < m->size ? p->near : 1;
    m->far = m->size / m->near;
    return m->near == 1 ||
           (m->comm_split(m->comm_world, m->rank / m->near, m->rank,
                          &m->near_comm) == MPI_SUCCESS &&
            m->comm_split(m->comm_world, m->rank % m->near, m->rank,
                          &m->far_comm) == MPI_SUCCESS) ||
           rt_fail(e, EXIT_DEVICE, "rank %d: MPI_Comm_split fails", m->rank);
}

RtCollectives *rt_mpi_open(const RtRankInfo *p, RtError *e) {
    Mpi *m = calloc(1, sizeof *m);
    float *own = calloc(ROOM_FLOATS, sizeof *own);
    float *other = calloc(ROOM_FLOATS, sizeof *other);
    if (m != NULL && own != NULL && other != NULL) {
        *m = (Mpi){.base = mpi, .own = own, .other = other};
        if (open_library(m, e)) {
            find_handles(m);
            if (begin(m, p, e) && split(m, p, e))
                return &m->base;
            rt_library_close(m->library);
        }
    } else {
        rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    free(own);
    free(other);
    free(m);
    return NULL;
}
