// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predict: runs the model on inputs without labels, with the step that computes
// an evaluation up to the model's output, so with its bits.
#define _POSIX_C_SOURCE 200809L

#include "runtime/session/predictions.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    RtSession *s;
    const RtStep *step;
    float *output[RT_MOST_ARRAYS]; // of a batch
    int64_t done;  // samples
    RtPredictions *to;
} Prediction;

// ---- weights ----

bool rt_weights_load(RtSession *s, char **path, RtError *e) {
    const RtRun *run = s->run;
    const char *given = run->options->weights;
    const char *folder = given == NULL ? run->folder : given;
    struct stat is;
    bool whole, is_folder = stat(folder, &is) == 0 && S_ISDIR(is.st_mode);
    *path = is_folder ? rt_retention_newest(folder) : rt_path("%s", folder);
    if (*path == NULL)
        return is_folder ? rt_fail(e, EXIT_DATA, "%s has no checkpoint", folder)
                         : rt_fail(e, EXIT_MEMORY, "out of memory");
    if (!rt_checkpoint_load_any(s->checkpoint, *path, run->options->map, &s->at,
                                &whole, s->loaded, e))
        return false;
    rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    rt_step_run(s->plan, s->device, RT_PREPARE, 0);
    return true;
}

// ---- batches ----

static bool batch_predict(Prediction *p, RtError *e) {
    RtSession *s = p->s;
    RtSubmitted done;
    if (!rt_feeder_submit(&s->eval, RT_PREDICT, 0, false, &done, e)) {
        if (rt_signals_caught() == 0 && rt_loader_stalled(s->eval.loader))
            rt_leave(rt_print_error(e));
        return rt_signals_caught() != 0;
    }
    rt_step_run(s->plan, s->device, RT_PREDICT, 0);
    for (int i = 0; i < rt_step_num_outputs(p->step); i++) {
        const RtInput *out = rt_step_output(p->step, i);
        s->device->read(s->device, p->output[i], out->offset,
                        rt_input_bytes(out));
    }
    return rt_predictions_add(p->to, s->run->data, p->output, p->done,
                              done.valid, e) &&
           (p->done += done.valid, true);
}

// Predicts for all samples of the run's data.
static bool data_predict(Prediction *p, RtError *e) {
    RtSession *s = p->s;
    int64_t count = s->run->data->test.count;
    if (!rt_session_open_eval(s, e))
        return false;
    bool good = true;
    for (p->done = 0; good && p->done < count && rt_signals_caught() == 0;)
        good = batch_predict(p, e);
    s->device->sync(s->device);
    if (!rt_feeder_close(&s->eval))
        rt_leave(good ? EXIT_IO : rt_print_error(e));
    return good;
}

static bool paths_predict(Prediction *p, const RtNames *paths, RtError *e) {
    RtSession *s = p->s;
    RtRun run = *s->run;
    RtData data;
    if (!rt_inputs_open(&data, run.trainer, run.options,
                        rt_checkpoint_columns(s->checkpoint), paths, run.files,
                        e))
        return false;
    const RtRun *outer = s->run;
    run.data = &data;
    rt_decode_memory_set_device(data.decode_memory, s->device);
    s->run = &run;
    bool good = rt_session_check_short_batch(&run, false, e) &&
                rt_predictions_begin(p->to, data.test.count, e) &&
                data_predict(p, e);
    s->run = outer;
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

// Predicts for lines as they come: for all that wait, at most a batch.
static bool lines_predict(Prediction *p, RtError *e) {
    enum { PATH_BYTES = 4096 };
    char line[PATH_BYTES];
    bool good = true;
    ssize_t read = 1;
    while (good && read > 0 && rt_signals_caught() == 0) {
        RtNames paths = {0};
        do {
            read = line_read(line, sizeof line);
            if (read > 0 && *line != '\0')
                good = rt_names_add(&paths, rt_path("%s", line), e);
        } while (good && read > 0 && paths.count < p->s->run->trainer->batch &&
                 (paths.count == 0 || more_waits()));
        if (read < 0 && rt_signals_caught() == 0)
            good = rt_fail(e, EXIT_IO, "standard input: %s", strerror(errno));
        if (good && paths.count > 0)
            good =
                paths_predict(p, &paths, e) && rt_predictions_flush(p->to, e);
        rt_names_free(&paths);
    }
    return good;
}

// ---- the run ----

// The paths of the command line, which must exist.
static bool paths_read(const RtRun *run, RtNames *to, RtError *e) {
    OptionReader r = {.table = rt_options,
                      .word = (char **)run->word,
                      .count = run->num_words};
    const char *path;
    while ((path = rt_options_path(&r)) != NULL) {
        bool is_file =
            strcmp(path, "-") != 0 && strncmp(path, "synthetic", 9) != 0;
        if (is_file && access(path, R_OK) != 0)
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

bool rt_predict(const RtRun *run, int *caught, RtError *e) {
    const RtOptions *o = run->options;
    RtSession s = {.run = run, .plan = run->plan, .device = run->device};
    RtProgress at = {.steps = 1, .epoch_steps = 1};
    Prediction p = {.s = &s, .step = rt_step_find(run->plan, RT_PREDICT, 0)};
    s.at = at;
    s.checkpoint =
        rt_checkpoint_new(run->trainer, s.plan, s.device, run->files, e);
    bool good = s.checkpoint != NULL && outputs_reserve(&p, e);
    char *weights = NULL;
    good = good && rt_weights_load(&s, &weights, e);
    free(weights);
    p.to = good ? rt_predictions_open(o->out, p.step, run->trainer,
                                      s.checkpoint, o, e)
                : NULL;
    if (p.to != NULL) {
        rt_signals_catch();
        good = predict(&p, e);
        good = rt_predictions_close(p.to, good, e) && good;
    }
    good = good && p.to != NULL;
    *caught = rt_signals_caught();
    rt_checkpoint_free(s.checkpoint);
    for (int i = 0; i < RT_MOST_ARRAYS; i++)
        free(p.output[i]);
    return good;
}
