// sinter runs: lists the runs in a folder.
#define _POSIX_C_SOURCE 200809L

#include "tools/runs/runs.h"

#include "base/duration.h"
#include "base/exits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *date_shown(Arena *a, const char *started) {
    enum { MINUTES = 16 }; // of 2026-11-23T14:30:01+0100
    if (strlen(started) < MINUTES)
        return started;
    return arena_format(a, "%.10s %.5s", started, started + 11);
}

static const char *bytes_shown(Arena *a, int64_t bytes) {
    const double kib = 1 << 10, mib = 1 << 20, size = (double)bytes;
    return size < 9.95 * mib ? arena_format(a, "%.0f KiB", ceil(size / kib))
                             : arena_format(a, "%.0f MiB", ceil(size / mib));
}

const char *number_shown(Arena *a, const char *format, double value) {
    const char *const shown = "-";
    if (isnan(value))
        return shown;
    char text[40];
    snprintf(text, sizeof text, "%.*f", *format - '0', value);
    return arena_format(a, "%s%s", text, format + 1);
}

const char *time_shown(Arena *a, double seconds) {
    if (!(seconds >= 0 && seconds < 1e15))
        return "-";
    return duration_text(arena_alloc(a, DURATION_TEXT), seconds);
}

const char *epochs_shown(Arena *a, const RunRecord *r) {
    return arena_format(a, "%.3g/%.4g",
                        isnan(r->epochs_done) ? 0 : r->epochs_done, r->epochs);
}

static void runs_print(Arena *a, Text *t, const RunList *runs) {
    int width = (int)strlen("run");
    for (int i = 0; i < runs->count; i++) {
        int length = (int)strlen(runs->run[i].name);
        width = length > width ? length : width;
    }
    text_add(t, "%-*s  %-16s  %9s  %9s  %8s  %8s  %9s  %-11s  %s\n", width,
             "run", "started", "epochs", "accuracy", "loss", "elapsed", "size",
             "state", "settings");
    for (int i = 0; i < runs->count; i++) {
        const RunRecord *r = &runs->run[i];
        text_add(t, "%-*s  %-16s  %9s  %9s  %8s  %8s  %9s  %-11s  %s\n", width,
                 r->name, date_shown(a, r->started), epochs_shown(a, r),
                 number_shown(a, "2 %", 100 * r->accuracy),
                 number_shown(a, "4", r->loss), time_shown(a, r->elapsed),
                 bytes_shown(a, r->bytes), r->state, r->settings);
    }
}

static void run_json(Text *t, const RunRecord *r) {
    text_add(t, "{\"run\": ");
    json_string(t, r->path);
    json_count(t, "bytes", r->bytes);
    json_text(t, "state", r->state);
    json_number(t, "epochs_done", r->epochs_done);
    json_number(t, "loss", r->loss);
    json_number(t, "accuracy", r->accuracy);
    json_number(t, "elapsed", r->elapsed);
    text_add(t, ", \"settings\": %s}", r->text);
}

void runs_json(Text *t, const RunList *runs) {
    text_add(t, "{\"schema\": 1, \"runs\": [");
    for (int i = 0; i < runs->count; i++) {
        text_add(t, i > 0 ? ",\n" : "\n");
        run_json(t, &runs->run[i]);
    }
    text_add(t, "]}\n");
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const RunRecord *)a)->name, ((const RunRecord *)b)->name);
}

static int runs_list(Arena *a, const Arguments *arguments, const char *folder) {
    Text t = text_new(a);
    RunList runs = {0};
    struct stat s;
    if (stat(folder, &s) != 0 && errno == ENOENT &&
        arguments->num_operands == 0) {
        complain(arguments, "there is no folder runs here: sinter train makes "
                            "it, and sinter runs DIR lists another");
        return EXIT_DATA;
    }
    if (stat(folder, &s) != 0)
        return io_failed(arguments, folder);
    runs_find(a, folder, folder, 0, &runs);
    if (runs.count == 0) {
        complain(arguments, "%s holds no run", folder);
        return EXIT_DATA;
    }
    qsort(runs.run, (size_t)runs.count, sizeof *runs.run, by_name);
    if (arguments->json)
        runs_json(&t, &runs);
    else
        runs_print(a, &t, &runs);
    lines_print(&t);
    return EXIT_GOOD;
}

int runs_command(Arena *a, const Arguments *arguments) {
    if (arguments->num_operands == 2)
        return runs_compare(a, arguments);
    return runs_list(a, arguments,
                     arguments->num_operands > 0
                         ? run_path(a, arguments->operand[0])
                         : "runs");
}
