// Embedded code: the GPUs that it runs on, and the order in which it is tried.

#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/kernels/kernels.h"
#include "tests/runtime/cuda/suites.h"

#include <string.h>

static const struct {
    int code, gpu;
    bool runs;
} pairs[] = {
    {86, 86, true},    {80, 86, true},   {86, 80, false},  {80, 90, false},
    {86, 89, true},    {87, 89, false},  {80, 87, false},  {87, 87, true},
    {72, 75, false},   {70, 72, false},  {70, 75, true},   {101, 103, false},
    {100, 101, false}, {100, 103, true}, {110, 110, true}, {120, 121, true},
    {86, 88, false},   {88, 89, false},  {88, 88, true},
};
enum { NUM_PAIRS = sizeof pairs / sizeof pairs[0] };

START_TEST(cubins_of_integrated_gpus_run_there_alone) {
    ck_assert(rt_capability_runs(pairs[_i].code, pairs[_i].gpu) ==
              pairs[_i].runs);
}
END_TEST

START_TEST(the_newest_cuda_is_one_that_knows_the_gpu) {
    static const struct {
        int gpu, driver, cuda;
    } known[] = {{0, 13000, 13},  {90, 13000, 13}, {75, 13000, 13},
                 {72, 13000, 12}, {90, 12080, 12}, {70, 12080, 12},
                 {12, 13000, 13}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_int_eq(rt_capability_cuda(known[i].gpu, known[i].driver),
                         known[i].cuda);
}
END_TEST

// ---- a trainer with embedded code ----

// The code of each is its number.
static const RtEmbeddedCode carried[] = {
    {80, RT_PTX, 4},   {80, RT_CUBIN, 4}, {87, RT_CUBIN, 4},
    {86, RT_CUBIN, 4}, {87, RT_PTX, 4},   {90, RT_PTX, 4},
};
enum { NUM_CARRIED = sizeof carried / sizeof carried[0] };

// The numbers tried on a GPU, as digits.
static const char *tried_on(int gpu) {
    static char digits[NUM_CARRIED + 1], bytes[NUM_CARRIED][32];
    for (int i = 0; i < NUM_CARRIED; i++) {
        memcpy(bytes[i], &carried[i], sizeof carried[i]);
        memcpy(bytes[i] + sizeof carried[i], &i, sizeof i);
    }
    const RtTrainer t = {.code = bytes[0], .code_end = bytes[NUM_CARRIED]};
    int rank = RT_BEFORE_ALL, count = 0, number;
    const char *code;
    while ((code = rt_embedded_code_next(&t, gpu, &rank)) != NULL) {
        ck_assert_int_lt(count, NUM_CARRIED);
        memcpy(&number, code, sizeof number);
        ck_assert_int_eq(rt_embedded_code_capability(rank),
                         carried[number].capability);
        digits[count++] = (char)('0' + number);
    }
    digits[count] = '\0';
    return digits;
}

START_TEST(the_nearest_code_is_tried_first_and_all_once) {
    ck_assert_str_eq(tried_on(89), "3140");
    ck_assert_str_eq(tried_on(86), "310");
    ck_assert_str_eq(tried_on(80), "10");
    ck_assert_str_eq(tried_on(87), "240");
    ck_assert_str_eq(tried_on(90), "540");
    ck_assert_str_eq(tried_on(75), "");
}
END_TEST

Suite *embedded_suite(void) {
    Suite *s = suite_create("embedded");
    TCase *c = tcase_create("embedded");
    tcase_add_loop_test(c, cubins_of_integrated_gpus_run_there_alone, 0,
                        NUM_PAIRS);
    tcase_add_test(c, the_newest_cuda_is_one_that_knows_the_gpu);
    tcase_add_test(c, the_nearest_code_is_tried_first_and_all_once);
    suite_add_tcase(s, c);
    return s;
}
