// Memory: live ranges and offsets of a step's buffers, and the lines of the
// model that own the buffers that are live at the peak.
#include "tools/show/memory.h"
#include "base/exits.h"
#include "codegen/codegen.h"
#include "passes/live_range.h"
#include "tools/show/inspect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Program *program;
    const Graph *graph;
    const Launches *launches;
    Buffer *buffer; // in the order of their writes
    int count;
    int64_t states, inputs, workspace; // of library fusions
    int64_t *live;                     // bytes of live buffers at each launch
    int peak;                          // the launch with most live bytes
} MemoryUse;

static MemoryUse memory_use(Arena *a, const Program *p, const Plan *plan,
                            const Step *step) {
    const Graph *g = step->graph;
    MemoryUse m = {.program = p, .graph = g};
    m.launches = &codegen_launches(plan, plan, a)[step - plan->step];
    m.buffer = graph_buffers(g, &step->plan->fusions, false, a, &m.count);
    m.workspace = step->plan->fusions.bytes;
    m.states = plan->state_bytes;
    m.inputs = leaves_bytes(g, false);
    m.live = ARENA_ARRAY(a, (size_t)m.launches->count + 1, int64_t);
    for (int i = 0; i < m.count; i++)
        for (int k = m.buffer[i].from;
             k <= m.buffer[i].to && k < m.launches->count; k++)
            m.live[k] += m.buffer[i].bytes;
    for (int k = 0; k < m.launches->count; k++)
        if (m.live[k] > m.live[m.peak])
            m.peak = k;
    return m;
}

static bool is_live(const Buffer *b, int launch) {
    return b->from <= launch && launch <= b->to;
}

static void origin_add(Text *t, const Node *d) {
    if (d->from.file)
        text_add(t, " %s:%d", d->from.file, d->from.line);
    if (*tensor_name(d))
        text_add(t, " %s", tensor_name(d));
    if (d->from.backward)
        text_add(t, " backward");
}

static void buffer_print(Text *t, const MemoryUse *m, const Buffer *b) {
    const Node *d = &m->graph->node[b->node];
    char span[32];
    snprintf(span, sizeof span, "%d..%d", b->from, b->to);
    text_add(t, "%14" PRId64 " %14" PRId64 "  %-9s %c %%%u ", d->offset,
             b->bytes, span, is_live(b, m->peak) ? '*' : ' ', b->node);
    type_print(t, d->type);
    origin_add(t, d);
    text_add(t, "\n");
}

// ---- by line ----

typedef struct {
    const char *file;
    int line;
    int64_t bytes;
} LineBytes;

static int by_bytes(const void *a, const void *b) {
    const LineBytes *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->line > y->line) - (x->line < y->line);
}

static LineBytes *line_at(LineBytes *list, int *count, CallSite site) {
    const char *file = site.file ? site.file : "(no line)";
    for (int i = 0; i < *count; i++)
        if (list[i].line == site.line && strcmp(list[i].file, file) == 0)
            return &list[i];
    list[*count] = (LineBytes){file, site.line, 0};
    return &list[(*count)++];
}

static CallSite buffer_site(const MemoryUse *m, const Buffer *b) {
    return program_site(m->program, &m->graph->node[b->node].from);
}

static void peak_print(Arena *a, Text *t, const MemoryUse *m) {
    LineBytes *list = ARENA_ARRAY(a, (size_t)m->count + 1, LineBytes);
    int count = 0;
    for (int i = 0; i < m->count; i++)
        if (is_live(&m->buffer[i], m->peak))
            line_at(list, &count, buffer_site(m, &m->buffer[i]))->bytes +=
                m->buffer[i].bytes;
    qsort(list, (size_t)count, sizeof *list, by_bytes);
    text_add(t, "\nlive at the peak, by line; a layer counts for the line that "
                "calls its function\n");
    for (int i = 0; i < count; i++)
        text_add(t, "%14" PRId64 "  %s:%d\n", list[i].bytes, list[i].file,
                 list[i].line);
}

static void size_print(Text *t, const char *what, int64_t bytes) {
    Scaled s = bytes_scaled(bytes);
    text_add(t, "%-22s%10.1f %s\n", what, s.count, s.unit);
}

static void buffer_json(Arena *a, Text *t, const MemoryUse *m,
                        const Buffer *b) {
    const Node *d = &m->graph->node[b->node];
    CallSite site = buffer_site(m, b);
    Text type = text_new(a);
    type_print(&type, d->type);
    text_add(t,
             "{\"node\": %u, \"offset\": %" PRId64 ", \"bytes\": %" PRId64
             ", \"from\": %d, \"to\": %d, \"type\": \"%s\", \"line\": %d, "
             "\"backward\": %s",
             b->node, d->offset, b->bytes, b->from, b->to, text_string(&type),
             d->from.file ? d->from.line : 0,
             d->from.backward ? "true" : "false");
    json_text(t, "file", d->from.file);
    json_count(t, "call_line", site.file ? site.line : 0);
    json_text(t, "call_file", site.file);
    json_text(t, "name", tensor_name(d));
    text_add(t, "}");
}

void memory_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step) {
    MemoryUse m = memory_use(a, p, plan, step);
    text_add(t,
             "{\"step\": \"%s\", \"launches\": %d, \"arena_bytes\": %" PRId64
             ", \"states\": %" PRId64 ", \"inputs\": %" PRId64
             ", \"workspace\": %" PRId64 ", \"peak\": %d, \"live\": [",
             step->name, m.launches->count, step->graph->arena_bytes, m.states,
             m.inputs, m.workspace, m.peak);
    for (int k = 0; k < m.launches->count; k++)
        text_add(t, "%s%" PRId64, k ? ", " : "", m.live[k]);
    text_add(t, "], \"buffers\": [");
    for (int i = 0; i < m.count; i++) {
        text_add(t, "%s", i ? ", " : "");
        buffer_json(a, t, &m, &m.buffer[i]);
    }
    text_add(t, "]}");
}

int memory_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    int status;
    const Step *step = show_step(s, &status);
    if (step == NULL)
        return status;
    MemoryUse m = memory_use(s->a, s->p, show_plan(s), step);
    text_add(out, "memory of %s, plan for %s\n", step->name,
             show_plan(s)->device);
    size_print(out, "arena", step->graph->arena_bytes);
    // The plan's arena, as in sinter check, is that of its largest step.
    if (show_plan(s)->arena_bytes > step->graph->arena_bytes)
        size_print(out, "arena of all steps", show_plan(s)->arena_bytes);
    size_print(out, "states", m.states);
    size_print(out, "inputs", m.inputs);
    size_print(out, "library workspace", m.workspace);
    if (m.count == 0)
        return EXIT_GOOD;
    size_print(out, "live at the peak", m.live[m.peak]);
    text_add(out, "%-22s%d, %s\n", "launch of the peak", m.peak,
             m.launches->kernel[m.peak].name);
    text_add(out, "\n%14s %14s  %s\n", "offset", "bytes",
             "launches  * live at the peak");
    for (int i = 0; i < m.count; i++)
        buffer_print(out, &m, &m.buffer[i]);
    peak_print(s->a, out, &m);
    return EXIT_GOOD;
}
