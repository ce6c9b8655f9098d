// Library fusions: a device takes those that work together with the plans that
// the library has.

#include "tests/runtime/suites.h"

#include "runtime/cuda/libraries/libraries.h"

#define S RT_FUSED_STATISTICS
#define P RT_FUSED_PROLOGUE
#define W RT_FUSED_PROLOGUE_WEIGHT
#define B RT_FUSED_BACKWARD

// Two convolutions: the second reads the first's batch_norm.  Calls 0 and 1
// compute them, 2 the weight's gradient of the second and 3 that of its images.
static const RtNorm norms[] = {
    {.channels = 64, .number = 0},
    {.channels = 64, .number = 1},
    {.channels = 64, .number = 1}, // of another step
    {.number = 1}, // of another, whose statistics a kernel computes
};
static const RtFusion fusions[] = {
    {.kind = S, .call = 0, .norm = 0, .paired = -1},
    {.kind = S, .call = 1, .norm = 1, .paired = -1},
    {.kind = P, .call = 1, .norm = 0, .paired = 3},
    {.kind = W, .call = 2, .norm = 0, .paired = 2},
    {.kind = B, .call = 3, .norm = 0, .paired = -1},
    {.kind = S, .call = 4, .norm = 2, .paired = -1},
};
enum { FUSIONS = 5, WITH_STEP = 6 };

// The plans that the library lacks.
typedef struct {
    int call; // -1: any
    unsigned with;
    bool no_finalize;
    const bool *allowed;
} Refused;

static bool can_fuse(void *arg, int call, unsigned with) {
    const Refused *r = arg;
    return (r->call >= 0 && r->call != call) || r->with != with;
}

static bool can_finalize(void *arg, int norm) {
    const Refused *r = arg;
    (void)norm;
    return !r->no_finalize;
}

static const char *choose(int num_fusions, int num_norms, Refused r) {
    static char text[8];
    const RtPlan plan = {.fusion = fusions,
                         .num_fusions = num_fusions,
                         .norm = norms,
                         .num_norms = num_norms};
    bool taken[WITH_STEP];
    rt_fusions_choose(&plan, r.allowed, can_fuse, can_finalize, &r, taken);
    for (int i = 0; i < num_fusions; i++)
        text[i] = taken[i] ? '1' : '0';
    text[num_fusions] = '\0';
    return text;
}

START_TEST(takes_all_that_there_is) {
    ck_assert_str_eq(choose(FUSIONS, 2, (Refused){.call = 9}), "11111");
}
END_TEST

START_TEST(takes_nothing_without_its_statistics) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 0, .with = 1u << S, .no_finalize = false}),
        "01000");
}
END_TEST

START_TEST(takes_statistics_alone_without_bn_finalize) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = -1, .with = 0, .no_finalize = true}),
        "11000");
}
END_TEST

// A prologue must have a plan together with the statistics of its call, and
// with the weight gradient that reads the same batch_norm.
START_TEST(takes_prologues_together) {
    const char *without = "11001";
    ck_assert_str_eq(choose(FUSIONS, 2,
                            (Refused){.call = 1,
                                      .with = 1u << P | 1u << S,
                                      .no_finalize = false}),
                     without);
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 2, .with = 1u << W, .no_finalize = false}),
        without);
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 1, .with = 1u << P, .no_finalize = false}),
        "11111");
}
END_TEST

START_TEST(takes_a_prologue_alone_without_statistics) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 1, .with = 1u << S, .no_finalize = false}),
        "10111");
}
END_TEST

START_TEST(takes_what_is_allowed) {
    const bool no_prologue[] = {true, true, false, false, true};
    const bool no_first[] = {false, true, true, true, true};
    ck_assert_str_eq(
        choose(FUSIONS, 2, (Refused){.call = 9, .allowed = no_prologue}),
        "11001");
    ck_assert_str_eq(
        choose(FUSIONS, 2, (Refused){.call = 9, .allowed = no_first}), "01000");
}
END_TEST

START_TEST(takes_backward_by_itself) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 3, .with = 1u << B, .no_finalize = false}),
        "11110");
}
END_TEST

// Kernels of all steps share a flag for each number of a variance.
START_TEST(takes_a_number_in_all_steps_or_in_none) {
    ck_assert_str_eq(choose(WITH_STEP, 3, (Refused){.call = 9}), "111111");
    ck_assert_str_eq(
        choose(WITH_STEP, 3,
               (Refused){.call = 4, .with = 1u << S, .no_finalize = false}),
        "101110");
    ck_assert_str_eq(choose(WITH_STEP, 4, (Refused){.call = 9}), "101110");
}
END_TEST

// ---- products ----

static RtCall product(int m, int n, int k, bool ta, bool tb) {
    return (RtCall){.layer = "head",
                    .kind = RT_MATMUL,
                    .type = RT_F16,
                    .batch = 1,
                    .n = m,
                    .k = n,
                    .c = k,
                    .ta = ta,
                    .tb = tb};
}

// [m,k] by [n,k], transposed, has images and weight in the same places.
START_TEST(a_product_is_a_convolution) {
    RtCall as, call = product(512, 10, 64, false, true);
    ck_assert(rt_convolution_of(&call, &as));
    ck_assert_int_eq(as.kind, RT_CONV);
    ck_assert(as.n == 512 && as.c == 64 && as.k == 10 && as.groups == 1);
    call = product(512, 64, 10, false, false);
    ck_assert(rt_convolution_of(&call, &as));
    ck_assert_int_eq(as.kind, RT_CONV_GRAD_INPUT);
    ck_assert(as.n == 512 && as.c == 64 && as.k == 10);
    call = product(10, 64, 512, true, false);
    ck_assert(rt_convolution_of(&call, &as));
    ck_assert_int_eq(as.kind, RT_CONV_GRAD_WEIGHT);
    ck_assert(as.n == 512 && as.c == 64 && as.k == 10);
}
END_TEST

START_TEST(other_products_are_not) {
    RtCall as, call = product(8, 8, 8, true, true);
    ck_assert(!rt_convolution_of(&call, &as));
    call = product(8, 8, 8, false, true);
    call.batch = 2;
    ck_assert(!rt_convolution_of(&call, &as));
    call.kind = RT_EIGH;
    ck_assert(!rt_convolution_of(&call, &as));
}
END_TEST

START_TEST(calls_of_other_layers_are_the_same) {
    RtCall a = product(8, 8, 8, false, true), b = a;
    b.layer = "other";
    ck_assert(rt_call_same(&a, &b));
    b.accumulate = true;
    ck_assert(!rt_call_same(&a, &b));
}
END_TEST

Suite *fusions_suite(void) {
    Suite *s = suite_create("fusions");
    TCase *t = tcase_create("fusions");
    tcase_add_test(t, takes_all_that_there_is);
    tcase_add_test(t, takes_nothing_without_its_statistics);
    tcase_add_test(t, takes_statistics_alone_without_bn_finalize);
    tcase_add_test(t, takes_prologues_together);
    tcase_add_test(t, takes_a_prologue_alone_without_statistics);
    tcase_add_test(t, takes_what_is_allowed);
    tcase_add_test(t, takes_backward_by_itself);
    tcase_add_test(t, takes_a_number_in_all_steps_or_in_none);
    tcase_add_test(t, a_product_is_a_convolution);
    tcase_add_test(t, other_products_are_not);
    tcase_add_test(t, calls_of_other_layers_are_the_same);
    suite_add_tcase(s, t);
    return s;
}
