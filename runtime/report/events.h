// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: metrics, histograms, images and a graph in TensorBoard's event files.
#ifndef RUNTIME_EVENTS_H
#define RUNTIME_EVENTS_H

#include "runtime/report/report.h"

typedef struct RtEvents RtEvents;

// Creates a file in folder/train and in folder/test.  from: the step at which a
// run resumes, whose later values TensorBoard then hides; -1: none.
RtEvents *rt_events_open(const char *folder, int64_t from, RtError *e);
// Adds a row; rate: samples a second.  False, with errno set, the first time
// that a file cannot be written.  All accept NULL.
bool rt_events_row(RtEvents *e, const RtTrainer *t, const RtRow *row,
                   double rate);
// Adds the histogram of a tensor.
void rt_events_histogram(RtEvents *e, const char *name, int64_t step,
                         const float *value, int64_t count);
// Adds an image in a PNG file; and one of several graphs, in their text.
void rt_events_image(RtEvents *e, const char *name, int height, int width,
                     int colors, const uint8_t *png, size_t bytes);
void rt_events_graph(RtEvents *e, const char *graphs, size_t length,
                     const char *name);
bool rt_events_close(RtEvents *e); // false, with errno set: some were lost

#endif
