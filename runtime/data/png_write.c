// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PNG files that are written: images, and maps of classes with a palette.

#include "runtime/data/data.h"
#include "runtime/library.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>

// clang-format off
#define FUNCTIONS(F) \
    F(int, write, "png_image_write_to_memory", (png_imagep, void *, png_alloc_size_t *, int, const void *, png_int_32, const void *)) \
    F(void, release, "png_image_free", (png_imagep))
// clang-format on

struct RtPngWriter {
    void *library;
    FUNCTIONS(RT_FUNCTION)
};

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(RtPngWriter, member)},
    FUNCTIONS(F)
#undef F
};

RtPngWriter *rt_png_writer_open(RtError *e) {
    static const char *const files[] = {"libpng16.so.16", NULL};
    const RtLibrary library = {.needed = "PNG files need",
                               .files = files,
                               .remedy = "install libpng16-16",
                               .status = EXIT_IO,
                               .symbol = symbols,
                               .num_symbols = sizeof symbols / sizeof *symbols};
    RtPngWriter *w = calloc(1, sizeof *w);
    if (w == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    w->library = rt_library_open(&library, w, e);
    if (w->library != NULL)
        return w;
    free(w);
    return NULL;
}

void rt_png_writer_close(RtPngWriter *w) {
    if (w != NULL)
        rt_library_close(w->library);
    free(w);
}

// The colours of PASCAL VOC's maps (Everingham et al., VOCdevkit 2012,
// VOClabelcolormap): bits 0, 1 and 2 of a number, then 3, 4 and 5, and so on,
// are the upper bits of red, green and blue.
static void palette_fill(uint8_t palette[256][3]) {
    for (int class = 0; class < 256; class ++)
        for (int channel = 0; channel < 3; channel++) {
            palette[class][channel] = 0;
            for (int bit = 0; bit < 3; bit++)
                palette[class][channel] |=
                    (uint8_t)((class >> (3 * bit + channel) & 1) << (7 - bit));
        }
}

bool rt_png_encode(const RtPngWriter *w, const RtPicture *from, uint8_t **bytes,
                   size_t *length, RtError *e) {
    uint8_t palette[256][3];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)from->width,
                       .height = (png_uint_32)from->height,
                       .format = from->is_map          ? PNG_FORMAT_RGB_COLORMAP
                                 : from->channels == 1 ? PNG_FORMAT_GRAY
                                                       : PNG_FORMAT_RGB,
                       .colormap_entries = from->is_map ? 256 : 0};
    palette_fill(palette);
    png_alloc_size_t room = 0;
    *bytes = NULL;
    bool good = w->write(&image, NULL, &room, 0, from->pixel, 0, palette) != 0;
    if (good && (*bytes = malloc(room)) == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good &&
           w->write(&image, *bytes, &room, 0, from->pixel, 0, palette) != 0;
    w->release(&image);
    *length = room;
    if (good)
        return true;
    free(*bytes);
    *bytes = NULL;
    return rt_fail(e, EXIT_IO, "libpng: %s", image.message);
}
