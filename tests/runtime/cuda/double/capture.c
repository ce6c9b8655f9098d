// Capture and graphs: work of streams becomes nodes of a graph in order, and
// other work returns the errors of CUDA.
#include "tests/runtime/cuda/double/double.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct Capture {
    Capture *next;
    long id;
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid;
};

static struct {
    Capture *first; // under way
    long last_id;
    CUgraph graphs; // that the program has
    CUgraphExec execs;
} captures;

// ---- places ----

static void place_add(Place *p, int node) {
    for (int i = 0; i < p->count; i++)
        if (p->node[i] == node)
            return;
    p->node = realloc(p->node, (size_t)(p->count + 1) * sizeof *p->node);
    if (p->node == NULL)
        complain("out of the machine's own memory");
    p->node[p->count++] = node;
}

static void place_join(Place *p, const Place *other) {
    for (int i = 0; i < other->count; i++)
        place_add(p, other->node[i]);
}

static void place_clear(Place *p) {
    free(p->node);
    *p = (Place){0};
}

// ---- graphs ----

void graph_drop(CUgraph g) {
    if (g == NULL || --g->users > 0)
        return;
    for (int i = 0; i < g->count; i++) {
        work_drop(g->node[i].work);
        event_drop(g->node[i].event);
        place_clear(&g->node[i].need);
    }
    free(g->node);
    free(g);
}

static int node_add(CUgraph g, const Place *after) {
    g->node = realloc(g->node, (size_t)(g->count + 1) * sizeof *g->node);
    if (g->node == NULL)
        complain("out of the machine's own memory");
    g->node[g->count] = (Node){0};
    place_join(&g->node[g->count].need, after);
    return g->count++;
}

Replay *replay_new(CUgraph g) {
    Replay *r = take(sizeof *r);
    *r = (Replay){g, take((size_t)g->count * sizeof(bool)), g->count,
                  random_below(2) == 1};
    return r;
}

void replay_free(Replay *r) {
    free(r->done);
    free(r);
}

static bool node_ready(const Replay *r, int i) {
    const Place *need = &r->graph->node[i].need;
    for (int k = 0; k < need->count; k++)
        if (!r->done[need->node[k]])
            return false;
    return !r->done[i];
}

// Nodes are in topological order, so the first that has not run is ready.  Every
// other replay runs the last that is ready, and so a branch as late as it may.
const Node *replay_next(Replay *r) {
    int first = 0, ready = 0, chosen = -1;
    while (r->done[first])
        first++;
    for (int i = first; i < r->graph->count && i < first + 64; i++)
        if (node_ready(r, i) &&
            (r->late || random_below((unsigned)++ready) == 0))
            chosen = i;
    r->done[chosen] = true;
    r->left--;
    return &r->graph->node[chosen];
}

Work *replay_behind(const Replay *r, const Node *n) {
    const int own = (int)(n - r->graph->node);
    Work *behind = NULL;
    for (int i = own + 1; i < r->graph->count; i++) {
        const Node *other = &r->graph->node[i];
        if (other->need.count == 1 && other->need.node[0] == own)
            behind = other->work;
    }
    return behind;
}

// ---- capturing ----

static Capture *capture_of(long id) {
    Capture *c = captures.first;
    while (c != NULL && c->id != id)
        c = c->next;
    return c;
}

CUresult capture_refuse(Captured *at) {
    at->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_forbids(void) {
    for (Capture *c = captures.first; c != NULL; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());
        if (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
            (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && mine)) {
            c->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

// A node after all that the stream has, which is then its last.
static Node *captured_node(Captured *at) {
    CUgraph g = at->capture->graph;
    int node = node_add(g, &at->last);
    at->last.count = 0;
    place_add(&at->last, node);
    return &g->node[node];
}

// Marks the nodes before the last one.
static void mark_before(const CUgraph g, bool *before) {
    before[g->count - 1] = true;
    for (int i = g->count; i-- > 0;)
        for (int k = 0; before[i] && k < g->node[i].need.count; k++)
            before[g->node[i].need.node[k]] = true;
}

static bool share_memory(const Work *a, const Work *b) {
    return a->workspace < b->workspace + b->workspace_bytes &&
           b->workspace < a->workspace + a->workspace_bytes;
}

// The last node of a graph may not share a workspace with one that may run
// beside it.  Nor may small ones be shared: an engine may keep a descriptor of
// its tensors there, written once for all replays.
static void workspace_check(const CUgraph g) {
    enum { SMALL = 64 << 10 };
    bool *before = take((size_t)g->count);
    const Work *b = g->node[g->count - 1].work;
    mark_before(g, before);
    for (int i = 0; i < g->count - 1; i++) {
        const Work *a = g->node[i].work;
        if (a != NULL && a->workspace_bytes > 0 && share_memory(a, b) &&
            (!before[i] ||
             (a->workspace_bytes <= SMALL && b->workspace_bytes <= SMALL)))
            complain("%s and %s of a graph share a workspace at %p", a->what,
                     b->what, (void *)a->workspace);
    }
    free(before);
}

CUresult capture_add(Captured *at, Work *w) {
    if (at->capture->invalid) {
        work_drop(w);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    captured_node(at)->work = w;
    if (w->workspace_bytes > 0)
        workspace_check(at->capture->graph);
    return CUDA_SUCCESS;
}

CUresult capture_record(Captured *at, CUevent e, bool external) {
    if (at->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (external) {
        captured_node(at)->event = e;
        e->users++;
        return CUDA_SUCCESS;
    }
    e->capture = at->capture->id;
    place_clear(&e->place);
    place_join(&e->place, &at->last);
    return CUDA_SUCCESS;
}

CUresult capture_wait(Captured *at, CUevent e, bool *done) {
    Capture *from = capture_of(e->capture);
    *done = at->capture != NULL || e->capture != 0;
    if (!*done)
        return CUDA_SUCCESS;
    if (at->capture != NULL && at->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (e->capture == 0) {
        at->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (from == NULL)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (at->capture != NULL && at->capture != from) {
        at->capture->invalid = from->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    at->capture = from;
    place_join(&at->last, &e->place);
    return CUDA_SUCCESS;
}

// Whether the stream that began has waited for every stream that joined: their
// last nodes come before its own.
static bool all_joined(const Capture *c) {
    const Place *last = &c->origin->captured.last;
    bool *before = take((size_t)c->graph->count * sizeof *before), all = true;
    for (int i = 0; i < last->count; i++)
        before[last->node[i]] = true;
    for (int i = c->graph->count - 1; i >= 0; i--)
        for (int k = 0; before[i] && k < c->graph->node[i].need.count; k++)
            before[c->graph->node[i].need.node[k]] = true;
    for (CUstream s = streams_first(); s != NULL; s = s->next)
        for (int i = 0; i < s->captured.last.count; i++)
            all = all && (s->captured.capture != c ||
                          before[s->captured.last.node[i]]);
    free(before);
    return all;
}

static void capture_end(Capture *c) {
    Capture **at = &captures.first;
    for (CUstream s = streams_first(); s != NULL; s = s->next)
        if (s->captured.capture == c) {
            s->captured.capture = NULL;
            place_clear(&s->captured.last);
        }
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

// ---- the driver's functions ----

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
    DRIVER_CALL("%p mode=%d", (void *)s, (int)mode);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->captured.capture != NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    Capture *c = take(sizeof *c);
    *c = (Capture){captures.first,
                   ++captures.last_id,
                   take(sizeof *c->graph),
                   s,
                   mode,
                   pthread_self(),
                   false};
    c->graph->users = 1;
    s->captured.capture = captures.first = c;
    return CUDA_SUCCESS;
}

// An error that is planned for it ends the capture, as any does.
CUresult cuStreamEndCapture(CUstream s, CUgraph *to) {
    const Call call __attribute__((cleanup(call_end))) =
        call_begin(__func__, "%p", (void *)s);
    CUresult r = driver_refuses();
    Capture *c = stream_known(s) ? s->captured.capture : NULL;
    *to = NULL;
    if (r != CUDA_SUCCESS)
        return r;
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(c->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (call.fault != 0)
        r = (CUresult)call.fault;
    else if (c->invalid)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(c))
        r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (r == CUDA_SUCCESS) {
        c->graph->next = captures.graphs;
        *to = captures.graphs = c->graph;
    } else {
        graph_drop(c->graph);
    }
    capture_end(c);
    return r;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *to) {
    DRIVER_CALL("%p", (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    const Capture *c = s->captured.capture;
    *to = c == NULL    ? CU_STREAM_CAPTURE_STATUS_NONE
          : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

static CUgraph *graph_at(CUgraph g) {
    CUgraph *at = &captures.graphs;
    while (*at != NULL && *at != g)
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *to, CUgraph g,
                                     unsigned long long flags) {
    DRIVER_CALL("%p flags=%llu", (void *)g, flags);
    if (graph_at(g) == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec e = take(sizeof *e);
    *e = (struct CUgraphExec_st){1, g, NULL, captures.execs};
    captures.execs = *to = e;
    g->users++;
    return CUDA_SUCCESS;
}

static CUgraphExec *exec_at(CUgraphExec e) {
    CUgraphExec *at = &captures.execs;
    while (*at != NULL && *at != e)
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

CUresult cuGraphUpload(CUgraphExec e, CUstream s) {
    DRIVER_CALL("%p stream=%p", (void *)e, (void *)s);
    if (exec_at(e) == NULL || !stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    return s->captured.capture ? capture_refuse(&s->captured) : CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
    DRIVER_CALL("%p stream=%p", (void *)e, (void *)s);
    if (exec_at(e) == NULL || !stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    return stream_launch(s, e);
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
    DRIVER_CALL("%p", (void *)e);
    CUgraphExec *at = exec_at(e);
    if (at == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *at = e->next;
    exec_drop(e);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g) {
    DRIVER_CALL("%p", (void *)g);
    CUgraph *at = graph_at(g);
    if (at == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *at = g->next;
    graph_drop(g);
    return CUDA_SUCCESS;
}
