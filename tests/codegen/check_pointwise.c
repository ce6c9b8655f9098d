// Pointwise operations: numbers and operations as C.
#include "tests/codegen/suites.h"

#include "codegen/emit.h"
#include "codegen/kernel/tree.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

// ---- numbers ----

static const struct {
    DType dtype;
    double value;
    const char *text;
} numbers[] = {
    {F32, 1, "1.0f"},       {F32, -0.5, "-0.5f"},
    {F32, 0.1, "0.1f"},     {F32, 1e-5, "1e-05f"},
    {F32, 1e300, "INF"}, // what it is in f32
    {F32, -1e39, "-INF"},   {F32, 1e-60, "0.0f"},
    {F32, INFINITY, "INF"}, {F32, NAN, "(INF - INF)"},
    {ACT, 2, "2.0f"},       {I32, -7, "-7"},
    {BOOL, 1, "1"},
};

START_TEST(numbers_are_literals) {
    Arena *a = arena_new();
    const Expr *x = literal(a, numbers[_i].dtype, numbers[_i].value);
    ck_assert_str_eq(expr_print(a, x, ""), numbers[_i].text);
    arena_free(a);
}
END_TEST

// ---- operations ----

static const char *const template[NUM_OPS] = {
#define OP(name, ...) [OP_##name] =
#define EMIT(expr) expr,
#include "ir/ops.def"
};

static bool calls(const char *expr) {
    for (const char *s = strchr(expr, '('); s != NULL; s = strchr(s + 1, '('))
        if (s > expr && (isalnum((unsigned char)s[-1]) || s[-1] == '_'))
            return true;
    return false;
}

START_TEST(facts_say_what_expressions_do) {
    const char *expr = template[_i] != NULL ? template[_i] : "";
    unsigned traits = op_info[_i].traits;
    ck_assert_msg(calls(expr) == !!(traits & MATH), "%s: MATH and \"%s\"",
                  op_info[_i].name, expr);
    if (traits & MATH && _i != OP_floor) { // which is an instruction
        char name[32] = "";
        memcpy(name, expr, strcspn(expr, "("));
        const Intrinsic *f = intrinsic_find(name);
        ck_assert_msg(f != NULL && f->function, "%s is no FUNCTION", name);
    }
    ck_assert_msg((strchr(expr, '/') != NULL) == !!(traits & DIVIDES),
                  "%s: DIVIDES and \"%s\"", op_info[_i].name, expr);
}
END_TEST

Suite *pointwise_suite(void) {
    Suite *s = suite_create("pointwise");
    TCase *t = tcase_create("expr");
    tcase_add_loop_test(t, numbers_are_literals, 0,
                        (int)(sizeof numbers / sizeof *numbers));
    tcase_add_loop_test(t, facts_say_what_expressions_do, 0, NUM_OPS);
    suite_add_tcase(s, t);
    return s;
}
