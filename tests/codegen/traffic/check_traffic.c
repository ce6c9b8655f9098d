// The bytes that a plan says are moved are those that kernels touch, tensor by
// tensor and launch by launch: of models, and of small networks made to be
// awkward.
//
// TRAFFIC_ONLY runs the cases with that in their name, TRAFFIC_ALL=1 all.
// TRAFFIC_REPEATS prints which tensors with the batch dimension a kernel reads
// more than once.

#include "tests/codegen/traffic/traffic.h"

#include "runtime/rt.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const Setting few[] = {{"batch", "4"}};
static const Setting single[] = {{"batch", "1"}};
static const Setting small[] = {{"width", "8"}, {"batch", "2"}};
static const Setting odd[] = {{"width", "5"}, {"batch", "3"}};
static const Setting narrow[] = {{"width", "4"}, {"batch", "1"}};
static const Setting short_text[] = {
    {"width", "24"}, {"layers", "[1]"}, {"batch", "1"}};

#define MODEL(name) "models/" name ".net"
#define NET(name) "tests/codegen/nets/" name ".net"
#define GRAPH(name) "tests/codegen/nets/" name ".ir", NULL, 0
#define WITH(setting) setting, (int)(sizeof(setting) / sizeof *(setting))
#define AS_IS NULL, 0

// clang-format off
static const Subject subject[] = {
    //    file            settings    storage level
    {MODEL("lenet"),      WITH(few),        F32,  1},
    {MODEL("resnet9"),    WITH(small),      F16,  1},
    {MODEL("unet_seg"),   WITH(narrow),     F16,  1},
    {MODEL("gpt_nano"),   WITH(short_text), BF16, 1},
    {NET("one-channel"),  WITH(single),     F32,  1},
    {NET("windows"),      AS_IS,            F32,  1},
    {NET("frozen"),       AS_IS,            F32,  1},
    {NET("recurrence"),   AS_IS,            F32,  1},
    {NET("rows"),         AS_IS,            F32,  1},
    {NET("squeeze"),      AS_IS,            F32,  1},
    {NET("augmented"),    AS_IS,            F32,  1},
    {NET("optimizers"),   AS_IS,            F32,  1},
    {NET("steps"),        AS_IS,            F32,  1},
    {NET("sequence"),     AS_IS,            F32,  1},
    {GRAPH("attention-odd"),                BF16, 1},
    {GRAPH("channels"),                     F16,  1},
    {GRAPH("eight-axes"),                   F16,  1},
    {GRAPH("group-norm"),                   F32,  1},
    {GRAPH("integers"),                     F32,  1},
    {GRAPH("margins"),                      F16,  1},
    {GRAPH("newton-schulz"),                F32,  1},
    {GRAPH("resize"),                       F32,  1},
    // With TRAFFIC_ALL=1: others have most of their kernels.
    {MODEL("resnet9"),    WITH(odd),        F32,  1},
    {MODEL("airbench96"), WITH(small),      F16,  1},
    {NET("windows"),      AS_IS,            F32,  0},
    {NET("disjoint-windows"),     AS_IS,            F32,  1},
    {NET("mixed"),        AS_IS,            F32,  1},
    {NET("functions"),    AS_IS,            F32,  1},
};
// clang-format on

enum { NUM_SUBJECTS = sizeof subject / sizeof *subject, NUM_ALIKE = 6 };

START_TEST(kernels_touch_what_is_planned) {
    const Subject *s = &subject[_i];
    const char *only = getenv("TRAFFIC_ONLY");
    if (only != NULL && strstr(s->model, only) == NULL)
        return;
    Arena *a = arena_new();
    const char *why = traffic(a, s);
    ck_assert_msg(why == NULL, "%s, level %d:\n%s", s->model, s->level, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

int main(void) {
    Suite *s = suite_create("traffic");
    TCase *t = tcase_create("traffic");
    tcase_set_timeout(t, 120);
    bool all = getenv("TRAFFIC_ALL") != NULL || getenv("TRAFFIC_ONLY") != NULL;
    tcase_add_loop_test(t, kernels_touch_what_is_planned, 0,
                        all ? NUM_SUBJECTS : NUM_SUBJECTS - NUM_ALIKE);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
