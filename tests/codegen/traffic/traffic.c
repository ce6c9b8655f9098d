// Traffic: see traffic.h.
//
// Every tensor has an address of its own, so that a byte belongs to one.  A
// device made for this test runs the kernels, one phase after the other, and
// after each phase looks at what was touched.  Library calls are not run: they
// read each operand once and write their result, and which these are is
// compared too.
#include "tests/codegen/traffic/traffic.h"

#include "passes/plan/access_region.h"
#include "tests/codegen/library.h"
#include "tests/codegen/load.h"
#include "tests/codegen/tensors.h"
#include "tests/codegen/traffic/touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPORT = 1500 }; // what Check can carry

// What a launch does to a tensor, in bytes.  What phases touch counts once for
// each.
typedef struct {
    int64_t planned_read, planned_written;
    bool loose; // it may read less
    int64_t read, written;
    int64_t reads, writes; // with repetitions
} Flow;

typedef struct {
    RtDevice device; // first, so that one is the other
    Arena *a;
    const RtPlan *rt;
    const GraphPlan *plan;
    const Graph *graph; // of the step that runs
    const bool *batched;
    const Group *group;
    int num_groups, next; // the launch that comes next
    char *memory;
    Touch *touch;               // of each of its bytes
    char *page;                 // which are touched
    NodeId *owner;              // of each byte of the memory, or NO_NODE
    Flow *flow;                 // of each node, in this launch
    int64_t bytes, batch_bytes; // planned in this step
    bool repeats;               // print what is read more than once
    Text report;
} Meter;

static Meter *meter_of(RtDevice *d) {
    return (Meter *)(void *)d;
}

// ---- what belongs to whom ----

// Blocks communicate through workspace and block counters: they do not count.
static bool is_counted(const Node *d) {
    const char *name = node_text(d, ATTR_name);
    return d->op != OP_workspace &&
           (name == NULL || strncmp(name, COUNTERS, strlen(COUNTERS)) != 0);
}

// A slot ends a little after its tensor: kernels may touch whole vectors.
static void own(Meter *m, NodeId n) {
    const Node *d = &m->graph->node[n];
    int64_t bytes = graph_bytes(m->graph, d->type);
    for (int64_t i = 0; is_counted(d) && i < bytes; i++)
        m->owner[d->offset + i] = n;
}

// What a call adds to owns its memory until then.
static bool is_added(const Node *d) {
    return node_int(d, ATTR_accumulate, 0) != 0;
}

static void find_owners(Meter *m) {
    const Graph *g = m->graph;
    const bool *stored = m->plan->stored;
    memset(m->owner, 0xff, m->rt->arena_bytes * sizeof *m->owner);
    for (NodeId n = 0; n < g->count; n++)
        if (stored[n] && !is_added(&g->node[n]))
            own(m, n);
}

// ---- one launch ----

static void plan_read(Meter *m, NodeId n, int64_t bytes, bool exact) {
    m->flow[n].planned_read += bytes;
    m->flow[n].loose |= !exact;
    m->bytes += bytes;
    m->batch_bytes += m->batched[n] ? bytes : 0;
}

static void plan_write(Meter *m, NodeId n, int64_t bytes) {
    m->flow[n].planned_written += bytes;
    m->bytes += bytes;
    m->batch_bytes += m->batched[n] ? bytes : 0;
}

static void plan_flows(Meter *m, const Group *group) {
    const Graph *g = m->graph;
    memset(m->flow, 0, g->count * sizeof *m->flow);
    for (int i = 0; i < group->num_reads; i++) {
        const AccessRegion *r =
            region_find(group->region, group->num_inputs, group->read[i]);
        plan_read(m, r->node, r->bytes, r->exact);
    }
    for (int i = 0; i < group->num_outputs; i++) {
        NodeId n = group->output[i];
        plan_write(m, n, graph_bytes(g, g->node[n].type));
        if (scattered_bytes(g, n) > 0)
            plan_read(m, n, scattered_bytes(g, n), false);
    }
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].op == OP_assign)
            plan_write(m, g->node[n].arg[0], assigned_bytes(g, n));
}

static void gather_byte(Meter *m, size_t i) {
    Touch *t = &m->touch[i];
    if (m->owner[i] != NO_NODE && t->reads + t->writes > 0) {
        Flow *f = &m->flow[m->owner[i]];
        f->read += t->reads > 0;
        f->written += t->writes > 0;
        f->reads += t->reads;
        f->writes += t->writes;
    }
    *t = (Touch){0};
}

static void gather_touches(Meter *m) {
    size_t bytes = m->rt->arena_bytes;
    for (size_t page = 0; page * TOUCH_PAGE < bytes; page++) {
        size_t end = (page + 1) * TOUCH_PAGE;
        for (size_t i = page * TOUCH_PAGE;
             m->page[page] && i < end && i < bytes; i++)
            gather_byte(m, i);
        m->page[page] = 0;
    }
}

// A part of a tensor that an update reads ends with a whole vector, and what is
// chosen by a condition that always holds leaves a number unread.
static bool reads_agree(const Meter *m, const Group *group, NodeId n) {
    enum { VECTOR = 256 };
    const Flow *f = &m->flow[n];
    bool update = group->kind == GROUP_UPDATE;
    if (f->loose || type_count(m->graph->node[n].type) == 1)
        return f->read <= f->planned_read;
    return f->read >= f->planned_read &&
           f->read < f->planned_read + (update ? VECTOR : 1);
}

static void print_flow(const Meter *m, const Group *group, NodeId n, Text *t) {
    const Flow *f = &m->flow[n];
    text_add(t,
             "%s, kernel %d: reads %lld bytes of %s%lld planned, %.2f times; "
             "writes %lld of %lld: ",
             m->graph->name, group->group, (long long)f->read,
             f->loose ? "at most " : "", (long long)f->planned_read,
             f->read ? (double)f->reads / (double)f->read : 0.0,
             (long long)f->written, (long long)f->planned_written);
    node_print(t, m->graph, n);
    text_add(t, "\n");
}

static void compare_flows(Meter *m, const Group *group) {
    for (NodeId n = 0; n < m->graph->count; n++) {
        const Flow *f = &m->flow[n];
        bool good =
            reads_agree(m, group, n) && f->written == f->planned_written;
        if (!good && m->report.length < MAX_REPORT)
            print_flow(m, group, n, &m->report);
        if (m->repeats && m->batched[n] && f->reads > f->read) {
            Text line = text_new(m->a);
            print_flow(m, group, n, &line);
            fputs(text_string(&line), stdout);
        }
    }
}

static const Group *next_group(Meter *m) {
    if (m->next == m->num_groups) {
        fprintf(stderr, "%s launches more than its groups\n", m->graph->name);
        abort();
    }
    return &m->group[m->next++];
}

static void launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    Meter *m = meter_of(d);
    const RtKernel *k = &m->rt->kernel[kernel];
    const Group *group = next_group(m);
    plan_flows(m, group);
    for (int phase = 0; phase < k->phases; phase++) {
        k->host(m->memory, arg, 0, grid, grid, phase);
        gather_touches(m);
    }
    compare_flows(m, group);
}

static void contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    Meter *m = meter_of(d);
    const Group *group = next_group(m);
    size_t operand[] = {a, b};
    (void)call;
    plan_flows(m, group);
    for (int i = 0; i < (a == b ? 1 : 2); i++) {
        NodeId n = m->owner[operand[i]];
        m->flow[n].read += graph_bytes(m->graph, m->graph->node[n].type);
    }
    NodeId n = m->owner[out];
    if (is_added(&m->graph->node[group->output[0]])) {
        m->flow[n].read += graph_bytes(m->graph, m->graph->node[n].type);
        n = group->output[0];
        own(m, n);
    }
    m->flow[n].written += graph_bytes(m->graph, m->graph->node[n].type);
    compare_flows(m, group);
}

static void begin_phase(RtDevice *d, RtPhase phase) {
    (void)d, (void)phase;
}

static void write_bytes(RtDevice *d, size_t to, const void *from,
                        size_t bytes) {
    memcpy(meter_of(d)->memory + to, from, bytes);
}

// ---- one program ----

static void fill(Meter *m, int classes) {
    enum { SEED = 1 };
    const Graph *g = m->graph;
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (op == OP_input || op == OP_state || op == OP_param)
            tensor_write(&m->device, m->a, g, n,
                         tensor_leaf(g, m->a, n, SEED, classes));
    }
}

// The plan's own sums are those of its launches.
static void compare_cost(Meter *m) {
    Cost c = graph_cost(m->plan);
    if (m->next != m->num_groups)
        text_add(&m->report, "%s: %d launches of %d\n", m->graph->name, m->next,
                 m->num_groups);
    if (c.bytes != m->bytes || c.batch_bytes != m->batch_bytes)
        text_add(&m->report,
                 "%s: launches move %lld bytes, %lld with the batch; the plan "
                 "says %lld, %lld\n",
                 m->graph->name, (long long)m->bytes, (long long)m->batch_bytes,
                 (long long)c.bytes, (long long)c.batch_bytes);
}

static void run_step(Meter *m, const GraphPlan *plan, const RtStep *step,
                     int classes) {
    const Graph *g = plan->graph;
    m->plan = plan;
    m->graph = g;
    m->batched = graph_batched(g, m->a);
    m->group = plan->group;
    m->num_groups = plan->num_groups;
    m->next = 0;
    m->bytes = m->batch_bytes = 0;
    m->flow = ARENA_ARRAY(m->a, g->count + 1, Flow);
    find_owners(m);
    fill(m, classes);
    step->run(&m->device);
    compare_cost(m);
}

static void run_steps(Meter *m, const Program *p, const Plan *plan) {
    size_t bytes = m->rt->arena_bytes;
    m->device = (RtDevice){.launch = launch,
                           .library_call = contract,
                           .phase = begin_phase,
                           .write = write_bytes};
    m->memory = arena_alloc(m->a, bytes + 1);
    m->touch = ARENA_ARRAY(m->a, bytes + 1, Touch);
    m->owner = ARENA_ARRAY(m->a, bytes + 1, NodeId);
    m->repeats = getenv("TRAFFIC_REPEATS") != NULL;
    memset(m->memory, 0, bytes);
    m->page = ARENA_ARRAY(m->a, bytes / TOUCH_PAGE + 1, char);
    touch_watch(m->memory, bytes, m->touch, m->page);
    for (int i = 0; i < plan->num_steps; i++)
        run_step(m, plan->step[i].plan, &m->rt->step[i], p->recipe.classes);
}

// Without vectors of the C compiler's own making, so that each access is one of
// the kernel's text.
static const char *run_program(Meter *m, const Program *p, const Plan *plan,
                               const char *folder) {
    static const char flags[] = "-O0 -w -fsanitize=thread -fno-openmp-simd "
                                "-fno-tree-vectorize -fno-tree-sink";
    const char *name[] = {"model"};
    library_write(m->a, folder, name[0], p, plan);
    const char *why = library_compile(m->a, folder, 1, name, flags);
    void *library = why ? NULL : library_open(m->a, folder, &why);
    if (library != NULL) {
        m->rt = library_plan(m->a, library, name[0]);
        run_steps(m, p, plan);
    }
    library_remove(m->a, folder, 1, name);
    return why;
}

const char *traffic(Arena *a, const Subject *s) {
    Meter m = {.a = a, .report = text_new(a)};
    Program *p = load_program(a, s->model, s->setting, s->num_settings,
                              s->storage, &m.report);
    if (p == NULL)
        return text_string(&m.report);
    PassOptions o = pass_options(&p->recipe, "host");
    o.storage = s->storage;
    o.level = s->level;
    o.reuse = false;
    Plan *plan = program_plan(p, &o);
    const char *folder = library_folder(a);
    if (folder == NULL)
        return "no temporary folder";
    const char *why = run_program(&m, p, plan, folder);
    return why ? why : m.report.length ? text_string(&m.report) : NULL;
}
