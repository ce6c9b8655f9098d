// JPEG, by libjpeg-turbo: opened when a data set needs it, so that a trainer
// that does not runs without it.  The library reports an error by a call that
// must not return; it jumps back to where the decoding began.

#include "runtime/data/data.h"
#include "runtime/library.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h> // whose codes are of what jpeglib.h says it supports

#if JPEG_LIB_VERSION >= 80
#define LIBRARY "libjpeg.so.8"
#define PACKAGE "libjpeg-turbo8"
#else
#define LIBRARY "libjpeg.so.62"
#define PACKAGE "libjpeg62-turbo"
#endif

// clang-format off
#define FUNCTIONS(F) \
    F(struct jpeg_error_mgr *, std_error, "jpeg_std_error", (struct jpeg_error_mgr *)) \
    F(void, create, "jpeg_CreateDecompress", (j_decompress_ptr, int, size_t)) \
    F(void, mem_src, "jpeg_mem_src", (j_decompress_ptr, const unsigned char *, unsigned long)) \
    F(int, read_header, "jpeg_read_header", (j_decompress_ptr, boolean)) \
    F(boolean, start, "jpeg_start_decompress", (j_decompress_ptr)) \
    F(JDIMENSION, read_scanlines, "jpeg_read_scanlines", (j_decompress_ptr, JSAMPARRAY, JDIMENSION)) \
    F(boolean, finish, "jpeg_finish_decompress", (j_decompress_ptr)) \
    F(void, destroy, "jpeg_destroy_decompress", (j_decompress_ptr))
// clang-format on

struct RtJpeg {
    void *library;
    FUNCTIONS(RT_FUNCTION)
};

// ---- the library ----

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(RtJpeg, member)},
    FUNCTIONS(F)
#undef F
};

void rt_jpeg_close(RtJpeg *j) {
    if (j != NULL)
        rt_library_close(j->library);
    free(j);
}

RtJpeg *rt_jpeg_open(RtError *e) {
    static const char *const files[] = {LIBRARY, NULL};
    const RtLibrary wanted = {.needed = "JPEG files need",
                              .files = files,
                              .remedy = "install " PACKAGE,
                              .status = EXIT_DATA,
                              .symbol = symbols,
                              .num_symbols = sizeof symbols / sizeof *symbols};
    RtJpeg *j = calloc(1, sizeof *j);
    if (j == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    j->library = rt_library_open(&wanted, j, e);
    if (j->library != NULL)
        return j;
    rt_jpeg_close(j);
    return NULL;
}

// ---- one image ----

typedef struct {
    struct jpeg_error_mgr manager; // first: what the library knows
    jmp_buf back;
    char why[JMSG_LENGTH_MAX];
} Trap;

static void jump_back(j_common_ptr common) {
    Trap *t = (Trap *)common->err;
    t->manager.format_message(common, t->why);
    longjmp(t->back, 1);
}

// Pixels that are made up because the file ends or breaks are an error; what
// is merely unusual is not.
static bool is_broken(int code) {
    switch (code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
#ifdef D_ARITH_CODING_SUPPORTED
    case JWRN_ARITH_BAD_CODE:
#endif
        return true;
    default:
        return false;
    }
}

static void take_message(j_common_ptr common, int level) {
    if (level < 0 && is_broken(common->err->msg_code))
        jump_back(common);
}

// The largest reduction while decoding that leaves twice the wanted side.
static unsigned reduction(unsigned shorter, int wanted) {
    unsigned by = 8;
    while (by > 1 && shorter / by < 2 * (unsigned)wanted)
        by /= 2;
    return by;
}

// Four inks, which files store inverted, to three colours in place.
static void mix_inks(uint8_t *pixel, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            pixel[3 * i + c] =
                (uint8_t)(pixel[4 * i + c] * pixel[4 * i + 3] / 255);
}

static bool read_rows(const RtJpeg *j, j_decompress_ptr d, RtImage *to) {
    bool inks = d->out_color_space == JCS_CMYK;
    size_t room = (size_t)d->output_width * (inks ? 4 : 3);
    to->h = (int)d->output_height;
    to->w = (int)d->output_width;
    to->pixel = malloc((size_t)to->h * (size_t)to->w * 3 + room);
    while (to->pixel != NULL && d->output_scanline < d->output_height) {
        uint8_t *row = to->pixel + (size_t)d->output_scanline * to->w * 3;
        j->read_scanlines(d, &row, 1);
        if (inks)
            mix_inks(row, d->output_width);
    }
    return to->pixel != NULL;
}

static void decode(const RtJpeg *j, j_decompress_ptr d, const uint8_t *bytes,
                   size_t length, int wanted, RtImage *to) {
    j->mem_src(d, bytes, (unsigned long)length);
    j->read_header(d, TRUE);
    if ((uint64_t)d->image_width * d->image_height > RT_MOST_PIXELS)
        ERREXIT1(d, JERR_IMAGE_TOO_BIG, 16384);
    unsigned w = d->image_width, h = d->image_height;
    d->scale_num = 1;
    d->scale_denom = reduction(w < h ? w : h, wanted);
    bool inks =
        d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    j->start(d);
    if (!read_rows(j, d, to))
        ERREXIT1(d, JERR_OUT_OF_MEMORY, 0);
    j->finish(d);
}

bool rt_jpeg_decode(const RtJpeg *j, const uint8_t *bytes, size_t length,
                    int wanted, RtImage *to, RtError *e) {
    struct jpeg_decompress_struct d = {0};
    Trap trap;
    *to = (RtImage){0};
    d.err = j->std_error(&trap.manager);
    trap.manager.error_exit = jump_back;
    trap.manager.emit_message = take_message;
    if (setjmp(trap.back) != 0) {
        j->destroy(&d);
        free(to->pixel);
        *to = (RtImage){0};
        bool room = trap.manager.msg_code != JERR_OUT_OF_MEMORY;
        return rt_fail(e, room ? EXIT_DATA : EXIT_MEMORY, "%s", trap.why);
    }
    j->create(&d, JPEG_LIB_VERSION, sizeof d);
    decode(j, &d, bytes, length, wanted, to);
    j->destroy(&d);
    return true;
}
