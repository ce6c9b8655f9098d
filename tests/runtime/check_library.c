// Libraries that are opened when needed: messages about missing and wrong ones.

#include "runtime/library.h"
#include "tests/runtime/suites.h"

#include <stddef.h>
#include <string.h>

#define FUNCTIONS(F)                                                           \
    F(double, cosine, "cos", (double))                                         \
    F(double, root, "sqrt", (double))

typedef struct {
    int before;
    FUNCTIONS(RT_FUNCTION)
} Math;

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(Math, member)},
    FUNCTIONS(F)
#undef F
        {"no_such_function", offsetof(Math, root)},
};

enum { FOUND = 2, MISSING = 3 };

static void *library_open(const char *const *files, size_t count, Math *m,
                          RtError *e) {
    RtLibrary l = {"angles need", files,   "install a libm",
                   EXIT_DATA,     symbols, count};
    return rt_library_open(&l, m, e);
}

START_TEST(functions_are_found_in_the_first_file_that_is_there) {
    const char *const files[] = {"libnowhere.so.9", "libm.so.6", NULL};
    Math m = {.before = 7};
    RtError e = {0};
    void *library = library_open(files, FOUND, &m, &e);
    ck_assert_msg(library != NULL, "%s", e.text);
    ck_assert_double_eq(m.cosine(0), 1);
    ck_assert_double_eq(m.root(9), 3);
    ck_assert_int_eq(m.before, 7);
    rt_library_close(library);
}
END_TEST

START_TEST(a_missing_library_is_named_with_what_to_install) {
    const char *const files[] = {"libnowhere.so.9", "libnowhere.so.8", NULL};
    Math m = {0};
    RtError e = {0};
    ck_assert_ptr_null(library_open(files, FOUND, &m, &e));
    ck_assert_int_eq(e.status, EXIT_DATA);
    ck_assert_ptr_nonnull(strstr(e.text, "angles need libnowhere.so.9, which"));
    ck_assert_ptr_nonnull(strstr(e.text, "libnowhere.so.9: cannot open"));
    ck_assert_ptr_nonnull(strstr(e.text, ": install a libm"));
}
END_TEST

START_TEST(a_library_without_a_function_is_another_one) {
    const char *const files[] = {"libm.so.6", NULL};
    Math m = {0};
    RtError e = {0};
    ck_assert_ptr_null(library_open(files, MISSING, &m, &e));
    ck_assert_str_eq(e.text, "angles need the function no_such_function, "
                             "which libm.so.6 does not have: install a libm");
}
END_TEST

Suite *library_suite(void) {
    Suite *suite = suite_create("library");
    TCase *tests = tcase_create("open");
    tcase_add_test(tests, functions_are_found_in_the_first_file_that_is_there);
    tcase_add_test(tests, a_missing_library_is_named_with_what_to_install);
    tcase_add_test(tests, a_library_without_a_function_is_another_one);
    suite_add_tcase(suite, tests);
    return suite;
}
