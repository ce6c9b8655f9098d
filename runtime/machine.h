// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine: GPUs, libraries, data and checkpoints of this machine, for the
// compiler's tools.
#ifndef RUNTIME_MACHINE_H
#define RUNTIME_MACHINE_H

#include "runtime/runtime.h"

// ---- cuda/machine.c, host/machine.c, data/duckdb.c: components ----

enum { RT_MAX_GPUS = 64 }; // reported at most

// A GPU or a library, opened as a trainer opens it.
typedef struct {
    const char *name;    // "driver", "cuda:0", "NVRTC"
    const char *version; // or a GPU's properties; NULL: unusable
    const char *path;    // of the library's file; NULL: it has none
    const char *missing; // the reason, and the remedy; NULL: usable
} RtComponent;

// Called with each component, whose texts live as long as the call.
typedef void RtComponentHook(void *context, const RtComponent *component);

// Reports the driver, its GPUs and NVIDIA's libraries.  Returns the number of
// GPUs; *driver is the newest CUDA version of the driver, times 1000, and 0
// without one.
int rt_cuda_components(RtComponentHook *report, void *context, int *driver);
// Reports oneDNN.
void rt_host_components(RtComponentHook *report, void *context);
// Reports DuckDB.
void rt_duckdb_component(RtComponentHook *report, void *context);

// The properties of the first GPU; a figure is 0 if unknown.
typedef struct {
    char name[96];
    int capability; // 10 * major + minor
    int processors; // multiprocessors
    bool cooperates;
    double memory, cache;        // bytes; cache: L2
    double bandwidth;            // bytes a second
    double f16_flops, f32_flops; // operations a second
} RtGpuModel;

bool rt_gpu_model(RtGpuModel *out);

// ---- checkpoint/tensors.c ----

// The f32, f16 and bf16 tensors of a safetensors file, widened to f32.
typedef struct RtTensors RtTensors;

// Reads the file, or the newest checkpoint in the folder of a run, and checks
// the hashes of a checkpoint.  NULL with the reason in *e.
RtTensors *rt_tensors_read(const char *path, RtError *e);
void rt_tensors_free(RtTensors *t);
// The numbers of a tensor of that shape; NULL: it has none.
const float *rt_tensors_find(const RtTensors *t, const char *name, int rank,
                             const int64_t *dim);
// An entry of its metadata, or NULL.
const char *rt_tensors_metadata(const RtTensors *t, const char *key);

// ---- data/find.c ----

// Whether a trainer with these options can read its data.
bool rt_data_check(const RtTrainer *t, const RtOptions *o, RtError *e);

#endif
