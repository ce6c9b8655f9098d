// Every kernel of the models and of small networks made to be awkward, in fast
// and in faithful mode, fused and not, against the meaning of its graph.

#include "tests/codegen/cases.h"
#include "tests/codegen/suites.h"

#include "runtime/rt.h"

#include <stdlib.h>
#include <string.h>

// Cases that a case beside them, in another type or planned, is much like; and
// unfused ones, of which random programs have as many.
// clang-format off
static const char *const alike[] = {
    "resnet9", "resnet9 in f32", "resnet9 in bf16", "lenet", "lenet unfused",
    "windows", "windows in bf16", "disjoint windows", "frozen", "squeeze",
    "warped unfused", "mixed unfused", "contrast", "contrast unfused",
    "optimizers", "optimizers unfused", "adaptive optimizers in f16",
    "adaptive optimizers unfused", "shared gradient in f16", "steps",
    "steps in f16", "attention", "attention in bf16", "group norm in f16",
    "functions in f16", "functions unfused", "recurrence, batch 1, in f16",
    "sequence in bf16", "starts in f16", "skipped unfused", "tiles in bf16",
    "resnet9, tiled", "squeeze, tiled", "sequence, tiled",
    "windows, tiled", "attention heads, tiled, in bf16", "attention tiles, tiled",
    "attention tiles planned", "shapes, tiled in bf16", "registers in f16",
    "registers of masks in f16"};
static const char *const faithful_alike[] = {
    "resnet9", "lenet", "windows", "contrast", "windows unfused", "disjoint windows"};
// clang-format on

static bool is_in(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

// AGREE_ONLY runs the cases with that in their name, AGREE_ALL=1 all.
static bool is_asked_for(const Named *c) {
    const char *only = getenv("AGREE_ONLY");
    if (only != NULL)
        return strstr(c->name, only) != NULL;
    if (getenv("AGREE_ALL") != NULL)
        return true;
    return c->test.how == FAITHFUL
               ? !is_in(c->name, faithful_alike,
                        sizeof faithful_alike / sizeof *faithful_alike)
               : !is_in(c->name, alike, sizeof alike / sizeof *alike);
}

static void check_agreement(const Named *c) {
    if (!is_asked_for(c))
        return;
    Arena *a = arena_new();
    const char *why = agree(a, &c->test);
    ck_assert_msg(why == NULL, "%s%s:\n%s", c->name,
                  c->test.how == FAITHFUL ? ", faithful" : "", why);
    arena_free(a);
}

START_TEST(fast_kernels_agree) {
    check_agreement(&agree_cases[_i]);
}
END_TEST

START_TEST(faithful_kernels_agree) {
    check_agreement(&faithful_cases[_i]);
}
END_TEST

START_TEST(tiled_kernels_agree) {
    check_agreement(&tiled_cases[_i]);
}
END_TEST

START_TEST(tiled_kernels_compute_what_pytorch_does) {
    const Case shapes = {
        "tests/codegen/nets/tile-shapes.ir", NULL, 0, F16, 1, TILED, false};
    Arena *a = arena_new();
    const char *why =
        agree_sums(a, &shapes, "tests/golden/numbers/contractions.txt");
    ck_assert_msg(why == NULL, "%s", why);
    arena_free(a);
}
END_TEST

// Where registers allow too few loads, a GPU's vectors have half the lanes.
START_TEST(kernels_of_many_registers_agree) {
    const Case c = {
        "tests/codegen/nets/registers.net", NULL, 0, F16, 1, FAITHFUL, false};
    Arena *a = arena_new();
    agree_multiprocessors = 1; // which has as many blocks as registers allow
    const char *why = agree(a, &c);
    ck_assert_msg(why == NULL, "%s", why);
    arena_free(a);
}
END_TEST

// Kernels that are merged leave the same bits as one by one.
START_TEST(merged_kernels_agree) {
    if (!is_asked_for(&merged_cases[_i]))
        return;
    Arena *a = arena_new();
    const char *why = agree_merged(a, &merged_cases[_i].test);
    ck_assert_msg(why == NULL, "%s, merged:\n%s", merged_cases[_i].name, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

Suite *agree_suite(void) {
    Suite *s = suite_create("agree");
    TCase *t = tcase_create("fast");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, fast_kernels_agree, 0, agree_num_cases);
    suite_add_tcase(s, t);
    t = tcase_create("tiled");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, tiled_kernels_agree, 0, tiled_num_cases);
    tcase_add_test(t, tiled_kernels_compute_what_pytorch_does);
    suite_add_tcase(s, t);
    t = tcase_create("faithful");
    tcase_set_timeout(t, 300);
#ifdef HAVE_SIMT
    tcase_add_loop_test(t, faithful_kernels_agree, 0, faithful_num_cases);
    tcase_add_loop_test(t, merged_kernels_agree, 0, merged_num_cases);
    tcase_add_test(t, kernels_of_many_registers_agree);
#else
    (void)merged_kernels_agree;
    (void)faithful_kernels_agree;
#endif
    suite_add_tcase(s, t);
    return s;
}
