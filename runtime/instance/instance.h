// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instance: a model in a program of the user, with its memory on one device.
// sinter build --library writes functions of the model's own name, which call
// these; tools/library/model.h.in has what users read about them.
#ifndef RUNTIME_INSTANCE_H
#define RUNTIME_INSTANCE_H

#include "runtime/rt.h"

typedef struct RtInstance RtInstance;

// Functions that return int: 0, or an exit status of base/exits.h after an
// error.  The error of this thread's last call that failed.
const char *rt_instance_error(void);

// Shapes of a trainer's samples, labels and outputs, as JSON.  The text is this
// thread's until its next call.
const char *rt_instance_about(const RtTrainer *t);

RtInstance *rt_instance_create(const RtTrainer *t, const char *device,
                               int threads);
void rt_instance_free(RtInstance *m);
int rt_instance_load(RtInstance *m, const char *path);
int rt_instance_save(RtInstance *m, const char *path);
int rt_instance_predict(RtInstance *m, const void *samples, int64_t count,
                        float *output);
// The same of a model with several inputs or outputs.  data: samples of image
// and label, then of each array of the trainer, NULL where they are not read.
int rt_instance_predict_all(RtInstance *m, const void *const *data,
                            int64_t count, float *const *output);
int rt_instance_begin(RtInstance *m, int64_t samples, double epochs,
                      int64_t seed);
int rt_instance_train(RtInstance *m, const void *samples, const void *labels,
                      int64_t count, float *loss);
int rt_instance_train_all(RtInstance *m, const void *const *data, int64_t count,
                          float *loss);
int64_t rt_instance_step(const RtInstance *m);
int64_t rt_instance_steps(const RtInstance *m);
const char *rt_instance_weight(const RtInstance *m, int number, int *rank,
                               const int64_t **dim);
int rt_instance_read(RtInstance *m, const char *name, float *to, size_t count);
int rt_instance_write(RtInstance *m, const char *name, const float *from,
                      size_t count);

// ---- texts.c: of a model that generates ----

int rt_instance_tokenizer(RtInstance *m, const char *path);
int64_t rt_instance_encode(RtInstance *m, const char *text, size_t length,
                           int32_t *tokens, int64_t room);
const char *rt_instance_decode(RtInstance *m, int32_t token, size_t *length);
int32_t rt_instance_end(RtInstance *m);
int rt_instance_prompt(RtInstance *m, const int32_t *tokens, int64_t count);
int rt_instance_append(RtInstance *m, int32_t token);
int rt_instance_logits(RtInstance *m, float *to);
int rt_instance_next(RtInstance *m, double temperature, int64_t top_k,
                     double top_p, int64_t seed, int32_t *token);

// Defines the functions of a library for the model of sinter_trainer.
#define RT_LIBRARY(name)                                                       \
    RT_LIBRARY_OF(name)                                                        \
    RT_LIBRARY_SINGLE_OF(name)
// The same without predict and train, which have an argument for each input,
// label and output of a model with several.
#define RT_LIBRARY_SEVERAL(name) RT_LIBRARY_OF(name)
#define RT_FUNCTION(name, function) RT_FUNCTION_OF(name, function)
#define RT_FUNCTION_OF(name, function) name##_##function
#define RT_PUBLIC __attribute__((visibility("default")))
#define RT_LIBRARY_OF(name)                                                    \
    RT_PUBLIC RtInstance *name##_create(const char *device, int threads) {     \
        return rt_instance_create(&sinter_trainer, device, threads);           \
    }                                                                          \
    RT_PUBLIC const char *name##_about(void) {                                 \
        return rt_instance_about(&sinter_trainer);                             \
    }                                                                          \
    RT_PUBLIC void name##_free(RtInstance *m) {                                \
        rt_instance_free(m);                                                   \
    }                                                                          \
    RT_PUBLIC const char *name##_error(void) {                                 \
        return rt_instance_error();                                            \
    }                                                                          \
    RT_PUBLIC int name##_load(RtInstance *m, const char *path) {               \
        return rt_instance_load(m, path);                                      \
    }                                                                          \
    RT_PUBLIC int name##_save(RtInstance *m, const char *path) {               \
        return rt_instance_save(m, path);                                      \
    }                                                                          \
    RT_PUBLIC int name##_begin(RtInstance *m, int64_t samples, double epochs,  \
                               int64_t seed) {                                 \
        return rt_instance_begin(m, samples, epochs, seed);                    \
    }                                                                          \
    RT_PUBLIC int64_t name##_step(const RtInstance *m) {                       \
        return rt_instance_step(m);                                            \
    }                                                                          \
    RT_PUBLIC int64_t name##_steps(const RtInstance *m) {                      \
        return rt_instance_steps(m);                                           \
    }                                                                          \
    RT_PUBLIC const char *name##_weight(const RtInstance *m, int number,       \
                                        int *rank, const int64_t **dim) {      \
        return rt_instance_weight(m, number, rank, dim);                       \
    }                                                                          \
    RT_PUBLIC int name##_read(RtInstance *m, const char *weight, float *to,    \
                              size_t count) {                                  \
        return rt_instance_read(m, weight, to, count);                         \
    }                                                                          \
    RT_PUBLIC int name##_write(RtInstance *m, const char *weight,              \
                               const float *from, size_t count) {              \
        return rt_instance_write(m, weight, from, count);                      \
    }

#define RT_LIBRARY_SINGLE_OF(name)                                             \
    RT_PUBLIC int name##_predict(RtInstance *m, const void *samples,           \
                                 int64_t count, float *output) {               \
        return rt_instance_predict(m, samples, count, output);                 \
    }                                                                          \
    RT_PUBLIC int name##_train(RtInstance *m, const void *samples,             \
                               const void *labels, int64_t count,              \
                               float *loss) {                                  \
        return rt_instance_train(m, samples, labels, count, loss);             \
    }

// Defines those of texts.
#define RT_LIBRARY_TEXTS(name) RT_LIBRARY_TEXTS_OF(name)
#define RT_LIBRARY_TEXTS_OF(name)                                              \
    RT_PUBLIC int name##_tokenizer(RtInstance *m, const char *path) {          \
        return rt_instance_tokenizer(m, path);                                 \
    }                                                                          \
    RT_PUBLIC int64_t name##_encode(RtInstance *m, const char *text,           \
                                    size_t length, int32_t *tokens,            \
                                    int64_t room) {                            \
        return rt_instance_encode(m, text, length, tokens, room);              \
    }                                                                          \
    RT_PUBLIC const char *name##_decode(RtInstance *m, int32_t token,          \
                                        size_t *length) {                      \
        return rt_instance_decode(m, token, length);                           \
    }                                                                          \
    RT_PUBLIC int32_t name##_end(RtInstance *m) {                              \
        return rt_instance_end(m);                                             \
    }                                                                          \
    RT_PUBLIC int name##_prompt(RtInstance *m, const int32_t *tokens,          \
                                int64_t count) {                               \
        return rt_instance_prompt(m, tokens, count);                           \
    }                                                                          \
    RT_PUBLIC int name##_append(RtInstance *m, int32_t token) {                \
        return rt_instance_append(m, token);                                   \
    }                                                                          \
    RT_PUBLIC int name##_logits(RtInstance *m, float *logits) {                \
        return rt_instance_logits(m, logits);                                  \
    }                                                                          \
    RT_PUBLIC int name##_next(RtInstance *m, double temperature,               \
                              int64_t top_k, double top_p, int64_t seed,       \
                              int32_t *token) {                                \
        return rt_instance_next(m, temperature, top_k, top_p, seed, token);    \
    }

#endif
