// CUDA device: this build has none.

#include "runtime/runtime.h"

RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       RtError *e) {
    (void)t;
    (void)plan;
    (void)ordinal;
    rt_fail(e, EXIT_DEVICE,
            "this build of the runtime has no CUDA device yet; --device=host "
            "trains on the processor");
    return NULL;
}
