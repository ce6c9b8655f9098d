// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Report: the output of a run.  The result goes to stdout, all else to stderr:
// a line for each epoch and evaluation, and on a terminal a progress bar within
// the epoch.  All but the bar also goes to the folder's log.  Metrics are rows
// of JSON in the folder of the run and in the file of --metrics.  If rows go to
// stdout, nothing else does.
#define _DEFAULT_SOURCE // winsize

#include "runtime/report/report.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/terminal.h"
#include "runtime/report/events.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

// A file of metrics.  Losing a row of the user's own file is an error.
typedef struct {
    char *path; // for messages
    FILE *file; // NULL: none
    bool csv;   // not JSON
    long end;   // offset of the end of the last complete row; -1: a pipe
    bool lost;
    int reason;
} Rows;

enum { OF_USER, OF_RUN, NUM_ROWS };

struct RtReport {
    bool quiet, terminal, table;
    bool drawn;       // a progress bar is on the screen
    FILE *result;     // stdout, or stderr if rows go to stdout
    const char *unit; // name of a sample
    const RtTrainer *trainer;
    Rows rows[NUM_ROWS];
    RtEvents *events; // NULL: none
};

// ---- the metrics file ----

// Whether a run that resumes from step `from` will write this row again.  It
// repeats the evaluation of that step.
static bool is_rewritten(const char *row, int64_t from) {
    static const char key[] = "\"step\":";
    bool json = *row == '{';
    const char *field = json ? strstr(row, key) : rt_csv_step(row);
    if (field == NULL || strchr(row, '\n') == NULL)
        return true;
    int64_t step = strtoll(field + (json ? strlen(key) : 0), NULL, 10);
    bool test =
        json ? strstr(row, "\"test\"") != NULL : strncmp(row, "test,", 5) == 0;
    return step > from || (step == from && test);
}

// The end of the rows to keep; rows are ordered by step.
static long end_of_rows(FILE *f, int64_t from) {
    char *row = NULL;
    size_t room = 0;
    long end = 0;
    while (getline(&row, &room, f) > 0 && !is_rewritten(row, from))
        end = ftell(f);
    free(row);
    return end;
}

// A pipe has no earlier rows, and reading it would block.
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

// Removes a partly written row, so that the next one begins a line.
static void truncate_row(Rows *rows) {
    clearerr(rows->file);
    if (rows->end >= 0 && fseek(rows->file, rows->end, SEEK_SET) == 0 &&
        ftruncate(fileno(rows->file), rows->end) != 0)
        clearerr(rows->file); // a device, which has no length
}

// A row that cannot be written is lost; later ones are still tried.
static void end_row(RtReport *r, Rows *rows) {
    if (fflush(rows->file) == 0 && !ferror(rows->file)) {
        rows->end = ftell(rows->file);
        return;
    }
    if (!rows->lost) {
        rows->lost = true;
        rows->reason = errno;
        rt_report_warn(r, "cannot write to %s: %s; training continues",
                       rows->path, rt_output_reason(rows->reason));
    }
    truncate_row(rows);
}

static void write_row(FILE *f, const RtTrainer *t, const RtRow *row) {
    fprintf(f, "{\"split\":\"%s\"",
            row->interval ? "step"
            : row->train  ? "train"
                          : "test");
    json_put_number(f, "epoch", row->epoch);
    fprintf(f, ",\"step\":%lld", (long long)row->step);
    for (int i = 0; i < NUM_METRICS; i++)
        if (i <= METRIC_accuracy || !isnan(row->metric[i]))
            json_put_number(f, metric_info[i].name, row->metric[i]);
    for (int i = 0; i < t->num_output_metrics && row->measured != NULL; i++)
        if (rt_metric_has_output(&t->output_metric[i]) &&
            !isnan(row->measured[i]))
            json_put_number(f, t->output_metric[i].name, row->measured[i]);
    json_put_number(f, "lr", row->lr);
    if (!isnan(row->scale)) {
        json_put_number(f, "loss_scale", row->scale);
        json_put_number(f, "skipped", row->skipped);
    }
    if (!row->interval) {
        json_put_number(f, "samples_per_second", rate(row));
        json_put_number(f, "wait_ms", row->waited * 1e3);
        json_put_number(f, "elapsed", row->elapsed);
    }
    if (row->on != RT_ON_TEST)
        fprintf(f, ",\"on\":\"%s\"",
                row->on == RT_ON_TRAIN ? "train" : "validation");
    fputs(row->stops ? ",\"stops\":true}\n" : "}\n", f);
}

// The confusion matrix in a row of its own, with the IoU of each class, null
// for one that does not occur.
static void write_confusion(FILE *f, const RtRow *row, const RtConfusion *c) {
    int64_t n = c->classes;
    fputs("{\"split\":\"confusion\"", f);
    if (*c->output != '\0')
        fprintf(f, ",\"output\":\"%s\"", c->output);
    json_put_number(f, "epoch", row->epoch);
    fprintf(f, ",\"step\":%lld,\"counts\":[", (long long)row->step);
    for (int64_t i = 0; i < n * n; i++)
        fprintf(f, "%s%.17g%s",
                i % n > 0 ? ","
                : i > 0   ? ",["
                          : "[",
                c->count[i], i % n == n - 1 ? "]" : "");
    fputs("],\"iou_by_class\":[", f);
    for (int64_t k = 0; k < n; k++) {
        double any = -c->count[k * n + k];
        for (int64_t i = 0; i < n; i++)
            any += c->count[k * n + i] + c->count[i * n + k];
        fprintf(f, any > 0 ? "%s%.9g" : "%snull", k > 0 ? "," : "",
                c->count[k * n + k] / any);
    }
    fputs("]}\n", f);
}

// ---- the screen ----

// A message of several lines, printed and logged at once.
typedef struct {
    char *text;
    size_t length;
    FILE *file; // NULL: no memory
} Lines;

static FILE *lines_begin(Lines *l) {
    *l = (Lines){0};
    l->file = open_memstream(&l->text, &l->length);
    return l->file;
}

static void lines_end(Lines *l, FILE *to) {
    if (fclose(l->file) == 0)
        rt_print(to, l->text);
    free(l->text);
}

static void erase_bar(RtReport *r) {
    if (!r->drawn)
        return;
    fputs(rt_wiped(), stderr);
    fflush(stderr); // before any output to stdout
    r->drawn = false;
}

void rt_report_print(RtReport *r, const char *format, ...) {
    va_list list;
    erase_bar(r);
    va_start(list, format);
    rt_print_linev("", format, list);
    va_end(list);
}

void rt_report_warn(RtReport *r, const char *format, ...) {
    va_list list;
    erase_bar(r);
    va_start(list, format);
    rt_warnv(format, list);
    va_end(list);
}

bool rt_metric_has_output(const RtOutputMetric *m) {
    return strchr(m->name, '.') != NULL;
}

static void print_metric(FILE *f, const char *output, int metric,
                         double value) {
    const MetricInfo *m = &metric_info[metric];
    if (isnan(value))
        return;
    fprintf(f, ", %s%s%s ", output, *output != '\0' ? " " : "", m->label);
    if (m->unit == METRIC_SHARE)
        fprintf(f, "%.2f %%", 100 * value);
    else
        fprintf(f, "%.4g", value);
}

// Metrics beside loss and accuracy.
static void print_more(FILE *f, const RtTrainer *t, const RtRow *row) {
    for (int i = METRIC_accuracy + 1; i < NUM_METRICS; i++)
        print_metric(f, "", i, row->metric[i]);
    for (int i = 0; i < t->num_output_metrics && row->measured != NULL; i++)
        if (rt_metric_has_output(&t->output_metric[i]))
            print_metric(f, t->output_metric[i].output,
                         t->output_metric[i].metric, row->measured[i]);
}

static double hundredths(double x) {
    return round(100 * x) / 100;
}

static void print_left(FILE *f, const RtRow *row) {
    char left[DURATION_TEXT];
    if (!isnan(row->left))
        fprintf(f, "  left %s", duration_text(left, row->left));
}

// Steps for a run shorter than an epoch.
static void print_position(FILE *f, const RtRow *row) {
    if (row->epochs < 1)
        fprintf(f, "step %5lld/%-5lld ", (long long)row->step,
                (long long)row->steps);
    else
        fprintf(f, "epoch %4.4g/%-5.4g ", hundredths(row->epoch),
                hundredths(row->epochs));
}

static void print_numbers(FILE *f, const RtRow *row) {
    fprintf(f, "loss %-8.4f", row->metric[METRIC_loss]);
    if (!isnan(row->metric[METRIC_accuracy]))
        fprintf(f, " accuracy %6.2f %%", 100 * row->metric[METRIC_accuracy]);
}

static void print_test(FILE *f, const RtTrainer *t, const RtRow *row) {
    static const char *const evaluated[] = {"   test", "   on train",
                                            "   validation"};
    fprintf(f, "%-16s %s", evaluated[row->on],
            rt_colour(stderr, "\033[1m")); // bold
    if (isnan(row->metric[METRIC_accuracy]))
        fprintf(f, "loss %.4f", row->metric[METRIC_loss]);
    else
        print_numbers(f, row);
    print_more(f, t, row);
    fputs(rt_colour(stderr, "\033[0m"), f);
}

static void print_train(const RtReport *r, FILE *f, const RtRow *row) {
    char elapsed[DURATION_TEXT];
    print_position(f, row);
    print_numbers(f, row);
    fprintf(f, "  lr %-9.4g ", row->lr);
    if (!isnan(row->scale))
        fprintf(f, "loss scale %-8.8g ", row->scale);
    if (row->skipped > 0)
        fprintf(f, "skipped %-4.0f ", row->skipped);
    fprintf(f, "%.*f %s/s  elapsed %s", rt_rate_digits(rate(row)), rate(row),
            r->unit, duration_text(elapsed, row->elapsed));
    print_left(f, row);
}

// ---- the progress bar ----

enum { BAR = 20, MIN_COLUMNS = 20, MAX_COLUMNS = 512 };

static int columns(void) {
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col < MIN_COLUMNS)
        return 80;
    return w.ws_col < MAX_COLUMNS ? w.ws_col : MAX_COLUMNS;
}

// The progress within the epoch.
static void print_bar(FILE *f, const RtRow *row) {
    int done = (int)(fmax(0, fmin(row->within, 1)) * BAR);
    if (row->epochs < 1)
        fprintf(f, "step %lld/%lld [", (long long)row->step,
                (long long)row->steps);
    else
        fprintf(f, "epoch %.0f/%.4g [", ceil(row->epoch),
                hundredths(row->epochs));
    for (int i = 0; i < BAR; i++)
        fputc(i < done ? '=' : i == done ? '>' : ' ', f);
    fprintf(f, "] %2.0f %%", floor(100 * row->within));
}

// One line.  The last column stays empty, as some terminals wrap once it is
// written.
static void draw(RtReport *r, const RtRow *row) {
    char text[MAX_COLUMNS] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    if (f == NULL)
        return;
    print_bar(f, row);
    print_left(f, row);
    fprintf(f, "  loss %.4f", row->metric[METRIC_loss]);
    if (!isnan(row->metric[METRIC_accuracy]))
        fprintf(f, "  accuracy %.2f %%", 100 * row->metric[METRIC_accuracy]);
    fprintf(f, "  %.*f %s/s", rt_rate_digits(rate(row)), rate(row), r->unit);
    fclose(f);
    text[columns() - 1] = '\0';
    fprintf(stderr, "%s%s%s%s", rt_wiped(), rt_colour(stderr, "\033[36m"), text,
            rt_colour(stderr, "\033[0m"));
    fflush(stderr);
    r->drawn = true;
}

void rt_report_progress(RtReport *r, const RtRow *row) {
    if (!r->quiet && r->terminal)
        draw(r, row);
}

void rt_report_row(RtReport *r, const RtRow *row) {
    Lines l;
    for (int i = 0; i < NUM_ROWS; i++) {
        if (r->rows[i].file == NULL)
            continue;
        errno = 0;
        if (r->rows[i].csv)
            rt_csv_row(r->rows[i].file, r->trainer, row, rate(row));
        else
            write_row(r->rows[i].file, r->trainer, row);
        for (int k = 0; k < row->num_confusions && !r->rows[i].csv; k++)
            write_confusion(r->rows[i].file, row, &row->confusion[k]);
        end_row(r, &r->rows[i]);
    }
    if (!rt_events_row(r->events, r->trainer, row, rate(row)))
        rt_report_warn(r, "cannot write event files: %s; training continues",
                       strerror(errno));
    if (r->quiet || row->interval || lines_begin(&l) == NULL)
        return;
    erase_bar(r);
    if (row->train)
        print_train(r, l.file, row);
    else
        print_test(l.file, r->trainer, row);
    fputc('\n', l.file);
    lines_end(&l, stderr);
}

static void print_result(FILE *f, FILE *to, const RtTrainer *t,
                         const RtRow *test) {
    const char *bold = rt_colour(to, "\033[1m");
    const char *plain = rt_colour(to, "\033[0m");
    static const char *const named[] = {"test", "training", "validation"};
    const char *on = named[test->on];
    if (isnan(test->metric[METRIC_accuracy]))
        fprintf(f, "%s%s loss %.4f%s", bold, on, test->metric[METRIC_loss],
                plain);
    else
        fprintf(f, "%s%s accuracy %.2f %%%s, loss %.4f", bold, on,
                100 * test->metric[METRIC_accuracy], plain,
                test->metric[METRIC_loss]);
    print_more(f, t, test);
    fprintf(f, ", %lld sample%s\n", (long long)test->samples,
            test->samples == 1 ? "" : "s");
}

void rt_report_result(RtReport *r, const RtRow *test) {
    Lines l;
    erase_bar(r);
    if (lines_begin(&l) == NULL)
        return;
    print_result(l.file, r->result, r->trainer, test);
    lines_end(&l, r->result);
}

void rt_report_weights(RtReport *r, const char *path, bool after_result) {
    Lines l;
    char shown[RT_MESSAGE_BYTES];
    erase_bar(r);
    if (lines_begin(&l) == NULL)
        return;
    terminal_text(shown, sizeof shown, path);
    fprintf(l.file, "weights in %s\n", shown);
    lines_end(&l, after_result ? r->result : stderr);
}

void rt_report_launch_times(RtReport *r, const RtLaunchTime *launched,
                            int count) {
    Lines l;
    if (r->quiet || count == 0 || lines_begin(&l) == NULL)
        return;
    erase_bar(r);
    rt_launch_times_print(l.file, launched, count);
    lines_end(&l, r->result);
}

void rt_report_budget(RtReport *r, const RtBudget *b) {
    Lines l;
    for (int i = 0; i < NUM_ROWS; i++) {
        if (r->rows[i].file == NULL || r->rows[i].csv)
            continue;
        errno = 0;
        rt_budget_write(r->rows[i].file, b);
        end_row(r, &r->rows[i]);
    }
    if ((r->quiet && !r->table) || lines_begin(&l) == NULL)
        return;
    (r->table ? rt_budget_print : rt_budget_line)(l.file, b, r->unit);
    lines_end(&l, r->result);
}

static double per_second(int64_t count, double seconds) {
    return (double)count / fmax(seconds, 1e-9);
}

static void write_load_stats(FILE *f, const RtLoadStats *l) {
    fprintf(f, "{\"split\":\"load\"");
    json_put_number(f, "epoch", l->epochs);
    fprintf(f, ",\"step\":%lld,\"batches\":%lld,\"samples\":%lld",
            (long long)l->step, (long long)l->batches, (long long)l->samples);
    json_put_number(f, "samples_per_second",
                    per_second(l->samples, l->seconds));
    json_put_number(f, "bytes_per_second", per_second(l->bytes, l->seconds));
    fprintf(f,
            ",\"threads\":%d,\"total\":%.6f,\"loading\":%.6f,"
            "\"start_data\":%.6f}\n",
            l->threads, l->seconds, l->busy, l->opening);
}

// The speed does not include opening the data set.
static void print_load_stats(FILE *f, const RtLoadStats *l) {
    fprintf(f, "%d thread%s worked %.2f s; the data set was opened in %.2f s",
            l->threads, l->threads == 1 ? "" : "s", l->busy, l->opening);
    fprintf(f, l->from_files ? ", with images read from their files\n"
                             : ", with images in memory\n");
}

void rt_report_load_stats(RtReport *r, const RtLoadStats *l) {
    double speed = per_second(l->samples, l->seconds);
    Rows *rows = &r->rows[OF_USER];
    if (rows->file != NULL && !rows->csv) {
        errno = 0;
        write_load_stats(rows->file, l);
        end_row(r, rows);
    }
    fprintf(r->result,
            "loaded %lld sample%s in %lld batch%s of %d in %.2f s: %.*f "
            "%s/s, %.1f MB/s, %d thread%s\n",
            (long long)l->samples, l->samples == 1 ? "" : "s",
            (long long)l->batches, l->batches == 1 ? "" : "es", l->batch,
            l->seconds, rt_rate_digits(speed), speed, r->unit,
            1e-6 * per_second(l->bytes, l->seconds), l->threads,
            l->threads == 1 ? "" : "s");
    if (!r->quiet)
        print_load_stats(r->result, l);
    fflush(r->result);
}

static bool close_result(void) {
    if (rt_output_complete())
        return true;
    rt_print(stderr, "error: cannot write the result to stdout\n");
    return false;
}

static bool rows_close(Rows *rows) {
    if (rows->file != NULL && fclose(rows->file) != 0 && !rows->lost) {
        rows->reason = errno;
        rows->lost = true;
    }
    return !rows->lost;
}

bool rt_report_close(RtReport *r) {
    erase_bar(r);
    bool good = close_result();
    rows_close(&r->rows[OF_RUN]); // a warning has reported a loss
    if (rt_log_lost() != 0)
        rt_warn("lines of log.txt were lost: %s", strerror(rt_log_lost()));
    if (!rows_close(&r->rows[OF_USER])) {
        fprintf(stderr, "error: metrics in %s were lost: %s\n",
                r->rows[OF_USER].path,
                rt_output_reason(r->rows[OF_USER].reason));
        good = false;
    }
    if (!rt_events_close(r->events)) {
        fprintf(stderr, "error: event files were lost: %s\n", strerror(errno));
        good = false;
    }
    free(r->rows[OF_RUN].path);
    free(r->rows[OF_USER].path);
    free(r);
    return good;
}

// The metrics and the log of the run's folder: losing them is a warning.
static void open_own(RtReport *r, const char *folder, int64_t from) {
    Rows *rows = &r->rows[OF_RUN];
    char *log = rt_path("%s/log.txt", folder);
    rows->path = rt_path("%s/metrics.jsonl", folder);
    if (rows->path != NULL && log != NULL) {
        if (!rt_log_open(log))
            rt_warn("cannot open %s: %s", log, strerror(errno));
        rows->file = open_metrics(rows->path, from);
        if (rows->file == NULL)
            rt_warn("cannot open %s: %s", rows->path, strerror(errno));
        else
            rows->end = ftell(rows->file);
    }
    free(log);
}

RtReport *rt_report_open(const RtOptions *o, const char *folder,
                         const char *unit, const RtTrainer *trainer,
                         int64_t from, RtError *e) {
    RtReport *r = calloc(1, sizeof *r);
    Rows *rows = r != NULL ? &r->rows[OF_USER] : NULL;
    if (r == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    r->quiet = o->quiet;
    r->table = o->time;
    r->terminal = *rt_wiped() != '\0';
    r->unit = unit;
    r->trainer = trainer;
    bool stdout_used = rt_is_stdout(o->metrics) || rt_is_stdout(o->times) ||
                       rt_is_stdout(o->profile);
    r->result = stdout_used ? stderr : stdout;
    if (o->metrics != NULL) {
        rows->path = rt_path("%s", rt_rows_name(o->metrics));
        rows->file = rows->path != NULL ? open_metrics(o->metrics, from) : NULL;
        if (rows->file == NULL) {
            rt_fail(e, EXIT_IO, "cannot open %s: %s", rt_rows_name(o->metrics),
                    rt_output_reason(errno));
            free(rows->path);
            free(r);
            return NULL;
        }
        rows->end = ftell(rows->file);
        rows->csv = rt_csv_named(o->metrics);
        if (rows->csv && rows->end <= 0)
            rt_csv_begin(rows->file, trainer);
    }
    if (o->tensorboard != NULL) {
        r->events = rt_events_open(o->tensorboard, from, e);
        if (r->events == NULL) {
            rows_close(rows);
            free(rows->path);
            free(r);
            return NULL;
        }
    }
    if (folder != NULL)
        open_own(r, folder, from);
    return r;
}

RtEvents *rt_report_events(const RtReport *r) {
    return r->events;
}

bool rt_report_histograms(const RtReport *r) {
    return r->events != NULL;
}

void rt_report_histogram(RtReport *r, const char *name, int64_t step,
                         const float *value, int64_t count) {
    rt_events_histogram(r->events, name, step, value, count);
}
