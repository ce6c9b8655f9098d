// Which fusions of a plan a device takes: rides.c against what a library can.

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
    {.number = 1},                 // of another, where a kernel takes it
};
static const RtFusion fusions[] = {
    {.kind = S, .call = 0, .norm = 0, .together = -1},
    {.kind = S, .call = 1, .norm = 1, .together = -1},
    {.kind = P, .call = 1, .norm = 0, .together = 3},
    {.kind = W, .call = 2, .norm = 0, .together = 2},
    {.kind = B, .call = 3, .norm = 0, .together = -1},
    {.kind = S, .call = 4, .norm = 2, .together = -1},
};
enum { FUSIONS = 5, WITH_STEP = 6 };

// What the library refuses.
typedef struct {
    int call; // -1: any
    unsigned with;
    bool forms;
    const bool *wanted;
} Refused;

static bool can(void *arg, int call, unsigned with) {
    const Refused *r = arg;
    return (r->call >= 0 && r->call != call) || r->with != with;
}

static bool can_form(void *arg, int norm) {
    const Refused *r = arg;
    (void)norm;
    return !r->forms;
}

static const char *choose(int num_fusions, int num_norms, Refused r) {
    static char text[8];
    const RtPlan plan = {.fusion = fusions,
                         .num_fusions = num_fusions,
                         .norm = norms,
                         .num_norms = num_norms};
    bool taken[WITH_STEP];
    rt_fusions_choose(&plan, r.wanted, can, can_form, &r, taken);
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
               (Refused){.call = 0, .with = 1u << S, .forms = false}),
        "01000");
}
END_TEST

START_TEST(takes_statistics_alone_where_there_are_no_forms) {
    ck_assert_str_eq(
        choose(FUSIONS, 2, (Refused){.call = -1, .with = 0, .forms = true}),
        "11000");
}
END_TEST

// The prologue must go with the statistics that ride on the same call, and with
// the gradient that reads the same batch_norm.
START_TEST(takes_prologues_together) {
    const char *without = "11001";
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 1, .with = 1u << P | 1u << S, .forms = false}),
        without);
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 2, .with = 1u << W, .forms = false}),
        without);
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 1, .with = 1u << P, .forms = false}),
        "11111");
}
END_TEST

START_TEST(takes_a_prologue_alone_where_no_statistics_ride) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 1, .with = 1u << S, .forms = false}),
        "10111");
}
END_TEST

START_TEST(takes_what_is_wanted) {
    const bool no_prologue[] = {true, true, false, false, true};
    const bool no_first[] = {false, true, true, true, true};
    ck_assert_str_eq(
        choose(FUSIONS, 2, (Refused){.call = 9, .wanted = no_prologue}),
        "11001");
    ck_assert_str_eq(
        choose(FUSIONS, 2, (Refused){.call = 9, .wanted = no_first}), "01000");
}
END_TEST

START_TEST(takes_backward_by_itself) {
    ck_assert_str_eq(
        choose(FUSIONS, 2,
               (Refused){.call = 3, .with = 1u << B, .forms = false}),
        "11110");
}
END_TEST

// Kernels of all steps ask for a variance by its number.
START_TEST(takes_a_number_in_all_steps_or_in_none) {
    ck_assert_str_eq(choose(WITH_STEP, 3, (Refused){.call = 9}), "111111");
    ck_assert_str_eq(
        choose(WITH_STEP, 3,
               (Refused){.call = 4, .with = 1u << S, .forms = false}),
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

// [m,k] by [n,k], transposed: images and weight as they lie in memory.
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

Suite *rides_suite(void) {
    Suite *s = suite_create("rides");
    TCase *t = tcase_create("rides");
    tcase_add_test(t, takes_all_that_there_is);
    tcase_add_test(t, takes_nothing_without_its_statistics);
    tcase_add_test(t, takes_statistics_alone_where_there_are_no_forms);
    tcase_add_test(t, takes_prologues_together);
    tcase_add_test(t, takes_a_prologue_alone_where_no_statistics_ride);
    tcase_add_test(t, takes_what_is_wanted);
    tcase_add_test(t, takes_backward_by_itself);
    tcase_add_test(t, takes_a_number_in_all_steps_or_in_none);
    tcase_add_test(t, a_product_is_a_convolution);
    tcase_add_test(t, other_products_are_not);
    tcase_add_test(t, calls_of_other_layers_are_the_same);
    suite_add_tcase(s, t);
    return s;
}
