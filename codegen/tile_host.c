// Tile kernels on the host: their text as it is, and a table of functions that
// run them.  runtime/prelude/tile gives cuda::tiles its meaning there.

#include "codegen/program.h"

static void write_heading(Text *t, DType act) {
    text_add(t,
             "// Tile kernels on the host.\n" EMITTED_LICENCE
             "#define SINTER_ACT %d\n"
             "#include \"runtime/prelude/tile.h\"\n\n"
             "#undef TILE_KERNEL\n"
             "#define TILE_KERNEL(warps) static void\n"
             "#define RUN(kernel) \\\n"
             "    [](void **argument, int grid) { \\\n"
             "        ct::launch(#kernel, kernel, argument, grid); \\\n"
             "    }\n\n",
             act_bits(act));
}

void codegen_host_tiles(const TileTexts *tiles, DType act, Text *t) {
    write_heading(t, act);
    for (int i = 0; i < tiles->count; i++)
        text_add(t, "%s\n", tiles->kernel[i].config[0].text);
    text_add(t, "extern \"C\" const ct::HostTile sinter_tiles[] = {\n");
    for (int i = 0; i < tiles->count; i++) {
        const TileKernel *k = &tiles->kernel[i];
        if (k->config[0].sum_grid > 0)
            text_add(t, "    {RUN(%s), RUN(%s_sums)},\n", k->name, k->name);
        else
            text_add(t, "    {RUN(%s), nullptr},\n", k->name);
    }
    text_add(t, "};\n");
}
