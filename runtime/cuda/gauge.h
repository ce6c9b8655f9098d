// Gauge: how long each launch of a step takes, by events between them.
#ifndef RUNTIME_CUDA_GAUGE_H
#define RUNTIME_CUDA_GAUGE_H

#include "runtime/cuda/driver.h"

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    int launches;
    int *call;      // that each launch is; -1: a kernel
    CUevent *event; // before each launch, and after the last
    bool *failed;   // of each launch: it did not run
} RtGauge;

bool rt_gauge_open(RtGauge *g, const RtDriver *cu, CUstream stream,
                   int launches, RtError *e);
void rt_gauge_close(RtGauge *g);

// Before launch number `launch`; `call` is -1 for a kernel.
bool rt_gauge_note(RtGauge *g, int launch, int call, RtError *e);
// After the last launch: waits, and keeps in seconds[] what each took if that
// is less than what it has, or if it has none yet, which is negative.  What did
// not run takes for ever.
bool rt_gauge_read(RtGauge *g, double *seconds, RtError *e);

#endif
