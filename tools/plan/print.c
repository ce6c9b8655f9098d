// Print: a forecast as text, as JSON, and as a drawing.
#include "tools/plan/plan.h"
#include "tools/plot/plot.h"

#include <inttypes.h>
#include <math.h>

static const char *rank_word(const World *w) {
    return w->host ? "process" : "GPU";
}

// ---- text ----

static void count_add(Text *t, double count) {
    static const char *const unit[] = {"", " k", " M", " G"};
    int i = 0;
    for (; count >= 99999.5 && i < 3; i++)
        count /= 1000;
    text_add(t, "%.0f%s", count, unit[i]);
}

static void percent_add(Text *t, double part) {
    text_add(t, part < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * part);
}

static void bytes_line(Text *t, const char *what, double bytes, double rate,
                       const char *each) {
    Scaled s = bytes_scaled((int64_t)bytes);
    if (bytes > 0)
        text_add(t, "%-18s%.1f %s from each %s, at %.4g GB/s\n", what, s.count,
                 s.unit, each, 1e-9 * rate);
}

static void seconds_line(Text *t, const char *what, double seconds) {
    text_add(t, "%-18s", what);
    seconds_add(t, seconds);
    text_add(t, "\n");
}

static void batch_add(Text *t, const Row *r, const World *w) {
    text_add(t, "batch ");
    if (r->shards > 1)
        text_add(t, "%d x ", r->shards);
    text_add(t, "%" PRId64 " on each %s, %" PRId64 " in all", r->batch,
             rank_word(w), r->samples);
}

static void title_print(Text *t, const Forecast *f) {
    const World *w = &f->world;
    text_add(t, "%s on %d %s%s", f->p->name, w->ranks, rank_word(w),
             w->ranks == 1 ? ""
             : w->host     ? "es"
                           : "s");
    if (w->ranks > w->local)
        text_add(t, ", %d on each machine", w->local);
    text_add(t, ": %s\n", f->device.name);
    batch_add(t, &f->row, w);
    text_add(t, "\n\n");
}

static void sum_print(Text *t, const Forecast *f) {
    const World *w = &f->world;
    Scaled s = bytes_scaled((int64_t)f->timeline.bytes);
    text_add(t, "%-18s%.1f %s of gradients and metrics in %d bucket%s\n",
             "summed", s.count, s.unit, f->timeline.count,
             f->timeline.count == 1 ? "" : "s");
    Scaled p = bytes_scaled((int64_t)f->timeline.params);
    if (f->timeline.params > 0)
        text_add(t, "%-18s%.1f %s of parameters, of %d optimizer shards\n",
                 "sent to all", p.count, p.unit,
                 f->timeline.num_optimizer_shards);
    Sum all = sum_add(f->exchange.sum, f->exchange.share);
    bytes_line(t, "within a machine", all.within, w->within, rank_word(w));
    bytes_line(t, "between machines", all.between, w->between, "machine");
}

static void step_print(Text *t, const Forecast *f) {
    double work = f->row.seconds - f->row.exposed;
    seconds_line(t, "computation", work);
    text_add(t, "%-18s", "communication");
    seconds_add(t, f->exchange.sum.seconds + f->exchange.share.seconds);
    text_add(t, ", exposed ");
    seconds_add(t, f->exchange.exposed);
    text_add(t, "\n%-18s", "step");
    seconds_add(t, f->row.seconds);
    text_add(t, ", efficiency ");
    percent_add(t, f->row.efficiency);
    text_add(t, "\n%-18s", "samples");
    count_add(t, (double)f->row.samples / f->row.seconds);
    text_add(t, " per second\n");
}

static void largest_print(Text *t, const Forecast *f) {
    const Row *r = &f->largest;
    if (r->batch == 0)
        return;
    text_add(t, "%-18s", "largest");
    batch_add(t, r, &f->world);
    text_add(t, "\n%-18sstep ", "");
    seconds_add(t, r->seconds);
    text_add(t, ", exposed ");
    seconds_add(t, r->exposed);
    text_add(t, "\n");
}

static void cell_add(Text *t, void (*add)(Text *t, double value), double value,
                     int width) {
    Text cell = text_new(t->arena);
    add(&cell, value);
    text_add(t, "%*s", width, text_string(&cell));
}

static void row_print(Text *t, const Row *r) {
    if (r->batch == 0) {
        text_add(t, "%9s", "-");
        return;
    }
    cell_add(t, seconds_add, r->seconds, 9);
    cell_add(t, seconds_add, r->exposed, 9);
    cell_add(t, percent_add, r->efficiency, 8);
    cell_add(t, count_add, (double)r->samples / r->seconds, 9);
}

static void scaling_print(Text *t, const Forecast *f) {
    text_add(t, "\n%-7s%35s%35s\n%-7s", "", "weak scaling", "strong scaling",
             f->world.host ? "ranks" : "GPUs");
    for (int i = 0; i < 2; i++)
        text_add(t, "%9s%9s%8s%9s", "step", "exposed", "eff.", "per s");
    text_add(t, "\n");
    for (int i = 0; i < f->weak.count; i++) {
        text_add(t, "%-7d", f->weak.row[i].ranks);
        row_print(t, &f->weak.row[i]);
        row_print(t, &f->strong.row[i]);
        text_add(t, "\n");
    }
}

void forecast_print(Text *t, const Forecast *f) {
    title_print(t, f);
    sum_print(t, f);
    step_print(t, f);
    largest_print(t, f);
    scaling_print(t, f);
}

// ---- JSON ----

static void row_members(Text *t, const Row *r) {
    text_add(t, "\"ranks\": %d", r->ranks);
    json_count(t, "shards_of_rank", r->shards);
    json_count(t, "batch_of_shard", r->batch);
    json_count(t, "samples", r->samples);
    json_number(t, "seconds_per_step", r->seconds);
    json_number(t, "exposed_seconds", r->exposed);
    json_number(t, "efficiency", r->efficiency);
    json_number(t, "samples_per_second", (double)r->samples / r->seconds);
}

static void row_json(Text *t, const char *before, const Row *r) {
    text_add(t, "%s", before);
    if (r->batch == 0) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{");
    row_members(t, r);
    text_add(t, "}");
}

static void scaling_json(Text *t, const char *name, const Scaling *s) {
    text_add(t, ", \"%s\": [", name);
    for (int i = 0; i < s->count; i++)
        row_json(t, i ? ",\n" : "\n", &s->row[i]);
    text_add(t, "\n]");
}

static void world_json(Text *t, const World *w) {
    json_count(t, "ranks_of_machine", w->local);
    json_text(t, "reduce", w->fast ? "fast" : "fixed");
    json_number(t, "link_within", w->within);
    json_number(t, "link_between", w->ranks > w->local ? w->between : NAN);
    json_number(t, "latency_within", w->within_latency);
    json_number(t, "latency_between", w->between_latency);
    json_number(t, "memory_bandwidth", w->memory);
}

static void buckets_json(Text *t, const Timeline *line) {
    text_add(t, ", \"buckets\": [");
    for (int i = 0; i < line->count; i++) {
        const BucketTime *b = &line->bucket[i];
        text_add(t, "%s{\"bytes\": %.0f", i ? ", " : "", b->bytes);
        json_number(t, "ready", b->ready);
        json_number(t, "end", b->end);
        text_add(t, "}");
    }
    text_add(t, "]");
}

void forecast_json(Text *t, const Forecast *f) {
    text_add(t, "{\"schema\": 1");
    json_text(t, "model", f->p->name);
    json_text(t, "device", f->device.name);
    text_add(t, ", ");
    row_members(t, &f->row);
    world_json(t, &f->world);
    json_count(t, "summed_bytes", (int64_t)f->timeline.bytes);
    json_count(t, "shared_bytes", (int64_t)f->timeline.params);
    Sum all = sum_add(f->exchange.sum, f->exchange.share);
    json_count(t, "bytes_within", (int64_t)all.within);
    json_count(t, "bytes_between", (int64_t)all.between);
    json_number(t, "shard_seconds", f->timeline.shard);
    json_number(t, "update_seconds",
                update_seconds(&f->timeline, f->row.ranks));
    json_number(t, "communication_seconds", all.seconds);
    buckets_json(t, &f->timeline);
    row_json(t, ", \"largest\": ", &f->largest);
    scaling_json(t, "weak", &f->weak);
    scaling_json(t, "strong", &f->strong);
    text_add(t, "}\n");
}

// ---- the drawing ----

static PlotSeries series_of(Arena *a, const Scaling *s, bool rate) {
    PlotSeries series = {.metric = rate ? "samples per second" : "efficiency",
                         .split = ""};
    series.point = ARENA_ARRAY(a, (size_t)s->count + 1, PlotPoint);
    for (int i = 0; i < s->count; i++) {
        const Row *r = &s->row[i];
        if (r->batch > 0)
            series.point[series.count++] =
                (PlotPoint){r->ranks, rate ? (double)r->samples / r->seconds
                                           : r->efficiency};
    }
    return series;
}

static PlotRun run_of(Arena *a, const char *name, const Scaling *s) {
    PlotRun run = {.name = name, .series = ARENA_ARRAY(a, 2, PlotSeries)};
    for (; run.count < 2; run.count++)
        run.series[run.count] = series_of(a, s, run.count > 0);
    return run;
}

void forecast_draw(Arena *a, Text *t, const Forecast *f) {
    const char *const metric[] = {"efficiency", "samples per second"};
    PlotRun run[] = {run_of(a, "weak scaling", &f->weak),
                     run_of(a, "strong scaling", &f->strong)};
    Curves c = {.run = run,
                .num_runs = 2,
                .metric = metric,
                .num_metrics = 2,
                .x = f->world.host ? "processes" : "GPUs",
                .powers = true};
    curves_add(t, &c);
}
