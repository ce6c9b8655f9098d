// A test double of NVIDIA's driver and libraries: declarations of its parts.
//
// Libraries with the names that the runtime opens do the work of NVIDIA's on
// the processor, as far as the runtime uses them.  Device memory is memory of
// the process that the program may not touch; a stream is a queue that runs as
// late and in as odd an order as its semantics allow; kernels are compiled by
// the C compiler and every CUDA thread exists.  A program that a GPU would run
// correctly only by luck gets an error or wrong numbers.
//
//   SINTER_DOUBLE_SEED=N       the order: 0 at once, 1 as late as can be, else
//                              drawn from N (2)
//   SINTER_DOUBLE_DEVICE=FILE  the device, described as in tools/devices
//   SINTER_DOUBLE_DEVICES=N    how many there are (1)
//   SINTER_DOUBLE_DRIVER=N     the driver's version (13000); it takes no code
//                              of a later CUDA's compiler
//   SINTER_DOUBLE_BUSY=1       another process holds the device
//   SINTER_DOUBLE_MEMORY=N     bytes of device memory
//   SINTER_DOUBLE_UNIT=N       bytes of which mapped memory is made (2 MiB)
//   SINTER_DOUBLE_CODE=N       of them that a library's code takes which runs
//                              for the first time (0)
//   SINTER_DOUBLE_FAIL=F:N:E   call number N of function F returns E; several
//                              with commas.  F may be * for any call, or `run`
//                              for the work of a stream
//   SINTER_DOUBLE_IMAGES=FOLDER keeps compiled kernels, for later processes
//   SINTER_DOUBLE_JPEG=N       nvJPEG finds images N columns wider
//   SINTER_DOUBLE_LOG=FILE     every call with its arguments
//   SINTER_DOUBLE_NVRTC=FOLDER of NVIDIA's own compiler, whose errors are
//                              errors here
//   SINTER_DOUBLE_PTX=1        that compiler's PTX is executed, and no C
//                              compiler runs
//   SINTER_DOUBLE_WARPS=FILE   with PTX: adds the counts of each kernel's warps
//                              to the file
//   SINTER_DOUBLE_DELAYED=1    with PTX: other blocks see a block's stores only
//                              where PTX says so
//   SINTER_DOUBLE_THREADS=1    a block has one thread: fast, less is seen
#ifndef TESTS_DOUBLE_H
#define TESTS_DOUBLE_H

#include "tests/ptx/ptx.h"

#define __CUDA_API_VERSION_INTERNAL // functions have their own names
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- call.c ----

// The start of every entry point.  It waits until no other thread is in one,
// and is over when the function returns.
typedef struct {
    int fault; // the error that is planned for the call, or 0
} Call;

Call call_begin(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void call_end(const Call *call);

#define CALL(type, ...)                                                        \
    const Call call __attribute__((cleanup(call_end))) =                       \
        call_begin(__func__, __VA_ARGS__);                                     \
    if (call.fault != 0)                                                       \
    return (type)call.fault

// The start of an entry point of the driver that needs a context.
#define DRIVER_CALL(...)                                                       \
    CALL(CUresult, __VA_ARGS__);                                               \
    const CUresult refused = driver_refuses();                                 \
    if (refused != CUDA_SUCCESS)                                               \
    return refused

// The error that is planned for this call of a function, or 0.
int fault_next(const char *function);

// The program made a mistake that NVIDIA's libraries need not notice: says so
// and ends it.
_Noreturn void complain(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

void *take(size_t bytes); // zeroed
long setting_number(const char *name, long otherwise);

// ---- memory.c ----

// NULL where there is none left.
void *device_take(size_t bytes);
void *pinned_take(size_t bytes);
// Addresses without memory, and memory for some of them; NULL as well.
void *device_addresses(size_t bytes, size_t alignment);
void *device_place(char *pages, size_t bytes);
// Memory that has no address yet.
void device_use(size_t bytes);
void device_unuse(size_t bytes);
// False where nothing begins there.
bool device_give(const void *start);
bool pinned_give(const void *start);

// Variables of a module, until their owner goes.
void global_add(const void *owner, void *start, size_t bytes);
void globals_forget(const void *owner);

typedef enum { MEMORY_HOST, MEMORY_PINNED, MEMORY_DEVICE, MEMORY_NONE } Memory;
// Whose the bytes at p are; NONE: they are not all in one allocation.
Memory memory_of(const void *p, size_t bytes);
// Ends the program unless the bytes are in one allocation of the device.
void device_must_hold(const char *what, const void *p, size_t bytes);
// Code comes to the device, for good; false where there is no room for it.
bool code_take(void);
size_t device_bytes_free(void);
size_t device_bytes_total(void);
// The program may touch device memory only while a stream runs something.
void device_open(void);
void device_close(void);

// ---- device.c ----

// A number of the described device.
long long device_number(const char *key);
const char *device_name(void);
int device_architecture(void); // 90
// An error that every later call returns, as one after a kernel that failed.
int device_lost(void);
void device_lose(int error);
bool error_loses_device(int error);

// ---- driver.c ----

// The error of a call that comes too early, without a context, or after the
// device was lost.
CUresult driver_refuses(void);
int driver_version(void); // of CUDA that it knows, times 1000
int context_device(void); // the device of the thread's context

// ---- stream.c ----

// Work of a stream; the first field of a larger structure.  It is freed with
// its last user.
typedef struct Work {
    int users;
    const char *what;
    void (*run)(struct Work *w);
    double seconds; // by the stand-in's clock
    char *workspace;
    size_t workspace_bytes; // 0: none
    // Frees more with its last user; or NULL.
    void (*release)(struct Work *w);
} Work;

// Puts work, with its one user, into a stream or into the graph that is being
// captured from it.
CUresult stream_add(CUstream s, Work *w);
// The work that comes directly behind the running one, of which it may see a
// part run; NULL: none is known.
Work *stream_behind(void);
// The same for a launch of a graph, which is not captured.
CUresult stream_launch(CUstream s, CUgraphExec exec);
void work_drop(Work *w);

bool stream_known(CUstream s);
// Runs things until this stream, or all of them, have nothing left.
void stream_finish(CUstream s);
void streams_finish(void);
// A number below n that depends on the seed.
unsigned random_below(unsigned n);
// A seed of an order for the threads of a kernel; 0: as things run at once.
unsigned order_draw(void);

// The nodes of a graph that something comes after.
typedef struct {
    int *node, count;
} Place;

struct CUevent_st {
    CUevent next;
    int users; // the program, and pending operations
    unsigned flags;
    long recorded, done; // records that were queued, and those that ran
    double time;         // of the last that ran
    long capture;        // the capture that it was last recorded in; 0: none
    Place place;         // and where there
};

void event_drop(CUevent e);
// Its record that is number `recorded` runs, at a time of the stand-in's clock.
void event_run(CUevent e, long number, double now);

// ---- capture.c ----

typedef struct Capture Capture;

// A node of a graph runs its work, or records its event.
typedef struct {
    Work *work;
    CUevent event;
    Place need; // the nodes before it
} Node;

struct CUgraph_st {
    Node *node;
    int count;
    int users;    // the program, and graphs that can be launched
    CUgraph next; // graph of the program
};

// A stream that is being captured, and the nodes that its next one follows.
typedef struct {
    Capture *capture; // NULL: it is not
    Place last;
} Captured;

struct CUstream_st {
    CUstream next;
    struct Op *first, **end;
    double now; // seconds by the stand-in's clock
    Captured captured;
    bool after_kernel; // the last that it was given is a launch
};
CUstream streams_first(void);

CUresult capture_add(Captured *at, Work *w);
// Something that may not be done with a stream that is being captured.
CUresult capture_refuse(Captured *at);
// Something that may not be done by a thread that captures.
CUresult capture_forbids(void);
CUresult capture_record(Captured *at, CUevent e, bool external);
// Makes later work of the stream wait for the event; *done: nothing else is to
// be done.
CUresult capture_wait(Captured *at, CUevent e, bool *done);
void graph_drop(CUgraph g);

// The rest of a launch of a graph.
typedef struct {
    CUgraph graph;
    bool *done;
    int left;
    bool late; // runs the last node that is ready
} Replay;

Replay *replay_new(CUgraph g);
void replay_free(Replay *r);
// A node that can run now, at random; it is taken to have run.
const Node *replay_next(Replay *r);
// The work of the node that follows this one and no other; NULL: none does.
Work *replay_behind(const Replay *r, const Node *n);

struct CUgraphExec_st {
    int users; // the program, and launches that have not ended
    CUgraph graph;
    Replay *active;
    CUgraphExec next;
};
void exec_drop(CUgraphExec e);

// ---- module.c ----

typedef struct Warps Warps;

// A kernel of a module with code of any kind.
struct CUfunc_st {
    long number; // no other has had it, as others have the address
    const char *name;
    int threads; // of a block
    bool waits;  // for its whole grid; of PTX only a run shows it
    int num_parameters;
    const int *bytes; // of each
    void (*run)(CUfunction f, void **argument, int grid);
    const void *code;
    const PtxKernel *ptx; // the same, if it is PTX; else NULL
    Warps *warps;         // NULL: not asked for
};

bool function_known(CUfunction f);

// ---- warps.c ----

// Counts of a kernel; NULL without SINTER_DOUBLE_WARPS.
Warps *warps_new(const PtxKernel *k);
void warps_run(Warps *w, const PtxKernel *k, void **argument, int grid);
// Adds the counts to the file of SINTER_DOUBLE_WARPS.
void warps_end(Warps *w, const PtxModule *m, const PtxKernel *k);

// ---- number.c ----

typedef enum { NUMBER_F32, NUMBER_F16, NUMBER_BF16, NUMBER_TF32 } Number;

size_t number_bytes(Number n);
// A value as this type holds it.
float number_round(Number n, float value);
// Element i of an array.
float number_get(Number n, const void *from, size_t i);
void number_put(Number n, void *to, size_t i, float value);

// ---- compile.c ----

// A text, and the headers that it includes.
typedef struct {
    const char *text;
    int num_headers;
    const char *const *header, *const *name;
    const char *defines; // as options of the C compiler
    int architecture;    // negative: of assembly
    int cuda;            // whose compiler it is for
    bool is_tile; // CUDA Tile C++, with the meaning of runtime/prelude/tile
} Unit;

// The head of an image, before its code.
typedef struct {
    char magic[8];
    uint64_t bytes, sum;  // of the code
    int64_t architecture; // negative: of assembly, for all from then on
    int64_t cuda;         // whose compiler made it
} ImageHead;

// Whether images are to be PTX.
bool ptx_is_asked_for(void);
// Code with its head in front of it.
void *image_of(const Unit *u, const void *code, size_t count, size_t *bytes);
// Compiles a text to an image, which is for the caller to free as is the log;
// NULL: the log says why.
void *image_compile(const Unit *u, size_t *bytes, char **log);
// The head of an image, or of assembly, which is then assembled into memory to
// be freed.  NULL unless it is whole.
const ImageHead *image_head(const void *image, void **assembled);
// An image as assembly, which is text; room for twice its bytes and 16 more.
void image_disassemble(const void *image, size_t bytes, char *text);

#endif
