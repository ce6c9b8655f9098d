// Families: kernels that differ in sizes alone are one function on the host.
#include "tests/codegen/suites.h"

#include "codegen/emit.h"

#include <string.h>

// A kernel over rows by columns with more statements in it, in kernel IR.
// Columns differ where there are whole vectors of them.
static Kernel *kernel(Arena *a, const char *name, long long rows,
                      long long columns, const char *more) {
    const char *why = "", *sized = columns % 64 == 0 ? "sized " : "";
    Kernel *k = ARENA_NEW(a, Kernel);
    k->tree = ARENA_NEW(a, Tree);
    k->tree->arena = arena_child(a);
    const char *text = arena_format(
        a,
        "enum { sized ROWS = %lld, %sC = %lld, VW = LANES(C),"
        "       sized CG = C / VW };"
        "CHUNK(lo, hi, ROWS);"
        "for (int g = tx; g < CG; g += TX) {"
        "    load_act(v@1, p@1 + (size_t)i * C + g, VW);"
        "    %s"
        "}",
        rows, sized, columns, more);
    ck_assert_msg(block_read(a, &k->tree->body, text, &why), "%s", why);
    k->name = name;
    k->remark = "";
    k->num_args = 1;
    k->arg = ARENA_NEW(a, Parameter);
    k->arg[0] = (Parameter){1, 0, "const act", "p1"};
    k->tree->param = ARENA_ARRAY(a, 1, const Expr *);
    k->tree->param[0] = x_of_node(a, "p", 1);
    return k;
}

static void gather(Arena *a, Kernel *x, Kernel *y) {
    Families f = families_new(a, 2);
    family_take(&f, x, a);
    family_take(&f, y, a);
    families_print(&f, a);
}

static const char *with_sizes(Arena *a, const char *scale, long long offset) {
    return arena_format(a, "v = v * scale(%s); q = p + size(%lld) + j * size(14);",
                        scale, offset);
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
        "    for (int g = tx; g < size1 / VW; g += TX) {\n"
        "        load_act(v1, p1 + (size_t)i * size1 + g, VW);\n"
        "        v = v * scale2;\n"
        "        q = p + size3 + j * 14;\n"
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
        "        v = v * 0.25f;\n"
        "        q = p + 384 + j * 14;\n"
        "    }\n"
        "}\n");
    arena_free(a);
}
END_TEST

// Other differences keep kernels apart; rows and columns differ as well.
static const struct {
    const char *x, *y;
    long long columns;
} apart[] = {
    {"q = r % 196;", "q = r % 784;", 64}, // no sizes
    {"q = j * size(7);", "q = j * size(9);", 64},
    {"q = size(100);", "q = scale(100.0f);", 64},
    {"q = ROWS;", "q = C * 2;", 64},
    {"q = j * size(3000000000);", "q = j * size(3000000001);", 64},
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
        kernel(a, "k1", 1000, 64, "u = uniform(s, stream(7001), b, i);");
    Kernel *y =
        kernel(a, "k2", 1000, 64, "u = uniform(s, stream(9002), b, i);");
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
    Kernel *x = kernel(a, "k1", 1000, 64, "q = f(gpu(7));");
    Kernel *y = kernel(a, "k2", 1000, 64, "q = f(gpu(8));");
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
