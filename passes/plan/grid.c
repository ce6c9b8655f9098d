// Grids: how many blocks a launch has.
//
// Blocks of a reduction leave partial sums, which the last block adds in the
// order of the blocks.  So the grid decides the bits of results: it is part of
// the plan, and no run changes it.

#include "passes/plan/group.h"

// Blocks on a multiprocessor; a barrier of the whole grid needs all blocks of a
// launch to be resident, so PHASED kernels are compiled for two.  A row's
// threads wait for each other at its reductions, so rows without sums over
// blocks get as many blocks as have threads; the runtime launches those that
// are resident.
enum { RESIDENT = 4, RESIDENT_PHASED = 2, RESIDENT_ROWS = 8 };

int64_t device_spread(const Graph *g, int64_t shares) {
    enum { SHARES_OF_BLOCK = 4 };
    int64_t few = shares / SHARES_OF_BLOCK;
    if (shares <= g->multiprocessors)
        return shares;
    return few > g->multiprocessors ? few : g->multiprocessors;
}

int device_grid(const Graph *g) {
    return RESIDENT * g->multiprocessors;
}

int grid_within(int64_t blocks, int limit) {
    return blocks < 1 ? 1 : (int)(blocks < limit ? blocks : limit);
}

int space_grid(const Graph *g, const Type *space, bool host) {
    int64_t rows = space_rows(space);
    if (host)
        return grid_within(rows, HOST_GRID);
    int64_t vectors = (type_count(space) + 7) / 8;
    int64_t blocks = (vectors + BLOCK_THREADS - 1) / BLOCK_THREADS;
    blocks = device_spread(g, blocks);
    return grid_within(blocks < rows ? blocks : rows, device_grid(g));
}

static int rows_grid(const Graph *g, const Type *space) {
    int64_t rows = space_rows(space), vectors = (type_count(space) + 7) / 8;
    int64_t blocks = (vectors + BLOCK_THREADS - 1) / BLOCK_THREADS;
    return grid_within(blocks < rows ? blocks : rows,
                       RESIDENT_ROWS * g->multiprocessors);
}

void group_grid(const Graph *g, Group *group) {
    int *host = &group->grid[HOST_PLAN], *device = &group->grid[DEVICE_PLAN];
    if (group->kind == GROUP_CALL)
        return;
    if (group_is_multi_tensor(group->kind)) {
        *host = HOST_GRID;
        *device = group->phases > 1 ? RESIDENT_PHASED * g->multiprocessors
                                    : device_grid(g);
        return;
    }
    *host = space_grid(g, group->iteration_space, true);
    if (group->kind == GROUP_ROWS && group->workspace == NO_NODE) {
        *device = rows_grid(g, group->iteration_space);
        return;
    }
    *device =
        group_info[group->kind].blocks == BY_ROW
            ? grid_within(space_rows(group->iteration_space), device_grid(g))
            : space_grid(g, group->iteration_space, false);
}
