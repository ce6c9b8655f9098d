// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JPEG, by libjpeg-turbo, opened when a data set needs it.  The library reports
// an error by a call that must not return; it jumps back to the start of
// decoding.

#include "base/round_up.h"
#include "runtime/data/decode.h"
#include "runtime/library.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> // error codes of the version of jpeglib.h

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
    F(boolean, resync, "jpeg_resync_to_restart", (j_decompress_ptr, int)) \
    F(void, on_marker, "jpeg_set_marker_processor", (j_decompress_ptr, int, jpeg_marker_parser_method)) \
    F(int, read_header, "jpeg_read_header", (j_decompress_ptr, boolean)) \
    F(boolean, has_scans, "jpeg_has_multiple_scans", (j_decompress_ptr)) \
    F(void, calculate, "jpeg_calc_output_dimensions", (j_decompress_ptr)) \
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
    const RtLibrary library = {.needed = "JPEG files need",
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
    j->library = rt_library_open(&library, j, e);
    if (j->library != NULL)
        return j;
    rt_jpeg_close(j);
    return NULL;
}

// ---- mistakes ----

// State of one decoding.  The library has pointers to the first members.
typedef struct {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    RtError *e;
} Trap;

typedef struct {
    struct jpeg_source_mgr manager;
    RtDecoding *d;
} Bytes;

typedef struct {
    struct jpeg_decompress_struct jpeg;
    Trap trap;
    Bytes bytes;
    struct jpeg_progress_mgr progress;
    RtDecoding *d;
    uint8_t *row;
    uint8_t *file; // all of it, for a device; NULL: it is read in parts
    size_t file_bytes;
} Reading;

static void error_exit(j_common_ptr common) {
    Trap *t = (Trap *)common->err;
    char why[JMSG_LENGTH_MAX];
    bool room = t->manager.msg_code != JERR_OUT_OF_MEMORY;
    t->manager.format_message(common, why);
    rt_fail(t->e, room ? EXIT_DATA : EXIT_MEMORY, "%s", why);
    longjmp(t->back, 1);
}

// Pixels that are made up because the file ends or is damaged are an error;
// other warnings are not.
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

static void emit_message(j_common_ptr common, int level) {
    if (level < 0 && is_broken(common->err->msg_code))
        error_exit(common);
}

// ---- bytes ----

static void no_op(j_decompress_ptr j) {
    (void)j;
}

static boolean fill(j_decompress_ptr j) {
    Bytes *b = (Bytes *)j->src;
    if (!rt_image_fill(b->d))
        ERREXIT(j, JWRN_JPEG_EOF);
    b->manager.next_input_byte = b->d->next;
    b->manager.bytes_in_buffer = b->d->ready;
    return TRUE;
}

static void skip(j_decompress_ptr j, long bytes) {
    struct jpeg_source_mgr *m = j->src;
    for (; bytes > (long)m->bytes_in_buffer; fill(j))
        bytes -= (long)m->bytes_in_buffer;
    if (bytes > 0) {
        m->next_input_byte += bytes;
        m->bytes_in_buffer -= (size_t)bytes;
    }
}

// ---- orientation ----

// A number of two or four bytes in the order of a TIFF file.
static uint32_t number(const uint8_t *p, int bytes, bool big) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | p[big ? i : bytes - 1 - i];
    return value;
}

// The orientation in the first entries of an Exif block; 0: it has none.
static int orientation_of(const uint8_t *exif, size_t length) {
    enum { TIFF = 6, ENTRY = 12, ORIENTATION = 0x112, SHORT = 3 };
    if (length < TIFF + 8 || memcmp(exif, "Exif\0", 6) != 0)
        return 0;
    bool big = exif[TIFF] == 'M';
    size_t at = number(exif + TIFF + 4, 4, big);
    if (at > length || TIFF + at + 2 > length)
        return 0;
    at += TIFF;
    uint32_t count = number(exif + at, 2, big);
    for (at += 2; count > 0 && at + ENTRY <= length; at += ENTRY, count--)
        if (number(exif + at, 2, big) == ORIENTATION &&
            number(exif + at + 2, 2, big) == SHORT) {
            uint32_t value = number(exif + at + 8, 2, big);
            return value <= 8 ? (int)value : 0;
        }
    return 0;
}

static uint8_t next_byte(j_decompress_ptr j) {
    struct jpeg_source_mgr *m = j->src;
    if (m->bytes_in_buffer == 0)
        fill(j);
    m->bytes_in_buffer--;
    return *m->next_input_byte++;
}

// Reads the front of a marker APP1, and skips the rest.
static boolean read_exif(j_decompress_ptr j) {
    enum { MOST = 1024 };
    Reading *r = (Reading *)j;
    uint8_t front[MOST];
    int high = next_byte(j), length = (high << 8 | next_byte(j)) - 2, some = 0;
    for (; some < length && some < MOST; some++)
        front[some] = next_byte(j);
    if (r->d->orientation == 0 && some > 0)
        r->d->orientation = orientation_of(front, (size_t)some);
    if (length > some)
        skip(j, length - some);
    return TRUE;
}

// ---- limits ----

// Encoders write at most eighteen scans.  Each costs a pass over the image, but
// can be a few bytes of the file.
enum { MAX_SCANS = 100 };

static void count_scans(j_common_ptr common) {
    j_decompress_ptr j = (j_decompress_ptr)common;
    Trap *t = (Trap *)common->err;
    if (j->input_scan_number <= MAX_SCANS)
        return;
    rt_fail(t->e, EXIT_DATA, "it has more than %d scans", MAX_SCANS);
    longjmp(t->back, 1);
}

// The largest reduction while decoding that leaves twice the wanted sides.
static unsigned reduction(const RtDecoding *d, unsigned h, unsigned w) {
    unsigned by = 8;
    int rows, columns;
    rt_image_stored(d, &rows, &columns);
    while (by > 1 && (h / by < 2 * (unsigned)rows ||
                      w / by < 2 * (unsigned)columns))
        by /= 2;
    return by;
}

// The most that the library allocates for an image: two bytes for each
// coefficient of all colours if there are several scans, rows of blocks with
// those above and below, and rows at full size.
static size_t bytes_for(const RtJpeg *library, j_decompress_ptr j) {
    enum { FIXED = 256 << 10, CONTEXT = 12, FULL = 4 };
    bool all = library->has_scans(j);
    size_t bytes = FIXED + (size_t)j->output_width * 4;
    for (int i = 0; i < j->num_components; i++) {
        const jpeg_component_info *c = &j->comp_info[i];
        size_t w = align_up(c->width_in_blocks, (size_t)c->h_samp_factor);
        size_t h = align_up(c->height_in_blocks, (size_t)c->v_samp_factor);
        if (all)
            bytes += w * h * sizeof(JBLOCK) + h * sizeof(JBLOCKROW);
        bytes += w * DCTSIZE * (size_t)(CONTEXT * c->v_samp_factor);
        bytes += (size_t)j->image_width * FULL;
    }
    return bytes;
}

// ---- rows ----

// CMYK, which files store inverted, to RGB in place.
static void cmyk_to_rgb(uint8_t *pixel, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            pixel[3 * i + c] =
                (uint8_t)(pixel[4 * i + c] * pixel[4 * i + 3] / 255);
}

static void read_rows(const RtJpeg *library, Reading *r) {
    j_decompress_ptr j = &r->jpeg;
    while (j->output_scanline < j->output_height) {
        library->read_scanlines(j, &r->row, 1);
        if (j->out_color_space == JCS_CMYK)
            cmyk_to_rgb(r->row, j->output_width);
        rt_resize_row(r->d->resize, r->row);
    }
}

// Requests an image whose sides are at least twice as long as needed, or full
// size, and memory for it.
static bool prepare(const RtJpeg *library, Reading *r, RtError *e) {
    j_decompress_ptr j = &r->jpeg;
    unsigned w = j->image_width, h = j->image_height;
    if (!rt_image_begin(r->d, h, w, e))
        return false;
    j->scale_num = 1;
    j->scale_denom = reduction(r->d, h, w);
    bool cmyk =
        j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK;
    j->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    library->calculate(j);
    size_t bytes = bytes_for(library, j);
    j->mem->max_memory_to_use = (long)bytes;
    if (!rt_image_reserve(r->d, (int)j->output_height, (int)j->output_width,
                          bytes, e))
        return false;
    r->row = malloc((size_t)j->output_width * 4);
    return r->row != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

static void open_bytes(Reading *r, const RtJpeg *library) {
    r->bytes = (Bytes){{.next_input_byte = r->d->next,
                        .bytes_in_buffer = r->d->ready,
                        .init_source = no_op,
                        .fill_input_buffer = fill,
                        .skip_input_data = skip,
                        .resync_to_restart = library->resync,
                        .term_source = no_op},
                       r->d};
    r->jpeg.src = &r->bytes.manager;
}

// ---- a device ----

// Whether the file has a marker of its end, from `from` on.  A device may not
// notice that a file is truncated.
static bool has_end(const Reading *r, const uint8_t *from) {
    const uint8_t *at = r->file + r->file_bytes - 1;
    while (--at >= from)
        if (at[0] == 0xff && at[1] == JPEG_EOI)
            return true;
    return false;
}

// A file as cameras and data sets have it; others are the library's.
static bool is_plain(const RtJpeg *library, Reading *r) {
    j_decompress_ptr j = &r->jpeg;
    return j->num_components == 3 && j->jpeg_color_space == JCS_YCbCr &&
           j->data_precision == 8 && !j->arith_code && !library->has_scans(j) &&
           (uint64_t)j->image_height * j->image_width <=
               RT_DEVICE_JPEG_PIXELS &&
           has_end(r, j->src->next_input_byte);
}

static void take_row(void *context, const uint8_t *pixel) {
    rt_resize_row(context, pixel);
}

// *done: the device has decoded the file.
static bool decode_on_device(Reading *r, bool *done, RtError *e) {
    RtDecoding *d = r->d;
    RtDevice *device = rt_decode_memory_device(d->decoder->memory);
    int h = (int)r->jpeg.image_height, w = (int)r->jpeg.image_width;
    bool declined = false;
    if (!rt_image_begin(d, (uint32_t)h, (uint32_t)w, e) ||
        !rt_image_reserve(d, h, w, 0, e))
        return false;
    const RtJpegFile file = {r->file, r->file_bytes, h, w, take_row, d->resize};
    bool good = device->decode_jpeg(device, &file, &declined, e);
    if (declined)
        rt_image_release(d);
    *done = good && !declined;
    return good;
}

// Reads a file of usual size for a device.
static bool read_for_device(Reading *r, RtError *e) {
    RtDecoding *d = r->d;
    if (rt_decode_memory_device(d->decoder->memory) == NULL ||
        d->ready + d->left > RT_DEVICE_JPEG_BYTES)
        return true;
    r->file = rt_image_rest(d, &r->file_bytes, e);
    d->next = r->file;
    d->ready = r->file_bytes;
    return r->file != NULL;
}

static bool decode(const RtJpeg *library, Reading *r, RtError *e) {
    j_decompress_ptr j = &r->jpeg;
    library->create(j, JPEG_LIB_VERSION, sizeof *j);
    r->progress.progress_monitor = count_scans;
    j->progress = &r->progress;
    open_bytes(r, library);
    library->on_marker(j, JPEG_APP0 + 1, read_exif);
    library->read_header(j, TRUE);
    bool done = false;
    if (r->file != NULL && is_plain(library, r) &&
        (!decode_on_device(r, &done, e) || done))
        return done;
    if (!prepare(library, r, e))
        return false;
    library->start(j);
    read_rows(library, r);
    library->finish(j);
    return true;
}

static bool decode_or_return(const RtJpeg *library, Reading *r, RtError *e) {
    if (setjmp(r->trap.back) != 0)
        return false;
    return decode(library, r, e);
}

bool rt_jpeg_decode(const RtJpeg *library, RtDecoding *d, RtError *e) {
    Reading r = {.d = d};
    r.jpeg.err = library->std_error(&r.trap.manager);
    r.trap.e = e;
    r.trap.manager.error_exit = error_exit;
    r.trap.manager.emit_message = emit_message;
    bool good = read_for_device(&r, e) && decode_or_return(library, &r, e);
    library->destroy(&r.jpeg);
    free(r.row);
    free(r.file);
    return good;
}
