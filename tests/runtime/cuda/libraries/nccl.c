// The runtime opens NCCL, and rank 0 gets the name of a communicator, for which
// the library needs no GPU.
//
// Status 77: there is no library.
#include "runtime/cuda/nccl.h"

#include <stdio.h>
#include <string.h>

int main(void) {
    static const char empty[RT_UNIQUE_ID_BYTES];
    char id[RT_UNIQUE_ID_BYTES], other[RT_UNIQUE_ID_BYTES];
    RtError e;
    if (!rt_nccl.unique_id(id, &e)) {
        printf("%s\n", e.text);
        return strstr(e.text, "cannot be opened") != NULL ? 77 : 1;
    }
    if (!rt_nccl.unique_id(other, &e)) {
        printf("%s\n", e.text);
        return 1;
    }
    bool good =
        memcmp(id, empty, sizeof id) != 0 && memcmp(id, other, sizeof id) != 0;
    if (!good)
        printf("FAILED two communicators have the same name\n");
    return !good;
}
