// NVIDIA's own compiler beside the stand-in.
#ifndef TESTS_DOUBLE_NVRTC_OWN_H
#define TESTS_DOUBLE_NVRTC_OWN_H

#include "tests/runtime/cuda/double/double.h"

#include <nvrtc.h>

// Compiles a text with options, if SINTER_DOUBLE_NVRTC is the compiler's
// folder; else succeeds.  *log and *ptx are to be freed.  There is PTX where
// SINTER_DOUBLE_PTX asks for it, and a log with it or where something is wrong;
// else they are NULL.
nvrtcResult nvrtc_own_compile(const Unit *u, int count,
                              const char *const *option, char **log,
                              char **ptx);

#endif
