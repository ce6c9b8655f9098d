// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory: copies between host and GPU.
#ifndef RUNTIME_CUDA_MEMORY_H
#define RUNTIME_CUDA_MEMORY_H

#include "runtime/cuda/kernels/kernels.h"
#include "runtime/device.h"

// ---- sparse.c ----

// A range of addresses with memory for parts of it.
typedef struct {
    const RtDriver *cu;
    CUdeviceptr at; // 0: none
    size_t bytes;
    RtRange mapped[3];
    int count;
} RtSparse;

// The unit of such memory on a GPU.
bool rt_sparse_unit(const RtGpu *g, size_t *bytes, RtError *e);
// Maps zeroed memory to whole units, but for the absent parts, of whole units,
// too.  *left: there is no memory left, and *e is not filled.
bool rt_sparse_open(RtSparse *s, const RtGpu *g, size_t bytes,
                    const RtRange absent[2], CUstream stream, bool *left,
                    RtError *e);
void rt_sparse_close(RtSparse *s);

// ---- staging.c ----

// Pinned slots, filled in turn, for copies to and from pageable memory.  A slot
// is filled again once its copies have arrived.
enum { RT_STAGING_SLOTS = 4 };

typedef struct {
    char *at;
    size_t used;
    CUevent arrived; // recorded when the next slot came into use
    bool recorded;
} RtStagingSlot;

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    RtStagingSlot slot[RT_STAGING_SLOTS];
    int now; // slot that is being filled
    char *back;
} RtStaging;

bool rt_staging_open(RtStaging *s, const RtDriver *cu, CUstream stream,
                     RtError *e);
void rt_staging_close(RtStaging *s);

// `from` may change on return.
bool rt_staging_write(RtStaging *s, CUdeviceptr to, const void *from,
                      size_t bytes, RtError *e);
// Waits for all earlier work of the stream.
bool rt_staging_read(RtStaging *s, void *to, CUdeviceptr from, size_t bytes,
                     RtError *e);

// ---- resident_dataset.c ----

// Rows that stay in GPU memory.  A batch is then a list of row numbers, and a
// kernel gathers the rows into the step's input.
//
// The step's kernels could read through the numbers instead.  That would save
// this launch and a batch's bytes written and read, some microseconds.  But
// each kernel that reads images would need an index that neither the host nor a
// streamed batch uses, and snapshots would not find the batch in the arena.
enum { RT_MAX_RESIDENT = 2 };

// The kernel for the widest word that divides a row of so many bytes.
RtBuiltin rt_gather_of(size_t row);

typedef struct {
    const RtDriver *cu;
    CUdeviceptr at; // of the first row
    CUfunction gather;
    int grid, taken, words; // taken: rows of a batch; words: of a row
} RtResident;

// Copies the rows to the GPU; a batch gathers `taken` of them.
bool rt_resident_open(RtResident *r, RtBuiltins *b, RtStaging *staging,
                      const RtRows *rows, int64_t taken, RtError *e);
void rt_resident_close(RtResident *r);

// Gathers the rows whose numbers (int) are at `index`.
bool rt_resident_gather(const RtResident *r, CUdeviceptr index, CUdeviceptr to,
                        CUstream stream, RtError *e);

// ---- copy_stream.c ----

// Copies batches into the inputs of steps on a stream of its own.
//
// The step before still reads the inputs, so a batch goes to a slot of GPU
// memory first, and the steps' stream copies it on.  Events tell each stream
// when the other has filled or emptied a slot.  Steps that are launched
// together have slots of their own, in two sets: one is filled while the other
// is read.
enum { RT_COPY_SLOTS = 3, RT_MAX_GROUP = 8, RT_MAX_SLOTS = 2 * RT_MAX_GROUP };

typedef struct {
    const RtDriver *cu;
    CUstream steps, copies;
    RtTraceSpans *spans;
    size_t slot_bytes; // inputs of the largest step
    struct {
        CUdeviceptr at;
        CUevent full, empty;
    } slot[RT_MAX_SLOTS];
    int slots, next;           // of these: how many, and the next to fill
    int slot_of[RT_MAX_SLOTS]; // of the last batches: their slots, a ring
    RtResident resident[RT_MAX_RESIDENT];
    int num_resident;
    int64_t submitted; // batches
    int64_t completed; // batches whose host memory has been read
} RtCopyStream;

// group: steps that are launched together, at most.
bool rt_copy_stream_open(RtCopyStream *f, const RtDriver *cu, CUstream steps,
                         const RtPlan *plan, int group, RtTraceSpans *spans,
                         RtError *e);
void rt_copy_stream_close(RtCopyStream *f);

// Bytes of GPU memory for its slots, and their address.  Earlier work on the
// steps' stream comes before the first batch.
size_t rt_copy_stream_bytes(const RtCopyStream *f);
bool rt_copy_stream_bind(RtCopyStream *f, CUdeviceptr at, RtError *e);

// Adds a resident data set; pieces name the first one 1.
bool rt_copy_stream_add_resident(RtCopyStream *f, RtBuiltins *b,
                                 RtStaging *staging, const RtRows *rows,
                                 int64_t taken, RtError *e);

// Queues copies of the pieces, in pinned memory, into the arena.
bool rt_copy_stream_submit(RtCopyStream *f, CUdeviceptr arena,
                           const RtPiece *piece, int count, RtError *e);
// Its two halves: to a slot, of which it returns the number in *slot, and from
// there to the arena.
bool rt_copy_stream_fill(RtCopyStream *f, const RtPiece *piece, int count,
                         int *slot, RtError *e);
bool rt_copy_stream_take(const RtCopyStream *f, int slot, CUdeviceptr arena,
                         const RtPiece *piece, int count, RtError *e);
// The parts of the second half: the wait for the slot, its copies, and the mark
// that it is empty.
bool rt_copy_stream_wait(const RtCopyStream *f, int slot, RtError *e);
bool rt_copy_stream_copy(const RtCopyStream *f, int slot, CUdeviceptr arena,
                         const RtPiece *piece, int count, RtError *e);
bool rt_copy_stream_empty(const RtCopyStream *f, int slot, RtError *e);
// Updates f->completed, and waits until it is at least `least`.
bool rt_copy_stream_completed(RtCopyStream *f, int64_t least, RtError *e);
// Waits for all copies.
bool rt_copy_stream_sync(const RtCopyStream *f, RtError *e);

// ---- async_readback.c ----

// Reads a few floats some steps later, without waiting.
typedef struct {
    const RtDriver *cu;
    CUstream stream;
    float (*value)[RT_MAX_READBACK_VALUES]; // pinned; a row for each request
    CUevent arrived[RT_MAX_READBACKS];
    int count[RT_MAX_READBACKS];
    int64_t requested, polled;
} RtAsyncReadback;

bool rt_async_readback_open(RtAsyncReadback *r, const RtDriver *cu,
                            CUstream stream, RtError *e);
void rt_async_readback_close(RtAsyncReadback *r);

// Queues copies of floats after the stream's earlier work.  Fewer than
// RT_MAX_READBACKS requests may be in flight.
bool rt_async_readback_request(RtAsyncReadback *r, CUdeviceptr arena,
                               const size_t *from, int count, RtError *e);
// The values of the oldest request; *arrived: they are there.
bool rt_async_readback_poll(RtAsyncReadback *r, float *to, bool wait,
                            bool *arrived, RtError *e);

#endif
