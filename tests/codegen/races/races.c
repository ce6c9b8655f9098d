// Races: one step of a model, and what comes before and after it, with every
// CUDA thread and the race checker looking at each access.  Models whose
// kernels are like those of another are left out, but with RACES_MODEL=all.
#include "tests/codegen/cases.h"

#include "runtime/rt.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(no_kernel_of_a_model_races) {
    const Narrow *model = &narrow_models[_i];
    Arena *a = arena_new();
    Case c = narrow_case(a, model);
    c.how = WATCHED;
    const char *why = agree(a, &c);
    ck_assert_msg(why == NULL, "%s: %s", model->name, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

static bool is_asked_for(const char *model) {
    static const char alike[] =
        " airbench94 airbench96 denoise gpt2 hlb llama_nano mobilenetv2 multitask "
        "preact_resnet18 resnet18 resnet50 resnet9 resnet9_tricks unet_seg "
        "vgg16_bn vit_tiny ";
    const char *only = getenv("RACES_MODEL");
    char word[64];
    snprintf(word, sizeof word, " %s ", model);
    if (only == NULL)
        return strstr(alike, word) == NULL;
    return strcmp(only, "all") == 0 || strcmp(only, model) == 0;
}

// The models that are asked for; how many.
static int models_add(TCase *t) {
    int count = 0;
    for (int i = 0; i < num_narrow_models; i++)
        if (is_asked_for(narrow_models[i].name)) {
            tcase_add_loop_test(t, no_kernel_of_a_model_races, i, i + 1);
            count++;
        }
    return count;
}

int main(void) {
    Suite *s = suite_create("races");
    TCase *t = tcase_create("models");
    tcase_set_timeout(t, 300);
    if (models_add(t) == 0) {
        fprintf(stderr, "no model is called %s\n", getenv("RACES_MODEL"));
        return EXIT_FAILURE;
    }
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
