// PNG, by libpng: opened when a data set needs it, so that a trainer that does
// not runs without it.  Whatever a file holds becomes three bytes for each
// pixel, what is transparent over black.

#include "runtime/data/data.h"
#include "runtime/library.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

// clang-format off
#define FUNCTIONS(F) \
    F(int, begin, "png_image_begin_read_from_memory", (png_imagep, png_const_voidp, size_t)) \
    F(int, finish, "png_image_finish_read", (png_imagep, png_const_colorp, void *, png_int_32, void *)) \
    F(void, release, "png_image_free", (png_imagep))
// clang-format on

struct RtPng {
    void *library;
    FUNCTIONS(RT_FUNCTION)
};

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(RtPng, member)},
    FUNCTIONS(F)
#undef F
};

void rt_png_close(RtPng *p) {
    if (p != NULL)
        rt_library_close(p->library);
    free(p);
}

RtPng *rt_png_open(RtError *e) {
    static const char *const files[] = {"libpng16.so.16", NULL};
    const RtLibrary wanted = {.needed = "PNG files need",
                              .files = files,
                              .remedy = "install libpng16-16",
                              .status = EXIT_DATA,
                              .symbol = symbols,
                              .num_symbols = sizeof symbols / sizeof *symbols};
    RtPng *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    p->library = rt_library_open(&wanted, p, e);
    if (p->library != NULL)
        return p;
    rt_png_close(p);
    return NULL;
}

// What the library says, which tells only by its words that memory ran out.
static bool refuse(const png_image *image, RtError *e) {
    bool room = strstr(image->message, "memory") == NULL;
    return rt_fail(e, room ? EXIT_DATA : EXIT_MEMORY, "%s", image->message);
}

static bool read_pixels(const RtPng *p, png_imagep image, RtImage *to,
                        RtError *e) {
    static const png_color black = {0, 0, 0};
    if ((uint64_t)image->width * image->height > RT_MOST_PIXELS)
        return rt_fail(e, EXIT_DATA, "%u x %u pixels are too many",
                       image->width, image->height);
    image->format = PNG_FORMAT_RGB;
    to->h = (int)image->height;
    to->w = (int)image->width;
    to->pixel = malloc((size_t)to->h * (size_t)to->w * 3);
    if (to->pixel == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    return p->finish(image, &black, to->pixel, 0, NULL) != 0 ||
           refuse(image, e);
}

bool rt_png_decode(const RtPng *p, const uint8_t *bytes, size_t length,
                   RtImage *to, RtError *e) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    *to = (RtImage){0};
    if (p->begin(&image, bytes, length) == 0)
        return refuse(&image, e);
    bool good = read_pixels(p, &image, to, e);
    if (!good) {
        p->release(&image);
        free(to->pixel);
        *to = (RtImage){0};
    }
    return good;
}
