// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Budget: the time of a run by parts, as a line, a table and a row.

#include "base/json.h"
#include "runtime/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int rt_rate_digits(double rate) {
    return rate < 9.95 ? 1 : 0;
}

// Shares of the total time.  If the device works in parallel with the host,
// host time counts only while the device is idle: waiting for data, copies and
// waiting for ranks.
typedef struct {
    double idle, waiting, copies, ranks, other;
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
    s.ranks = fmin(b->ranks, s.idle - s.waiting - s.copies);
    s.other = s.idle - s.waiting - s.copies - s.ranks;
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

// The parts of the start, without those that round to 0.00.
static void print_start(FILE *f, const RtBudget *b) {
    const char *before = "start:";
    for (int i = 0; i < RT_NUM_STARTS; i++) {
        if (b->start_part[i] < 0.005)
            continue;
        fprintf(f, "%s %.2f s %s", before, b->start_part[i], start_name[i]);
        before = ",";
    }
    if (*before == ',')
        fputc('\n', f);
}

// Rates in training.
typedef struct {
    double samples, flops;
    double of_peak; // share of the peak; 0: unknown
} Speed;

// Operations of different types are weighted by their time at peak.
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

static void print_speed(FILE *f, const Speed *s, const char *unit) {
    fprintf(f, "%.*f %s/s in training\n", rt_rate_digits(s->samples),
            s->samples, unit);
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

enum { NUM_LINES = 11, WAITING = 1, TOTAL = NUM_LINES - 1 };

typedef struct {
    const char *name;
    double seconds;
} TimeLine;

static void lines_of(const RtBudget *b, TimeLine to[NUM_LINES]) {
    const Shares s = shares_of(b);
    const TimeLine line[NUM_LINES] = {
        {"start", b->start},
        {"waiting for data", s.waiting},
        {"copies", s.copies},
        {"waiting for ranks", s.ranks},
        {"augmentation", b->device.work[RT_AUGMENTATION]},
        {"kernels", b->device.work[RT_KERNELS]},
        {"library calls", b->device.work[RT_CALLS]},
        {"evaluation", b->evaluation},
        {"checkpoints", b->checkpoints},
        {"other", s.other},
        {"total", b->total},
    };
    memcpy(to, line, sizeof line);
}

static int longest_first(const void *a, const void *b) {
    double x = ((const TimeLine *)a)->seconds,
           y = ((const TimeLine *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

// The largest parts, and always the time that the device waited for data.
void rt_budget_line(FILE *f, const RtBudget *b, const char *unit) {
    enum { SHOWN = 3 };
    TimeLine line[NUM_LINES];
    lines_of(b, line);
    double waiting = line[WAITING].seconds, total = fmax(b->total, 1e-9);
    line[WAITING].seconds = -1;
    qsort(line, TOTAL, sizeof *line, longest_first);
    fprintf(f, "time: %.1f s", b->total);
    for (int i = 0; i < SHOWN; i++)
        if (line[i].seconds >= 0.005 * total)
            fprintf(f, ", %.0f %% %s", 100 * line[i].seconds / total,
                    line[i].name);
    fprintf(f, ", %.1f %% waiting for data", 100 * waiting / total);
    if (b->trained > 0) {
        double rate = speed_of(b).samples;
        fprintf(f, "; %.*f %s/s in training", rt_rate_digits(rate), rate, unit);
    }
    fputc('\n', f);
}

void rt_budget_print(FILE *f, const RtBudget *b, const char *unit) {
    const Speed speed = speed_of(b);
    TimeLine line[NUM_LINES];
    lines_of(b, line);
    const double *phase = b->device.phase;
    double phases =
        fmax(phase[RT_FORWARD] + phase[RT_BACKWARD] + phase[RT_UPDATE], 1e-9);
    fprintf(f, "\ntime                seconds   share\n");
    for (int i = 0; i < NUM_LINES; i++)
        fprintf(f, "%-17s %9.2f %6.1f %%\n", line[i].name, line[i].seconds,
                100 * line[i].seconds / fmax(b->total, 1e-9));
    fputc('\n', f);
    print_start(f, b);
    fprintf(f, "steps: %.1f %% forward, %.1f %% backward, %.1f %% update\n",
            100 * phase[RT_FORWARD] / phases, 100 * phase[RT_BACKWARD] / phases,
            100 * phase[RT_UPDATE] / phases);
    fprintf(f,
            "loading data: %.2f s in %d thread%s; the run waited %.2f s for "
            "data\n",
            b->loading, b->loaders, b->loaders == 1 ? "" : "s", b->waiting);
    if (b->device_wait > 0.005)
        fprintf(f, "the host waited %.2f s for the device\n", b->device_wait);
    if (b->trained > 0) // not if a run was resumed at its end
        print_speed(f, &speed, unit);
}

void rt_budget_write(FILE *f, const RtBudget *b) {
    const Shares s = shares_of(b);
    const Speed speed = speed_of(b);
    const struct {
        const char *name;
        double seconds;
    } field[] = {
        {"total", b->total},
        {"start", b->start},
        {"waiting", s.waiting},
        {"copies", s.copies},
        {"ranks", s.ranks},
        {"augmentation", b->device.work[RT_AUGMENTATION]},
        {"kernels", b->device.work[RT_KERNELS]},
        {"calls", b->device.work[RT_CALLS]},
        {"evaluation", b->evaluation},
        {"checkpoints", b->checkpoints},
        {"other", s.other},
        {"forward", b->device.phase[RT_FORWARD]},
        {"backward", b->device.phase[RT_BACKWARD]},
        {"update", b->device.phase[RT_UPDATE]},
        {"loading", b->loading},
        {"waited_for_data", b->waiting},
        {"waited_for_device", b->device_wait},
    };
    fprintf(f, "{\"split\":\"time\",\"step\":%lld", (long long)b->step);
    json_put_number(f, "samples_per_second", speed.samples);
    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++)
        fprintf(f, ",\"%s\":%.6f", field[i].name, field[i].seconds);
    if (speed.flops > 0)
        json_put_number(f, "flops_per_second", speed.flops);
    if (speed.of_peak > 0)
        json_put_number(f, "of_peak", speed.of_peak);
    for (int i = 0; i < RT_NUM_STARTS; i++)
        fprintf(f, ",\"start_%s\":%.6f", start_name[i], b->start_part[i]);
    fputs("}\n", f);
}
