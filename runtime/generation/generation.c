// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generation: see generation.h.
//
// The sampler computes in double from the scores, so equal scores give the same
// text on each device.

#include "runtime/generation/generation.h"
#include "base/round_up.h"
#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct RtGeneration {
    const char *model;
    const RtPlan *plan;
    const RtStep *step;
    RtDevice *device;
    RtTokens text;
    int64_t length; // positions of the model
    size_t first;   // token at the caches' position 0
    int64_t cached; // positions
    int64_t classes;
    void *raw;      // scores as the device has them
    double *score;  // of the next token
    double *share;  // its probability, times a constant
    int32_t *order; // tokens, the likeliest first
};

// ---- new and free ----

static const RtStep *step_find(const RtTrainer *t, const RtPlan *plan,
                               RtError *e) {
    const RtStep *step = rt_step_find(plan, RT_DECODE, 0);
    if (step == NULL)
        rt_fail(e, EXIT_USAGE, "%s cannot generate: %s", t->model,
                t->not_decoded != NULL
                    ? t->not_decoded
                    : "it does not score the next token at each position of a "
                      "text");
    return step;
}

static bool rooms_new(RtGeneration *g, RtError *e) {
    size_t count = (size_t)g->classes;
    g->raw = malloc(rt_input_bytes(&g->step->output));
    g->score = malloc(count * sizeof *g->score);
    g->share = malloc(count * sizeof *g->share);
    g->order = malloc(count * sizeof *g->order);
    return (g->raw != NULL && g->score != NULL && g->share != NULL &&
            g->order != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

RtGeneration *rt_generation_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, RtError *e) {
    const RtStep *step = step_find(t, plan, e);
    RtGeneration *g = step != NULL ? calloc(1, sizeof *g) : NULL;
    if (step != NULL && g == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    if (g == NULL)
        return NULL;
    *g = (RtGeneration){.model = t->model,
                        .plan = plan,
                        .step = step,
                        .device = d,
                        .length = t->image.dim[0],
                        .classes = step->output.dim[step->output.rank - 1]};
    if (rooms_new(g, e) && rt_generation_begin(g, e))
        return g;
    rt_generation_free(g);
    return NULL;
}

void rt_generation_free(RtGeneration *g) {
    if (g == NULL)
        return;
    free(g->text.token);
    free(g->raw);
    free(g->score);
    free(g->share);
    free(g->order);
    free(g);
}

int64_t rt_generation_classes(const RtGeneration *g) {
    return g->classes;
}

RtTokenizer *rt_generation_tokenizer(const RtGeneration *g, const char *path,
                                     RtError *e) {
    RtTokenizer *t = rt_tokenizer_open(path, e);
    if (t == NULL || rt_tokenizer_size(t) <= g->classes)
        return t;
    rt_fail(e, EXIT_DATA, "the tokenizer has %d tokens, but %s scores %lld",
            rt_tokenizer_size(t), g->model, (long long)g->classes);
    rt_tokenizer_free(t);
    return NULL;
}

RtTokens *rt_generation_text(RtGeneration *g) {
    return &g->text;
}

// ---- decode ----

bool rt_generation_restart(RtGeneration *g, RtError *e) {
    size_t bytes = g->step->cache_bytes;
    RtDevice *d = g->device;
    g->cached = 0;
    if (bytes == 0)
        return true;
    void *zeros = calloc(1, bytes);
    if (zeros == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    d->write(d, g->step->cache, zeros, bytes);
    free(zeros);
    return true;
}

bool rt_generation_begin(RtGeneration *g, RtError *e) {
    g->text.count = 0;
    return rt_generation_restart(g, e);
}

static void input_write(RtGeneration *g, const char *name, int32_t value) {
    RtDevice *d = g->device;
    for (int i = 0; i < g->step->num_inputs; i++)
        if (strcmp(g->step->input[i].name, name) == 0)
            d->write(d, g->step->input[i].offset, &value, sizeof value);
}

static void scores_read(RtGeneration *g) {
    const RtInput *out = &g->step->output;
    RtDevice *d = g->device;
    d->read(d, g->raw, out->offset, rt_input_bytes(out));
    for (int64_t i = 0; i < g->classes; i++)
        g->score[i] = rt_number(g->raw, out->type, i);
}

static bool scores_check(const RtGeneration *g, RtError *e) {
    for (int64_t i = 0; i < g->classes; i++)
        if (!isfinite(g->score[i]))
            return rt_fail(e, EXIT_DEVICE,
                           "the score of token %lld is not finite",
                           (long long)i);
    return true;
}

// The first token that the model reads.  When a text outgrows the positions,
// the first half of them is left, and the others are computed again.  So equal
// texts have equal scores, whether they grew or were given.
static size_t window_first(const RtGeneration *g) {
    size_t half = (size_t)(g->length + 1) / 2, most = (size_t)g->length;
    size_t over = g->text.count > most ? g->text.count - most : 0;
    return align_up(over, half);
}

// Runs the step for all tokens that the caches lack.
bool rt_generation_decode(RtGeneration *g, RtError *e) {
    size_t first = window_first(g);
    int64_t wanted = (int64_t)(g->text.count - first);
    g->cached = first == g->first ? g->cached : 0;
    g->first = first;
    bool reads = g->cached < wanted;
    while (g->cached < wanted && rt_signals_caught() == 0) {
        input_write(g, "image", g->text.token[g->first + (size_t)g->cached]);
        input_write(g, "position", (int32_t)g->cached++);
        rt_step_run(g->plan, g->device, RT_DECODE, 0);
    }
    if (reads)
        scores_read(g);
    return rt_signals_caught() != 0 || scores_check(g, e);
}

const double *rt_generation_scores(const RtGeneration *g) {
    return g->score;
}

// ---- draw ----

static _Thread_local const double *sorted; // by qsort, which has no context

static int by_share(const void *a, const void *b) {
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    double x = sorted[left], y = sorted[right];
    return x != y ? (x < y) - (x > y) : (left > right) - (left < right);
}

static int32_t likeliest(const RtGeneration *g) {
    int32_t best = 0;
    for (int32_t i = 1; i < g->classes; i++)
        if (g->score[i] > g->score[best])
            best = i;
    return best;
}

// The tokens to draw from, in g->order, as many as it returns: the top-k first,
// and of these the fewest whose probabilities add up to top-p.
static int64_t candidates(RtGeneration *g, const RtSampling *by) {
    int64_t count = g->classes;
    for (int32_t i = 0; i < g->classes; i++)
        g->order[i] = i;
    if (by->top_k == 0 && by->top_p == 0)
        return count;
    sorted = g->share;
    qsort(g->order, (size_t)g->classes, sizeof *g->order, by_share);
    if (by->top_k > 0 && by->top_k < count)
        count = by->top_k;
    double all = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        all += g->share[g->order[i]];
    for (int64_t i = 0; i < count && by->top_p > 0; i++) {
        sum += g->share[g->order[i]];
        if (sum >= by->top_p * all)
            return i + 1;
    }
    return count;
}

static bool sampling_check(const RtSampling *by, RtError *e) {
    if (!(by->temperature >= 0) || !isfinite(by->temperature))
        return rt_fail(e, EXIT_USAGE, "the temperature is %g, and not from 0",
                       by->temperature);
    if (by->top_k < 0)
        return rt_fail(e, EXIT_USAGE, "top-k is %lld, and not from 0",
                       (long long)by->top_k);
    return (by->top_p >= 0 && by->top_p <= 1) ||
           rt_fail(e, EXIT_USAGE, "top-p is %g, and not from 0 to 1",
                   by->top_p);
}

// The length of the text is the number of the random number.
bool rt_generation_draw(RtGeneration *g, const RtSampling *by, int32_t *token,
                        RtError *e) {
    if (!sampling_check(by, e))
        return false;
    *token = likeliest(g);
    if (by->temperature == 0)
        return true;
    double most = g->score[*token];
    for (int64_t i = 0; i < g->classes; i++)
        g->share[i] = exp((g->score[i] - most) / by->temperature);
    int64_t count = candidates(g, by);
    double all = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        all += g->share[g->order[i]];
    double at = all * rt_uniform((uint64_t)by->seed, g->text.count);
    for (int64_t i = 0; i < count; i++) {
        *token = g->order[i];
        sum += g->share[*token];
        if (sum > at)
            break;
    }
    return true;
}
