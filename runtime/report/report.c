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
    long lost; // rows that could not be written
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

static void put_number(FILE *f, const char *key, double value) {
    if (isfinite(value))
        fprintf(f, ",\"%s\":%.9g", key, value);
    else
        fprintf(f, ",\"%s\":null", key); // JSON has no word for it
}

static double rate(const RtRow *row) {
    return row->seconds > 0 ? (double)row->samples / row->seconds : 0;
}

// Of slow steps a digit more, so that they are not none.
static int rate_digits(double rate) {
    return rate < 9.95 ? 1 : 0;
}

// A row is lost where it cannot be written; the next may be written again.
static void end_row(RtReport *r) {
    if (fflush(r->metrics) == 0 && !ferror(r->metrics))
        return;
    if (r->lost++ == 0) {
        r->reason = errno;
        rt_report_say(r, "warning: cannot write to %s: %s; training goes on",
                      r->path, strerror(errno));
    }
    clearerr(r->metrics);
}

static void write_row(RtReport *r, const RtRow *row) {
    errno = 0;
    fprintf(r->metrics, "{\"split\":\"%s\"",
            row->part    ? "step"
            : row->train ? "train"
                         : "test");
    put_number(r->metrics, "epoch", row->epoch);
    fprintf(r->metrics, ",\"step\":%lld", (long long)row->step);
    put_number(r->metrics, "loss", row->loss);
    put_number(r->metrics, "accuracy", row->accuracy);
    if (!isnan(row->top5))
        put_number(r->metrics, "top5", row->top5);
    if (!isnan(row->perplexity))
        put_number(r->metrics, "perplexity", row->perplexity);
    put_number(r->metrics, "lr", row->lr);
    if (!isnan(row->scale)) {
        put_number(r->metrics, "loss_scale", row->scale);
        put_number(r->metrics, "skipped", row->skipped);
    }
    if (!row->part) {
        put_number(r->metrics, "samples_per_second", rate(row));
        put_number(r->metrics, "wait_ms", row->waited * 1e3);
    }
    if (row->on != RT_ON_TEST)
        fprintf(r->metrics, ",\"on\":\"%s\"",
                row->on == RT_ON_TRAIN ? "train" : "validation");
    fputs(row->stops ? ",\"stops\":true}\n" : "}\n", r->metrics);
    end_row(r);
}

// ---- the screen ----

static void wipe(RtReport *r) {
    if (r->drawn)
        fputs(rt_wiped(), stderr);
    r->drawn = false;
}

void rt_report_say(RtReport *r, const char *format, ...) {
    va_list list;
    wipe(r);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
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
    fprintf(stderr, "%.*f samples/s", rate_digits(rate(row)), rate(row));
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

static void print_launched(FILE *f, const RtLaunched *l, double whole,
                           const char *what) {
    fprintf(f, "%10.1f %6.1f %%  %s", 1e6 * l->seconds / (double)l->times,
            100 * l->seconds / fmax(whole, 1e-9), what);
}

static void print_origin(FILE *f, const RtSpan *s) {
    const char *path = s->launch[s->launches - 1].path;
    char lines[512];
    rt_span_lines(lines, sizeof lines, s);
    fprintf(f, "%s%s%s%s\n", *lines != '\0' ? "  " : "", lines,
            *path != '\0' ? "  " : "", path);
}

void rt_report_launched(RtReport *r, const RtLaunched *l, int count) {
    enum { SHOWN = 10 };
    RtLaunched others = {0};
    double whole = 0;
    char words[32];
    if (r->quiet || count == 0)
        return;
    for (int i = 0; i < count; i++)
        whole += l[i].seconds;
    wipe(r);
    fprintf(r->result, "\n   mean us   share  launches by time\n");
    for (int i = 0; i < count && i < SHOWN; i++) {
        print_launched(r->result, &l[i], whole, l[i].span.name);
        print_origin(r->result, &l[i].span);
    }
    for (int i = SHOWN; i < count; i++) {
        others.seconds += l[i].seconds;
        others.times += l[i].times;
    }
    snprintf(words, sizeof words, "%d other%s\n", count - SHOWN,
             count == SHOWN + 1 ? "" : "s");
    if (count > SHOWN)
        print_launched(r->result, &others, whole, words);
    fputc('\n', r->result);
    fflush(r->result);
}

// The shares of a run add up to its time.  Where the device works beside the
// host, what the host did meanwhile is no part of them: of its waiting for data
// and of copies, only what the device had no work for counts.
typedef struct {
    double idle, waiting, copies, other;
} Shares;

static Shares shares_of(const RtBudget *b) {
    Shares s;
    double working = 0;
    for (int i = 0; i < RT_NUM_WORKS; i++)
        working += b->device.work[i];
    s.idle =
        fmax(0, b->total - b->start - b->evaluation - b->checkpoints - working);
    s.waiting = fmin(b->waiting, s.idle);
    s.copies = fmin(b->copying, s.idle - s.waiting);
    s.other = s.idle - s.waiting - s.copies;
    return s;
}

static const char *const start_name[RT_NUM_STARTS] = {
    [RT_START_DEVICE] = "device",       [RT_START_CONTEXT] = "context",
    [RT_START_LIBRARIES] = "libraries", [RT_START_PLANS] = "plans",
    [RT_START_COMPILING] = "compiling", [RT_START_LOADING] = "loading",
    [RT_START_DATA] = "data",           [RT_START_MEMORY] = "memory",
    [RT_START_IMAGES] = "images",       [RT_START_STATES] = "states",
    [RT_START_LOADERS] = "loaders",
};

// What start went to, without what is nothing in the table's digits.
static void print_start(FILE *f, const RtBudget *b) {
    const char *before = "start:";
    for (int i = 0; i < RT_NUM_STARTS; i++) {
        if (b->started[i] < 0.005)
            continue;
        fprintf(f, "%s %.2f s %s", before, b->started[i], start_name[i]);
        before = ",";
    }
    if (*before == ',')
        fputc('\n', f);
}

// Per second of training.
typedef struct {
    double samples, flops;
    double of_peak; // a share; 0: not known
} Speed;

// Operations of different types are compared by the time that they would take
// at their peaks.
static Speed speed_of(const RtBudget *b) {
    double training = b->total - b->start - b->evaluation - b->checkpoints;
    double seconds = fmax(training, 1e-9), least = 0;
    Speed s = {.samples = b->trained / seconds};
    bool known = true;
    for (int i = 0; i < RT_NUM_FLOATS; i++) {
        if (b->flops[i] == 0)
            continue;
        s.flops += b->flops[i] / seconds;
        known = known && b->peak[i] > 0;
        least += b->flops[i] / fmax(b->peak[i], 1);
    }
    s.of_peak = known ? least / seconds : 0;
    return s;
}

static void print_flops(FILE *f, double flops) {
    static const char *const unit[] = {"M", "G", "T", "P"};
    int i = 0;
    for (flops /= 1e6; flops >= 1000 && i < 3; i++)
        flops /= 1000;
    fprintf(f, "%.4g %sFLOP/s", flops, unit[i]);
}

static void print_speed(FILE *f, const Speed *s) {
    fprintf(f, "%.*f samples/s in training\n", rate_digits(s->samples),
            s->samples);
    if (s->flops == 0)
        return;
    print_flops(f, s->flops);
    fputs(" of library calls in training", f);
    if (s->of_peak > 0) {
        fprintf(f, ", %.3g %% of the GPU's peak, ", 100 * s->of_peak);
        print_flops(f, s->flops / s->of_peak);
    }
    fputc('\n', f);
}

static void print_budget(FILE *f, const RtBudget *b, const Shares *s,
                         const Speed *speed) {
    const struct {
        const char *name;
        double seconds;
    } line[] = {
        {"start", b->start},
        {"waiting for data", s->waiting},
        {"copies", s->copies},
        {"augmentation", b->device.work[RT_AUGMENTATION]},
        {"kernels", b->device.work[RT_KERNELS]},
        {"library calls", b->device.work[RT_CALLS]},
        {"evaluation", b->evaluation},
        {"checkpoints", b->checkpoints},
        {"other", s->other},
        {"total", b->total},
    };
    const double *phase = b->device.phase;
    double phases =
        fmax(phase[RT_FORWARD] + phase[RT_BACKWARD] + phase[RT_UPDATE], 1e-9);
    fprintf(f, "\ntime               seconds   share\n");
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++)
        fprintf(f, "%-16s %9.2f %6.1f %%\n", line[i].name, line[i].seconds,
                100 * line[i].seconds / fmax(b->total, 1e-9));
    fputc('\n', f);
    print_start(f, b);
    fprintf(f, "steps: %.1f %% forward, %.1f %% backward, %.1f %% update\n",
            100 * phase[RT_FORWARD] / phases, 100 * phase[RT_BACKWARD] / phases,
            100 * phase[RT_UPDATE] / phases);
    fprintf(f,
            "loading beside them: %.2f s of %d thread%s; the run waited %.2f s "
            "for it\n",
            b->loading, b->loaders, b->loaders == 1 ? "" : "s", b->waiting);
    if (b->held > 0.005)
        fprintf(f, "the host waited %.2f s for the device\n", b->held);
    if (b->trained > 0) // not where a run was resumed at its end
        print_speed(f, speed);
    fflush(f);
}

static void write_budget(RtReport *r, const RtBudget *b, const Shares *s,
                         const Speed *speed) {
    const struct {
        const char *name;
        double seconds;
    } field[] = {
        {"total", b->total},
        {"start", b->start},
        {"waiting", s->waiting},
        {"copies", s->copies},
        {"augmentation", b->device.work[RT_AUGMENTATION]},
        {"kernels", b->device.work[RT_KERNELS]},
        {"calls", b->device.work[RT_CALLS]},
        {"evaluation", b->evaluation},
        {"checkpoints", b->checkpoints},
        {"other", s->other},
        {"forward", b->device.phase[RT_FORWARD]},
        {"backward", b->device.phase[RT_BACKWARD]},
        {"update", b->device.phase[RT_UPDATE]},
        {"loading", b->loading},
        {"waited_for_data", b->waiting},
        {"waited_for_device", b->held},
    };
    errno = 0;
    fprintf(r->metrics, "{\"split\":\"time\",\"step\":%lld",
            (long long)b->step);
    put_number(r->metrics, "samples_per_second", speed->samples);
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++)
        fprintf(r->metrics, ",\"%s\":%.6f", field[i].name, field[i].seconds);
    if (speed->flops > 0)
        put_number(r->metrics, "flops_per_second", speed->flops);
    if (speed->of_peak > 0)
        put_number(r->metrics, "of_peak", speed->of_peak);
    for (int i = 0; i < RT_NUM_STARTS; i++)
        fprintf(r->metrics, ",\"start_%s\":%.6f", start_name[i], b->started[i]);
    fputs("}\n", r->metrics);
    end_row(r);
}

void rt_report_budget(RtReport *r, const RtBudget *b) {
    Shares s = shares_of(b);
    Speed speed = speed_of(b);
    if (r->metrics != NULL)
        write_budget(r, b, &s, &speed);
    if (!r->quiet)
        print_budget(r->result, b, &s, &speed);
}

static double per_second(int64_t count, double seconds) {
    return (double)count / fmax(seconds, 1e-9);
}

static void write_loaded(RtReport *r, const RtLoaded *l) {
    errno = 0;
    fprintf(r->metrics, "{\"split\":\"load\"");
    put_number(r->metrics, "epoch", l->epochs);
    fprintf(r->metrics, ",\"step\":%lld,\"batches\":%lld,\"samples\":%lld",
            (long long)l->step, (long long)l->batches, (long long)l->samples);
    put_number(r->metrics, "samples_per_second",
               per_second(l->samples, l->seconds));
    put_number(r->metrics, "bytes_per_second",
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
            l->seconds, rate_digits(speed), speed,
            1e-6 * per_second(l->bytes, l->seconds), l->threads,
            l->threads == 1 ? "" : "s");
    if (!r->quiet)
        print_loading(r->result, l);
    fflush(r->result);
}

static bool close_result(void) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fputs("error: cannot write the result to stdout\n", stderr);
    return false;
}

bool rt_report_close(RtReport *r) {
    wipe(r);
    bool good = close_result();
    long lost = r->lost;
    if (r->metrics != NULL && fclose(r->metrics) != 0 && lost == 0) {
        r->reason = errno;
        lost = 1;
    }
    if (lost > 0)
        fprintf(stderr, "error: %ld row%s of %s %s lost: %s\n", lost,
                lost == 1 ? "" : "s", r->path, lost == 1 ? "was" : "were",
                strerror(r->reason));
    free(r);
    return good && lost == 0;
}

static bool wants_colour(FILE *f) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(f)) && (no == NULL || *no == '\0') && term != NULL &&
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
    r->colour = wants_colour(r->result);
    r->path = rt_rows_name(o->metrics);
    if (o->metrics == NULL)
        return r;
    r->metrics = open_metrics(o->metrics, from);
    if (r->metrics != NULL)
        return r;
    rt_fail(e, EXIT_IO, "cannot open %s: %s", r->path, strerror(errno));
    free(r);
    return NULL;
}
