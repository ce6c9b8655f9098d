// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instance: its calls.  Each runs between enter and leave, to which an error of
// the device jumps; the instance can then only be freed.

#define _POSIX_C_SOURCE 200809L

#include "runtime/instance/call.h"
#include "runtime/host/host.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- calls ----

_Thread_local RtError rt_last;

const char *rt_instance_error(void) {
    return rt_last.text;
}

void rt_instance_enter(RtInstanceCall *c, RtInstance *m) {
    *c = (RtInstanceCall){
        .m = m, .outer = rt_guard, .threads = rt_team_used()};
    rt_guard = &c->guard;
    if (m->device != NULL && m->device->threads > 0)
        rt_team_use(m->device->threads);
}

int rt_instance_leave(RtInstanceCall *c, bool good) {
    rt_guard = c->outer;
    rt_team_use(c->threads);
    return good ? EXIT_GOOD : rt_last.status;
}

int rt_instance_leave_broken(RtInstanceCall *c) {
    rt_last = c->guard.error;
    c->m->broken = true;
    if (c->m->device == NULL)
        c->m->device = c->guard.opening;
    return rt_instance_leave(c, false);
}

static void run(RtInstance *m, RtStepKind kind, int stage) {
    m->cached = false;
    rt_step_run(m->plan, m->device, kind, stage);
}

// ---- about ----

enum { ABOUT_BYTES = 16384 };

__attribute__((format(printf, 2, 3))) static void
about_add(char to[ABOUT_BYTES], const char *format, ...) {
    size_t used = strlen(to);
    va_list list;
    va_start(list, format);
    vsnprintf(to + used, ABOUT_BYTES - used, format, list);
    va_end(list);
}

static const char *const kinds[] = {[RT_VALUES] = "values",
                                    [RT_CLASSES] = "classes",
                                    [RT_LABELS] = "labels"};

static void about_shape(char to[ABOUT_BYTES], const char *name, RtType type,
                        int rank, const int64_t *dim) {
    about_add(to, ", \"%s\": {\"type\": \"%s\", \"shape\": [", name,
              rt_type_name(type));
    for (int i = 0; i < rank; i++)
        about_add(to, "%s%" PRId64, i > 0 ? ", " : "", dim[i]);
    about_add(to, "]}");
}

static bool is_input(const RtArray *a) {
    return strncmp(a->input, "input.", strlen("input.")) == 0;
}

// classes: of a label; 0: it has numbers.
static void about_member(char to[ABOUT_BYTES], const char *name,
                         const RtShape *s, int classes, int ignored,
                         bool first) {
    about_add(to, "%s\"%s\": {\"type\": \"%s\", \"shape\": [",
              first ? "" : ", ", name, rt_type_name(s->type));
    for (int i = 0; i < s->rank; i++)
        about_add(to, "%s%" PRId64, i > 0 ? ", " : "", s->dim[i]);
    about_add(to, "]");
    if (classes > 0)
        about_add(to, ", \"classes\": %d", classes);
    if (classes > 0 && ignored != 0)
        about_add(to, ", \"ignored\": %d", ignored);
    about_add(to, "}");
}

// Whether the label has classes: integers for an output of values have none.
static bool has_classes(const RtTrainer *t) {
    return t->label.rank >= 0 && t->label.type == RT_I32 &&
           t->output != RT_VALUES;
}

static void about_label(char to[ABOUT_BYTES], const RtTrainer *t, bool first) {
    about_member(to, "label", &t->label, has_classes(t) ? t->classes : 0,
                 t->ignored, first);
}

// The arrays that are inputs, or labels, after the first of them.
static void about_arrays(char to[ABOUT_BYTES], const RtTrainer *t, bool inputs,
                         bool first) {
    for (int i = 0; i < t->num_arrays; i++) {
        if (is_input(&t->array[i]) != inputs)
            continue;
        const RtArray *a = &t->array[i];
        about_member(to, a->name, &a->shape, a->classes, a->ignored, first);
        first = false;
    }
    about_add(to, "}");
}

static void about_outputs(char to[ABOUT_BYTES], const RtTrainer *t,
                          const RtStep *predict) {
    about_add(to, ", \"outputs\": {");
    for (int i = 0; i < rt_step_num_outputs(predict); i++) {
        const RtInput *out = rt_step_output(predict, i);
        bool named = t->num_output_names > 0;
        about_add(to,
                  "%s\"%s\": {\"type\": \"F32\", \"kind\": \"%s\", "
                  "\"shape\": [",
                  i > 0 ? ", " : "", named ? t->output_name[i].name : "output",
                  kinds[named ? t->output_name[i].kind : t->output]);
        for (int k = 1; k < out->rank; k++)
            about_add(to, "%s%" PRId64, k > 1 ? ", " : "", out->dim[k]);
        about_add(to, "]}");
    }
    about_add(to, "}");
}

// Inputs, labels and outputs of a model with several, in the order of the
// arguments of predict and train.
static void about_several(char to[ABOUT_BYTES], const RtTrainer *t,
                          const RtStep *predict) {
    about_add(to, ", \"inputs\": {");
    about_member(to, t->image_name != NULL ? t->image_name : "samples",
                 &t->image, 0, 0, true);
    about_arrays(to, t, true, false);
    about_add(to, ", \"labels\": {");
    if (t->label.rank >= 0)
        about_label(to, t, true);
    about_arrays(to, t, false, t->label.rank < 0);
    if (predict != NULL)
        about_outputs(to, t, predict);
}

const char *rt_instance_about(const RtTrainer *t) {
    static _Thread_local char to[ABOUT_BYTES];
    const RtStep *predict = rt_step_find(&t->plan[0], RT_PREDICT, 0);
    bool trains = rt_step_find(&t->plan[0], RT_TRAIN, 0) != NULL,
         generates = rt_step_find(&t->plan[0], RT_DECODE, 0) != NULL;
    snprintf(to, sizeof to, "{\"model\": \"%s\"", t->model);
    about_shape(to, "sample", t->image.type, t->image.rank, t->image.dim);
    if (t->label.rank >= 0)
        about_label(to, t, false);
    if (t->num_arrays > 0 || t->num_output_names > 0)
        about_several(to, t, predict);
    if (predict != NULL)
        about_shape(to, "output", RT_F32, predict->output.rank - 1,
                    predict->output.dim + 1);
    about_add(to,
              ", \"kind\": \"%s\", \"batch\": %d, \"update\": %d, "
              "\"whole\": %s, \"trains\": %s, \"generates\": %s}",
              kinds[t->output], t->batch, t->batch * t->accumulate,
              t->drop_last || t->whole_train != NULL ? "true" : "false",
              trains ? "true" : "false", generates ? "true" : "false");
    return to;
}

// ---- create and free ----

static bool open(RtInstance *m, const char *device, int threads) {
    RtOptions o = {.device = device != NULL ? device : "auto",
                   .threads = threads,
                   .resident = "auto",
                   .decode = "cpu",
                   .seed = -1};
    RtLaps laps = {.last = rt_seconds()};
    m->device = rt_device_open(m->trainer, &o, &m->plan, &laps, &rt_last);
    if (m->device == NULL)
        return false;
    m->device->predicts = true;
    if (rt_lockstep_needed(m->plan))
        m->device->shards = m->trainer->shards;
    size_t need = m->device->needed(m->device),
           have = m->device->available(m->device);
    if (need > have)
        return rt_fail(&rt_last, EXIT_MEMORY,
                       "it needs %zu bytes of memory on %s, but only %zu are "
                       "free",
                       need, m->device->name, have);
    m->device->reserve(m->device);
    if (m->device->shards > 0)
        rt_lockstep_open(&m->lockstep, m->plan, m->device, m->device->shards);
    m->checkpoint = rt_checkpoint_new(m->trainer, m->plan, m->device,
                                      &rt_system_files, &rt_last);
    return m->checkpoint != NULL;
}

static bool rooms_new(RtInstance *m) {
    size_t most = 1;
    for (int i = 0; i < m->plan->num_steps; i++)
        for (int k = 0; k < m->plan->step[i].num_inputs; k++) {
            size_t bytes = rt_input_bytes(&m->plan->step[i].input[k]);
            most = bytes > most ? bytes : most;
        }
    const RtStep *predict = rt_step_find(m->plan, RT_PREDICT, 0);
    if (predict != NULL) {
        size_t bytes = rt_input_bytes(&predict->output);
        m->output = malloc(bytes / rt_type_bytes(predict->output.type) *
                           sizeof *m->output);
    }
    for (int i = 0; predict != NULL && i < rt_step_num_outputs(predict); i++) {
        size_t bytes = rt_input_bytes(rt_step_output(predict, i));
        most = bytes > most ? bytes : most;
    }
    m->batch = malloc(most);
    return (m->batch != NULL && (predict == NULL || m->output != NULL)) ||
           rt_fail(&rt_last, EXIT_MEMORY, "out of memory");
}

// ---- weights of a run ----

// A parameter or a running statistic, which a new run takes over.
static bool is_kept(const RtState *s) {
    return s->kind == RT_PARAM || s->kind == RT_STATISTIC;
}

static size_t kept_bytes(const RtPlan *plan) {
    size_t bytes = 0;
    for (int i = 0; i < plan->num_states; i++)
        if (is_kept(&plan->state[i]))
            bytes += rt_state_bytes(&plan->state[i]);
    return bytes;
}

static const RtState *average_of(const RtPlan *plan, const RtState *s) {
    char name[RT_MAX_KEY];
    snprintf(name, sizeof name, "%s.average", s->name);
    return rt_state_find(plan, name);
}

// Weights for a new run: averages where there are some, as --init takes them.
// NULL: no memory.
static char *kept_read(RtInstance *m) {
    const RtPlan *plan = m->plan;
    char *kept = malloc(kept_bytes(plan) + 1), *to = kept;
    if (kept == NULL)
        return NULL;
    rt_instance_prepare(m); // averages early
    m->device->sync(m->device);
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i], *average;
        if (!is_kept(s))
            continue;
        average = average_of(plan, s);
        m->device->read(m->device, to, (average != NULL ? average : s)->offset,
                        rt_state_bytes(s));
        to += rt_state_bytes(s);
    }
    return kept;
}

static void kept_write(RtInstance *m, const char *from) {
    for (int i = 0; i < m->plan->num_states; i++) {
        const RtState *s = &m->plan->state[i];
        if (!is_kept(s))
            continue;
        m->device->write(m->device, s->offset, from, rt_state_bytes(s));
        from += rt_state_bytes(s);
    }
}

// The position at the start of a run.  epochs: 0: the recipe's length.
static bool run_plan(const RtTrainer *t, int64_t samples, double epochs,
                     int64_t seed, RtProgress *p) {
    RtTime length = epochs > 0 ? (RtTime){epochs, RT_EPOCHS} : t->length;
    int64_t update = (int64_t)t->batch * t->accumulate;
    *p = (RtProgress){.seed = seed >= 0 ? seed : t->seed};
    bool whole = t->drop_last || t->whole_train != NULL;
    p->epoch_steps = samples / update + (!whole && samples % update != 0);
    if (samples < 1 || p->epoch_steps < 1)
        return rt_fail(&rt_last, EXIT_DATA,
                       "%" PRId64 " samples do not make one update", samples);
    if (!(epochs >= 0))
        return rt_fail(&rt_last, EXIT_USAGE, "a run of %g epochs", epochs);
    double steps = ceil(rt_time_steps(length, p) - 1e-9);
    if (!(steps <= INT32_MAX))
        return rt_fail(&rt_last, EXIT_USAGE, "it has more than %d steps",
                       INT32_MAX);
    p->steps = steps < 1 ? 1 : (int64_t)steps;
    return true;
}

// All states at the start of a run: initial weights, or those that a load, a
// write or an update has left.
static bool begin(RtInstance *m, int64_t samples, double epochs, int64_t seed) {
    RtProgress p;
    if (!run_plan(m->trainer, samples, epochs, seed, &p))
        return false;
    char *kept = m->changed ? kept_read(m) : NULL;
    if (m->changed && kept == NULL)
        return rt_fail(&rt_last, EXIT_MEMORY, "out of memory");
    m->at = p;
    m->prepared = false;
    rt_states_clear(m->plan, m->device);
    rt_states_start(m->plan, m->device, &m->at);
    run(m, RT_INIT, 0);
    if (kept != NULL)
        kept_write(m, kept);
    free(kept);
    run(m, RT_DERIVE, 0);
    if (rt_time_averages(m->trainer, &m->at))
        run(m, RT_AVERAGE, 0);
    m->begun = m->begun || rt_step_find(m->plan, RT_COLLECT, 0) == NULL;
    return true;
}

static bool create(RtInstance *m, const char *device, int threads) {
    return open(m, device, threads) && rooms_new(m) &&
           begin(m, (int64_t)m->trainer->batch * m->trainer->accumulate, 0, -1);
}

static int try_create(RtInstance *m, const char *device, int threads) {
    CALL(m, create(m, device, threads));
}

RtInstance *rt_instance_create(const RtTrainer *t, const char *device,
                               int threads) {
    RtInstance *m = calloc(1, sizeof *m);
    if (m == NULL) {
        rt_fail(&rt_last, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    m->trainer = t;
    if (try_create(m, device, threads) == EXIT_GOOD)
        return m;
    RtError why = rt_last;
    rt_instance_free(m);
    rt_last = why;
    return NULL;
}

// A device that has failed is closed, too.
static int try_close(RtInstance *m) {
    m->broken = false;
    CALL(m, (m->device->close(m->device), true));
}

void rt_instance_free(RtInstance *m) {
    if (m == NULL)
        return;
    rt_checkpoint_free(m->checkpoint);
    if (m->free_texts != NULL)
        m->free_texts(m);
    if (m->device != NULL)
        try_close(m);
    rt_lockstep_close(&m->lockstep);
    free(m->unsearched);
    free(m->batch);
    free(m->output);
    free(m);
}

// ---- files ----

static bool load(RtInstance *m, const char *path) {
    const RtWeightsOptions how = {.advice = "build with the --set of its run"};
    char message[RT_LOADED_BYTES];
    bool whole;
    if (!rt_checkpoint_load_any(m->checkpoint, path, &how, &m->at, &whole,
                                message, &rt_last))
        return false;
    m->prepared = false;
    m->begun = m->changed = true;
    run(m, RT_DERIVE, 0);
    return true;
}

static int try_load(RtInstance *m, const char *path) {
    CALL(m, load(m, path));
}

// The path that is right after a chdir, too; symbolic links stay.
static char *absolute_path(const char *path) {
    char folder[PATH_MAX];
    return *path == '/' || getcwd(folder, sizeof folder) == NULL
               ? rt_path("%s", path)
               : rt_path("%s/%s", folder, path);
}

int rt_instance_load(RtInstance *m, const char *path) {
    char *file = rt_weights_path(path, &rt_last);
    if (file == NULL)
        return rt_last.status;
    int status = try_load(m, file);
    if (status == EXIT_GOOD) {
        free(m->unsearched);
        m->unsearched = absolute_path(file);
    }
    free(file);
    return status;
}

static bool trains(const RtInstance *m) {
    return rt_step_find(m->plan, RT_TRAIN, 0) != NULL ||
           rt_fail(&rt_last, EXIT_USAGE,
                   "it was built with --inference and cannot train");
}

static bool save(RtInstance *m, const char *path) {
    if (!trains(m))
        return false;
    rt_instance_prepare(m); // averages early
    return rt_checkpoint_write(m->checkpoint, path, &m->at, &rt_last);
}

int rt_instance_save(RtInstance *m, const char *path) {
    CALL(m, save(m, path));
}

// ---- batches ----

// The caller's arrays from some sample on: images, labels and, from ARRAYS on,
// the trainer's.
enum { ARRAYS = 2 };
typedef struct {
    const void *const *data;
    int64_t first;
    int valid;
    int32_t number; // of the update's batches
    size_t shift;   // of inputs, for a shard in lockstep
} Batch;

// Copies the valid rows of an input, and the first again for the others.
static void input_write(RtInstance *m, const RtInput *in, const char *from,
                        const Batch *b) {
    size_t bytes = rt_input_bytes(in), row = bytes / (size_t)in->dim[0];
    from += (size_t)b->first * row;
    if (b->valid < in->dim[0]) {
        memcpy(m->batch, from, (size_t)b->valid * row);
        for (int64_t i = b->valid; i < in->dim[0]; i++)
            memcpy(m->batch + (size_t)i * row, from, row);
        from = m->batch;
    }
    m->device->write(m->device, in->offset + b->shift, from, bytes);
}

// Random numbers depend on a sample's number: here its place in the epoch.
static void index_write(RtInstance *m, const RtInput *in, const Batch *b) {
    int32_t *index = (int32_t *)(void *)m->batch;
    int64_t before = m->at.step % m->at.epoch_steps * m->trainer->accumulate *
                     m->trainer->batch;
    for (int64_t i = 0; i < in->dim[0]; i++)
        index[i] = (int32_t)(before + b->first + (i < b->valid ? i : 0));
    m->device->write(m->device, in->offset + b->shift, index,
                     rt_input_bytes(in));
}

static const void *data_of(const RtInstance *m, const RtInput *in,
                           const Batch *b) {
    for (int i = 0; i < m->trainer->num_arrays; i++)
        if (strcmp(in->name, m->trainer->array[i].input) == 0)
            return b->data[ARRAYS + i];
    return b->data[strcmp(in->name, "label") == 0];
}

static bool batch_write(RtInstance *m, const RtStep *step, const Batch *b) {
    m->cached = false;
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        const void *from = data_of(m, in, b);
        if (strcmp(in->name, "valid") == 0)
            m->device->write(m->device, in->offset + b->shift,
                             &(int32_t){(int32_t)b->valid}, sizeof(int32_t));
        else if (strcmp(in->name, "shard") == 0)
            m->device->write(m->device, in->offset + b->shift, &b->number,
                             sizeof b->number);
        else if (strcmp(in->name, "index") == 0)
            index_write(m, in, b);
        else if (from == NULL)
            return rt_fail(&rt_last, EXIT_USAGE, "it needs %s",
                           strcmp(in->name, "label") == 0 ? "labels"
                                                          : in->name);
        else
            input_write(m, in, from, b);
    }
    return true;
}

static int valid_of(const RtInstance *m, int64_t left) {
    return left < m->trainer->batch ? (int)left : m->trainer->batch;
}

static bool whole_check(const RtInstance *m, int64_t count, const char *why) {
    return count >= 0 &&
           (why == NULL || count % m->trainer->batch == 0 ||
            rt_fail(&rt_last, EXIT_DATA,
                    "%" PRId64 " samples are not whole batches of %d, but %s, "
                    "needs them",
                    count, m->trainer->batch, why));
}

// ---- predict ----

void rt_instance_prepare(RtInstance *m) {
    if (m->prepared)
        return;
    if (m->at.step < rt_time_first(m->trainer->average_from, &m->at))
        run(m, RT_AVERAGE, 0);
    run(m, RT_PREPARE, 0);
    m->prepared = true;
}

// The output's numbers for the first samples of the batch.
static void output_read(RtInstance *m, const RtInput *out, int valid,
                        float *to) {
    size_t row = rt_type_bytes(out->type), numbers = (size_t)valid;
    for (int i = 1; i < out->rank; i++)
        numbers *= (size_t)out->dim[i];
    void *from = out->type == RT_F32 ? (void *)to : (void *)m->batch;
    m->device->read(m->device, from, out->offset, numbers * row);
    for (size_t i = 0; out->type != RT_F32 && i < numbers; i++)
        to[i] = (float)rt_number(from, out->type, (int64_t)i);
}

static size_t row_numbers(const RtInput *out) {
    size_t numbers = 1;
    for (int i = 1; i < out->rank; i++)
        numbers *= (size_t)out->dim[i];
    return numbers;
}

static bool predict(RtInstance *m, const void *const *data, int64_t count,
                    float *const *output) {
    const RtStep *step = rt_step_find(m->plan, RT_PREDICT, 0);
    if (step == NULL)
        return rt_fail(&rt_last, EXIT_USAGE, "this model has no prediction");
    if (!whole_check(m, count, m->trainer->whole_eval))
        return false;
    rt_instance_prepare(m);
    for (int64_t first = 0; first < count; first += m->trainer->batch) {
        Batch b = {data, first, valid_of(m, count - first), 0, 0};
        if (!batch_write(m, step, &b))
            return false;
        run(m, RT_PREDICT, 0);
        for (int i = 0; i < rt_step_num_outputs(step); i++) {
            const RtInput *out = rt_step_output(step, i);
            output_read(m, out, b.valid,
                        output[i] + (size_t)first * row_numbers(out));
        }
    }
    return true;
}

int rt_instance_predict_all(RtInstance *m, const void *const *data,
                            int64_t count, float *const *output) {
    CALL(m, predict(m, data, count, output));
}

int rt_instance_predict(RtInstance *m, const void *samples, int64_t count,
                        float *output) {
    return rt_instance_predict_all(m, (const void *[]){samples, NULL}, count,
                                   &output);
}

// ---- train ----

int rt_instance_begin(RtInstance *m, int64_t samples, double epochs,
                      int64_t seed) {
    CALL(m, trains(m) && begin(m, samples, epochs, seed));
}

static bool train_check(const RtInstance *m, int64_t count) {
    const RtTrainer *t = m->trainer;
    int64_t most = (int64_t)t->batch * t->accumulate;
    if (!trains(m) || !whole_check(m, count, t->whole_train))
        return false;
    if (!m->begun)
        return rt_fail(&rt_last, EXIT_USAGE,
                       "%s starts from statistics of its data: load a "
                       "checkpoint that a trainer wrote with --init-only",
                       t->model);
    if (m->at.step >= m->at.steps)
        return rt_fail(&rt_last, EXIT_USAGE,
                       "its run of %" PRId64 " steps is over: begin starts "
                       "another one with these weights",
                       m->at.steps);
    return (count >= 1 && count <= most) ||
           rt_fail(&rt_last, EXIT_DATA,
                   "an update takes 1 to %" PRId64 " samples, not %" PRId64,
                   most, count);
}

// Whether all labels are classes of the model: kernels do not check them.
static bool labels_check(const RtTrainer *t, const char *name,
                         const RtShape *shape, int classes, int ignored,
                         const int32_t *label, int64_t count) {
    int64_t each = 1;
    for (int i = 0; i < shape->rank; i++)
        each *= shape->dim[i];
    for (int64_t i = 0; label != NULL && i < count * each; i++)
        if ((label[i] < 0 || label[i] >= classes) && label[i] != ignored)
            return rt_fail(&rt_last, EXIT_DATA,
                           "sample %" PRId64 " has %s %" PRId32
                           ", but %s has %d classes, 0 to %d",
                           i / each, name, label[i], t->model, classes,
                           classes - 1);
    return true;
}

// Whether all numbers are finite, and weights of samples not negative.
static bool numbers_check(const char *name, const RtShape *shape, bool weighs,
                          const float *x, int64_t count) {
    int64_t each = 1;
    for (int i = 0; i < shape->rank; i++)
        each *= shape->dim[i];
    if (shape->type != RT_F32 || x == NULL)
        return true;
    for (int64_t i = 0; i < count * each; i++)
        if (!isfinite(x[i]) || (weighs && x[i] < 0))
            return rt_fail(
                &rt_last, EXIT_DATA, "%s: sample %" PRId64 " has %s%g, %s",
                name, i / each, weighs ? "the weight " : "", (double)x[i],
                weighs ? "and weights are from 0" : "which is not finite");
    return true;
}

// As a trainer checks files: targets may be NaN, for a loss that masks them.
static bool data_check(const RtTrainer *t, const void *const *data,
                       int64_t count) {
    bool good =
        numbers_check("samples", &t->image, false, data[0], count) &&
        (!has_classes(t) || labels_check(t, "label", &t->label, t->classes,
                                         t->ignored, data[1], count));
    for (int i = 0; good && i < t->num_arrays; i++) {
        const RtArray *a = &t->array[i];
        const void *x = data[ARRAYS + i];
        if (a->classes > 0)
            good = labels_check(t, a->input, &a->shape, a->classes, a->ignored,
                                x, count);
        else if (is_input(a) || a->weighs)
            good = numbers_check(a->input, &a->shape, a->weighs, x, count);
    }
    return good;
}

static bool train_batch(RtInstance *m, RtStepKind kind, int stage,
                        const Batch *b) {
    if (!batch_write(m, rt_step_find(m->plan, kind, stage), b))
        return false;
    run(m, kind, stage);
    return true;
}

// All batches of an update but the last only accumulate gradients.
static bool train_batches(RtInstance *m, const void *const *data, int64_t count,
                          int stage) {
    for (int64_t first = 0; first < count; first += m->trainer->batch) {
        bool ends = first + m->trainer->batch >= count;
        Batch b = {data, first, valid_of(m, count - first), 0, 0};
        if (!train_batch(m, ends ? RT_TRAIN : RT_ACCUMULATE, stage, &b))
            return false;
    }
    return true;
}

// The update behind the sums of all shards.
static void update(RtInstance *m, int stage) {
    m->cached = false;
    rt_shard_update(m->plan, m->device, stage, 0,
                    m->plan->num_optimizer_shards);
    if (m->plan->num_optimizer_shards > 0)
        run(m, RT_DERIVE, 0);
}

// Batches without samples have terms of 0.
static bool train_shards(RtInstance *m, const void *const *data, int64_t count,
                         int stage) {
    const RtTrainer *t = m->trainer;
    RtDevice *d = m->device;
    size_t terms = m->plan->partial_bytes / sizeof(float);
    for (int32_t i = 0; i < t->accumulate; i++) {
        int64_t first = (int64_t)i * t->batch;
        Batch b = {data, first, valid_of(m, count - first), i, 0};
        if (first >= count)
            d->sum(d, m->plan->partial, NULL, 0, terms);
        else if (!train_batch(m, RT_TRAIN, stage, &b))
            return false;
        rt_shard_sum(m->plan, d, t, i, t->accumulate, m->plan->partial, terms);
    }
    update(m, stage);
    return true;
}

// Batch i of each shard.
static bool train_round(RtInstance *m, const void *const *data, int64_t count,
                        const RtStep *step, int i) {
    const RtTrainer *t = m->trainer;
    RtLockstep *l = &m->lockstep;
    for (int k = 0; k < l->shards; k++) {
        int32_t number = k * (t->accumulate / t->shards) + i;
        int64_t first = (int64_t)number * t->batch;
        Batch b = {data, first, valid_of(m, count - first), number,
                   rt_lockstep_shift(m->plan, k)};
        l->empty[k] = first >= count;
        if (!l->empty[k] && !batch_write(m, step, &b))
            return false;
    }
    rt_lockstep_run(l, step);
    rt_lockstep_add_batch(l, t, i, m->plan->partial,
                          m->plan->partial_bytes / sizeof(float));
    return true;
}

static bool train_lockstep(RtInstance *m, const void *const *data,
                           int64_t count, int stage) {
    const RtTrainer *t = m->trainer;
    const RtStep *step = rt_step_find(m->plan, RT_TRAIN, stage);
    for (int i = 0; i < t->accumulate / t->shards; i++)
        if (!train_round(m, data, count, step, i))
            return false;
    rt_lockstep_add_shards(&m->lockstep, m->plan->partial,
                           m->plan->partial_bytes / sizeof(float));
    update(m, stage);
    return true;
}

// All batches of an update.
static bool train_update(RtInstance *m, const void *const *data, int64_t count,
                         int stage) {
    if (m->trainer->shards == 0)
        return train_batches(m, data, count, stage);
    return m->device->shards > 0 ? train_lockstep(m, data, count, stage)
                                 : train_shards(m, data, count, stage);
}

// The mean loss of the update; false if it diverged.
static bool loss_read(RtInstance *m, float *loss) {
    RtMetrics r = rt_metrics_read(m->plan, m->device);
    double all = (double)r.loss.high + (double)r.loss.low;
    double mean = all / ((double)r.count.high + (double)r.count.low);
    *loss = (float)mean;
    return r.count.high == 0 ||
           !rt_diverged(mean, r.scale > 0 ? r.scale : NAN, m->at.step,
                        (double)m->at.step / (double)m->at.epoch_steps,
                        &rt_last);
}

static bool train(RtInstance *m, const void *const *data, int64_t count,
                  float *loss) {
    int stage = rt_time_stage(m->trainer, &m->at);
    if (!train_check(m, count) || !data_check(m->trainer, data, count))
        return false;
    if (loss != NULL)
        rt_metrics_write(m->plan, m->device, &(RtMetrics){0});
    if (!train_update(m, data, count, stage))
        return false;
    m->at.step++;
    m->prepared = false;
    m->changed = true;
    if (rt_time_averages(m->trainer, &m->at))
        run(m, RT_AVERAGE, 0);
    return loss == NULL || loss_read(m, loss);
}

int rt_instance_train_all(RtInstance *m, const void *const *data, int64_t count,
                          float *loss) {
    CALL(m, train(m, data, count, loss));
}

int rt_instance_train(RtInstance *m, const void *samples, const void *labels,
                      int64_t count, float *loss) {
    return rt_instance_train_all(m, (const void *[]){samples, labels}, count,
                                 loss);
}

int64_t rt_instance_step(const RtInstance *m) {
    return m->at.step;
}

int64_t rt_instance_steps(const RtInstance *m) {
    return m->at.steps;
}

// ---- weights ----

static bool is_weight(const RtState *s) {
    return s->type == RT_F32 &&
           (s->kind == RT_PARAM || s->kind == RT_STATISTIC ||
            s->kind == RT_AVERAGED);
}

const char *rt_instance_weight(const RtInstance *m, int number, int *rank,
                               const int64_t **dim) {
    for (int i = 0; i < m->plan->num_states; i++) {
        const RtState *s = &m->plan->state[i];
        if (is_weight(s) && number-- == 0) {
            *rank = s->rank;
            *dim = s->dim;
            return s->name;
        }
    }
    return NULL;
}

static const RtState *weight_find(const RtInstance *m, const char *name,
                                  size_t count) {
    const RtState *s = rt_state_find(m->plan, name);
    if (s == NULL || !is_weight(s)) {
        rt_fail(&rt_last, EXIT_USAGE, "%s has no weight %s", m->trainer->model,
                name);
        return NULL;
    }
    size_t has = rt_state_bytes(s) / sizeof(float);
    if (has == count)
        return s;
    rt_fail(&rt_last, EXIT_USAGE, "%s has %zu numbers, not %zu", name, has,
            count);
    return NULL;
}

static bool weight_read(RtInstance *m, const char *name, float *to,
                        size_t count) {
    const RtState *s = weight_find(m, name, count);
    if (s == NULL)
        return false;
    m->device->sync(m->device);
    m->device->read(m->device, to, s->offset, count * sizeof *to);
    return true;
}

int rt_instance_read(RtInstance *m, const char *name, float *to, size_t count) {
    CALL(m, weight_read(m, name, to, count));
}

// An average of the weight is replaced, too.
static bool weight_write(RtInstance *m, const char *name, const float *from,
                         size_t count) {
    const RtState *s = weight_find(m, name, count), *average;
    if (s == NULL)
        return false;
    m->device->write(m->device, s->offset, from, count * sizeof *from);
    average = average_of(m->plan, s);
    if (average != NULL)
        m->device->write(m->device, average->offset, from,
                         count * sizeof *from);
    m->prepared = false;
    m->changed = true;
    run(m, RT_DERIVE, 0);
    return true;
}

int rt_instance_write(RtInstance *m, const char *name, const float *from,
                      size_t count) {
    CALL(m, weight_write(m, name, from, count));
}
