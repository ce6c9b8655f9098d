// nvJPEG: libjpeg decodes to memory of the device, when the stream gets there.
// It is declared here, as few machines have nvjpeg.h.
#include "tests/runtime/cuda/double/double.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef enum {
    SUCCESS,
    NOT_INITIALIZED,
    INVALID_PARAMETER,
    BAD_JPEG,
    NOT_SUPPORTED,
    EXECUTION_FAILED = 6
} Status;
enum { OUTPUT_RGBI = 5 };

typedef struct {
    int unused;
} *Handle;

// A state has one decoding at a time.
typedef struct {
    bool busy;
} *State;

typedef struct {
    unsigned char *channel[4];
    size_t pitch[4];
} Image;

typedef struct {
    Work work;
    State state;
    const unsigned char *data;
    size_t bytes, pitch;
    unsigned char *to;
} Job;

typedef struct {
    struct jpeg_error_mgr manager;
    jmp_buf back;
} Trap;

static void jump(j_common_ptr common) {
    longjmp(((Trap *)common->err)->back, 1);
}

static void say_nothing(j_common_ptr common, int level) {
    (void)common;
    (void)level;
}

// Decodes to `to`, or only the header; false: libjpeg does not.
static bool decode(const Job *j, int *h, int *w) {
    struct jpeg_decompress_struct jpeg;
    Trap trap;
    jpeg.err = jpeg_std_error(&trap.manager);
    trap.manager.error_exit = jump;
    trap.manager.emit_message = say_nothing;
    bool good = setjmp(trap.back) == 0;
    if (good) {
        jpeg_create_decompress(&jpeg);
        jpeg_mem_src(&jpeg, j->data, j->bytes);
        jpeg_read_header(&jpeg, TRUE);
        *h = (int)jpeg.image_height;
        *w = (int)jpeg.image_width +
             (int)setting_number("SINTER_DOUBLE_JPEG", 0);
        jpeg.out_color_space = JCS_RGB;
        if (j->to != NULL)
            jpeg_start_decompress(&jpeg);
        while (j->to != NULL && jpeg.output_scanline < jpeg.output_height) {
            JSAMPROW row = j->to + jpeg.output_scanline * j->pitch;
            jpeg_read_scanlines(&jpeg, &row, 1);
        }
    }
    jpeg_destroy_decompress(&jpeg);
    return good;
}

static void job_run(Work *w) {
    const Job *j = (Job *)(void *)w;
    int height, width;
    if (!decode(j, &height, &width))
        complain("nvJPEG's file has changed before its stream was waited for");
    j->state->busy = false;
}

Status nvjpegCreateSimple(Handle *to) {
    CALL(Status, " ");
    if (driver_refuses() != CUDA_SUCCESS)
        return NOT_INITIALIZED;
    *to = take(sizeof **to);
    return SUCCESS;
}

Status nvjpegDestroy(Handle handle) {
    CALL(Status, "%p", (void *)handle);
    free(handle);
    return SUCCESS;
}

Status nvjpegJpegStateCreate(Handle handle, State *to) {
    CALL(Status, "%p", (void *)handle);
    if (driver_refuses() != CUDA_SUCCESS)
        return NOT_INITIALIZED;
    *to = take(sizeof **to);
    return SUCCESS;
}

Status nvjpegJpegStateDestroy(State state) {
    CALL(Status, "%p", (void *)state);
    if (state->busy)
        complain("a state of nvJPEG is destroyed while it decodes");
    free(state);
    return SUCCESS;
}

Status nvjpegGetImageInfo(Handle handle, const unsigned char *data,
                          size_t bytes, int *components, int *subsampling,
                          int *width, int *height) {
    CALL(Status, "%p %zu", (void *)handle, bytes);
    Job header = {.data = data, .bytes = bytes};
    if (!decode(&header, &height[0], &width[0]))
        return BAD_JPEG;
    *components = 3;
    *subsampling = 0;
    return SUCCESS;
}

Status nvjpegDecode(Handle handle, State state, const unsigned char *data,
                    size_t bytes, int format, Image *to, CUstream stream) {
    CALL(Status, "%p %p %zu", (void *)handle, (void *)state, bytes);
    Job header = {.data = data, .bytes = bytes};
    int h, w;
    if (driver_refuses() != CUDA_SUCCESS)
        return EXECUTION_FAILED;
    if (format != OUTPUT_RGBI)
        return NOT_SUPPORTED;
    if (state->busy)
        complain("a state of nvJPEG is used by two files at a time");
    if (!decode(&header, &h, &w))
        return BAD_JPEG;
    if (to->pitch[0] < 3 * (size_t)w)
        return INVALID_PARAMETER;
    device_must_hold("an image of nvJPEG", to->channel[0],
                     to->pitch[0] * (size_t)h);
    Job *j = take(sizeof *j);
    *j = (Job){.work = {.users = 1,
                         .what = "an image of nvJPEG",
                         .run = job_run,
                         .seconds = 1e-4},
               .state = state,
               .data = data,
               .bytes = bytes,
               .pitch = to->pitch[0],
               .to = to->channel[0]};
    state->busy = true;
    return stream_add(stream, &j->work) == CUDA_SUCCESS ? SUCCESS
                                                        : EXECUTION_FAILED;
}
