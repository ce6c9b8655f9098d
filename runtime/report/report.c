// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Report: what a run shows and writes down.  The result goes to stdout, the
// course of the run to stderr: one line that is drawn over on a terminal, one
// line for each epoch elsewhere.  Metrics are rows of JSON in a file.  Where
// rows go to stdout, nothing else does.
#define _POSIX_C_SOURCE 200809L

#include "runtime/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct RtReport {
    bool quiet, terminal, colour;
    bool drawn;       // a progress line is on the screen
    FILE *result;     // where it goes
    const char *path; // of the metrics
    FILE *metrics;
    bool lost; // rows that could not be written
    int reason;
};

// ---- the metrics file ----

// Whether a run that goes on from step `from` will write this row again.  It
// repeats the evaluation of that step.
static bool comes_again(const char *row, int64_t from) {
    const char *field = strstr(row, "\"step\":");
    if (field == NULL || strchr(row, '\n') == NULL)
        return true;
    int64_t step = strtoll(field + strlen("\"step\":"), NULL, 10);
    return step > from || (step == from && strstr(row, "\"test\"") != NULL);
}

// Where the rows end that stay.  Rows are in the order of their steps.
static long end_of_rows(FILE *f, int64_t from) {
    char row[2048]; // the longest has half of it
    long end = 0;
    while (fgets(row, sizeof row, f) != NULL && !comes_again(row, from))
        end = ftell(f);
    return end;
}

// A pipe has no rows of before, and reading it would wait for them.
static bool has_rows(const char *path) {
    struct stat s;
    return !rt_is_stdout(path) && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static FILE *open_metrics(const char *path, int64_t from) {
    FILE *f = from < 0 || !has_rows(path) ? NULL : fopen(path, "r+");
    if (f == NULL)
        return rt_rows_open(path);
    long end = end_of_rows(f, from);
    if (end < 0 || ftruncate(fileno(f), end) != 0 ||
        fseek(f, end, SEEK_SET) != 0) {
        fclose(f);
        return NULL;
    }
    return f;
}

static double rate(const RtRow *row) {
    return row->seconds > 0 ? (double)row->samples / row->seconds : 0;
}

// A row is lost where it cannot be written; the next may be written again.
static void end_row(RtReport *r) {
    if (fflush(r->metrics) == 0 && !ferror(r->metrics))
        return;
    if (!r->lost) {
        r->lost = true;
        r->reason = errno;
        rt_report_say(r, "warning: cannot write to %s: %s; training goes on",
                      r->path, rt_output_reason(r->reason));
    }
    clearerr(r->metrics);
}

static void write_row(RtReport *r, const RtRow *row) {
    errno = 0;
    fprintf(r->metrics, "{\"split\":\"%s\"",
            row->part    ? "step"
            : row->train ? "train"
                         : "test");
    rt_json_number(r->metrics, "epoch", row->epoch);
    fprintf(r->metrics, ",\"step\":%lld", (long long)row->step);
    rt_json_number(r->metrics, "loss", row->loss);
    rt_json_number(r->metrics, "accuracy", row->accuracy);
    if (!isnan(row->top5))
        rt_json_number(r->metrics, "top5", row->top5);
    if (!isnan(row->perplexity))
        rt_json_number(r->metrics, "perplexity", row->perplexity);
    rt_json_number(r->metrics, "lr", row->lr);
    if (!isnan(row->scale)) {
        rt_json_number(r->metrics, "loss_scale", row->scale);
        rt_json_number(r->metrics, "skipped", row->skipped);
    }
    if (!row->part) {
        rt_json_number(r->metrics, "samples_per_second", rate(row));
        rt_json_number(r->metrics, "wait_ms", row->waited * 1e3);
    }
    if (row->on != RT_ON_TEST)
        fprintf(r->metrics, ",\"on\":\"%s\"",
                row->on == RT_ON_TRAIN ? "train" : "validation");
    fputs(row->stops ? ",\"stops\":true}\n" : "}\n", r->metrics);
    end_row(r);
}

// ---- the screen ----

static void wipe(RtReport *r) {
    if (!r->drawn)
        return;
    fputs(rt_wiped(), stderr);
    fflush(stderr); // before what stdout is given
    r->drawn = false;
}

void rt_report_say(RtReport *r, const char *format, ...) {
    va_list list;
    wipe(r);
    va_start(list, format);
    rt_sayv("", format, list);
    va_end(list);
}

// What a recipe asked for beside loss and accuracy.
static void print_more(FILE *f, const RtRow *row) {
    if (!isnan(row->top5))
        fprintf(f, ", top-5 %.2f %%", 100 * row->top5);
    if (!isnan(row->perplexity))
        fprintf(f, ", perplexity %.4g", row->perplexity);
}

static double hundredths(double x) {
    return round(100 * x) / 100;
}

// Of a run shorter than an epoch the steps, as a part of one says little.
static void print_place(const RtRow *row) {
    if (row->epochs < 1)
        fprintf(stderr, "step %5lld/%-5lld ", (long long)row->step,
                (long long)row->steps);
    else
        fprintf(stderr, "epoch %4.4g/%-5.4g ", hundredths(row->epoch),
                hundredths(row->epochs));
}

static void print_row(const RtRow *row) {
    static const char *const evaluated[] = {"   test", "   on train",
                                            "   validation"};
    if (row->train)
        print_place(row);
    else
        fprintf(stderr, "%-16s ", evaluated[row->on]);
    fprintf(stderr, "loss %-8.4f", row->loss);
    if (!isnan(row->accuracy))
        fprintf(stderr, " accuracy %6.2f %%", 100 * row->accuracy);
    if (!row->train) {
        print_more(stderr, row);
        return;
    }
    fprintf(stderr, "  lr %-9.4g ", row->lr);
    if (!isnan(row->scale))
        fprintf(stderr, "loss scale %-8.8g ", row->scale);
    if (row->skipped > 0)
        fprintf(stderr, "skipped %-4.0f ", row->skipped);
    fprintf(stderr, "%.*f samples/s", rt_rate_digits(rate(row)), rate(row));
}

void rt_report_progress(RtReport *r, const RtRow *row) {
    if (r->quiet || !r->terminal)
        return;
    RtRow shown = *row;
    shown.epoch = floor(100 * row->epoch) / 100;
    wipe(r);
    print_row(&shown);
    fflush(stderr);
    r->drawn = true;
}

void rt_report_row(RtReport *r, const RtRow *row) {
    if (r->metrics != NULL)
        write_row(r, row);
    if (r->quiet || row->part)
        return;
    wipe(r);
    print_row(row);
    fputc('\n', stderr);
}

void rt_report_result(RtReport *r, const RtRow *test) {
    const char *bold = r->colour ? "\033[1m" : "";
    const char *plain = r->colour ? "\033[0m" : "";
    static const char *const named[] = {"test", "training", "validation"};
    const char *on = named[test->on];
    wipe(r);
    if (isnan(test->accuracy))
        fprintf(r->result, "%s%s loss %.4f%s", bold, on, test->loss, plain);
    else
        fprintf(r->result, "%s%s accuracy %.2f %%%s, loss %.4f", bold, on,
                100 * test->accuracy, plain, test->loss);
    print_more(r->result, test);
    fprintf(r->result, ", %lld sample%s\n", (long long)test->samples,
            test->samples == 1 ? "" : "s");
    fflush(r->result);
}

void rt_report_launched(RtReport *r, const RtLaunched *l, int count) {
    if (r->quiet || count == 0)
        return;
    wipe(r);
    rt_launched_print(r->result, l, count);
}

void rt_report_budget(RtReport *r, const RtBudget *b) {
    if (r->metrics != NULL) {
        errno = 0;
        rt_budget_write(r->metrics, b);
        end_row(r);
    }
    if (!r->quiet)
        rt_budget_print(r->result, b);
}

static double per_second(int64_t count, double seconds) {
    return (double)count / fmax(seconds, 1e-9);
}

static void write_loaded(RtReport *r, const RtLoaded *l) {
    errno = 0;
    fprintf(r->metrics, "{\"split\":\"load\"");
    rt_json_number(r->metrics, "epoch", l->epochs);
    fprintf(r->metrics, ",\"step\":%lld,\"batches\":%lld,\"samples\":%lld",
            (long long)l->step, (long long)l->batches, (long long)l->samples);
    rt_json_number(r->metrics, "samples_per_second",
                   per_second(l->samples, l->seconds));
    rt_json_number(r->metrics, "bytes_per_second",
                   per_second(l->bytes, l->seconds));
    fprintf(r->metrics,
            ",\"threads\":%d,\"total\":%.6f,\"loading\":%.6f,"
            "\"start_data\":%.6f}\n",
            l->threads, l->seconds, l->busy, l->opening);
    end_row(r);
}

// What was read before is not in the time, and so is said beside it.
static void print_loading(FILE *f, const RtLoaded *l) {
    fprintf(f, "%d thread%s worked %.2f s; the data set was opened in %.2f s",
            l->threads, l->threads == 1 ? "" : "s", l->busy, l->opening);
    fprintf(f, l->from_files ? ", images were read from their files\n"
                             : ", images were in memory then\n");
}

void rt_report_loaded(RtReport *r, const RtLoaded *l) {
    double speed = per_second(l->samples, l->seconds);
    if (r->metrics != NULL)
        write_loaded(r, l);
    fprintf(r->result,
            "loaded %lld sample%s in %lld batch%s of %d in %.2f s: %.*f "
            "samples/s, %.1f MB/s, %d thread%s\n",
            (long long)l->samples, l->samples == 1 ? "" : "s",
            (long long)l->batches, l->batches == 1 ? "" : "es", l->batch,
            l->seconds, rt_rate_digits(speed), speed,
            1e-6 * per_second(l->bytes, l->seconds), l->threads,
            l->threads == 1 ? "" : "s");
    if (!r->quiet)
        print_loading(r->result, l);
    fflush(r->result);
}

static bool close_result(void) {
    if (rt_output_whole())
        return true;
    fputs("error: cannot write the result to stdout\n", stderr);
    return false;
}

bool rt_report_close(RtReport *r) {
    wipe(r);
    bool good = close_result();
    bool lost = r->lost;
    if (r->metrics != NULL && fclose(r->metrics) != 0 && !lost) {
        r->reason = errno;
        lost = true;
    }
    if (lost)
        fprintf(stderr, "error: rows of %s were lost: %s\n", r->path,
                rt_output_reason(r->reason));
    free(r);
    return good && !lost;
}

static bool wants_colour(int fd) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && (no == NULL || *no == '\0') && term != NULL &&
           strcmp(term, "dumb") != 0;
}

RtReport *rt_report_open(const RtOptions *o, int64_t from, RtError *e) {
    RtReport *r = calloc(1, sizeof *r);
    if (r == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    r->quiet = o->quiet;
    r->terminal = *rt_wiped() != '\0';
    bool taken = rt_is_stdout(o->metrics) || rt_is_stdout(o->times) ||
                 rt_is_stdout(o->profile);
    r->result = taken ? stderr : stdout;
    r->colour = wants_colour(taken ? STDERR_FILENO : STDOUT_FILENO);
    r->path = rt_rows_name(o->metrics);
    if (o->metrics == NULL)
        return r;
    r->metrics = open_metrics(o->metrics, from);
    if (r->metrics != NULL)
        return r;
    rt_fail(e, EXIT_IO, "cannot open %s: %s", r->path, rt_output_reason(errno));
    free(r);
    return NULL;
}
