// The scheduler's calls to the race checker.
#ifndef TESTS_SIMT_RACES_H
#define TESTS_SIMT_RACES_H

#include <stdbool.h>
#include <stddef.h>

void race_launch(int grid, const size_t *arg);
void race_block(void);
void race_barrier(void);
void race_atomic(void);

// Whether an address is on the stack of the running thread, and whether it is a
// shared variable.
bool simt_on_stack(const void *p);
bool simt_is_shared(const void *p);

#endif
