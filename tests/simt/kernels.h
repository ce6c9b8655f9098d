// Kernels with planted bugs, for check_simt.c.
#ifndef TESTS_SIMT_KERNELS_H
#define TESTS_SIMT_KERNELS_H

#include <stddef.h>

enum { BLOCK = 96, GRID = 3 }; // three warps
enum { COUNT = BLOCK * GRID };

// arg[0] float in[COUNT], arg[1] float out[COUNT], arg[2] int counter
typedef void TestKernel(char *arena, const size_t *arg);

TestKernel block_sum, block_sum_no_barrier, rotate_twice,
    rotate_twice_no_barrier, warp_sum, warp_partial, warp_from_outside,
    barrier_divergent, barrier_two_lines, write_past_end, read_past_end,
    read_unwritten, shared_unwritten, every_block_writes, neighbour_in_warp,
    ticket_sum, ticket_sum_no_barrier, partials_no_ticket, partials_added,
    partials_in_one_phase;

#endif
