// Grids: how many blocks a launch has.
//
// Blocks of a reduction leave partial sums, which the last block adds in the
// order of the blocks.  So the grid decides the bits of results: it belongs to
// the plan, and no device changes it.

#include "passes/plan/group.h"

static int between(int64_t blocks, int64_t most) {
    return blocks < 1 ? 1 : (int)(blocks < most ? blocks : most);
}

int space_grid(const Type *space, bool host) {
    int64_t rows = space_rows(space);
    if (host)
        return between(rows, HOST_GRID);
    int64_t vectors = (type_count(space) + 7) / 8;
    int64_t blocks = (vectors + BLOCK_THREADS - 1) / BLOCK_THREADS;
    return between(blocks < rows ? blocks : rows, DEVICE_GRID);
}

int chunks_grid(int64_t chunks, int phases, bool host) {
    return between(chunks, host         ? HOST_GRID
                           : phases > 1 ? DEVICE_GRID / 2
                                        : DEVICE_GRID);
}

void group_grid(Group *group) {
    for (int host = 0; host < 2; host++) {
        int *grid = &group->grid[!host];
        if (group->kind == GROUP_CALL)
            *grid = 0;
        else if (group_is_multi_tensor(group->kind))
            *grid = chunks_grid(INT64_MAX, group->phases, host);
        else if (group->kind == GROUP_SCATTER && !host)
            *grid = between(space_rows(group->space), DEVICE_GRID);
        else
            *grid = space_grid(group->space, host);
    }
}
