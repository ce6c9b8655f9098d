// Train: the run.  Steps are numbered from 0 over all epochs, and all that
// depends on where the run is depends on that number alone: so a run that goes
// on from a checkpoint takes the same steps as one that never stopped.
//
// After a step come, where they are due: the row of the epoch, a checkpoint, an
// evaluation.  The checkpoint is first so that nothing after it can lose it; a
// run that goes on from it repeats the evaluation.

#include "runtime/nvtx.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first steps of a run prepare, and record what later ones replay: a trace
// begins after them.
enum { MOST_FAILURES = 3, WARM_STEPS = 3, TRACED_STEPS = 8 };
static const double SHOW_EVERY = 0.5; // seconds between progress lines

typedef struct {
    const RtRun *run;
    const RtPlan *plan;
    RtDevice *device;
    RtReport *report;
    RtCheckpoint *checkpoint;
    RtShelf shelf;
    RtFeeder train, eval; // what gives them batches
    int64_t epoch_batches;
    RtProgress at;
    RtBudget budget;
    RtRow test;         // the last evaluation
    int64_t saved;      // the step of the last checkpoint; -1: none yet
    int failures;       // of checkpoints, one after another
    bool looked;        // a snapshot has been taken
    FILE *times;        // of steps; NULL: nobody asked
    RtBlame *blame;     // NULL: a step is not looked at
    RtMembers *members; // NULL: nor is a kernel of it
    // Since the last row:
    double since, waited, paused; // when it began; seconds lost
    int64_t samples;
    double shown;     // when progress was last shown
    RtMetrics logged; // what rows of steps have told of the epoch
    // Rows whose numbers have been asked for, in a ring, and how many have been
    // told.
    RtRow asked_row[RT_MOST_ASKED];
    int64_t asked, told;
    int64_t traced_from, traced_to; // the steps of a trace
    bool traces, traced;            // this is one of them; it is written
} Session;

// ---- what a run is ----

static double epoch_of(const Session *s, int64_t step) {
    return (double)step / (double)s->at.epoch_steps;
}

// ---- data ----

static RtLoading plan_loading(const RtRun *run, const RtSplit *split) {
    const RtTrainer *t = run->trainer;
    return (RtLoading){
        .split = split,
        .batch = t->batch,
        .epoch_batches = (split->count - 1) / t->batch + 1,
        .last = INT64_MAX,
        .image = t->image.type,
        .label = t->label.type,
        .threads = run->loaders,
        .device = run->device,
        .no_images = run->resident,
    };
}

static bool open_feeder(const Session *s, RtFeeder *f, const RtLoading *plan,
                        RtError *e) {
    RtLoader *loader = rt_loader_open(plan, e);
    rt_feeder_open(f, s->plan, s->device, loader);
    if (s->run->resident)
        f->kept = plan->split == &s->run->data->test ? 2 : 1;
    return loader != NULL;
}

static bool open_eval(Session *s, RtError *e) {
    RtLoading plan = plan_loading(s->run, rt_eval_split(s->run));
    return open_feeder(s, &s->eval, &plan, e);
}

static bool open_train(Session *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    RtLoading plan = plan_loading(s->run, &s->run->data->train);
    plan.epoch_batches = s->epoch_batches;
    plan.first = rt_first_batch(t, &s->at, s->epoch_batches, s->at.step);
    plan.last = rt_first_batch(t, &s->at, s->epoch_batches, s->at.steps);
    plan.shuffle = true;
    plan.seed = (uint64_t)s->at.seed;
    plan.trace = s->run->trace;
    if (!open_feeder(s, &s->train, &plan, e))
        return false;
    s->train.repeats = s->run->options->repeat_batch;
    return true;
}

// ---- before the first step ----

static bool collect_batches(Session *s, RtFeeder *feeder, int64_t count,
                            RtError *e) {
    RtFed fed;
    for (int64_t i = 0; i < count; i++) {
        if (!rt_feeder_take(feeder, RT_COLLECT, 0, &fed, e))
            return false;
        rt_step_run(s->plan, s->device, RT_COLLECT, 0);
    }
    return true;
}

// The first samples of the training data, in the order of its file.
static bool collect(Session *s, RtError *e) {
    RtSplit first = s->run->data->train;
    if (rt_step_find(s->plan, RT_COLLECT, 0) == NULL)
        return true;
    if (s->run->trainer->collect_samples < first.count)
        first.count = s->run->trainer->collect_samples;
    RtLoading plan = plan_loading(s->run, &first);
    plan.last = plan.epoch_batches;
    RtFeeder feeder;
    bool good = open_feeder(s, &feeder, &plan, e) &&
                collect_batches(s, &feeder, plan.last, e);
    rt_feeder_close(&feeder);
    return good;
}

// Averages the weights where that is due after the steps so far.
static void average(const Session *s) {
    if (!rt_time_averages(s->run->trainer, &s->at))
        return;
    s->device->phase(s->device, RT_UPDATE);
    rt_step_run(s->plan, s->device, RT_AVERAGE, 0);
    s->device->phase(s->device, RT_OTHER);
}

static bool begin(Session *s, RtError *e) {
    if (!collect(s, e))
        return false;
    rt_step_run(s->plan, s->device, RT_INIT, 0);
    average(s);
    return true;
}

// ---- the trace ----

// What the loop did since `begin`.
static void trace_since(const Session *s, const char *name, double begin,
                        int64_t number) {
    if (s->traces)
        rt_trace_add(s->run->trace, &(RtSpan){.track = RT_TRACK_RUN,
                                              .name = name,
                                              .begin = begin,
                                              .end = rt_seconds(),
                                              .number = number});
}

static void trace_begin(Session *s) {
    s->traces = true;
    rt_trace_begin(s->run->trace);
    s->device->trace(s->device, s->run->trace);
}

static bool trace_end(Session *s, RtError *e) {
    char title[128], note[200];
    s->device->trace(s->device, NULL);
    rt_trace_end(s->run->trace);
    s->traced = true;
    snprintf(title, sizeof title, "%s on %s", s->run->trainer->model,
             s->device->name);
    snprintf(note, sizeof note, "steps %lld to %lld%s",
             (long long)s->traced_from + 1, (long long)s->at.step,
             s->device->replays
                 ? ", whose launches were made one by one; without a trace "
                   "they are one CUDA graph"
                 : "");
    if (!s->traces)
        snprintf(note, sizeof note, "no steps: the run ended before");
    s->traces = false;
    if (!s->run->options->quiet)
        rt_report_say(s->report, "a trace of %s is in %s", note,
                      s->run->options->profile);
    return rt_trace_write(s->run->trace, title, note, e);
}

// Before a step: the trace begins or ends there.
static bool trace_step(Session *s, RtError *e) {
    if (s->run->trace == NULL)
        return true;
    if (s->at.step == s->traced_from)
        trace_begin(s);
    return s->at.step != s->traced_to || trace_end(s, e);
}

static void trace_plan(Session *s) {
    int64_t steps = s->run->options->profile_steps;
    s->traced_from = s->at.step + WARM_STEPS;
    s->traced_to = s->traced_from + (steps > 0 ? steps : TRACED_STEPS);
}

// ---- rows ----

// The sign of a NaN says nothing, and would be printed.
static double mean_of(float sum, float count) {
    double mean = (double)sum / (double)count;
    return isnan(mean) ? (double)NAN : mean;
}

// A row of the steps so far, without its numbers.
static RtRow row_begin(const Session *s, bool train) {
    return (RtRow){
        .train = train,
        .epoch = epoch_of(s, s->at.step),
        .epochs = epoch_of(s, s->at.steps),
        .step = s->at.step,
    };
}

static void row_fill(const Session *s, RtRow *row, const RtMetrics *m) {
    const RtTrainer *t = s->run->trainer;
    row->loss = mean_of(m->loss, m->count);
    row->accuracy = rt_state_find(s->plan, "metric.correct") == NULL
                        ? NAN
                        : mean_of(m->correct, m->count);
    row->top5 = !row->train && t->top5 ? mean_of(m->top5, m->count) : NAN;
    row->perplexity = t->perplexity ? exp(mean_of(m->loss, m->count)) : NAN;
    row->lr = m->lr;
}

static RtRow row_of(const Session *s, bool train, const RtMetrics *m) {
    RtRow row = row_begin(s, train);
    row_fill(s, &row, m);
    return row;
}

static void begin_row(Session *s) {
    s->since = rt_seconds();
    s->waited = s->paused = 0;
    s->samples = 0;
}

static bool diverged(const RtRow *row, RtError *e) {
    if (isfinite(row->loss))
        return false;
    rt_fail(e, EXIT_DIVERGED,
            "the loss is %s: seen after step %lld, epoch %.2f",
            isnan(row->loss) ? "not a number" : "infinite",
            (long long)row->step, row->epoch);
    return true;
}

static void row_time(const Session *s, RtRow *row) {
    row->samples = s->samples;
    row->seconds = rt_seconds() - s->since - s->paused;
    row->waited = s->waited;
}

// The row of the training so far; false if its loss is not finite.
static bool measure(const Session *s, RtRow *row, RtError *e) {
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    *row = row_of(s, true, &m);
    row_time(s, row);
    return m.count == 0 || !diverged(row, e);
}

// ---- rows that the device is not waited for ----

static bool tell_progress(const Session *s, RtRow *row, const RtMetrics *m,
                          RtError *e) {
    row_fill(s, row, m);
    if (m->count != 0 && diverged(row, e))
        return false;
    rt_report_progress(s->report, row);
    return true;
}

// Of the steps since the last row of its kind.
static void tell_steps(Session *s, RtRow *row, const RtMetrics *m) {
    RtMetrics since = *m;
    since.loss -= s->logged.loss;
    since.correct -= s->logged.correct;
    since.count -= s->logged.count;
    row_fill(s, row, &since);
    rt_report_row(s->report, row);
    s->logged = *m;
}

// Tells the rows that are out, in their order, until at most `most` are left or
// the numbers of the next are not there; false if a loss is not finite.
static bool tell_rows(Session *s, bool wait, int64_t most, RtError *e) {
    RtMetrics m;
    while (s->asked - s->told > most &&
           rt_metrics_tell(s->plan, s->device, wait, &m)) {
        RtRow *row = &s->asked_row[s->told++ % RT_MOST_ASKED];
        if (row->part)
            tell_steps(s, row, &m);
        else if (!tell_progress(s, row, &m, e))
            return false;
    }
    return true;
}

static bool ask_row(Session *s, bool part, RtError *e) {
    if (!tell_rows(s, true, RT_MOST_ASKED - 1, e))
        return false;
    RtRow *row = &s->asked_row[s->asked++ % RT_MOST_ASKED];
    *row = row_begin(s, true);
    row->part = part;
    row_time(s, row);
    rt_metrics_ask(s->plan, s->device);
    return true;
}

// A row of the steps since the last one of its kind, where one is due.
static bool log_steps(Session *s, RtError *e) {
    int64_t every = s->run->options->log_every;
    return every == 0 || s->at.step % every != 0 || ask_row(s, true, e);
}

static bool show_progress(Session *s, RtError *e) {
    double now = rt_seconds();
    if (now - s->shown < SHOW_EVERY)
        return true;
    s->shown = now;
    return ask_row(s, false, e);
}

static bool end_epoch(Session *s, RtError *e) {
    RtRow row;
    bool good = measure(s, &row, e);
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    rt_report_row(s->report, &row);
    rt_metrics_write(s->plan, s->device, &(RtMetrics){.lr = m.lr});
    s->logged = (RtMetrics){0};
    begin_row(s);
    return good;
}

// ---- evaluation ----

static void spend(Session *s) {
    RtTimes spent;
    s->device->times(s->device, &spent);
    for (int i = 0; i < RT_NUM_PHASES; i++)
        s->budget.device.phase[i] += spent.phase[i];
    for (int i = 0; i < RT_NUM_WORKS; i++)
        s->budget.device.work[i] += spent.work[i];
}

static bool run_batches(Session *s, double *waited, RtError *e) {
    int64_t count = rt_eval_split(s->run)->count,
            batch = s->run->trainer->batch;
    for (int64_t at = 0; at < count && rt_signals_caught() == 0; at += batch) {
        RtFed fed;
        if (!rt_feeder_take(&s->eval, RT_EVAL, 0, &fed, e))
            return false;
        *waited += fed.waited;
        rt_step_run(s->plan, s->device, RT_EVAL, 0);
    }
    return true;
}

static double metric_of(const RtRow *row, const char *name) {
    return strcmp(name, "accuracy") == 0 ? row->accuracy
           : strcmp(name, "top5") == 0   ? row->top5
           : strcmp(name, "loss") == 0   ? row->loss
                                         : row->perplexity;
}

// Whether an evaluation ends the run.
static bool is_enough(const Session *s, const RtRow *row) {
    RtStop stop = s->run->trainer->stop;
    if (stop.metric == NULL || s->run->options->eval_only)
        return false;
    double value = metric_of(row, stop.metric);
    return stop.above ? value >= stop.value : value <= stop.value;
}

// Before averaging begins, averages are the weights.
static void average_early(const Session *s) {
    RtTime from = s->run->trainer->average_from;
    if (s->at.step < rt_time_first(from, &s->at))
        rt_step_run(s->plan, s->device, RT_AVERAGE, 0);
}

// Evaluation adds up in the same states as training: what is there is put
// back afterwards.  A signal leaves it without a row.
static bool evaluate(Session *s, RtError *e) {
    RtTimes ignored;
    double waited = 0;
    spend(s); // which waits for the steps
    double since = rt_seconds();
    RtMetrics training = rt_metrics_read(s->plan, s->device);
    rt_metrics_write(s->plan, s->device, &(RtMetrics){.lr = training.lr});
    average_early(s);
    rt_nvtx_push(s->run->nvtx, "evaluation");
    rt_step_run(s->plan, s->device, RT_PREPARE, 0);
    bool good = run_batches(s, &waited, e);
    rt_nvtx_pop(s->run->nvtx);
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    rt_metrics_write(s->plan, s->device, &training);
    s->device->times(s->device, &ignored);
    double seconds = rt_seconds() - since;
    trace_since(s, "evaluation", since, s->at.step);
    s->budget.evaluation += seconds;
    s->paused += seconds;
    if (!good || rt_signals_caught() != 0)
        return good;
    s->test = row_of(s, false, &m);
    s->test.on_train = s->run->trainer->eval_train;
    s->test.stops = is_enough(s, &s->test);
    s->test.samples = rt_eval_split(s->run)->count;
    s->test.seconds = seconds;
    s->test.waited = waited;
    rt_report_row(s->report, &s->test);
    // After others training goes on, and sees for itself.
    bool last = s->at.step == s->at.steps || s->run->options->eval_only;
    return !last || !diverged(&s->test, e);
}

// ---- checkpoints ----

static bool save(Session *s, bool last, RtError *e) {
    RtRow row;
    if (s->saved == s->at.step)
        return true;
    if (!measure(s, &row, e)) // which waits for the steps
        return false;
    double since = rt_seconds();
    rt_nvtx_push(s->run->nvtx, "checkpoint");
    bool good = rt_shelf_save(&s->shelf, s->checkpoint, &s->at, e);
    rt_nvtx_pop(s->run->nvtx);
    double seconds = rt_seconds() - since;
    s->paused += seconds;
    s->budget.checkpoints += seconds;
    trace_since(s, "checkpoint", since, s->at.step);
    if (good) {
        s->failures = 0;
        s->saved = s->at.step;
        return true;
    }
    s->failures++;
    if (last || s->failures == MOST_FAILURES || e->status != EXIT_IO)
        return false;
    rt_report_say(s->report,
                  "warning: %s\nwarning: training goes on, earlier checkpoints "
                  "are untouched; failure %d of %d in a row",
                  e->text, s->failures, MOST_FAILURES);
    return true;
}

// What a user asked for must not contradict what the run is.
static bool same_run(const Session *s, const RtProgress *asked,
                     const RtProgress *found, const char *path, RtError *e) {
    const RtOptions *o = s->run->options;
    if (o->eval_only)
        return true;
    if (found->data_hash != asked->data_hash ||
        found->epoch_steps != asked->epoch_steps)
        return rt_fail(e, EXIT_DATA,
                       "%.300s is of a run on other data (%lld steps in an "
                       "epoch, here %lld)",
                       path, (long long)found->epoch_steps,
                       (long long)asked->epoch_steps);
    if (o->seed >= 0 && found->seed != asked->seed)
        return rt_fail(e, EXIT_DATA,
                       "%.300s is of a run with seed %lld, not %lld", path,
                       (long long)found->seed, (long long)asked->seed);
    if (o->epochs > 0 && found->steps != asked->steps)
        return rt_fail(e, EXIT_DATA,
                       "%.300s is of a run of %lld steps, not %lld; its "
                       "schedule cannot be changed on the way",
                       path, (long long)found->steps, (long long)asked->steps);
    return true;
}

static bool load(Session *s, RtError *e) {
    const char *path = s->run->options->resume_path;
    char *newest = NULL;
    RtProgress found;
    bool good;
    if (path != NULL)
        good = rt_checkpoint_read(s->checkpoint, path, &found, e) == RT_GOOD;
    else
        good = rt_shelf_load(&s->shelf, s->checkpoint, &found, &newest, e);
    path = path ? path : newest;
    good = good && same_run(s, &s->at, &found, path, e);
    if (good) {
        s->at = found;
        s->shelf.from = s->saved = found.step;
        if (!s->run->options->quiet)
            fprintf(stderr, "going on from %s, step %lld of %lld\n", path,
                    (long long)found.step, (long long)found.steps);
    }
    free(newest);
    return good;
}

// ---- the loop ----

// The first update is looked at where that is asked for.
static bool run_step(Session *s, RtStepKind kind, int stage, RtError *e) {
    const char *path = s->run->options->snapshot;
    const RtStep *step = rt_step_find(s->plan, kind, stage);
    if (path != NULL && !s->looked && kind == RT_TRAIN) {
        s->looked = true;
        return rt_snapshot_run(path, s->run->files, s->plan, s->device, step,
                               e);
    }
    if (s->blame != NULL && !s->blame->found)
        rt_blame_begin(s->blame, s->plan, s->device, step);
    if (s->members != NULL)
        rt_members_begin(s->members, step);
    rt_step_run(s->plan, s->device, kind, stage);
    if (s->blame != NULL && s->device->watch != NULL)
        rt_blame_end(s->blame);
    return true;
}

// What taking a batch was, one after another.
static void trace_batch(const Session *s, double begin, const RtFed *fed) {
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"wait for the device", fed->held},
                {"wait for data", fed->waited},
                {"give batch", fed->copying}};
    trace_since(s, "take batch", begin, -1);
    for (int i = 0; s->traces && i < 3; i++) {
        double end = begin + part[i].seconds;
        rt_trace_add(s->run->trace, &(RtSpan){.track = RT_TRACK_RUN,
                                              .name = part[i].name,
                                              .begin = begin,
                                              .end = end,
                                              .number = -1});
        begin = end;
    }
}

static bool take_batch(Session *s, RtStepKind kind, int stage, RtError *e) {
    RtFed fed;
    double began = rt_seconds();
    if (!rt_feeder_take(&s->train, kind, stage, &fed, e))
        return false;
    trace_batch(s, began, &fed);
    began = rt_seconds();
    s->budget.copying += fed.copying;
    s->budget.held += fed.held;
    s->samples += fed.valid;
    s->budget.trained += fed.valid;
    if (!run_step(s, kind, stage, e))
        return false;
    s->device->phase(s->device, RT_OTHER);
    trace_since(s, "launch", began, -1);
    s->waited += fed.waited;
    s->budget.waiting += fed.waited;
    return true;
}

// The batches of an update: all but the last only gather their gradients.
static bool take_step(Session *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    double began = rt_seconds();
    int stage = rt_time_stage(t, &s->at);
    int64_t at = rt_first_batch(t, &s->at, s->epoch_batches, s->at.step);
    int64_t end = rt_first_batch(t, &s->at, s->epoch_batches, s->at.step + 1);
    for (; at + 1 < end; at++)
        if (!take_batch(s, RT_GATHER, stage, e))
            return false;
    if (!take_batch(s, RT_TRAIN, stage, e))
        return false;
    s->at.step++;
    average(s);
    trace_since(s, "step", began, s->at.step);
    return true;
}

// A step whose time is asked for is waited for.
static bool take_timed_step(Session *s, RtError *e) {
    double since = rt_seconds();
    rt_nvtx_push(s->run->nvtx, "step %lld", (long long)s->at.step + 1);
    bool good = take_step(s, e);
    rt_nvtx_pop(s->run->nvtx);
    if (!good)
        return false;
    if (s->times == NULL)
        return true;
    s->device->sync(s->device);
    return fprintf(s->times, "%.6f\n", (rt_seconds() - since) * 1e3) > 0 ||
           rt_fail(e, EXIT_IO, "%.300s: %s", s->run->options->times,
                   strerror(errno));
}

// ---- a run that has diverged ----

// The state that the run had when it last was saved, or began.
static bool go_back(Session *s, RtError *e) {
    const char *given = s->run->options->resume_path;
    int64_t saved = s->saved;
    char *newest = NULL;
    RtProgress found = s->at;
    bool good;
    rt_feeder_close(&s->train);
    if (saved < 0) {
        s->at.step = 0;
        rt_states_clear(s->plan, s->device);
        rt_states_start(s->plan, s->device, &s->at);
        good = begin(s, e);
    } else {
        good =
            given != NULL && saved == s->shelf.from
                ? rt_checkpoint_read(s->checkpoint, given, &found, e) == RT_GOOD
                : rt_shelf_load(&s->shelf, s->checkpoint, &found, &newest, e);
        free(newest);
        s->at = found;
        good = good && found.step == saved;
        rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    }
    return good && open_train(s, e);
}

// Takes the step before from the states that it had.
static bool take_again(Session *s, const char *before, RtError *e) {
    s->at.step--;
    rt_states_restore(s->plan, s->device, before);
    rt_feeder_close(&s->train);
    return open_train(s, e) && take_step(s, e);
}

static void say_blame(const Session *s, const char *how, const char *what) {
    rt_report_say(s->report, "step %lld again, %s: %s", (long long)s->at.step,
                  how, what);
}

// Looks into the kernel that is to blame, where that can be done.
static bool blame_members(Session *s, const RtBlame *blame, const char *before,
                          RtError *e) {
    RtMembers members;
    bool good = true;
    if (rt_members_open(&members, s->run->trainer, s->plan, s->device, blame)) {
        s->members = &members;
        good = take_again(s, before, e);
        s->members = NULL;
    }
    if (members.found)
        say_blame(s, "operation by operation", members.text);
    else
        say_blame(s, "launch by launch", blame->text);
    rt_members_close(&members);
    return good;
}

// Takes a step again, and says what is first wrong in it.
static bool blame_step(Session *s, const char *before, RtError *e) {
    RtBlame blame = {.found = false};
    s->blame = &blame;
    bool good = take_again(s, before, e);
    s->blame = NULL;
    return good && (!blame.found || blame_members(s, &blame, before, e));
}

// A step is a function of its number and the states, so that those since the
// last checkpoint come to the same again.
static bool find_blame(Session *s, RtError *e) {
    int64_t last = s->at.step;
    bool finite = true, good = go_back(s, e);
    char *before = good ? rt_states_copy(s->plan, s->device, &finite) : NULL;
    while (good && before != NULL && finite && s->at.step < last &&
           rt_signals_caught() == 0) {
        good = take_step(s, e);
        char *after = rt_states_copy(s->plan, s->device, &finite);
        if (good && after != NULL && !finite)
            good = blame_step(s, before, e);
        free(before);
        before = after;
    }
    free(before);
    return good;
}

// What comes of it is no part of what the run ends with.  Where steps that
// overflow are skipped, and sums are cleared, all may be finite by now.
static void tell_blame(Session *s) {
    RtError ignored;
    int64_t at = s->at.step;
    bool finite;
    if (s->train.loader == NULL)
        return;
    // Rows may be told some steps late.
    free(rt_states_copy(s->plan, s->device, &finite));
    if (finite && !isfinite(s->test.loss)) // but for an evaluation
        return;
    rt_report_say(s->report,
                  "it diverged: going back to step %lld to see where",
                  (long long)(s->saved < 0 ? 0 : s->saved));
    if (!find_blame(s, &ignored))
        rt_report_say(s->report, "where it did cannot be seen: %s",
                      ignored.text);
    s->at.step = at;
}

static bool open_times(Session *s, RtError *e) {
    const char *path = s->run->options->times;
    if (path == NULL || (s->times = fopen(path, "w")) != NULL)
        return true;
    return rt_fail(e, EXIT_IO, "%.300s: %s", path, strerror(errno));
}

static bool close_times(Session *s, RtError *e) {
    if (s->times == NULL || fclose(s->times) == 0)
        return true;
    return rt_fail(e, EXIT_IO, "%.300s: %s", s->run->options->times,
                   strerror(errno));
}

static bool after_step(Session *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    bool end = s->at.step == s->at.steps;
    bool epoch_end = end || s->at.step % s->at.epoch_steps == 0;
    bool saves = end || rt_time_due(t->checkpoint_every, &s->at);
    bool evaluates = end || rt_time_due(t->eval_every, &s->at);
    bool waits = epoch_end || saves || evaluates;
    if (!log_steps(s, e) || (!epoch_end && !show_progress(s, e)) ||
        !tell_rows(s, waits, 0, e) || (epoch_end && !end_epoch(s, e)))
        return false;
    return (!saves || save(s, end, e)) && (!evaluates || evaluate(s, e));
}

// The step at which --steps ends a run, or its last.
static int64_t last_step(const Session *s) {
    int64_t most = s->run->options->steps, left = s->at.steps - s->at.step;
    return most > 0 && most < left ? s->at.step + most : s->at.steps;
}

static bool train(Session *s, RtError *e) {
    int64_t last = last_step(s);
    trace_plan(s);
    begin_row(s);
    s->shown = s->since;
    s->logged = rt_metrics_read(s->plan, s->device);
    if (rt_time_due(s->run->trainer->eval_every, &s->at) ||
        s->at.step == s->at.steps)
        if (!evaluate(s, e))
            return false;
    while (s->at.step < last && rt_signals_caught() == 0 && !s->test.stops)
        if (!trace_step(s, e) || !take_timed_step(s, e) || !after_step(s, e))
            return false;
    if (s->run->trace != NULL && !s->traced && !trace_end(s, e))
        return false;
    if (!tell_rows(s, true, 0, e))
        return false;
    bool early = last < s->at.steps || rt_signals_caught() != 0;
    if ((early || s->test.stops) && !save(s, true, e))
        return false;
    spend(s);
    return true;
}

// The first batch is as good as any other.
static bool tune(Session *s, RtError *e) {
    const RtStep *step = rt_step_find(s->plan, RT_TRAIN, 0);
    const char *said = "";
    RtFed fed;
    if (!rt_feeder_take(&s->train, RT_TRAIN, 0, &fed, e) ||
        !s->device->tune(s->device, step, &said, e))
        return false;
    fputs(said, stdout);
    return (fflush(stdout) == 0 && !ferror(stdout)) ||
           rt_fail(e, EXIT_IO, "standard output: %s", strerror(errno));
}

static void say_hello(const Session *s) {
    const RtRun *run = s->run;
    char times[24] = "";
    if (run->trainer->accumulate > 1)
        snprintf(times, sizeof times, "%d x ", run->trainer->accumulate);
    rt_report_say(s->report, "%s on %s: %s", run->trainer->model,
                  s->device->name, s->device->describe(s->device));
    rt_report_say(s->report,
                  "%lld training and %lld test samples; %lld steps of %s%d in "
                  "an epoch, %lld in all",
                  (long long)run->data->train.count,
                  (long long)run->data->test.count,
                  (long long)s->at.epoch_steps, times, run->trainer->batch,
                  (long long)s->at.steps);
    if (*run->data_is != '\0')
        rt_report_say(s->report, "%s", run->data_is);
}

static void say_enough(const Session *s) {
    RtStop stop = s->run->trainer->stop;
    rt_report_say(s->report,
                  "stopped at step %lld of %lld: %s is %.6g, at %s "
                  "%.6g",
                  (long long)s->at.step, (long long)s->at.steps, stop.metric,
                  metric_of(&s->test, stop.metric),
                  stop.above ? "least" : "most", stop.value);
}

static void say_goodbye(Session *s) {
    const RtOptions *o = s->run->options;
    bool evaluates = o->eval_only;
    if (o->tune)
        return;
    if (o->init_only) {
        if (!o->quiet)
            rt_report_say(s->report, "saved in %s", s->shelf.folder);
        return;
    }
    bool early = s->at.step < s->at.steps && !s->test.stops;
    if (rt_signals_caught() != 0 || (early && !evaluates)) {
        if (evaluates || (rt_signals_caught() == 0 && o->quiet))
            return;
        rt_report_say(s->report,
                      "stopped at step %lld of %lld; --resume goes on from "
                      "there",
                      (long long)s->at.step, (long long)s->at.steps);
        return;
    }
    if (s->test.stops && !o->quiet)
        say_enough(s);
    rt_report_result(s->report, &s->test);
    if (evaluates)
        return;
    s->budget.total = rt_seconds() - s->run->began;
    s->budget.loading = rt_loader_busy(s->train.loader);
    s->budget.loaders = s->run->loaders;
    s->budget.step = s->at.step;
    rt_report_budget(s->report, &s->budget);
}

// States first, since a checkpoint says where the loader starts; everything
// that takes memory is done before the first step.
static bool prepare(Session *s, RtError *e) {
    const RtRun *run = s->run;
    const RtOptions *o = run->options;
    bool loads = o->resume || o->eval_only;
    if (!rt_progress_plan(run->trainer, o, run->data, &s->at, e))
        return false;
    s->epoch_batches =
        rt_epoch_batches(run->trainer, &s->at, run->data->train.count);
    s->checkpoint =
        rt_checkpoint_new(run->trainer, s->plan, s->device, run->files, e);
    if (s->checkpoint == NULL)
        return false;
    rt_states_start(s->plan, s->device, &s->at);
    if (!(loads ? load(s, e) : begin(s, e)))
        return false;
    if (loads)
        rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    s->device->sync(s->device);
    if ((!o->eval_only && !open_train(s, e)) || !open_eval(s, e))
        return false;
    int64_t from = o->eval_only ? INT64_MAX : loads ? s->at.step : -1;
    s->report = rt_report_open(o, from, e);
    return s->report != NULL;
}

static bool work(Session *s, RtError *e) {
    if (!s->run->options->quiet)
        say_hello(s);
    if (!s->run->options->eval_only)
        rt_shelf_sweep(&s->shelf);
    rt_signals_catch();
    RtTimes ignored;
    s->device->times(s->device, &ignored);
    s->budget.start = rt_seconds() - s->run->began;
    const RtOptions *o = s->run->options;
    bool good = o->tune        ? tune(s, e)
                : o->init_only ? save(s, true, e)
                : o->eval_only ? evaluate(s, e)
                               : train(s, e);
    if (good)
        say_goodbye(s);
    return good;
}

bool rt_run(const RtRun *run, int *caught, RtError *e) {
    const RtTrainer *t = run->trainer;
    Session s = {
        .run = run,
        .plan = run->plan,
        .device = run->device,
        .shelf = {.folder = run->folder,
                  .files = run->files,
                  .keep = t->checkpoint_keep > 1 ? t->checkpoint_keep : 1,
                  .from = -1},
        .saved = -1,
    };
    bool good = open_times(&s, e) && prepare(&s, e) && work(&s, e);
    if (!good && e->status == EXIT_DIVERGED && !run->options->eval_only)
        tell_blame(&s);
    *caught = rt_signals_caught();
    if (s.report != NULL && !rt_report_close(s.report) && good)
        good = rt_fail(e, EXIT_IO, "the results are not complete");
    if (!close_times(&s, e))
        good = false;
    rt_feeder_close(&s.train);
    rt_feeder_close(&s.eval);
    rt_checkpoint_free(s.checkpoint);
    return good;
}
