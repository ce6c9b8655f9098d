// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// WebP, by libwebp, opened when a data set needs it.  Transparent pixels are
// over black.  The library takes a whole file and gives a whole image.

#include "runtime/data/decode.h"
#include "runtime/library.h"

#include <stddef.h>
#include <stdlib.h>

// clang-format off
#define FUNCTIONS(F) \
    F(int, info, "WebPGetInfo", (const uint8_t *, size_t, int *, int *)) \
    F(uint8_t *, decode, "WebPDecodeRGBAInto", (const uint8_t *, size_t, uint8_t *, size_t, int))
// clang-format on

struct RtWebp {
    void *library;
    FUNCTIONS(RT_FUNCTION)
};

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(RtWebp, member)},
    FUNCTIONS(F)
#undef F
};

void rt_webp_close(RtWebp *w) {
    if (w != NULL)
        rt_library_close(w->library);
    free(w);
}

RtWebp *rt_webp_open(RtError *e) {
    static const char *const files[] = {"libwebp.so.7", NULL};
    const RtLibrary library = {.needed = "WebP files need",
                               .files = files,
                               .remedy = "install libwebp7",
                               .status = EXIT_DATA,
                               .symbol = symbols,
                               .num_symbols = sizeof symbols / sizeof *symbols};
    RtWebp *w = calloc(1, sizeof *w);
    if (w == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    w->library = rt_library_open(&library, w, e);
    if (w->library != NULL)
        return w;
    rt_webp_close(w);
    return NULL;
}

// ---- one image ----

// Over black, in place of four bytes a pixel.
static void rows_resize(RtDecoding *d, uint8_t *pixel, int h, int w) {
    for (int y = 0; y < h; y++) {
        uint8_t *row = pixel + (size_t)y * (size_t)w * 4;
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++)
                row[3 * x + c] =
                    (uint8_t)((row[4 * x + c] * row[4 * x + 3] + 127) / 255);
        rt_resize_row(d->resize, row);
    }
}

// The most that the library allocates for an image: the arguments of its
// entropy decoder and a frame, four bytes a pixel each.
static size_t bytes_for(size_t pixels, size_t file) {
    enum { FIXED = 1 << 20, RESULT = 4, FRAME = 4, ARGUMENTS = 4 };
    return FIXED + file + pixels * (RESULT + FRAME + ARGUMENTS);
}

static bool decode(const RtWebp *l, RtDecoding *d, const uint8_t *all,
                   size_t bytes, RtError *e) {
    int w, h;
    if (!l->info(all, bytes, &w, &h) || w < 1 || h < 1)
        return rt_fail(e, EXIT_DATA, "its header is damaged");
    size_t pixels = (size_t)w * (size_t)h;
    if (!rt_image_begin(d, (uint32_t)h, (uint32_t)w, e) ||
        !rt_image_reserve(d, h, w, bytes_for(pixels, bytes), e))
        return false;
    uint8_t *pixel = malloc(pixels * 4);
    if (pixel == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    bool good = l->decode(all, bytes, pixel, pixels * 4, w * 4) != NULL;
    if (good)
        rows_resize(d, pixel, h, w);
    free(pixel);
    return good || rt_fail(e, EXIT_DATA, "its pixels are damaged");
}

bool rt_webp_decode(const RtWebp *library, RtDecoding *d, RtError *e) {
    size_t bytes;
    uint8_t *all = rt_image_rest(d, &bytes, e);
    bool good = all != NULL && decode(library, d, all, bytes, e);
    free(all);
    return good;
}
