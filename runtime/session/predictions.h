// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predictions: the results of --predict, a line of JSON or an image for each
// sample or an array of NumPy.
#ifndef RUNTIME_PREDICTIONS_H
#define RUNTIME_PREDICTIONS_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data.h"

typedef struct RtPredictions RtPredictions;

// Opens the file, .jsonl or .npy, or the folder of images, which ends with /;
// NULL: standard output, in JSON.  Named outputs have an .npy file each, with
// _NAME before the suffix.  names has the classes' names; step predicts.
RtPredictions *rt_predictions_open(const char *path, const RtStep *step,
                                   const RtTrainer *t,
                                   const RtCheckpoint *names,
                                   const RtOptions *o, RtError *e);
// Announces so many samples.  An array takes one announcement.
bool rt_predictions_begin(RtPredictions *p, int64_t count, RtError *e);
// Adds `count` samples of d from number `first` on: f32 [count, ...] for each
// output of the step.
bool rt_predictions_add(RtPredictions *p, const RtData *d,
                        float *const *output, int64_t first, int64_t count,
                        RtError *e);
bool rt_predictions_flush(RtPredictions *p, RtError *e);
// Closes the file, and frees p.  complete: all samples were added; then false
// with EXIT_DATA if some could not be read.
bool rt_predictions_close(RtPredictions *p, bool complete, RtError *e);

#endif
