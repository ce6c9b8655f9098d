// NVRTC: its target for a GPU, and its code for a trainer's kernels and
// prelude. With the real library on LD_LIBRARY_PATH the same tests judge that
// one.

#include "runtime/cuda/kernels/kernels.h"
#include "tests/runtime/cuda/suites.h"

#include <stdlib.h>
#include <string.h>

static RtNvrtc open_nvrtc(void) {
    RtNvrtc n;
    RtError e;
    ck_assert_msg(rt_nvrtc_open(&n, 0, 13000, &e), "%s", e.text);
    return n;
}

static const struct {
    int gpu;
    const char *option; // NULL: none
} targets[] = {
    {70, NULL},
    {75, "--gpu-architecture=sm_75"},
    {86, "--gpu-architecture=sm_86"},
    {87, "--gpu-architecture=sm_87"},
    {90, "--gpu-architecture=sm_90"},
    {99, "--gpu-architecture=sm_90"},
    {101, "--gpu-architecture=compute_100"}, // a board
    {103, "--gpu-architecture=sm_103"},
    {109, "--gpu-architecture=sm_100"},
    {119, "--gpu-architecture=compute_110"},
    {121, "--gpu-architecture=sm_121"},
    {130, "--gpu-architecture=compute_"},
};
enum { NUM_TARGETS = sizeof targets / sizeof targets[0] };

START_TEST(the_target_runs_on_the_gpu) {
    char option[RT_NVRTC_OPTION_BYTES];
    RtError e;
    RtNvrtc n = open_nvrtc();
    const char *wanted = targets[_i].option;
    bool found = rt_nvrtc_target(&n, targets[_i].gpu, option, &e);
    ck_assert(found == (wanted != NULL));
    if (found)
        ck_assert_msg(strncmp(option, wanted, strlen(wanted)) == 0, "%s",
                      option);
    else
        ck_assert_ptr_nonnull(strstr(e.text, "7.0"));
    rt_nvrtc_close(&n);
}
END_TEST

static bool compile(const char *text, const char *target, RtCode *code,
                    RtError *e) {
    const char *option[] = {target, "-DSINTER_KERNEL=1"};
    RtSource s = {.text = text,
                  .num_headers = RT_PRELUDE_FILES,
                  .header = rt_prelude_text,
                  .include = rt_prelude_name,
                  .num_options = 2,
                  .option = option};
    RtNvrtc n = open_nvrtc();
    bool good = rt_nvrtc_compile(&n, &s, code, e);
    rt_nvrtc_close(&n);
    return good;
}

START_TEST(kernels_compile_with_the_embedded_prelude) {
    RtCode code;
    RtError e;
    bool good = compile(counter.kernels, "--gpu-architecture=sm_90", &code, &e);
    ck_assert_msg(good, "%s", e.text);
    ck_assert_uint_gt(code.length, 100);
    free(code.bytes);
}
END_TEST

// The text has a product and a sum, and so has the code.  The double's code has
// no names of instructions.
START_TEST(products_and_sums_are_not_merged) {
    RtCode code;
    RtError e;
    bool good = compile("#include \"runtime/prelude/prelude.h\"\n"
                        "KERNEL(256) k(float *RESTRICT x)\n"
                        "{\n"
                        "    x[0] = x[1] * x[2] + x[3];\n"
                        "}\n",
                        "--gpu-architecture=compute_90", &code, &e);
    ck_assert_msg(good, "%s", e.text);
    ck_assert_ptr_null(strstr(code.bytes, "fma."));
    // Without .rn the driver's assembler may still merge them.
    ck_assert_ptr_null(strstr(code.bytes, "mul.f32"));
    free(code.bytes);
}
END_TEST

START_TEST(an_error_in_the_text_is_reported) {
    RtCode code;
    RtError e;
    ck_assert(!compile("#include \"runtime/prelude/prelude.h\"\n"
                       "KERNEL(32) f(int *p) { *p = nothing; }\n",
                       "--gpu-architecture=sm_90", &code, &e));
    ck_assert_int_eq(e.status, EXIT_FAULT);
    ck_assert_msg(strstr(e.text, "nothing") != NULL, "%s", e.text);
}
END_TEST

Suite *nvrtc_suite(void) {
    Suite *s = suite_create("nvrtc");
    TCase *c = tcase_create("nvrtc");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, the_target_runs_on_the_gpu, 0, NUM_TARGETS);
    tcase_add_test(c, kernels_compile_with_the_embedded_prelude);
    tcase_add_test(c, products_and_sums_are_not_merged);
    tcase_add_test(c, an_error_in_the_text_is_reported);
    suite_add_tcase(s, c);
    return s;
}
