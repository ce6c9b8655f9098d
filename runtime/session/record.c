// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Record: the files that describe a run, beside its checkpoints: model.net, the
// model file, tokenizer.json, if its data have one, and settings.json, written at the start and at the end.
//
// A resumed run keeps the model file, options and date of its start.  A failure
// to write them is a warning.
#define _POSIX_C_SOURCE 200809L

#include "base/json.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS "  \"options\": "
#define STARTED "  \"started\": "

// ---- files ----

static bool write_whole(const RtFiles *files, const char *path,
                        const char *text, size_t length) {
    int fd = files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return false;
    bool good = rt_write(files, fd, text, length) && files->sync(fd) == 0;
    return files->close(fd) == 0 && good;
}

// Replaces a file of the run's folder atomically.
static void replace(const RtSession *s, const char *name, const char *text,
                    size_t length) {
    const RtFiles *files = s->run->files;
    char *path = rt_path("%s/%s", s->run->folder, name);
    char *partial = rt_path("%s/.%s.partial", s->run->folder, name);
    if (path == NULL || partial == NULL)
        errno = ENOMEM;
    if (path == NULL || partial == NULL ||
        !write_whole(files, partial, text, length) ||
        files->rename(partial, path) != 0) {
        rt_report_warn(s->report, "cannot write %s in %s: %s", name,
                       s->run->folder, strerror(errno));
        if (partial != NULL)
            files->unlink(partial);
    }
    free(path);
    free(partial);
}

// Creates a copy of a source file, and never overwrites one.
static bool copy_new(const RtFiles *files, const char *path, const char *text) {
    int fd = files->open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        return errno == EEXIST;
    bool good = rt_write(files, fd, text, strlen(text)) && files->sync(fd) == 0;
    good = files->close(fd) == 0 && good;
    if (!good)
        files->unlink(path);
    return good;
}

static void write_source(const RtSession *s, const char *name,
                         const char *text) {
    RtError e;
    char *path = rt_path("%s/%s", s->run->folder, name);
    if (path == NULL)
        return;
    if (!rt_folder_make_above(path, &e))
        rt_report_warn(s->report, "%s", e.text);
    else if (!copy_new(s->run->files, path, text))
        rt_report_warn(s->report, "cannot write %s: %s", path, strerror(errno));
    free(path);
}

// Whether a relative path stays inside its folder.
static bool is_inside(const char *path) {
    for (const char *p = path; p != NULL; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return false;
    }
    return *path != '/';
}

// The model file is model.net.  If it imports others, source/ has all of them
// with their own names and folders, so that imports resolve.
static void write_sources(const RtSession *s) {
    const RtTrainer *t = s->run->trainer;
    if (t->num_sources > 0)
        write_source(s, RT_MODEL_FILE, t->source[0].text);
    if (s->run->data->tokenizer != NULL)
        write_source(s, "tokenizer.json", s->run->data->tokenizer);
    for (int i = 0; t->num_sources > 1 && i < t->num_sources; i++) {
        char *name = rt_path(RT_SOURCE_FOLDER "/%s", t->source[i].name);
        if (name != NULL && is_inside(t->source[i].name))
            write_source(s, name, t->source[i].text);
        free(name);
    }
}

// ---- the files of the run's earlier part ----

// Lines that a resumed run keeps.
enum { FILE_LINE, SET_LINE, OPTIONS_LINE, STARTED_LINE, NUM_LINES };

typedef struct {
    char *line[NUM_LINES]; // without the newline; NULL: none
    double elapsed;
    int64_t resumed; // times resumed; -1: a new run
} Earlier;

static void earlier_free(Earlier *b) {
    for (int i = 0; i < NUM_LINES; i++)
        free(b->line[i]);
}

// O_NONBLOCK: a pipe of that name would wait for its writer.
static FILE *open_own(const RtSession *s, const char *name) {
    RtError ignored;
    size_t bytes;
    char *path = rt_path("%s/%s", s->run->folder, name);
    int fd = path == NULL
                 ? -1
                 : rt_open_sized(s->run->files, path, &bytes, &ignored);
    free(path);
    return fd < 0 ? NULL : fdopen(fd, "r");
}

static void parse_line(Earlier *b, const char *line) {
    static const char *const start[] = {"  \"file\": ", "  \"set\": ", OPTIONS,
                                        STARTED},
                             elapsed[] = "  \"elapsed\": ",
                             resumed[] = "  \"resumed\": ";
    for (int i = 0; i < NUM_LINES; i++)
        if (b->line[i] == NULL &&
            strncmp(line, start[i], strlen(start[i])) == 0)
            b->line[i] = rt_path("%.*s", (int)strcspn(line, "\n"), line);
    if (strncmp(line, elapsed, strlen(elapsed)) == 0)
        b->elapsed = strtod(line + strlen(elapsed), NULL);
    if (strncmp(line, resumed, strlen(resumed)) == 0)
        b->resumed = strtoll(line + strlen(resumed), NULL, 10);
}

// The rows of a killed run have its time.
static void parse_row(Earlier *b, const char *row) {
    static const char elapsed[] = "\"elapsed\":";
    const char *at = strstr(row, elapsed);
    if (at != NULL)
        b->elapsed = fmax(b->elapsed, strtod(at + strlen(elapsed), NULL));
}

static void each_line(const RtSession *s, const char *name, Earlier *b,
                      void (*parse)(Earlier *b, const char *line)) {
    char *line = NULL;
    size_t room = 0;
    FILE *f = open_own(s, name);
    while (f != NULL && getline(&line, &room, f) > 0)
        parse(b, line);
    if (f != NULL)
        fclose(f);
    free(line);
}

static Earlier read_earlier(const RtSession *s) {
    Earlier b = {.resumed = -1};
    each_line(s, RT_SETTINGS, &b, parse_line);
    if (b.resumed >= 0)
        each_line(s, "metrics.jsonl", &b, parse_row);
    return b;
}

// ---- settings.json ----

static void put_text(FILE *f, const char *key, const char *s) {
    fprintf(f, "  \"%s\": ", key);
    json_put_string(f, s != NULL ? s : "");
    fputs(",\n", f);
}

static void put_count(FILE *f, const char *key, int64_t value) {
    fprintf(f, "  \"%s\": %" PRId64 ",\n", key, value);
}

static void put_number(FILE *f, const char *key, double value) {
    if (isfinite(value))
        fprintf(f, "  \"%s\": %.9g,\n", key, value);
}

static void put_now(FILE *f, const char *key) {
    char text[40];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local);
    put_text(f, key, text);
}

static void put_sets(FILE *f, const RtTrainer *t) {
    fputs("  \"set\": {", f);
    for (int i = 0; i < t->num_sets; i++) {
        fputs(i > 0 ? ", " : "", f);
        json_put_string(f, t->set[i].name);
        fputs(": ", f);
        json_put_string(f, t->set[i].text);
    }
    fputs("},\n", f);
}

static void put_words(FILE *f, const RtRun *run) {
    for (int i = 0; i < run->num_words; i++) {
        fputs(i > 0 ? ", " : "[", f);
        json_put_string(f, run->word[i]);
    }
    fputs(run->num_words > 0 ? "],\n" : "[],\n", f);
}

static bool put_saved_line(FILE *f, const char *line) {
    return line != NULL && fprintf(f, "%s\n", line) > 0;
}

// The compiled model and the options of the start.
static void put_start(const RtSession *s, FILE *f) {
    const RtRun *run = s->run;
    const RtTrainer *t = run->trainer;
    const RtOptions *o = run->options;
    Earlier b = read_earlier(s);
    fputs("{\n", f);
    put_count(f, "schema", 1);
    put_text(f, "model", t->model);
    if (!put_saved_line(f, b.line[FILE_LINE]))
        put_text(f, "file", t->file);
    put_text(f, "sinter", t->version);
    if (!put_saved_line(f, b.line[SET_LINE]))
        put_sets(f, t);
    bool resumes = s->resumes > 0 && put_saved_line(f, b.line[OPTIONS_LINE]);
    fputs(resumes ? "  \"resume_options\": " : OPTIONS, f);
    put_words(f, run);
    put_count(f, "seed", s->at.seed);
    put_text(f, "device", s->device->name);
    put_text(f, "device_description", s->device->describe(s->device));
    if (s->device->threads > 0)
        put_count(f, "threads", s->device->threads);
    put_text(f, "data", o->data != NULL ? o->data : t->data_path);
    put_count(f, "training_samples", run->data->train.count);
    put_count(f, "test_samples", run->data->test.count);
    put_count(f, "batch", t->batch);
    put_number(f, "epochs", (double)s->at.steps / (double)s->at.epoch_steps);
    put_count(f, "steps", s->at.steps);
    if (!put_saved_line(f, b.line[STARTED_LINE]))
        put_now(f, "started");
    put_count(f, "resumed", s->resumes);
    earlier_free(&b);
}

static void put_test(FILE *f, const RtTrainer *t, const RtRow *test) {
    static const char *const on[] = {"test", "train", "validation"};
    if (test->samples == 0)
        return;
    put_text(f, "on", on[test->on]);
    for (int i = 0; i < NUM_METRICS; i++)
        put_number(f, metric_info[i].name, test->metric[i]);
    for (int i = 0; i < t->num_output_metrics && test->measured != NULL; i++)
        if (rt_metric_has_output(&t->output_metric[i]))
            put_number(f, t->output_metric[i].name, test->measured[i]);
}

static void put_end(const RtSession *s, FILE *f) {
    char *path =
        s->saved >= 0 ? rt_retention_path(&s->retention, s->saved) : NULL;
    put_number(f, "epochs_done",
               (double)s->at.step / (double)s->at.epoch_steps);
    put_count(f, "steps_done", s->at.step);
    put_test(f, s->run->trainer, &s->test);
    if (path != NULL && access(path, R_OK) == 0)
        put_text(f, "checkpoint", strrchr(path, '/') + 1);
    free(path);
}

static void write_settings(const RtSession *s, const char *state) {
    char *text = NULL;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        return;
    put_start(s, f);
    put_end(s, f);
    put_now(f, "written");
    put_number(f, "elapsed", s->elapsed_before + rt_seconds() - s->run->began);
    fprintf(f, "  \"state\": \"%s\"\n}\n", state);
    if (fclose(f) == 0)
        replace(s, RT_SETTINGS, text, length);
    free(text);
}

void rt_record_begin(RtSession *s) {
    Earlier b = read_earlier(s);
    s->resumes = b.resumed + 1;
    s->elapsed_before = b.elapsed;
    if (b.resumed < 0)
        write_sources(s);
    earlier_free(&b);
    write_settings(s, "running");
}

void rt_record_end(const RtSession *s, const char *state) {
    write_settings(s, state);
}
