// What the scheduler tells the race checker.
#ifndef TESTS_SIMT_RACES_H
#define TESTS_SIMT_RACES_H

#include <stdbool.h>
#include <stddef.h>

void race_launch(int grid, const size_t *arg);
void race_block(void);
void race_barrier(void);
void race_atomic(void);

// Whether p is on the stack of a thread; simt.c answers.
bool simt_on_stack(const void *p);

#endif
