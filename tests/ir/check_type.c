// Types: what is valid, and what broadcasts to what.

#include "tests/ir/suites.h"

#include <string.h>

static Type shape(int rank, int64_t a, int64_t b, int64_t c) {
    return type_of(F32, rank, (int64_t[]){a, b, c});
}

START_TEST(types_print) {
    Arena *a = arena_new();
    Text t = text_new(a);
    type_print(&t, (Type[]){type_of(ACT, 2, (int64_t[]){512, 10})});
    type_print(&t, (Type[]){type_scalar(BOOL)});
    ck_assert_str_eq(text_string(&t), "act[512,10]bool[]");
    arena_free(a);
}
END_TEST

START_TEST(names_of_dtypes_are_found) {
    for (int d = 0; d < NUM_DTYPES; d++) {
        DType found = NUM_DTYPES;
        const char *name = dtype_name((DType)d);
        ck_assert(dtype_find(name, strlen(name), &found));
        ck_assert_int_eq(found, d);
    }
    DType found;
    ck_assert(!dtype_find("f3", 2, &found));
    ck_assert(!dtype_find("f321", 4, &found));
}
END_TEST

START_TEST(size_is_limited) {
    ck_assert(type_valid((Type[]){shape(3, 0, 5, INT32_MAX)}));
    ck_assert(!type_valid((Type[]){shape(1, INT64_C(1) << 31, 0, 0)}));
    ck_assert(!type_valid((Type[]){shape(1, -1, 0, 0)}));
    Type bytes = type_of(U8, 2, (int64_t[]){1 << 22, (1 << 24) - 1});
    ck_assert(type_valid(&bytes));
    bytes.dim[1]++;
    ck_assert(!type_valid(&bytes));
    ck_assert(!type_valid((Type[]){shape(3, INT32_MAX, INT32_MAX, INT32_MAX)}));
    ck_assert(
        !type_valid((Type[]){(Type){.dtype = F32, .rank = MAX_RANK + 1}}));
    ck_assert(!type_valid((Type[]){(Type){.dtype = NUM_DTYPES}}));
}
END_TEST

START_TEST(elements_are_counted) {
    ck_assert_int_eq(type_count((Type[]){type_scalar(F32)}), 1);
    ck_assert_int_eq(type_count((Type[]){shape(3, 2, 3, 4)}), 24);
    ck_assert_int_eq(type_count((Type[]){shape(2, 5, 0, 0)}), 0);
}
END_TEST

START_TEST(last_axes_broadcast) {
    Type out = {.dtype = I32};
    ck_assert(type_broadcast((Type[]){shape(3, 2, 1, 4)},
                             (Type[]){shape(2, 3, 1, 0)}, &out));
    ck_assert(type_is(&out, (Type[]){type_of(I32, 3, (int64_t[]){2, 3, 4})}));
    ck_assert(type_broadcast((Type[]){shape(1, 1, 0, 0)},
                             (Type[]){shape(1, 0, 0, 0)}, &out));
    ck_assert_int_eq(out.dim[0], 0);
    ck_assert(!type_broadcast((Type[]){shape(2, 2, 3, 0)},
                              (Type[]){shape(1, 2, 0, 0)}, &out));
}
END_TEST

Suite *type_suite(void) {
    Suite *s = suite_create("type");
    TCase *c = tcase_create("type");
    tcase_add_test(c, types_print);
    tcase_add_test(c, names_of_dtypes_are_found);
    tcase_add_test(c, size_is_limited);
    tcase_add_test(c, elements_are_counted);
    tcase_add_test(c, last_axes_broadcast);
    suite_add_tcase(s, c);
    return s;
}
