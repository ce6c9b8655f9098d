// NCCL between processes.  A group of calls is one piece of work of its stream:
// each rank posts what it sends in a file, and reads what the others post.
//
// A rank checks that all of them run the same collectives in the same order,
// eager and captured, and that each call ran eagerly before it is captured.  A
// sum is the same on all ranks, in an order that changes from call to call and
// from run to run.
#define _GNU_SOURCE
#include "tests/runtime/cuda/double/nccl.h"

#include "tests/runtime/cuda/double/double.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_RANKS = 64,
    MAX_CALLS = 4 * MAX_RANKS, // of a group
    MAX_PATH = NCCL_UNIQUE_ID_BYTES + 32,
    WAIT_US = 500,
    BLOCK = 64 // elements of a sum that are added in one order
};

typedef enum { SEND, RECV, ALL_GATHER, ALL_REDUCE, BROADCAST } Kind;

static const char *const kind_name[] = {"send", "receive", "all-gather",
                                        "all-reduce", "broadcast"};

// The part of a call that its peers must agree with.
typedef struct {
    Kind kind;
    int type, op, peer; // peer: or root
    size_t count;
    size_t captured; // 1: it runs in a graph, as it then does on all ranks
} Shape;

typedef struct {
    Shape shape;
    const void *from;
    void *to;
} Action;

struct ncclComm {
    int rank, size, device;
    char folder[NCCL_UNIQUE_ID_BYTES];
    long ran;                           // groups
    unsigned warm;                      // kinds that were queued eagerly
    atomic_bool ended;                  // aborted
    int polls;                          // until the pending call is over
    ncclResult_t (*next)(ncclComm_t c); // of the pending call; NULL: none is
    struct Group *pending;
};

typedef struct Group {
    Work work;
    ncclComm_t comm;
    CUstream stream;
    int count;
    Action action[MAX_CALLS];
} Group;

static struct {
    int depth;
    Group *open;
    char why[200];
} nccl;

// ---- files ----

static size_t type_bytes(int type) {
    return type == ncclUint8 ? 1 : 4;
}

static size_t shape_bytes(const Shape *s) {
    return s->count * type_bytes(s->type);
}

static void path_of(const ncclComm_t c, const char *what, long number, int rank,
                    char to[MAX_PATH]) {
    snprintf(to, MAX_PATH, "%s/%s.%ld.%d", c->folder, what, number, rank);
}

static void write_all(int fd, const void *from, size_t bytes) {
    for (const char *at = from; bytes > 0;) {
        ssize_t n = write(fd, at, bytes);
        if (n <= 0)
            complain("nccl: a file of the stand-in cannot be written");
        at += n;
        bytes -= (size_t)n;
    }
}

// A rank's file: the shapes of its group, then the bytes of each call.
typedef struct {
    char *start;
    size_t bytes;
    int count;
    const Shape *shape;
} Post;

static void post_write(const Group *g) {
    char draft[MAX_PATH], path[MAX_PATH];
    const ncclComm_t c = g->comm;
    path_of(c, "draft", c->ran, c->rank, draft);
    path_of(c, "post", c->ran, c->rank, path);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        complain("nccl: cannot write %s", draft);
    for (int i = 0; i < g->count; i++)
        write_all(fd, &g->action[i].shape, sizeof(Shape));
    for (int i = 0; i < g->count; i++)
        if (g->action[i].from != NULL)
            write_all(fd, g->action[i].from, shape_bytes(&g->action[i].shape));
    close(fd);
    rename(draft, path);
    // All ranks have read the post before the last.
    path_of(c, "post", c->ran - 2, c->rank, path);
    unlink(path);
}

// Waits for another rank.  False: this one was aborted.
static bool post_read(const Group *g, int rank, Post *to) {
    char path[MAX_PATH];
    struct stat s;
    int fd;
    path_of(g->comm, "post", g->comm->ran, rank, path);
    while ((fd = open(path, O_RDONLY)) < 0) {
        if (atomic_load(&g->comm->ended))
            return false;
        usleep(WAIT_US);
    }
    if (fstat(fd, &s) != 0)
        complain("nccl: cannot read %s", path);
    to->bytes = (size_t)s.st_size;
    to->start = mmap(NULL, to->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (to->start == MAP_FAILED)
        complain("nccl: cannot read %s", path);
    to->shape = (const Shape *)(const void *)to->start;
    return true;
}

// Call number i of a post with as many calls as g has, and its bytes.
static const char *post_data(const Group *g, const Post *p, int i) {
    const char *at = p->start + (size_t)g->count * sizeof(Shape);
    for (int k = 0; k < i; k++)
        if (p->shape[k].kind != RECV)
            at += shape_bytes(&p->shape[k]);
    return at;
}

// ---- agreement ----

static void shapes_differ(const Group *g, int rank, const Shape *own,
                          const Shape *other) {
    static const char *const from[] = {"", " in a graph"};
    complain("nccl: in group %ld, rank %d runs %s of %zu%s and rank %d %s of "
             "%zu%s",
             g->comm->ran, g->comm->rank, kind_name[own->kind], own->count,
             from[own->captured], rank, kind_name[other->kind], other->count,
             from[other->captured]);
}

// Every rank has the same collectives at the same places; sends and receives
// are between a pair.
static void check_posts(const Group *g, const Post *post) {
    for (int r = 0; r < g->comm->size; r++) {
        size_t heads = (size_t)g->count * sizeof(Shape);
        if (post[r].bytes < heads)
            complain("nccl: rank %d has fewer calls in group %ld than rank %d",
                     r, g->comm->ran, g->comm->rank);
        for (int i = 0; i < g->count; i++) {
            const Shape *own = &g->action[i].shape, *other = &post[r].shape[i];
            bool pair = own->kind == SEND || own->kind == RECV;
            if (own->kind != other->kind || own->captured != other->captured ||
                (!pair && memcmp(own, other, sizeof *own) != 0))
                shapes_differ(g, r, own, other);
        }
    }
}

// The send of another rank that a receive waits for: the first that no receive
// before it takes.
static int find_send(const Group *g, const Post *p, int receive) {
    const Shape *own = &g->action[receive].shape;
    int before = 0;
    for (int i = 0; i < receive; i++)
        before += g->action[i].shape.kind == RECV &&
                  g->action[i].shape.peer == own->peer;
    for (int i = 0; i < g->count; i++)
        if (p->shape[i].kind == SEND && p->shape[i].peer == g->comm->rank &&
            before-- == 0) {
            if (p->shape[i].count != own->count ||
                p->shape[i].type != own->type)
                shapes_differ(g, own->peer, own, &p->shape[i]);
            return i;
        }
    complain("nccl: rank %d receives, but rank %d does not send", g->comm->rank,
             own->peer);
}

// ---- work ----

static unsigned mix(unsigned h, unsigned value) {
    return (h ^ value) * 0x9e3779b1u ^ h >> 15;
}

// The ranks in an order that is the same for all ranks and no other block.
static void draw_order(const ncclComm_t c, size_t block, int order[MAX_RANKS]) {
    unsigned h = mix((unsigned)block, (unsigned)c->ran);
    for (const char *s = c->folder; *s != '\0'; s++)
        h = mix(h, (unsigned char)*s);
    for (int i = 0; i < c->size; i++) {
        int at = (int)((h = mix(h, (unsigned)i)) % (unsigned)(i + 1));
        order[i] = order[at];
        order[at] = i;
    }
}

static void largest(const Group *g, const Post *post, int i) {
    const Action *a = &g->action[i];
    int32_t *to = a->to;
    for (size_t k = 0; k < a->shape.count; k++)
        for (int r = 0; r < g->comm->size; r++) {
            int32_t term;
            memcpy(&term, post_data(g, &post[r], i) + k * sizeof term,
                   sizeof term);
            to[k] = r == 0 || term > to[k] ? term : to[k];
        }
}

static void reduce(const Group *g, const Post *post, int i) {
    const Action *a = &g->action[i];
    int order[MAX_RANKS] = {0};
    float *to = a->to;
    for (size_t k = 0; k < a->shape.count; k++) {
        if (k % BLOCK == 0)
            draw_order(g->comm, k / BLOCK, order);
        for (int r = 0; r < g->comm->size; r++) {
            float term;
            memcpy(&term, post_data(g, &post[order[r]], i) + k * sizeof term,
                   sizeof term);
            to[k] = r == 0 ? term : to[k] + term;
        }
    }
}

static void finish_action(const Group *g, const Post *post, int i) {
    const Action *a = &g->action[i];
    size_t bytes = shape_bytes(&a->shape);
    int peer = a->shape.peer;
    if (a->shape.kind == RECV)
        memcpy(a->to, post_data(g, &post[peer], find_send(g, &post[peer], i)),
               bytes);
    if (a->shape.kind == BROADCAST)
        memcpy(a->to, post_data(g, &post[peer], i), bytes);
    for (int r = 0; a->shape.kind == ALL_GATHER && r < g->comm->size; r++)
        memcpy((char *)a->to + (size_t)r * bytes, post_data(g, &post[r], i),
               bytes);
    if (a->shape.kind == ALL_REDUCE && a->shape.op == ncclMax)
        largest(g, post, i);
    else if (a->shape.kind == ALL_REDUCE)
        reduce(g, post, i);
}

static size_t result_bytes(const Group *g, const Action *a) {
    size_t all = a->shape.kind == ALL_GATHER ? (size_t)g->comm->size : 1;
    return all * shape_bytes(&a->shape);
}

static void check_memory(const Group *g) {
    for (int i = 0; i < g->count; i++) {
        const Action *a = &g->action[i];
        const char *name = kind_name[a->shape.kind];
        if (a->from != NULL)
            device_must_hold(name, a->from, shape_bytes(&a->shape));
        if (a->to != NULL)
            device_must_hold(name, a->to, result_bytes(g, a));
    }
}

static void group_run(Work *w) {
    Group *g = (Group *)(void *)w;
    Post post[MAX_RANKS] = {{0}};
    bool good = !atomic_load(&g->comm->ended);
    if (!good)
        return;
    check_memory(g);
    post_write(g);
    for (int r = 0; good && r < g->comm->size; r++)
        good = post_read(g, r, &post[r]);
    if (good)
        check_posts(g, post);
    for (int i = 0; good && i < g->count; i++)
        finish_action(g, post, i);
    for (int r = 0; r < g->comm->size; r++)
        if (post[r].start != NULL && post[r].bytes > 0)
            munmap(post[r].start, post[r].bytes);
    g->comm->ran++;
}

// ---- capture ----

// All ranks capture the same calls in the same order, and none that has not run
// before: its connections would be made in the capture, for which ranks wait.
static void check_capture(const Group *g) {
    char own[MAX_PATH], other[MAX_PATH], a[256], b[256];
    path_of(g->comm, "captured", 0, g->comm->rank, own);
    FILE *f = fopen(own, "a");
    for (int i = 0; f != NULL && i < g->count; i++) {
        const Shape *s = &g->action[i].shape;
        if ((g->comm->warm >> s->kind & 1) == 0)
            complain("nccl: %s is captured before any has run",
                     kind_name[s->kind]);
        bool pair = s->kind == SEND || s->kind == RECV; // of other peers
        fprintf(f, "%s %d %zu\n", kind_name[s->kind], pair ? 0 : s->peer,
                s->count);
    }
    if (f == NULL || fclose(f) != 0)
        complain("nccl: cannot write %s", own);
    for (int r = 0; r < g->comm->size; r++) {
        path_of(g->comm, "captured", 0, r, other);
        FILE *mine = fopen(own, "r"), *theirs = fopen(other, "r");
        while (theirs != NULL && fgets(a, sizeof a, mine) != NULL &&
               fgets(b, sizeof b, theirs) != NULL && strchr(b, '\n') != NULL)
            if (strcmp(a, b) != 0)
                complain("nccl: rank %d captures %.*s, and rank %d %.*s",
                         g->comm->rank, (int)strcspn(a, "\n"), a, r,
                         (int)strcspn(b, "\n"), b);
        if (theirs != NULL)
            fclose(theirs);
        fclose(mine);
    }
}

// ---- calls ----

static ncclResult_t refuse(ncclResult_t result, const char *why) {
    snprintf(nccl.why, sizeof nccl.why, "%s", why);
    return result;
}

// A call goes on behind the program's back, which polls for it.
static ncclResult_t begin(ncclComm_t c, ncclResult_t (*next)(ncclComm_t c)) {
    if (c->next != NULL)
        complain("nccl: a call before the one before it is over");
    c->next = next;
    c->polls = (int)random_below(4);
    return ncclInProgress;
}

static ncclResult_t group_queue(ncclComm_t c) {
    Group *g = c->pending;
    c->pending = NULL;
    check_memory(g);
    bool captured = g->stream->captured.capture != NULL;
    for (int i = 0; i < g->count; i++)
        g->action[i].shape.captured = captured;
    if (captured)
        check_capture(g);
    else
        for (int i = 0; i < g->count; i++)
            c->warm |= 1u << g->action[i].shape.kind;
    CUresult r = stream_add(g->stream, &g->work);
    return r == CUDA_SUCCESS
               ? ncclSuccess
               : refuse(ncclUnhandledCudaError, "the stream refuses the work");
}

static ncclResult_t group_close(void) {
    Group *g = nccl.open;
    nccl.open = NULL;
    if (g == NULL)
        return ncclSuccess;
    g->comm->pending = g;
    return begin(g->comm, group_queue);
}

static Group *group_of(ncclComm_t c, CUstream s) {
    if (nccl.open == NULL) {
        nccl.open = take(sizeof *nccl.open);
        nccl.open->work = (Work){
            .users = 1, .what = "nccl", .run = group_run, .seconds = 1e-5};
        nccl.open->comm = c;
        nccl.open->stream = s;
    }
    if (nccl.open->comm != c || nccl.open->stream != s)
        complain("nccl: a group of several communicators or streams");
    return nccl.open;
}

static ncclResult_t add(ncclComm_t c, CUstream s, Action a) {
    Group *g = group_of(c, s);
    if (!stream_known(s) || a.shape.peer < 0 || a.shape.peer >= c->size ||
        (a.shape.type != ncclFloat32 && a.shape.type != ncclInt32 &&
         a.shape.type != ncclUint8))
        return refuse(ncclInvalidArgument, "an argument");
    if (g->count == MAX_CALLS)
        complain("nccl: a group of more than %d calls", MAX_CALLS);
    g->action[g->count++] = a;
    return nccl.depth > 0 ? ncclSuccess : group_close();
}

ncclResult_t ncclGroupStart(void) {
    CALL(ncclResult_t, " ");
    nccl.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    CALL(ncclResult_t, " ");
    if (nccl.depth == 0)
        return refuse(ncclInvalidUsage, "no group has begun");
    return --nccl.depth == 0 ? group_close() : ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t c, cudaStream_t s) {
    CALL(ncclResult_t, "%p count=%zu peer=%d stream=%p", from, count, peer,
         (void *)s);
    return add(c, s, (Action){{SEND, type, 0, peer, count, 0}, from, NULL});
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t c, cudaStream_t s) {
    CALL(ncclResult_t, "%p count=%zu peer=%d stream=%p", to, count, peer,
         (void *)s);
    return add(c, s, (Action){{RECV, type, 0, peer, count, 0}, NULL, to});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t c, cudaStream_t s) {
    CALL(ncclResult_t, "%p to=%p count=%zu stream=%p", from, to, count,
         (void *)s);
    return add(c, s, (Action){{ALL_GATHER, type, 0, 0, count, 0}, from, to});
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s) {
    CALL(ncclResult_t, "%p to=%p count=%zu op=%d stream=%p", from, to, count,
         op, (void *)s);
    if (type != (op == ncclSum ? ncclFloat32 : ncclInt32) ||
        (op != ncclSum && op != ncclMax))
        return refuse(ncclInvalidArgument, "a sum of another type");
    return add(c, s, (Action){{ALL_REDUCE, type, op, 0, count, 0}, from, to});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t c,
                           cudaStream_t s) {
    CALL(ncclResult_t, "%p to=%p count=%zu root=%d stream=%p", from, to, count,
         root, (void *)s);
    return add(c, s, (Action){{BROADCAST, type, 0, root, count, 0}, from, to});
}

// ---- communicators ----

ncclResult_t ncclGetVersion(int *to) {
    CALL(ncclResult_t, " ");
    *to = 22809;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *to) {
    CALL(ncclResult_t, " ");
    const char *tmp = getenv("TMPDIR");
    memset(to, 0, sizeof *to);
    int length = snprintf(to->internal, sizeof to->internal, "%s/nccl-XXXXXX",
                          tmp != NULL ? tmp : "/tmp");
    if (length >= (int)sizeof to->internal || mkdtemp(to->internal) == NULL)
        return refuse(ncclSystemError, "no folder for the ranks' files");
    return ncclSuccess;
}

// Every rank leaves the number of its GPU.
static ncclResult_t ranks_meet(ncclComm_t c) {
    char path[MAX_PATH], text[80];
    int device[MAX_RANKS];
    for (int r = 0; r < c->size; r++) {
        path_of(c, "rank", 0, r, path);
        FILE *f = fopen(path, "r");
        bool came = f != NULL && fscanf(f, "%d.", &device[r]) == 1;
        if (f != NULL)
            fclose(f);
        if (!came)
            return ncclInProgress;
    }
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && device[r] == device[c->rank]) {
            snprintf(text, sizeof text,
                     "Duplicate GPU detected : rank %d and rank %d both on "
                     "CUDA device %d",
                     c->rank, r, device[r]);
            return refuse(ncclInvalidUsage, text);
        }
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int ranks, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
    CALL(ncclResult_t, "ranks=%d rank=%d", ranks, rank);
    char path[MAX_PATH];
    *to = NULL;
    if (driver_refuses() != CUDA_SUCCESS)
        return refuse(ncclUnhandledCudaError, "no context");
    if (config->magic != 0xcafebeef || config->size < sizeof *config ||
        config->version < 21400 || ranks < 1 || ranks > MAX_RANKS || rank < 0 ||
        rank >= ranks)
        return refuse(ncclInvalidArgument, "an argument");
    if (config->blocking != 0)
        complain("nccl: a communicator that blocks");
    ncclComm_t c = *to = take(sizeof *c);
    c->rank = rank;
    c->size = ranks;
    memcpy(c->folder, id.internal, sizeof c->folder);
    path_of(c, "rank", 0, rank, path);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return refuse(ncclSystemError, "the folder of the ranks is gone");
    fprintf(f, "%d.", context_device());
    fclose(f);
    return begin(c, ranks_meet);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *to) {
    CALL(ncclResult_t, " ");
    *to = ncclSuccess;
    if (atomic_load(&c->ended))
        *to = ncclRemoteError;
    else if (c->next != NULL && c->polls-- > 0)
        *to = ncclInProgress;
    else if (c->next != NULL)
        *to = c->next(c);
    if (*to != ncclInProgress)
        c->next = NULL;
    return ncclSuccess;
}

static ncclResult_t settled(ncclComm_t c) {
    (void)c;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
    CALL(ncclResult_t, " ");
    return begin(c, settled);
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
    CALL(ncclResult_t, " ");
    char path[MAX_PATH];
    if (driver_refuses() != CUDA_SUCCESS)
        complain("nccl: a communicator is destroyed after its context");
    if (c->next != NULL)
        complain("nccl: a communicator is destroyed in a call");
    // Others may still read the last post.
    path_of(c, "captured", 0, c->rank, path);
    unlink(path);
    free(c);
    return ncclSuccess;
}

// Not an entry point as others are: another thread waits in one.
ncclResult_t ncclCommAbort(ncclComm_t c) {
    atomic_store(&c->ended, true);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const text[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error"};
    return result >= 0 && result <= ncclRemoteError ? text[result]
                                                    : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t c) {
    (void)c;
    return nccl.why;
}
