// Comparison as JSON: docs/compare.schema.json describes each value.
#include "tools/compare/compare.h"
#include "tools/compare/spread.h"

static const char *const verdict_word[] = {[VERDICT_SAME] = "same",
                                           [VERDICT_GOOD] = "good",
                                           [VERDICT_CARRIED] = "carried",
                                           [VERDICT_SKIPPED] = "skipped",
                                           [VERDICT_WRONG] = "wrong"};

// ---- a tensor ----

static void origin_json(Text *t, const Node *d) {
    json_text(t, "op", op_info[d->op].name);
    json_text(t, "path", d->from.path);
    text_add(t, ", \"backward\": %s", d->from.backward ? "true" : "false");
    json_text(t, "file", d->from.file);
    json_count(t, "line", d->from.line);
}

static void row_json(Text *t, const Comparison *c, const Row *r) {
    text_add(t, "{\"tensor\": ");
    json_string(t, r->name);
    json_text(t, "kind", r->kind[0] ? r->kind : "stored");
    json_count(t, "node", r->node);
    json_text(t, "type", row_stored_as(t->arena, c, r));
    origin_json(t, &c->a.snapshot.step->graph->node[r->node]);
    json_number(t, "absolute", r->absolute);
    json_number(t, "relative", r->relative);
    json_number(t, "size", r->size);
    if (c->rows.judged) {
        json_number(t, "error_a", r->error_a);
        json_number(t, "error_b", r->error_b);
    }
    json_number(t, "allowed", r->allowed);
    json_text(t, "verdict", verdict_word[r->verdict]);
    text_add(t, "}");
}

// ---- a variant ----

// Steps of one run depend on each other, so with several runs the interval is
// that of their medians.
static void times_json(Text *t, const Variant *variant) {
    const Series *of =
        variant->run_times.count ? &variant->run_times : &variant->times;
    Spread s = spread_of(t->arena, of->value, of->count);
    json_numbers(t, "step_ms", variant->times.value, variant->times.count);
    if (of == &variant->run_times)
        json_numbers(t, "run_ms", of->value, of->count);
    json_number(t, "median_ms", s.median);
    json_number(t, "low_ms", s.low);
    json_number(t, "high_ms", s.high);
    json_number(t, "confidence", s.confidence);
}

void variant_json(Text *t, const Variant *v) {
    text_add(t, "\"options\": ");
    json_string(t, v->options);
    json_count(t, "launches", v->cost.launches);
    json_count(t, "bytes_moved", v->cost.bytes);
    json_count(t, "arena_bytes", v->plan->arena_bytes);
    times_json(t, v);
    json_numbers(t, "loss", v->loss.value, v->loss.count);
}

void comparison_json(Text *t, const Comparison *c) {
    text_add(t, "{\"schema\": 1");
    json_text(t, "model", c->a.program->name);
    json_count(t, "batch", c->runs.batch);
    json_text(t, "data", c->runs.data);
    json_text(t, "device", c->runs.device);
    json_text(t, "step", c->a.snapshot.step->name);
    text_add(t, ", \"double\": %s", c->rows.judged ? "true" : "false");
    text_add(t, ", \"a\": {");
    variant_json(t, &c->a);
    text_add(t, "}, \"b\": {");
    variant_json(t, &c->b);
    text_add(t, "}");
    json_count(t, "wrong", c->rows.wrong);
    json_count(t, "only_a", c->rows.only_a);
    json_count(t, "only_b", c->rows.only_b);
    text_add(t, ", \"skips_a\": %s, \"skips_b\": %s",
             c->rows.skips_a ? "true" : "false",
             c->rows.skips_b ? "true" : "false");
    text_add(t, ", \"tensors\": [");
    for (int i = 0; i < c->rows.count; i++) {
        text_add(t, i ? ",\n " : "\n ");
        row_json(t, c, &c->rows.row[i]);
    }
    text_add(t, "]}\n");
}
