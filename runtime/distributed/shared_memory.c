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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT_FLOATS = 1 << 18, // 1 MiB
    PIECE = 1024,          // floats of a sum in the first cache
    SPINS = 2000,          // looks at the barrier before a rank sleeps
    LINE = 64
};

typedef struct {
    atomic_uint arrived, generation;
    char separate[LINE - 2 * sizeof(atomic_uint)];
    int flag[RT_MOST_RANKS];
} Header;

struct RtShared {
    int rank, size;
    bool spins; // there is a core for each rank
    size_t bytes;
    Header *header;
    float *slot, *result;
};

// ---- the barrier ----

static void sleep_on(atomic_uint *word, unsigned value) {
    struct timespec most = {.tv_sec = 1};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

void rt_shared_wait(RtShared *s) {
    Header *h = s->header;
    unsigned now = atomic_load(&h->generation);
    if (atomic_fetch_add(&h->arrived, 1) + 1 == (unsigned)s->size) {
        atomic_store(&h->arrived, 0);
        atomic_fetch_add(&h->generation, 1);
        syscall(SYS_futex, &h->generation, FUTEX_WAKE, s->size, NULL, NULL, 0);
        return;
    }
    for (int i = 0; s->spins && i < SPINS; i++)
        if (atomic_load(&h->generation) != now)
            return;
    while (atomic_load(&h->generation) == now)
        sleep_on(&h->generation, now);
}

// ---- memory ----

static size_t slots_bytes(int size) {
    return ((size_t)size + 1) * SLOT_FLOATS * sizeof(float);
}

int rt_shared_memory(int size, RtError *e) {
    size_t bytes = sizeof(Header) + slots_bytes(size);
    int fd = memfd_create("sinter ranks", MFD_CLOEXEC);
    int why = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    if (why == 0)
        return fd;
    rt_fail(e, EXIT_MEMORY,
            "cannot allocate %zu MiB of memory that the ranks share: %s",
            bytes >> 20, strerror(why));
    if (fd >= 0)
        close(fd);
    return -1;
}

RtShared *rt_shared_open(const RtPlace *p, const RtRendezvous *m, RtError *e) {
    char path[64];
    RtShared *s = calloc(1, sizeof *s);
    if (s == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    *s = (RtShared){.rank = p->rank,
                    .size = p->size,
                    .spins = sysconf(_SC_NPROCESSORS_ONLN) >= p->size,
                    .bytes = sizeof(Header) + slots_bytes(p->size),
                    .header = MAP_FAILED};
    snprintf(path, sizeof path, "/proc/%d/fd/%d", m->memory_process, m->memory);
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
    return s;
}

void rt_shared_close(RtShared *s) {
    if (s != NULL)
        munmap(s->header, s->bytes);
    free(s);
}

// ---- sums ----

static const float *slot_of(const RtShared *s, int rank) {
    return s->slot + (size_t)rank * SLOT_FLOATS;
}

// The sum of ranks first .. first + ranks - 1.
static void add_ranks(const RtShared *s, int first, int ranks, size_t at,
                      size_t count, float *to) {
    float right[PIECE];
    int left = 1;
    if (ranks == 1) {
        memcpy(to, slot_of(s, first) + at, count * sizeof *to);
        return;
    }
    while (2 * left < ranks)
        left *= 2;
    add_ranks(s, first, left, at, count, to);
    add_ranks(s, first + left, ranks - left, at, count, right);
    for (size_t i = 0; i < count; i++)
        to[i] += right[i];
}

static void add_share(const RtShared *s, size_t count) {
    size_t first, last;
    first = count * (size_t)s->rank / (size_t)s->size;
    last = count * ((size_t)s->rank + 1) / (size_t)s->size;
    for (size_t at = first; at < last; at += PIECE)
        add_ranks(s, 0, s->size, at, last - at < PIECE ? last - at : PIECE,
                  s->result + at);
}

static int largest_flag(const RtShared *s) {
    int most = 0;
    for (int i = 0; i < s->size; i++)
        if (s->header->flag[i] > most)
            most = s->header->flag[i];
    return most;
}

static void buffer_read(const RtBuffer *b, size_t at, void *to, size_t bytes) {
    if (b->device != NULL)
        b->device->read(b->device, to, b->offset + at, bytes);
    else
        memcpy(to, (const char *)b->memory + at, bytes);
}

static void buffer_write(const RtBuffer *b, size_t at, const void *from,
                         size_t bytes) {
    if (b->device != NULL)
        b->device->write(b->device, b->offset + at, from, bytes);
    else
        memcpy((char *)b->memory + at, from, bytes);
}

void rt_shared_sum(RtShared *s, const RtBuffer *b, size_t count, int *flag) {
    float *own = s->slot + (size_t)s->rank * SLOT_FLOATS;
    s->header->flag[s->rank] = *flag;
    for (size_t done = 0; done < count || done == 0; done += SLOT_FLOATS) {
        size_t left = count - done;
        size_t piece = left < SLOT_FLOATS ? left : SLOT_FLOATS;
        buffer_read(b, done * sizeof *own, own, piece * sizeof *own);
        rt_shared_wait(s);
        *flag = largest_flag(s);
        add_share(s, piece);
        rt_shared_wait(s);
        buffer_write(b, done * sizeof *own, s->result, piece * sizeof *own);
    }
}

// ---- broadcasts ----

void rt_shared_broadcast(RtShared *s, const RtBuffer *b, size_t bytes) {
    const size_t most = SLOT_FLOATS * sizeof(float);
    rt_shared_wait(s); // all have read the result of a sum
    for (size_t at = 0; at < bytes; at += most) {
        size_t piece = bytes - at < most ? bytes - at : most;
        if (s->rank == 0)
            buffer_read(b, at, s->result, piece);
        rt_shared_wait(s);
        if (s->rank != 0)
            buffer_write(b, at, s->result, piece);
        rt_shared_wait(s);
    }
}
