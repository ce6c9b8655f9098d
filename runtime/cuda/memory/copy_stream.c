// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copy stream: slots of GPU memory that are filled in turn.

#include "runtime/cuda/memory/memory.h"

#include "base/round_up.h"

enum { ALIGNMENT = 256 };

static size_t aligned(size_t bytes) {
    return align_up(bytes, ALIGNMENT);
}

// Inputs are parts of the arena, so their sizes do not overflow.  Row numbers
// may take an input's place.
static size_t step_bytes(const RtStep *step) {
    size_t bytes = 0;
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        size_t numbers = in->rank > 0 ? (size_t)in->dim[0] * sizeof(int) : 0;
        size_t whole = rt_input_bytes(in);
        bytes += aligned(whole > numbers ? whole : numbers);
    }
    return bytes;
}

bool rt_copy_stream_open(RtCopyStream *f, const RtDriver *cu, CUstream steps,
                         const RtPlan *plan, int group, RtTraceSpans *spans,
                         RtError *e) {
    *f = (RtCopyStream){.cu = cu,
                        .steps = steps,
                        .spans = spans,
                        .slots = group > 1 ? 2 * group : RT_COPY_SLOTS};
    for (int i = 0; i < plan->num_steps; i++) {
        size_t bytes = step_bytes(&plan->step[i]);
        f->slot_bytes = bytes > f->slot_bytes ? bytes : f->slot_bytes;
    }
    bool good = rt_driver_good(
        cu, cu->stream_create(&f->copies, CU_STREAM_NON_BLOCKING, 0), e,
        "create a stream");
    for (int i = 0; good && i < f->slots; i++)
        good =
            rt_event_create(cu, &f->slot[i].full, CU_EVENT_DISABLE_TIMING, e) &&
            rt_event_create(cu, &f->slot[i].empty, CU_EVENT_DISABLE_TIMING, e);
    if (!good)
        rt_copy_stream_close(f);
    return good;
}

void rt_copy_stream_close(RtCopyStream *f) {
    if (f->cu == NULL)
        return;
    for (int i = 0; i < f->slots; i++) {
        rt_event_destroy(f->cu, f->slot[i].full);
        rt_event_destroy(f->cu, f->slot[i].empty);
    }
    for (int i = 0; i < f->num_resident; i++)
        rt_resident_close(&f->resident[i]);
    if (f->copies != NULL) {
        f->cu->stream_sync(f->copies);
        f->cu->stream_free(f->copies);
    }
    *f = (RtCopyStream){0};
}

size_t rt_copy_stream_bytes(const RtCopyStream *f) {
    return (size_t)f->slots * f->slot_bytes;
}

bool rt_copy_stream_bind(RtCopyStream *f, CUdeviceptr at, RtError *e) {
    for (int i = 0; i < f->slots; i++) {
        f->slot[i].at = at + (size_t)i * f->slot_bytes;
        if (!rt_driver_good(f->cu,
                            f->cu->event_record(f->slot[i].empty, f->steps), e,
                            "mark a slot as empty"))
            return false;
    }
    return true;
}

static RtSpan span(const RtCopyStream *f, int track, const char *name) {
    return (RtSpan){.track = track, .name = name, .number = f->submitted - 1};
}

static bool fill_slot(const RtCopyStream *f, int slot, const RtPiece *piece,
                      int count, RtError *e) {
    const RtDriver *cu = f->cu;
    CUdeviceptr at = f->slot[slot].at;
    RtSpan copy = span(f, RT_TRACK_COPIES, "copy batch");
    bool good =
        rt_driver_good(cu, cu->stream_wait(f->copies, f->slot[slot].empty, 0),
                       e, "wait for an empty slot") &&
        rt_trace_spans_begin(f->spans, &copy, f->copies, e);
    for (int i = 0; good && i < count; i++) {
        good = rt_driver_good(
            cu,
            cu->copy_to_device(at, piece[i].from, piece[i].bytes, f->copies), e,
            "copy %zu bytes to the GPU", piece[i].bytes);
        at += aligned(piece[i].bytes);
    }
    return good && rt_trace_spans_end(f->spans, f->copies, e) &&
           rt_driver_good(cu, cu->event_record(f->slot[slot].full, f->copies),
                          e, "record the end of a copy");
}

// Copies one piece from a slot to its input.
static bool copy_piece(const RtCopyStream *f, CUdeviceptr at, CUdeviceptr arena,
                       const RtPiece *piece, RtError *e) {
    CUdeviceptr to = arena + piece->to;
    if (piece->kept > 0)
        return rt_resident_gather(&f->resident[piece->kept - 1], at, to,
                                  f->steps, e);
    return rt_driver_good(f->cu, f->cu->copy(to, at, piece->bytes, f->steps), e,
                          "copy %zu bytes to an input", piece->bytes);
}

bool rt_copy_stream_wait(const RtCopyStream *f, int slot, RtError *e) {
    return rt_driver_good(f->cu,
                          f->cu->stream_wait(f->steps, f->slot[slot].full, 0),
                          e, "wait for a batch");
}

bool rt_copy_stream_copy(const RtCopyStream *f, int slot, CUdeviceptr arena,
                         const RtPiece *piece, int count, RtError *e) {
    CUdeviceptr at = f->slot[slot].at;
    bool good = true;
    for (int i = 0; good && i < count; i++) {
        good = copy_piece(f, at, arena, &piece[i], e);
        at += aligned(piece[i].bytes);
    }
    return good;
}

bool rt_copy_stream_empty(const RtCopyStream *f, int slot, RtError *e) {
    return rt_driver_good(f->cu,
                          f->cu->event_record(f->slot[slot].empty, f->steps), e,
                          "mark a slot as empty");
}

bool rt_copy_stream_take(const RtCopyStream *f, int slot, CUdeviceptr arena,
                         const RtPiece *piece, int count, RtError *e) {
    RtSpan move = span(f, RT_TRACK_KERNELS, "take batch");
    return rt_copy_stream_wait(f, slot, e) &&
           rt_trace_spans_begin(f->spans, &move, f->steps, e) &&
           rt_copy_stream_copy(f, slot, arena, piece, count, e) &&
           rt_trace_spans_end(f->spans, f->steps, e) &&
           rt_copy_stream_empty(f, slot, e);
}

bool rt_copy_stream_add_resident(RtCopyStream *f, RtBuiltins *b,
                                 RtStaging *staging, const RtRows *rows,
                                 int64_t taken, RtError *e) {
    if (f->num_resident == RT_MAX_RESIDENT)
        return rt_fail(e, EXIT_FAULT, "too many resident data sets");
    return rt_resident_open(&f->resident[f->num_resident++], b, staging, rows,
                            taken, e);
}

bool rt_copy_stream_fill(RtCopyStream *f, const RtPiece *piece, int count,
                         int *slot, RtError *e) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += aligned(piece[i].bytes);
    if (bytes > f->slot_bytes)
        return rt_fail(e, EXIT_FAULT, "a batch has more bytes than any step");
    *slot = f->next;
    f->next = (f->next + 1) % f->slots;
    f->slot_of[f->submitted++ % RT_MAX_SLOTS] = *slot;
    return fill_slot(f, *slot, piece, count, e);
}

bool rt_copy_stream_submit(RtCopyStream *f, CUdeviceptr arena,
                           const RtPiece *piece, int count, RtError *e) {
    int slot;
    return rt_copy_stream_fill(f, piece, count, &slot, e) &&
           rt_copy_stream_take(f, slot, arena, piece, count, e);
}

// An event may have been recorded again for a later batch, which is read no
// sooner.
bool rt_copy_stream_completed(RtCopyStream *f, int64_t least, RtError *e) {
    const RtDriver *cu = f->cu;
    for (; f->completed < f->submitted; f->completed++) {
        int slot = f->slot_of[f->completed % RT_MAX_SLOTS];
        CUevent full = f->slot[slot].full;
        CUresult state =
            f->completed < least ? cu->event_sync(full) : cu->event_query(full);
        if (state == CUDA_ERROR_NOT_READY)
            return true;
        if (!rt_driver_good(cu, state, e, "copy a batch to the GPU"))
            return false;
    }
    return true;
}

bool rt_copy_stream_sync(const RtCopyStream *f, RtError *e) {
    return rt_driver_good(f->cu, f->cu->stream_sync(f->copies), e,
                          "copy a batch to the GPU");
}
