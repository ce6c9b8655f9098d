// Peaks of GPUs against those in tools/devices.

#include "runtime/cuda/driver/driver.h"
#include "tests/runtime/cuda/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char description[4096];

static void read_description(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/tools/devices/%s.json",
             getenv("SINTER_SOURCE"), name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    size_t length = fread(description, 1, sizeof description - 1, f);
    description[length] = '\0';
    fclose(f);
}

static const char *value(const char *key) {
    const char *at = strstr(description, key);
    ck_assert_msg(at != NULL, "%s", key);
    return at + strlen(key) + strlen("\": ");
}

static double number(const char *key) {
    return strtod(value(key), NULL);
}

static RtGpu described(void) {
    int version = (int)number("deviceVer");
    RtGpu g = {.major = version / 100,
               .minor = version % 100 / 10,
               .processors = (int)number("multiProcessorCount"),
               .clock = (int)number("smClockRateKHz")};
    snprintf(g.name, sizeof g.name, "%.*s",
             (int)strcspn(value("deviceName") + 1, "\""),
             value("deviceName") + 1);
    return g;
}

// Half of the last digit in NVIDIA's figures, in operations a second.
static const struct {
    const char *name;
    double f32, f16; // 0: it is not to be known
} files[] = {
    {"a100", 0.05e12, 0.5e12},     {"h100", 0.05e12, 0.05e12},
    {"h200", 0.05e12, 0.05e12},    {"t4", 0.05e12, 0},
    {"rtx4090", 0.05e12, 0.05e12},
};
enum { NUM_FILES = sizeof files / sizeof files[0] };

START_TEST(peaks_are_those_of_descriptions) {
    read_description(files[_i].name);
    RtGpu g = described();
    ck_assert_double_eq_tol(rt_gpu_peak(&g, RT_F32), number("peakF32Flops"),
                            files[_i].f32);
    if (files[_i].f16 == 0)
        ck_assert(rt_gpu_peak(&g, RT_F16) == 0);
    else
        ck_assert_double_eq_tol(rt_gpu_peak(&g, RT_F16), number("peakF16Flops"),
                                files[_i].f16);
    ck_assert(rt_gpu_peak(&g, RT_BF16) == rt_gpu_peak(&g, RT_F16));
    ck_assert(rt_gpu_peak(&g, RT_I32) == 0);
}
END_TEST

// The clock of B200's peak is not published.  It is no higher than the GPU's,
// which leaves one power of two for the operations in a clock.
START_TEST(b200_reaches_its_published_peak) {
    read_description("b200");
    RtGpu g = described();
    double f16 = rt_gpu_peak(&g, RT_F16), said = number("peakF16Flops");
    ck_assert_double_eq_tol(rt_gpu_peak(&g, RT_F32), number("peakF32Flops"),
                            0.05e12);
    ck_assert_msg(said <= f16 && f16 < 2 * said, "%g of %g", said, f16);
    double each = f16 / (1e3 * g.clock * g.processors);
    ck_assert_msg(log2(each) == round(log2(each)), "%g", each);
}
END_TEST

START_TEST(gpus_outside_the_table_have_no_peak) {
    RtGpu g = {.major = 8, .minor = 7, .processors = 16, .clock = 1300000};
    ck_assert(rt_gpu_peak(&g, RT_F32) == 0 && rt_gpu_peak(&g, RT_F16) == 0);
    g.minor = 6;
    snprintf(g.name, sizeof g.name, "NVIDIA A10");
    double whole = rt_gpu_peak(&g, RT_F16);
    snprintf(g.name, sizeof g.name, "NVIDIA GeForce RTX 3060");
    ck_assert(whole > 0 && rt_gpu_peak(&g, RT_F16) == whole / 2);
    g.minor = 9;
    snprintf(g.name, sizeof g.name, "NVIDIA L40");
    ck_assert(rt_gpu_peak(&g, RT_F16) == 0 && rt_gpu_peak(&g, RT_F32) > 0);
}
END_TEST

Suite *peak_suite(void) {
    Suite *s = suite_create("peak");
    TCase *t = tcase_create("peak");
    tcase_add_loop_test(t, peaks_are_those_of_descriptions, 0, NUM_FILES);
    tcase_add_test(t, b200_reaches_its_published_peak);
    tcase_add_test(t, gpus_outside_the_table_have_no_peak);
    suite_add_tcase(s, t);
    return s;
}
