// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA driver: its functions, the GPU that is trained on, and what is said
// when one of them fails.
//
// The library is opened when it is needed.  Its types have the names that its
// own header gives them; the header is not needed.
#ifndef RUNTIME_CUDA_DRIVER_H
#define RUNTIME_CUDA_DRIVER_H

#include "runtime/runtime.h"

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute,
    CUjit_option, CUstreamCaptureMode, CUstreamCaptureStatus;
typedef unsigned long long CUdeviceptr;
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

// Opens the library and starts it.  It is never closed: what it has started
// lives as long as the program.
bool rt_driver_open(RtDriver *cu, RtError *e);
// Whether there is a driver and a GPU, in whatever state.
bool rt_driver_has_gpu(void);

// Whether a call succeeded.  Otherwise *e says what could not be done, which
// printf's arguments name, and what the driver calls the reason.
bool rt_driver_good(const RtDriver *cu, CUresult result, RtError *e,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// ---- gpu.c ----

// One GPU, whose context is current in the thread that opened it.
typedef struct {
    const RtDriver *cu;
    int ordinal;
    CUdevice device;
    CUcontext context;
    char name[96];
    CUuuid uuid;
    int driver;       // version of CUDA that the driver knows, times 1000
    int major, minor; // compute capability
    int processors;   // multiprocessors
    int clock;        // of them, in kHz; 0: not known
    bool cooperates;  // blocks of a launch can wait for one another
    size_t memory, cache;
} RtGpu;

// Finds a GPU and what is known of it.
bool rt_gpu_find(RtGpu *g, const RtDriver *cu, int ordinal, RtError *e);
// Makes its context, for this thread.
bool rt_gpu_open(RtGpu *g, RtError *e);
int rt_gpu_capability(const RtGpu *g); // 90
void rt_gpu_close(RtGpu *g);

#endif
