// Races: one step of every model, and what comes before and after it, with
// every CUDA thread and the race checker looking at each access.
//
// The models are made narrow and their batches small: groups and texts of
// kernels stay what they are, but for their sizes.  Those whose data is large
// are given small images, and those that repeat a block have it once.
#include "tests/codegen/agree.h"

#include "runtime/rt.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETTINGS = 5 };

typedef struct {
    const char *name;
    Setting setting[MOST_SETTINGS];
    bool quick; // is always run; the others with RACES_ALL
} Model;

#define SMALL_IMAGES(side)                                                     \
    { "data", "synthetic(shape=[" #side ", " #side ", 3])" }

// clang-format off
static const Model models[] = {
    {"airbench94",      {{"batch", "2"}}, false},
    {"airbench94_muon", {{"batch", "2"}, {"width", "8"}}, false},
    {"airbench96",      {{"batch", "2"}, {"width", "8"}}, false},
    {"gpt_nano",        {{"batch", "2"}, {"layers", "[1]"}, {"data", "synthetic(vocabulary=65, shape=[8])"}}, true},
    {"hlb",             {{"batch", "2"}, {"width", "8"}}, false},
    {"lenet",           {{"batch", "2"}}, true},
    {"mlp",             {{"batch", "3"}, {"width", "40"}}, true},
    {"mobilenetv2",     {{"batch", "2"}, {"width", "2"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
    {"preact_resnet18", {{"batch", "2"}, {"width", "4"}}, false},
    {"resnet18",        {{"batch", "2"}, {"width", "4"}}, false},
    {"resnet50",        {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
    {"resnet9",         {{"batch", "2"}, {"width", "8"}}, true},
    {"resnet9_tricks",  {{"batch", "16"}, {"width", "8"}}, false},
    {"unet_small",      {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, {"data", "synthetic(shape=[16, 16, 3])"}}, false},
    {"vgg16_bn",        {{"batch", "2"}, {"width", "4"}}, false},
    {"vit_tiny",        {{"batch", "2"}, {"depth", "[1]"}, {"width", "24"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
};
// clang-format on

enum { NUM_MODELS = sizeof models / sizeof *models };

START_TEST(no_kernel_of_a_model_races) {
    const Model *model = &models[_i];
    const char *only = getenv("RACES_MODEL");
    if (only ? strcmp(only, model->name) != 0
             : !model->quick && getenv("RACES_ALL") == NULL)
        return;
    Arena *a = arena_new();
    Case c = {.model = arena_format(a, "models/%s.net", model->name),
              .setting = model->setting,
              .storage = F32,
              .level = 1,
              .simt = WATCHED};
    while (c.num_settings < MOST_SETTINGS &&
           model->setting[c.num_settings].key != NULL)
        c.num_settings++;
    const char *why = agree(a, &c);
    ck_assert_msg(why == NULL, "%s: %s", model->name, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

int main(void) {
    Suite *s = suite_create("races");
    TCase *t = tcase_create("models");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, no_kernel_of_a_model_races, 0, NUM_MODELS);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
