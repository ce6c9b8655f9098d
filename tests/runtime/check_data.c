// Readers of data sets: results, and refusals.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const RtDataSpec cifar = {.image = {RT_U8, 3, {32, 32, 3}},
                                 .label = {RT_I32, 0, {0}},
                                 .classes = 10},
                        mnist = {.image = {RT_U8, 3, {5, 4, 1}},
                                 .label = {RT_I32, 0, {0}},
                                 .classes = 10};
enum { RECORD = 3073 };

static RtData data;
static RtError error;

static bool open_with(const char *format, const RtDataSpec *sample,
                      const RtFiles *files) {
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, format, "d", sample, files, &error);
}

static bool open_data(const char *format, const RtDataSpec *sample) {
    return open_with(format, sample, &rt_system_files);
}

// The first number of a sample's label.
static int label_of(const RtSplit *s, int64_t sample) {
    int32_t label;
    const RtColumn *c = &s->label;
    uint8_t room[4096];
    memcpy(room, rt_column_at(c, sample),
           c->values * rt_file_type_bytes(c->type));
    rt_file_type_widen(room, c->values, c->type, RT_I32);
    memcpy(&label, room, sizeof label);
    return label;
}

static void refused(const char *format, const RtDataSpec *sample,
                    const char *says) {
    ck_assert_msg(!open_data(format, sample), "accepted: %s", says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

// Record i of a file: label i % 10, then bytes that depend on their position.
static void write_records(const char *name, int first, int count) {
    uint8_t *bytes = malloc((size_t)count * RECORD + 1);
    for (int i = 0; i < count; i++) {
        uint8_t *r = bytes + (size_t)i * RECORD;
        r[0] = (uint8_t)((first + i) % 10);
        for (int k = 0; k < RECORD - 1; k++)
            r[1 + k] = (uint8_t)(first + i + k / 1024 * 50 + k % 1024);
    }
    place_write(name, bytes, (size_t)count * RECORD);
    free(bytes);
}

static void good_cifar(void) {
    place_folder("d");
    write_records("d/data_batch_1.bin", 0, 7);
    write_records("d/data_batch_2.bin", 7, 600);
    write_records("d/test_batch.bin", 100, 3);
}

START_TEST(cifar10_is_read) {
    uint8_t image[3072];
    good_cifar();
    ck_assert_msg(open_data("cifar10", &cifar), "%s", error.text);
    ck_assert_int_eq(data.train.count, 607);
    ck_assert_int_eq(data.test.count, 3);
    ck_assert_uint_eq(data.train.image.values, 3072);
    for (int i = 0; i < 607; i++) {
        ck_assert_int_eq(label_of(&data.train, i), i % 10);
        ck_assert(data.train.fetch(&data.train, i, image, &error));
        for (int p = 0; p < 1024; p += 37)
            for (int c = 0; c < 3; c++)
                ck_assert_int_eq(image[3 * p + c], (uint8_t)(i + c * 50 + p));
    }
    ck_assert_int_eq(label_of(&data.test, 0), 0);
    rt_data_close(&data);
}
END_TEST

START_TEST(the_hash_covers_every_byte) {
    good_cifar();
    ck_assert(open_data("cifar10", &cifar));
    uint64_t hash = data.hash;
    rt_data_close(&data);
    ck_assert(open_data("cifar10", &cifar));
    ck_assert_uint_eq(data.hash, hash);
    rt_data_close(&data);
    size_t length;
    uint8_t *bytes = place_read("d/data_batch_2.bin", &length);
    bytes[length - 1] ^= 1;
    place_write("d/data_batch_2.bin", bytes, length);
    free(bytes);
    ck_assert(open_data("cifar10", &cifar));
    ck_assert_uint_ne(data.hash, hash);
    rt_data_close(&data);
}
END_TEST

// A long path does not truncate the message about it.
START_TEST(a_long_path_is_reported) {
    enum { LONG = 2000 };
    char path[LONG + 1];
    for (int i = 0; i < LONG; i++)
        path[i] = i % 2 == 0 ? '.' : '/';
    path[LONG] = '\0';
    memset(&error, 0, sizeof error);
    ck_assert(!rt_data_open(&data, "cifar10", path, &cifar, &rt_system_files,
                            &error));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, path) != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, "of CIFAR's binary version") != NULL, "%s",
                  error.text);
}
END_TEST

START_TEST(cifar10_is_refused) {
    RtDataSpec sample = cifar;
    good_cifar();
    switch (_i) {
    case 0:
        unlink("d/data_batch_1.bin");
        refused("cifar10", &sample,
                "d/data_batch_1.bin does not exist; name the folder cifar-10-"
                "batches-bin");
        break;
    case 1:
        unlink("d/test_batch.bin");
        refused("cifar10", &sample, "d/test_batch.bin");
        break;
    case 2:
        place_write("d/data_batch_2.bin", "", 0);
        refused("cifar10", &sample, "d/data_batch_2.bin has 0 bytes");
        break;
    case 3:
        ck_assert_int_eq(truncate("d/data_batch_2.bin", 600 * RECORD - 1), 0);
        refused("cifar10", &sample, "not a multiple of the record size");
        break;
    case 4:
        ck_assert_int_eq(truncate("d/test_batch.bin", RECORD + 1), 0);
        refused("cifar10", &sample, "d/test_batch.bin");
        break;
    case 5:
        sample.classes = 9;
        refused(
            "cifar10", &sample,
            "d/data_batch_2.bin: record 2 has label 9, but the model has 9");
        break;
    case 6:
        sample.image.dim[0] = 28;
        refused("cifar10", &sample, "the trainer takes 28x32x3");
        break;
    case 7:
        sample.image.dim[2] = 1;
        refused("cifar10", &sample, "the trainer takes 32x32x1");
        break;
    case 8:
        unlink("d/data_batch_2.bin");
        place_folder("d/data_batch_2.bin");
        refused("cifar10", &sample, "d/data_batch_2.bin is not a file");
        break;
    case 9: // a pipe without a writer must not block
        unlink("d/data_batch_2.bin");
        ck_assert_int_eq(mkfifo("d/data_batch_2.bin", 0600), 0);
        refused("cifar10", &sample, "d/data_batch_2.bin is not a file");
        break;
    case 10:
        write_records("d/data_batch_4.bin", 0, 1);
        refused("cifar10", &sample,
                "d/data_batch_3.bin does not exist, but data_batch_4.bin does");
        break;
    }
}
END_TEST

START_TEST(cifar100_has_two_labels) {
    static const RtSetting coarse = {"coarse", 1, NULL};
    RtDataSpec sample = cifar;
    uint8_t record[3 * 3074], image[3072];
    place_folder("d");
    for (int i = 0; i < 3; i++) {
        memset(record + 3074 * i, 40 + i, 3074);
        record[3074 * i] = (uint8_t)(i + 5);
        record[3074 * i + 1] = (uint8_t)(i + 90);
    }
    place_write("d/train.bin", record, sizeof record);
    place_write("d/test.bin", record + 3074, 3074);
    sample.classes = 100;
    ck_assert_msg(open_data("cifar100", &sample), "%s", error.text);
    ck_assert_int_eq(data.train.count, 3);
    ck_assert_int_eq(label_of(&data.train, 2), 92);
    ck_assert_int_eq(label_of(&data.test, 0), 91);
    ck_assert(data.train.fetch(&data.train, 2, image, &error));
    ck_assert_int_eq(image[0], 42);
    ck_assert_int_eq(image[3071], 42);
    rt_data_close(&data);
    sample.classes = 20;
    refused("cifar100", &sample, "d/train.bin: record 0 has label 90");
    sample.setting = &coarse;
    sample.num_settings = 1;
    ck_assert_msg(open_data("cifar100", &sample), "%s", error.text);
    ck_assert_int_eq(label_of(&data.train, 2), 7);
    rt_data_close(&data);
    ck_assert_int_eq(truncate("d/test.bin", 3073), 0);
    refused("cifar100", &sample, "not a multiple of the record size, 3074");
}
END_TEST

static void write_idx(const char *name, uint32_t magic, int dims,
                      const uint32_t *dim, size_t bytes, bool labels) {
    uint8_t *all = calloc(bytes + 16, 1);
    const uint32_t word[4] = {magic, dim[0], dim[1], dim[2]};
    for (int i = 0; i <= dims; i++)
        for (int k = 0; k < 4; k++)
            all[4 * i + k] = (uint8_t)(word[i] >> (24 - 8 * k));
    for (size_t i = 0; i < bytes; i++)
        all[4 + 4 * (size_t)dims + i] = (uint8_t)(labels ? i % 10 : i * 3);
    place_write(name, all, 4 + 4 * (size_t)dims + bytes);
    free(all);
}

static void good_idx(void) {
    const uint32_t train[3] = {12, 5, 4}, test[3] = {3, 5, 4};
    place_folder("d");
    write_idx("d/train-images-idx3-ubyte", 0x803, 3, train, 240, false);
    write_idx("d/train-labels-idx1-ubyte", 0x801, 1, train, 12, true);
    write_idx("d/t10k-images.idx3-ubyte", 0x803, 3, test, 60, false);
    write_idx("d/t10k-labels.idx1-ubyte", 0x801, 1, test, 3, true);
}

START_TEST(idx_is_read) {
    uint8_t image[20];
    good_idx();
    ck_assert_msg(open_data("idx", &mnist), "%s", error.text);
    ck_assert_int_eq(data.train.count, 12);
    ck_assert_int_eq(data.test.count, 3);
    ck_assert(data.train.fetch(&data.train, 11, image, &error));
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(image[i], (uint8_t)((220 + i) * 3));
    ck_assert_int_eq(label_of(&data.train, 11), 1);
    rt_data_close(&data);
}
END_TEST

#define IMAGES "d/train-images-idx3-ubyte"
#define LABELS "d/train-labels-idx1-ubyte"

START_TEST(idx_is_refused) {
    RtDataSpec sample = mnist;
    const uint32_t dim[3] = {12, 5, 4}, more[3] = {13, 5, 4},
                   wide[3] = {12, 4, 5}, none[3] = {0, 5, 4},
                   huge[3] = {0xffffffff, 0xffffffff, 0xffffffff};
    good_idx();
    switch (_i) {
    case 0:
        unlink(IMAGES);
        refused("idx", &sample, "no file train-images-idx3-ubyte in d");
        break;
    case 1:
        ck_assert_int_eq(unlink(LABELS), 0);
        place_write(LABELS ".gz", "\x1f\x8b\x08 broken", 10);
        refused("idx", &sample, "no gzip file, or damaged");
        unlink(LABELS ".gz");
        break;
    case 2:
        ck_assert_int_eq(truncate(IMAGES, 15), 0);
        refused("idx", &sample, "too short for its header");
        break;
    case 3:
        ck_assert_int_eq(truncate(LABELS, 0), 0);
        refused("idx", &sample, "too short for its header");
        break;
    case 4:
        write_idx(IMAGES, 0x801, 3, dim, 240, false);
        refused("idx", &sample, "is not an idx file of images");
        break;
    case 5:
        write_idx(LABELS, 0x803, 1, dim, 12, true);
        refused("idx", &sample, "is not an idx file of labels");
        break;
    case 6:
        ck_assert_int_eq(truncate(IMAGES, 16 + 239), 0);
        refused("idx", &sample, "should have 240 bytes");
        break;
    case 7:
        write_idx(IMAGES, 0x803, 3, dim, 241, false);
        refused("idx", &sample, "but has 241");
        break;
    case 8:
        write_idx(LABELS, 0x801, 1, more, 13, true);
        refused("idx", &sample, "13 labels for 12 images");
        break;
    case 9:
        write_idx(IMAGES, 0x803, 3, wide, 240, false);
        refused("idx", &sample, "images of 4x5x1, but the trainer takes 5x4x1");
        break;
    case 10:
        write_idx(IMAGES, 0x803, 3, none, 0, false);
        refused("idx", &sample, IMAGES " has no samples");
        break;
    case 11:
        write_idx(IMAGES, 0x803, 3, huge, 240, false);
        refused("idx", &sample, "sizes in its header overflow");
        break;
    case 12:
        sample.classes = 9;
        refused("idx", &sample, "sample 9 has label 9");
        break;
    case 13:
        sample.image.dim[2] = 3;
        refused("idx", &sample, "the trainer takes 5x4x3");
        break;
    }
}
END_TEST

// Opens a data set without any test file.
static void lacks_test(const char *format, RtDataSpec sample,
                       const char *says) {
    refused(format, &sample, says);
    sample.test_optional = true;
    ck_assert_msg(open_data(format, &sample), "%s", error.text);
    ck_assert(rt_data_hold_out(&data, &(RtValidation){.samples = 2}, &error));
    ck_assert_int_eq(data.test.count, 2);
    rt_data_close(&data);
}

START_TEST(a_holdout_needs_no_test_set) {
    good_cifar();
    unlink("d/test_batch.bin");
    lacks_test("cifar10", cifar, "d/test_batch.bin");
    RtDataSpec held_out = cifar;
    held_out.test_optional = true;
    ck_assert_int_eq(symlink("nowhere", "d/test_batch.bin"), 0);
    refused("cifar10", &held_out, "d/test_batch.bin"); // a link is there
    unlink("d/test_batch.bin");
    place_write("d/train.bin", (uint8_t[3 * 3074]){0}, 3 * 3074);
    lacks_test("cifar100", cifar, "d/test.bin");
}
END_TEST

START_TEST(no_file_of_a_test_set_is_there_or_all_are) {
    RtDataSpec sample = mnist;
    good_idx();
    unlink("d/t10k-images.idx3-ubyte");
    sample.test_optional = true;
    refused("idx", &sample, "no file t10k-images-idx3-ubyte"); // its labels are
    unlink("d/t10k-labels.idx1-ubyte");
    lacks_test("idx", mnist, "no file t10k-images-idx3-ubyte in d");
}
END_TEST

START_TEST(an_unknown_format) {
    refused("tar", &cifar, "cannot read tar data");
}
END_TEST

// ---- reads that fail ----

static int calls, fails_at;

static ssize_t failing_read(int fd, void *to, size_t bytes) {
    if (++calls == fails_at) {
        errno = EIO;
        return -1;
    }
    return read(fd, to, bytes);
}

// Every second call is interrupted, the others read at most 1,000 bytes.
static ssize_t halting_read(int fd, void *to, size_t bytes) {
    if (++calls % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, to, bytes < 1000 ? bytes : 1000);
}

// Each of so many reads fails once.
static void reads_fail(const char *format, const RtDataSpec *sample,
                       int reads) {
    RtFiles files = rt_system_files;
    files.read = failing_read;
    for (fails_at = 1; fails_at <= reads; fails_at++) {
        calls = 0;
        ck_assert(!open_with(format, sample, &files));
        ck_assert_int_eq(error.status, EXIT_IO);
        ck_assert_ptr_nonnull(strstr(error.text, strerror(EIO)));
    }
    calls = 0;
    ck_assert(open_with(format, sample, &files));
    rt_data_close(&data);
}

START_TEST(a_read_that_fails) {
    good_cifar();
    reads_fail("cifar10", &cifar, 4);
}
END_TEST

// Headers and the following bytes of four files.
START_TEST(a_read_of_idx_that_fails) {
    good_idx();
    reads_fail("idx", &mnist, 8);
}
END_TEST

START_TEST(reads_that_are_short) {
    RtFiles files = rt_system_files;
    good_cifar();
    ck_assert(open_data("cifar10", &cifar));
    uint64_t hash = data.hash;
    rt_data_close(&data);
    files.read = halting_read;
    ck_assert(open_with("cifar10", &cifar, &files));
    ck_assert_uint_eq(data.hash, hash);
    rt_data_close(&data);
}
END_TEST

// ---- synthetic ----

START_TEST(synthetic_is_the_same_every_time) {
    RtData other;
    ck_assert(open_data("synthetic", &cifar));
    ck_assert(rt_data_open(&other, "synthetic", "", &cifar, &rt_system_files,
                           &error));
    ck_assert_int_eq(data.train.count, 10000);
    ck_assert_int_eq(data.test.count, 2000);
    ck_assert_int_eq(memcmp(data.train.image.bytes, other.train.image.bytes,
                            10000 * data.train.image.values),
                     0);
    ck_assert_int_eq(
        memcmp(data.test.label.bytes, other.test.label.bytes, 2000), 0);
    ck_assert_uint_eq(data.hash, other.hash);
    rt_data_close(&data);
    rt_data_close(&other);
}
END_TEST

START_TEST(synthetic_is_balanced_and_grey) {
    int count[10] = {0};
    double sum[10] = {0};
    ck_assert(open_data("synthetic", &cifar));
    for (int64_t i = 0; i < data.train.count; i++) {
        int label = label_of(&data.train, i);
        ck_assert(label >= 0 && label < 10);
        count[label]++;
        for (size_t k = 0; k < 3072; k++)
            sum[label] += data.train.image.bytes[(size_t)i * 3072 + k];
    }
    for (int k = 0; k < 10; k++) {
        ck_assert_int_gt(count[k], 800);
        ck_assert_int_lt(count[k], 1200);
        double mean = sum[k] / count[k] / 3072;
        ck_assert_msg(mean > 122 && mean < 134, "class %d: %f", k, mean);
    }
    rt_data_close(&data);
}
END_TEST

START_TEST(synthetic_has_any_shape) {
    static const RtDataSpec samples[] = {
        {.image = {RT_U8, 3, {28, 28, 1}}, .classes = 10},
        {.image = {RT_U8, 3, {1, 1, 1}}, .classes = 2},
        {.image = {RT_F32, 1, {7}}, .classes = 300},
        {.image = {RT_U8, 4, {3, 5, 7, 2}}, .classes = 3},
        {.image = {RT_U8, 3, {40, 100, 3}},
         .label = {RT_I32, 2, {20, 50}},
         .classes = 100},
        {.image = {RT_I32, 1, {16}},
         .label = {RT_I32, 1, {16}},
         .classes = 700},
        {.image = {RT_I32, 1, {16}}, .classes = 4},
        {.image = {RT_U8, 3, {8, 8, 1}}, .label = {RT_F32, 1, {5}}},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        RtDataSpec sample = samples[i];
        if (sample.label.rank == 0)
            sample.label.type = RT_I32;
        ck_assert_msg(open_data("synthetic", &sample), "%s", error.text);
        ck_assert_int_gt(data.test.count, 0);
        ck_assert_uint_eq(data.test.image.values,
                          rt_shape_values(&sample.image));
        ck_assert_uint_eq(data.test.label.values,
                          rt_shape_values(&sample.label));
        rt_data_close(&data);
    }
    RtDataSpec sample = cifar;
    sample.classes = 1;
    refused("synthetic", &sample, "at least two classes");
}
END_TEST

START_TEST(synthetic_has_as_many_samples_as_wanted) {
    static const RtSetting setting[] = {{"samples", 70, NULL},
                                        {"test", 30, NULL}};
    RtDataSpec sample = mnist;
    sample.setting = setting;
    sample.num_settings = 2;
    ck_assert(open_data("synthetic", &sample));
    ck_assert_int_eq(data.train.count, 70);
    ck_assert_int_eq(data.test.count, 30);
    rt_data_close(&data);
    sample.synthetic = 4;
    ck_assert(open_data("synthetic", &sample));
    ck_assert_int_eq(data.train.count, 4);
    ck_assert_int_eq(data.test.count, 4);
    rt_data_close(&data);
}
END_TEST

// If labels are the next tokens, most follow from the token before by one rule.
START_TEST(synthetic_tokens_follow_a_rule) {
    enum { LENGTH = 16, WORDS = 40 };
    const RtDataSpec sample = {.image = {RT_I32, 1, {LENGTH}},
                               .label = {RT_I32, 1, {LENGTH}},
                               .classes = WORDS};
    int follows[WORDS][WORDS] = {{0}}, most = 0, all = 0;
    ck_assert(open_data("synthetic", &sample));
    for (int64_t i = 0; i < data.train.count; i++) {
        const uint8_t *x = rt_column_at(&data.train.image, i);
        const uint8_t *y = rt_column_at(&data.train.label, i);
        for (int k = 0; k < LENGTH; k++) {
            ck_assert_int_lt(y[k], WORDS);
            follows[x[k]][y[k]]++;
            if (k > 0)
                ck_assert_int_eq(x[k], y[k - 1]);
        }
    }
    for (int a = 0; a < WORDS; a++) {
        int best = 0;
        for (int b = 0; b < WORDS; b++) {
            all += follows[a][b];
            best = follows[a][b] > best ? follows[a][b] : best;
        }
        most += best;
    }
    ck_assert_msg(most > all * 0.78 && most < all * 0.85, "%d of %d", most,
                  all);
    rt_data_close(&data);
}
END_TEST

// A dense label is 0 in the rectangle and the class around it.
START_TEST(synthetic_labels_cover_the_image) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {16, 24, 3}},
                               .label = {RT_I32, 2, {16, 24}},
                               .classes = 6};
    ck_assert(open_data("synthetic", &sample));
    int hidden = 0, shown = 0;
    for (int64_t i = 0; i < 200; i++) {
        const uint8_t *y = rt_column_at(&data.train.label, i);
        int class = 0;
        for (int k = 0; k < 16 * 24; k++) {
            if (y[k] != 0 && class != 0)
                ck_assert_int_eq(y[k], class);
            class = y[k] != 0 ? y[k] : class;
            hidden += class != 0 && y[k] == 0;
            shown += y[k] != 0;
        }
    }
    ck_assert_int_gt(hidden, 1000);
    ck_assert_int_gt(shown, 10 * 16 * 24);
    rt_data_close(&data);
}
END_TEST

Suite *data_suite(void) {
    Suite *s = suite_create("data");
    TCase *t = tcase_create("data");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, cifar10_is_read);
    tcase_add_test(t, the_hash_covers_every_byte);
    tcase_add_test(t, a_long_path_is_reported);
    tcase_add_loop_test(t, cifar10_is_refused, 0, 11);
    tcase_add_test(t, cifar100_has_two_labels);
    tcase_add_test(t, idx_is_read);
    tcase_add_loop_test(t, idx_is_refused, 0, 14);
    tcase_add_test(t, a_holdout_needs_no_test_set);
    tcase_add_test(t, no_file_of_a_test_set_is_there_or_all_are);
    tcase_add_test(t, an_unknown_format);
    tcase_add_test(t, a_read_that_fails);
    tcase_add_test(t, a_read_of_idx_that_fails);
    tcase_add_test(t, reads_that_are_short);
    tcase_add_test(t, synthetic_has_as_many_samples_as_wanted);
    tcase_add_test(t, synthetic_tokens_follow_a_rule);
    suite_add_tcase(s, t);
    TCase *drawn = tcase_create("drawn");
    tcase_set_tags(drawn, "numbers");
    tcase_set_timeout(drawn, 60);
    tcase_add_test(drawn, synthetic_is_the_same_every_time);
    tcase_add_test(drawn, synthetic_is_balanced_and_grey);
    tcase_add_test(drawn, synthetic_has_any_shape);
    tcase_add_test(drawn, synthetic_labels_cover_the_image);
    suite_add_tcase(s, drawn);
    return s;
}
