// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generate: continues a text of the command line or of standard input.
#define _POSIX_C_SOURCE 200809L

#include "runtime/generation/generation.h"
#include "runtime/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    RtSession *s;
    const RtOptions *options;
    RtTokenizer *tokenizer;
    RtGeneration *generation;
    RtTokens *text; // the prompt, and the tokens after it
    FILE *out;
} Generation;

// ---- tokenizer ----

// The file of --tokenizer, or the one beside the weights or in the data set.
static bool tokenizer_open(Generation *g, const char *weights, RtError *e) {
    const RtTrainer *t = g->s->run->trainer;
    const char *path = g->options->tokenizer;
    char *found = NULL;
    if (path == NULL && weights != NULL)
        path = found = rt_tokenizer_near(weights);
    if (path == NULL && t->data_path != NULL && *t->data_path != '\0')
        path = found = rt_tokenizer_near(t->data_path);
    if (path == NULL && rt_generation_classes(g->generation) != 256)
        return rt_fail(e, EXIT_DATA,
                       "there is no tokenizer.json beside the weights or in "
                       "the data set: name one with --tokenizer");
    g->tokenizer = rt_generation_tokenizer(g->generation, path, e);
    free(found);
    return g->tokenizer != NULL;
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
    if (!rt_tokens_add(g->text, token, e))
        return false;
    return bytes == NULL || bytes_write(g, bytes, length, e);
}

static bool text_continue(Generation *g, int64_t *made, RtError *e) {
    const RtOptions *o = g->options;
    const RtSampling by = {
        .temperature = o->temperature,
        .top_k = o->top_k,
        .top_p = o->top_p,
        .seed = o->seed >= 0 ? o->seed : g->s->run->trainer->seed};
    int64_t most = o->tokens > 0 ? o->tokens : 256;
    for (*made = 0; *made < most; ++*made) {
        int32_t token = 0;
        if (!rt_generation_decode(g->generation, e))
            return false;
        if (rt_signals_caught() != 0)
            return true;
        if (!rt_generation_draw(g->generation, &by, &token, e))
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
    bool good = rt_tokenizer_encode(g->tokenizer, text, length, g->text, e) &&
                bytes_write(g, text, length, e);
    free(text);
    if (!good || g->text->count > 0)
        return good;
    return end >= 0 ? token_add(g, end, e)
                    : rt_fail(e, EXIT_USAGE,
                              "--generate needs a text to begin with, since "
                              "the tokenizer has no token between texts");
}

static bool generate(Generation *g, RtError *e) {
    const RtRun *run = g->s->run;
    int64_t made = 0;
    if (!prompt_encode(g, e))
        return false;
    double start = rt_seconds();
    size_t given = g->text->count;
    if (!text_continue(g, &made, e) || !bytes_write(g, "\n", 1, e))
        return false;
    double seconds = rt_seconds() - start;
    if (!run->options->quiet)
        fprintf(stderr, "%zu tokens read, %lld generated, %.0f a second\n",
                given, (long long)made,
                (double)(given + (size_t)made) / seconds);
    return true;
}

static bool begin(Generation *g, char **weights, RtError *e) {
    RtSession *s = g->s;
    const RtRun *run = s->run;
    g->generation = rt_generation_new(run->trainer, s->plan, s->device, e);
    if (g->generation == NULL)
        return false;
    g->text = rt_generation_text(g->generation);
    s->checkpoint =
        rt_checkpoint_new(run->trainer, s->plan, s->device, run->files, e);
    return s->checkpoint != NULL && rt_weights_load(s, weights, e) &&
           tokenizer_open(g, *weights, e) &&
           rt_generation_restart(g->generation, e);
}

bool rt_generate(const RtRun *run, int *caught, RtError *e) {
    RtSession s = {.run = run, .plan = run->plan, .device = run->device};
    Generation g = {.s = &s, .options = run->options, .out = stdout};
    char *weights = NULL;
    s.at = (RtProgress){.steps = 1, .epoch_steps = 1};
    bool good = begin(&g, &weights, e);
    if (good) {
        rt_signals_catch();
        good = generate(&g, e);
    }
    *caught = rt_signals_caught();
    rt_checkpoint_free(s.checkpoint);
    rt_tokenizer_free(g.tokenizer);
    rt_generation_free(g.generation);
    free(weights);
    return good;
}
