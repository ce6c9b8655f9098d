// Kernels with planted bugs: each pair differs by the mistake that its name
// states.  Compiled with -fsanitize=thread.
#include "tests/simt/kernels.h"
#include "tests/simt/simt.h"

#define SHARED static __attribute__((section("simt_shared")))
#define BARRIER() simt_barrier(__FILE__, __LINE__)
#define SHUFFLE(value, lane) simt_shuffle((value), (lane), __FILE__, __LINE__)

#define IN ((const float *)(arena + arg[0]))
#define OUT ((float *)(arena + arg[1]))
#define TICKET ((int *)(arena + arg[2]))

SIMT_SHARED_SECTION

SHARED float row[BLOCK];
SHARED int is_last;

static int self(void) {
    return simt_self->thread;
}

static int element(void) {
    return simt_self->block * BLOCK + simt_self->thread;
}

// The sum of the block's elements, by thread 0.
static void sum_row(float *out) {
    for (int half = BLOCK / 2; half >= 3; half /= 2) {
        if (self() < half)
            row[self()] += row[self() + half];
        BARRIER();
    }
    if (self() == 0)
        *out = row[0] + row[1] + row[2];
}

void block_sum(char *arena, const size_t *arg) {
    row[self()] = IN[element()];
    BARRIER();
    sum_row(&OUT[simt_self->block]);
}

void block_sum_no_barrier(char *arena, const size_t *arg) {
    row[self()] = IN[element()];
    sum_row(&OUT[simt_self->block]);
}

void rotate_twice(char *arena, const size_t *arg) {
    float value = IN[element()];
    for (int i = 0; i < 2; i++) {
        row[self()] = value;
        BARRIER();
        value = row[(self() + 1) % BLOCK];
        BARRIER();
    }
    OUT[element()] = value;
}

void rotate_twice_no_barrier(char *arena, const size_t *arg) {
    float value = IN[element()];
    for (int i = 0; i < 2; i++) {
        row[self()] = value;
        BARRIER();
        value = row[(self() + 1) % BLOCK];
    }
    OUT[element()] = value;
}

void warp_sum(char *arena, const size_t *arg) {
    unsigned value = (unsigned)IN[element()];
    for (int mask = 16; mask > 0; mask /= 2)
        value += SHUFFLE(value, (self() % SIMT_WARP) ^ mask);
    OUT[element()] = (float)value;
}

void warp_partial(char *arena, const size_t *arg) {
    unsigned value = (unsigned)IN[element()];
    if (self() < 40)
        value += SHUFFLE(value, (self() % SIMT_WARP) ^ 1);
    OUT[element()] = (float)value;
}

void warp_from_outside(char *arena, const size_t *arg) {
    OUT[element()] =
        (float)SHUFFLE((unsigned)IN[element()], self() % SIMT_WARP + 1);
}

void barrier_divergent(char *arena, const size_t *arg) {
    if (self() < 50)
        BARRIER();
    OUT[element()] = IN[element()];
}

void barrier_two_lines(char *arena, const size_t *arg) {
    if (self() < 50)
        BARRIER();
    else
        BARRIER();
    OUT[element()] = IN[element()];
}

void write_past_end(char *arena, const size_t *arg) {
    OUT[element() + 1] = IN[element()];
}

void read_past_end(char *arena, const size_t *arg) {
    OUT[element()] = IN[element() + 1];
}

void read_unwritten(char *arena, const size_t *arg) {
    OUT[element()] += IN[element()];
}

void shared_unwritten(char *arena, const size_t *arg) {
    if (self() < BLOCK - 1)
        row[self()] = IN[element()];
    BARRIER();
    OUT[element()] = row[self()];
}

void every_block_writes(char *arena, const size_t *arg) {
    OUT[self()] = IN[element()];
}

void neighbour_in_warp(char *arena, const size_t *arg) {
    row[self()] = IN[element()];
    OUT[element()] = row[self() ^ 1];
}

// Block sums, added by the block that comes last.
static void sum_partials(float *out, int *counter) {
    if (self() == 0)
        is_last = simt_atomic_add(counter, 1) == GRID - 1;
    BARRIER();
    if (is_last && self() == 0)
        for (int i = 1; i < GRID; i++)
            out[0] += out[i];
}

void ticket_sum(char *arena, const size_t *arg) {
    block_sum(arena, arg);
    BARRIER();
    sum_partials(OUT, TICKET);
}

// Thread 1 writes the value that thread 0 announces, without waiting for it.
void ticket_sum_no_barrier(char *arena, const size_t *arg) {
    if (self() == 1)
        OUT[simt_self->block] = IN[element()];
    sum_partials(OUT, TICKET);
}

void partials_no_ticket(char *arena, const size_t *arg) {
    block_sum(arena, arg);
    BARRIER();
    if (simt_self->block == GRID - 1 && self() == 0)
        for (int i = 1; i < GRID; i++)
            OUT[0] += OUT[i];
}

// Every block adds the results of all blocks in the phase before.
void partials_added(char *arena, const size_t *arg) {
    float sum = 0;
    for (int i = 0; i < GRID && self() == 0; i++)
        sum += OUT[i];
    if (self() == 0)
        OUT[GRID + simt_self->block] = sum;
}

void partials_in_one_phase(char *arena, const size_t *arg) {
    block_sum(arena, arg);
    BARRIER();
    partials_added(arena, arg);
}
