// Warps: counts of a kernel over all of its launches, as a line of a file, a
// line with its instructions by kind, and a line for each access that takes
// more than its bytes need:
//
//   NAME launches N instructions N lanes N sectors N N turns N N
//     kinds float N special N integer N select N convert N memory N exchange N
//         branch N move N
//     INSTRUCTION sectors N N turns N N
//
// The second of two numbers is the least possible.
#include "tests/runtime/cuda/double/double.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct Warps {
    int launches;
    PtxCount count[];
};

static const char *file_asked_for(void) {
    return getenv("SINTER_DOUBLE_WARPS");
}

Warps *warps_new(const PtxKernel *k) {
    Warps *w = NULL;
    if (file_asked_for() != NULL)
        w = take(sizeof *w + (size_t)k->instructions * sizeof *w->count);
    return w;
}

void warps_run(Warps *w, const PtxKernel *k, void **argument, int grid) {
    w->launches++;
    ptx_run_counted(k, argument, grid, k->threads, w->count);
}

static void count_write(FILE *f, const PtxCount *c) {
    fprintf(f,
            " sectors %" PRIu64 " %" PRIu64 " turns %" PRIu64 " %" PRIu64 "\n",
            c->sectors, c->least_sectors, c->turns, c->least_turns);
}

static PtxCount sum_of(const PtxCount *count, int instructions) {
    PtxCount sum = {0};
    for (const PtxCount *c = count; c < count + instructions; c++) {
        sum.warps += c->warps;
        sum.lanes += c->lanes;
        sum.sectors += c->sectors;
        sum.least_sectors += c->least_sectors;
        sum.turns += c->turns;
        sum.least_turns += c->least_turns;
    }
    return sum;
}

static void kinds_write(FILE *f, const PtxKernel *k, const PtxCount *count) {
    static const char *const names[NUM_PTX_KINDS] = {
        "float",  "special",  "integer", "select", "convert",
        "memory", "exchange", "branch",  "move"};
    uint64_t sum[NUM_PTX_KINDS] = {0};
    for (int i = 0; i < k->instructions; i++)
        sum[ptx_kind(k, i)] += count[i].warps;
    fprintf(f, "  kinds");
    for (int i = 0; i < NUM_PTX_KINDS; i++)
        fprintf(f, " %s %" PRIu64, names[i], sum[i]);
    fprintf(f, "\n");
}

static void accesses_write(FILE *f, const PtxModule *m, const PtxKernel *k,
                           const PtxCount *count) {
    for (int i = 0; i < k->instructions; i++) {
        const PtxCount *c = &count[i];
        int length;
        if (c->sectors == c->least_sectors && c->turns == c->least_turns)
            continue;
        const char *line = ptx_line(m, k, i, &length);
        fprintf(f, "  %.*s", length, line);
        count_write(f, c);
    }
}

void warps_end(Warps *w, const PtxModule *m, const PtxKernel *k) {
    FILE *f = fopen(file_asked_for(), "a");
    if (f == NULL)
        complain("cannot write %s", file_asked_for());
    PtxCount sum = sum_of(w->count, k->instructions);
    if (w->launches > 0) {
        fprintf(f, "%s launches %d instructions %" PRIu64 " lanes %" PRIu64,
                k->name, w->launches, sum.warps, sum.lanes);
        count_write(f, &sum);
        kinds_write(f, k, w->count);
        accesses_write(f, m, k, w->count);
    }
    if (fclose(f) != 0)
        complain("cannot write %s", file_asked_for());
    free(w);
}
