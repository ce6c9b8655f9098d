// NVTX: ranges go to the log, and one that ends must have begun.
#include "tests/runtime/cuda/double/double.h"

static int depth;

int nvtxRangePushA(const char *text);
int nvtxRangePop(void);

int nvtxRangePushA(const char *text) {
    CALL(int, "%s", text);
    return depth++;
}

int nvtxRangePop(void) {
    CALL(int, " ");
    if (depth == 0)
        complain("a range ends that has not begun");
    return --depth;
}
