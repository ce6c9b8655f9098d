// PNG, by libpng: opened when a data set needs it, so that a trainer that does
// not runs without it.  Whatever a file holds becomes three bytes for each
// pixel, what is transparent over black.

#include "runtime/runtime.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <png.h>

struct RtPng {
    void *library;
    int (*begin)(png_imagep, png_const_voidp, size_t);
    int (*finish)(png_imagep, png_const_colorp, void *, png_int_32, void *);
    void (*release)(png_imagep);
};

static bool find(const RtPng *p, const char *name, void *to) {
    *(void **)to = dlsym(p->library, name);
    return *(void **)to != NULL;
}

void rt_png_close(RtPng *p) {
    if (p != NULL && p->library != NULL)
        dlclose(p->library);
    free(p);
}

RtPng *rt_png_open(RtError *e) {
    RtPng *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    p->library = dlopen("libpng16.so.16", RTLD_NOW | RTLD_LOCAL);
    if (p->library != NULL &&
        find(p, "png_image_begin_read_from_memory", &p->begin) &&
        find(p, "png_image_finish_read", &p->finish) &&
        find(p, "png_image_free", &p->release))
        return p;
    rt_fail(e, EXIT_DATA,
            "PNG files need libpng16.so.16, which is not installed (Debian: "
            "libpng16-16)");
    rt_png_close(p);
    return NULL;
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
           rt_fail(e, EXIT_DATA, "%s", image->message);
}

bool rt_png_decode(const RtPng *p, const uint8_t *bytes, size_t length,
                   RtImage *to, RtError *e) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    *to = (RtImage){0};
    if (p->begin(&image, bytes, length) == 0)
        return rt_fail(e, EXIT_DATA, "%s", image.message);
    bool good = read_pixels(p, &image, to, e);
    if (!good) {
        p->release(&image);
        free(to->pixel);
        *to = (RtImage){0};
    }
    return good;
}
