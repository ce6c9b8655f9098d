// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PNG, by libpng, opened when a data set needs it.  Every pixel becomes three
// bytes of sRGB, transparent ones over black.
//
// The library's allocations are limited to rows and tables: text and profiles
// can expand a thousandfold.  It reports an error by a call that must not
// return; it jumps back to the start of decoding.

#include "runtime/data/decode.h"
#include "runtime/library.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

// clang-format off
#define FUNCTIONS(F) \
    F(png_structp, create, "png_create_read_struct_2", (png_const_charp, png_voidp, png_error_ptr, png_error_ptr, png_voidp, png_malloc_ptr, png_free_ptr)) \
    F(png_infop, create_info, "png_create_info_struct", (png_const_structrp)) \
    F(void, destroy, "png_destroy_read_struct", (png_structpp, png_infopp, png_infopp)) \
    F(void, set_read, "png_set_read_fn", (png_structrp, png_voidp, png_rw_ptr)) \
    F(void, set_limits, "png_set_user_limits", (png_structrp, png_uint_32, png_uint_32)) \
    F(void, set_chunks, "png_set_keep_unknown_chunks", (png_structrp, int, png_const_bytep, int)) \
    F(void, set_benign, "png_set_benign_errors", (png_structrp, int)) \
    F(void, read_info, "png_read_info", (png_structrp, png_inforp)) \
    F(png_uint_32, height, "png_get_image_height", (png_const_structrp, png_const_inforp)) \
    F(png_uint_32, width, "png_get_image_width", (png_const_structrp, png_const_inforp)) \
    F(png_byte, color, "png_get_color_type", (png_const_structrp, png_const_inforp)) \
    F(png_byte, depth, "png_get_bit_depth", (png_const_structrp, png_const_inforp)) \
    F(png_uint_32, valid, "png_get_valid", (png_const_structrp, png_const_inforp, png_uint_32)) \
    F(void, set_expand, "png_set_expand", (png_structrp)) \
    F(void, set_rgb, "png_set_gray_to_rgb", (png_structrp)) \
    F(void, set_scale, "png_set_scale_16", (png_structrp)) \
    F(void, set_alpha, "png_set_alpha_mode_fixed", (png_structrp, int, png_fixed_point)) \
    F(void, set_background, "png_set_background_fixed", (png_structrp, png_const_color_16p, int, int, png_fixed_point)) \
    F(int, set_passes, "png_set_interlace_handling", (png_structrp)) \
    F(void, update, "png_read_update_info", (png_structrp, png_inforp)) \
    F(size_t, row_bytes, "png_get_rowbytes", (png_const_structrp, png_const_inforp)) \
    F(void, read_row, "png_read_row", (png_structrp, png_bytep, png_bytep))
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
    const RtLibrary library = {.needed = "PNG files need",
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
    p->library = rt_library_open(&library, p, e);
    if (p->library != NULL)
        return p;
    rt_png_close(p);
    return NULL;
}

// State of one decoding.
typedef struct {
    const RtPng *library;
    RtDecoding *d;
    RtError *e;
    png_structp png;
    png_infop info;
    size_t room;    // bytes that the library may still allocate
    bool exhausted; // malloc failed
    uint8_t *pixel; // of a row, or of all rows of an interlaced image
    jmp_buf back;
} Reading;

// The decoding of this thread; the library's callbacks do not get it.
static _Thread_local Reading *current;

// ---- callbacks ----

static PNG_FUNCTION(void, error_exit, (png_structp png, png_const_charp why),
                    PNG_NORETURN) {
    Reading *r = current;
    (void)png;
    rt_fail(r->e, r->exhausted ? EXIT_MEMORY : EXIT_DATA, "%s", why);
    longjmp(r->back, 1);
}

static void ignore_warning(png_structp png, png_const_charp what) {
    (void)png, (void)what;
}

static png_voidp limited_malloc(png_structp png, png_alloc_size_t bytes) {
    Reading *r = current;
    (void)png;
    if (bytes > r->room)
        return NULL;
    void *p = malloc(bytes);
    r->exhausted = r->exhausted || p == NULL;
    r->room -= bytes;
    return p;
}

static void limited_free(png_structp png, png_voidp p) {
    (void)png;
    free(p);
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes) {
    RtDecoding *d = current->d;
    while (bytes > 0) {
        if (d->ready == 0 && !rt_image_fill(d))
            error_exit(png, "the file is truncated");
        size_t part = bytes < d->ready ? bytes : d->ready;
        memcpy(to, d->next, part);
        to += part;
        bytes -= part;
        d->next += part;
        d->ready -= part;
    }
}

// ---- one image ----

enum { TABLES = 1 << 20, ROW_BYTES = 16, MAX_SIDE = 1000000 };

static bool open_png(Reading *r) {
    // Skips chunks that no pixel depends on, as they may be large.
    static const png_byte skipped[] = "tEXt\0zTXt\0iTXt\0eXIf\0sPLT\0hIST\0"
                                      "pCAL\0sCAL\0tIME\0oFFs\0pHYs";
    const RtPng *l = r->library;
    r->room = TABLES;
    r->png = l->create(PNG_LIBPNG_VER_STRING, NULL, error_exit, ignore_warning,
                       NULL, limited_malloc, limited_free);
    r->info = r->png != NULL ? l->create_info(r->png) : NULL;
    if (r->info == NULL)
        return rt_fail(r->e, EXIT_MEMORY, "out of memory");
    l->set_read(r->png, NULL, read_bytes);
    l->set_limits(r->png, MAX_SIDE, MAX_SIDE);
    l->set_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, skipped, sizeof skipped / 5);
    l->set_benign(r->png, 1);
    return true;
}

// Eight-bit sRGB; 16 bits are linear unless the file says otherwise.  Returns
// the number of passes over the image.
static int transform(const Reading *r) {
    static const png_color_16 black = {0};
    const RtPng *l = r->library;
    int color = l->color(r->png, r->info);
    bool is_deep = l->depth(r->png, r->info) == 16;
    l->set_expand(r->png);
    if ((color & PNG_COLOR_MASK_COLOR) == 0)
        l->set_rgb(r->png);
    l->set_alpha(r->png, PNG_ALPHA_PNG,
                 is_deep ? PNG_GAMMA_LINEAR : PNG_DEFAULT_sRGB);
    if (is_deep)
        l->set_scale(r->png);
    if ((color & PNG_COLOR_MASK_ALPHA) != 0 ||
        l->valid(r->png, r->info, PNG_INFO_tRNS) != 0)
        l->set_background(r->png, &black, PNG_BACKGROUND_GAMMA_SCREEN, 0, 0);
    l->set_alpha(r->png, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
    return l->set_passes(r->png);
}

// Allocates rows, here and in the library.
static bool reserve(Reading *r, png_uint_32 h, png_uint_32 w, size_t pixels) {
    const RtPng *l = r->library;
    size_t rows = (size_t)w * ROW_BYTES;
    if (!rt_image_reserve(r->d, (int)h, (int)w, TABLES + rows + 3 * pixels,
                          r->e))
        return false;
    r->room += rows;
    l->update(r->png, r->info);
    if (l->row_bytes(r->png, r->info) != (size_t)w * 3)
        return rt_fail(r->e, EXIT_DATA,
                       "its pixels cannot be converted to three bytes");
    r->pixel = malloc(3 * pixels);
    return r->pixel != NULL || rt_fail(r->e, EXIT_MEMORY, "out of memory");
}

static void read_rows(Reading *r, png_uint_32 h) {
    for (png_uint_32 y = 0; y < h; y++) {
        r->library->read_row(r->png, r->pixel, NULL);
        rt_resize_row(r->d->resize, r->pixel);
    }
}

static void read_passes(Reading *r, png_uint_32 h, size_t row, int passes) {
    for (int i = 0; i < passes; i++)
        for (png_uint_32 y = 0; y < h; y++)
            r->library->read_row(r->png, r->pixel + y * row, NULL);
    for (png_uint_32 y = 0; y < h; y++)
        rt_resize_row(r->d->resize, r->pixel + y * row);
}

static bool decode(Reading *r) {
    if (setjmp(r->back) != 0)
        return false;
    if (!open_png(r))
        return false;
    const RtPng *l = r->library;
    l->read_info(r->png, r->info);
    png_uint_32 h = l->height(r->png, r->info), w = l->width(r->png, r->info);
    if (!rt_image_begin(r->d, h, w, r->e))
        return false;
    int passes = transform(r);
    if (!reserve(r, h, w, passes > 1 ? (size_t)h * w : w))
        return false;
    if (passes > 1)
        read_passes(r, h, (size_t)w * 3, passes);
    else
        read_rows(r, h);
    return true;
}

bool rt_png_decode(const RtPng *library, RtDecoding *d, RtError *e) {
    Reading r = {.library = library, .d = d, .e = e};
    current = &r;
    bool good = decode(&r);
    if (r.png != NULL)
        library->destroy(&r.png, &r.info, NULL);
    free(r.pixel);
    return good;
}
