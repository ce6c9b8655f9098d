// The headers of safetensors files, good and bad.
#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/suites.h"

#include <stdlib.h>
#include <string.h>

static bool parse(const char *text, uint64_t data_bytes, RtHeader *h,
                  RtError *e) {
    // An allocation of the exact size, so that a sanitizer detects an overrun.
    size_t length = strlen(text);
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    char *exact = realloc(copy, length > 0 ? length : 1);
    bool good = rt_header_parse(h, exact, length, data_bytes, e);
    free(exact);
    return good;
}

START_TEST(a_good_header) {
    RtHeader h;
    RtError e = {0};
    const char *text =
        "{\"b\":{\"data_offsets\":[8,20],\"dtype\":\"I32\",\"shape\":[3]},"
        " \"__metadata__\" : {\"k\\u00e9y\":\"v\\n\",\"x\":\"\"},"
        "\"a\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
        "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]}}   ";
    ck_assert_msg(parse(text, 24, &h, &e), "%s", e.text);
    ck_assert_uint_eq(h.num_tensors, 3);
    ck_assert_str_eq(h.tensor[0].name, "a");
    ck_assert_int_eq(h.tensor[0].type, RT_F16);
    ck_assert_int_eq(h.tensor[0].rank, 2);
    ck_assert_int_eq(rt_header_tensor(&h, "s")->rank, 0);
    ck_assert_ptr_null(rt_header_tensor(&h, "c"));
    ck_assert_str_eq(rt_header_metadata(&h, "k\xc3\xa9y")->value, "v\n");
    ck_assert_int_eq(text[rt_header_metadata(&h, "x")->value_at], '"');
    rt_header_free(&h);
}
END_TEST

#define A(fields) "{\"a\":{" fields "}}"
static const struct {
    const char *text;
    uint64_t data_bytes;
} wrong[] = {
    {"", 0},
    {"{", 0},
    {"[]", 0},
    {"{}x", 0},
    {"{}", 1},
    {"{\"a\"}", 0},
    {"{\"a\":1}", 0},
    {"{\"a\":{}}", 0},
    {"{\"a", 0},
    {"{\"a\\", 0},
    {"{\"a\\u12", 0},
    {"{\"a\\u0000\":1}", 0},
    {"{\"a\\ud800\":1}", 0},
    {"{\"a\\q\":1}", 0},
    {"{\"a\nb\":1}", 0},
    {"{\"__metadata__\":[]}", 0},
    {"{\"__metadata__\":{\"a\":1}}", 0},
    {"{\"__metadata__\":{\"a\":\"b\",}}", 0},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0},
    {"{\"__metadata__\":{\"b\":\"\",\"a\":\"\",\"b\":\"\"}}", 0},
    {A("\"dtype\":\"F32\",\"shape\":[1]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1]"), 4},
    {A("\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]"), 8},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"), 8},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 5},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 3},
    {A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,"
       "99999999999999999999]"),
     4},
    {A("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],"
       "\"data_offsets\":[0,0]"),
     0},
    {A("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],"
       "\"data_offsets\":[0,4]"),
     4},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
     5},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
     4},
};

START_TEST(a_bad_header) {
    RtHeader h;
    RtError e = {0};
    ck_assert_msg(!parse(wrong[_i].text, wrong[_i].data_bytes, &h, &e),
                  "accepted: %s", wrong[_i].text);
    ck_assert_int_eq(e.status, EXIT_DATA);
    ck_assert_uint_gt(strlen(e.text), 0);
}
END_TEST

START_TEST(a_name_that_is_too_long) {
    char text[RT_MAX_KEY + 100] = "{\"";
    memset(text + 2, 'x', RT_MAX_KEY);
    strcpy(text + 2 + RT_MAX_KEY, "\":{}}");
    RtHeader h;
    RtError e;
    ck_assert(!parse(text, 0, &h, &e));
}
END_TEST

START_TEST(deep_nesting_is_no_recursion) {
    size_t length = 1000000;
    char *text = malloc(length + 1);
    memset(text, '{', length);
    text[length] = '\0';
    RtHeader h;
    RtError e;
    ck_assert(!parse(text, 0, &h, &e));
    free(text);
}
END_TEST

Suite *json_suite(void) {
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_test(t, a_good_header);
    tcase_add_loop_test(t, a_bad_header, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_test(t, a_name_that_is_too_long);
    tcase_add_test(t, deep_nesting_is_no_recursion);
    suite_add_tcase(s, t);
    return s;
}
