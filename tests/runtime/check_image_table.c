// Tables of image files: columns, quotes, and refusals.  The images are not
// decoded here.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdio.h>
#include <string.h>

static RtData data;
static RtError error;

static const RtArray array[] = {
    {"meta", "input.meta", {RT_F32, 1, {2}}, 0, 0, false},
    {"kind", "label.kind", {RT_I32, 0, {0}}, 10, 0, false},
    {"byte", "input.byte", {RT_U8, 0, {0}}, 0, 0, false}};

static RtDataSpec sample_of(void) {
    return (RtDataSpec){.image = {RT_U8, 3, {4, 4, 3}},
                        .label = {.rank = -1, .type = RT_I32},
                        .image_name = "photo",
                        .array = array,
                        .num_arrays = 3};
}

static const char good[] = "kind,meta.1,photo,note,\"byte\",meta.0\r\n"
                           "3,-0.5,a.png,\"x, \"\"y\"\"\",255,1e3\r\n"
                           "9,2,\"b, c.jpg\",,0,7";

static void write_table(const char *text) {
    place_write("d/train.csv", text, strlen(text));
    place_write("d/test.csv", text, strlen(text));
}

static void write_good(void) {
    place_folder("d");
    place_write("d/a.png", "a", 1);
    place_write("d/b, c.jpg", "b", 1);
    write_table(good);
}

static bool open_table(const RtDataSpec *spec) {
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, "image_table", "d", spec, &rt_system_files,
                        &error);
}

static float real_at(const RtColumn *c, int64_t sample, size_t i) {
    return ((const float *)(const void *)rt_column_at(c, sample))[i];
}

START_TEST(columns_are_found_by_name) {
    const RtDataSpec spec = sample_of();
    write_good();
    ck_assert_msg(open_table(&spec), "%s", error.text);
    const RtSplit *s = &data.test;
    const RtImages *images = s->source;
    ck_assert_int_eq(s->count, 2);
    ck_assert_str_eq(images->name.name[1], "d/b, c.jpg");
    ck_assert(real_at(&s->array[0], 0, 0) == 1000);
    ck_assert(real_at(&s->array[0], 0, 1) == -0.5F);
    ck_assert(real_at(&s->array[0], 1, 0) == 7);
    int32_t kind;
    memcpy(&kind, rt_column_at(&s->array[1], 1), sizeof kind);
    ck_assert_int_eq(kind, 9);
    ck_assert_int_eq(*rt_column_at(&s->array[2], 0), 255);
    rt_data_close(&data);
}
END_TEST

// Spreadsheets write a byte order mark, and people blanks after commas.
START_TEST(a_mark_and_blanks_are_no_part_of_a_column) {
    const RtDataSpec spec = sample_of();
    write_good();
    write_table("\xef\xbb\xbfkind, meta.1 ,\"photo\" , byte,\tmeta.0\r\n"
                "3, -0.5, a.png ,255 ,1e3\r\n9,2, \"b, c.jpg\",0,7 ");
    ck_assert_msg(open_table(&spec), "%s", error.text);
    const RtImages *images = data.test.source;
    ck_assert_int_eq(data.test.count, 2);
    ck_assert_str_eq(images->name.name[0], "d/a.png");
    ck_assert_str_eq(images->name.name[1], "d/b, c.jpg");
    ck_assert(real_at(&data.test.array[0], 0, 1) == -0.5F);
    ck_assert_int_eq(*rt_column_at(&data.test.array[2], 0), 255);
    rt_data_close(&data);
}
END_TEST

START_TEST(an_only_label_has_its_column) {
    RtDataSpec spec = sample_of();
    spec.image_name = NULL;
    spec.num_arrays = 0;
    spec.label.rank = 0;
    spec.classes = 3;
    write_good();
    write_table("image,label\na.png,2\na.png,0\n");
    ck_assert_msg(open_table(&spec), "%s", error.text);
    ck_assert_int_eq(data.train.count, 2);
    ck_assert_int_eq(*rt_column_at(&data.train.label, 0), 2);
    rt_data_close(&data);
}
END_TEST

static const struct {
    const char *from, *to, *says;
} wrong[] = {
    {"kind,", "kinds,", "d/train.csv has no column kind"},
    {"meta.1", "meta.2", "d/train.csv has no column meta.1"},
    {"meta.1", "meta.0", "d/train.csv has more than one column meta.0"},
    {"photo", "image",
     "d/train.csv has 0 columns photo, and not one; it has 'kind', 'meta.1', "
     "'image', 'note', 'byte', 'meta.0'"},
    {"kind,meta.1,photo,note,\"byte\",meta.0", "kind;photo",
     "it has 'kind;photo': separate columns by commas"},
    {"note", "photo", "d/train.csv has 2 columns photo, and not one"},
    {"a.png", "c.png", "d/train.csv:2: 'c.png' is no .jpg"},
    {"a.png", "a.txt", "d/train.csv:2: 'a.txt' is no .jpg"},
    {"-0.5", "", "d/train.csv:2: column meta.1 has '', and not a number"},
    {"-0.5", "1 m", "d/train.csv:2: column meta.1 has '1 m', and not a number"},
    {"-0.5", "nan", "column meta.1 has 'nan', and not a number"},
    {"-0.5", "1e99", "column meta.1 has '1e99', and not a number"},
    {"3,-", "3.5,-", "column kind has '3.5', and not a whole number"},
    {"3,-", "1e10,-", "column kind has '1e10', and not a whole number"},
    {"3,-", "10,-", "d/train.csv: sample 0 has label 10"},
    {"255", "256", "column byte has '256', and not a whole number"},
    {"255", "-1", "column byte has '-1', and not a whole number"},
    {",1e3", "", "d/train.csv:2: the line has not 6 fields"},
    {",1e3", ",1e3,4", "d/train.csv:2: the line has not 6 fields"},
    {"\"\"y\"\"\"", "y", "d/train.csv:2: a quote has no end on its line"},
    {"\"b, c.jpg\"", "\"b, c.jpg\"x",
     "d/train.csv:3: a field has text after its quote"},
};

START_TEST(mistakes_are_refused_with_their_line) {
    const RtDataSpec spec = sample_of();
    char text[500];
    write_good();
    const char *at = strstr(good, wrong[_i].from);
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good,
             wrong[_i].to, at + strlen(wrong[_i].from));
    write_table(text);
    ck_assert_msg(!open_table(&spec), "accepted: %s", wrong[_i].says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, wrong[_i].says) != NULL, "%s", error.text);
}
END_TEST

START_TEST(a_table_needs_samples) {
    const RtDataSpec spec = sample_of();
    write_good();
    write_table("kind,meta.1,photo,byte,meta.0\n");
    ck_assert(!open_table(&spec));
    ck_assert_ptr_nonnull(strstr(error.text, "d/train.csv has no samples"));
    place_write("d/train.csv", "kind\0", 5);
    ck_assert(!open_table(&spec));
    ck_assert_ptr_nonnull(strstr(error.text, "d/train.csv has a zero byte"));
    write_table(good);
    remove("d/test.csv");
    ck_assert(!open_table(&spec));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_ptr_nonnull(strstr(error.text, "hold samples out with --valid"));
}
END_TEST

// A table with any one changed byte is read, or refused with a message.
START_TEST(any_byte_may_be_wrong) {
    static const uint8_t change[] = {1, 2, 4, 14, 47, 128, 255};
    const RtDataSpec spec = sample_of();
    char text[sizeof good];
    int refusals = 0;
    write_good();
    for (size_t i = 0; i < sizeof good - 1; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            memcpy(text, good, sizeof good);
            text[i] = (char)(text[i] ^ change[k]);
            place_write("d/train.csv", text, sizeof good - 1);
            if (open_table(&spec)) {
                rt_data_close(&data);
                continue;
            }
            ck_assert_int_eq(error.status, EXIT_DATA);
            ck_assert_ptr_nonnull(strstr(error.text, "d/train.csv"));
            refusals++;
        }
    ck_assert_int_gt(refusals, (int)sizeof good);
}
END_TEST

Suite *image_table_suite(void) {
    Suite *s = suite_create("image_table");
    TCase *t = tcase_create("image_table");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, columns_are_found_by_name);
    tcase_add_test(t, a_mark_and_blanks_are_no_part_of_a_column);
    tcase_add_test(t, an_only_label_has_its_column);
    tcase_add_loop_test(t, mistakes_are_refused_with_their_line, 0,
                        sizeof wrong / sizeof *wrong);
    tcase_add_test(t, a_table_needs_samples);
    tcase_add_test(t, any_byte_may_be_wrong);
    suite_add_tcase(s, t);
    return s;
}
