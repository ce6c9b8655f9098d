// CUDA device: this build has none.

#include "runtime/device.h"

RtDevice *cuda_open(const RtPlan *plan, int ordinal, const char **why) {
    (void)plan;
    (void)ordinal;
    *why = "this build of the runtime has no CUDA device yet; "
           "--device=host trains on the processor";
    return NULL;
}
