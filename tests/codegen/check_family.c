// Families: kernels that differ in sizes alone are one function on the host.
#include "tests/codegen/suites.h"

#include "codegen/emit.h"

#include <string.h>

// A kernel over rows by columns with more lines in it, as it is written.
// Columns differ where there are whole vectors of them.
static Kernel *kernel(Arena *a, const char *name, long long rows,
                      long long columns, const char *more) {
    Kernel *k = ARENA_NEW(a, Kernel);
    Text t = text_new(a);
    text_add(&t, "KERNEL(256) " OWN_NAME "(\n    const act *RESTRICT p" NODE,
             1u);
    text_add(&t, ")\n{\n    OWN_BLOCK;\n" BODY_BEGINS);
    t.indent = 1;
    emit_space(&t, type_of(F32, 2, (int64_t[]){rows, columns}), true,
               ", VW = LANES(C), CG = C / VW");
    text_add(&t,
             "    CHUNK(lo, hi, " ROWS ");\n"
             "    for (int g = tx; g < " GROUPS "; g += TX) {\n"
             "        load_act(v1, p1 + (size_t)i * " COLUMNS " + g, VW);\n"
             "        %s\n"
             "    }\n"
             "}\n",
             more);
    k->name = name;
    k->text = k->key = text_string(&t);
    return k;
}

static void gather(Arena *a, Kernel *x, Kernel *y) {
    Kernel *both[] = {x, y};
    kernels_gather(both, 2, a);
}

static const char *with_sizes(Arena *a, const char *scale, long long offset) {
    return arena_format(a, "v *= " SCALE "; q = p + " SIZE " + j * " SIZE ";",
                        scale, offset, 14ll);
}

START_TEST(sizes_are_given) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 64, with_sizes(a, "0.5f", 192));
    Kernel *y = kernel(a, "k2", 250, 128, with_sizes(a, "0.25f", 384));
    gather(a, x, y);
    ck_assert_ptr_eq(x->head, x);
    ck_assert_ptr_eq(y->head, x);
    ck_assert_ptr_eq(x->family, y);
    ck_assert_ptr_null(y->family);
    ck_assert_str_eq(y->on_host, "k2");
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
        "        load_act(v1, p1 + (size_t)i * size1 + g, VW);\n"
        "        v *= scale2; q = p + size3 + j * 14;\n"
        "    }\n"
        "}\n");
    // On a GPU it has its own.
    ck_assert_str_eq(
        y->text,
        "KERNEL(256) k2(\n"
        "    const act *RESTRICT p1)\n"
        "{\n"
        "    OWN_BLOCK;\n"
        "    enum { ROWS = 250, C = 128, VW = LANES(C), CG = C / VW };\n"
        "    CHUNK(lo, hi, ROWS);\n"
        "    for (int g = tx; g < CG; g += TX) {\n"
        "        load_act(v1, p1 + (size_t)i * C + g, VW);\n"
        "        v *= 0.25f; q = p + 384 + j * 14;\n"
        "    }\n"
        "}\n");
    arena_free(a);
}
END_TEST

// What is no size keeps kernels apart; rows and columns differ as well.
static const struct {
    const char *x, *y;
    long long columns;
} apart[] = {
    {"q = r % 196;", "q = r % 784;", 64}, // not marked
    {"q = j * \0057\002;", "q = j * \0059\002;", 64},
    {"q = \005100\002;", "q = \006100.0f\002;", 64},
    {"q = " ROWS ";", "q = " COLUMNS " * 2;", 64},
    {"q = j * \0053000000000\002;", "q = j * \0053000000001\002;", 64},
    {"q = a + b;", "q = a * b;", 64},
    {"", "", 32},         // half as many lanes
    {"", "", 64ll << 32}, // no int
};

START_TEST(others_stay_apart) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 64, apart[_i].x);
    Kernel *y = kernel(a, "k2", 250, apart[_i].columns, apart[_i].y);
    gather(a, x, y);
    ck_assert_ptr_null(x->head);
    ck_assert_ptr_null(y->head);
    ck_assert_str_eq(y->on_host, "k2");
    ck_assert_ptr_null(strstr(x->text, "SIZE("));
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

START_TEST(streams_are_given_by_their_name) {
    Arena *a = arena_new();
    Kernel *x =
        kernel(a, "k1", 1000, 64, "u = uniform(s, \0237001\002, b, i);");
    Kernel *y =
        kernel(a, "k2", 1000, 64, "u = uniform(s, \0239002\002, b, i);");
    gather(a, x, y);
    ck_assert_ptr_eq(y->head, x);
    ck_assert_str_eq(y->sizes, "{.size = 9002}");
    ck_assert_ptr_nonnull(
        strstr(x->text, "const int stream0 = SIZE(0, 7001);"));
    ck_assert_ptr_nonnull(strstr(x->text, "u = uniform(s, stream0, b, i);"));
    ck_assert_ptr_nonnull(strstr(y->text, "u = uniform(s, 9002, b, i);"));
    arena_free(a);
}
END_TEST

START_TEST(some_say_the_same_on_the_host) {
    Arena *a = arena_new();
    Kernel *x = kernel(a, "k1", 1000, 64, "q = f(" OFF_HOST("7") ");");
    Kernel *y = kernel(a, "k2", 1000, 64, "q = f(" OFF_HOST("8") ");");
    gather(a, x, y);
    ck_assert_str_eq(x->on_host, "k1");
    ck_assert_str_eq(y->on_host, "k1");
    ck_assert_ptr_null(x->head);
    ck_assert_ptr_null(y->head);
    ck_assert_ptr_nonnull(strstr(y->text, "q = f(8);"));
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
    tcase_add_test(t, streams_are_given_by_their_name);
    tcase_add_test(t, some_say_the_same_on_the_host);
    suite_add_tcase(s, t);
    return s;
}
