// Families: kernels that differ in sizes alone are one function on the host.
#include "tests/codegen/suites.h"

#include "codegen/emit.h"

#include <string.h>

// A kernel over ROWS by C with more lines in it.
static Kernel *kernel(Arena *a, const char *name, int rows, int columns,
                      const char *more) {
    Kernel *k = ARENA_NEW(a, Kernel);
    const char *format =
        "KERNEL(256) %s(\n"
        "    const act *RESTRICT p1)\n"
        "{\n"
        "    OWN_BLOCK;\n"
        "    enum { ROWS = %d, C = %d, VW = LANES(C), CG = C / VW };\n"
        "    CHUNK(lo, hi, ROWS);\n"
        "    for (int g = tx; g < CG; g += TX) {\n"
        "        load_act(v1, p1 + (size_t)i * C + g * VW, VW);\n"
        "        %s\n"
        "    }\n"
        "}\n";
    k->name = name;
    k->text = arena_format(a, format, name, rows, columns, more);
    k->key = arena_format(a, format, "", rows, columns, more);
    return k;
}

static void gather(Arena *a, Kernel *x, Kernel *y) {
    Kernel *both[] = {x, y};
    kernels_gather(both, 2, a);
}

START_TEST(sizes_are_given) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 64, "v *= 0.5f; q = p + 192 + j * 14;");
    Kernel *y = kernel(a, "k2", 250, 128, "v *= 0.25f; q = p + 384 + j * 14;");
    const char *text = y->text;
    gather(a, x, y);
    ck_assert_ptr_eq(x->head, x);
    ck_assert_ptr_eq(y->head, x);
    ck_assert_ptr_eq(x->family, y);
    ck_assert_ptr_null(y->family);
    ck_assert_str_eq(x->sizes, "{.size = 1000}, {.size = 64}, "
                               "{.scale = 0.5f}, {.size = 192}");
    ck_assert_str_eq(y->sizes, "{.size = 250}, {.size = 128}, "
                               "{.scale = 0.25f}, {.size = 384}");
    ck_assert_str_eq(
        x->text,
        "KERNEL(256) k1(\n"
        "    const act *RESTRICT p1)\n"
        "{\n"
        "    OWN_BLOCK;\n"
        "    const int size0 = SIZE(0, 1000);\n"
        "    const int size1 = SIZE(1, 64);\n"
        "    const float scale2 = SCALE(2, 0.5f);\n"
        "    const int size3 = SIZE(3, 192);\n"
        "    enum { ROWS = 1000, C = 64, VW = LANES(C), CG = C / VW };\n"
        "    CHUNK(lo, hi, size0);\n"
        "    for (int g = tx; g < (size1 / VW); g += TX) {\n"
        "        load_act(v1, p1 + (size_t)i * size1 + g * VW, VW);\n"
        "        v *= scale2; q = p + size3 + j * 14;\n"
        "    }\n"
        "}\n");
    ck_assert_ptr_eq(y->text, text); // on a GPU it has its own
    arena_free(a);
}
END_TEST

// What is no size keeps kernels apart; rows and columns differ as well.
static const struct {
    const char *x, *y;
    int columns;
} apart[] = {
    {"q = r % 196;", "q = r % 784;", 64},
    {"q = r / 196;", "q = r / 784;", 64},
    {"q = r / C;", "q = r / C;", 128},
    {"q = r % CG;", "q = r % CG;", 128},
    {"float q[C];", "float q[C];", 128},
    {"float q[196];", "float q[784];", 64},
    {"UNROLLED(j, 3) q += j;", "UNROLLED(j, 5) q += j;", 64},
    {"load_f32(q, p1, C);", "load_f32(q, p1, C);", 128},
    {"q = j * 7;", "q = j * 9;", 64},
    {"q = 1 << 64;", "q = 1 << 65;", 64},
    {"q = 100;", "q = 200;", 64},
    {"q = a + b;", "q = a * b;", 64},
    {"", "", 32}, // half as many lanes
    {"enum { PER = C + 1 };", "enum { PER = C + 1 };", 128},
    {"TABLE int q[] = {1};", "TABLE int q[] = {1};", 64},
};

START_TEST(others_stay_apart) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 64, apart[_i].x);
    Kernel *y = kernel(a, "k2", 250, apart[_i].columns, apart[_i].y);
    const char *text = x->text;
    gather(a, x, y);
    ck_assert_ptr_null(x->head);
    ck_assert_ptr_null(y->head);
    ck_assert_ptr_eq(x->text, text);
    arena_free(a);
}
END_TEST

// Columns that are no whole vectors are the same for all of a family.
START_TEST(rows_differ_for_any_columns) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 10, "q = r / C;");
    Kernel *y = kernel(a, "k2", 250, 10, "q = r / C;");
    gather(a, x, y);
    ck_assert_ptr_eq(y->head, x);
    ck_assert_str_eq(y->sizes, "{.size = 250}");
    ck_assert_ptr_nonnull(strstr(x->text, "q = r / C;"));
    arena_free(a);
}
END_TEST

Suite *family_suite(void) {
    Suite *s = suite_create("family");
    TCase *t = tcase_create("family");
    tcase_add_test(t, sizes_are_given);
    tcase_add_loop_test(t, others_stay_apart, 0,
                        (int)(sizeof apart / sizeof *apart));
    tcase_add_test(t, rows_differ_for_any_columns);
    suite_add_tcase(s, t);
    return s;
}
