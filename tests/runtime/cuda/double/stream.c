// Streams and events: queues that run only when something waits for them, in a
// random order that their semantics allow.
#include "tests/runtime/cuda/double/double.h"

#include <stdlib.h>

typedef enum { OP_WORK, OP_RECORD, OP_WAIT, OP_GRAPH } OpKind;

typedef struct Op {
    struct Op *next;
    OpKind kind;
    Work *work;
    CUevent event; // RECORD, WAIT
    long number;   // of the event's record
    CUgraphExec exec;
    Replay *replay;
    double earliest; // the time of the call
} Op;

static struct {
    CUstream first;
    CUevent events;
    bool running, seeded;
    uint64_t random;
    long seed;
    double now; // the latest of all
    Work *behind; // the running work
} streams;

// ---- the draw ----

static long seed(void) {
    if (!streams.seeded) {
        streams.seeded = true;
        streams.seed = setting_number("SINTER_DOUBLE_SEED", 2);
        streams.random = (uint64_t)streams.seed * 0x9e3779b97f4a7c15u + 1;
    }
    return streams.seed;
}

unsigned random_below(unsigned n) {
    seed();
    streams.random =
        streams.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((streams.random >> 33) % n);
}

unsigned order_draw(void) {
    return seed() == 0 ? 0 : 1 + random_below(1u << 30);
}

// ---- the contents of streams ----

void work_drop(Work *w) {
    if (w == NULL || --w->users > 0)
        return;
    if (w->release != NULL)
        w->release(w);
    free(w);
}

void event_drop(CUevent e) {
    if (e == NULL || --e->users > 0)
        return;
    free(e->place.node);
    free(e);
}

void exec_drop(CUgraphExec e) {
    if (e == NULL || --e->users > 0)
        return;
    graph_drop(e->graph);
    free(e);
}

void event_run(CUevent e, long number, double now) {
    if (number > e->done)
        e->done = number;
    e->time = now;
}

CUstream streams_first(void) {
    return streams.first;
}

bool stream_known(CUstream s) {
    CUstream at = streams.first;
    while (at != NULL && at != s)
        at = at->next;
    return at != NULL;
}

static bool event_known(CUevent e) {
    CUevent at = streams.events;
    while (at != NULL && at != e)
        at = at->next;
    return at != NULL;
}

static Op *op_add(CUstream s, OpKind kind) {
    Op *o = take(sizeof *o);
    s->after_kernel = false;
    o->kind = kind;
    o->earliest = streams.now;
    *s->end = o;
    s->end = &o->next;
    return o;
}

static void op_pop(CUstream s) {
    Op *o = s->first;
    s->first = o->next;
    if (s->first == NULL)
        s->end = &s->first;
    work_drop(o->work);
    event_drop(o->event);
    if (o->replay != NULL)
        replay_free(o->replay);
    exec_drop(o->exec);
    free(o);
}

// ---- running ----

static bool op_ready(const Op *o) {
    if (o->kind == OP_WAIT)
        return o->event->done >= o->number;
    if (o->kind == OP_GRAPH)
        return o->exec->active == NULL || o->exec->active == o->replay;
    return true;
}

Work *stream_behind(void) {
    return streams.behind;
}

static void work_run(CUstream s, Work *w, Work *behind) {
    int error = fault_next("run");
    if (error != 0)
        device_lose(error);
    streams.behind = behind;
    if (device_lost() == 0)
        w->run(w);
    s->now += w->seconds;
}

// One node of a graph; whether there was none left.
static bool graph_step(CUstream s, Op *o) {
    o->exec->active = o->replay;
    if (o->replay->left > 0) {
        const Node *n = replay_next(o->replay);
        if (n->work != NULL)
            work_run(s, n->work, replay_behind(o->replay, n));
        if (n->event != NULL && !event_known(n->event))
            complain("a graph records an event that was destroyed");
        if (n->event != NULL)
            event_run(n->event, ++n->event->recorded, s->now);
    }
    if (o->replay->left > 0)
        return false;
    o->exec->active = NULL;
    return true;
}

static void stream_step(CUstream s) {
    Op *o = s->first;
    bool ended = true;
    s->now = o->earliest > s->now ? o->earliest : s->now;
    if (o->kind == OP_WORK)
        work_run(s, o->work, o->next != NULL ? o->next->work : NULL);
    else if (o->kind == OP_RECORD)
        event_run(o->event, o->number, s->now);
    else if (o->kind == OP_WAIT)
        s->now = o->event->time > s->now ? o->event->time : s->now;
    else
        ended = graph_step(s, o);
    streams.now = s->now > streams.now ? s->now : streams.now;
    if (ended)
        op_pop(s);
}

// One thing of one stream that can go on; false where none can.  With the seed
// for as late as can be, others than the one that is waited for stand still
// until it needs them.
static bool streams_step(CUstream waited_for) {
    CUstream can[64];
    unsigned count = 0;
    if (seed() == 1 && waited_for != NULL && op_ready(waited_for->first)) {
        stream_step(waited_for);
        return true;
    }
    for (CUstream s = streams.first; s != NULL && count < 64; s = s->next)
        if (s->first != NULL && op_ready(s->first))
            can[count++] = s;
    if (count == 0)
        return false;
    stream_step(can[random_below(count)]);
    return true;
}

static bool stream_busy(const void *of) {
    CUstream s = (CUstream)(uintptr_t)of;
    return s->first != NULL;
}

static bool any_busy(const void *of) {
    (void)of;
    for (CUstream s = streams.first; s != NULL; s = s->next)
        if (s->first != NULL)
            return true;
    return false;
}

static bool event_waits(const void *of) {
    const struct CUevent_st *e = of;
    return e->done < e->recorded;
}

// Runs `most` things, or all while there is more, for a stream, an event or
// NULL.
static void run_while(bool (*more)(const void *of), const void *of, long most) {
    CUstream waited_for = more == stream_busy ? (CUstream)(uintptr_t)of : NULL;
    if (streams.running)
        complain("a kernel waits for its own stream");
    if (most == 0 || !more(of))
        return;
    streams.running = true;
    device_open();
    bool can = true;
    while (most-- != 0 && can && more(of))
        can = streams_step(waited_for);
    device_close();
    streams.running = false;
    if (!can && more(of) && most < -1)
        complain("streams wait for each other");
}

void stream_finish(CUstream s) {
    run_while(stream_busy, s, -1);
}

void streams_finish(void) {
    run_while(any_busy, NULL, -1);
}

// After a call streams may go on a little.
static void streams_advance(void) {
    if (seed() == 0)
        run_while(any_busy, NULL, -1);
    else if (seed() > 1 && random_below(4) == 0)
        run_while(any_busy, NULL, 1 + random_below(8));
}

// ---- work for streams ----

CUresult stream_add(CUstream s, Work *w) {
    s->after_kernel = false;
    if (s->captured.capture != NULL)
        return capture_add(&s->captured, w);
    op_add(s, OP_WORK)->work = w;
    streams_advance();
    return CUDA_SUCCESS;
}

CUresult stream_launch(CUstream s, CUgraphExec exec) {
    if (s->captured.capture != NULL)
        return capture_refuse(&s->captured);
    Op *o = op_add(s, OP_GRAPH);
    o->exec = exec;
    o->replay = replay_new(exec->graph);
    exec->users++;
    streams_advance();
    return CUDA_SUCCESS;
}

// ---- the driver's functions ----

CUresult cuStreamCreateWithPriority(CUstream *to, unsigned flags,
                                    int priority) {
    DRIVER_CALL("flags=%u priority=%d", flags, priority);
    if (flags != CU_STREAM_NON_BLOCKING)
        complain("a stream that waits for the legacy default stream");
    CUstream s = take(sizeof *s);
    s->end = &s->first;
    s->next = streams.first;
    streams.first = s;
    *to = s;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream s) {
    DRIVER_CALL("%p", (void *)s);
    CUstream *at = &streams.first;
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    stream_finish(s);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s->captured.last.node);
    free(s);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s) {
    DRIVER_CALL("%p", (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->captured.capture != NULL)
        return capture_refuse(&s->captured);
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    stream_finish(s);
    return (CUresult)device_lost();
}

CUresult cuStreamQuery(CUstream s) {
    DRIVER_CALL("%p", (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->captured.capture != NULL)
        return capture_refuse(&s->captured);
    run_while(stream_busy, s, 1 + random_below(8));
    return device_lost()      ? (CUresult)device_lost()
           : s->first != NULL ? CUDA_ERROR_NOT_READY
                              : CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    DRIVER_CALL("%p event=%p flags=%u", (void *)s, (void *)e, flags);
    bool done = false;
    if (!stream_known(s) || !event_known(e))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_EVENT_WAIT_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    s->after_kernel = false;
    CUresult r = capture_wait(&s->captured, e, &done);
    if (done || e->recorded == 0)
        return r;
    Op *o = op_add(s, OP_WAIT);
    o->event = e;
    o->number = e->recorded;
    e->users++;
    streams_advance();
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *to, unsigned flags) {
    DRIVER_CALL("flags=%u", flags);
    if (flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = take(sizeof *e);
    e->users = 1;
    e->flags = flags;
    e->next = streams.events;
    streams.events = e;
    *to = e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e) {
    DRIVER_CALL("%p", (void *)e);
    CUevent *at = &streams.events;
    if (!event_known(e))
        return CUDA_ERROR_INVALID_HANDLE;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    event_drop(e);
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s, unsigned flags) {
    bool external = flags == CU_EVENT_RECORD_EXTERNAL;
    if (!stream_known(s) || !event_known(e))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_EVENT_RECORD_DEFAULT && !external)
        return CUDA_ERROR_INVALID_VALUE;
    s->after_kernel = false;
    if (s->captured.capture != NULL)
        return capture_record(&s->captured, e, external);
    if (external)
        return CUDA_ERROR_ILLEGAL_STATE;
    e->capture = 0;
    Op *o = op_add(s, OP_RECORD);
    o->event = e;
    o->number = ++e->recorded;
    e->users++;
    streams_advance();
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
    DRIVER_CALL("%p stream=%p", (void *)e, (void *)s);
    return event_record(e, s, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags) {
    DRIVER_CALL("%p stream=%p flags=%u", (void *)e, (void *)s, flags);
    return event_record(e, s, flags);
}

// Errors that both queries of an event share.
static CUresult event_asked(CUevent e) {
    if (!event_known(e))
        return CUDA_ERROR_INVALID_HANDLE;
    return e->capture != 0 ? CUDA_ERROR_CAPTURED_EVENT : capture_forbids();
}

CUresult cuEventQuery(CUevent e) {
    DRIVER_CALL("%p", (void *)e);
    CUresult r = event_asked(e);
    if (r != CUDA_SUCCESS)
        return r;
    run_while(event_waits, e, 1 + random_below(8));
    return device_lost()    ? (CUresult)device_lost()
           : event_waits(e) ? CUDA_ERROR_NOT_READY
                            : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent e) {
    DRIVER_CALL("%p", (void *)e);
    CUresult r = event_asked(e);
    if (r != CUDA_SUCCESS)
        return r;
    run_while(event_waits, e, -1);
    return (CUresult)device_lost();
}

static CUresult event_elapsed(float *ms, CUevent from, CUevent to) {
    if (!event_known(from) || !event_known(to) || from->recorded == 0 ||
        to->recorded == 0 ||
        ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (from->capture != 0 || to->capture != 0)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event_waits(from) || event_waits(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((to->time - from->time) * 1e3);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
    DRIVER_CALL("from=%p to=%p", (void *)from, (void *)to);
    return event_elapsed(ms, from, to);
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
    DRIVER_CALL("from=%p to=%p", (void *)from, (void *)to);
    return event_elapsed(ms, from, to);
}
