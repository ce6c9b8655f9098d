// Snapshot: reads a recorded step.
#include "tools/compare/snapshot.h"

#include "ir/bytes.h"
#include "passes/plan/group.h"
#include "tools/compare/value_numbering.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BEFORE = -1, AFTER = -2 };

typedef struct {
    Arena *a;
    FILE *file;
    const Graph *g;
    const Group *group;
    int num_groups;
    const Snapshot *beside;
    const NodeId *equal; // nodes of beside, by node
    bool *seen;          // of each node: its record was read
    Snapshot *out;
} Reader;

typedef struct {
    int32_t when, nothing;
    uint64_t offset, bytes;
} Record;

// A state that the step does not use.
typedef struct Foreign {
    Record at;
    void *bytes;
    const struct Foreign *next;
} Foreign;

static bool is_at(const Graph *g, NodeId n, const Record *r) {
    return g->node[n].offset == (int64_t)r->offset &&
           graph_bytes(g, g->node[n].type) == (int64_t)r->bytes;
}

// Whether tile kernels store the results of a launch whose work they do.
static bool is_stored(const TileFusions *f, int launch) {
    for (int i = 0; i < f->num_prologues; i++)
        if (f->prologue[i].kernel == launch && tile_skips(f, i))
            return f->prologue[i].stored_by >= 0;
    const TileFusion *taken = tile_taken(f, launch);
    return taken == NULL || taken->epilogue < 0 || taken->epilogue == launch ||
           taken->pool == launch || taken->stores;
}

// The output of a launch at this offset that was not read yet.
static NodeId find_output(const Reader *r, const Record *at) {
    if (at->when >= r->num_groups ||
        !is_stored(&r->out->step->plan->tiles, at->when))
        return NO_NODE;
    const Group *group = &r->group[at->when];
    for (int i = 0; i < group->num_outputs; i++)
        if (is_at(r->g, group->output[i], at) && !r->seen[group->output[i]])
            return group->output[i];
    return NO_NODE;
}

// The leaf at this offset; inputs exist before the step only.
static NodeId find_leaf(const Reader *r, const Record *at, void **seen) {
    for (NodeId n = 0; n < r->g->count; n++) {
        Op op = r->g->node[n].op;
        if ((op == OP_param || op == OP_state ||
             (op == OP_input && at->when == BEFORE)) &&
            is_at(r->g, n, at) && seen[n] == NULL)
            return n;
    }
    return NO_NODE;
}

static bool is_wanted(const Reader *r, const Record *at, NodeId n) {
    if (r->beside == NULL || at->when == AFTER)
        return true;
    return at->when >= 0 && r->equal[n] != NO_NODE;
}

// Keeps a state of other steps, for the first variant only: the evaluation of
// its graph before any pass may read it.
static bool foreign_read(const Reader *r, const Record *at) {
    Foreign *f = ARENA_UNINIT(r->a, 1, Foreign);
    *f = (Foreign){*at, arena_uninit(r->a, at->bytes + 1, 1), r->out->foreign};
    r->out->foreign = f;
    return fread(f->bytes, 1, at->bytes, r->file) == at->bytes;
}

// Reads or skips a record.
static bool read_record(const Reader *r, const Record *at) {
    void **to = at->when == BEFORE  ? r->out->before
                : at->when == AFTER ? r->out->after
                                    : r->out->found;
    NodeId n = at->when >= 0 ? find_output(r, at) : find_leaf(r, at, to);
    if (n == NO_NODE && at->when == BEFORE && r->beside == NULL)
        return foreign_read(r, at);
    if (at->when >= 0 && n != NO_NODE)
        r->seen[n] = true;
    bool wanted = n != NO_NODE && is_wanted(r, at, n);
    Arena *scratch = arena_new();
    void *bytes = arena_uninit(wanted ? r->a : scratch, at->bytes + 1, 1);
    bool good = fread(bytes, 1, at->bytes, r->file) == at->bytes;
    if (wanted)
        to[n] = bytes;
    else
        r->out->passed_over += at->when >= 0 && n != NO_NODE;
    arena_free(scratch);
    return good;
}

// Equal nodes of the other variant's step.
static const NodeId *find_equal(const Reader *r) {
    const Graph *other = r->beside->step->graph;
    bool *left = ARENA_ARRAY(r->a, (size_t)other->count + 1, bool);
    for (NodeId n = 0; n < other->count; n++)
        left[n] = r->beside->found[n] != NULL;
    return equal_nodes(r->a, r->g, other, left);
}

static bool begin(Reader *r, const Plan *plan) {
    char word[9];
    int32_t step[2];
    if (fread(word, 1, sizeof word, r->file) != sizeof word ||
        memcmp(word, "sinter 1\n", sizeof word) != 0 ||
        fread(step, sizeof step, 1, r->file) != 1 || step[0] < 0 ||
        step[0] >= plan->num_steps)
        return false;
    r->out->plan = plan;
    r->out->step = &plan->step[step[0]];
    r->g = r->out->step->graph;
    r->group = r->out->step->plan->group;
    r->num_groups = r->out->step->plan->num_groups;
    r->out->before = ARENA_ARRAY(r->a, r->g->count + 1, void *);
    r->out->found = ARENA_ARRAY(r->a, r->g->count + 1, void *);
    r->out->after = ARENA_ARRAY(r->a, r->g->count + 1, void *);
    r->equal = r->beside ? find_equal(r) : NULL;
    r->seen = ARENA_ARRAY(r->a, r->g->count + 1, bool);
    return true;
}

const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          const Snapshot *beside, Snapshot *out) {
    Reader r = {
        .a = a, .file = fopen(path, "rb"), .beside = beside, .out = out};
    if (r.file == NULL)
        return strerror(errno);
    Record at;
    bool good = begin(&r, plan);
    while (good && fread(&at, sizeof at, 1, r.file) == 1)
        good = at.bytes <= (uint64_t)plan->arena_bytes && read_record(&r, &at);
    good = good && feof(r.file);
    fclose(r.file);
    return good ? NULL : "the snapshot is incomplete or of another trainer";
}

static double *numbers(Arena *a, const Graph *g, NodeId n, const void *bytes) {
    const Type *t = g->node[n].type;
    DType d = t->dtype == ACT ? g->act : t->dtype;
    int64_t count = type_count(t);
    double *value = ARENA_UNINIT(a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        value[i] = bytes_load(bytes, d, i);
    return value;
}

double *snapshot_numbers(Arena *a, const Snapshot *s, NodeId n,
                         const void *bytes) {
    return bytes ? numbers(a, s->step->graph, n, bytes) : NULL;
}

bool numbers_finite(const double *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

// A state has the same offset in all steps.
static const void *foreign_bytes(const Snapshot *s, const Graph *g, NodeId n) {
    for (const Foreign *f = s->foreign; f != NULL; f = f->next)
        if (is_at(g, n, &f->at))
            return f->bytes;
    return NULL;
}

double *snapshot_before(Arena *a, const Snapshot *s, const char *name) {
    NodeId n = graph_find(s->step->graph, name);
    if (n != NO_NODE)
        return snapshot_numbers(a, s, n, s->before[n]);
    for (int i = 0; i < s->plan->num_steps; i++) {
        const Graph *g = s->plan->step[i].graph;
        n = graph_find(g, name);
        const void *bytes = n == NO_NODE ? NULL : foreign_bytes(s, g, n);
        if (bytes != NULL)
            return numbers(a, g, n, bytes);
    }
    return NULL;
}
