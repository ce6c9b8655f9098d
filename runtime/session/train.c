// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Train: the loop of a run.  Steps are numbered from 0 over all epochs, and all
// that depends on the position depends on that number alone, so a resumed run
// takes the same steps as an uninterrupted one.
//
// After a step follow, if due: the row of the epoch, a checkpoint, an
// evaluation.  The checkpoint is first so that no later failure loses it; a run
// that resumes from it repeats the evaluation.

#include "runtime/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --times waits for each step.
static bool take_timed_step(RtSession *s, RtError *e) {
    double since = rt_seconds();
    rt_nvtx_push(s->run->nvtx, "step %lld", (long long)s->at.step + 1);
    bool good = rt_session_verifies(s) ? rt_session_verify(s, e)
                                       : rt_session_step(s, e);
    rt_nvtx_pop(s->run->nvtx);
    if (!good)
        return false;
    if (s->times == NULL)
        return true;
    s->device->sync(s->device);
    if (fprintf(s->times, "%.6f\n", (rt_seconds() - since) * 1e3) < 0)
        s->times_lost = errno;
    return true;
}

static bool open_times(RtSession *s, RtError *e) {
    const char *path = s->run->options->times;
    if (path == NULL || (s->times = rt_rows_open(path)) != NULL)
        return true;
    return rt_fail(e, EXIT_IO, "%s: %s", rt_rows_name(path),
                   rt_output_reason(errno));
}

static bool close_times(RtSession *s, RtError *e) {
    if (s->times != NULL && fclose(s->times) != 0)
        s->times_lost = errno;
    return s->times_lost == 0 ||
           rt_fail(e, EXIT_IO, "%s: %s", rt_rows_name(s->run->options->times),
                   rt_output_reason(s->times_lost));
}

// Without a checkpoint clause, a killed run loses at most this time.
static bool is_long_unsaved(const RtSession *s) {
    const double most = 300;
    return s->run->trainer->checkpoint_every.count <= 0 && !s->train.partly &&
           rt_seconds() - s->saved_at > most;
}

// All ranks do what rank 0 wanted when the step began.
static bool saves_early(const RtSession *s) {
    const RtWorld *w = s->run->world;
    return w != NULL ? rt_world_saves(w) : is_long_unsaved(s);
}

static bool after_step(RtSession *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    bool end = s->at.step == s->at.steps;
    bool epoch_end = end || s->at.step % s->at.epoch_steps == 0;
    bool saves =
        end || rt_time_due(t->checkpoint_every, &s->at) || saves_early(s);
    bool evaluates = end || rt_time_due(t->eval_every, &s->at);
    bool waits = epoch_end || saves || evaluates;
    if (!rt_session_log_steps(s, e) ||
        (!epoch_end && !rt_session_show_progress(s, e)) ||
        !rt_session_poll_rows(s, waits, 0, e) ||
        (epoch_end && !rt_session_end_epoch(s, e)))
        return false;
    return (!saves || rt_session_save(s, end, e)) &&
           (!evaluates || rt_session_evaluate(s, e));
}

// The step at which --steps or the run ends.
static int64_t last_step(const RtSession *s) {
    int64_t most = s->run->options->steps, left = s->at.steps - s->at.step;
    return most > 0 && most < left ? s->at.step + most : s->at.steps;
}

static bool take_steps(RtSession *s, int64_t last, RtError *e) {
    while (s->at.step < last && rt_signals_caught() == 0 && !s->test.stops) {
        rt_world_want_save(s->run->world,
                           s->run->options->rank == 0 && is_long_unsaved(s));
        if (!rt_session_trace_step(s, e) || !take_timed_step(s, e) ||
            !after_step(s, e))
            return false;
    }
    return true;
}

// If loading fails, the steps so far are saved; not within an update, whose
// batches have changed states.
static void save_steps(RtSession *s) {
    RtError e;
    if (!s->train.partly && s->at.step > 0 && !rt_session_save(s, true, &e))
        rt_report_warn(s->report, "step %lld cannot be saved: %s",
                       (long long)s->at.step, e.text);
}

// Checks the metrics of all steps, including pending rows.
static bool has_diverged(RtSession *s, RtError *e) {
    RtRow row;
    return !rt_session_poll_rows(s, true, 0, e) ||
           !rt_session_measure(s, &row, e);
}

// Ends a run whose data failed.  True if a signal caused it; a diverged run
// ends as such.
static bool end_data_failed(RtSession *s, RtError *e) {
    RtError found;
    bool interrupted = rt_session_is_interrupted(s, &s->train);
    if (has_diverged(s, &found)) {
        if (!interrupted)
            rt_report_warn(s->report, "its data failed, too: %s", e->text);
        *e = found;
        return false;
    }
    save_steps(s);
    if (s->saved >= 0)
        rt_report_print(s->report,
                        "stopped at step %lld of %lld; --resume continues from "
                        "step %lld",
                        (long long)s->at.step, (long long)s->at.steps,
                        (long long)s->saved);
    else if (s->train.partly)
        rt_report_print(s->report,
                        "stopped within the update after step %lld of %lld: "
                        "nothing is saved",
                        (long long)s->at.step, (long long)s->at.steps);
    return interrupted;
}

// A failed run has a trace of its last steps.
static void end_trace(RtSession *s) {
    RtError e;
    if (s->run->trace != NULL && !s->traced && !rt_session_trace_end(s, &e))
        rt_report_warn(s->report, "%s", e.text);
}

static bool train(RtSession *s, RtError *e) {
    int64_t last = last_step(s);
    rt_session_begin_row(s);
    s->shown = s->began = s->saved_at = s->since;
    s->began_at = s->at.step;
    s->logged = rt_metrics_read(s->plan, s->device);
    if (rt_time_due(s->run->trainer->eval_every, &s->at) ||
        s->at.step == s->at.steps)
        if (!rt_session_evaluate(s, e))
            return false;
    if (!take_steps(s, last, e))
        return s->data_failed && end_data_failed(s, e);
    if (s->run->trace != NULL && !s->traced && !rt_session_trace_end(s, e))
        return false;
    if (!rt_session_poll_rows(s, true, 0, e))
        return false;
    bool early = last < s->at.steps || rt_signals_caught() != 0;
    if ((early || s->test.stops) && !rt_session_save(s, true, e))
        return false;
    rt_session_add_device_time(s);
    return true;
}

static bool train_traced(RtSession *s, RtError *e) {
    bool good = train(s, e);
    end_trace(s);
    return good;
}

// Tunes on the first batch of rank 0.
static bool tune(RtSession *s, RtError *e) {
    const RtStep *step = rt_step_find(s->plan, RT_TRAIN, 0);
    const char *message = "";
    RtSubmitted done;
    if (s->run->options->rank > 0)
        return true;
    if (!rt_feeder_submit(&s->train, RT_TRAIN, 0, false, &done, e) ||
        !s->device->tune(s->device, step, &message, e))
        return false;
    fputs(message, stdout);
    return (fflush(stdout) == 0 && !ferror(stdout)) ||
           rt_fail(e, EXIT_IO, "standard output: %s", strerror(errno));
}

// Prints a message line by line.
static void print_loaded(const RtSession *s) {
    const char *line = s->loaded;
    size_t length = strcspn(line, "\n");
    rt_report_print(s->report, "starting with %s: %.*s", s->run->options->init,
                    (int)length, line);
    for (line += length; *line != '\0'; line += length) {
        length = strcspn(++line, "\n");
        rt_report_print(s->report, "%.*s", (int)length, line);
    }
}

// The word for a sample.
static const char *unit_of(const RtTrainer *t) {
    return t->image.rank == 3 ? "images" : "samples";
}

// The number of the first classes that no label of a split is.
static int64_t count_absent(const RtSplit *s, int64_t classes) {
    int64_t absent = 0;
    bool *present = calloc((size_t)classes + 1, sizeof *present);
    for (int64_t i = 0; present != NULL && i < s->count; i++) {
        int32_t label;
        memcpy(&label, rt_column_at(&s->label, rt_split_sample(s, i)),
               sizeof label);
        if (label >= 0 && label < classes)
            present[label] = true;
    }
    for (int64_t i = 0; present != NULL && i < classes; i++)
        absent += !present[i];
    free(present);
    return absent;
}

// Names of classes come with data that have one for each image.
static void warn_of_classes(const RtSession *s, const char *eval) {
    const RtData *d = s->run->data;
    const RtColumn *label = &d->test.label;
    long long names = 0, model = s->run->trainer->classes;
    for (const char *at = d->classes; at != NULL && *at != '\0'; names++)
        at += strcspn(at, "\n"), at += *at == '\n';
    if (names > 0 && names < model)
        rt_report_warn(s->report,
                       "the data have %lld classes, but the model %lld: no "
                       "sample trains the others",
                       names, model);
    if (names == 0 || d->test.count == 0 || label->type != RT_FILE_I32 ||
        label->values != 1)
        return;
    long long absent = count_absent(&d->test, names);
    if (absent > 0)
        rt_report_warn(s->report,
                       "%lld of %lld classes have no %s sample: the evaluation "
                       "does not show them",
                       absent, names, eval);
}

static void print_data(const RtSession *s) {
    const RtRun *run = s->run;
    const RtData *d = run->data;
    const char *eval =
        rt_eval_set(run) == RT_ON_VALIDATION ? "validation" : "test";
    char times[24] = "";
    if (run->trainer->accumulate > 1)
        snprintf(times, sizeof times, "%d x ", run->trainer->accumulate);
    rt_report_print(
        s->report,
        "%lld training and %lld %s sample%s; %lld step%s of %s%d in "
        "an epoch, %lld in all",
        (long long)d->train.count, (long long)d->test.count, eval,
        d->test.count == 1 ? "" : "s", (long long)s->at.epoch_steps,
        s->at.epoch_steps == 1 ? "" : "s", times, run->trainer->batch,
        (long long)s->at.steps);
    if (*run->data_is != '\0')
        rt_report_print(s->report, "%s", run->data_is);
    if (*d->ignored != '\0')
        rt_report_print(s->report, "%s", d->ignored);
    warn_of_classes(s, eval);
}

static void print_memory(const RtSession *s) {
    const double mib = 1 << 20;
    const RtRun *run = s->run;
    int shards = s->device->shards;
    char lockstep[64] = "";
    RtRange absent[2];
    size_t arena = rt_lockstep_arena_bytes(s->plan, shards) -
                   rt_device_absent(s->device, 1, absent);
    if (shards > 1)
        snprintf(lockstep, sizeof lockstep, " of %d shards in lockstep",
                 shards);
    rt_report_print(
        s->report, "memory: %.1f MiB on %s, %.1f MiB of it the arena%s",
        (double)s->device->needed(s->device) / mib, s->device->name,
        (double)arena / mib, lockstep);
    if (run->data->decode_memory != NULL)
        rt_report_print(
            s->report,
            "loading takes at most %.1f MiB, %.1f MiB of it for "
            "decoded images",
            (double)rt_loading_bytes(run) / mib,
            (double)rt_decode_memory_bytes(run->data->decode_memory) / mib);
}

// A run that resumes from an earlier step replaces newer checkpoints.
static void print_superseded(const RtSession *s) {
    bool removes;
    int64_t newest = rt_retention_superseded(&s->retention, &removes);
    if (newest < 0)
        return;
    rt_report_print(
        s->report,
        "%s has newer checkpoints, up to step %lld: the first one of "
        "this run renames them to previous-*%s",
        s->retention.folder, (long long)newest,
        removes ? " and removes older ones of that name" : "");
}

static void print_ranks(const RtSession *s) {
    const RtWorld *w = s->run->world;
    bool fast = strcmp(s->run->options->reduce, "fast") == 0;
    if (w != NULL)
        rt_report_print(s->report, "%d ranks, connected by %s%s",
                        rt_world_size(w), rt_world_back_end(w),
                        fast ? ", which adds gradients in its own order: "
                               "weights depend on the number of ranks"
                             : "");
}

static void print_header(const RtSession *s) {
    const RtRun *run = s->run;
    rt_report_print(s->report, "%s on %s: %s", run->trainer->model,
                    s->device->name, s->device->describe(s->device));
    print_ranks(s);
    print_data(s);
    print_memory(s);
    if (*s->loaded != '\0')
        print_loaded(s);
    if (s->report_folder == NULL)
        return;
    rt_report_print(s->report, "run folder: %s", s->report_folder);
    print_superseded(s);
}

static void print_stalled(const RtSession *s) {
    const char *metric = s->run->trainer->stop.metric;
    double value;
    int64_t step = rt_session_best(s, metric, &value);
    if (step < 0) {
        rt_report_print(s->report, "stopped at step %lld of %lld: %s was never "
                                   "a number",
                        (long long)s->at.step, (long long)s->at.steps, metric);
        return;
    }
    rt_report_print(s->report,
                    "stopped at step %lld of %lld: %s has not improved since "
                    "step %lld, %.6g",
                    (long long)s->at.step, (long long)s->at.steps, metric,
                    (long long)step, value);
}

static void print_stop(const RtSession *s) {
    RtStop stop = s->run->trainer->stop;
    if (stop.patience.count > 0) {
        print_stalled(s);
        return;
    }
    rt_report_print(s->report,
                    "stopped at step %lld of %lld: %s is %.6g, at %s "
                    "%.6g",
                    (long long)s->at.step, (long long)s->at.steps, stop.metric,
                    rt_session_metric(s, &s->test, stop.metric),
                    stop.above ? "least" : "most", stop.value);
}

// Whether the last evaluation is done: a later signal does not interrupt the
// run.
static bool is_over(const RtSession *s) {
    bool evaluated = s->test.samples > 0 && s->test.step == s->at.step;
    bool last = s->at.step == s->at.steps || s->test.stops;
    return evaluated && (last || s->run->options->eval_only);
}

static void report_budget(RtSession *s) {
    RtBudget *b = &s->budget;
    b->total = rt_seconds() - s->run->began;
    b->loading += rt_loader_busy(s->train.loader);
    b->loaders = rt_loader_threads(s->train.loader);
    b->step = s->at.step;
    for (int i = 0; i < s->plan->num_steps; i++)
        rt_step_flops(s->plan, &s->plan->step[i], s->batches[i], b->flops);
    for (int i = 0; s->device->peak != NULL && i < RT_NUM_FLOATS; i++)
        b->peak[i] = s->device->peak(s->device, (RtType)i);
    rt_report_budget(s->report, b);
}

static void print_summary(RtSession *s) {
    const RtOptions *o = s->run->options;
    if (o->rank > 0 || o->tune || o->init_only || s->data_failed)
        return;
    if (!is_over(s) && o->eval_only)
        return;
    if (!is_over(s)) {
        if (rt_signals_caught() != 0 || !o->quiet)
            rt_report_print(s->report,
                            "stopped at step %lld of %lld; --resume continues "
                            "from there",
                            (long long)s->at.step, (long long)s->at.steps);
        if (o->time)
            report_budget(s);
        return;
    }
    if (s->test.stops && !o->quiet)
        print_stop(s);
    rt_report_result(s->report, &s->test);
    if (!o->eval_only)
        report_budget(s);
}

// Prints the best checkpoint of this run.
static void print_best(const RtSession *s) {
    const char *metric = s->run->trainer->best;
    double value;
    if (metric == NULL || s->run->options->quiet)
        return;
    int64_t step = rt_session_best(s, metric, &value);
    char *path = rt_retention_path(&s->best, step);
    bool has = path != NULL && rt_retention_has(&s->best, step);
    if (step >= 0)
        rt_report_print(s->report, "best %s, %.6g after step %lld: %s", metric,
                        value, (long long)step, has ? path : "not saved");
    free(path);
}

// Prints the last line: the newest checkpoint of this run.
static void print_weights(RtSession *s, bool good) {
    if (s->report_folder == NULL || s->saved < 0)
        return;
    print_best(s);
    const char *resumed = s->run->options->resume_path;
    char *path = rt_retention_path(&s->retention, s->saved);
    if (path != NULL && rt_retention_has(&s->retention, s->saved))
        rt_report_weights(s->report, path, good && is_over(s));
    else if (s->saved == s->retention.from && resumed != NULL)
        rt_report_weights(s->report, resumed, good && is_over(s));
    free(path);
}

static bool writes_checkpoints(const RtOptions *o) {
    return !o->eval_only && !o->tune && o->rank == 0;
}

// All ranks take the states and the position of rank 0.  Optimizer states that
// they own are there already.
static bool share_states(RtSession *s, RtError *e) {
    RtWorld *w = s->run->world;
    uint64_t data = s->run->data->hash, tuning = s->device->tuning;
    rt_state_set(s->plan, s->device, "run.shards", s->run->trainer->accumulate);
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &data}, sizeof data);
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &tuning}, sizeof tuning);
    if (tuning != s->device->tuning)
        rt_warn_own("this tuning is not that of rank 0: weights depend on the "
                    "shards of this rank; name one file for all with "
                    "--tuning=FILE");
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &s->at}, sizeof s->at);
    rt_world_broadcast(w, 0, &(RtBuffer){.device = s->device},
                       s->device->elsewhere != NULL
                           ? s->device->elsewhere->begin
                           : s->plan->partial);
    rt_world_step(w, s->at.step);
    return data == s->run->data->hash ||
           rt_fail(e, EXIT_DATA, "rank %d reads other data than rank 0",
                   rt_world_rank(w));
}

// Frozen parameters are meant to be those of another run.
static void warn_frozen(const RtRun *run) {
    const RtTrainer *t = run->trainer;
    int more = t->num_frozen_random - 1;
    if (more > 0)
        rt_warn("%s and %d more parameter%s are frozen with random initial "
                "values: --init=FILE starts with trained ones",
                t->frozen_random, more, more == 1 ? "" : "s");
    else if (more == 0)
        rt_warn("%s is frozen with random initial values: --init=FILE starts "
                "with trained ones",
                t->frozen_random);
}

// States come first, as the checkpoint decides where the loader starts.  All
// memory is allocated before the first step.
static bool prepare(RtSession *s, RtError *e) {
    const RtRun *run = s->run;
    const RtOptions *o = run->options;
    bool loads = o->resume || (o->eval_only && o->init == NULL);
    if (!rt_progress_plan(run->trainer, o, run->data, &s->at, e) ||
        !rt_session_check_short_batch(run, !loads, e))
        return false;
    if (!loads && !o->init_only && !o->tune && o->init == NULL)
        warn_frozen(run);
    s->epoch_batches =
        rt_epoch_batches(run->trainer, &s->at, run->data->train.count);
    s->checkpoint =
        rt_checkpoint_new(run->trainer, s->plan, s->device, run->files, e);
    if (s->checkpoint == NULL ||
        !rt_checkpoint_keep_names(s->checkpoint, run->data->classes,
                                  run->data->columns, e))
        return false;
    s->batches = calloc((size_t)s->plan->num_steps, sizeof *s->batches);
    if (s->batches == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_states_start(s->plan, s->device, &s->at);
    if (o->rank == 0 &&
        !(loads ? rt_session_load(s, e) : rt_session_begin(s, e)))
        return false;
    if (loads && o->rank == 0)
        rt_owners_end(run->owners);
    else if (loads)
        rt_owners_serve(run->owners);
    if (o->rank == 0 && loads)
        rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    if (!share_states(s, e))
        return false;
    s->device->sync(s->device);
    rt_lap(run->laps, RT_START_STATES);
    if ((!o->eval_only && !rt_session_open_train(s, e)) ||
        !rt_session_open_eval(s, e) || !rt_session_open_metrics(s, e) ||
        !rt_session_open_scores(s, e) || !rt_session_open_sums(s, e))
        return false;
    int64_t from = o->eval_only ? INT64_MAX : loads ? s->at.step : -1;
    if (writes_checkpoints(o))
        s->report_folder = run->folder;
    s->report = rt_report_open(o, s->report_folder, unit_of(run->trainer),
                               run->trainer, from, e);
    return s->report != NULL;
}

static bool work(RtSession *s, RtError *e) {
    const RtOptions *o = s->run->options;
    if (!o->quiet)
        print_header(s);
    if (s->report_folder != NULL) {
        rt_retention_remove_partial(&s->retention);
        rt_record_begin(s);
        rt_session_board(s);
    }
    // A trace to a pipe waits for its reader; a signal still ends that.
    if (!o->tune && !o->init_only && !o->eval_only &&
        !rt_session_trace_plan(s, e))
        return false;
    rt_signals_catch();
    RtTimes ignored;
    s->device->times(s->device, &ignored);
    rt_lap(s->run->laps, RT_START_LOADERS);
    s->budget.start = s->run->laps->last - s->run->began;
    memcpy(s->budget.start_part, s->run->laps->part,
           sizeof s->budget.start_part);
    bool good = o->tune        ? tune(s, e)
                : o->init_only ? rt_session_save(s, true, e)
                : o->eval_only ? rt_session_evaluate(s, e)
                               : train_traced(s, e);
    if (good)
        print_summary(s);
    return good;
}

// Ends the program at once if a loading thread hangs: at a normal exit a driver
// frees memory that the thread may write to.
static void leave_stalled(const RtSession *s, bool good, int caught,
                          const RtError *e) {
    if (!s->loader_stuck && rt_loader_stop(s->train.loader) &&
        rt_loader_stop(s->eval.loader))
        return;
    int status = good ? EXIT_GOOD : rt_print_error(e);
    rt_world_close(s->run->world, good);
    if (good && caught != 0)
        rt_signals_raise(caught);
    rt_leave(status);
}

// After a signal, a row that cannot be printed is no failure of the run.
static bool close_rows(RtSession *s, int caught, RtError *e) {
    bool good = s->report == NULL || rt_report_close(s->report) ||
                rt_fail(e, EXIT_IO, "the results are not complete");
    good = close_times(s, e) && good;
    if (!good && caught != 0)
        rt_print_error(e);
    return good || caught != 0;
}

// The final state in settings.json.
static const char *end_state(const RtSession *s, bool good, const RtError *e) {
    if (!good)
        return e->status == EXIT_DIVERGED ? "diverged" : "failed";
    if (s->run->options->init_only)
        return "initialized";
    return is_over(s) ? "finished" : "interrupted";
}

static void end_record(RtSession *s, bool good, const RtError *e) {
    if (s->report == NULL || s->report_folder == NULL)
        return;
    rt_record_end(s, end_state(s, good, e));
    print_weights(s, good);
}

// Another run may have taken the folder since the program began.
static bool lock_folder(RtSession *s, RtError *e) {
    const RtRun *run = s->run;
    return !writes_checkpoints(run->options) ||
           (rt_retention_lock(&s->retention, e) &&
            rt_folder_check_unused(run->folder, run->trainer, run->options, e));
}

bool rt_run(const RtRun *run, int *caught, RtError *e) {
    const RtTrainer *t = run->trainer;
    RtError ignored;
    RtSession s = {
        .run = run,
        .plan = run->plan,
        .device = run->device,
        .retention = {.folder = run->folder,
                      .files = run->files,
                      .keep = t->checkpoint_keep > 1 ? t->checkpoint_keep : 1,
                      .from = -1,
                      .lock = -1},
        .best = {.folder = run->folder,
                 .files = run->files,
                 .keep = t->best_keep,
                 .from = -1,
                 .by_metric = true,
                 .lock = -1},
        .saved = -1,
    };
    RtLockstep lockstep;
    rt_session_open_lockstep(&s, &lockstep);
    bool good = lock_folder(&s, e) && open_times(&s, e) && prepare(&s, e) &&
                work(&s, e);
    // The replay runs this process's shards only.
    if (!good && e->status == EXIT_DIVERGED && !run->options->eval_only &&
        run->world == NULL)
        rt_session_find_anomaly(&s);
    end_record(&s, good, e);
    *caught = rt_signals_caught();
    good = close_rows(&s, *caught, good ? e : &ignored) && good;
    leave_stalled(&s, good, *caught, e);
    rt_feeder_close(&s.train);
    rt_feeder_close(&s.eval);
    rt_checkpoint_free(s.checkpoint);
    free(s.batches);
    rt_session_close_metrics(&s);
    rt_session_close_scores(&s);
    rt_eval_sums_free(s.sums);
    rt_retention_unlock(&s.retention);
    rt_lockstep_close(&lockstep);
    return good;
}
