// The table of a file's tile kernels, as module.c reads it; compile.c writes a
// TILE_ENTRY for each kernel.

struct ImageKernel {
    const char *name;
    void (*run)(void **argument, int grid);
    int threads, cooperative;
    int num_parameters;
    const int *bytes;
};

static ImageKernel image_row[64];
static int image_rows;

static bool image_add(ImageKernel row) {
    image_row[image_rows++] = row;
    return true;
}

#define TILE_ENTRY(name, ...)                                                  \
    static const int name##_bytes[] = {__VA_ARGS__};                           \
    static const bool name##_added =                                           \
        image_add({#name,                                                      \
                   [](void **argument, int grid) {                             \
                       cuda::tiles::launch(#name, name, argument, grid);       \
                   },                                                          \
                   1, 0, cuda::tiles::parameters(name), name##_bytes});

#define TILE_TABLE                                                             \
    extern "C" const ImageKernel *image_kernels(int *count) {                  \
        *count = image_rows;                                                   \
        return image_row;                                                      \
    }
