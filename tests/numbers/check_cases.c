// That nothing escapes the judge: each function of the language and each
// operation of the graph has a case that PyTorch has decided, or an excuse.
#include "tests/numbers/judged.h"
#include "tests/numbers/suites.h"

#include "frontend/frontend.h"
#include "passes/passes.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The files that match a pattern below the sources.
static glob_t files_find(Arena *a, const char *pattern) {
    const char *source = getenv("SINTER_SOURCE");
    glob_t found;
    ck_assert_int_eq(
        glob(arena_format(a, "%s/%s", source ? source : ".", pattern), 0, NULL,
             &found),
        0);
    return found;
}

// ---- functions of the language ----

// Where the cases of a class are.
// clang-format off
static const struct {
    const char *class, *pattern;
} cases[] = {
    {"ANYWHERE",  "tests/golden/numbers/*"},
    {"ANYWHERE",  "models/*.net"},
    {"LAYER",     "tests/golden/numbers/layers.net"},
    {"NORM",      "tests/golden/numbers/layers.net"},
    {"FUNCTION",  "tests/golden/numbers/layers.net"},
    {"ACTIVATION", "tests/golden/numbers/layers.net"},
    {"IMAGE",     "models/*.net"},
    {"INITIAL",   "tests/golden/numbers/initial.txt"},
    {"LOSS",      "tests/golden/numbers/loss-*.net"},
    {"OPTIMIZER", "tests/golden/numbers/optimizers.txt"},
    {"CLIP",      "tests/golden/numbers/optimizers.txt"},
    {"SCHEDULE",  "tests/golden/numbers/schedules.txt"},
    {"AVERAGE",   "models/*.net"},
    {"EVAL_VIEW", "models/*.net"},
};

// A name of a class, or the class itself.
static const struct {
    const char *name, *why;
} excused[] = {
    {"AUGMENT",   "drawn, by a generator that PyTorch does not have"},
    {"DATA",      "read, not computed"},
    {"dropout",   "drawn"},
    {"noise",     "drawn"},
    {"whitening", "compared with eigenvectors where losses are made"},
    {"height_of", "known before anything is computed"},
    {"width_of",  "known before anything is computed"},
    {"range",     "known before anything is computed"},
    {"round",     "known before anything is computed"},
    {"fail",      "ends a compilation"},
    {"tensor",    "known before anything is computed"},
    {"full",      "known before anything is computed"},
    {"plateau",   "follows evaluations: tests/end_to_end/monitor.py"},
};
// clang-format on

enum {
    NUM_CASES = sizeof cases / sizeof cases[0],
    NUM_EXCUSED = sizeof excused / sizeof excused[0],
};

static bool ends_with(const char *text, const char *end, const char *what) {
    size_t length = strlen(what);
    return (size_t)(end - text) >= length &&
           memcmp(end - length, what, length) == 0;
}

// Whether the text calls the function: with arguments, or as a link of a chain,
// an initialiser or a view.
static bool calls(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *s = text; (s = strstr(s, name)) != NULL; s += length) {
        char before = s > text ? s[-1] : ' ', after = s[length];
        if (isalnum((unsigned char)before) || before == '_' ||
            isalnum((unsigned char)after) || after == '_')
            continue;
        if (after == '('
                ? !ends_with(text, s, "fn ")
                : ends_with(text, s, "|> ") || ends_with(text, s, "init=") ||
                      ends_with(text, s, ": "))
            return true;
    }
    return false;
}

static bool has_case(Arena *a, const char *class, const char *name) {
    bool found = false;
    for (int i = 0; i < NUM_CASES && !found; i++) {
        if (strcmp(cases[i].class, class) != 0)
            continue;
        glob_t files = files_find(a, cases[i].pattern);
        for (size_t k = 0; k < files.gl_pathc && !found; k++)
            found = calls(judged_text(a, files.gl_pathv[k]), name);
        globfree(&files);
    }
    return found;
}

static bool is_excused(const char *class, const char *name) {
    for (int i = 0; i < NUM_EXCUSED; i++)
        if (strcmp(excused[i].name, name) == 0 ||
            strcmp(excused[i].name, class) == 0)
            return true;
    return false;
}

START_TEST(every_function_is_judged_or_excused) {
    static const struct {
        const char *name, *class;
    } functions[] = {
#define BUILTIN(name, class, lowering, module) {#name, #class},
#define PARAM(function, name, kind, default, words)
#include "frontend/functions/builtins.def"
    };
    Arena *a = arena_new();
    const char *wrong = "";
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const char *name = functions[i].name, *class = functions[i].class;
        bool judged = has_case(a, class, name);
        if (judged == is_excused(class, name))
            wrong = arena_format(a, "%s\n%s %s", wrong, name,
                                 judged ? "is judged and excused"
                                        : "is not judged");
    }
    ck_assert_msg(*wrong == '\0', "see tests/pytorch/README.md:%s", wrong);
    arena_free(a);
}
END_TEST

// ---- operations of the graph ----

// clang-format off
static const struct {
    Op op;
    const char *why;
} idle[] = {
    {OP_workspace, "room for a kernel"},
    {OP_all_finite, "only with f16"},
    {OP_var_finalize, "a part of var, put in by a later pass"},
    {OP_pack, "fewer bytes, put in by a later pass"},
    {OP_unpack, "fewer bytes, put in by a later pass"},
    {OP_eigh, "starting values; filters are compared where losses are made"},
    {OP_orthogonal, "starting values, judged by their moments"},
    {OP_sum_over_shards, "only with shards: a matter of sums"},
    {OP_accumulate, "only where batches add up: a matter of sums"},
    {OP_accumulated, "only where batches add up: a matter of sums"},
};
// clang-format on

static void mark(bool *seen, const Graph *g) {
    for (NodeId n = 0; g != NULL && n < g->count; n++)
        seen[g->node[n].op] = true;
}

// A step with its gradients and updates, as long as passes know operations
// that are made of others, and then without these.
static void mark_step(bool *seen, const Program *p, const Graph *g) {
    static const char *const passes[] = {"autodiff", "optimizer", "expand"};
    PassOptions o = pass_options(&p->recipe, "host");
    Graph *now = (Graph *)g;
    mark(seen, now);
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++)
        mark(seen, now = pass_run(now, &o, pass_find(passes[i])));
}

// As the judge has it: in f32, without augmentation.
static void mark_program(bool *seen, const char *path, bool is_model) {
    static const Setting setting[] = {{"precision", "f32"},
                                      {"input", "data.train"}};
    Arena *a = arena_new();
    Diagnostics d = diag_new(a);
    Program *p = frontend_load(a, path, setting, is_model ? 2 : 0, &d);
    ck_assert_msg(p != NULL, "%s: %s", path, d.count ? d.list[0]->message : "");
    mark_step(seen, p, p->stage[0].train);
    mark(seen, p->eval);
    mark(seen, p->average);
    arena_free(a);
}

static void mark_all(bool *seen, const char *pattern, bool are_models) {
    Arena *a = arena_new();
    glob_t files = files_find(a, pattern);
    for (size_t i = 0; i < files.gl_pathc; i++)
        mark_program(seen, files.gl_pathv[i], are_models);
    globfree(&files);
    arena_free(a);
}

START_TEST(every_operation_is_judged_or_excused) {
    bool seen[NUM_OPS] = {false}, excuse[NUM_OPS] = {false};
    mark_all(seen, "tests/golden/numbers/*.net", false);
    mark_all(seen, "models/*.net", true);
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++)
        excuse[idle[i].op] = true;
    Arena *a = arena_new();
    const char *wrong = "";
    for (int op = 0; op < NUM_OPS; op++)
        if (is_optimizer((Op)op))
            seen[op] = has_case(a, "OPTIMIZER", op_info[op].name);
    for (int op = 0; op < NUM_OPS; op++)
        if (seen[op] == excuse[op])
            wrong = arena_format(a, "%s\n%s %s", wrong, op_info[op].name,
                                 seen[op] ? "is judged and excused"
                                          : "is not judged");
    ck_assert_msg(*wrong == '\0', "see tests/pytorch/README.md:%s", wrong);
    arena_free(a);
}
END_TEST

Suite *cases_suite(void) {
    Suite *s = suite_create("cases");
    TCase *t = tcase_create("cases");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_function_is_judged_or_excused);
    tcase_add_test(t, every_operation_is_judged_or_excused);
    suite_add_tcase(s, t);
    return s;
}
