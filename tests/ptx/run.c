// Runs the blocks of a launch: threads go on until all of a warp shuffle, all
// of a block are at a barrier, or they wait for another block.
#include "tests/ptx/module.h"

#include <stdlib.h>
#include <string.h>

enum { GARBAGE = 0xff, MOST_LOOKS = 1 << 10 };

typedef struct {
    const Kernel *kernel;
    Memory memory;
    Thread *thread;
    int *order; // of its warps' lanes, then of its warps
    int num_threads;
    uint64_t *registers;
    char *local;
    PtxCount *count; // or NULL
    bool ended;
} Block;

typedef struct {
    const Kernel *kernel;
    char *parameters;
    Written *written; // NULL: the kernel does not depend on it
    int grid, threads;
    uint64_t seed;
    PtxCount *count; // or NULL
} Launch;

static void *room(size_t bytes, int value) {
    char *p = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
    if (p == NULL)
        ptx_fail(0, "out of memory");
    return memset(p, value, bytes);
}

// ---- an order ----

static unsigned drawn(Launch *l, unsigned below) {
    l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(l->seed >> 33) % below;
}

// 0 .. count-1, as they are or as they are drawn.
static int *order_new(Launch *l, int count) {
    int *order = room((size_t)count * sizeof *order, 0);
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count; l->seed != 0 && i > 1; i--) {
        int other = (int)drawn(l, (unsigned)i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    return order;
}

// ---- blocks ----

static void block_begin(Block *b, Launch *l, int number) {
    const Kernel *k = l->kernel;
    size_t threads = (size_t)l->threads, each = (size_t)k->num_registers;
    size_t local = (k->local_bytes + 15) / 16 * 16;
    *b = (Block){.kernel = k, .num_threads = l->threads, .count = l->count};
    b->memory =
        (Memory){room(k->shared_bytes, GARBAGE), l->parameters, l->written};
    b->thread = room(threads * sizeof *b->thread, 0);
    b->registers = room(threads * each * sizeof *b->registers, GARBAGE);
    b->local = room(threads * local, GARBAGE);
    b->order = order_new(l, l->threads);
    for (size_t i = 0; i < threads; i++) {
        uint64_t *r = b->thread[i].r = b->registers + i * each;
        r[R_TID] = i;
        r[R_NTID] = threads;
        r[R_CTAID] = (uint64_t)number;
        r[R_NCTAID] = (uint64_t)l->grid;
        r[R_LANE] = i % WARP;
        r[R_LOCAL] = (uint64_t)(uintptr_t)(b->local + i * local);
    }
}

static void block_end(Block *b) {
    free(b->memory.shared);
    free(b->thread);
    free(b->registers);
    free(b->local);
    free(b->order);
}

static int lanes_of(const Block *b, int warp) {
    int rest = b->num_threads - warp * WARP;
    return rest < WARP ? rest : WARP;
}

static const Instruction *waits_at(const Block *b, const Thread *t) {
    return &b->kernel->code[t->at - 1];
}

static uint64_t value(const Thread *t, Operand o) {
    return o.is_register ? t->r[o.value] : o.value;
}

// ---- shuffles ----

// The lane that a lane reads, and whether it is in its segment: else it reads
// itself.
static int source_of(const Instruction *i, int lane, uint64_t by, uint64_t c,
                     bool *inside) {
    int clamp = (int)(c & 31), mask = (int)(c >> 8 & 31), shift = (int)by & 31;
    int least = lane & mask, most = least | (clamp & ~mask), from;
    switch (i->shuffle) {
    case SHUFFLE_UP:
        from = lane - shift;
        *inside = from >= most;
        break;
    case SHUFFLE_DOWN:
        from = lane + shift;
        *inside = from <= most;
        break;
    case SHUFFLE_BFLY:
        from = lane ^ shift;
        *inside = from <= most;
        break;
    default:
        from = least | (shift & ~mask);
        *inside = from <= most;
    }
    return *inside ? from : lane;
}

// Every lane that the mask names must be here.
static void mask_check(const Block *b, const Thread *first, int lanes) {
    const Instruction *i = waits_at(b, first);
    for (int lane = 0; lane < lanes; lane++) {
        const Thread *t = &first[lane];
        if (t->state != AT_SHUFFLE || waits_at(b, t) != i)
            ptx_fail(i->line,
                     "lane %d is not at the shuffle that others are at", lane);
        uint32_t mask = (uint32_t)value(t, i->from[3]);
        if (~mask << (WARP - lanes) != 0)
            ptx_fail(i->line, "lanes %08x alone shuffle", mask);
        if (lanes < WARP && mask >> lanes != 0)
            ptx_fail(i->line, "lanes %08x are to shuffle, of %d", mask, lanes);
    }
}

static void shuffle(const Block *b, int warp) {
    int lanes = lanes_of(b, warp);
    Thread *first = &b->thread[warp * WARP];
    const Instruction *i = waits_at(b, first);
    uint64_t left[WARP];
    mask_check(b, first, lanes);
    for (int lane = 0; lane < lanes; lane++)
        left[lane] = value(&first[lane], i->from[0]) & UINT32_MAX;
    for (int lane = 0; lane < lanes; lane++) {
        Thread *t = &first[lane];
        bool inside;
        int from = source_of(i, lane, value(t, i->from[1]),
                             value(t, i->from[2]), &inside);
        if (from >= lanes)
            ptx_fail(i->line, "lane %d reads one that is not there", lane);
        t->r[i->to[0]] = left[from];
        if (i->num_to > 1)
            t->r[i->to[1]] = inside;
        t->state = RUNS;
    }
}

// ---- blocks ----

static int count_in(const Block *b, int first, int count, int state) {
    int found = 0;
    for (int i = first; i < first + count; i++)
        found += (int)b->thread[i].state == state;
    return found;
}

static void lanes_run(const Block *b, int warp) {
    for (int j = 0; j < b->num_threads; j++) {
        Thread *t = &b->thread[b->order[j]];
        if (b->order[j] / WARP == warp && t->state == RUNS)
            thread_run(b->kernel, &b->memory, t);
    }
}

// Runs a warp until no lane of it can go on alone.
static void warp_run(const Block *b, int warp) {
    int lanes = lanes_of(b, warp), first = warp * WARP;
    bool again = true;
    while (again) {
        if (b->count != NULL)
            warp_counted(b->kernel, &b->memory, &b->thread[first], lanes,
                         b->count);
        else
            lanes_run(b, warp);
        int looked = count_in(b, first, lanes, LOOKED);
        again = looked == 0 && count_in(b, first, lanes, AT_SHUFFLE) > 0;
        if (again)
            shuffle(b, warp);
    }
}

// Lets threads that are all at a barrier go on, and those that have looked at
// what other blocks change look again.
static void block_release(Block *b) {
    int count = b->num_threads, waiting = 0;
    for (int i = 0; i < count; i++) {
        Thread *t = &b->thread[i];
        if (t->state == LOOKED)
            t->state = RUNS;
        waiting += t->state == AT_BARRIER;
    }
    int ended = count_in(b, 0, count, ENDED);
    b->ended = ended == count;
    if (waiting + ended < count || b->ended)
        return;
    const Thread *last = NULL;
    for (int i = 0; i < count; i++) {
        Thread *t = &b->thread[i];
        if (t->state == ENDED)
            continue;
        if (ended > 0 || (last && waits_at(b, last) != waits_at(b, t)))
            ptx_fail(waits_at(b, t)->line,
                     "thread %d is at a barrier that others do not reach", i);
        last = t;
    }
    for (int i = 0; i < count; i++)
        b->thread[i].state = RUNS;
}

// Whether some thread has looked at what another block is to change.
static bool block_round(Block *b) {
    for (int w = 0; w * WARP < b->num_threads; w++)
        warp_run(b, w);
    bool looks = count_in(b, 0, b->num_threads, LOOKED) > 0;
    block_release(b);
    return looks;
}

// ---- launches ----

static void blocks_alone(Launch *l, const int *order) {
    for (int i = 0; i < l->grid; i++) {
        Block b;
        block_begin(&b, l, order[i]);
        for (int stuck = 0; !b.ended;) {
            stuck = block_round(&b) ? stuck + 1 : 0;
            if (stuck == MOST_LOOKS)
                ptx_fail(0, "%s: a block waits for one that is not there",
                         l->kernel->is.name);
        }
        block_end(&b);
    }
}

static void blocks_together(Launch *l, const int *order) {
    Block *b = room((size_t)l->grid * sizeof *b, 0);
    int left = l->grid;
    for (int i = 0; i < l->grid; i++)
        block_begin(&b[i], l, order[i]);
    for (int stuck = 0; left > 0;) {
        int looking = 0, before = left;
        left = 0;
        for (int i = 0; i < l->grid; i++) {
            if (!b[i].ended)
                looking += block_round(&b[i]);
            left += !b[i].ended;
        }
        stuck = looking == before ? stuck + 1 : 0;
        if (stuck == MOST_LOOKS)
            ptx_fail(0, "%s: blocks wait for one another", l->kernel->is.name);
    }
    for (int i = 0; i < l->grid; i++)
        block_end(&b[i]);
    free(b);
}

static void launch_run(Launch *l, const PtxKernel *is, void *const *argument) {
    const Kernel *k = l->kernel;
    l->parameters = room((size_t)k->parameter_bytes, 0);
    l->written = k->loads_constants ? written_new() : NULL;
    if (l->threads > is->threads)
        ptx_fail(0, "%s: %d threads are more than it has", is->name,
                 l->threads);
    for (int i = 0; i < is->num_parameters; i++)
        memcpy(l->parameters + k->offset[i], argument[i], (size_t)is->bytes[i]);
    int *order = order_new(l, l->grid);
    if (is->waits)
        blocks_together(l, order);
    else
        blocks_alone(l, order);
    free(order);
    written_free(l->written);
    free(l->parameters);
}

static const Kernel *kernel_of(const PtxKernel *k) {
    return (const Kernel *)(const void *)k;
}

void ptx_run(const PtxKernel *k, void *const *argument, int grid, int threads,
             unsigned seed) {
    Launch l = {kernel_of(k), NULL, NULL, grid, threads, seed, NULL};
    launch_run(&l, k, argument);
}

void ptx_run_counted(const PtxKernel *k, void *const *argument, int grid,
                     int threads, PtxCount *count) {
    Launch l = {kernel_of(k), NULL, NULL, grid, threads, 0, count};
    launch_run(&l, k, argument);
}
