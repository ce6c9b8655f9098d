// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts: the calls of an instance whose model generates.
//
// A text is the instance's, and its caches lie in memory that other steps use,
// so its positions are computed again after a call that ran one.

#include "runtime/generation/generation.h"
#include "runtime/instance/call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void texts_free(RtInstance *m) {
    rt_generation_free(m->generation);
    rt_tokenizer_free(m->tokenizer);
}

static bool generation_open(RtInstance *m) {
    m->free_texts = texts_free;
    if (m->generation == NULL)
        m->generation =
            rt_generation_new(m->trainer, m->plan, m->device, &rt_last);
    return m->generation != NULL;
}

// ---- tokenizer ----

static bool tokenizer_set(RtInstance *m, const char *path) {
    if (!generation_open(m))
        return false;
    RtTokenizer *t = rt_generation_tokenizer(m->generation, path, &rt_last);
    if (t == NULL)
        return false;
    rt_tokenizer_free(m->tokenizer);
    m->tokenizer = t;
    free(m->unsearched);
    m->unsearched = NULL;
    return true;
}

// Takes the tokenizer beside weights that were loaded since the last one, which
// is that of other weights.
static bool tokenizer_find(RtInstance *m) {
    char *path = rt_tokenizer_near(m->unsearched);
    rt_tokenizer_free(m->tokenizer);
    m->tokenizer = NULL;
    bool good = path == NULL || tokenizer_set(m, path);
    free(path);
    return good;
}

static bool tokenizer_choose(RtInstance *m, const char *path) {
    bool good = tokenizer_set(m, path);
    m->chosen = m->chosen || good;
    return good;
}

static int try_find(RtInstance *m) {
    CALL(m, tokenizer_find(m));
}

static bool has_tokenizer(RtInstance *m) {
    return (m->chosen || m->unsearched == NULL || try_find(m) == EXIT_GOOD) &&
           (m->tokenizer != NULL ||
            rt_fail(&rt_last, EXIT_USAGE,
                    "the instance has no tokenizer, and no tokenizer.json is "
                    "beside loaded weights: tokenizer(PATH) reads one"));
}

int rt_instance_tokenizer(RtInstance *m, const char *path) {
    CALL(m, tokenizer_choose(m, path));
}

int64_t rt_instance_encode(RtInstance *m, const char *text, size_t length,
                           int32_t *tokens, int64_t room) {
    RtTokens found = {0};
    int64_t count = -1;
    if (has_tokenizer(m) &&
        rt_tokenizer_encode(m->tokenizer, text, length, &found, &rt_last))
        count = (int64_t)found.count;
    int64_t some = count < room ? count : room;
    if (some > 0)
        memcpy(tokens, found.token, (size_t)some * sizeof *tokens);
    free(found.token);
    return count;
}

const char *rt_instance_decode(RtInstance *m, int32_t token, size_t *length) {
    return has_tokenizer(m) ? rt_tokenizer_bytes(m->tokenizer, token, length)
                            : NULL;
}

int32_t rt_instance_end(RtInstance *m) {
    return has_tokenizer(m) ? rt_tokenizer_end(m->tokenizer) : -1;
}

// ---- text ----

static bool token_check(const RtInstance *m, int32_t token) {
    int64_t classes = rt_generation_classes(m->generation);
    return (token >= 0 && token < classes) ||
           rt_fail(&rt_last, EXIT_DATA,
                   "%" PRId32 " is no token: %s has tokens 0 to %" PRId64,
                   token, m->trainer->model, classes - 1);
}

static bool token_add(RtInstance *m, int32_t token) {
    return token_check(m, token) &&
           rt_tokens_add(rt_generation_text(m->generation), token, &rt_last);
}

// A refused prompt leaves the text as it is.
static bool prompt(RtInstance *m, const int32_t *tokens, int64_t count) {
    if (count < 0)
        return rt_fail(&rt_last, EXIT_USAGE, "a text of %" PRId64 " tokens",
                       count);
    bool good = generation_open(m);
    for (int64_t i = 0; i < count && good; i++)
        good = token_check(m, tokens[i]);
    good = good && rt_generation_begin(m->generation, &rt_last);
    for (int64_t i = 0; i < count && good; i++)
        good = token_add(m, tokens[i]);
    return good;
}

int rt_instance_prompt(RtInstance *m, const int32_t *tokens, int64_t count) {
    CALL(m, prompt(m, tokens, count));
}

int rt_instance_append(RtInstance *m, int32_t token) {
    CALL(m, generation_open(m) && token_add(m, token));
}

// Computes the scores of the next token.
static bool decode(RtInstance *m) {
    if (!generation_open(m))
        return false;
    if (rt_generation_text(m->generation)->count == 0)
        return rt_fail(&rt_last, EXIT_USAGE, "the text has no token yet");
    rt_instance_prepare(m);
    if (!m->cached && !rt_generation_restart(m->generation, &rt_last))
        return false;
    m->cached = true;
    return rt_generation_decode(m->generation, &rt_last);
}

static bool logits(RtInstance *m, float *to) {
    if (!decode(m))
        return false;
    const double *score = rt_generation_scores(m->generation);
    for (int64_t i = 0; i < rt_generation_classes(m->generation); i++)
        to[i] = (float)score[i];
    return true;
}

int rt_instance_logits(RtInstance *m, float *to) {
    CALL(m, logits(m, to));
}

static bool next(RtInstance *m, const RtSampling *by, int32_t *token) {
    RtSampling copy = *by;
    copy.seed = by->seed >= 0 ? by->seed : m->trainer->seed;
    return decode(m) &&
           rt_generation_draw(m->generation, &copy, token, &rt_last) &&
           token_add(m, *token);
}

int rt_instance_next(RtInstance *m, double temperature, int64_t top_k,
                     double top_p, int64_t seed, int32_t *token) {
    const RtSampling by = {temperature, top_p, top_k, seed};
    CALL(m, next(m, &by, token));
}
