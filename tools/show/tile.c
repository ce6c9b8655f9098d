// Tile: prints the tile kernels of a step.

#include "base/exits.h"
#include "tools/show/inspect.h"
#include <string.h>

static const char legend[] =
    "// a, b, out     operands and result of a contraction\n"
    "// a0, b0, ...   arguments of the kernel that computes a or b, its "
    "prologue\n"
    "// p0, ...       of the kernel that reads out, its epilogue\n"
    "// q0, ...       of the kernel that pools out\n"
    "// partial       partial sums [SLOTS][MB][N], which NAME_sums adds\n"
    "// v1, ...       values, in the order of this text\n\n";

void tiles_find(Arena *a, Inspected *first, const Launches *l,
                const Device *d) {
    const TileModel model = tile_model(d);
    const TileKernel *k = codegen_tile_kernels(l, &(TileModels){&model, 1}, a);
    for (int i = 0; i < l->plan->tiles.count; i++) {
        const TileFusion *f = k[i].fusion;
        Inspected *to = &first[f->call >= 0 ? f->call : f->epilogue];
        to->tile = &k[i];
        to->tile_time = tile_time(l, &k[i], d);
        for (int o = 0; o < TILE_OPERANDS; o++)
            if (f->windows[o] >= 0)
                to->with_windows[o] = tile_time_with_windows(l, &k[i], o, d);
    }
}

const TileConfig *tile_candidate(const TileKernel *k, int i, double *seconds) {
    const TileRanking *r = &k->ranking[0];
    if (i >= r->count)
        return NULL;
    *seconds = r->seconds[i];
    return &k->config[r->config[i]];
}

// The best configuration's text, with a line for it below the first.
static void kernel_add(Text *out, const TileKernel *k, const Device *d) {
    double seconds;
    const TileConfig *c = tile_candidate(k, 0, &seconds);
    size_t first = strcspn(c->text, "\n") + 1;
    text_add(out, "%.*s// %s: %d blocks, %.2f us on %s, estimated\n%s",
             (int)first, c->text, tile_config_text(c, out->arena), c->grid,
             1e6 * seconds, d->name, c->text + first);
}

static const char *why_none(const Show *s, const Inspection *in) {
    const Arguments *by = s->arguments;
    if (in->plan->act == F32)
        return "activations have 32 bits, see precision";
    return by->kernel || by->line.number.given || by->op
               ? "none computes one of these launches"
               : "the step has no contraction that one can compute";
}

int tile_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Device device;
    Inspection in;
    int status;
    if (!device_find(s->a, s->arguments, &device, &status) ||
        !inspect_step(s, &device, &in, &status))
        return status;
    TileTexts shown = {.arena = s->a};
    for (int i = 0; i < in.count; i++) {
        const TileKernel *k = in.launch[i].tile;
        bool chosen = k != NULL && (in.launch[i].chosen ||
                                    (k->fusion->epilogue >= 0 &&
                                     in.launch[k->fusion->epilogue].chosen));
        if (!chosen || tile_equal(shown.kernel, shown.count, k) < shown.count)
            continue;
        ARENA_APPEND(s->a, shown.kernel, shown.count, *k);
        for (; k != NULL; k = k->second) {
            text_add(out, "%s", out->length > 0 ? "\n" : legend);
            kernel_add(out, k, &device);
        }
    }
    if (shown.count == 0)
        text_add(out, "// no tile kernels: %s\n", why_none(s, &in));
    return EXIT_GOOD;
}
