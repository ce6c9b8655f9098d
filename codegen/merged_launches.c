// Merged launches: their texts.  The body of each kernel is a function.  Both
// the kernel and the merged launch call it; the merged launch has one phase for
// each kernel.

#include "codegen/emit.h"

#include <string.h>

// "m05_06_batch_norm_relu__prep": the numbers of all kernels, and the rest of
// the last one's name.
static const char *merged_name(Arena *a, const Kernel *kernel, int count) {
    Text t = text_new(a);
    text_add(&t, "m");
    for (int i = 0; i < count; i++) {
        const char *number = kernel[i].name + 1;
        text_add(&t, "%s%.*s", i ? "_" : "", (int)strcspn(number, "_"), number);
    }
    text_add(&t, "%s", strchr(kernel[count - 1].name, '_'));
    return text_string(&t);
}

// ---- tensors that no phase writes ----

static bool is_read(const Parameter *p) {
    return strncmp(p->type, "const ", strlen("const ")) == 0;
}

static bool is_written(const MergedKernel *m, const Graph *g,
                       const Parameter *read) {
    for (int i = 0; i < m->launch.count; i++)
        for (int p = 0; p < m->kernel[i].num_args; p++) {
            const Parameter *other = &m->kernel[i].arg[p];
            if (!is_read(other) && nodes_overlap(g, read->node, other->node))
                return true;
        }
    return false;
}

// Marks the arguments whose memory no phase writes.  RESTRICT lets the compiler
// read it at any time of the launch: after a barrier, or by a cache that sees
// no writes.  A tensor that is dead after an early phase may have the memory of
// a later phase's result.
static void find_read_only(MergedKernel *m, const Graph *g) {
    int n = 0;
    for (int i = 0; i < m->launch.count; i++)
        for (int p = 0; p < m->kernel[i].num_args; p++) {
            const Parameter *own = &m->kernel[i].arg[p];
            m->read_only[n++] = is_read(own) && !is_written(m, g, own);
        }
}

// ---- the text ----

static void add_parameters(Text *t, const Kernel *k, int phase,
                           const bool *read_only) {
    for (int i = 0; i < k->num_args; i++)
        text_add(t, "%s%s *%s%c%d,", i % 3 ? " " : "\n    ", k->arg[i].type,
                 read_only[i] ? "RESTRICT " : "", 'a' + phase, i);
}

static void add_phase(Text *t, const Kernel *k, int phase) {
    const char *blocks = arena_format(t->arena, "HOST_GPU(%d, %d)",
                                      k->grid[HOST_PLAN], k->grid[GPU_PLAN]);
    if (phase > 0)
        text_add(t, "    GRID_BARRIER(barrier);\n");
    text_add(t, "    PHASE(%d) FOR_BLOCKS(%s)\n        %s_body(", phase, blocks,
             k->name);
    for (int i = 0; i < k->num_args; i++)
        text_add(t, "%c%d, ", 'a' + phase, i);
    text_add(t, "block, %s);\n", blocks);
}

static void merged_text(Arena *a, MergedKernel *m, const Kernel *kernel) {
    Text t = text_new(a);
    int count = m->launch.count;
    text_add(&t, "// %s:", m->name);
    for (int i = 0; i < count; i++)
        text_add(&t, "%s %s", i ? ",\n// then" : "", kernel[i].name);
    text_add(&t, "\n");
    m->entry = t.length;
    text_add(&t, "#ifdef SINTER_MERGED\nMERGED(256) %s(", m->name);
    for (int i = 0, n = 0; i < count; n += kernel[i++].num_args)
        add_parameters(&t, &kernel[i], i, m->read_only + n);
    text_add(&t, "\n    int *barrier)\n{\n");
    for (int i = 0; i < count; i++)
        add_phase(&t, &kernel[i], i);
    text_add(&t, "}\n#endif\n");
    m->text = text_string(&t);
}

// Equal merged launches have equal names, built from their kernels' names.
static MergedKernel *find_equal(const Kernel *last, const char *name) {
    MergedKernel *m = last->merged;
    while (m != NULL && strcmp(m->name, name) != 0)
        m = m->next;
    return m;
}

// Equal launches share a text, so a tensor is read-only if it is in each.
static void share_text(Arena *a, MergedKernel *m, const MergedKernel *other) {
    for (int i = 0; i < m->num_args - 1; i++)
        m->read_only[i] &= other->read_only[i];
    merged_text(a, m, m->kernel);
}

static void merged_write(Arena *a, MergedKernel *m, const Kernel *kernel,
                         const Graph *g) {
    int count = m->launch.count;
    Kernel *last = kernel[count - 1].first;
    m->name = merged_name(a, kernel, count);
    m->read_only = ARENA_ARRAY(a, MAX_MERGED_POINTERS, bool);
    find_read_only(m, g);
    MergedKernel *equal = find_equal(last, m->name);
    if (equal != NULL) {
        share_text(a, equal, m);
        return;
    }
    merged_text(a, m, kernel);
    m->next = last->merged;
    last->merged = m;
    m->type = ARENA_ARRAY(a, MAX_MERGED_POINTERS, const char *);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < kernel[i].num_args; p++)
            m->type[m->num_args++] = kernel[i].arg[p].type;
    m->type[m->num_args++] = "int";
}

void launches_merge(Launches *l, Arena *a) {
    const MergedLaunches *merged = &l->plan->merged;
    l->merged = ARENA_ARRAY(a, (size_t)merged->count + 1, MergedKernel);
    for (int i = 0; i < merged->count; i++) {
        MergedKernel *m = &l->merged[i];
        m->launch = merged->launch[i];
        const Kernel *kernel = m->kernel = &l->kernel[m->launch.first];
        merged_write(a, m, kernel, l->plan->graph);
        for (int k = 0; k < m->launch.count; k++)
            if (kernel[k].grid[GPU_PLAN] > m->blocks)
                m->blocks = kernel[k].grid[GPU_PLAN];
    }
}

void merged_emit(Text *t, const Launches *l, int step) {
    const Graph *gpu = l->plan->graph;
    if (l->plan->merged.count == 0)
        return;
    long long barrier = (long long)gpu->node[graph_counters(gpu)].offset +
                        4 * (long long)merged_barrier_counter(gpu);
    for (int i = 0; i < l->plan->merged.count; i++) {
        const MergedKernel *m = &l->merged[i];
        text_add(t,
                 "    {.step = %d, .launch = %d, .count = %d, .blocks = %d,\n"
                 "     .barrier = %lld, .kernel = %s_id},\n",
                 step, m->launch.first, m->launch.count, m->blocks, barrier,
                 m->name);
    }
}
