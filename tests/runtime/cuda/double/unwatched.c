// The faithful mode without its race checker, which needs kernels that are
// compiled for it and knows one executable only.
#include "tests/simt/races.h"

void race_launch(int grid, const size_t *arg) {
    (void)grid, (void)arg;
}

void race_block(void) {
}

void race_barrier(void) {
}

void race_atomic(void) {
}
