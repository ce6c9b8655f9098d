// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resume: saves checkpoints, and loads them.
//
// A disk may be full, read-only or unmounted for a while.  A failed checkpoint
// is retried after a delay that doubles; the run ends if several tries over a
// minute have failed.
#define _POSIX_C_SOURCE 200809L

#include "runtime/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum {
    MIN_FAILURES = 3, // failures that end a run,
    MIN_SECONDS = 60, // if they span so long
    MAX_WAIT = 32,    // seconds
    LAST_TRIES = 4    // of the last checkpoint
};

static bool save_once(RtSession *s, RtError *e) {
    double since = rt_seconds();
    rt_nvtx_push(s->run->nvtx, "checkpoint");
    bool good = rt_retention_save(&s->retention, s->checkpoint, &s->at, e);
    rt_nvtx_pop(s->run->nvtx);
    double seconds = rt_seconds() - since;
    s->paused += seconds;
    s->budget.checkpoints += seconds;
    rt_session_trace_since(s, "checkpoint", since, s->at.step);
    return good;
}

// Another signal ends the waiting, and the run.
static bool save_last(RtSession *s, RtError *e) {
    struct timespec wait = {.tv_sec = 1};
    for (int tries = 1; !save_once(s, e); tries++, wait.tv_sec *= 2) {
        if (tries == LAST_TRIES || e->status != EXIT_IO)
            return false;
        rt_report_warn(s->report, "%s", e->text);
        rt_report_warn(s->report, "trying again in %d s", (int)wait.tv_sec);
        nanosleep(&wait, NULL);
    }
    return true;
}

// After a failure: whether training continues.  Sets the time of the next try.
static bool continue_unsaved(RtSession *s, const RtError *e) {
    double now = rt_seconds();
    if (s->failures++ == 0) {
        s->failing_since = now;
        s->wait = 1;
    }
    if (s->failures >= MIN_FAILURES && now - s->failing_since >= MIN_SECONDS)
        return false;
    s->try_at = now + s->wait;
    char left[60] = "no checkpoint of this run";
    if (s->saved >= 0 && rt_retention_has(&s->retention, s->saved))
        snprintf(left, sizeof left, "this run's checkpoint of step %lld",
                 (long long)s->saved);
    rt_report_warn(s->report, "%s", e->text);
    rt_report_warn(s->report,
                   "training continues, with the next try of a checkpoint in "
                   "%d s or later; %s has %s",
                   s->wait, s->retention.folder, left);
    s->wait = 2 * s->wait < MAX_WAIT ? 2 * s->wait : MAX_WAIT;
    return true;
}

static bool save(RtSession *s, bool last, RtError *e) {
    RtRow row;
    if (s->saved == s->at.step ||
        (!last && s->failures > 0 && rt_seconds() < s->try_at))
        return true;
    rt_session_average_early(s);
    if (!rt_session_measure(s, &row, e)) // waits for the steps
        return false;
    if (last ? save_last(s, e) : save_once(s, e)) {
        s->failures = 0;
        s->saved = s->at.step;
        s->saved_at = rt_seconds();
        return true;
    }
    return !last && e->status == EXIT_IO && continue_unsaved(s, e);
}

// Rank 0 decides whether it saves now, and the others serve until it is done.
bool rt_session_save(RtSession *s, bool last, RtError *e) {
    if (s->run->options->rank > 0) {
        rt_owners_serve(s->run->owners);
        return true;
    }
    bool good = save(s, last, e);
    rt_owners_end(s->run->owners);
    return good;
}

// Whether a run on the same files held out as many samples; otherwise the two
// hashes differ in that number alone.
static bool same_holdout(const RtSession *s, const RtProgress *found,
                         const char *path, RtError *e) {
    const RtHoldout *h = &s->run->data->train.holdout;
    int64_t here = h->part == RT_PART_ALL ? 0 : h->held;
    uint64_t files = s->run->data->hash ^ (uint64_t)here;
    uint64_t samples = found->data_hash ^ files;
    if (samples > INT32_MAX)
        return true;
    if (samples == 0)
        return rt_fail(e, EXIT_DATA,
                       "%s is of a run without held-out samples: continue it "
                       "without --validation",
                       path);
    return rt_fail(e, EXIT_DATA,
                   "%s is of a run with %llu held-out samples: continue it "
                   "with --validation=%llu",
                   path, (unsigned long long)samples,
                   (unsigned long long)samples);
}

// Checks that the options do not contradict the run.
static bool same_run(const RtSession *s, const RtProgress *planned,
                     const RtProgress *found, const char *path, RtError *e) {
    const RtOptions *o = s->run->options;
    bool held_out = s->run->data->train.holdout.part != RT_PART_ALL;
    // Evaluation only needs the same data if samples are held out: with another
    // holdout, they were trained on.
    if ((held_out || !o->eval_only) && found->data_hash != planned->data_hash &&
        !same_holdout(s, found, path, e))
        return false;
    if (o->eval_only)
        return true;
    if (found->data_hash == 0 && planned->data_hash != 0)
        return rt_fail(e, EXIT_DATA,
                       "%s is of a library, whose data are not known; --init "
                       "starts a new run with its weights",
                       path);
    if (found->epoch_steps != planned->epoch_steps)
        return rt_fail(e, EXIT_DATA,
                       "%s is of a run on other data (%lld steps in an epoch, "
                       "here %lld); --init starts a new run with its weights",
                       path, (long long)found->epoch_steps,
                       (long long)planned->epoch_steps);
    if (found->data_hash != planned->data_hash)
        return rt_fail(
            e, EXIT_DATA,
            "%s is of a run on other data with as many steps in an epoch (hash "
            "%016llx, here %016llx); --init starts a new run with its weights",
            path, (unsigned long long)found->data_hash,
            (unsigned long long)planned->data_hash);
    if (o->seed >= 0 && found->seed != planned->seed)
        return rt_fail(e, EXIT_DATA,
                       "%s is of a run with seed %lld, not %lld; --init starts "
                       "a new run with its weights",
                       path, (long long)found->seed, (long long)planned->seed);
    if (o->epochs > 0 && found->steps != planned->steps)
        return rt_fail(
            e, EXIT_DATA,
            "%s is of a run of %lld step%s, not %lld, and the schedule of a "
            "run is fixed; --init starts a new run with its weights",
            path, (long long)found->steps, found->steps == 1 ? "" : "s",
            (long long)planned->steps);
    return true;
}

static bool load_named(RtSession *s, const char *path, RtProgress *found,
                       RtError *e) {
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode))
        return rt_fail(e, EXIT_DATA,
                       "%s is a folder; --resume=%s without --out continues "
                       "its run",
                       path, path);
    return rt_checkpoint_read(s->checkpoint, path, found, e) == RT_GOOD;
}

// Schedules depend on the run's length, so a resumed run keeps it.
static void print_position(const RtSession *s, const RtProgress *found,
                           const char *path) {
    if (s->run->options->eval_only)
        rt_print_line("evaluating %s, step %lld of %lld", path,
                      (long long)found->step, (long long)found->steps);
    else
        rt_print_line("resuming from %s, step %lld of %lld", path,
                      (long long)found->step, (long long)found->steps);
    if (found->steps != s->at.steps)
        rt_print_line(
            "the run keeps its length; a new run would take %lld steps",
            (long long)s->at.steps);
}

bool rt_session_load(RtSession *s, RtError *e) {
    const char *path = s->run->options->resume_path;
    char *newest = NULL;
    RtProgress found;
    bool good;
    if (path != NULL)
        good = load_named(s, path, &found, e);
    else
        good =
            rt_retention_load(&s->retention, s->checkpoint, &found, &newest, e);
    path = path ? path : newest;
    good = good && same_run(s, &s->at, &found, path, e);
    if (good && !s->run->options->quiet)
        print_position(s, &found, path);
    if (good) {
        s->at = found;
        s->retention.from = s->best.from = s->saved = found.step;
    }
    free(newest);
    return good;
}
