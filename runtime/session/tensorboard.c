// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// TensorBoard: adds the graph of a step and images of the training set to the
// files of --tensorboard, beside the rows of the run.
#include "runtime/data/data.h"
#include "runtime/report/events.h"
#include "runtime/session/session.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_IMAGES = 8 };

// Whether samples are images of bytes, with one channel or three.
static bool has_images(const RtShape *s) {
    return s->type == RT_U8 && s->rank == 3 &&
           (s->dim[2] == 1 || s->dim[2] == 3);
}

// Adds the first images of the training set, before augmentation.
static void images_add(const RtSession *s, RtEvents *events, RtError *e) {
    const RtSplit *train = &s->run->data->train;
    const RtShape *shape = &s->run->trainer->image;
    RtPngWriter *writer = rt_png_writer_open(e);
    uint8_t *pixel = malloc(train->image.values);
    bool good = writer != NULL && pixel != NULL;
    for (int i = 0; good && i < MAX_IMAGES && i < train->count; i++) {
        RtPicture picture = {.height = (int)shape->dim[0],
                             .width = (int)shape->dim[1],
                             .channels = (int)shape->dim[2],
                             .pixel = pixel};
        char name[32];
        uint8_t *png;
        size_t bytes;
        good = train->fetch(train, i, pixel, e) &&
               rt_png_encode(writer, &picture, &png, &bytes, e);
        if (!good)
            break;
        snprintf(name, sizeof name, "train/image/%d", i);
        rt_events_image(events, name, picture.height, picture.width,
                        picture.channels, png, bytes);
        free(png);
    }
    free(pixel);
    rt_png_writer_close(writer);
}

void rt_session_board(const RtSession *s) {
    RtError ignored;
    const RtTrainer *t = s->run->trainer;
    RtEvents *events = rt_report_events(s->report);
    if (events == NULL || s->at.step > 0) // those of the start are there
        return;
    if (t->graphs != NULL)
        rt_events_graph(events, t->graphs, (size_t)(t->graphs_end - t->graphs),
                        "train");
    if (has_images(&t->image) && s->run->data->train.fetch != NULL)
        images_add(s, events, &ignored);
}
