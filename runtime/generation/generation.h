// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generation: continues a text, token by token, with the decode step, which
// keeps what earlier positions computed in caches.
#ifndef RUNTIME_GENERATION_H
#define RUNTIME_GENERATION_H

#include "runtime/tokenizer.h"

typedef struct RtGeneration RtGeneration;

// A token is drawn with the probability exp(score / temperature), of the top_k
// likeliest, and of these the fewest whose probabilities add up to top_p.
typedef struct {
    double temperature; // 0: the likeliest
    double top_p;       // 0: all
    int64_t top_k;      // 0: all
    int64_t seed;
} RtSampling;

// Functions that return bool: false with the reason in *e.

// A generation without a text; NULL with the reason in *e, such as a model
// without a decode step.  The device's states are the weights.
RtGeneration *rt_generation_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, RtError *e);
void rt_generation_free(RtGeneration *g); // g may be NULL

// Tokens that the model scores.
int64_t rt_generation_classes(const RtGeneration *g);

// Opens a tokenizer.json, or for NULL that of bytes.  NULL with the reason in
// *e, such as tokens that the model does not score.
RtTokenizer *rt_generation_tokenizer(const RtGeneration *g, const char *path,
                                     RtError *e);

// The text so far, to which callers add tokens.
RtTokens *rt_generation_text(RtGeneration *g);

// Begins another text, without a token.
bool rt_generation_begin(RtGeneration *g, RtError *e);

// Lets positions be computed again: the device has run other steps, which may
// overwrite the caches, or has other weights.
bool rt_generation_restart(RtGeneration *g, RtError *e);

// Computes the scores of the next token.  The text must have a token; a signal
// that is caught ends it early.
bool rt_generation_decode(RtGeneration *g, RtError *e);
const double *rt_generation_scores(const RtGeneration *g); // [classes]

// Draws the next token from the scores.
bool rt_generation_draw(RtGeneration *g, const RtSampling *by, int32_t *token,
                        RtError *e);

#endif
