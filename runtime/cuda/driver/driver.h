// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Driver: the functions of libcuda, the GPU of a run, what its compute
// capability implies, and trace spans.
//
// The library is opened at run time.  Types have the names of cuda.h, which is
// not needed to compile.
#ifndef RUNTIME_CUDA_DRIVER_H
#define RUNTIME_CUDA_DRIVER_H

#include "runtime/report/trace.h"
#include "runtime/runtime.h"

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute,
    CUjit_option, CUstreamCaptureMode, CUstreamCaptureStatus;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef int CUmemAllocationGranularity_flags;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct {
    char bytes[16];
} CUuuid;
typedef struct {
    int type, id;
} CUmemLocation;
typedef struct {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;
typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
typedef struct {
    int id;
    char pad[4];
    union {
        char pad[64];
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
        sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/driver/driver.def"
};

typedef struct {
    void *library;
#define CU(member, function, arguments) CUresult(*member) arguments;
#include "runtime/cuda/driver/driver.def"
} RtDriver;

// ---- driver.c ----

// Opens and initializes the library, which is never closed.
bool rt_driver_open(RtDriver *cu, RtError *e);

// Whether a call succeeded.  Otherwise *e has "cannot ", printf's text and the
// driver's reason.
bool rt_driver_good(const RtDriver *cu, CUresult result, RtError *e,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// flags: CU_EVENT_...
bool rt_event_create(const RtDriver *cu, CUevent *event, unsigned flags,
                     RtError *e);
void rt_event_destroy(const RtDriver *cu, CUevent event); // may be NULL

// ---- gpu.c ----

// A GPU; its context is current in the thread that opened it.
typedef struct {
    const RtDriver *cu;
    int ordinal;
    CUdevice device;
    CUcontext context;
    char name[96];
    CUuuid uuid;
    int driver;           // newest CUDA version of the driver, times 1000
    int major, minor;     // compute capability
    int processors;       // multiprocessors
    int clock;            // in kHz; 0: unknown
    bool cooperates;      // supports cooperative launches
    size_t memory, cache; // bytes; cache: L2
} RtGpu;

// Finds a GPU and reads its properties.
bool rt_gpu_find(RtGpu *g, const RtDriver *cu, int ordinal, RtError *e);
// Retains its primary context and makes it current.
bool rt_gpu_open(RtGpu *g, RtError *e);
int rt_gpu_capability(const RtGpu *g); // 10 * major + minor
void rt_gpu_close(RtGpu *g);

// ---- peak.c ----

// Peak operations a second in contractions of a type, with sums in f32; a
// multiply-add counts as two.  0: unknown.
double rt_gpu_peak(const RtGpu *g, RtType type);

// ---- capability.c ----

// Whether a cubin of one compute capability runs on a GPU of another.
bool rt_capability_runs(int code, int gpu);

// The newest CUDA, 12 or 13, whose libraries support a GPU of this compute
// capability (0: any) and a driver of this CUDA version (times 1000).
int rt_capability_cuda(int gpu, int driver);

// ---- trace_spans.c ----

typedef struct {
    RtSpan span; // without its times
    CUevent begin, end;
} RtTimedSpan;

// A pair of timed events around each launch and copy of a traced step.
typedef struct {
    const RtDriver *cu;
    RtTrace *trace; // NULL: not tracing
    CUevent zero;   // origin of the GPU's times; the host's clock was `began`
    double began;
    RtTimedSpan *timed;
    int count, room;
} RtTraceSpans;

// Starts tracing; the streams must be idle.
bool rt_trace_spans_open(RtTraceSpans *w, const RtDriver *cu, CUstream stream,
                         RtTrace *trace, RtError *e);
// Work queued on the stream between the two is the span.  Both do nothing while
// not tracing.
bool rt_trace_spans_begin(RtTraceSpans *w, const RtSpan *span, CUstream stream,
                          RtError *e);
bool rt_trace_spans_end(RtTraceSpans *w, CUstream stream, RtError *e);
// Adds the spans to the trace; the streams must be idle.
bool rt_trace_spans_read(RtTraceSpans *w, RtError *e);
void rt_trace_spans_close(RtTraceSpans *w);

#endif
