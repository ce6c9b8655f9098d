// Runs: the folder and the options of runs that are measured or compared.
#include "tools/compare/variant.h"

#include <inttypes.h>
#include <string.h>

enum { STEPS = 10 };

const char *runs_data(Arena *a, const Arguments *arguments, int64_t batch,
                      int64_t batches) {
    int64_t samples;
    if (arguments->data != NULL && strcmp(arguments->data, "random") != 0)
        return arguments->data;
    if (batch == 0)
        return "synthetic";
    if (__builtin_mul_overflow(batch, batches, &samples) || samples > INT32_MAX)
        samples = INT32_MAX;
    return arena_format(a, "synthetic:%" PRId64, samples);
}

bool runs_open(Arena *a, const Arguments *arguments, int64_t batch, Runs *out) {
    Scratch scratch;
    if (!scratch_open(a, arguments, &scratch))
        return false;
    *out = (Runs){
        .scratch = scratch,
        .folder = scratch.path,
        .data = runs_data(a, arguments, batch, DRAWN_BATCHES),
        .device = arguments->device ? arguments->device : "host",
        .launcher = arguments->launcher,
        .steps = arguments->steps.given ? arguments->steps.value : STEPS,
        .batch = batch,
    };
    return true;
}

void runs_close(const Runs *runs) {
    scratch_close(&runs->scratch);
}
