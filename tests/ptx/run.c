// Runs the blocks of a launch: threads go on until all of a warp shuffle, all
// of a block are at a barrier, or they wait for another block.
#include "tests/ptx/module.h"

#include <stdlib.h>
#include <string.h>

enum { GARBAGE = 0xff, MAX_LOOKS = 1 << 10 };

typedef struct {
    const Kernel *kernel;
    Memory memory;
    Thread *thread; // NULL: the block has not begun, or its memory is freed
    int *order; // of its warps' lanes, then of its warps
    int num_threads;
    uint64_t *registers;
    char *local;
    PtxCount *count; // or NULL
    int pause;       // rounds without it
    bool has_triggered, ended;
} Block;

struct PtxLaunch {
    const Kernel *kernel;
    char *parameters;
    Written *written; // NULL: the kernel does not depend on it
    int grid, threads;
    bool cooperative;
    uint64_t seed;
    PtxCount *count;  // or NULL
    Visible *visible; // NULL: stores are not delayed
    Dependence dependence;
    int *order; // of its blocks
    Block *block;
};
typedef PtxLaunch Launch;

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
    b->memory = (Memory){room(k->shared_bytes, GARBAGE),
                         l->parameters,
                         l->written,
                         NULL,
                         &l->dependence,
                         &b->has_triggered};
    if (l->visible != NULL)
        b->memory.stores = stores_new(l->visible);
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
    b->thread = NULL;
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
    uint64_t since = 0;
    for (int i = 0; i < count; i++)
        since = b->thread[i].since > since ? b->thread[i].since : since;
    for (int i = 0; i < count; i++) {
        b->thread[i].state = RUNS;
        b->thread[i].since = since;
    }
    if (b->memory.stores != NULL)
        stores_barrier(b->memory.stores);
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

static Block *block_of(Launch *l, int place) {
    Block *b = &l->block[place];
    if (b->thread == NULL && !b->ended)
        block_begin(b, l, l->order[place]);
    return b;
}

static void block_finish(Launch *l, int place) {
    Block *b = block_of(l, place);
    for (int stuck = 0; !b->ended;) {
        stuck = block_round(b) ? stuck + 1 : 0;
        if (stuck == MAX_LOOKS)
            ptx_fail(0, "%s: a block waits for one that is not there",
                     l->kernel->is.name);
    }
    if (b->thread != NULL)
        block_end(b);
}

// A block pauses now and then if there is an order.
static bool pauses(Launch *l, Block *b) {
    enum { OFTEN = 16, ROUNDS = 64 };
    if (b->pause == 0 && l->seed != 0 && drawn(l, OFTEN) == 0)
        b->pause = 1 + (int)drawn(l, ROUNDS);
    return b->pause > 0 && b->pause-- > 0;
}

// Runs all blocks, at most so many of them at a time.
static void blocks_together(Launch *l, int resident) {
    for (int stuck = 0, ended = 0, begun = 0; ended < l->grid;) {
        for (; begun < l->grid && begun - ended < resident; begun++)
            block_of(l, begun);
        int looking = 0, running = begun - ended;
        for (int i = 0; i < begun; i++) {
            Block *b = &l->block[i];
            if (b->thread == NULL)
                continue;
            if (!b->ended && pauses(l, b))
                looking++;
            else if (!b->ended)
                looking += block_round(b);
            ended += b->ended;
            if (b->ended)
                block_end(b);
        }
        stuck = looking == running ? stuck + 1 : 0;
        if (stuck == MAX_LOOKS)
            ptx_fail(0, "%s: blocks wait for one another", l->kernel->is.name);
    }
}

// Fewer blocks than the grid has, unless all are there from the start or have
// let the next launch start.
static int resident_blocks(Launch *l, const Launch *next) {
    if (l->cooperative || next != NULL || l->grid == 1)
        return l->grid;
    return l->seed == 0 ? 1 : 1 + (int)drawn(l, (unsigned)l->grid - 1);
}

// ---- launches that depend on one another ----

// Runs every block until it lets the next launch start, or ends.
static void blocks_trigger(Launch *l) {
    l->dependence.triggers = true;
    for (int i = 0; i < l->grid; i++) {
        Block *b = block_of(l, i);
        for (int round = 0; !b->ended && !b->has_triggered; round++) {
            block_round(b);
            if (round == MAX_LOOKS)
                ptx_fail(0,
                         "%s: a block neither lets the next launch start "
                         "nor ends",
                         l->kernel->is.name);
        }
    }
    l->dependence.triggers = false;
}

// Runs a block up to its wait for the launch before.
static void block_start(Launch *l, int place) {
    Block *b = block_of(l, place);
    l->dependence.waits = true;
    for (int waiting = -1, before = -2; !b->ended && waiting != before;) {
        before = waiting;
        block_round(b);
        waiting = count_in(b, 0, b->num_threads, AT_WAIT) +
                  count_in(b, 0, b->num_threads, AT_BARRIER);
    }
    l->dependence.waits = false;
}

// The launch before has ended.
static void blocks_go_on(Launch *l) {
    for (int i = 0; i < l->grid; i++)
        for (int j = 0; l->block[i].thread != NULL && j < l->threads; j++)
            if (l->block[i].thread[j].state == AT_WAIT)
                l->block[i].thread[j].state = RUNS;
}

enum { MAX_STARTED = 4 };

// Blocks of the next launch start between blocks of this one.
static void blocks_with_next(Launch *l, Launch *next) {
    int started = 0, most = next->grid < MAX_STARTED ? next->grid : MAX_STARTED;
    blocks_trigger(l);
    most -= (int)drawn(next, (unsigned)most);
    for (int i = 0; i < l->grid; i++) {
        while (started < most && drawn(next, 2) == 0)
            block_start(next, started++);
        if (!l->kernel->is.waits)
            block_finish(l, i);
    }
    while (started < most && drawn(next, 2) == 0)
        block_start(next, started++);
}

PtxLaunch *ptx_launch_new(const PtxKernel *is, void *const *argument, int grid,
                          int threads, PtxOrder order) {
    const Kernel *k = (const Kernel *)(const void *)is;
    Launch *l = room(sizeof *l, 0);
    *l = (Launch){.kernel = k,
                  .grid = grid,
                  .threads = threads,
                  .cooperative = order.cooperative,
                  .seed = order.seed,
                  .dependence = {.is_programmatic = order.programmatic}};
    l->parameters = room((size_t)k->parameter_bytes, 0);
    l->written = k->loads_constants ? written_new() : NULL;
    l->visible = order.delays ? visible_new() : NULL;
    if (l->threads > is->threads)
        ptx_fail(0, "%s: %d threads are more than it has", is->name,
                 l->threads);
    for (int i = 0; i < is->num_parameters; i++)
        memcpy(l->parameters + k->offset[i], argument[i], (size_t)is->bytes[i]);
    l->order = order_new(l, l->grid);
    l->block = room((size_t)grid * sizeof *l->block, 0);
    return l;
}

void ptx_launch_run(PtxLaunch *l, PtxLaunch *next) {
    blocks_go_on(l);
    if (next != NULL)
        blocks_with_next(l, next);
    if (l->kernel->is.waits)
        blocks_together(l, resident_blocks(l, next));
    for (int i = 0; i < l->grid && !l->kernel->is.waits; i++)
        block_finish(l, i);
    for (int i = 0; i < l->grid; i++)
        stores_end(l->block[i].memory.stores);
    free(l->order);
    free(l->block);
    written_free(l->written);
    visible_free(l->visible);
    free(l->parameters);
    free(l);
}

void ptx_run(const PtxKernel *k, void *const *argument, int grid, int threads,
             unsigned seed) {
    PtxOrder order = {.seed = seed, .cooperative = true};
    ptx_launch_run(ptx_launch_new(k, argument, grid, threads, order), NULL);
}

void ptx_run_counted(const PtxKernel *k, void *const *argument, int grid,
                     int threads, PtxCount *count) {
    PtxLaunch *l = ptx_launch_new(k, argument, grid, threads,
                                  (PtxOrder){.seed = 0, .cooperative = true});
    l->count = count;
    ptx_launch_run(l, NULL);
}
