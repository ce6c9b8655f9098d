// Kernels as NVIDIA's compiler makes them leave the same bits as their text
// compiled for the host, with a thread of the host for each of CUDA's: those of
// models and small networks, with 16 bits and with 32.
//
// Every operation of theirs is rounded exactly, but for some functions, which
// are listed.  BITS_ONLY runs the subjects with that in their name, BITS_ALL
// all models.
#include "tests/codegen/bits/bits.h"
#include "tests/codegen/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// CUDA's are others than those of the C library.  Where PTX is executed here,
// its rsqrt is the host's formula; a GPU's is not.
static const char *const functions[] = {
    "rsqrtf", "expf",       "exp_weight", "tanhf",   "sinf",
    "cosf",   "normal_cdf", "normal_pdf", "sigmoid", NULL};

static bool on_gpu(void) {
    return getenv("SINTER_DOUBLE_PTX") == NULL;
}

// A model of narrow.c, or a file below the source folder.
typedef struct {
    const char *model, *file;
    DType storage;
    int level;
    int left_out; // launches that are not compared where rsqrt is
} Row;

static const Row subject[] = {
    {"lenet", NULL, F32, 1, 3},
    {"mlp", NULL, F16, 1, 3},
    {NULL, "tests/codegen/nets/windows.net", F16, 1, 16},
    {NULL, "tests/codegen/nets/newton-schulz.ir", F32, 1, 0},
    {NULL, "tests/codegen/bits/ends.ir", F32, 1, 0},
    {NULL, "tests/codegen/bits/ends.ir", F16, 0, 0},
    {NULL, "tests/codegen/bits/ends.ir", BF16, 0, 0},
};
enum { NUM_SUBJECTS = sizeof subject / sizeof subject[0] };

// With BITS_ALL, beside each model: they take as long as all others.
static const Row slow[] = {
    {"gpt_nano", NULL, BF16, 1, 14},
    {NULL, "tests/codegen/nets/windows.net", F32, 1, 16},
    {NULL, "tests/codegen/nets/optimizers.net", BF16, 1, 9},
};
enum { NUM_SLOW = sizeof slow / sizeof slow[0] };

// Of each model, in f32 as in f16.
static const struct {
    const char *model;
    int left_out;
} of_model[] = {
    {"airbench94", 46},
    {"airbench94_muon", 46},
    {"airbench96", 66},
    {"gpt_nano", 14},
    {"hlb", 32},
    {"lenet", 3},
    {"mlp", 3},
    {"mobilenetv2", 3},
    {"preact_resnet18", 2},
    {"resnet18", 3},
    {"resnet50", 3},
    {"resnet9", 2},
    {"resnet9_tricks", 36},
    {"unet_seg", 3},
    {"vgg16_bn", 3},
    {"vit_tiny", 12},
};
enum { NUM_MODELS = sizeof of_model / sizeof of_model[0] };

// -1, which is no number of launches, for a model that is not in the table.
static int model_left_out(const char *model) {
    for (int i = 0; i < NUM_MODELS; i++)
        if (strcmp(of_model[i].model, model) == 0)
            return of_model[i].left_out;
    return -1;
}

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
    const char *why = bits_differ(a, &s, functions + !on_gpu(), &count);
    ck_assert_msg(why == NULL, "%s:\n%s", s.file, why);
    printf("%s in %s: %d launches are the same to the bit, %d have functions\n",
           s.file, dtype_name(s.storage), count.compared, count.left_out);
    ck_assert_int_gt(count.compared, 0);
    if (!on_gpu())
        ck_assert_int_eq(count.left_out, r->left_out);
    arena_free(a);
}

// ---- rows ----

enum { MAX_ROWS = 256 };
static Row rows[MAX_ROWS];
static int num_rows;

START_TEST(a_kernel_leaves_what_its_text_says) {
    check_row(&rows[_i]);
}
END_TEST

// If it is asked for.
static void row_add(Row r) {
    Arena *a = arena_new();
    const char *only = getenv("BITS_ONLY");
    if (only == NULL || strstr(subject_of(a, &r).file, only) != NULL) {
        if (num_rows == MAX_ROWS)
            abort();
        rows[num_rows++] = r;
    }
    arena_free(a);
}

static void rows_add(void) {
    for (int i = 0; i < NUM_SUBJECTS; i++)
        row_add(subject[i]);
    if (getenv("BITS_ALL") == NULL)
        return;
    for (int i = 0; i < NUM_SLOW; i++)
        row_add(slow[i]);
    for (int k = 0; k < num_narrow_models; k++) {
        const char *name = narrow_models[k].name;
        row_add((Row){name, NULL, F32, 1, model_left_out(name)});
        row_add((Row){name, NULL, F16, 1, model_left_out(name)});
    }
}

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

int main(void) {
    Suite *s = suite_create("bits");
    TCase *t = tcase_create("bits");
    rows_add();
    if (num_rows == 0) {
        fprintf(stderr, "no subject has %s in its name\n", getenv("BITS_ONLY"));
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_kernel_leaves_what_its_text_says, 0, num_rows);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(compare_suite());
    srunner_add_suite(runner, s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
