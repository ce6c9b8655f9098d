// Kernel IR: its text reads back, its verifier finds mistakes, and unused indices
// are left out.
#include "tests/codegen/suites.h"

#include "codegen/emit.h"
#include "passes/passes.h"
#include "tests/codegen/load.h"

#include <string.h>

// ---- expressions ----

// Texts that are printed as they are read.
static const char *const exact[] = {
    "a + b * c",
    "(a + b) * c",
    "a - (b - c)",
    "a - b - c",
    "a / b % c",
    "a / (b % c)",
    "-(a + b)",
    "!(a && b)",
    "a ? b : c ? d : e",
    "(a ? b : c) ? d : e",
    "(a ? b : c) + d",
    "x == 0 ? -0.5f : INF",
    "(float)(a + b)",
    "(size_t)i * size(64) + c",
    "v@12_1[k] * scale(0.25f)",
    "kept@3[j][k]",
    "entry.offset[2]",
    "clamp_index(i + 1, 7)",
    "&s@4[j * VW]",
    "a < b && c >= d || e != f",
    "uniform(v@0, stream(-7), 0, i + k)",
};

START_TEST(expressions_read_back) {
    Arena *a = arena_new();
    Stmts b = {NULL, NULL};
    const char *why = "";
    ck_assert_msg(stmts_read(a, &b, arena_format(a, "f(%s);", exact[_i]), &why),
                  "%s", why);
    Text t = text_new(a);
    Tree tree = {.name = "k", .body = b};
    tree_print(&t, &tree);
    ck_assert_str_eq(text_string(&t), arena_format(a, "kernel k() {\n"
                                                      "    f(%s);\n"
                                                      "}\n",
                                                   exact[_i]));
    arena_free(a);
}
END_TEST

// ---- kernels of models ----

static const struct {
    const char *model;
    int level;
} models[] = {
    {"models/resnet9.net", 1},
    {"models/airbench94_muon.net", 1},
    {"models/gpt_nano.net", 1},
    {"models/gpt_nano.net", 0},
    {"models/unet_seg.net", 1},
    {"tests/codegen/nets/functions.net", 1},
    {"tests/codegen/nets/tables.net", 0},
    {"tests/codegen/nets/pooled-statistics.net", 1},
};

static bool is_call_of(const Stmt *s, const char *name) {
    return s->kind == S_CALL && s->value->kind == X_CALL &&
           strcmp(s->value->name, name) == 0;
}

static Stmts without(const Stmts *b, const Stmt *left_out) {
    Stmts rest = {NULL, NULL};
    for (Stmt *s = b->first, *next; s != NULL; s = next) {
        next = s->next;
        if (s != left_out)
            stmts_add(&rest, s);
    }
    rest.last->next = NULL;
    return rest;
}

static void check_refused(Arena *a, const Tree *tree, const char *name) {
    ck_assert_msg(tree_verify_wait(a, tree) != NULL, "%s: no wait is missed",
                  name);
}

// A kernel's wait is where it must be: it cannot be left out, stand in a loop or
// follow the statement that it precedes, and the next kernel starts after it.
static void check_wait(Arena *a, Tree *tree, const char *name) {
    const char *why = tree_verify_wait(a, tree);
    ck_assert_msg(why == NULL, "%s: %s", name, why);
    Stmt *wait = tree->body.first;
    while (!is_call_of(wait, "GRID_DEPENDENCY_WAIT"))
        wait = wait->next;
    Stmt *trigger = wait->next, *access = trigger->next;
    ck_assert(is_call_of(trigger, "LAUNCH_DEPENDENTS") && access != NULL);
    tree->body = without(&tree->body, wait);
    check_refused(a, tree, name);
    const Stmts rest = tree->body = without(&tree->body, trigger);
    check_refused(a, tree, name);
    Stmt *behind = access->next, *last = rest.last;
    access->next = wait;
    wait->next = behind;
    tree->body.last = behind != NULL ? last : wait;
    check_refused(a, tree, name);
    access->next = behind;
    tree->body = (Stmts){NULL, NULL};
    wait->next = NULL;
    Stmts own = {wait, wait};
    code(a, &tree->body, NO_NODE, "UNROLLED(turn, 1) { ~ }", &own);
    stmts_append(&tree->body, &rest);
    check_refused(a, tree, name);
}

static void check_kernel(void *context, Kernel *k) {
    Arena *a = k->tree->arena;
    Text once = text_new(a), twice = text_new(a), c = text_new(a),
         again = text_new(a);
    const char *why = "";
    Tree read;
    tree_print(&once, k->tree);
    const char *text = text_string(&once);
    ck_assert_msg(tree_read(a, &read, &text, &why), "%s: %s", k->name,
                  why);
    ck_assert_str_eq(text, "");
    tree_print(&twice, &read);
    ck_assert_str_eq(text_string(&once), text_string(&twice));
    ck_assert_ptr_null(tree_verify(a, &read));
    stmts_print(&c, &k->tree->body, k->name);
    stmts_print(&again, &read.body, k->name);
    // A comment beside a pointer is not part of kernel IR.
    if (strstr(text_string(&c), " // ") == NULL)
        ck_assert_str_eq(text_string(&c), text_string(&again));
    check_wait(a, &read, k->name);
    kernel_free(k);
    ++*(int *)context;
}

START_TEST(kernels_of_models_read_back) {
    Arena *a = arena_new();
    Text report = text_new(a);
    Program *p = load_program(a, models[_i].model, NULL, 0, F16, &report);
    ck_assert_msg(p != NULL, "%s", text_string(&report));
    PassOptions o = pass_options(&p->recipe, "cuda");
    o.level = models[_i].level;
    const Plan *plan = program_plan(p, &o);
    int number = 0, kernels = 0;
    for (int i = 0; i < plan->num_steps; i++)
        kernels_build(plan->step[i].plan, plan->step[i].plan, a, &number,
                      check_kernel, &kernels);
    ck_assert_int_gt(kernels, 5);
    arena_free(a);
}
END_TEST

// ---- the verifier ----

static const struct {
    const char *body, *why; // NULL: it is sound
} trees[] = {
    {"int x = 1; put_f32(p@1 + x, 0.0f);", NULL},
    {"put_f32(p@1 + x, 0.0f);", "x is not declared"},
    {"{ int x = 1; } put_f32(p@1 + x, 0.0f);", "x is not declared"},
    {"int x = 1; int x = 2;", "x is declared twice"},
    {"int x = 1; { int x = 2; }", NULL},
    {"x = 1;", "x is not declared"},
    {"sort(p@1);", "sort is no intrinsic"},
    {"put_f32(p@1);", "put_f32 has the wrong number of arguments"},
    {"BLOCK_RANGE(lo, hi, 7); put_f32(p@1 + lo, 0.0f);", NULL},
    {"const int tx = threadIdx.x;"
     "if (tx < 3) GRID_BARRIER(p@1);",
     "GRID_BARRIER is not reached by all threads"},
    {"BLOCK_RANGE(lo, hi, 7);"
     "for (int i = lo + threadIdx.x; i < hi; i++) GRID_BARRIER(p@1);",
     "GRID_BARRIER is not reached by all threads"},
    {"BLOCK_RANGE(lo, hi, 7);"
     "for (int i = lo; i < hi; i++) GRID_BARRIER(p@1);",
     NULL},
    {"for (int i = SYNC_ROW(64, 4); i < 7; i++)"
     "const float s = row_sum(0.0f, 4, p@1);",
     NULL},
    {"for (int i = SYNC_ROW(64, 4); i < 7; i++) GRID_BARRIER(p@1);",
     "GRID_BARRIER is not reached by all threads"},
    {"for (int i = threadIdx.x; i < 7; i++)"
     "const float s = row_sum(0.0f, 4, p@1);",
     "row_sum is not reached by all threads"},
    {"int x = 0; x = threadIdx.x; if (x == 0) GRID_BARRIER(p@1);",
     "GRID_BARRIER is not reached by all threads"},
};

START_TEST(mistakes_are_found) {
    Arena *a = arena_new();
    const char *why = "";
    const Expr *pointer = x_of_node(a, "p", 1);
    Tree tree = {.param = &pointer, .num_params = 1};
    ck_assert_msg(stmts_read(a, &tree.body, trees[_i].body, &why), "%s", why);
    why = tree_verify(a, &tree);
    if (trees[_i].why == NULL)
        ck_assert_msg(why == NULL, "%s", why);
    else
        ck_assert_msg(why != NULL && strcmp(why, trees[_i].why) == 0, "%s",
                      why ? why : "sound");
    arena_free(a);
}
END_TEST

// ---- the wait for the kernel before ----

#define WAIT "GRID_DEPENDENCY_WAIT();"
#define EARLY                                                                  \
    "global memory is accessed before the wait for the kernel before"
static const struct {
    const char *body, *why; // NULL: it is sound
} waits[] = {
    {WAIT "put_f32(p@1, 0.0f);", NULL},
    {WAIT "LAUNCH_DEPENDENTS(); put_f32(p@1, 0.0f);", NULL},
    {"put_f32(p@1, 0.0f);" WAIT, EARLY},
    {"const float x = get_f32(p@1);" WAIT, EARLY},
    {"float x[4]; load_f32(x, p@1, 4);" WAIT, EARLY},
    {"const float x = p@1[0];" WAIT, EARLY},
    {"const float *const q = p@1; const float x = q[1];" WAIT, EARLY},
    {"SHARED float s[4]; s[0] = 1.0f; BARRIER();" WAIT, NULL},
    {"const float x = row_sum(1.0f, 4, p@1);" WAIT, EARLY},
    {"if (blocks > 1) " WAIT "put_f32(p@1, 0.0f);", EARLY},
    {"if (blocks > 1) {" WAIT "} else {" WAIT "} put_f32(p@1, 0.0f);", NULL},
    {"if (blocks > 1) {" WAIT "} else { put_f32(p@1, 0.0f); " WAIT "}", EARLY},
    {"{ " WAIT "} put_f32(p@1, 0.0f);", NULL},
    {"for (int i = 0; i < blocks; i++) " WAIT "put_f32(p@1, 0.0f);", EARLY},
    {"for (int i = get_i32(p@1); i < blocks; i++) { int x = i; }" WAIT, EARLY},
    {"LAUNCH_DEPENDENTS();" WAIT,
     "a kernel lets the next one start before its own wait"},
    {"int x = 1;", "a path has no wait for the kernel before"},
};

START_TEST(early_accesses_are_found) {
    Arena *a = arena_new();
    const char *why = "";
    const Expr *pointer = x_of_node(a, "p", 1);
    Tree tree = {.param = &pointer, .num_params = 1};
    ck_assert_msg(stmts_read(a, &tree.body, waits[_i].body, &why), "%s", why);
    why = tree_verify_wait(a, &tree);
    if (waits[_i].why == NULL)
        ck_assert_msg(why == NULL, "%s", why);
    else
        ck_assert_msg(why != NULL && strcmp(why, waits[_i].why) == 0, "%s: %s",
                      waits[_i].body, why ? why : "sound");
    arena_free(a);
}
END_TEST

// ---- dead code elimination ----

START_TEST(unused_indices_are_left_out) {
    Arena *a = arena_new();
    const char *why;
    Stmts b = {NULL, NULL};
    ck_assert(stmts_read(a, &b,
                         "const int i1 = 7;"
                         "const int i2 = i1 / 2;"
                         "const int i3 = clamp_index(i2, 4);"
                         "const float s = row_sum(x, 4, shared);"
                         "const int i4 = i1 + 1;"
                         "put_f32(p + i4, 0.0f);",
                         &why));
    stmts_dce(a, &b);
    Text t = text_new(a);
    stmts_print(&t, &b, "k");
    ck_assert_str_eq(text_string(&t), "const int i1 = 7;\n"
                                      "const float s = row_sum(x, 4, shared);\n"
                                      "const int i4 = i1 + 1;\n"
                                      "put_f32(p + i4, 0.0f);\n");
    arena_free(a);
}
END_TEST

Suite *tree_suite(void) {
    Suite *s = suite_create("tree");
    TCase *t = tcase_create("tree");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, expressions_read_back, 0,
                        (int)(sizeof exact / sizeof *exact));
    tcase_add_loop_test(t, kernels_of_models_read_back, 0,
                        (int)(sizeof models / sizeof *models));
    tcase_add_loop_test(t, mistakes_are_found, 0,
                        (int)(sizeof trees / sizeof *trees));
    tcase_add_loop_test(t, early_accesses_are_found, 0,
                        (int)(sizeof waits / sizeof *waits));
    tcase_add_test(t, unused_indices_are_left_out);
    suite_add_tcase(s, t);
    return s;
}
