// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared memory: the collectives of ranks on one machine.
//
// Each rank has a slot.  A sum goes through the slots piece by piece: every
// rank stores its piece, adds its share of it over all slots, and reads the
// result.  Shares are added as a binary tree over ranks.
#define _GNU_SOURCE

#include "runtime/distributed/distributed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT_FLOATS = 1 << 18, // 1 MiB
    SPINS = 2000,          // looks at the barrier before a rank sleeps
    LINE = 64
};

typedef struct {
    atomic_uint arrived, generation;
    char separate[LINE - 2 * sizeof(atomic_uint)];
    int flag[RT_MAX_RANKS];
} Header;

// A sum in flight: the piece from `done` on is read from the buffer, its terms
// are added, and the result is written back, each once all ranks have come.
typedef enum { READ, ADD, WRITE, FINISHED } Phase;

typedef struct {
    RtBuffer buffer;
    size_t count, done;
    int *flag;
    Phase next;
} Sum;

typedef struct {
    RtCollectives base;
    int rank, size;
    bool spins;       // there is a core for each rank
    unsigned awaited; // the generation that the barrier ends
    size_t bytes;
    Header *header;
    float *slot, *result;
    Sum sum;
} Shared;

// ---- the barrier ----

static void sleep_on(atomic_uint *word, unsigned value) {
    struct timespec most = {.tv_sec = 1};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

static void arrive(Shared *s) {
    Header *h = s->header;
    s->awaited = atomic_load(&h->generation);
    if (atomic_fetch_add(&h->arrived, 1) + 1 == (unsigned)s->size) {
        atomic_store(&h->arrived, 0);
        atomic_fetch_add(&h->generation, 1);
        syscall(SYS_futex, &h->generation, FUTEX_WAKE, s->size, NULL, NULL, 0);
    }
}

static bool all_came(const Shared *s) {
    return atomic_load(&s->header->generation) != s->awaited;
}

static void wait_for_all(const Shared *s) {
    for (int i = 0; s->spins && i < SPINS; i++)
        if (all_came(s))
            return;
    while (!all_came(s))
        sleep_on(&s->header->generation, s->awaited);
}

static void shared_barrier(RtCollectives *c) {
    arrive((Shared *)c);
    wait_for_all((Shared *)c);
}

// ---- memory ----

static size_t slots_bytes(int size) {
    return ((size_t)size + 1) * SLOT_FLOATS * sizeof(float);
}

int rt_shared_memory(RtError *e) {
    int fd = memfd_create("sinter ranks", MFD_CLOEXEC);
    if (fd < 0)
        rt_fail(e, EXIT_MEMORY, "cannot open memory that the ranks share: %s",
                strerror(errno));
    return fd;
}

// A limit of the size of files, which sends a signal, is an error.
bool rt_shared_allocate(int fd, int size, RtError *e) {
    size_t bytes = sizeof(Header) + slots_bytes(size);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    int why = posix_fallocate(fd, 0, (off_t)bytes);
    signal(SIGXFSZ, before);
    return why == 0 ||
           rt_fail(e, EXIT_MEMORY,
                   "cannot allocate %zu MiB of memory that the ranks share: "
                   "%s%s",
                   bytes >> 20, strerror(why),
                   why == EFBIG ? "; raise the limit with ulimit -f" : "");
}

// ---- sums ----

static void add_share(const Shared *s, size_t count) {
    size_t first = count * (size_t)s->rank / (size_t)s->size;
    size_t last = count * ((size_t)s->rank + 1) / (size_t)s->size;
    rt_ranks_sum(s->slot + first, SLOT_FLOATS, s->size, last - first,
                 s->result + first);
}

static int largest_flag(const Shared *s) {
    int most = 0;
    for (int i = 0; i < s->size; i++)
        if (s->header->flag[i] > most)
            most = s->header->flag[i];
    return most;
}

static void shared_start_sum(RtCollectives *c, const RtBuffer *b, size_t count,
                             int *flag, bool fast) {
    Shared *s = (Shared *)c;
    (void)fast; // no other order is faster
    s->sum = (Sum){.buffer = *b, .count = count, .flag = flag};
    s->header->flag[s->rank] = *flag;
}

// Does the next phase; all ranks have come to it.
static void advance(Shared *s) {
    Sum *m = &s->sum;
    float *own = s->slot + (size_t)s->rank * SLOT_FLOATS;
    size_t at = m->done * sizeof *own, left = m->count - m->done;
    size_t piece = left < SLOT_FLOATS ? left : SLOT_FLOATS;
    if (m->next == READ)
        rt_buffer_read(&m->buffer, at, own, piece * sizeof *own);
    if (m->next == ADD) {
        *m->flag = largest_flag(s);
        add_share(s, piece);
    }
    if (m->next != WRITE) {
        arrive(s);
        m->next++;
        return;
    }
    rt_buffer_write(&m->buffer, at, s->result, piece * sizeof *own);
    m->done += piece;
    m->next = m->done < m->count ? READ : FINISHED;
}

static bool shared_progress(RtCollectives *c) {
    Shared *s = (Shared *)c;
    while (s->sum.next != FINISHED && (s->sum.next == READ || all_came(s)))
        advance(s);
    return s->sum.next == FINISHED;
}

static void shared_finish(RtCollectives *c) {
    while (!shared_progress(c))
        wait_for_all((Shared *)c);
}

// ---- broadcasts ----

static void shared_broadcast(RtCollectives *c, int from, const RtBuffer *b,
                             size_t bytes) {
    Shared *s = (Shared *)c;
    const size_t most = SLOT_FLOATS * sizeof(float);
    shared_barrier(c); // all have read the result of a sum
    for (size_t at = 0; at < bytes; at += most) {
        size_t piece = bytes - at < most ? bytes - at : most;
        if (s->rank == from)
            rt_buffer_read(b, at, s->result, piece);
        shared_barrier(c);
        if (s->rank != from)
            rt_buffer_write(b, at, s->result, piece);
        shared_barrier(c);
    }
}

// Each rank stores a piece in its slot, and reads those of the others.
static void shared_share(RtCollectives *c, RtDevice *d, const RtRange *part) {
    Shared *s = (Shared *)c;
    const size_t most = SLOT_FLOATS * sizeof(float);
    size_t at = 0, longest = rt_longest(part, s->size);
    for (; at < longest; at += most) {
        for (int i = 0; i < s->size; i++) {
            int rank = (s->rank + i) % s->size; // its own first
            RtRange piece = rt_range_piece(&part[rank], at, most);
            size_t bytes = piece.end - piece.begin;
            float *slot = s->slot + (size_t)rank * SLOT_FLOATS;
            if (i == 0 && bytes > 0)
                d->read(d, slot, piece.begin, bytes);
            if (i == 0)
                shared_barrier(c);
            else if (bytes > 0)
                d->write(d, piece.begin, slot, bytes);
        }
        shared_barrier(c);
    }
}

// ---- opening ----

static void shared_close(RtCollectives *c, bool good) {
    Shared *s = (Shared *)c;
    (void)good;
    munmap(s->header, s->bytes);
    free(s);
}

static const RtCollectives shared_memory = {
    .name = "shared memory",
    .start_sum = shared_start_sum,
    .progress = shared_progress,
    .finish = shared_finish,
    .broadcast = shared_broadcast,
    .share = shared_share,
    .barrier = shared_barrier,
    .close = shared_close,
};

RtCollectives *rt_shared_open(const RtRankInfo *p, const RtRendezvous *m,
                              RtError *e) {
    char path[64];
    Shared *s = calloc(1, sizeof *s);
    if (s == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    *s = (Shared){.base = shared_memory,
                  .rank = p->rank,
                  .size = p->size,
                  .spins = sysconf(_SC_NPROCESSORS_ONLN) >= p->size,
                  .bytes = sizeof(Header) + slots_bytes(p->size),
                  .header = MAP_FAILED};
    snprintf(path, sizeof path, "/proc/%d/fd/%d", m->memory_pid, m->memory);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        s->header =
            mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (s->header == MAP_FAILED) {
        rt_fail(e, EXIT_MEMORY, "rank %d cannot share memory with rank 0: %s",
                p->rank, strerror(errno));
        free(s);
        return NULL;
    }
    s->slot = (float *)(s->header + 1);
    s->result = s->slot + (size_t)p->size * SLOT_FLOATS;
    return &s->base;
}
