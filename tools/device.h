// Device: a description of a device that need not be here.  Plans are estimated
// for it.
#ifndef TOOLS_DEVICE_H
#define TOOLS_DEVICE_H

#include "codegen/codegen.h"
#include "passes/plan/plan.h"
#include "tools/tools.h"

// A description is a JSON object.  These numbers are read from it; it may hold
// all others that cuDNN needs of a device under cuDNN's names.
typedef struct Device {
    const char *name; // deviceName
    int sm;           // deviceVer / 10: the compute capability, as 90
    bool cooperative; // unless supportCoopLaunch is 0: launches with a barrier
    double multiprocessors, memory, cache, bandwidth, f16_flops, f32_flops;
    double link;  // bytes per second to other GPUs of its machine, each way
    double clock; // multiprocessor cycles per second
    double registers, shared, threads, blocks; // of a multiprocessor
    const char *text; // the whole description; NULL: a device that is here
    int lanes;        // floats of a vector of a processor; 0: it is a GPU
} Device;

// Finds the device of --device or --device-file, by default an H200. False,
// after a message and with an exit status, if there is none.
bool device_find(Arena *a, const Arguments *arguments, Device *out,
                 int *status);

// A device of a compute capability, such as 90: that of device_find, or the
// first description here of the greatest capability that is not larger.
Device device_for(Arena *a, const Arguments *arguments, int capability);

// Fills the numbers that a description may lack.
void device_options(Device *d);

// Makes plans for the device that --device or --device-file names, if one does.
bool device_plan(Arena *a, Arguments *arguments, int *status);

// ---- host_speed.c ----

// The measured speed of all processors that this process may use, together.
typedef struct {
    int threads; // 0: nothing could be measured
    int lanes;   // floats of a vector
    double flops, bandwidth;
} HostSpeed;

HostSpeed host_speed(void);

// ---- detect.c ----

// The first GPU of this machine, as its driver describes it; false: there is
// none.  A peak that is not known is 0.
bool gpu_detect(Arena *a, Device *out);

// The processors that this process may use, measured.
Device host_detect(Arena *a);

// ---- occupancy.c ----

// Blocks that fit on a multiprocessor, and those of a launch of so many that
// are resident on the one with the most.
int max_resident_blocks(const KernelCost *k, const Device *d);
int resident_blocks(const KernelCost *k, int blocks, const Device *d);

// The least time in which the multiprocessor with the most blocks of a launch
// issues their instructions: each of its 4 schedulers issues one in a cycle,
// and a special function every 8 cycles.  Few warps cannot: see kernel_seconds.
double issue_seconds(const KernelCost *k, int blocks, const Device *d);

// Bytes that these load at once.
int64_t bytes_in_flight(const KernelCost *k, int blocks, const Device *d);

// ---- kernel_time.c ----

// The gap between two dependent kernels of a CUDA graph, and the barrier
// between two kernels of a merged launch, in seconds: assumed.
extern const double GPU_LAUNCH, GPU_BARRIER;

// Seconds for which the last blocks of a kernel add the partial sums of the
// others.
double tail_seconds(const KernelCost *k);

// The estimate of a kernel on a GPU.
KernelTime kernel_time(const Graph *g, const Group *group, const Kernel *k,
                       const Device *d);

// Seconds in which a GPU's memory transfers bytes, and those of a library
// call's arithmetic, which takes `at_peak` seconds at the GPU's peak.
double memory_seconds(double bytes, const Device *d);
double call_seconds(double at_peak);

// The estimates of kernels by which passes fuse and merge for a GPU that lasts
// as long as they run.
TimeModel device_time_model(const Device *d);

// ---- estimate.c ----

// Seconds that a step of the plan takes on the device, with its sums over
// shards; 0: not known.
double step_seconds(const Plan *plan, const Program *p, const Device *device);

// Seconds of a launch on a GPU, by the cost model, without the gap before it.
double gpu_seconds(const Graph *g, const Group *group, const Kernel *k,
                   const Device *d);

// Bytes that a binary counter reads and stores to add n terms of a size: it
// reads 2 n - 1 and stores n (runtime/shards.c).
int64_t tree_bytes(int64_t n, int64_t bytes);

// Bytes and seconds of its sums over shards, in one process.
int64_t shard_sum_bytes(const Plan *plan, const Program *p);
double shard_sum_seconds(const Plan *plan, const Program *p,
                         const Device *device);

// Seconds of each group of each step of a plan: launch_seconds(...)[i][k] of
// group k of step i.  On a GPU that reaches the usual parts of its peaks, with
// the instructions of kernels, the latency of their loads and sums over blocks,
// the library fusions and merged launches that it selects, and the gap or the
// barrier before the kernel.  `tiles`: with the tile kernels that --tile=auto
// takes.
double **launch_seconds(Arena *a, const Plan *plan, const Device *device,
                        bool tiles);

// The sum of launch_seconds and of the sums over shards, for a step of a GPU;
// 0: not known.
double step_estimate(Arena *a, const Plan *plan, const Program *p,
                     const Device *device, bool tiles);

// Samples of an epoch where the data set's format has a certain number; else 0.
int64_t epoch_samples(const Recipe *r);

// ---- support.c ----

// Whether the device's libraries support all calls of a plan; if not, a message
// names the layer of the first unsupported call.
bool plan_supported(Arena *a, const Arguments *arguments, const Plan *plan,
                    const Device *device);

// ---- select.c ----

// Library fusions and merged launches that a device selects in a step of a
// plan, and the launches that merging saves without and with fusions.
typedef struct {
    const Device *device;
    const GraphPlan *plan;
    MergedLaunches merges; // those of the plan, if it can merge launches
    bool *fused, *merged; // which of these fusions and merges it takes together
    Saving saving;
    int merged_alone, merged_beside; // launches fewer
} Selected;

Selected step_select(Arena *a, const Plan *plan, const Step *step,
                     const Device *device);

#endif
