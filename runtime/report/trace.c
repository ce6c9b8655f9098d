// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trace: spans in an array, written in the trace event format.
#define _POSIX_C_SOURCE 200809L

#include "runtime/report/trace.h"
#include "base/json.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SPANS = 1 << 17, PROCESS = 1 };

struct RtTrace {
    const char *path; // from the options
    FILE *file;
    pthread_mutex_t lock; // guards the following
    bool on;
    double since; // start of the trace
    RtSpan *span;
    int count;
    long dropped;
};

RtTrace *rt_trace_new(const char *path) {
    RtTrace *t = calloc(1, sizeof *t);
    if (t != NULL)
        t->span = calloc(MAX_SPANS, sizeof *t->span);
    if (t == NULL || t->span == NULL) {
        free(t);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    t->path = path;
    return t;
}

bool rt_trace_open(RtTrace *t, RtError *e) {
    t->file = rt_rows_open(t->path);
    return t->file != NULL ||
           rt_fail(e, EXIT_IO, "cannot open %s: %s", rt_rows_name(t->path),
                   rt_output_reason(errno));
}

void rt_trace_close(RtTrace *t) {
    if (t == NULL)
        return;
    if (t->file != NULL)
        fclose(t->file);
    pthread_mutex_destroy(&t->lock);
    free(t->span);
    free(t);
}

void rt_trace_begin(RtTrace *t) {
    pthread_mutex_lock(&t->lock);
    t->on = true;
    t->since = rt_seconds();
    pthread_mutex_unlock(&t->lock);
}

void rt_trace_end(RtTrace *t) {
    pthread_mutex_lock(&t->lock);
    t->on = false;
    pthread_mutex_unlock(&t->lock);
}

void rt_trace_add(RtTrace *t, const RtSpan *span) {
    pthread_mutex_lock(&t->lock);
    if (t->on && span->begin >= t->since) {
        if (t->count < MAX_SPANS)
            t->span[t->count++] = *span;
        else
            t->dropped++;
    }
    pthread_mutex_unlock(&t->lock);
}

const RtSpan *rt_trace_spans(const RtTrace *t, int *count) {
    *count = t->count;
    return t->span;
}

void rt_span_lines(char *to, size_t room, const RtSpan *s) {
    size_t at = 0;
    *to = '\0';
    for (int i = 0; i < s->launches && at < room; i++)
        if (i == 0 || strcmp(s->launch[i].lines, s->launch[i - 1].lines) != 0)
            at += (size_t)snprintf(to + at, room - at, "%s%s", i ? " " : "",
                                   s->launch[i].lines);
}

// ---- the file ----

// From 1 on: Perfetto gives the spans of thread 0 to the thread that has the
// number of its process.
static int thread_of(int track) {
    return track + 1;
}

static void put_name(FILE *f, const char *what, int track, const char *name) {
    fprintf(f,
            "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\","
            "\"args\":{\"name\":",
            PROCESS, thread_of(track), what);
    json_put_string(f, name);
    fputs("}}", f);
}

static const char *track_name(char *to, size_t room, int track) {
    static const char *const name[] = {[RT_TRACK_RUN] = "run",
                                       [RT_TRACK_COPIES] = "copies",
                                       [RT_TRACK_KERNELS] = "kernels",
                                       [RT_TRACK_CALLS] = "library calls"};
    if (track < RT_TRACK_LOADERS)
        return name[track];
    snprintf(to, room, "loader %d", track - RT_TRACK_LOADERS);
    return to;
}

// Spans are ordered by track.
static void put_tracks(const RtTrace *t) {
    char name[32];
    int last = -1;
    for (int i = 0; i < t->count; i++) {
        int track = t->span[i].track;
        if (track == last)
            continue;
        last = track;
        fputs(",\n", t->file);
        put_name(t->file, "thread_name", track,
                 track_name(name, sizeof name, track));
        fprintf(t->file,
                ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                "\"name\":\"thread_sort_index\","
                "\"args\":{\"sort_index\":%d}}",
                PROCESS, thread_of(track), track);
    }
}

static void put_origin(FILE *f, const RtSpan *s) {
    char lines[512];
    rt_span_lines(lines, sizeof lines, s);
    fputs("\"lines\":", f);
    json_put_string(f, lines);
    fputs(",\"layer\":", f);
    json_put_string(f, s->launch[s->launches - 1].path);
}

// The name has the first line of the model, if any.
static void put_span(const RtTrace *t, const RtSpan *s) {
    FILE *f = t->file;
    char name[256];
    bool known = s->launches > 0 && *s->launch[0].lines != '\0';
    snprintf(name, sizeof name, "%s%s%.*s", s->name, known ? " " : "",
             known ? (int)strcspn(s->launch[0].lines, ", ") : 0,
             known ? s->launch[0].lines : "");
    fprintf(f, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":", PROCESS,
            thread_of(s->track));
    json_put_string(f, name);
    fprintf(f, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
            1e6 * (s->begin - t->since), 1e6 * (s->end - s->begin));
    if (s->launches > 0)
        put_origin(f, s);
    if (s->number >= 0)
        fprintf(f, "%s\"number\":%lld", s->launches > 0 ? "," : "",
                (long long)s->number);
    fputs("}}", f);
}

// By track and begin; a span comes after the one that contains it.
static int span_order(const void *a, const void *b) {
    const RtSpan *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end < y->end) - (x->end > y->end);
}

bool rt_trace_write(RtTrace *t, const char *title, const char *note,
                    RtError *e) {
    FILE *f = t->file;
    errno = 0;
    qsort(t->span, (size_t)t->count, sizeof *t->span, span_order);
    fputs("{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"note\":", f);
    json_put_string(f, note);
    fprintf(f, ",\"left_out\":%ld},\n\"traceEvents\":[\n", t->dropped);
    put_name(f, "process_name", RT_TRACK_RUN, title);
    put_tracks(t);
    for (int i = 0; i < t->count; i++)
        put_span(t, &t->span[i]);
    fputs("]}\n", f);
    bool good = fflush(f) == 0 && !ferror(f);
    int error = errno;
    good = fclose(f) == 0 && good;
    t->file = NULL;
    return good ||
           rt_fail(e, EXIT_IO, "cannot write %s: %s", rt_rows_name(t->path),
                   rt_output_reason(error != 0 ? error : errno));
}

void rt_trace_abandon(RtTrace *t, const char *title, const char *why) {
    RtError e;
    if (t == NULL || t->file == NULL)
        return;
    rt_trace_end(t);
    if (!rt_trace_write(t, title, why, &e))
        rt_warn("%s", e.text);
}
