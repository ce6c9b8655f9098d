// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predict: runs the model on inputs without labels, with the step that computes
// an evaluation up to the model's output, so with its bits.
//
// Ranks take batches in turn and send their outputs to rank 0, which writes all
// of them in order.  A rank that has an error tells the others when they agree
// the next time, and all end.
#define _POSIX_C_SOURCE 200809L

#include "runtime/session/predictions.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    RtSession *s;
    const RtStep *step;
    float *output[RT_MAX_ARRAYS];  // of a batch
    int64_t done;                  // samples
    RtPredictions *to;             // NULL: rank 0 writes
    char *columns; // of the weights' table, one in a line; NULL: unknown
    int signal;    // which ended the wait for a batch; 0: none
    bool ended;    // all ranks know that one has no more batches
} Prediction;

// ---- weights ----

// Standard output may have the predictions.
static void print_weights(const RtSession *s, const char *path, bool whole) {
    const RtProgress *p = &s->at;
    if (s->run->options->quiet)
        return;
    if (whole)
        fprintf(stderr, "weights of %s, step %lld of %lld, epoch %.2f\n", path,
                (long long)p->step, (long long)p->steps,
                (double)p->step / (double)p->epoch_steps);
    else
        fprintf(stderr, "weights of %s: %.*s\n", path,
                (int)strcspn(s->loaded, "\n"), s->loaded);
}

bool rt_weights_load(RtSession *s, char **path, RtError *e) {
    const RtRun *run = s->run;
    const char *given = run->options->weights;
    bool whole;
    *path = rt_weights_path(given == NULL ? run->folder : given, e);
    if (*path == NULL)
        return false;
    const RtWeightsOptions how = {
        .map = run->options->map,
        .advice = "build with the --set of its run, which sinter runs lists, "
                  "or name another run by --weights"};
    if (!rt_checkpoint_load_any(s->checkpoint, *path, &how, &s->at, &whole,
                                s->loaded, e))
        return false;
    print_weights(s, *path, whole);
    rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    rt_step_run(s->plan, s->device, RT_PREPARE, 0);
    return true;
}

// ---- ranks ----

// Ends all ranks if one has an error, and adopts their signal.  good: this one
// has none.  count: a number of each rank, 0 for others before; or NULL.  True
// if a signal has ended the wait for a batch.
static bool ranks_agree(Prediction *p, bool good, float *count, RtError *e) {
    RtWorld *w = p->s->run->world;
    float none[RT_MAX_RANKS] = {0};
    int status, size = rt_world_size(w);
    if (p->ended)
        return good;
    if (w == NULL) {
        p->ended = !good;
        return good || p->signal != 0;
    }
    if (!good)
        rt_world_fail(w, e->status, p->signal);
    rt_world_sum(w, &(RtBuffer){.memory = count != NULL ? count : none},
                 (size_t)size);
    rt_world_agree(w);
    int failed = rt_world_failed(w, &status);
    p->ended = failed >= 0;
    if (!p->ended || (rt_signals_caught() != 0 && (good || p->signal != 0)))
        return true;
    return good &&
           rt_fail(e, status, "rank %d predicts no more, so rank %d ends",
                   failed, rt_world_rank(w));
}

// All ranks take the weights of rank 0, and its table's columns.
static bool weights_share(Prediction *p, RtError *e) {
    RtSession *s = p->s;
    RtWorld *w = s->run->world;
    const char *own = rt_checkpoint_columns(s->checkpoint);
    size_t bytes = own != NULL ? strlen(own) + 1 : 0;
    if (w == NULL)
        return true;
    for (int i = 0; i < s->plan->num_states; i++)
        rt_world_broadcast(w, 0,
                           &(RtBuffer){.device = s->device,
                                       .offset = s->plan->state[i].offset},
                           rt_state_bytes(&s->plan->state[i]));
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &bytes}, sizeof bytes);
    p->columns = bytes > 0 ? calloc(bytes, 1) : NULL;
    if (own != NULL && p->columns != NULL)
        memcpy(p->columns, own, bytes);
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = p->columns}, bytes);
    rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    rt_step_run(s->plan, s->device, RT_PREPARE, 0);
    return bytes == 0 || p->columns != NULL ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

// Refuses other inputs than those of rank 0.
static bool inputs_compare(const Prediction *p, const RtData *d, RtError *e) {
    RtWorld *w = p->s->run->world;
    struct {
        int64_t count;
        uint64_t hash;
    } own = {d->test.count, d->hash}, first = own;
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &first}, sizeof first);
    return (own.count == first.count && own.hash == first.hash) ||
           rt_fail(e, EXIT_DATA, "rank %d reads other inputs than rank 0",
                   rt_world_rank(w));
}

// Rank 0 takes the outputs of a rank's batch.
static void outputs_share(const Prediction *p, int from) {
    RtWorld *w = p->s->run->world;
    bool holds = p->to != NULL || rt_world_rank(w) == from;
    for (int i = 0; from > 0 && i < rt_step_num_outputs(p->step); i++)
        rt_world_broadcast(w, from,
                           &(RtBuffer){.memory = holds ? p->output[i] : NULL},
                           rt_input_bytes(rt_step_output(p->step, i)));
}

static int count_unread(const RtData *d, int64_t first, int64_t count) {
    int unread = 0;
    for (int64_t i = 0; i < count; i++)
        unread += rt_inputs_error(d, first + i) != NULL;
    return unread;
}

// Rank 0 takes the errors of so many samples of a rank's batch.
static bool errors_share(const Prediction *p, int from, int unread,
                         RtError *e) {
    struct {
        int64_t sample;
        char text[RT_MESSAGE_BYTES];
    } error;
    const RtData *d = p->s->run->data;
    RtWorld *w = p->s->run->world;
    bool good = true;
    int64_t next = p->done;
    for (int i = 0; from > 0 && i < unread; i++) {
        if (rt_world_rank(w) == from) {
            while (rt_inputs_error(d, next) == NULL)
                next++;
            error.sample = next;
            snprintf(error.text, sizeof error.text, "%s",
                     rt_inputs_error(d, next++));
        }
        rt_world_broadcast(w, from, &(RtBuffer){.memory = &error},
                           sizeof error);
        if (p->to != NULL && good)
            good = rt_inputs_set_error(d, error.sample, error.text, e);
    }
    return good;
}

// ---- batches ----

static bool batch_predict(Prediction *p, RtError *e) {
    RtSession *s = p->s;
    RtSubmitted done;
    if (!rt_feeder_submit(&s->eval, RT_PREDICT, 0, false, &done, e)) {
        bool stalled = rt_loader_stalled(s->eval.loader);
        p->signal = stalled ? rt_signals_pending() : 0;
        if (stalled && p->signal == 0)
            rt_leave(rt_print_error(e));
        return false;
    }
    rt_step_run(s->plan, s->device, RT_PREDICT, 0);
    for (int i = 0; i < rt_step_num_outputs(p->step); i++) {
        const RtInput *out = rt_step_output(p->step, i);
        s->device->read(s->device, p->output[i], out->offset,
                        rt_input_bytes(out));
    }
    return true;
}

// Predicts for the next batch of each rank.  Rank 0 takes part to the end, also
// if it cannot write.
static bool round_predict(Prediction *p, int64_t count, RtError *e) {
    const RtRun *run = p->s->run;
    int ranks = rt_world_size(run->world), rank = rt_world_rank(run->world);
    int64_t each = run->trainer->batch, own = p->done + rank * each;
    int64_t left = count - own < each ? count - own : each;
    float unread[RT_MAX_RANKS] = {0};
    bool good = left <= 0 || batch_predict(p, e);
    if (good)
        unread[rank] = (float)count_unread(run->data, own, left);
    good = ranks_agree(p, good, unread, e);
    for (int i = 0; !p->ended && i < ranks && p->done < count; i++) {
        left = count - p->done < each ? count - p->done : each;
        outputs_share(p, i);
        good = errors_share(p, i, (int)unread[i], e) && good;
        if (p->to != NULL && good)
            good = rt_predictions_add(p->to, run->data, p->output, p->done,
                                      left, e);
        p->done += left;
    }
    return good;
}

// Predicts for all samples of the run's data.
static bool data_predict(Prediction *p, RtError *e) {
    RtSession *s = p->s;
    int64_t count = s->run->data->test.count;
    if (!rt_session_open_eval(s, e))
        return false;
    bool good = true;
    for (p->done = 0; good && p->done < count && rt_signals_caught() == 0;)
        good = round_predict(p, count, e);
    s->device->sync(s->device);
    if (!rt_feeder_close(&s->eval))
        rt_leave(good ? EXIT_IO : rt_print_error(e));
    return good;
}

static bool paths_predict(Prediction *p, const RtNames *paths, RtError *e) {
    RtSession *s = p->s;
    RtRun run = *s->run;
    RtData data;
    const char *columns =
        p->columns != NULL ? p->columns : rt_checkpoint_columns(s->checkpoint);
    bool opened = rt_inputs_open(&data, run.trainer, run.options, columns,
                                 paths, run.files, e);
    bool good = ranks_agree(p, opened, NULL, e);
    const RtRun *outer = s->run;
    if (opened && !p->ended) {
        run.data = &data;
        rt_decode_memory_set_device(data.decode_memory, s->device);
        s->run = &run;
        good = inputs_compare(p, &data, e) &&
               rt_session_check_short_batch(&run, false, e) &&
               (p->to == NULL ||
                rt_predictions_begin(p->to, data.test.count, e)) &&
               data_predict(p, e);
        s->run = outer;
    }
    if (opened)
        rt_data_close(&data);
    return good;
}

// ---- standard input ----

static bool more_waits(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

// Reads a line; 0 at the end.  Bytes are read one by one, so that poll knows of
// all that are left.
static ssize_t line_read(char *to, size_t room) {
    size_t length = 0;
    ssize_t some;
    char c = '\n';
    while ((some = read(STDIN_FILENO, &c, 1)) == 1 && c != '\n')
        if (length + 1 < room)
            to[length++] = c;
    to[length] = '\0';
    return some < 0 ? -1 : some == 1 || length > 0;
}

// All lines that wait, at least one and at most `most`. *ends: no more come.
static bool lines_read(RtNames *paths, int64_t most, bool *ends, RtError *e) {
    enum { PATH_BYTES = 4096 };
    char line[PATH_BYTES];
    bool good = true;
    ssize_t read;
    do {
        read = line_read(line, sizeof line);
        if (read > 0 && *line != '\0')
            good = rt_names_add(paths, rt_path("%s", line), e);
    } while (good && read > 0 && paths->count < most &&
             (paths->count == 0 || more_waits()));
    *ends = read <= 0;
    if (read < 0 && rt_signals_caught() == 0)
        good = rt_fail(e, EXIT_IO, "standard input: %s", strerror(errno));
    return good;
}

static bool lines_split(RtNames *paths, char *text, RtError *e) {
    bool good = true;
    for (char *at = text, *end; good && (end = strchr(at, '\n')) != NULL;
         at = end + 1) {
        *end = '\0';
        good = rt_names_add(paths, rt_path("%s", at), e);
    }
    return good;
}

// All ranks take the lines of rank 0.
static bool lines_share(const Prediction *p, RtNames *paths, bool *ends,
                        RtError *e) {
    RtWorld *w = p->s->run->world;
    bool reads = rt_world_rank(w) == 0;
    if (w == NULL)
        return true;
    char *text = reads ? rt_names_text(paths) : NULL;
    struct {
        size_t bytes;
        int64_t ends;
    } all = {text != NULL ? strlen(text) + 1 : 0, *ends};
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = &all}, sizeof all);
    *ends = all.ends != 0;
    text = reads ? text : calloc(all.bytes + 1, 1);
    rt_world_broadcast(w, 0, &(RtBuffer){.memory = text}, all.bytes);
    bool good = text != NULL ? reads || lines_split(paths, text, e)
                             : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(text);
    return good;
}

// Predicts for lines as they come: for all that wait, at most a batch of each
// rank.
static bool lines_predict(Prediction *p, RtError *e) {
    const RtRun *run = p->s->run;
    int64_t most = run->trainer->batch * rt_world_size(run->world);
    bool good = true, ends = false;
    while (good && !ends && rt_signals_caught() == 0) {
        RtNames paths = {0};
        good =
            rt_world_rank(run->world) > 0 || lines_read(&paths, most, &ends, e);
        good = ranks_agree(p, good, NULL, e);
        if (good && !p->ended)
            good = lines_share(p, &paths, &ends, e);
        if (good && !p->ended && paths.count > 0)
            good = paths_predict(p, &paths, e) &&
                   (p->to == NULL || rt_predictions_flush(p->to, e));
        rt_names_free(&paths);
    }
    return good;
}

// ---- the run ----

// The paths of the command line, which must exist; an image that does not has an
// error of its own.
static bool paths_read(const RtRun *run, RtNames *to, RtError *e) {
    OptionReader r = {.table = rt_options,
                      .word = (char **)run->word,
                      .count = run->num_words};
    const char *path;
    while ((path = rt_options_path(&r)) != NULL) {
        bool must_exist = strcmp(path, "-") != 0 &&
                          strncmp(path, "synthetic", 9) != 0 &&
                          rt_names_suffix(path, rt_image_suffix) == NULL;
        if (must_exist && access(path, R_OK) != 0)
            return rt_fail_open(e, path);
        if (!rt_names_add(to, rt_path("%s", path), e))
            return false;
    }
    return true;
}

static bool predict(Prediction *p, RtError *e) {
    RtNames paths = {0};
    bool good = paths_read(p->s->run, &paths, e);
    if (good && paths.count == 1 && strcmp(paths.name[0], "-") == 0)
        good = lines_predict(p, e);
    else
        good = good && paths_predict(p, &paths, e);
    rt_names_free(&paths);
    return good;
}

static bool outputs_reserve(Prediction *p, RtError *e) {
    bool good = true;
    for (int i = 0; good && i < rt_step_num_outputs(p->step); i++) {
        p->output[i] = malloc(rt_input_bytes(rt_step_output(p->step, i)));
        good = p->output[i] != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    return good;
}

// Rank 0 loads the weights and opens the files of predictions.
static bool open_first(Prediction *p, RtError *e) {
    const RtRun *run = p->s->run;
    char *weights = NULL;
    bool good = rt_weights_load(p->s, &weights, e);
    free(weights);
    if (good)
        p->to = rt_predictions_open(run->options->out, p->step, run->trainer,
                                    p->s->checkpoint, run->options, e);
    return p->to != NULL;
}

bool rt_predict(const RtRun *run, int *caught, RtError *e) {
    RtSession s = {.run = run, .plan = run->plan, .device = run->device};
    RtProgress at = {.steps = 1, .epoch_steps = 1};
    Prediction p = {.s = &s, .step = rt_step_find(run->plan, RT_PREDICT, 0)};
    RtError ignored;
    s.at = at;
    s.checkpoint =
        rt_checkpoint_new(run->trainer, s.plan, s.device, run->files, e);
    bool good = s.checkpoint != NULL && outputs_reserve(&p, e) &&
                (rt_world_rank(run->world) > 0 || open_first(&p, e));
    rt_signals_catch();
    good = ranks_agree(&p, good, NULL, e);
    if (good && !p.ended)
        good = weights_share(&p, e) && predict(&p, e);
    if (p.to != NULL)
        good = rt_predictions_close(p.to, good, e) && good;
    // Samples that rank 0 could not read are an error of its own.
    ranks_agree(&p, good, NULL, good ? &ignored : e);
    *caught = rt_signals_caught();
    rt_checkpoint_free(s.checkpoint);
    for (int i = 0; i < RT_MAX_ARRAYS; i++)
        free(p.output[i]);
    free(p.columns);
    return good;
}
