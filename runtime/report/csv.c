// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CSV: rows of metrics with the same columns in each, for spreadsheets.

#include "runtime/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char header[] =
    "split,epoch,step,loss,accuracy,top5,perplexity,lr,loss_scale,skipped,"
    "samples_per_second,wait_ms,elapsed,on,stops\n";

bool rt_csv_named(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".csv") == 0;
}

void rt_csv_begin(FILE *f) {
    fputs(header, f);
}

// An empty field: it is not finite, or the row has none.
static void number_put(FILE *f, bool has, double value) {
    if (has && isfinite(value))
        fprintf(f, ",%.9g", value);
    else
        fputc(',', f);
}

void rt_csv_row(FILE *f, const RtRow *row, double rate) {
    static const char *const on[] = {[RT_ON_TEST] = "",
                                     [RT_ON_TRAIN] = "train",
                                     [RT_ON_VALIDATION] = "validation"};
    bool whole = !row->interval, scales = !isnan(row->scale);
    fputs(row->interval ? "step" : row->train ? "train" : "test", f);
    number_put(f, true, row->epoch);
    fprintf(f, ",%" PRId64, row->step);
    number_put(f, true, row->loss);
    number_put(f, true, row->accuracy);
    number_put(f, true, row->top5);
    number_put(f, true, row->perplexity);
    number_put(f, true, row->lr);
    number_put(f, scales, row->scale);
    number_put(f, scales, row->skipped);
    number_put(f, whole, rate);
    number_put(f, whole, row->waited * 1e3);
    number_put(f, whole, row->elapsed);
    fprintf(f, ",%s,%s\n", on[row->on], row->stops ? "true" : "");
}

const char *rt_csv_step(const char *row) {
    for (int i = 0; i < 2 && row != NULL; i++)
        row = strchr(row, ',') != NULL ? strchr(row, ',') + 1 : NULL;
    return row;
}
