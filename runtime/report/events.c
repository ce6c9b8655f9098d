// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: a file of records, each of a length, its checksum, an Event message
// and its checksum (tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto,
// tensorflow/core/lib/io/record_writer).
#define _POSIX_C_SOURCE 200809L

#include "runtime/report/events.h"
#include "base/protobuf.h"
#include "runtime/replay/graph_def.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRAIN, TEST, NUM_FILES };

struct RtEvents {
    FILE *file[NUM_FILES];
    int lost; // errno of the first failure; 0: none
};

// Fields of the messages.
enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_GRAPH = 4,
    EVENT_SUMMARY = 5,
    EVENT_SESSION = 7,
    SESSION_STATUS = 1,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SCALAR = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM = 5,
    IMAGE_HEIGHT = 1,
    IMAGE_WIDTH = 2,
    IMAGE_COLORS = 3,
    IMAGE_BYTES = 4,
    HISTOGRAM_MIN = 1,
    HISTOGRAM_MAX = 2,
    HISTOGRAM_COUNT = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SQUARES = 5,
    HISTOGRAM_LIMITS = 6,
    HISTOGRAM_BUCKETS = 7
};

// ---- records ----

// CRC-32C (RFC 3720, B.4), masked as records have it.
static uint32_t checksum(const char *bytes, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void record_write(RtEvents *e, int file, const Text *event) {
    char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (char)((uint64_t)event->length >> 8 * i);
    uint32_t head = checksum(length, sizeof length);
    uint32_t body = checksum(text_string(event), event->length);
    FILE *f = e->file[file];
    if (e->lost != 0)
        return;
    errno = 0;
    if (fwrite(length, 1, 8, f) != 8 || fwrite(&head, 4, 1, f) != 1 ||
        fwrite(text_string(event), 1, event->length, f) != event->length ||
        fwrite(&body, 4, 1, f) != 1 || fflush(f) != 0)
        e->lost = errno != 0 ? errno : EIO;
}

static Text event_begin(Arena *a, int64_t step) {
    struct timespec now;
    Text t = text_new(a);
    clock_gettime(CLOCK_REALTIME, &now);
    proto_double(&t, EVENT_TIME,
                 (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    if (step > 0)
        proto_int(&t, EVENT_STEP, step);
    return t;
}

// ---- files ----

static void file_begin(RtEvents *e, int file, int64_t from) {
    enum { STARTED = 1 };
    Arena *a = arena_new();
    Text t = event_begin(a, 0);
    proto_string(&t, EVENT_VERSION, "brain.Event:2");
    record_write(e, file, &t);
    // TensorBoard hides values from this step on.  The evaluation is repeated.
    if (from >= 0 && from < INT64_MAX) {
        Text start = event_begin(a, from + (file == TRAIN));
        Text session = text_new(a);
        proto_int(&session, SESSION_STATUS, STARTED);
        proto_message(&start, EVENT_SESSION, &session);
        record_write(e, file, &start);
    }
    arena_free(a);
}

static FILE *file_open(const char *folder, const char *name, RtError *e) {
    char *path = rt_path("%s/%s/events.out.tfevents.%010lld.sinter.%d", folder,
                         name, (long long)time(NULL), (int)getpid());
    char *within = rt_path("%s/%s", folder, name);
    FILE *f = NULL;
    if (path == NULL || within == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    else if (rt_make_folder(within, 0777, e) && (f = fopen(path, "wb")) == NULL)
        rt_fail(e, EXIT_IO, "cannot make %s: %s", path, strerror(errno));
    free(within);
    free(path);
    return f;
}

RtEvents *rt_events_open(const char *folder, int64_t from, RtError *e) {
    static const char *const name[] = {"train", "test"};
    RtEvents *events = calloc(1, sizeof *events);
    if (events == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; events != NULL && i < NUM_FILES; i++) {
        events->file[i] = file_open(folder, name[i], e);
        if (events->file[i] == NULL) {
            rt_events_close(events);
            return NULL;
        }
        file_begin(events, i, from);
    }
    return events;
}

bool rt_events_close(RtEvents *e) {
    if (e == NULL)
        return true;
    for (int i = 0; i < NUM_FILES; i++)
        if (e->file[i] != NULL && fclose(e->file[i]) != 0 && e->lost == 0)
            e->lost = errno;
    int lost = e->lost;
    free(e);
    errno = lost;
    return lost == 0;
}

// ---- values ----

static void scalar_add(Text *summary, const char *tag, double value) {
    Text t = text_new(summary->arena);
    if (isnan(value) && strcmp(tag, "loss") != 0)
        return; // not measured
    proto_string(&t, VALUE_TAG, tag);
    proto_float(&t, VALUE_SCALAR, (float)value);
    proto_message(summary, SUMMARY_VALUE, &t);
}

bool rt_events_row(RtEvents *e, const RtTrainer *t, const RtRow *row,
                   double rate) {
    if (e == NULL || e->lost != 0)
        return true;
    Arena *a = arena_new();
    Text event = event_begin(a, row->step), summary = text_new(a);
    bool steps = row->interval;
    scalar_add(&summary, steps ? "step/loss" : "loss",
               row->metric[METRIC_loss]);
    scalar_add(&summary, steps ? "step/accuracy" : "accuracy",
               row->metric[METRIC_accuracy]);
    for (int i = METRIC_top5; i < NUM_METRICS; i++)
        scalar_add(&summary, metric_info[i].name, row->metric[i]);
    for (int i = 0; i < t->num_output_metrics && row->measured != NULL; i++)
        if (rt_metric_has_output(&t->output_metric[i]))
            scalar_add(&summary, t->output_metric[i].name, row->measured[i]);
    if (row->train) {
        scalar_add(&summary, steps ? "step/learning_rate" : "learning_rate",
                   row->lr);
        scalar_add(&summary, "loss_scale", row->scale);
    }
    if (!steps) {
        scalar_add(&summary, "epoch", row->epoch);
        scalar_add(&summary, "samples_per_second", rate);
    }
    proto_message(&event, EVENT_SUMMARY, &summary);
    record_write(e, row->train ? TRAIN : TEST, &event);
    arena_free(a);
    errno = e->lost;
    return e->lost == 0;
}

// Buckets of equal width from the least to the greatest finite number.
static void histogram_add(Text *t, const float *value, int64_t count) {
    enum { BUCKETS = 64 };
    double least = INFINITY, most = -INFINITY, sum = 0, squares = 0,
           limit[BUCKETS];
    double bucket[BUCKETS] = {0}, finite = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(value[i]))
            continue;
        least = fmin(least, value[i]);
        most = fmax(most, value[i]);
        sum += value[i];
        squares += (double)value[i] * value[i];
        finite++;
    }
    if (finite == 0)
        return;
    double width = (most - least) / BUCKETS;
    for (int i = 0; i < BUCKETS; i++)
        limit[i] = i + 1 < BUCKETS ? least + width * (i + 1)
                                   : most + (width > 0 ? 0 : 1e-12);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(value[i]))
            bucket[width > 0
                       ? (int)fmin((value[i] - least) / width, BUCKETS - 1)
                       : BUCKETS - 1]++;
    proto_double(t, HISTOGRAM_MIN, least);
    proto_double(t, HISTOGRAM_MAX, most);
    proto_double(t, HISTOGRAM_COUNT, finite);
    proto_double(t, HISTOGRAM_SUM, sum);
    proto_double(t, HISTOGRAM_SQUARES, squares);
    proto_bytes(t, HISTOGRAM_LIMITS, limit, sizeof limit);
    proto_bytes(t, HISTOGRAM_BUCKETS, bucket, sizeof bucket);
}

void rt_events_histogram(RtEvents *e, const char *name, int64_t step,
                         const float *value, int64_t count) {
    if (e == NULL)
        return;
    Arena *a = arena_new();
    Text event = event_begin(a, step), summary = text_new(a);
    Text tagged = text_new(a), histogram = text_new(a);
    histogram_add(&histogram, value, count);
    proto_string(&tagged, VALUE_TAG, name);
    proto_message(&tagged, VALUE_HISTOGRAM, &histogram);
    proto_message(&summary, SUMMARY_VALUE, &tagged);
    proto_message(&event, EVENT_SUMMARY, &summary);
    record_write(e, TRAIN, &event);
    arena_free(a);
}

void rt_events_image(RtEvents *e, const char *name, int height, int width,
                     int colors, const uint8_t *png, size_t bytes) {
    if (e == NULL)
        return;
    Arena *a = arena_new();
    Text event = event_begin(a, 0), summary = text_new(a);
    Text tagged = text_new(a), image = text_new(a);
    proto_int(&image, IMAGE_HEIGHT, height);
    proto_int(&image, IMAGE_WIDTH, width);
    proto_int(&image, IMAGE_COLORS, colors);
    proto_bytes(&image, IMAGE_BYTES, png, bytes);
    proto_string(&tagged, VALUE_TAG, name);
    proto_message(&tagged, VALUE_IMAGE, &image);
    proto_message(&summary, SUMMARY_VALUE, &tagged);
    proto_message(&event, EVENT_SUMMARY, &summary);
    record_write(e, TRAIN, &event);
    arena_free(a);
}

void rt_events_graph(RtEvents *e, const char *graphs, size_t length,
                     const char *name) {
    if (e == NULL || graphs == NULL)
        return;
    Arena *a = arena_new();
    Text event = event_begin(a, 0), graph = text_new(a);
    if (graph_def_add(&graph, graphs, length, name)) {
        proto_message(&event, EVENT_GRAPH, &graph);
        record_write(e, TRAIN, &event);
    }
    arena_free(a);
}
