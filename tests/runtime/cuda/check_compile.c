// Compile: likely kernels start early, each compiles once, and errors of an
// early one do not matter.
#define _GNU_SOURCE

#include "runtime/cuda/kernels/kernels.h"
#include "tests/runtime/cuda/suites.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KERNELS = 2, PATIENCE = 60 }; // of counter; seconds

static const RtGpu gpu = {.major = 9, .driver = 13000};
static char calls[4200];

// The double logs its calls beside the cache.
static RtCompiler *compiler_for(const RtTrainer *t) {
    RtError e;
    snprintf(calls, sizeof calls, "%s/calls-%d", getenv("XDG_CACHE_HOME"),
             (int)getpid());
    setenv("SINTER_DOUBLE_LOG", calls, 1);
    RtCompiler *c = rt_compiler_new(&gpu, t, t->plan, &rt_private_files, &e);
    ck_assert_ptr_nonnull(c);
    ck_assert_msg(rt_compiler_open(c, &e), "%s", e.text);
    return c;
}

static RtCompiler *compiler_new(void) {
    return compiler_for(&counter);
}

// The number of compilations, and of threads that made them.
static int count_calls(int *threads) {
    char line[200];
    long last = 0;
    int count = 0;
    FILE *f = fopen(calls, "r");
    ck_assert_ptr_nonnull(f);
    *threads = 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strstr(line, "nvrtcCompileProgram") != NULL) {
            long by = strtol(line, NULL, 10); // a line begins with it
            *threads += by != last;
            last = by;
            count++;
        }
    fclose(f);
    return count;
}

static int count_compiled(void) {
    int threads;
    return count_calls(&threads);
}

static void pause_for(int milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000L * milliseconds}, NULL);
}

// Counts files that are complete.
static int count_cached(void) {
    static const char end[] = ".cubin";
    char path[4200];
    int count = 0;
    snprintf(path, sizeof path, "%s/sinter", getenv("XDG_CACHE_HOME"));
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *f; (f = readdir(d)) != NULL;) {
        const char *dot = strchr(f->d_name, '.');
        count += dot != NULL && strcmp(dot, end) == 0;
    }
    closedir(d);
    return count;
}

static void must_compile(RtCompiler *c, const bool *wanted) {
    RtError e;
    ck_assert_msg(rt_compiler_finish(c, wanted, &e), "%s", e.text);
    for (int i = 0; i < KERNELS; i++)
        ck_assert(!wanted[i] || rt_compiler_code(c, i)->length > 0);
}

static const bool none[KERNELS], first[KERNELS] = {true},
                                 all[KERNELS] = {true, true};

START_TEST(likely_kernels_compile_early) {
    RtCompiler *c = compiler_new();
    rt_compiler_start(c, first);
    for (int i = 0; count_cached() == 0 && i < 100 * PATIENCE; i++)
        pause_for(10);
    ck_assert_int_eq(count_cached(), 1);
    must_compile(c, all);
    ck_assert_int_eq(count_compiled(), 2);
    rt_compiler_free(c);
}
END_TEST

// The number of the kernel that it compiled first.
static int first_compiled(void) {
    char line[200];
    int kernel = -1;
    FILE *f = fopen(calls, "r");
    ck_assert_ptr_nonnull(f);
    while (kernel < 0 && fgets(line, sizeof line, f) != NULL) {
        const char *number = strstr(line, "-DSINTER_KERNEL=");
        if (number != NULL)
            kernel = atoi(strchr(number, '=') + 1);
    }
    fclose(f);
    return kernel;
}

// On one processor one thread compiles the likely kernels in order.
START_TEST(long_kernels_compile_first) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    RtCompiler *c = compiler_new();
    rt_compiler_start(c, all);
    while (count_cached() < KERNELS)
        pause_for(10);
    ck_assert_int_eq(first_compiled(), 1); // in phases
    rt_compiler_free(c);
}
END_TEST

START_TEST(kernels_that_are_not_needed_are_not_compiled) {
    RtCompiler *c = compiler_new();
    rt_compiler_start(c, none);
    must_compile(c, first);
    ck_assert_int_eq(count_compiled(), 1);
    ck_assert_ptr_null(rt_compiler_code(c, 1)->bytes);
    rt_compiler_free(c);
}
END_TEST

// As if the driver had refused embedded code.
START_TEST(unforeseen_kernels_compile_in_parallel) {
    RtCompiler *c = compiler_new();
    int threads;
    must_compile(c, all);
    ck_assert_int_eq(count_calls(&threads), 2);
    ck_assert_int_eq(threads, 2);
    rt_compiler_free(c);
}
END_TEST

START_TEST(an_early_failure_is_tried_again) {
    setenv("SINTER_DOUBLE_FAIL", "nvrtcCompileProgram:1:6", 1);
    RtCompiler *c = compiler_new();
    rt_compiler_start(c, all);
    must_compile(c, all);
    ck_assert_int_eq(count_compiled(), 3);
    rt_compiler_free(c);
}
END_TEST

// The counter with another number in its second kernel.
START_TEST(unchanged_kernels_are_not_compiled_again) {
    RtTrainer other = counter;
    char *text = strdup(counter.kernels);
    ck_assert_ptr_nonnull(text);
    *strstr(text, "500") = '4';
    other.kernels = text;
    other.kernel_lines = _i == 1;
    RtCompiler *c = compiler_new();
    must_compile(c, all);
    ck_assert_int_eq(count_compiled(), 2);
    rt_compiler_free(c);
    c = compiler_for(&other);
    must_compile(c, all);
    ck_assert_int_eq(count_compiled(), _i == 1 ? 4 : 3);
    rt_compiler_free(c);
    free(text);
}
END_TEST

static const char conditions[] = "#define A 1\n"
                                 "\n"
                                 "// first\n"
                                 "#if IS_NEEDED(1) || IS_NEEDED(30) || \\\n"
                                 "    IS_NEEDED(2)\n"
                                 "one\n"
                                 "#ifdef A\n"
                                 "inner // 1\n"
                                 "#endif\n"
                                 "#endif\n"
                                 "#if IS_NEEDED(3)\n"
                                 "three\n"
                                 "#endif\n"
                                 "#if IS_NEEDED(30)\n"
                                 "thirty";
#define SHARED                                                                 \
    "#if IS_NEEDED(1) || IS_NEEDED(30) || \\\n    IS_NEEDED(2)\n"              \
    "one\n#ifdef A\ninner // 1\n#endif\n#endif\n"

static const struct {
    int kernel;
    const char *text;
} wanted[] = {
    {0, "#define A 1\n"},
    {1, "#define A 1\n" SHARED},
    {2, "#define A 1\n" SHARED},
    {3, "#define A 1\n#if IS_NEEDED(3)\nthree\n#endif\n"},
    {30, "#define A 1\n" SHARED "#if IS_NEEDED(30)\nthirty"},
};
enum { NUM_WANTED = sizeof wanted / sizeof wanted[0] };

START_TEST(a_kernel_has_the_parts_that_name_it) {
    char *text = rt_kernel_source(conditions, wanted[_i].kernel);
    ck_assert_str_eq(text, wanted[_i].text);
    free(text);
}
END_TEST

// At once, and when it may have begun.
START_TEST(early_compilation_can_be_abandoned) {
    RtCompiler *c = compiler_new();
    rt_compiler_start(c, all);
    pause_for(20 * _i);
    rt_compiler_free(c);
}
END_TEST

Suite *compile_suite(void) {
    Suite *s = suite_create("compile");
    TCase *c = tcase_create("compile");
    tcase_set_timeout(c, 2 * PATIENCE);
    tcase_add_checked_fixture(c, cache_begin, cache_end);
    tcase_add_test(c, likely_kernels_compile_early);
    tcase_add_test(c, long_kernels_compile_first);
    tcase_add_test(c, kernels_that_are_not_needed_are_not_compiled);
    tcase_add_test(c, unforeseen_kernels_compile_in_parallel);
    tcase_add_test(c, an_early_failure_is_tried_again);
    tcase_add_loop_test(c, unchanged_kernels_are_not_compiled_again, 0, 2);
    tcase_add_loop_test(c, a_kernel_has_the_parts_that_name_it, 0, NUM_WANTED);
    tcase_add_loop_test(c, early_compilation_can_be_abandoned, 0, 5);
    suite_add_tcase(s, c);
    return s;
}
