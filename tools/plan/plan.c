// sinter plan: estimates the step of a model on many GPUs or processes, and the
// part of its communication that the backward pass does not hide.
#include "tools/plan/plan.h"

#include "base/exits.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// Latencies of NCCL's own estimates, of rings with the protocol Simple: of a
// call, of a message over NVLink, and over a network (src/graph/tuning.cc).
static const double GPU_CALL = 8.4e-6, GPU_MESSAGE = 3.4e-6,
                    NETWORK_MESSAGE = 14e-6;
// The time in which a sleeping thread wakes: assumed, as in estimate.c.
static const double HOST_MESSAGE = 5e-6;

// The model file and the devices.
typedef struct {
    const Arguments *arguments;
    Device device; // for processes: all processors of a machine
    int local;     // ranks of a machine
    int shards;    // of the file; 0: none
    int64_t batch; // of the file, of all shards
} Case;

// ---- a rank ----

static World world_of(const Case *c, int ranks) {
    const Arguments *o = c->arguments;
    const Device *d = &c->device;
    bool host = d->lanes > 0;
    World w = {
        .ranks = ranks,
        .local = ranks < c->local ? ranks : c->local,
        .host = host,
        .fast = o->reduce != NULL && strcmp(o->reduce, "fast") == 0,
        .within = d->link,
        .within_latency = host ? HOST_MESSAGE : GPU_MESSAGE,
        .between = o->link,
        .between_latency = o->latency > 0 ? o->latency : NETWORK_MESSAGE,
        .call = host ? 0 : GPU_CALL,
        .memory = d->bandwidth,
    };
    if (host) {
        // One thread of a rank copies; a message within a machine is copied
        // into memory that both share, and out of it.
        w.memory /= fmax(d->multiprocessors, w.local);
        w.within = w.memory / 4;
    }
    return w;
}

// The part of the device that a rank has: whole threads, if there are enough.
static Device device_of(const Case *c, const World *w) {
    Device d = c->device;
    double threads = floor(d.multiprocessors / w->local);
    double part = threads > 0 ? threads / d.multiprocessors : 1.0 / w->local;
    if (w->host) {
        d.bandwidth *= part;
        d.f16_flops *= part;
        d.f32_flops *= part;
        d.memory *= part;
    }
    return d;
}

// The model with the shards of the file, or with one of so many samples.  NULL
// if it does not compile so.
static Program *program_of(Arena *a, const Case *c, int64_t batch,
                           Diagnostics *diags) {
    Setting set[MAX_SETTINGS + 2];
    int count = c->arguments->num_settings;
    memcpy(set, c->arguments->set, (size_t)count * sizeof *set);
    if (c->shards == 0) {
        set[count++] = (Setting){"batch", arena_format(a, "%" PRId64, batch)};
        set[count++] = (Setting){"shards", "1"};
    }
    return frontend_load(a, c->arguments->operand[0], set, count, diags);
}

// ---- a step ----

// A rank adds the terms of its runs.
static double adding_seconds(int runs, const Timeline *t, const World *w) {
    return (double)tree_bytes(runs, (int64_t)t->bytes) / w->memory;
}

// The batch of the result is 0 if the model does not compile so.
static Forecast step_forecast(Arena *a, const Case *c, Row row,
                              Diagnostics *diags) {
    Forecast f = {.p = program_of(a, c, row.batch, diags),
                  .world = world_of(c, row.ranks),
                  .row = row};
    if (f.p == NULL) {
        f.row.batch = 0;
        return f;
    }
    PassOptions o = plan_options(f.p, c->arguments, target_of(c->arguments));
    const Plan *plan = f.plan = program_plan(f.p, &o);
    f.device = device_of(c, &f.world);
    f.timeline =
        timeline_of(a, f.p, plan, launch_seconds(a, plan, &f.device, true));
    f.exchange = exchange_of(&f.timeline, &f.world);
    f.row.exposed = f.exchange.exposed;
    int runs = row.shards * f.timeline.runs;
    f.row.seconds = runs * f.timeline.shard +
                    adding_seconds(runs, &f.timeline, &f.world) +
                    f.exchange.exposed + update_seconds(&f.timeline, row.ranks);
    f.row.samples = row.ranks * row.shards *
                    (recipe_update_samples(&f.p->recipe) / f.p->recipe.shards);
    return f;
}

// ---- scaling ----

enum { MAX_RANKS = 1024 };

// Weak: each rank has the samples of the file's batch.  Strong: all ranks
// together have them.  The batch is 0 if they cannot be divided so.
static Row row_of(const Case *c, int ranks, bool strong) {
    int parts = strong ? ranks : 1;
    Row r = {.ranks = ranks, .shards = 1, .batch = c->batch / parts};
    int64_t rest = c->batch % parts;
    if (c->shards > 0) {
        r.shards = c->shards / parts;
        r.batch = c->batch / c->shards;
        rest = c->shards % parts;
    }
    if (rest != 0)
        r.batch = 0;
    return r;
}

static double rank_rate(const Row *r) {
    return (double)r->samples / r->seconds / r->ranks;
}

static Row row_forecast(const Case *c, Row row) {
    Arena *a = arena_new();
    Diagnostics unseen = diag_new(a);
    if (row.batch > 0)
        row = step_forecast(a, c, row, &unseen).row;
    arena_free(a);
    return row;
}

// 1, 2, 4 ... ranks of a machine, then 1, 2, 4 ... machines.
static Scaling scaling_of(const Case *c, bool strong) {
    int most = c->arguments->link > 0 ? MAX_RANKS : c->local;
    Scaling s = {.count = 0};
    for (int ranks = 1; ranks <= most; ranks *= 2) {
        if (ranks > c->local && ranks < 2 * c->local)
            ranks = c->local;
        Row *row = &s.row[s.count++];
        *row = row_forecast(c, row_of(c, ranks, strong));
        if (row->batch > 0)
            row->efficiency = rank_rate(row) / rank_rate(&s.row[0]);
    }
    return s;
}

// The bytes of optimizer states that no rank has.
static int64_t elsewhere_bytes(const Plan *plan, int ranks) {
    int64_t all = 0, most = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int first, end;
        int64_t own = 0;
        shards_of_rank(plan->num_optimizer_shards, ranks, rank, &first, &end);
        for (int i = first; i < end; i++)
            own += plan->optimizer_shard[i].state_bytes;
        all += own;
        most = own > most ? own : most;
    }
    return all - most;
}

// One shard of the largest batch that fits.
static Row largest_of(const Case *c, const Forecast *f) {
    Case one = *c;
    Arguments with = *c->arguments;
    Row row = {.ranks = f->row.ranks, .shards = 1};
    if (!setting_add(&with, (Setting){"shards", "1"}))
        return row;
    one.shards = 0;
    int64_t memory =
        (int64_t)f->device.memory + elsewhere_bytes(f->plan, f->row.ranks);
    row.batch = batch_largest(&with, f->p, memory, true);
    row = row_forecast(&one, row);
    row.efficiency = 1 - row.exposed / row.seconds;
    return row;
}

// ---- the command ----

static int ranks_of(const Arguments *o) {
    return (int)(o->gpus.given ? o->gpus.value : o->processes.value);
}

// Whether the options name ranks that can be placed; sets the ranks of a
// machine.
static bool ranks_check(const Arguments *o, int *local) {
    int ranks = ranks_of(o);
    *local = o->per_node.given ? (int)o->per_node.value
             : o->gpus.given   ? 8
                               : ranks;
    if (o->gpus.given == o->processes.given)
        complain(o,
                 "plan needs the number of ranks: --gpus=N or "
                 "--processes=N%s",
                 o->gpus.given ? ", not both" : "");
    else if (o->processes.given && (o->device || o->device_file))
        complain(o, "--processes computes on this machine's processors, and "
                    "takes no --device");
    else if (ranks > *local && ranks % *local != 0)
        complain(o,
                 "%d ranks in a machine do not divide %d: give another "
                 "--per-node",
                 *local, ranks);
    else if (ranks > *local && o->link == 0)
        complain(o,
                 "%d ranks, %d in a machine, need the network between "
                 "machines: --link=RATE, as 400Gb",
                 ranks, *local);
    else
        return true;
    return false;
}

static int draw(Arena *a, const Forecast *f, const Arguments *arguments) {
    int status;
    Text t = text_new(a);
    if (arguments->out == NULL)
        return EXIT_GOOD;
    if (!output_check(arguments, f->p, arguments->out, &status))
        return status;
    forecast_draw(a, &t, f);
    status = text_write(arguments, arguments->out, &t);
    if (status == EXIT_GOOD)
        wrote_print(arguments, arguments->out, "open it in a browser");
    return status;
}

// Prints all that is known of the headline's ranks, and scaling.
static int forecast(Arena *a, Case *c, const Program *p, Diagnostics *diags) {
    const Arguments *o = c->arguments;
    c->shards = p->recipe.shards;
    c->batch = p->recipe.batch * (c->shards > 0 ? c->shards : 1);
    Row row = row_of(c, ranks_of(o), c->shards > 0);
    if (row.batch == 0) {
        complain(o, "%d ranks do not divide %d shards", row.ranks, c->shards);
        return EXIT_USAGE;
    }
    Forecast f = step_forecast(a, c, row, diags);
    if (f.row.batch == 0) {
        diagnostics_print(a, o, diags);
        return EXIT_MODEL;
    }
    if (!f.world.host && !plan_supported(a, o, f.plan, &f.device))
        return EXIT_MODEL;
    f.weak = scaling_of(c, false);
    f.strong = scaling_of(c, true);
    f.row.efficiency = rank_rate(&f.row) / rank_rate(&f.weak.row[0]);
    f.largest = largest_of(c, &f);
    Text t = text_new(a);
    if (o->json)
        forecast_json(&t, &f);
    else
        forecast_print(&t, &f);
    lines_print(&t);
    return draw(a, &f, o);
}

int plan_command(Arena *a, const Arguments *arguments) {
    int status = EXIT_USAGE;
    Arguments copy = *arguments;
    Diagnostics diags = diag_new(a);
    Case c = {.arguments = &copy};
    copy.target = arguments->processes.given ? "host" : "cuda";
    if (!ranks_check(&copy, &c.local))
        return EXIT_USAGE;
    if (copy.gpus.given && (!device_find(a, &copy, &c.device, &status) ||
                            !device_plan(a, &copy, &status)))
        return status;
    Program *p = model_load(a, &copy, &diags, &status);
    if (p == NULL)
        return status;
    if (!copy.gpus.given)
        c.device = host_detect(a);
    return forecast(a, &c, p, &diags);
}
