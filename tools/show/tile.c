// Tile: prints the tile kernels of a step.
#include "tools/tile.h"
#include "base/exits.h"
#include "tools/show/inspect.h"

static const char legend[] =
    "// a, b, out     operands and result of a contraction\n"
    "// a0, b0, ...   arguments of the kernel that computes a or b\n"
    "// p0, ...       of the kernel that reads out, in its order\n"
    "// v1, ...       values, in the order of this text\n\n";

int tile_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Device device;
    Inspection in;
    int status;
    if (!device_find(s->a, s->arguments, &device, &status) ||
        !inspect_step(s, &device, &in, &status))
        return status;
    const Launches *l = &in.launches[in.step - in.plan->step];
    const TileModel model = tile_model(&device);
    const TileKernel *k =
        codegen_tile_kernels(l, &(TileModels){&model, 1}, s->a);
    for (int i = 0; i < l->plan->tiles.count; i++) {
        const TileFusion *f = k[i].fusion;
        bool chosen = (f->call >= 0 && in.launch[f->call].chosen) ||
                      (f->kernel >= 0 && in.launch[f->kernel].chosen);
        if (chosen && tile_equal(k, i, &k[i]) == i)
            for (const TileKernel *one = &k[i]; one != NULL; one = one->second)
                text_add(out, "%s%s", out->length > 0 ? "\n" : legend,
                         one->config[one->ranking[0].config[0]].text);
    }
    return EXIT_GOOD;
}
