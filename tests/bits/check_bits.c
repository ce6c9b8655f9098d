// Kernels as NVIDIA's compiler makes them leave the same bits as their text
// compiled for the host, with a thread of the host for each of CUDA's: those of
// models and small networks, with 16 bits and with 32.
//
// Every operation of theirs is rounded exactly, but for some functions, which
// are listed.  BITS_ONLY runs the subjects with that in their name, BITS_ALL
// all models.
#include "tests/bits/bits.h"
#include "tests/codegen/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// CUDA's are others than those of the C library.  So is its rsqrtf, but that of
// the PTX that is executed here.
static const char *const functions[] = {"expf", "logf", "tanhf", "erff",
                                        "sinf", "cosf", NULL};

// A model of narrow.c, or a file below the source folder.
typedef struct {
    const char *model, *file;
    DType storage;
    int level;
} Row;

static const Row subject[] = {
    {"lenet", NULL, F32, 1},
    {"mlp", NULL, F16, 1},
    {"resnet9", NULL, F32, 1},
    {"resnet9", NULL, F16, 1},
    {"gpt_nano", NULL, BF16, 1},
    {NULL, "tests/codegen/nets/windows.net", F32, 1},
    {NULL, "tests/codegen/nets/windows.net", F16, 0},
    {NULL, "tests/codegen/nets/optimizers.net", BF16, 1},
    {NULL, "tests/codegen/nets/newton-schulz.ir", F32, 1},
    {NULL, "tests/bits/ends.ir", F32, 1},
    {NULL, "tests/bits/ends.ir", F16, 0},
    {NULL, "tests/bits/ends.ir", BF16, 0},
};
enum { NUM_SUBJECTS = sizeof subject / sizeof subject[0] };

static Subject subject_of(Arena *a, const Row *r) {
    Subject s = {.file = r->file};
    for (int k = 0; r->model && k < num_narrow_models; k++)
        if (strcmp(narrow_models[k].name, r->model) == 0) {
            Case c = narrow_case(a, &narrow_models[k]);
            s = (Subject){c.model, c.setting, c.num_settings, F32, 1};
        }
    s.storage = r->storage;
    s.level = r->level;
    return s;
}

static void check_row(const Row *r) {
    Arena *a = arena_new();
    Subject s = subject_of(a, r);
    BitsCount count;
    const char *only = getenv("BITS_ONLY");
    if (only != NULL && strstr(s.file, only) == NULL)
        return;
    const char *why = bits_differ(a, &s, functions, &count);
    ck_assert_msg(why == NULL, "%s:\n%s", s.file, why);
    printf("%s in %s: %d launches are the same to the bit, %d have functions\n",
           s.file, dtype_name(s.storage), count.compared, count.left_out);
    ck_assert_int_gt(count.compared, 0);
    arena_free(a);
}

START_TEST(a_kernel_leaves_what_its_text_says) {
    check_row(&subject[_i]);
}
END_TEST

START_TEST(a_kernel_of_a_model_does) {
    const Row r = {.model = narrow_models[_i / 2].name,
                   .storage = _i % 2 ? F16 : F32,
                   .level = 1};
    check_row(&r);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

int main(void) {
    Suite *s = suite_create("bits");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_kernel_leaves_what_its_text_says, 0, NUM_SUBJECTS);
    if (getenv("BITS_ALL") != NULL)
        tcase_add_loop_test(t, a_kernel_of_a_model_does, 0,
                            2 * num_narrow_models);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(compare_suite());
    srunner_add_suite(runner, s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
