// The runtime's declarations of nvJPEG agree with its header: the same numbers,
// and functions with the same arguments, where handles are pointers to us. This
// file only has to compile.
#include <nvjpeg.h>

#include <assert.h>

// As in runtime/cuda/libraries/nvjpeg.c.
typedef struct {
    unsigned long long channel[4];
    size_t pitch[4];
} RtNvjpegImage;

static_assert(sizeof(RtNvjpegImage) == sizeof(nvjpegImage_t), "an image");
static_assert(offsetof(RtNvjpegImage, pitch) == offsetof(nvjpegImage_t, pitch),
              "bytes of a row");

nvjpegStatus_t (*const open_as)(nvjpegHandle_t *) = nvjpegCreateSimple;
nvjpegStatus_t (*const close_as)(nvjpegHandle_t) = nvjpegDestroy;
nvjpegStatus_t (*const state_create_as)(nvjpegHandle_t, nvjpegJpegState_t *) =
    nvjpegJpegStateCreate;
nvjpegStatus_t (*const state_free_as)(nvjpegJpegState_t) =
    nvjpegJpegStateDestroy;
nvjpegStatus_t (*const info_as)(nvjpegHandle_t, const unsigned char *, size_t,
                                int *, nvjpegChromaSubsampling_t *, int *,
                                int *) = nvjpegGetImageInfo;
nvjpegStatus_t (*const decode_as)(nvjpegHandle_t, nvjpegJpegState_t,
                                  const unsigned char *, size_t,
                                  nvjpegOutputFormat_t, nvjpegImage_t *,
                                  cudaStream_t) = nvjpegDecode;

#define NVJPEG(member, function, arguments)                                    \
    typedef int is_##member[sizeof(member##_as == &function) ? 1 : -1];
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/libraries/nvjpeg.def"
