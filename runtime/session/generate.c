// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generate: continues a text, token by token, with the decode step, which keeps
// what earlier positions computed in caches.
//
// The sampler computes in double from the scores, so equal scores give the same
// text on each device.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "runtime/session/session.h"
#include "runtime/tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    RtSession *s;
    const RtStep *step;
    const RtOptions *options;
    RtTokenizer *tokenizer;
    RtTokens text;  // the prompt, and what follows
    int64_t length; // positions of the model
    size_t first;   // token at the caches' position 0
    int64_t cached; // positions
    int64_t classes;
    void *raw;      // scores as the device has them
    double *score;  // of the next token; then its probability
    int32_t *order; // tokens, the likeliest first
    FILE *out;
} Generation;

// ---- tokenizer ----

// The tokenizer.json in a folder, or beside a file; NULL: there is none.
static char *tokenizer_near(const char *path) {
    struct stat is;
    bool is_folder = stat(path, &is) == 0 && S_ISDIR(is.st_mode);
    const char *slash = is_folder ? path + strlen(path) : strrchr(path, '/');
    char *file = slash == NULL ? rt_path("tokenizer.json")
                               : rt_path("%.*s/tokenizer.json",
                                         (int)(slash - path), path);
    if (file == NULL || access(file, R_OK) == 0)
        return file;
    free(file);
    return NULL;
}

// The file of --tokenizer, or the one beside the weights or in the data set.
static bool tokenizer_open(Generation *g, const char *weights, RtError *e) {
    const RtTrainer *t = g->s->run->trainer;
    const char *path = g->options->tokenizer;
    char *found = NULL;
    if (path == NULL && weights != NULL)
        path = found = tokenizer_near(weights);
    if (path == NULL && t->data_path != NULL && *t->data_path != '\0')
        path = found = tokenizer_near(t->data_path);
    if (path == NULL && g->classes != 256)
        return rt_fail(e, EXIT_DATA,
                       "there is no tokenizer.json beside the weights or in "
                       "the data set: name one with --tokenizer");
    g->tokenizer = rt_tokenizer_open(path, e);
    free(found);
    if (g->tokenizer == NULL)
        return false;
    int size = rt_tokenizer_size(g->tokenizer);
    return size <= g->classes ||
           rt_fail(e, EXIT_DATA,
                   "the tokenizer has %d tokens, but %s scores %lld", size,
                   t->model, (long long)g->classes);
}

// ---- decode ----

static void input_write(Generation *g, const char *name, int32_t value) {
    RtDevice *d = g->s->device;
    for (int i = 0; i < g->step->num_inputs; i++)
        if (strcmp(g->step->input[i].name, name) == 0)
            d->write(d, g->step->input[i].offset, &value, sizeof value);
}

static bool caches_clear(Generation *g, RtError *e) {
    size_t bytes = g->step->cache_bytes;
    RtDevice *d = g->s->device;
    if (bytes == 0)
        return true;
    void *zeros = calloc(1, bytes);
    if (zeros == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    d->write(d, g->step->cache, zeros, bytes);
    free(zeros);
    return true;
}

// Runs the step for all tokens that the caches lack.  Once they are full, the
// model goes on from the latter half of them.
static void tokens_decode(Generation *g) {
    int64_t wanted = (int64_t)(g->text.count - g->first);
    if (wanted > g->length) {
        g->first = g->text.count - (size_t)((g->length + 1) / 2);
        g->cached = 0;
        wanted = (int64_t)(g->text.count - g->first);
    }
    while (g->cached < wanted && rt_signals_caught() == 0) {
        input_write(g, "image", g->text.token[g->first + (size_t)g->cached]);
        input_write(g, "position", (int32_t)g->cached++);
        rt_step_run(g->s->plan, g->s->device, RT_DECODE, 0);
    }
}

static void scores_read(Generation *g) {
    const RtInput *out = &g->step->output;
    RtDevice *d = g->s->device;
    d->read(d, g->raw, out->offset, rt_input_bytes(out));
    for (int64_t i = 0; i < g->classes; i++)
        g->score[i] = rt_number(g->raw, out->type, i);
}

// ---- sample ----

static _Thread_local const double *sorted; // by qsort, which has no context

static int by_score(const void *a, const void *b) {
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    double x = sorted[left], y = sorted[right];
    return x != y ? (x < y) - (x > y) : (left > right) - (left < right);
}

static int32_t greatest(const Generation *g) {
    int32_t best = 0;
    for (int32_t i = 1; i < g->classes; i++)
        if (g->score[i] > g->score[best])
            best = i;
    return best;
}

// The tokens to draw from, in g->order, as many as it returns: the top-k first,
// and of these the fewest whose probabilities add up to top-p.
static int64_t candidates(Generation *g) {
    const RtOptions *o = g->options;
    int64_t count = g->classes;
    for (int32_t i = 0; i < g->classes; i++)
        g->order[i] = i;
    if (o->top_k == 0 && o->top_p == 0)
        return count;
    sorted = g->score;
    qsort(g->order, (size_t)g->classes, sizeof *g->order, by_score);
    if (o->top_k > 0 && o->top_k < count)
        count = o->top_k;
    double all = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        all += g->score[g->order[i]];
    for (int64_t i = 0; i < count && o->top_p > 0; i++) {
        sum += g->score[g->order[i]];
        if (sum >= o->top_p * all)
            return i + 1;
    }
    return count;
}

// The next token, by the number-th random number.
static bool token_sample(Generation *g, int64_t seed, int32_t *token,
                         RtError *e) {
    double heat = g->options->temperature;
    int32_t best = greatest(g);
    double most = g->score[best];
    for (int64_t i = 0; i < g->classes; i++)
        if (!isfinite(g->score[i]))
            return rt_fail(e, EXIT_DEVICE,
                           "the score of token %lld is not finite",
                           (long long)i);
    *token = best;
    if (heat == 0)
        return true;
    for (int64_t i = 0; i < g->classes; i++)
        g->score[i] = exp((g->score[i] - most) / heat);
    int64_t count = candidates(g);
    double all = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        all += g->score[g->order[i]];
    double at = all * rt_uniform((uint64_t)seed, g->text.count);
    for (int64_t i = 0; i < count; i++) {
        *token = g->order[i];
        sum += g->score[*token];
        if (sum > at)
            break;
    }
    return true;
}

// ---- the run ----

static bool bytes_write(Generation *g, const char *bytes, size_t length,
                        RtError *e) {
    if (fwrite(bytes, 1, length, g->out) == length && fflush(g->out) == 0)
        return true;
    return rt_fail(e, EXIT_IO, "the text cannot be written");
}

static bool token_add(Generation *g, int32_t token, RtError *e) {
    size_t length = 0;
    const char *bytes = rt_tokenizer_bytes(g->tokenizer, token, &length);
    if (!rt_tokens_add(&g->text, token, e))
        return false;
    return bytes == NULL || bytes_write(g, bytes, length, e);
}

static bool text_continue(Generation *g, int64_t *made, RtError *e) {
    const RtOptions *o = g->options;
    int64_t seed = o->seed >= 0 ? o->seed : g->s->run->trainer->seed;
    int64_t most = o->tokens > 0 ? o->tokens : 256;
    for (*made = 0; *made < most; ++*made) {
        int32_t token = 0;
        tokens_decode(g);
        if (rt_signals_caught() != 0)
            return true;
        scores_read(g);
        if (!token_sample(g, seed, &token, e))
            return false;
        if (token == rt_tokenizer_end(g->tokenizer))
            return true;
        if (!token_add(g, token, e))
            return false;
    }
    return true;
}

// All of standard input; NULL: out of memory.
static char *input_read(size_t *length) {
    size_t room = 1 << 16;
    char *text = malloc(room);
    *length = 0;
    for (size_t some = 1; text != NULL && some > 0; *length += some) {
        if (*length == room) {
            char *more = realloc(text, room *= 2);
            if (more == NULL)
                free(text);
            text = more;
        }
        some =
            text != NULL ? fread(text + *length, 1, room - *length, stdin) : 0;
    }
    return text;
}

static bool prompt_encode(Generation *g, RtError *e) {
    size_t length = 0;
    int32_t end = rt_tokenizer_end(g->tokenizer);
    const char *given = g->options->generate;
    char *text = strcmp(given, "-") == 0 ? input_read(&length) : strdup(given);
    if (text == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (strcmp(given, "-") != 0)
        length = strlen(text);
    bool good = rt_tokenizer_encode(g->tokenizer, text, length, &g->text, e) &&
                bytes_write(g, text, length, e);
    free(text);
    if (!good || g->text.count > 0)
        return good;
    return end >= 0 ? token_add(g, end, e)
                    : rt_fail(e, EXIT_USAGE,
                              "--generate needs a text to begin with, since "
                              "the tokenizer has no token between texts");
}

static bool generate(Generation *g, RtError *e) {
    const RtRun *run = g->s->run;
    int64_t made = 0;
    if (!prompt_encode(g, e) || !caches_clear(g, e))
        return false;
    double start = rt_seconds();
    size_t given = g->text.count;
    if (!text_continue(g, &made, e) || !bytes_write(g, "\n", 1, e))
        return false;
    double seconds = rt_seconds() - start;
    if (!run->options->quiet)
        fprintf(stderr, "%zu tokens read, %lld generated, %.0f a second\n",
                given, (long long)made,
                (double)(given + (size_t)made) / seconds);
    return true;
}

static bool rooms_new(Generation *g, RtError *e) {
    size_t count = (size_t)g->classes;
    g->raw = malloc(rt_input_bytes(&g->step->output));
    g->score = malloc(count * sizeof *g->score);
    g->order = malloc(count * sizeof *g->order);
    return (g->raw != NULL && g->score != NULL && g->order != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

static bool step_check(const Generation *g, RtError *e) {
    const RtTrainer *t = g->s->run->trainer;
    if (g->step != NULL)
        return true;
    return t->not_decoded != NULL
               ? rt_fail(e, EXIT_USAGE, "%s cannot generate: %s", t->model,
                         t->not_decoded)
               : rt_fail(e, EXIT_USAGE,
                         "%s cannot generate: it does not score the next token "
                         "at each position of a text",
                         t->model);
}

bool rt_generate(const RtRun *run, int *caught, RtError *e) {
    RtSession s = {.run = run, .plan = run->plan, .device = run->device};
    Generation g = {.s = &s,
                    .step = rt_step_find(run->plan, RT_DECODE, 0),
                    .options = run->options,
                    .length = run->trainer->image.dim[0],
                    .out = stdout};
    s.at = (RtProgress){.steps = 1, .epoch_steps = 1};
    if (!step_check(&g, e))
        return false;
    g.classes = g.step->output.dim[g.step->output.rank - 1];
    s.checkpoint =
        rt_checkpoint_new(run->trainer, s.plan, s.device, run->files, e);
    char *weights = NULL;
    bool good = s.checkpoint != NULL && rooms_new(&g, e) &&
                rt_weights_load(&s, &weights, e) &&
                tokenizer_open(&g, weights, e);
    if (good) {
        rt_signals_catch();
        good = generate(&g, e);
    }
    *caught = rt_signals_caught();
    rt_checkpoint_free(s.checkpoint);
    rt_tokenizer_free(g.tokenizer);
    free(weights);
    free(g.text.token);
    free(g.raw);
    free(g.score);
    free(g.order);
    return good;
}
