// The text between the prelude and the kernels: words with the meaning of CUDA,
// and a table of the kernels.  compile.c writes IMAGE_KERNEL behind each.

// Addresses are those of the plan for CUDA.
#undef HOST_GPU
#define HOST_GPU(host, device) (device)

#ifndef SINTER_MERGED
#define SINTER_MERGED
#define MERGED KERNEL
#define BARRIER() ((void)0)
#endif

// Blocks run one after another, so that all go through a phase before any goes
// on; the kernel itself says which phases it has.
static int image_phase, image_phases;
static inline int image_in_phase(int number) {
    image_phases = number >= image_phases ? number + 1 : image_phases;
    return number == image_phase;
}
#undef PHASE
#define PHASE(number) if (image_in_phase(number))

typedef struct {
    const char *name;
    void (*run)(void **argument, int grid);
    int threads, cooperative;
    int num_parameters;
    const int *bytes;
} ImageKernel;

#ifdef SINTER_SIMT
#define IMAGE_BLOCKS(name, threads)                                            \
    simt_run(name##_call, (char *)argument, NULL, 0, grid, grid, threads)
#else
#define IMAGE_BLOCKS(name, threads)                                            \
    for (gridDim.x = grid, blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)    \
    name##_call((char *)argument, NULL)
#endif

// Defines name##_run of name##_call, which passes the arguments on, and the
// row of the table.
#define IMAGE_KERNEL(name, threads, cooperative, ...)                          \
    static void name##_run(void **argument, int grid) {                        \
        image_phases = 1;                                                      \
        for (image_phase = 0; image_phase < image_phases; image_phase++)       \
            IMAGE_BLOCKS(name, threads);                                       \
    }                                                                          \
    static const int name##_bytes[] = {__VA_ARGS__};                           \
    static const ImageKernel name##_row                                        \
        __attribute__((used, section("image_rows"), aligned(8))) = {           \
            #name,                                                             \
            name##_run,                                                        \
            threads,                                                           \
            cooperative,                                                       \
            sizeof name##_bytes / sizeof name##_bytes[0],                      \
            name##_bytes};

extern const ImageKernel __start_image_rows[] __attribute__((weak));
extern const ImageKernel __stop_image_rows[] __attribute__((weak));
const ImageKernel *image_kernels(int *count);
const ImageKernel *image_kernels(int *count) {
    *count = (int)(__stop_image_rows - __start_image_rows);
    return __start_image_rows;
}
