// Parametrization: kernels that differ in specialization constants only are one
// function on the host.
#include "tests/codegen/suites.h"

#include "codegen/kernel/parametrize.h"
#include "tests/codegen/load.h"

#include <ctype.h>
#include <string.h>

// A kernel over rows by columns with more statements in it.  Columns differ
// where there are whole vectors of them.
static Tree kernel(Arena *a, const char *name, long long rows,
                   long long columns, const char *more) {
    const char *why = "", *spec = columns % 64 == 0 ? "spec " : "";
    Tree tree;
    const char *text =
        arena_format(a,
                     "kernel %s(const act *p@1) {"
                     "    enum { spec ROWS = %lld, %sC = %lld, VW = LANES(C),"
                     "           spec CG = C / VW };"
                     "    BLOCK_RANGE(lo, hi, ROWS);"
                     "    for (int g = tx; g < CG; g += TX) {"
                     "        load_act(v@1, p@1 + (size_t)i * C + g, VW);"
                     "        %s"
                     "    }"
                     "}",
                     name, rows, spec, columns, more);
    ck_assert_msg(tree_read(a, &tree, &text, &why), "%s", why);
    return tree;
}

// The text of two kernels after the pass.
static const char *after(Arena *a, Tree x, Tree y) {
    Tree tree[] = {x, y};
    Text t = text_new(a);
    kernels_parametrize(a, tree, 2);
    tree_print(&t, &tree[0]);
    tree_print(&t, &tree[1]);
    return text_string(&t);
}

static void expect(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "%s is missing in %s", part,
                  text);
}

// Other differences keep kernels apart; rows and columns differ as well.
static const struct {
    const char *x, *y;
    long long columns;
} apart[] = {
    {"q = r % 196;", "q = r % 784;", 64}, // no such numbers
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
    Tree x = kernel(a, "k1", 1000, 64, apart[_i].x);
    Tree y = kernel(a, "k2", 250, apart[_i].columns, apart[_i].y);
    const char *text = after(a, x, y);
    ck_assert_ptr_null(strstr(text, "SPEC_INT("));
    ck_assert_ptr_null(strstr(text, "host"));
    arena_free(a);
}
END_TEST

// Columns that are no whole vectors are the same for all of a family.
START_TEST(rows_differ_for_any_columns) {
    Arena *a = arena_new();
    const char *text = after(a, kernel(a, "k1", 1000, 10, "q = r / C;"),
                             kernel(a, "k2", 250, 10, "q = r / C;"));
    expect(text, "kernel k1(const act *p@1) host k1{1000} {");
    expect(text, "kernel k2(const act *p@1) host k1{250} {");
    expect(text, "q = r / C;");
    arena_free(a);
}
END_TEST

START_TEST(streams_are_given_by_their_name) {
    Arena *a = arena_new();
    const char *text = after(
        a, kernel(a, "k1", 1000, 64, "u = uniform(s, stream(7001), b, i);"),
        kernel(a, "k2", 1000, 64, "u = uniform(s, stream(9002), b, i);"));
    expect(text, "host k1{9002} {");
    expect(text, "const int stream0 = SPEC_INT(0, 7001);");
    expect(text, "u = uniform(s, stream0, b, i);");
    expect(text, "u = uniform(s, stream(9002), b, i);");
    arena_free(a);
}
END_TEST

START_TEST(a_number_for_the_gpu_makes_no_function) {
    Arena *a = arena_new();
    const char *text =
        after(a, kernel(a, "k1", 1000, 64, "q = f(gpu_only(7));"),
              kernel(a, "k2", 1000, 64, "q = f(gpu_only(8));"));
    expect(text, "kernel k1(const act *p@1) {");
    expect(text, "kernel k2(const act *p@1) host k1 {");
    expect(text, "q = f(gpu_only(8));");
    arena_free(a);
}
END_TEST

// ---- kernels of models ----

static const struct {
    const char *model;
    int level;
} whole[] = {
    {"models/resnet50.net", 1},   {"models/resnet18.net", 0},
    {"models/gpt_nano.net", 0},   {"tests/codegen/nets/functions.net", 0},
    {"models/airbench94.net", 1}, {"tests/codegen/nets/tables.net", 1},
};

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *word_in(const char *text, const char *word) {
    size_t length = strlen(word);
    const char *s = text;
    while ((s = strstr(s, word)) != NULL &&
           (in_word(s[length]) || (s > text && in_word(s[-1]))))
        s += length;
    return s;
}

// "64" where the text has "C = 64".
static const char *defined(Arena *a, const char *text, const char *name) {
    const char *s = strstr(text, arena_format(a, " %s = ", name));
    return s ? arena_format(a, "%.*s", (int)strcspn(s + 1, ",}"), s + 1) : "";
}

// A kernel's text without the lines that define names.
static const char *without_names(Arena *a, const char *text) {
    Text t = text_new(a);
    for (const char *s = text; *s != '\0';) {
        size_t length = strcspn(s, "\n");
        if (strncmp(s, "    enum {", strlen("    enum {")) != 0)
            text_bytes(&t, s, length + (s[length] == '\n'));
        s += length + (s[length] == '\n');
    }
    return text_string(&t);
}

// The function of a family has parameters, not names, for numbers that
// differ.
static void check_member(Arena *a, const Kernel *head, const Kernel *k) {
    static const char *const name[] = {"ROWS", "C", "WIDTH"};
    const char *text = without_names(a, head->text);
    for (int i = 0; i < 3; i++) {
        const char *x = defined(a, head->text, name[i]);
        const char *y = defined(a, k->text, name[i]);
        if (strcmp(x, y) == 0)
            continue;
        const char *at = word_in(text, name[i]);
        if (at == NULL && i == 1)
            at = word_in(text, "CG");
        ck_assert_msg(at == NULL,
                      "%s has %s, %s has %s, and one function: %.40s",
                      head->name, x, k->name, y, at);
    }
}

static const Kernel *find(const Launches *l, int steps, const char *name) {
    for (int i = 0; i < steps; i++)
        for (int j = 0; j < l[i].count; j++)
            if (strcmp(l[i].kernel[j].name, name) == 0)
                return &l[i].kernel[j];
    return NULL;
}

START_TEST(numbers_that_differ_are_parameters) {
    Arena *a = arena_new();
    Text report = text_new(a);
    Program *p = load_program(a, whole[_i].model, NULL, 0, F16, &report);
    ck_assert_msg(p != NULL, "%s", text_string(&report));
    const Plan *plan[NUM_PLANS];
    load_plans(p, whole[_i].level, plan);
    Launches *l = codegen_launches(plan[HOST_PLAN], plan[GPU_PLAN], a);
    int members = 0, steps = plan[HOST_PLAN]->num_steps;
    for (int i = 0; i < steps; i++)
        for (int j = 0; j < l[i].count; j++)
            if (kernel_in_family(&l[i].kernel[j])) {
                const char *first = l[i].kernel[j].member->first->name;
                check_member(a, find(l, steps, first), &l[i].kernel[j]);
                members++;
            }
    ck_assert_int_gt(members, 1);
    arena_free(a);
}
END_TEST

Suite *parametrize_suite(void) {
    Suite *s = suite_create("parametrize");
    TCase *t = tcase_create("parametrize");
    tcase_add_loop_test(t, others_stay_apart, 0,
                        (int)(sizeof apart / sizeof *apart));
    tcase_add_test(t, rows_differ_for_any_columns);
    tcase_add_test(t, streams_are_given_by_their_name);
    tcase_add_test(t, a_number_for_the_gpu_makes_no_function);
    suite_add_tcase(s, t);
    TCase *models = tcase_create("models");
    tcase_set_timeout(models, 60);
    tcase_add_loop_test(models, numbers_that_differ_are_parameters, 0,
                        (int)(sizeof whole / sizeof *whole));
    suite_add_tcase(s, models);
    return s;
}
