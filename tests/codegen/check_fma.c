// Fused multiply-add: which products and sums become one operation.
#include "tests/codegen/suites.h"

#include "codegen/kernel/tree.h"

#include <string.h>

static const struct {
    const char *claim, *before, *after; // after is NULL: unchanged
} cases[] = {
    {"a sum", "const float p = x * y; const float z = p + y;",
     "const float z = fma_of(x, y, y);"},
    {"a sum whose product comes second",
     "const float p = x * y; const float z = 1.0f + p;",
     "const float z = fma_of(x, y, 1.0f);"},
    {"a difference", "const float p = x * y; const float z = p - y;",
     "const float z = fma_of(x, y, -y);"},
    {"a difference from a product",
     "const float p = x * y; const float z = y - p;",
     "const float z = fma_of(-x, y, y);"},
    {"the first of two products",
     "const float p = x * x; const float q = y * y; const float z = p + q;",
     "const float q = y * y; const float z = fma_of(x, x, q);"},
    {"the second of two products of a difference",
     "const float p = x * x; const float q = y * y; const float z = p - q;",
     "const float p = x * x; const float z = fma_of(-y, y, p);"},
    {"a difference from a product with a number, which is negated",
     "const float p = x * 0.5f; const float z = y - p;",
     "const float z = fma_of(x, -0.5f, y);"},
    {"a copy of a product",
     "const float p = x * y; const float q = p; const float z = q + y;",
     "const float z = fma_of(x, y, y);"},
    {"an accumulator", "float s = 0.0f; s += x * y;",
     "float s = 0.0f; s = fma_of(x, y, s);"},
    {"an accumulator of a named product",
     "float s[4]; const float p = x * y; s[k] += p;",
     "float s[4]; s[k] = fma_of(x, y, s[k]);"},
    {"an element of an array", "float v[4]; v[k] = x * y + y;",
     "float v[4]; v[k] = fma_of(x, y, y);"},
    {"two sums of one product, which goes",
     "const float p = x * y; const float z = p + x; const float w = p + y;"
     "put_f32(out, z); put_f32(out, w);",
     "const float z = fma_of(x, y, x); const float w = fma_of(x, y, y);"
     "put_f32(out, z); put_f32(out, w);"},
    {"a product that is stored too",
     "const float p = x * y; const float z = p + y; put_f32(out, p);"
     "put_f32(out, z);",
     "const float p = x * y; const float z = fma_of(x, y, y); put_f32(out, p);"
     "put_f32(out, z);"},
    {"each case of a switch by itself",
     "switch (i) { case 0: { const float p = x * y; const float z = p + y;"
     "put_f32(out, z); } case 1: { const float p = y; put_f32(out, p); } }",
     "switch (i) { case 0: { const float z = fma_of(x, y, y);"
     "put_f32(out, z); } case 1: { const float p = y; put_f32(out, p); } }"},
    {"not a sum of integers", "const int p = i * 3; const int z = p + i;",
     NULL},
    {"not a product of integers in a sum of floats",
     "const float p = i * i; const float z = p + y;", NULL},
    {"not a product of an outer block",
     "const float p = x * y; for (int j = 0; j < 3; j++) {"
     "const float z = p + y; put_f32(out, z); }",
     NULL},
    {"not a product whose factor has changed since",
     "float s = 0.0f; const float p = s * y; s = 1.0f;"
     "const float z = p + y;",
     NULL},
    {"not a product whose factor a call has filled since",
     "float v[4]; const float p = v[0] * y; load_f32(v, out, 4);"
     "const float z = p + y;",
     NULL},
    {"not a variable that varies",
     "float p = x * y; p = y; const float z = p + y;", NULL},
    {"not twice the product", "const float p = x * y; const float z = p + p;",
     NULL},
    {"not a product alone, nor a sum",
     "const float p = x * y; const float z = x + y; put_f32(out, p);"
     "put_f32(out, z);",
     NULL},
};

// A kernel of the floats x and y and the integers i and k.  It stores z if the
// body stores nothing.
static Tree kernel_of(Arena *a, const char *body) {
    Tree tree = {.name = "k"};
    const char *why = "";
    bool stores = strstr(body, "put") != NULL || strstr(body, "z =") == NULL;
    const char *text = arena_format(a,
                                    "float out[2];"
                                    "float x = 2.0f; float y = x; int i = 7;"
                                    "int k = 0; %s\n%s",
                                    body, stores ? "" : "put_f32(out, z);");
    ck_assert_msg(stmts_read(a, &tree.body, text, &why), "%s: %s", text, why);
    return tree;
}

static const char *text_of(Arena *a, const Tree *tree) {
    Text t = text_new(a);
    tree_print(&t, tree);
    return text_string(&t);
}

static const char *fused(Arena *a, const char *body, const bool *exact) {
    Tree tree = kernel_of(a, body);
    stmts_fma(a, &tree.body, exact);
    stmts_dce(a, &tree.body);
    const char *why = tree_verify(a, &tree);
    ck_assert_msg(why == NULL, "%s", why);
    return text_of(a, &tree);
}

START_TEST(products_and_sums_are_fused) {
    Arena *a = arena_new();
    const char *before = cases[_i].before, *after = cases[_i].after;
    Tree expected = kernel_of(a, after != NULL ? after : before);
    const char *got = fused(a, before, NULL), *why = "";
    ck_assert_msg(strcmp(got, text_of(a, &expected)) == 0, "%s: %s",
                  cases[_i].claim, got);
    Tree read;
    const char *rest = got;
    ck_assert_msg(tree_read(a, &read, &rest, &why), "%s", why);
    ck_assert_str_eq(text_of(a, &read), got);
    arena_free(a);
}
END_TEST

// The sum decides, not the product.
START_TEST(sums_of_exact_nodes_are_not) {
    Arena *a = arena_new();
    static const bool product[] = {true, false}, sum[] = {false, true};
    const char *body = "const float p = x * y; // %0\n"
                       "const float z = p + y; // %1";
    Tree unchanged = kernel_of(a, body);
    Tree one = kernel_of(a, "const float z = fma_of(x, y, y); // %1");
    ck_assert_str_eq(fused(a, body, product), text_of(a, &one));
    ck_assert_str_eq(fused(a, body, sum), text_of(a, &unchanged));
    arena_free(a);
}
END_TEST

Suite *fma_suite(void) {
    Suite *s = suite_create("fma");
    TCase *t = tcase_create("fma");
    tcase_add_loop_test(t, products_and_sums_are_fused, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, sums_of_exact_nodes_are_not);
    suite_add_tcase(s, t);
    return s;
}
