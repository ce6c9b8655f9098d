// sinter check: prints a model layer by layer, and the cost of a step.
#include "base/exits.h"
#include "passes/plan/library_fusion.h"
#include "tools/device.h"
#include "tools/layers.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- layers ----

// Length of a path without the number of its layer.
static size_t stem_length(const char *path) {
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] >= '0' && path[length - 1] <= '9')
        length--;
    return length;
}

// Whether two layers without parameters differ in their number alone.
static bool layers_alike(const Layer *x, const Layer *y) {
    size_t length = stem_length(x->path);
    return x->parameters == 0 && y->parameters == 0 && x->flops == y->flops &&
           x->samples == y->samples && type_is(&x->type, &y->type) &&
           stem_length(y->path) == length &&
           memcmp(x->path, y->path, length) == 0;
}

// How often `period` layers from i on repeat, at least once.
static int layers_repeat(const Layers *l, int i, int period) {
    int same = 0;
    while (i + same + period < l->count &&
           layers_alike(&l->layer[i + same], &l->layer[i + same + period]))
        same++;
    return same / period + 1;
}

// The layers of a loop over positions are printed once: *times says how often
// those from i on repeat, and the result is their number.
static int layers_period(const Layers *l, int i, int *times) {
    enum { LEAST_TIMES = 16, MAX_PERIOD = 64 };
    int best = 1;
    *times = 1;
    for (int period = 1; period <= MAX_PERIOD; period++) {
        int repeats = layers_repeat(l, i, period);
        if (repeats >= LEAST_TIMES && repeats * period > *times * best) {
            *times = repeats;
            best = period;
        }
    }
    return best;
}

static void layers_print(Arena *a, Text *t, const Layers *l) {
    enum { LEAST = 5, MOST = 60 };
    int wide = LEAST;
    for (int i = 0; i < l->count; i++)
        if ((int)strlen(l->layer[i].path) > wide)
            wide = (int)strlen(l->layer[i].path);
    wide = wide > MOST ? MOST : wide;
    text_add(t, "%-*s  %-20s%12s%14s\n", wide, "layer", "output", "parameters",
             "flops");
    for (int i = 0, times; i < l->count;) {
        int period = layers_period(l, i, &times);
        for (int j = i; j < i + period; j++) {
            const Layer *layer = &l->layer[j];
            text_add(t, "%-*s  %-20s%12" PRId64 "%14" PRId64 "\n", wide,
                     layer->path, layer_shape(a, layer), layer->parameters,
                     layer->flops);
        }
        if (times > 1)
            text_add(t, "... %d times these %d\n", times, period);
        i += period * times;
    }
}

// ---- costs ----

static void bytes_print(Text *t, const char *what, int64_t bytes) {
    Scaled s = bytes_scaled(bytes);
    text_add(t, "%-18s%.1f %s\n", what, s.count, s.unit);
}

// Cost of a step, and the savings by merged launches and library fusions.
typedef struct {
    int64_t samples;
    Cost cost;
    int64_t merged; // launches
    int64_t fusions, fused_launches, fused_bytes;
    // With tile kernels beside them.
    int64_t tile_launches, tile_bytes;
} StepCost;

// Savings are part of the counted costs.
static void savings_take(StepCost *c, const Plan *plan, const Step *s,
                         const Device *device, int64_t times) {
    Arena *a = arena_new();
    Selected selected = step_select(a, plan, s, device);
    int fused = selected.saving.launches + selected.merged_beside;
    c->merged -= times * selected.merged_alone;
    c->fusions += times * selected.saving.taken;
    c->fused_launches -= times * fused;
    c->fused_bytes -= times * selected.saving.bytes;
    // All tile kernels without library fusions, or those beside them.
    Saving all = tile_saving(&selected.plan->tiles, true);
    Saving beside = tile_saving(&selected.plan->tiles, false);
    bool alone = all.bytes > selected.saving.bytes + beside.bytes;
    const bool *replaced = tile_replaced(&selected.plan->tiles, alone,
                                         selected.plan->num_groups, a);
    int merged = merged_saving(&selected.merges, &selected.plan->fusions,
                               alone ? 0 : device->sm, replaced);
    c->tile_launches -=
        times * (merged + (alone ? all.launches
                                 : selected.saving.launches + beside.launches));
    c->tile_bytes -=
        times * (alone ? all.bytes : selected.saving.bytes + beside.bytes);
    arena_free(a);
}

static bool step_cost(const Program *p, const Plan *plan, const Device *device,
                      StepCost *c) {
    *c = (StepCost){.samples = recipe_update_samples(&p->recipe)};
    if (!update_cost(p, plan, &c->cost))
        return false;
    c->merged = c->fused_launches = c->tile_launches = c->cost.launches;
    c->fused_bytes = c->tile_bytes = c->cost.batch_bytes;
    for (int i = 0; i < plan->num_steps; i++) {
        int times = step_runs(&p->recipe, &plan->step[i]);
        if (times > 0)
            savings_take(c, plan, &plan->step[i], device, times);
    }
    return true;
}

static void flops_print(Text *t, const char *what, int64_t flops,
                        const char *each) {
    Scaled s = flops_scaled(flops);
    text_add(t, "%-18s%.1f %s per %s\n", what, s.count, s.unit, each);
}

static double kibibytes(int64_t bytes, const StepCost *c) {
    return (double)bytes / (double)c->samples / 1024;
}

static void library_print(Text *t, const StepCost *c, const Device *device) {
    if (c->fusions > 0)
        text_add(t,
                 "%-18s%" PRId64 " launches, %.1f KiB per sample, with the "
                 "fusions of %s\n",
                 "with the library", c->fused_launches,
                 kibibytes(c->fused_bytes, c), device->name);
}

// The largest batch that fits; room is 0 without --max-batch.
typedef struct {
    int64_t room, largest, kept; // kept: without rematerialization
} Batches;

static Batches batches_of(const Arguments *arguments, const Program *p,
                          const Device *device) {
    Batches b = {0};
    if (!arguments->max_batch)
        return b;
    b.room = arguments->memory ? arguments->memory : (int64_t)device->memory;
    b.largest = batch_largest(arguments, p, b.room, false);
    b.kept = batch_largest(arguments, p, b.room, true);
    return b;
}

static void batches_print(Text *t, const Batches *b) {
    if (b->room == 0)
        return;
    text_add(
        t, "%-18s%" PRId64 " in %s, %" PRId64 " without rematerialization\n",
        "largest batch", b->largest, memory_shown(t->arena, b->room), b->kept);
}

static void batches_json(Text *t, const Batches *b) {
    if (b->room == 0)
        return;
    text_add(t,
             "\"max_batch\": %" PRId64 ", \"max_batch_kept\": %" PRId64
             ", \"max_batch_memory\": %" PRId64 ", ",
             b->largest, b->kept, b->room);
}

// ---- time ----

// The time of a step, and of an epoch.
typedef struct {
    double step, epoch;       // seconds; 0: not known
    double estimate, tiled;   // of a step, by the cost model; with tile kernels
    double sums, one;         // of a step: sums over shards; all in one shard
    int64_t samples, updates; // of an epoch; 0: not known
} Duration;

// The time of the same step in one shard; 0: not known, or it has no more.
static double one_shard_seconds(const Arguments *arguments, const Program *p,
                                const Device *device) {
    if (p->recipe.shards < 2)
        return 0;
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Setting set[MAX_SETTINGS + 1];
    int count = 0;
    for (; count < arguments->num_settings; count++)
        set[count] = arguments->set[count];
    set[count++] = (Setting){"shards", "1"};
    const Program *one =
        frontend_load(a, arguments->operand[0], set, count, &diags);
    double seconds = 0;
    if (one != NULL) {
        PassOptions o = plan_options(one, arguments, target_of(arguments));
        seconds = step_seconds(program_plan(one, &o), one, device);
    }
    arena_free(a);
    return seconds;
}

static Duration duration_of(const Arguments *arguments, const Program *p,
                            const Plan *plan, const Device *device) {
    Duration d = {.step = step_seconds(plan, p, device),
                  .samples = arguments->samples.given
                                 ? arguments->samples.value
                                 : epoch_samples(&p->recipe)};
    d.one = one_shard_seconds(arguments, p, device);
    d.sums = d.one > 0 ? shard_sum_seconds(plan, p, device) : 0;
    d.updates = recipe_epoch_updates(&p->recipe, d.samples);
    d.epoch = (double)d.updates * d.step;
    return d;
}

// The peak for the plan's type of products.
static double peak_of(const Plan *plan, const Device *device) {
    bool half = plan->act == F16 || plan->act == BF16;
    return half ? device->f16_flops : device->f32_flops;
}

// The cost of shards to one process.
static void shards_print(Text *t, const Duration *d, const Program *p,
                         const Plan *plan) {
    Scaled bytes = bytes_scaled(shard_sum_bytes(plan, p));
    if (d->one <= 0)
        return;
    text_add(t, "%-18s", "in one shard");
    seconds_add(t, d->one);
    text_add(t,
             ": %d shards take %.1f %% more, of it %.1f %% for %.1f %s of "
             "sums\n",
             p->recipe.shards, 100 * (d->step / d->one - 1),
             100 * d->sums / d->one, bytes.count, bytes.unit);
}

static void duration_print(Text *t, const Duration *d, const Program *p,
                           const Plan *plan, const Device *device) {
    const char *how = device->lanes > 0 ? "estimated, from measured peaks of"
                                        : "at least: roofline at";
    const char *epoch = device->lanes > 0 ? "estimated" : "at least";
    if (d->step <= 0)
        return;
    text_add(t, "%-18s", "time of a step");
    seconds_add(t, d->step);
    text_add(t, " %s %.0f Gflop/s and %.0f GB/s\n", how,
             1e-9 * peak_of(plan, device), 1e-9 * device->bandwidth);
    shards_print(t, d, p, plan);
    text_add(t, "%-18s", "time of an epoch");
    if (d->updates > 0) {
        seconds_add(t, d->epoch);
        text_add(t, " %s: %" PRId64 " steps, without data and evaluation\n",
                 epoch, d->updates);
    } else {
        text_add(t, "unknown: give the number of samples with --samples=N\n");
    }
}

// A time that is not known is null.
static void known_json(Text *t, const char *name, double seconds) {
    json_number(t, name, seconds > 0 ? seconds : (double)NAN);
}

static void duration_json(Text *t, const Duration *d, const Program *p,
                          const Plan *plan, const Device *device) {
    text_add(t, "\"estimate\": \"%s\"",
             device->lanes > 0 ? "shares of measured peaks"
                               : "roofline of described peaks");
    known_json(t, "seconds_per_step", d->step);
    known_json(t, "seconds_per_step_in_one_shard", d->one);
    json_count(t, "shard_sum_bytes", shard_sum_bytes(plan, p));
    known_json(t, "seconds_per_epoch", d->epoch);
    known_json(t, "step_us_estimate", 1e6 * d->estimate);
    known_json(t, "step_us_estimate_with_tile", 1e6 * d->tiled);
    json_count(t, "samples_per_epoch", d->samples);
    known_json(t, "peak_flops", peak_of(plan, device));
    known_json(t, "peak_bandwidth", device->bandwidth);
    text_add(t, ", ");
}

// With as many ranks as shards, each has the states of one.
static void optimizer_shards_print(Text *t, const Plan *plan) {
    int64_t all = 0, most = 0;
    for (int i = 0; i < plan->num_optimizer_shards; i++) {
        int64_t own = plan->optimizer_shard[i].state_bytes;
        all += own;
        most = own > most ? own : most;
    }
    if (plan->num_optimizer_shards == 0)
        return;
    Scaled total = bytes_scaled(all), part = bytes_scaled(most);
    text_add(t,
             "%-18s%.1f %s of optimizer states, of which each of %d ranks has "
             "%.1f %s at most\n",
             "", total.count, total.unit, plan->num_optimizer_shards,
             part.count, part.unit);
}

static void totals_print(Text *t, const Program *p, const Layers *l,
                         const Plan *plan, const StepCost *c,
                         const Device *device) {
    text_add(t, "\n%s, batch ", p->name);
    if (recipe_update_batches(&p->recipe) > 1)
        text_add(t, "%d x ", recipe_update_batches(&p->recipe));
    text_add(t, "%" PRId64 ", plan for %s in %s: %s\n", p->recipe.batch,
             plan->device, dtype_name(plan->act), device->name);
    text_add(t, "%-18s%" PRId64 "\n", "parameters", l->parameters);
    flops_print(t, "flops, forward", l->flops, "sample");
    flops_print(t, "flops", c->cost.flops, "step");
    text_add(t, "%-18s%" PRId64 " per step", "launches", c->merged);
    if (c->merged < c->cost.launches)
        text_add(t, ", %" PRId64 " unmerged", c->cost.launches);
    text_add(t, "\n");
    text_add(t, "%-18s%.1f KiB per sample\n", "memory traffic",
             kibibytes(c->cost.batch_bytes, c));
    library_print(t, c, device);
    bytes_print(t, "arena", plan_process_bytes(plan));
    if (plan->lockstep > 1) {
        Scaled one = bytes_scaled(plan->arena_bytes);
        text_add(t, "%-18s%.1f %s with one shard; %d run in lockstep\n", "",
                 one.count, one.unit, plan->lockstep);
    }
    optimizer_shards_print(t, plan);
    bytes_print(t, "largest live sum", plan_bound(plan));
}

// Steps beside training and evaluation, or several of them.
static bool has_more_steps(const Program *p) {
    return p->num_stages > 1 || p->stage[0].accumulate || p->average ||
           p->collect;
}

static int64_t step_launches(const Plan *plan, const Step *step,
                             const Device *device, const Cost *c) {
    Arena *a = arena_new();
    Selected selected = step_select(a, plan, step, device);
    arena_free(a);
    return c->launches - selected.merged_alone;
}

static void steps_print(Text *t, const Plan *plan, const Device *device) {
    text_add(t, "\n%-12s%10s%12s%14s\n", "step", "launches", "flops",
             "traffic");
    for (int i = 0; i < plan->num_steps; i++) {
        Cost c = graph_cost(plan->step[i].plan);
        Scaled flops = flops_scaled(c.flops), bytes = bytes_scaled(c.bytes);
        text_add(t, "%-12s%10" PRId64 "%10.1f %s%10.1f %s\n",
                 plan->step[i].name,
                 step_launches(plan, &plan->step[i], device, &c), flops.count,
                 flops.unit, bytes.count, bytes.unit);
    }
}

static void warnings_json(Text *t, const Diagnostics *diags) {
    text_add(t, "\"warnings\": [");
    const char *comma = "";
    for (int i = 0; i < diags->count; i++) {
        if (diags->list[i]->severity != DIAG_WARNING)
            continue;
        text_add(t, "%s", comma);
        json_string(t, diags->list[i]->message);
        comma = ", ";
    }
    text_add(t, "]");
}

static void steps_json(Text *t, const Plan *plan, const Device *device) {
    text_add(t, "\"steps\": [");
    for (int i = 0; i < plan->num_steps; i++) {
        Cost c = graph_cost(plan->step[i].plan);
        text_add(t,
                 "%s{\"name\": \"%s\", \"launches\": %" PRId64
                 ", \"flops\": %" PRId64 ", \"bytes_moved\": %" PRId64 "}",
                 i ? ", " : "", plan->step[i].name,
                 step_launches(plan, &plan->step[i], device, &c), c.flops,
                 c.bytes);
    }
    text_add(t, "], ");
}

static void library_json(Text *t, const StepCost *c, const Device *device) {
    text_add(t, "\"device\": ");
    json_string(t, device->name);
    text_add(t, ", \"library_fusions\": %" PRId64, c->fusions);
    text_add(t, ", \"launches_with_library\": %" PRId64, c->fused_launches);
    text_add(t, ", \"bytes_moved_per_sample_with_library\": %" PRId64 ", ",
             c->fused_bytes / c->samples);
    text_add(t, "\"launches_with_tile\": %" PRId64, c->tile_launches);
    text_add(t, ", \"bytes_moved_per_sample_with_tile\": %" PRId64 ", ",
             c->tile_bytes / c->samples);
}

static void check_json(Text *t, const Program *p, const Layers *l,
                       const Plan *plan, const StepCost *c,
                       const Device *device, const Duration *d,
                       const Batches *b, const Diagnostics *diags) {
    text_add(t, "{\"schema\": 1, \"model\": ");
    json_string(t, p->name);
    text_add(t, ", \"parameters\": %" PRId64, l->parameters);
    text_add(t, ", \"flops_forward_per_sample\": %" PRId64, l->flops);
    text_add(t, ", \"flops_step\": %" PRId64, c->cost.flops);
    text_add(t, ", \"arena_bytes\": %" PRId64, plan_process_bytes(plan));
    text_add(t, ", \"optimizer_shard_bytes\": [");
    for (int i = 0; i < plan->num_optimizer_shards; i++)
        text_add(t, "%s%" PRId64, i ? ", " : "",
                 plan->optimizer_shard[i].state_bytes);
    text_add(t, "], \"bound_bytes\": %" PRId64, plan_bound(plan));
    text_add(t, ", \"launches\": %" PRId64, c->merged);
    text_add(t, ", \"launches_without_joins\": %" PRId64, c->cost.launches);
    text_add(t, ", \"bytes_moved_per_sample\": %" PRId64 ", ",
             c->cost.batch_bytes / c->samples);
    batches_json(t, b);
    duration_json(t, d, p, plan, device);
    library_json(t, c, device);
    steps_json(t, plan, device);
    warnings_json(t, diags);
    text_add(t, "}\n");
}

static void checked_print(Arena *a, const Arguments *arguments,
                          const Program *p, const Plan *plan, const StepCost *c,
                          const Device *device, const Diagnostics *diags) {
    Layers l = layers_of(a, p);
    Batches b = batches_of(arguments, p, device);
    Duration d = duration_of(arguments, p, plan, device);
    Text t = text_new(a);
    if (arguments->json) {
        d.estimate = step_estimate(a, plan, p, device, false);
        d.tiled = step_estimate(a, plan, p, device, true);
        check_json(&t, p, &l, plan, c, device, &d, &b, diags);
    } else {
        layers_print(a, &t, &l);
        totals_print(&t, p, &l, plan, c, device);
        duration_print(&t, &d, p, plan, device);
        batches_print(&t, &b);
        if (has_more_steps(p))
            steps_print(&t, plan, device);
    }
    lines_print(&t);
}

// Finds the device of the options, else the device that a trainer would choose
// here: a GPU, if there is one.  False and an exit status if the options are
// refused.
static bool device_choose(Arena *a, Arguments *arguments, Device *out,
                          int *status) {
    bool named = arguments->device || arguments->device_file;
    bool host = arguments->target && strcmp(arguments->target, "host") == 0;
    if (named || (arguments->target && !host)) {
        if (!device_find(a, arguments, out, status))
            return false;
    } else if (!host && gpu_detect(a, out)) {
        arguments->target = "cuda";
    } else {
        host = true;
        arguments->target = "host";
    }
    if (host)
        *out = (Device){.name = "host"};
    return true;
}

static int check(Arena *a, const Arguments *arguments, Device *device) {
    int status;
    Diagnostics diags = diag_new(a);
    Program *p = model_load(a, arguments, &diags, &status);
    if (!p)
        return status;
    PassOptions o = plan_options(p, arguments, target_of(arguments));
    Plan *plan = program_plan(p, &o);
    bool host = strcmp(plan->device, "host") == 0;
    if (!host && !plan_supported(a, arguments, plan, device))
        return EXIT_MODEL;
    if (!arguments->max_batch && !plan_fits(a, arguments, p, plan))
        return EXIT_MEMORY;
    StepCost c;
    if (!step_cost(p, plan, device, &c)) {
        complain_uncounted(arguments, p);
        return EXIT_MODEL;
    }
    if (host)
        *device = host_detect(a);
    checked_print(a, arguments, p, plan, &c, device, &diags);
    return EXIT_GOOD;
}

int check_command(Arena *a, const Arguments *arguments) {
    int status;
    Device device;
    Arguments copy = *arguments;
    if (!device_choose(a, &copy, &device, &status) ||
        !device_plan(a, &copy, &status))
        return status;
    return check(a, &copy, &device);
}
