// Grids: how many blocks a launch has.
//
// Blocks of a reduction leave partial sums, which the last block adds in a
// fixed order.  So the grid decides the bits of results: it is part of the
// plan, and no run changes it.

#include "passes/plan/attention_tiles.h"
#include "passes/plan/group.h"

#include "base/round_up.h"

#include <math.h>

// Blocks on a multiprocessor; a barrier of the whole grid needs all blocks of a
// launch to be resident, so PHASED kernels are compiled for two.  Kernels of
// many tensors load for two iterations at once, and need no more.  A row's
// threads wait for each other at its reductions, so rows without sums over
// blocks get as many blocks as threads allow; the runtime launches those that
// are resident.
enum { RESIDENT = 4, RESIDENT_MULTI_TENSOR = 2, RESIDENT_ROWS = 8 };

int device_grid(const Graph *g) {
    return RESIDENT * g->multiprocessors;
}

int grid_within(int64_t blocks, int limit) {
    return blocks < 1 ? 1 : (int)(blocks < limit ? blocks : limit);
}

// Blocks: a thread has about one vector, two if a block for each multiprocessor
// remains, and four if two blocks remain and `vectors` allows; and more where
// all resident blocks have as many.  A block loads the factors of channels once
// for all of its rows.  A grid of more than two blocks for each multiprocessor,
// whose threads have several vectors, leaves out blocks that fewer than half of
// the multiprocessors would have besides.
static int vector_blocks(const Graph *g, const Type *space, int vectors) {
    int64_t all = divide_up(divide_up(type_count(space), 8), BLOCK_THREADS);
    int64_t blocks = all, processors = g->multiprocessors;
    for (int n = 1; n < vectors; n *= 2) {
        int64_t least = n * processors, few = all / (2 * n);
        if (blocks > least)
            blocks = few > least ? few : least;
    }
    int64_t more = blocks % processors;
    if (vectors > 1 && blocks > 2 * processors && 2 * more < processors)
        blocks -= more;
    return grid_within(blocks, device_grid(g));
}

int space_grid(const Graph *g, const Type *space, bool host) {
    enum { VECTORS = 2 };
    int most = host ? HOST_GRID : vector_blocks(g, space, VECTORS);
    return grid_within(space_rows(space), most);
}

// Whether an element of the group's space reads a window of a larger tensor.
static bool reads_windows(const Graph *g, const Group *group) {
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        if ((op_info[d->op].traits & WINDOW) &&
            type_count(g->node[d->arg[0]].type) >
                type_count(group->iteration_space))
            return true;
    }
    return false;
}

// ---- reductions over blocks ----

// The last block of a tile adds the partial results of all of its blocks, and
// the GPU idles meanwhile.  It waits for memory half a microsecond at a time:
// twice for its counter, and once for each batch of loads.  The registers of a
// thread hold a batch of 40, or of 30 if four blocks are resident, and batches
// have equal sizes, so some 28.
static int64_t tail_waits(int64_t chunks, int64_t slots) {
    enum { AT_A_TIME = 28 * BLOCK_THREADS };
    return 2 + divide_up(chunks * slots, AT_A_TIME);
}

enum { FEW = 6 }; // waits of a last block for memory

int64_t shared_columns(int64_t chunks) {
    enum { SECTOR = 8, LOADS = 40 };
    int64_t columns = BLOCK_THREADS;
    while (columns > SECTOR && chunks * columns > LOADS * BLOCK_THREADS)
        columns /= 2;
    return columns;
}

int threads_along(int64_t vectors) {
    int threads = BLOCK_THREADS;
    while (threads > 1 && vectors <= threads / 2)
        threads /= 2;
    return threads;
}

// The part of a block's threads that have a vector.
static double busy_threads(int64_t vectors) {
    int64_t threads = threads_along(vectors);
    int64_t turns = divide_up(vectors, threads);
    return (double)vectors / (double)(turns * threads);
}

static int64_t chunks_within(int64_t blocks, int64_t rows) {
    return blocks < 1 ? 1 : blocks < rows ? blocks : rows < 1 ? 1 : rows;
}

// Tiles of columns: the number with which last blocks wait least; up to FEW
// waits count as equal, and the smallest of equal ones wins, unless a tenth
// more threads are busy with another.  A row of a tile has whole vectors, and
// its partial sums fill a cache line.
static int64_t column_tiles(const Workspace *s, int64_t blocks) {
    enum { LANES = 8, LINE = 32, LEAST = LINE / LANES };
    int64_t rows = space_rows(s->space), columns = space_columns(s->space);
    int64_t vectors = columns / LANES, best = 1, least = INT64_MAX;
    double most = 0;
    if (s->kind != GROUP_GRID || s->mixed || columns % LANES != 0 ||
        rows > INT32_MAX - BLOCK_THREADS)
        return 1;
    for (int64_t n = 1; n <= blocks && (n == 1 || vectors / n >= LEAST); n++) {
        int64_t chunks = chunks_within(blocks / n, rows);
        int64_t waits = tail_waits(chunks, s->slots / n);
        double busy = busy_threads(vectors / n) * (double)(chunks * n);
        waits = waits > FEW ? waits : FEW;
        if (vectors % n != 0 || waits > least ||
            (waits == least && busy <= 1.1 * most))
            continue;
        best = n;
        least = waits;
        most = busy;
    }
    return best;
}

// Last blocks that share the work wait five times: twice for their counter,
// once for the others, once for a batch of loads, and once to see that all have
// left.
static int last_blocks(int64_t chunks, int64_t slots) {
    enum { MAX_COUNT = 1 << 15 }; // of the halves of a counter
    int64_t parts = divide_up(slots, shared_columns(chunks));
    bool many = tail_waits(chunks, slots) > FEW && chunks < MAX_COUNT;
    return many ? grid_within(parts, (int)chunks) : 1;
}

// Blocks of a kernel of rows.  A thread with the sums of many columns has the
// registers of two resident blocks, and more would only leave more partial
// sums.
static int64_t row_blocks(const Graph *g, const Workspace *s, int64_t blocks) {
    enum { RESIDENT_SUMS = 2 };
    return tail_waits(blocks, s->slots) > FEW
               ? grid_within(blocks, RESIDENT_SUMS * g->multiprocessors)
               : blocks;
}

Division space_division(const Graph *g, const Workspace *s) {
    enum { VECTORS = 4 }; // fewer blocks leave fewer partial sums
    int64_t blocks = vector_blocks(g, s->space, VECTORS);
    if (s->kind == GROUP_ROWS)
        blocks = row_blocks(g, s, blocks);
    if (!s->any)
        return (Division){1, space_grid(g, s->space, false), 1};
    Division d = {.tiles = (int)column_tiles(s, blocks), .last_blocks = 1};
    d.chunks = (int)chunks_within(blocks / d.tiles, space_rows(s->space));
    if (d.tiles == 1)
        d.last_blocks = last_blocks(d.chunks, s->slots);
    return d;
}

static int rows_grid(const Graph *g, const Type *space) {
    int64_t rows = space_rows(space), vectors = divide_up(type_count(space), 8);
    int64_t blocks = divide_up(vectors, BLOCK_THREADS);
    return grid_within(blocks < rows ? blocks : rows,
                       RESIDENT_ROWS * g->multiprocessors);
}

void group_grid(const Graph *g, Group *group) {
    int *host = &group->grid[HOST_PLAN], *gpu = &group->grid[GPU_PLAN];
    if (group->kind == GROUP_CALL)
        return;
    if (group_is_multi_tensor(group->kind)) {
        *host = HOST_GRID;
        *gpu = RESIDENT_MULTI_TENSOR * g->multiprocessors;
        return;
    }
    *host = space_grid(g, group->iteration_space, true);
    if (group->kind == GROUP_ROWS && group->workspace == NO_NODE) {
        *gpu = rows_grid(g, group->iteration_space);
        return;
    }
    if (group_info[group->kind].blocks == BY_TILE) {
        const Node *d = &g->node[group_first(g, group, ATTENDS)];
        Attention s = attention_of(g, d);
        *gpu = grid_within(attention_blocks(&s, d->op == OP_attention_grad),
                           device_grid(g));
        return;
    }
    if (group_info[group->kind].blocks == BY_ROW) {
        *gpu = grid_within(space_rows(group->iteration_space), device_grid(g));
        return;
    }
    Workspace s = workspace_new(g, group->kind, group->iteration_space);
    for (NodeId n = group->first; n <= group->last; n++)
        workspace_add(&s, g, n, false);
    group->division = space_division(g, &s);
    if (!s.any && reads_windows(g, group))
        group->division.chunks =
            grid_within(space_rows(s.space), vector_blocks(g, s.space, 1));
    *gpu = group->division.chunks * group->division.tiles;
}
