// A fiber: a stack of its own, entered and left by hand.
#ifndef TESTS_SIMT_FIBER_H
#define TESTS_SIMT_FIBER_H

#include <stdbool.h>

typedef struct Fiber Fiber;

// A fiber without anything to run.  It lives until the program ends.
Fiber *fiber_new(void);

// Discards the fiber's state: entering it next calls body, which must not
// return.
void fiber_reset(Fiber *f, void (*body)(void));

// Runs the fiber until it calls fiber_leave.
void fiber_enter(Fiber *f);
void fiber_leave(Fiber *f);

// Whether p lies on the stack of f.
bool fiber_owns(const Fiber *f, const void *p);

#endif
