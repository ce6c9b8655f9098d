// Comparison: prints the result of sinter compare as text.
#include "tools/compare/compare.h"
#include "tools/compare/spread.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const verdict_name[] = {[VERDICT_SAME] = "same",
                                           [VERDICT_GOOD] = "good",
                                           [VERDICT_CARRIED] = "carried",
                                           [VERDICT_SKIPPED] = "skipped",
                                           [VERDICT_WRONG] = "WRONG"};

const char *row_stored_as(Arena *a, const Comparison *c, const Row *r) {
    Text t = text_new(a);
    Type type = r->type;
    if (type.dtype == ACT)
        type.dtype = c->a.snapshot.step->graph->act;
    type_print(&t, &type);
    return text_string(&t);
}

// ---- for people ----

static double relative(double error, double size) {
    return size > 0 ? error / size : error;
}

// The origin of a tensor without the name of a state or a layer.
static const char *location_of(Arena *a, const Comparison *c, const Row *r) {
    const Origin *from = &c->a.snapshot.step->graph->node[r->node].from;
    if (r->kind[0] || from->path || !from->file)
        return "";
    return arena_format(a, ", %s:%d", from->file, from->line);
}

static void row_print(Text *t, const Comparison *c, const Row *r) {
    text_add(t, "%-8s%10.2e%10.2e", verdict_name[r->verdict], r->absolute,
             r->relative);
    if (c->rows.judged)
        text_add(t, "%10.2e%10.2e", relative(r->error_a, r->size),
                 relative(r->error_b, r->size));
    text_add(t, "  %s%s  %s%s%s\n", r->name, location_of(t->arena, c, r),
             row_stored_as(t->arena, c, r), r->kind[0] ? "  " : "", r->kind);
}

const Row *row_first_wrong(const Rows *rows) {
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].verdict == VERDICT_WRONG)
            return &rows->row[i];
    return NULL;
}

void first_print(Text *t, const Comparison *c) {
    const Row *r = row_first_wrong(&c->rows);
    if (r == NULL)
        return;
    const Node *d = &c->a.snapshot.step->graph->node[r->node];
    text_add(t, "\nfirst wrong tensor: %%%u, %s", r->node, r->name);
    if (d->from.file != NULL)
        text_add(t, ", %s:%d", d->from.file, d->from.line);
    if (r->error_a > r->allowed)
        text_add(t, "\n  error of a %.3e, of b %.3e, allowed %.3e", r->error_a,
                 r->error_b, r->allowed);
    else if (row_is_meant(r))
        text_add(t,
                 "\n  error of a %.3e, of b %.3e: replayed alone, its kernel "
                 "computes a wrong result from its inputs",
                 r->error_a, r->error_b);
    else
        text_add(t,
                 "\n  evaluated in double, the graph of a differs from the "
                 "reference by %.3e: a pass is wrong",
                 r->meant);
    text_add(t, "\n  computed by group %d of `sinter show plan`\n", d->group);
}

static void skips_print(Text *t, const Rows *rows) {
    static const char *const said[2][2] = {
        {NULL, "b skips the step because gradients overflow; a takes it\n"},
        {"a skips the step because gradients overflow; b takes it\n",
         "both skip the step because gradients overflow\n"}};
    const char *what = said[rows->skips_a][rows->skips_b];
    if (what != NULL)
        text_add(t, "%s", what);
}

static void rows_print(Text *t, const Comparison *c) {
    int verdict[VERDICT_WRONG + 1] = {0};
    text_add(t, "%-8s%10s%10s%s  tensor\n", "", "absolute", "relative",
             c->rows.judged ? "   error a   error b" : "");
    for (int i = 0; i < c->rows.count; i++) {
        row_print(t, c, &c->rows.row[i]);
        verdict[c->rows.row[i].verdict]++;
    }
    text_add(t,
             "\n%d tensors compared: %d equal bit by bit, %d as close to the "
             "reference as b",
             c->rows.count, verdict[VERDICT_SAME], verdict[VERDICT_GOOD]);
    if (verdict[VERDICT_CARRIED] > 0)
        text_add(t, ", %d with an error from their inputs",
                 verdict[VERDICT_CARRIED]);
    if (verdict[VERDICT_SKIPPED] > 0)
        text_add(t, ", %d because of a skipped step", verdict[VERDICT_SKIPPED]);
    text_add(t, ", %d wrong; %d only in a, %d only in b\n", c->rows.wrong,
             c->rows.only_a, c->rows.only_b);
    skips_print(t, &c->rows);
    first_print(t, c);
}

static void figure_print(Text *t, const char *name, double a, double b,
                         const char *unit) {
    text_add(t, "%-18s%16.1f%16.1f %-6s%8.3f\n", name, a, b, unit,
             b > 0 ? a / b : (double)NAN);
}

// Prints both sizes in the unit of the larger one.
static void bytes_print(Text *t, const char *name, int64_t a, int64_t b) {
    int64_t larger = a > b ? a : b;
    Scaled s = bytes_scaled(larger);
    double unit = larger > 0 ? (double)larger / s.count : 1;
    figure_print(t, name, (double)a / unit, (double)b / unit, s.unit);
}

static const char *range_text(Arena *a, const Spread *s) {
    return arena_format(a, "%.1f..%.1f", s->low, s->high);
}

static void times_print(Text *t, const Comparison *c) {
    Spread a = spread_of(t->arena, c->a.times.value, c->a.times.count);
    Spread b = spread_of(t->arena, c->b.times.value, c->b.times.count);
    figure_print(t, "median of a step", a.median, b.median, "ms");
    text_add(t, "%-18s %15s %15s ms\n", "", range_text(t->arena, &a),
             range_text(t->arena, &b));
}

static void figures_print(Text *t, const Comparison *c) {
    Cost a = c->a.cost, b = c->b.cost;
    text_add(t, "\n%-18s%16s%16s %-6s%8s\n", "", "a", "b", "", "a / b");
    text_add(t, "%-18s%16" PRId64 "%16" PRId64 " %-6s%8.3f\n", "launches",
             a.launches, b.launches, "",
             (double)a.launches / (double)b.launches);
    bytes_print(t, "bytes", a.bytes, b.bytes);
    bytes_print(t, "arena", c->a.plan->arena_bytes, c->b.plan->arena_bytes);
    times_print(t, c);
}

static void losses_print(Text *t, const Comparison *c) {
    int count =
        c->a.loss.count < c->b.loss.count ? c->a.loss.count : c->b.loss.count;
    text_add(t, "\n%-8s%14s%14s\n", "loss", "a", "b");
    for (int i = 0; i < count; i++)
        text_add(t, "step %-3d%14.7g%14.7g\n", i + 1, c->a.loss.value[i],
                 c->b.loss.value[i]);
}

void comparison_print(Text *t, const Comparison *c) {
    text_add(t, "a: %s\nb: %s\n", c->a.options, c->b.options);
    text_add(t, "%s on %s, data %s, batch %" PRId64, c->a.program->name,
             c->runs.device, c->runs.data, c->runs.batch);
    if (c->runs.batch != c->own_batch)
        text_add(t,
                 " (reduced from %" PRId64
                 ", so that the reference takes seconds)",
                 c->own_batch);
    text_add(t, "\n%s\n\n",
             c->rows.judged ? "reference: evaluation in double; errors are "
                              "relative to the tensor"
                            : "no reference in double: a is compared with b");
    rows_print(t, c);
    figures_print(t, c);
    losses_print(t, c);
}
