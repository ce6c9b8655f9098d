// Image folders: classes, pixels, and messages about unusable files.
#define _GNU_SOURCE // memmem

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

enum { SIZE = 8 };

static RtData data;
static RtError error;
static int64_t max_bad_files; // files that may be
static int64_t max_pixels;

// ---- files ----

static void write_png(const char *name, int h, int w, const uint8_t *pixel) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .height = (png_uint_32)h,
                       .width = (png_uint_32)w,
                       .format = PNG_FORMAT_RGB};
    ck_assert(png_image_write_to_file(&image, name, 0, pixel, 0, NULL));
}

// Grey, of so many bits, with lines of text, each of which expands to 7 MB.
static void write_grey(const char *name, int h, int w, int bits, int interlace,
                       int texts) {
    enum { LETTERS = 7000000 };
    FILE *f = fopen(name, "wb");
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    char *letters = calloc(1, LETTERS + 1);
    uint8_t *row = malloc((size_t)(w * bits / 8));
    ck_assert(f != NULL && info != NULL && letters != NULL && row != NULL);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, bits,
                 PNG_COLOR_TYPE_GRAY, interlace, 0, 0);
    png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt,
                     .key = (char[]){"key"},
                     .text = letters,
                     .text_length = LETTERS};
    memset(letters, 'a', LETTERS);
    for (int i = 0; i < texts; i++)
        png_set_text(png, info, &text, 1);
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int i = 0; i < passes * h; i++) {
        for (int x = 0; x < w * bits / 8; x++)
            row[x] = (uint8_t)(3 * x + 5 * (i % h) + i % h * x);
        png_write_row(png, row);
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(letters);
    free(row);
    fclose(f);
}

// One scan for the means of blocks, and one for each group of other
// coefficients, colour by colour; none: not progressive.
static void set_scans(struct jpeg_compress_struct *c, jpeg_scan_info *scan,
                      int scans) {
    for (int i = 0; i < scans; i++) {
        int k = i == 0 ? 0 : 1 + (i - 1) % (DCTSIZE2 - 1);
        scan[i] =
            (jpeg_scan_info){.comps_in_scan = i == 0 ? 3 : 1, .Ss = k, .Se = k};
        for (int colour = 0; i == 0 && colour < 3; colour++)
            scan[i].component_index[colour] = colour;
        if (i > 0)
            scan[i].component_index[0] = (i - 1) / (DCTSIZE2 - 1);
    }
    c->scan_info = scans > 0 ? scan : NULL;
    c->num_scans = scans;
}

static void write_jpeg_in(const char *name, int h, int w, uint8_t *pixel,
                          bool arithmetic, int scans) {
    enum { MAX_SCANS = 190 };
    jpeg_scan_info scan[MAX_SCANS];
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr manager;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    c.err = jpeg_std_error(&manager);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &length);
    c.image_height = (JDIMENSION)h;
    c.image_width = (JDIMENSION)w;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    c.restart_in_rows = 1;
    c.arith_code = arithmetic;
    set_scans(&c, scan, scans);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = pixel + (size_t)c.next_scanline * (size_t)w * 3;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    place_write(name, bytes, length);
    free(bytes);
}

static void write_jpeg(const char *name, int h, int w, uint8_t *pixel,
                       bool arithmetic) {
    write_jpeg_in(name, h, w, pixel, arithmetic, 0);
}

// An image of one colour.
static void write_plain(const char *name, int h, int w, uint8_t red,
                        uint8_t green) {
    uint8_t *pixel = malloc((size_t)(h * w * 3));
    for (int i = 0; i < h * w; i++) {
        pixel[3 * i] = red;
        pixel[3 * i + 1] = green;
        pixel[3 * i + 2] = 90;
    }
    (strstr(name, ".png") ? write_png(name, h, w, pixel)
                          : write_jpeg(name, h, w, pixel, false));
    free(pixel);
}

static void write_good(void) {
    static const char *const folder[] = {
        "d",           "d/train", "d/train/cat", "d/train/dog",
        "d/train/ant", "d/val",   "d/val/cat"};
    for (size_t i = 0; i < sizeof folder / sizeof folder[0]; i++)
        place_folder(folder[i]);
    write_plain("d/train/cat/a.png", 8, 8, 10, 200);
    write_plain("d/train/cat/b.jpg", 20, 33, 20, 200);
    place_write("d/train/cat/notes.txt", "no image", 8);
    place_write("d/train/cat/.hidden.png", "no image", 8);
    write_plain("d/train/dog/a.JPG", 64, 40, 30, 200);
    write_plain("d/train/ant/a.png", 3, 5, 40, 200);
    write_plain("d/val/cat/a.png", 100, 9, 50, 200);
}

static bool open_sized(int classes, int h, int w) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {h, w, 3}},
                               .label = {RT_I32, 0, {0}},
                               .classes = classes,
                               .max_bad_files = max_bad_files,
                               .max_pixels = max_pixels};
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, "image_folder", "d", &sample, &rt_system_files,
                        &error);
}

static bool open_folder(int classes, int size) {
    return open_sized(classes, size, size);
}

static void refused(int classes, const char *says) {
    ck_assert_msg(!open_folder(classes, SIZE), "accepted: %s", says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

// ---- tests ----

static void check_sample(const RtSplit *s, int64_t i, int label, int red) {
    uint8_t pixel[SIZE * SIZE * 3];
    int32_t found;
    memcpy(&found, rt_column_at(&s->label, i), sizeof found);
    ck_assert_int_eq(found, label);
    ck_assert_msg(s->fetch(s, i, pixel, &error), "%s", error.text);
    for (int k = 0; k < SIZE * SIZE; k++) {
        ck_assert_int_le(abs(pixel[3 * k] - red), 2);
        ck_assert_int_le(abs(pixel[3 * k + 1] - 200), 2);
        ck_assert_int_le(abs(pixel[3 * k + 2] - 90), 2);
    }
}

START_TEST(classes_are_in_the_order_of_their_names) {
    write_good();
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    ck_assert_int_eq(data.train.count, 4);
    check_sample(&data.train, 0, 0, 40);
    check_sample(&data.train, 1, 1, 10);
    check_sample(&data.train, 2, 1, 20);
    check_sample(&data.train, 3, 2, 30);
    ck_assert_int_eq(data.test.count, 1);
    check_sample(&data.test, 0, 1, 50);
    rt_data_close(&data);
}
END_TEST

// Once for both splits; hidden files do not count.
START_TEST(ignored_files_are_counted) {
    write_good();
    ck_assert(open_folder(3, SIZE));
    ck_assert_str_eq(data.ignored,
                     "ignored in d, not .jpg, .jpeg, .png or .webp: 1 .txt");
    rt_data_close(&data);
    place_write("d/train/cat/a.bmp", "BM", 2);
    place_write("d/train/dog/b.BMP", "BM", 2);
    place_write("d/val/cat/c.bmp", "BM", 2);
    place_write("d/val/cat/README", "", 0);
    place_write("d/val/cat/odd.\033[1m", "", 0);
    ck_assert(open_folder(3, SIZE));
    ck_assert_str_eq(data.ignored,
                     "ignored in d, not .jpg, .jpeg, .png or .webp: 3 .bmp, "
                     "1 .txt, 2 others");
    rt_data_close(&data);
    char name[] = "d/val/cat/a.ea";
    for (char c = 'a'; c <= 'i'; c++) {
        name[sizeof name - 2] = c;
        place_write(name, "", 0);
    }
    ck_assert(open_folder(3, SIZE));
    ck_assert_int_eq(data.train.count + data.test.count, 5);
    ck_assert_ptr_nonnull(strstr(data.ignored, " others"));
    rt_data_close(&data);
    for (char c = 'a'; c <= 'i'; c++) {
        name[sizeof name - 2] = c;
        unlink(name);
    }
    unlink("d/train/cat/notes.txt");
    unlink("d/train/cat/a.bmp");
    unlink("d/train/dog/b.BMP");
    unlink("d/val/cat/c.bmp");
    unlink("d/val/cat/README");
    unlink("d/val/cat/odd.\033[1m");
    ck_assert(open_folder(3, SIZE));
    ck_assert_str_eq(data.ignored, "");
    rt_data_close(&data);
}
END_TEST

// Ten suffixes, two of them of two files: eight are named.
START_TEST(which_are_named_is_no_matter_of_their_order) {
    static const char *const name[] = {"a.J", "a.b", "b.a", "a.c",
                                       "a.i", "a.d", "b.i", "a.h",
                                       "a.e", "a.a", "a.g", "a.f"};
    enum { NAMES = sizeof name / sizeof *name };
    for (int first = 0; first < NAMES; first++) {
        RtIgnored passed = {.suffixes = 0};
        char text[RT_IGNORED_BYTES];
        for (int i = 0; i < NAMES; i++)
            rt_ignored_add(&passed, name[(first + i) % NAMES]);
        rt_ignored_text(text, &passed, "d", "x");
        ck_assert_str_eq(text, "ignored in d, not x: 2 .a, 1 .b, 1 .c, "
                               "1 .d, 1 .e, 1 .f, 1 .g, 1 .h, 3 others");
    }
}
END_TEST

// An image of the right size is unchanged; of a longer one the centre is kept.
START_TEST(the_centre_is_cropped) {
    uint8_t pixel[8 * 12 * 3], found[8 * 8 * 3];
    for (int i = 0; i < 8 * 12 * 3; i++)
        pixel[i] = (uint8_t)(i * 7);
    write_good();
    write_png("d/train/ant/a.png", 8, 12, pixel);
    ck_assert_msg(open_folder(3, 8), "%s", error.text);
    ck_assert(data.train.fetch(&data.train, 0, found, &error));
    for (int y = 0; y < 8; y++)
        ck_assert_int_eq(memcmp(found + y * 24, pixel + (y * 12 + 2) * 3, 24),
                         0);
    rt_data_close(&data);
}
END_TEST

// The result may be of any shape: rows or columns are cropped, where a square
// keeps them all.
START_TEST(a_rectangle_is_cropped) {
    uint8_t pixel[8 * 12 * 3], found[8 * 12 * 3];
    int h = _i == 0 ? 8 : 4, w = _i == 0 ? 6 : 12;
    for (int i = 0; i < 8 * 12 * 3; i++)
        pixel[i] = (uint8_t)(i * 7);
    write_good();
    write_png("d/train/ant/a.png", 8, 12, pixel);
    ck_assert_msg(open_sized(3, h, w), "%s", error.text);
    ck_assert_uint_eq(data.train.image.values, (size_t)(h * w * 3));
    ck_assert(data.train.fetch(&data.train, 0, found, &error));
    for (int y = 0; y < h; y++)
        ck_assert_mem_eq(found + y * w * 3,
                         pixel + ((y + (8 - h) / 2) * 12 + (12 - w) / 2) * 3,
                         (size_t)w * 3);
    rt_data_close(&data);
}
END_TEST

// Half the size: each pixel is the triangle-weighted mean of its neighbours; on
// a slope that is the slope itself.
START_TEST(a_slope_stays_a_slope) {
    uint8_t pixel[16 * 16 * 3], found[8 * 8 * 3];
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 16; x++)
            for (int c = 0; c < 3; c++)
                pixel[(y * 16 + x) * 3 + c] = (uint8_t)(10 * x + 4 * y + c);
    write_good();
    write_png("d/train/ant/a.png", 16, 16, pixel);
    ck_assert_msg(open_folder(3, 8), "%s", error.text);
    ck_assert(data.train.fetch(&data.train, 0, found, &error));
    for (int y = 1; y < 7; y++)
        for (int x = 1; x < 7; x++)
            for (int c = 0; c < 3; c++)
                ck_assert_int_eq(found[(y * 8 + x) * 3 + c],
                                 20 * x + 5 + 8 * y + 2 + c);
    rt_data_close(&data);
}
END_TEST

START_TEST(a_bad_folder) {
    write_good();
    switch (_i) {
    case 0:
        refused(2, "d/train has folders of 3 classes, but the trainer takes 2");
        break;
    case 1:
        unlink("d/train/ant/a.png");
        refused(3, "d/train/ant has no .jpg, .jpeg, .png or .webp file");
        break;
    case 2:
        place_folder("d/val/cow");
        refused(3, "d/val/cow is a class that is not in train");
        break;
    case 3:
        ck_assert_int_eq(rename("d/val", "d/other"), 0);
        refused(3, "d has no folder test or val: make one");
        break;
    case 4:
        ck_assert_int_eq(rename("d/train", "d/other"), 0);
        refused(3, "d has no folder train: move or link");
        break;
    case 5: // it might be a class
        ck_assert_int_eq(symlink("loop", "d/train/loop"), 0);
        refused(3, "cannot open d/train/loop: Too many levels");
        break;
    case 6:
        ck_assert_int_eq(symlink("nowhere", "d/val/cow"), 0);
        refused(3, "cannot open d/val/cow: No such file");
        break;
    }
}
END_TEST

// A file that breaks in the middle of a run is named.
static void check_broken(const char *name, int64_t sample, const char *says) {
    uint8_t pixel[SIZE * SIZE * 3];
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    ck_assert(!data.train.fetch(&data.train, sample, pixel, &error));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, name) != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
    bool is_broken = strncmp(error.text, "cannot decode", 13) == 0;
    ck_assert_msg(!is_broken || strstr(error.text, "--bad-samples") != NULL,
                  "%s", error.text);
    rt_data_close(&data);
}

START_TEST(a_bad_file) {
    size_t length;
    uint8_t *bytes, *mark;
    write_good();
    switch (_i) {
    case 0:
        ck_assert_int_eq(truncate("d/train/ant/a.png", 50), 0);
        check_broken("d/train/ant/a.png", 0, "cannot decode");
        break;
    case 1:
        free(place_read("d/train/dog/a.JPG", &length));
        ck_assert_int_eq(truncate("d/train/dog/a.JPG", (off_t)length - 20), 0);
        check_broken("d/train/dog/a.JPG", 3, "Premature end");
        break;
    case 2:
        place_write("d/train/dog/a.JPG", "GIF89a", 6);
        check_broken("d/train/dog/a.JPG", 3, "no JPEG, PNG or WebP file");
        break;
    case 3:
        place_write("d/train/dog/a.JPG", "", 0);
        check_broken("d/train/dog/a.JPG", 3, "no JPEG, PNG or WebP file");
        break;
    case 4:
        place_write("d/train/dog/a.JPG", "\xff\xd8\xff\xe0 and nothing", 16);
        check_broken("d/train/dog/a.JPG", 3, "cannot decode");
        break;
    case 5: // the second marker between rows of blocks
        bytes = place_read("d/train/dog/a.JPG", &length);
        mark = memmem(bytes, length, "\xff\xd1", 2);
        ck_assert_ptr_nonnull(mark);
        mark[1] = 0xd4;
        place_write("d/train/dog/a.JPG", bytes, length);
        free(bytes);
        check_broken("d/train/dog/a.JPG", 3, "instead of RST1");
        break;
    case 6: // most would have to be skipped
        ck_assert_int_eq(truncate("d/train/dog/a.JPG", (off_t)1 << 36), 0);
        check_broken("d/train/dog/a.JPG", 3,
                     "its 68719476736 bytes are more than the 782936744 that "
                     "--max-image-pixels allows");
        break;
    case 7: // the name does not matter
        write_plain("d/train/dog/a.png", 8, 8, 70, 200);
        ck_assert_int_eq(rename("d/train/dog/a.png", "d/train/dog/a.JPG"), 0);
        ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
        check_sample(&data.train, 3, 2, 70);
        rt_data_close(&data);
        break;
    }
}
END_TEST

// ---- memory of an image ----

static void check_first(const char *says) {
    uint8_t pixel[SIZE * SIZE * 3];
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    bool good = data.train.fetch(&data.train, 0, pixel, &error);
    ck_assert_msg(good == (says == NULL), "%s", error.text);
    if (says != NULL) {
        ck_assert_int_eq(error.status, EXIT_DATA);
        size_t length = strlen(says);
        ck_assert_msg(strncmp(error.text, says, length) == 0 &&
                          error.text[length] == ';',
                      "%s", error.text);
    }
    rt_data_close(&data);
}

START_TEST(pixels_are_counted) {
    static const char *const name[] = {"d/train/ant/a.png",
                                       "d/train/ant/a.jpg"};
    char says[200];
    write_good();
    unlink(name[0]);
    write_plain(name[_i], 30, 40, 10, 200);
    max_pixels = 1200;
    check_first(NULL);
    max_pixels = 1199;
    snprintf(says, sizeof says,
             "cannot decode %s: its 40 x 30 pixels are more than the 1199 of "
             "--max-image-pixels",
             name[_i]);
    check_first(says);
    max_pixels = 0;
}
END_TEST

// Limits the address space to so many more bytes.
static void limit_memory(size_t bytes) {
    enum { PAGE = 4096 };
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f != NULL && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    struct rlimit limit = {pages * PAGE + bytes, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

// The peak memory of this process in bytes, since it was reset.
static size_t peak(void) {
    char line[200];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (kib == 0 && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "VmHWM: %zu", &kib);
    fclose(f);
    return kib << 10;
}

static void peak_clear(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    ck_assert(f != NULL && fputs("5", f) != EOF && fclose(f) == 0);
}

// 140 MB of text in 140 KB are not unpacked.
START_TEST(text_is_not_read) {
    static const char png[] = "d/train/ant/a.png";
    uint8_t square[SIZE * SIZE * 3];
    write_good();
    write_grey(png, SIZE, SIZE, 8, PNG_INTERLACE_NONE, 20);
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    ck_assert(data.train.fetch(&data.train, 1, square, &error));
    peak_clear();
    size_t before = peak();
    ck_assert_msg(data.train.fetch(&data.train, 0, square, &error), "%s",
                  error.text);
    ck_assert_uint_le(peak() - before, RT_LOADER_PRIVATE_BYTES);
    rt_data_close(&data);
}
END_TEST

// An image is decoded in the memory that is counted for it: each loader's own
// for some rows, shared memory for all pixels.
START_TEST(an_image_fits_in_the_counted_memory) {
    enum { SIDE = 2400 };
    static const char png[] = "d/train/ant/a.png", jpeg[] = "d/train/ant/a.jpg";
    write_good();
    unlink(png);
    max_pixels = SIDE * SIDE;
    uint8_t *pixel = calloc(SIDE * SIDE, 3);
    if (_i == 0)
        write_grey(png, SIDE, SIDE, 8, PNG_INTERLACE_NONE, 0);
    else if (_i == 1)
        write_jpeg(jpeg, SIDE, SIDE, pixel, false);
    else if (_i == 2)
        write_grey(png, SIDE, SIDE, 16, PNG_INTERLACE_ADAM7, 0);
    else
        write_jpeg_in(jpeg, SIDE, SIDE, pixel, false, 9);
    free(pixel);
    uint8_t square[SIZE * SIZE * 3];
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    if (getenv("SINTER_SANITIZED") == NULL)
        limit_memory(_i < 2 ? RT_LOADER_PRIVATE_BYTES
                            : rt_decode_memory_bytes(data.decode_memory));
    ck_assert_msg(data.train.fetch(&data.train, 0, square, &error), "%s",
                  error.text);
    rt_data_close(&data);
    max_pixels = 0;
}
END_TEST

START_TEST(scans_are_counted) {
    enum { SIDE = 24 };
    static const char name[] = "d/train/ant/a.jpg";
    uint8_t pixel[SIDE * SIDE * 3];
    for (size_t i = 0; i < sizeof pixel; i++)
        pixel[i] = (uint8_t)(i * i / 7);
    write_good();
    unlink("d/train/ant/a.png");
    write_jpeg_in(name, SIDE, SIDE, pixel, false, 100);
    check_first(NULL);
    write_jpeg_in(name, SIDE, SIDE, pixel, false, 101);
    check_first("cannot decode d/train/ant/a.jpg: it has more than 100 scans");
}
END_TEST

START_TEST(interlaced_pixels_are_the_same) {
    enum { SIDE = 16 };
    uint8_t plain[SIDE * SIDE * 3], laced[SIDE * SIDE * 3];
    int bits = _i == 0 ? 8 : 16;
    write_good();
    write_grey("d/train/ant/a.png", SIDE, SIDE, bits, PNG_INTERLACE_NONE, 0);
    write_grey("d/train/ant/b.png", SIDE, SIDE, bits, PNG_INTERLACE_ADAM7, 0);
    ck_assert_msg(open_folder(3, SIDE), "%s", error.text);
    ck_assert(data.train.fetch(&data.train, 0, plain, &error));
    ck_assert(data.train.fetch(&data.train, 1, laced, &error));
    ck_assert_int_eq(memcmp(plain, laced, sizeof plain), 0);
    rt_data_close(&data);
}
END_TEST

// The text on standard error while every sample of a split is fetched.
static void fetch_loudly(const RtSplit *s, bool *good, char *said) {
    enum { MOST = 2000 };
    uint8_t pixel[SIZE * SIZE * 3];
    int saved = dup(STDERR_FILENO);
    FILE *heard = tmpfile();
    ck_assert_ptr_nonnull(heard);
    ck_assert_int_ge(dup2(fileno(heard), STDERR_FILENO), 0);
    for (int64_t i = 0; i < s->count; i++)
        good[i] = s->fetch(s, i, pixel, &error);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    close(saved);
    rewind(heard);
    said[fread(said, 1, MOST - 1, heard)] = '\0';
    fclose(heard);
}

// The next file of its class replaces a file that cannot be decoded,
// cyclically, and each such file is named once.
START_TEST(a_bad_file_may_be_skipped) {
    bool good[6];
    char said[2000];
    write_good();
    place_write("d/train/cat/c.png", "<html>", 6);
    place_write("d/train/cat/d.jpg", "", 0);
    max_bad_files = 2;
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    ck_assert_int_eq(data.train.count, 6);
    for (int i = 1; i < 5; i++)
        check_sample(&data.train, i, 1, i == 2 ? 20 : 10);
    check_sample(&data.train, 5, 2, 30);
    fetch_loudly(&data.train, good, said);
    ck_assert_str_eq(said, "");
    rt_data_close(&data);
    ck_assert(open_folder(3, SIZE));
    fetch_loudly(&data.train, good, said);
    ck_assert_str_eq(said,
                     "warning: cannot decode d/train/cat/c.png: it is no JPEG, "
                     "PNG or WebP file: skipped and replaced by "
                     "d/train/cat/d.jpg (1 of at most 2)\n"
                     "warning: cannot decode d/train/cat/d.jpg: it is no JPEG, "
                     "PNG or WebP file: skipped and replaced by "
                     "d/train/cat/a.png (2 of at most 2)\n");
    rt_data_close(&data);
    max_bad_files = 0;
}
END_TEST

START_TEST(too_many_bad_files) {
    static const char *const name[] = {"d/train/cat/b.jpg",
                                       "d/train/dog/a.JPG"};
    uint8_t pixel[SIZE * SIZE * 3];
    write_good();
    for (int i = 0; i < 2; i++)
        place_write(name[i], "GIF89a", 6);
    max_bad_files = 1;
    ck_assert(open_folder(3, SIZE));
    // The only file of a class cannot be replaced.
    ck_assert(!data.train.fetch(&data.train, 3, pixel, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "no image of the class of d/train/"
                                             "dog/a.JPG can be decoded"));
    check_sample(&data.train, 2, 1, 10);
    write_plain("d/train/dog/b.png", 8, 8, 70, 200);
    rt_data_close(&data);
    ck_assert(open_folder(3, SIZE));
    check_sample(&data.train, 3, 2, 70);
    ck_assert(!data.train.fetch(&data.train, 2, pixel, &error));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_str_eq(error.text,
                     "cannot decode d/train/cat/b.jpg: it is no JPEG, "
                     "PNG or WebP file, after 1 that was skipped");
    // A file that cannot be read may be readable later.
    ck_assert_int_eq(unlink("d/train/dog/b.png"), 0);
    ck_assert(!data.train.fetch(&data.train, 4, pixel, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "cannot open d/train/dog/b.png"));
    ck_assert_int_eq(error.status, EXIT_IO);
    // A dangling link, or a folder, stays one.
    ck_assert_int_eq(symlink("nowhere", "d/train/dog/b.png"), 0);
    ck_assert(!data.train.fetch(&data.train, 4, pixel, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "cannot open d/train/dog/b.png"));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_int_eq(unlink("d/train/dog/b.png"), 0);
    ck_assert_int_eq(mkdir("d/train/dog/b.png", 0700), 0);
    ck_assert(!data.train.fetch(&data.train, 4, pixel, &error));
    ck_assert_str_eq(error.text, "d/train/dog/b.png is not a file");
    ck_assert_int_eq(error.status, EXIT_DATA);
    // A pipe without a writer does not block.
    ck_assert_int_eq(rmdir("d/train/dog/b.png"), 0);
    ck_assert_int_eq(mkfifo("d/train/dog/b.png", 0700), 0);
    ck_assert(!data.train.fetch(&data.train, 4, pixel, &error));
    ck_assert_str_eq(error.text, "d/train/dog/b.png is not a file");
    rt_data_close(&data);
    max_bad_files = 0;
}
END_TEST

// A file with any one changed byte is decoded, or refused and named.
START_TEST(any_byte_may_be_wrong) {
    static const char *const name[] = {"d/train/ant/a.png",
                                       "d/train/dog/a.JPG"};
    static const uint8_t change[] = {1, 16, 255};
    uint8_t pixel[SIZE * SIZE * 3];
    size_t length, refusals = 0;
    write_good();
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    uint8_t *bytes = place_read(name[_i], &length);
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            bytes[i] ^= change[k];
            place_write(name[_i], bytes, length);
            bytes[i] ^= change[k];
            if (data.train.fetch(&data.train, 3 * _i, pixel, &error))
                continue;
            ck_assert_ptr_nonnull(strstr(error.text, name[_i]));
            refusals++;
        }
    ck_assert_uint_gt(refusals, 50);
    free(bytes);
    rt_data_close(&data);
}
END_TEST

// Few damages of such a file can be detected; those are reported.
START_TEST(arithmetic_codes_may_be_wrong) {
    enum { SIDE = 40 };
    static const char name[] = "d/train/dog/a.JPG";
    uint8_t image[SIDE * SIDE * 3], pixel[SIZE * SIZE * 3];
    size_t length, refusals = 0;
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(i * i / 5);
    write_good();
    write_jpeg(name, SIDE, SIDE, image, true);
    ck_assert_msg(open_folder(3, SIZE), "%s", error.text);
    uint8_t *bytes = place_read(name, &length);
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 1;
        place_write(name, bytes, length);
        bytes[i] ^= 1;
        if (!data.train.fetch(&data.train, 3, pixel, &error))
            refusals += strstr(error.text, "bad arithmetic code") != NULL;
    }
    ck_assert_uint_gt(refusals, 0);
    free(bytes);
    rt_data_close(&data);
}
END_TEST

Suite *image_folder_suite(void) {
    Suite *s = suite_create("image_folder");
    TCase *t = tcase_create("image_folder");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, classes_are_in_the_order_of_their_names);
    tcase_add_test(t, ignored_files_are_counted);
    tcase_add_test(t, which_are_named_is_no_matter_of_their_order);
    tcase_add_test(t, the_centre_is_cropped);
    tcase_add_loop_test(t, a_rectangle_is_cropped, 0, 2);
    tcase_add_test(t, a_slope_stays_a_slope);
    tcase_add_loop_test(t, a_bad_folder, 0, 7);
    tcase_add_loop_test(t, a_bad_file, 0, 8);
    tcase_add_loop_test(t, pixels_are_counted, 0, 2);
    tcase_add_test(t, text_is_not_read);
    tcase_add_test(t, scans_are_counted);
    tcase_add_loop_test(t, interlaced_pixels_are_the_same, 0, 2);
    tcase_add_test(t, a_bad_file_may_be_skipped);
    tcase_add_test(t, too_many_bad_files);
    tcase_add_loop_test(t, any_byte_may_be_wrong, 0, 2);
    suite_add_tcase(s, t);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "numbers");
    tcase_set_timeout(large, 60);
    tcase_add_checked_fixture(large, place_enter, place_leave);
    tcase_add_loop_test(large, an_image_fits_in_the_counted_memory, 0, 4);
    tcase_add_test(large, arithmetic_codes_may_be_wrong);
    suite_add_tcase(s, large);
    return s;
}
