// Every kernel of the models, in fast and in faithful mode, fused and not,
// against the meaning of its graph.

#include "tests/codegen/agree.h"
#include "tests/codegen/suites.h"

#include "runtime/rt.h"

static const Setting small_resnet[] = {{"width", "8"}, {"batch", "4"}};
static const Setting half_resnet[] = {
    {"width", "8"}, {"batch", "4"}, {"precision", "mixed(f16)"}};
static const Setting plain_resnet[] = {
    {"width", "8"}, {"batch", "4"}, {"precision", "f32"}};
static const Setting odd_resnet[] = {{"width", "5"}, {"batch", "3"}};
static const Setting small_lenet[] = {{"batch", "4"}};

#define RESNET "models/resnet9.net"
#define LENET "models/lenet.net"

static const struct {
    const char *name;
    Case test;
} cases[] = {
    {"resnet9", {RESNET, small_resnet, 2, F32, 1, false, false}},
    {"resnet9 planned", {RESNET, small_resnet, 2, F32, 1, false, true}},
    {"resnet9 unfused", {RESNET, small_resnet, 2, F32, 0, false, false}},
    {"resnet9 in f32", {RESNET, plain_resnet, 3, F32, 1, false, false}},
    {"resnet9 in f16", {RESNET, half_resnet, 3, F16, 1, false, false}},
    {"resnet9 odd", {RESNET, odd_resnet, 2, F32, 1, false, false}},
    {"lenet", {LENET, small_lenet, 1, F32, 1, false, false}},
    {"lenet planned", {LENET, small_lenet, 1, F32, 1, false, true}},
    {"lenet unfused", {LENET, small_lenet, 1, F32, 0, false, false}},
#ifdef HAVE_SIMT
    {"resnet9 simt", {RESNET, small_resnet, 2, F32, 1, true, false}},
    {"resnet9 simt in f16", {RESNET, half_resnet, 3, F16, 1, true, false}},
    {"resnet9 simt odd", {RESNET, odd_resnet, 2, F32, 1, true, false}},
    {"lenet simt", {LENET, small_lenet, 1, F32, 1, true, false}},
#endif
};

START_TEST(kernels_agree) {
    Arena *a = arena_new();
    const char *why = agree(a, &cases[_i].test);
    ck_assert_msg(why == NULL, "%s:\n%s", cases[_i].name, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

Suite *agree_suite(void) {
    Suite *s = suite_create("agree");
    TCase *t = tcase_create("models");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, kernels_agree, 0,
                        (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(s, t);
    return s;
}
