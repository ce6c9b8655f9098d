// Tuning: choices follow from measured times, and a file is read as it was
// written or not at all.  Plans are the stand-in's, for a described device;
// times are invented.
#define _XOPEN_SOURCE 700

#include "tests/runtime/cuda/suites.h"

#include "runtime/cuda/tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Two convolutions, and a step that is: call 0, the kernel of its statistics,
// the kernel that applies batch_norm, call 1, the gradients by call 2 and 3,
// and the kernel that reduces the last.
#define CONV(of)                                                               \
    {                                                                          \
        .layer = "layer", .kind = of, .type = RT_F16, .n = 8, .h = 8, .w = 8,  \
        .c = 16, .k = 16, .r = 3, .s = 3, .oh = 8, .ow = 8, .stride = {1, 1},  \
        .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1                   \
    }
static const RtCall calls[] = {
    {.layer = "first",
     .kind = RT_CONV,
     .type = RT_F16,
     .n = 8,
     .h = 8,
     .w = 8,
     .c = 8,
     .k = 16,
     .r = 3,
     .s = 3,
     .oh = 8,
     .ow = 8,
     .stride = {1, 1},
     .dilation = {1, 1},
     .pad = {1, 1, 1, 1},
     .groups = 1},
    CONV(RT_CONV),
    CONV(RT_CONV_GRAD_WEIGHT),
    CONV(RT_CONV_GRAD_INPUT),
};
enum { LAUNCHES = 7, STATISTICS = 1, APPLY = 2, REDUCE = 6 };
static const int call_of[LAUNCHES] = {0, -1, -1, 1, 2, 3, -1};
static const RtNorm norms[] = {
    {.channels = 16, .count = 512, .bn_param_bytes = 1}};
static const RtFusion fusions[] = {
    {.kind = RT_FUSED_STATISTICS, .call = 0, .launch = 1, .paired = -1},
    {.kind = RT_FUSED_PROLOGUE, .call = 1, .launch = 2, .paired = 2},
    {.kind = RT_FUSED_PROLOGUE_WEIGHT, .call = 2, .launch = -1, .paired = 1},
    {.kind = RT_FUSED_BACKWARD, .call = 3, .launch = 6, .paired = -1},
};
// The two kernels after call 0 may be one launch, or the second one alone; so
// may kernels of another step.
static const RtKernel kernels[] = {{.name = "both"}, {.name = "one"}};
static const RtStep steps[] = {{.name = "train"}, {.name = "train_2"}};
static const RtMergedLaunch joins[] = {
    {.step = 0, .launch = 1, .count = 2, .kernel = 0},
    {.step = 0, .launch = 2, .count = 1, .kernel = 1},
    {.step = 1, .launch = 7, .count = 2, .kernel = 0},
};
enum { JOINS = 3 };
static const RtPlan plan = {.call = calls,
                            .num_calls = 4,
                            .fusion = fusions,
                            .num_fusions = 4,
                            .norm = norms,
                            .num_norms = 1,
                            .step = steps,
                            .num_steps = 2,
                            .kernel = kernels,
                            .num_kernels = 2,
                            .merged = joins,
                            .num_merged = JOINS};

// Seconds of a kernel, of a call, of each fusion added to its call, of
// bn_finalize and of merged launches.  One candidate of calls without fusions
// is faster.
typedef struct {
    double kernel, call, more[4], finalize;
    double merged[JOINS];
    int fast;
} Times;

static double call_seconds(const Times *t, const RtConvolutions *v, int call) {
    RtPlanned p = {0};
    rt_convolutions_plan_at(v, rt_convolutions_plan_of(v, call), &p);
    double seconds = t->call;
    for (int k = 0; k < 4; k++)
        if (p.with >> k & 1)
            seconds += t->more[k];
    if (p.with == 0 && p.plan->candidate == t->fast)
        seconds *= 0.5;
    const bool *taken = rt_convolutions_taken(v);
    return seconds + (call == 0 && (taken[1] || taken[3]) ? t->finalize : 0);
}

// A launch within the one before adds to its time.
static bool measure(void *arg, const RtCandidate *candidate, double *seconds,
                    RtError *e) {
    const Times *t = arg;
    int at = 0;
    (void)e;
    for (int i = 0; i < LAUNCHES; i++) {
        double took = call_of[i] >= 0
                          ? call_seconds(t, candidate->convolutions, call_of[i])
                      : rt_convolutions_fused(candidate->convolutions, 0, i)
                          ? 0
                          : t->kernel;
        for (int k = 0; candidate->merged != NULL && k < JOINS; k++)
            if (candidate->merged[k] && joins[k].step == 0 &&
                i >= joins[k].launch && i < joins[k].launch + joins[k].count)
                took = i == joins[k].launch ? t->merged[k] : 0;
        bool within = candidate->within != NULL && candidate->within[i];
        at = within ? at : i;
        seconds[i] = within ? 0 : took;
        seconds[at] += within ? took : 0;
    }
    return true;
}

static RtCudnn cudnn;

static void open_library(void) {
    RtError e;
    char json[1 << 14] = "";
    const char *source = getenv("SINTER_SOURCE");
    char path[1000];
    snprintf(path, sizeof path, "%s/tools/devices/h200.json", source);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(json, 1, sizeof json - 1, f), 0);
    fclose(f);
    ck_assert_msg(rt_cudnn_open(&cudnn, &e), "%s", e.text);
    ck_assert_msg(rt_cudnn_describe(&cudnn, json, &e), "%s", e.text);
}

static void close_library(void) {
    rt_cudnn_close(&cudnn);
}

// At most one row of a group, none if the step does not need it.
static void only_one_is_chosen(const RtTuningResults *results, int group) {
    int chosen = 0;
    for (int i = 0; i < results->count; i++)
        chosen += results->row[i].group == group && results->row[i].chosen;
    ck_assert_int_le(chosen, 1);
}

static void tune(Times times, RtChosen *t, double *before, double *after) {
    RtError e;
    RtTuningResults results = {0};
    const RtTuner tuner = {.cudnn = &cudnn,
                           .plan = &plan,
                           .launches = LAUNCHES,
                           .call = call_of,
                           .measure = measure,
                           .arg = &times,
                           .results = &results};
    ck_assert_msg(rt_tuner_run(&tuner, t, before, after, &e), "%s", e.text);
    for (int i = 0; i < results.count; i++)
        only_one_is_chosen(&results, results.row[i].group);
    rt_tuning_results_free(&results);
}

static const char *fusions_of(Times times) {
    static char text[5];
    RtChosen t;
    double before, after;
    tune(times, &t, &before, &after);
    for (int i = 0; i < 4; i++)
        text[i] = t.fused[i] ? '1' : '0';
    rt_chosen_free(&t);
    return text;
}

START_TEST(fusions_that_save_are_taken) {
    ck_assert_str_eq(fusions_of((Times){.kernel = 5, .call = 10, .fast = -1}),
                     "1111");
}
END_TEST

START_TEST(fusions_that_cost_are_not) {
    const Times times = {.kernel = 5, .call = 10, .fast = -1};
    Times t = times;
    t.more[RT_FUSED_PROLOGUE] = 6;
    ck_assert_str_eq(fusions_of(t), "1001");
    t.more[RT_FUSED_BACKWARD] = 6;
    ck_assert_str_eq(fusions_of(t), "1000");
    t.more[RT_FUSED_STATISTICS] = 6;
    ck_assert_str_eq(fusions_of(t), "0000");
    t = times;
    t.more[RT_FUSED_PROLOGUE_WEIGHT] = 6;
    ck_assert_str_eq(fusions_of(t), "1001");
}
END_TEST

// Statistics that cost a little pay off by the fusions that need them.
START_TEST(statistics_pay_by_their_readers) {
    Times t = {.kernel = 5, .call = 10, .fast = -1};
    t.more[RT_FUSED_STATISTICS] = 8;
    ck_assert_str_eq(fusions_of(t), "1111");
    t.more[RT_FUSED_STATISTICS] = 16;
    ck_assert_str_eq(fusions_of(t), "0000");
}
END_TEST

START_TEST(finalize_must_pay) {
    Times t = {.kernel = 5, .call = 10, .finalize = 9, .fast = -1};
    ck_assert_str_eq(fusions_of(t), "1111");
    t.finalize = 11;
    ck_assert_str_eq(fusions_of(t), "1000");
}
END_TEST

// A plan that is twice as fast without a fusion beats the plan with most
// fusions.
START_TEST(the_fastest_candidate_is_found) {
    RtChosen t;
    RtError e;
    double before, after;
    RtConvolutions *v = rt_convolutions_new(&cudnn, &plan, NULL, &e);
    RtPlanned p;
    int first = 0;
    for (int i = 0; rt_convolutions_plan_at(v, i, &p); i++)
        if (p.with == 0 && p.plan != NULL)
            first = p.plan->candidate;
    rt_convolutions_free(v);
    tune((Times){.kernel = 1, .call = 10, .merged = {2, 2, 2}, .fast = 6}, &t,
         &before, &after);
    ck_assert_int_ne(first, 6);
    for (int i = 0; i < t.num_plans; i++)
        if (t.plan[i].with == 0)
            ck_assert_int_eq(t.plan[i].candidate, 6);
    for (int i = 0; i < 4; i++)
        ck_assert(!t.fused[i]);
    ck_assert_double_eq_tol(after, 4 * 5 + 3, 1e-9);
    ck_assert_double_lt(after, before);
    rt_chosen_free(&t);
}
END_TEST

// No fusion is taken, as all cost time.  A merged launch that costs time is
// left out, and then a part of it may be merged.
START_TEST(merged_launches_must_pay) {
    Times times = {.kernel = 5, .call = 10, .fast = -1, .merged = {9, 4, 9}};
    for (int k = 0; k < 4; k++)
        times.more[k] = 100;
    const double first[] = {9, 11, 11};
    const double part[] = {4, 4, 6};
    const bool unmerged[][JOINS] = {
        {false, false, false}, {true, false, true}, {true, true, true}};
    RtChosen t;
    double before, after;
    times.merged[0] = first[_i];
    times.merged[1] = part[_i];
    tune(times, &t, &before, &after);
    for (int i = 0; i < JOINS; i++)
        ck_assert_int_eq(t.unmerged[i], unmerged[_i][i]);
    const double total[] = {4 * 10 + 9 + 5, 4 * 10 + 5 + 4 + 5, 4 * 10 + 15};
    ck_assert_double_eq_tol(after, total[_i], 1e-9);
    rt_chosen_free(&t);
}
END_TEST

// ---- tile kernels ----

// Launches: a prologue of the calls at 1 and 3, whose epilogues follow them,
// and a kernel of attention.  The second tile kernel has two configurations on
// the GPU.
enum { TILE_LAUNCHES = 6, TILES = 4 };
static const int tile_call_of[TILE_LAUNCHES] = {-1, 0, -1, 1, -1, -1};
static const RtTileConfig configs[] = {{.name = "a"}, {.name = "b"}};
static const RtTile tiles[TILES] = {
    {"first", 0, configs, 1, 0, 0, 2, 0, NULL, 0},
    {"second", 1, configs, 2, 1, 0, 4, 0, NULL, 0},
    {"attention", 3, configs, 1, -1, 0, 5, 0, NULL, 0},
    {"elsewhere", 1, configs, 2, 2, 1, -1, 0, NULL, 0},
};
static const RtFusedLaunch fused_launches[] = {{0, 0, 0}, {0, 0, 1}};

// Seconds of a call, of a kernel, and of each tile kernel's configurations.
typedef struct {
    double call, kernel, tile[TILES][2];
} TileTimes;

static bool measure_tiles(void *arg, const RtCandidate *candidate,
                          double *seconds, RtError *e) {
    const TileTimes *t = arg;
    (void)e;
    for (int i = 0; i < TILE_LAUNCHES; i++)
        seconds[i] = tile_call_of[i] >= 0 ? t->call : t->kernel;
    for (int i = 0; candidate->tile != NULL && i < TILES; i++) {
        if (tiles[i].step != 0 || candidate->tile[i] == 0)
            continue;
        seconds[0] = 0;
        for (int k = 0; k < TILE_LAUNCHES; k++)
            if (tile_call_of[k] >= 0 && tile_call_of[k] == tiles[i].call)
                seconds[k] = 0;
        seconds[tiles[i].launch] = t->tile[i][candidate->tile[i] - 1];
    }
    return true;
}

static const char *tiles_of(TileTimes times) {
    static char text[TILES + 1];
    RtError e;
    RtChosen t;
    RtTuningResults results = {0};
    RtTileCode code[4] = {{.module = (CUmodule)&code}};
    int best[TILES] = {0}, config[TILES];
    code[1] = code[2] = code[3] = code[0];
    const RtPlan p = {.call = calls,
                      .num_calls = 3,
                      .step = steps,
                      .num_steps = 2,
                      .tile = tiles,
                      .num_tiles = TILES};
    RtTiles k = {.tile = tiles,
                 .count = TILES,
                 .fused = fused_launches,
                 .num_fused = 2,
                 .best = best,
                 .config = config,
                 .code = code,
                 .num_codes = 4};
    const RtTuner tuner = {.plan = &p,
                           .tiles = &k,
                           .launches = TILE_LAUNCHES,
                           .call = tile_call_of,
                           .measure = measure_tiles,
                           .arg = &times,
                           .results = &results};
    ck_assert(rt_chosen_new(&t, &p, &e));
    ck_assert_msg(rt_tune_tiles(&tuner, NULL, &t, &e), "%s", e.text);
    ck_assert_int_eq(results.count, 3 + 4); // and each without it
    for (int i = 0; i < TILES; i++)
        text[i] = (char)('0' + t.tile[i]);
    rt_chosen_free(&t);
    rt_tuning_results_free(&results);
    return text;
}

// A kernel of another step with the same code follows.
START_TEST(tile_kernels_that_save_are_taken) {
    const TileTimes times = {10, 4, {{11}, {12, 11}, {3}}};
    ck_assert_str_eq(tiles_of(times), "1212");
    const TileTimes slow = {10, 4, {{11}, {11, 12}, {5}}};
    ck_assert_str_eq(tiles_of(slow), "1101");
}
END_TEST

// Two calls with their kernels and half of the prologue each take 16.
START_TEST(tile_kernels_with_one_prologue_are_taken_together) {
    const TileTimes one_pays = {10, 4, {{8}, {20, 20}, {5}}};
    ck_assert_str_eq(tiles_of(one_pays), "1101");
    const TileTimes none = {10, 4, {{8}, {25, 25}, {5}}};
    ck_assert_str_eq(tiles_of(none), "0000");
}
END_TEST

// ---- files ----

static const RtTuningKey here = {&plan, NULL,  "NVIDIA H200", 90,
                                 132,   13000, 91900,         0};

static bool same(const RtChosen *a, const RtChosen *b) {
    bool good = a->num_plans == b->num_plans;
    for (int i = 0; good && i < a->num_plans; i++)
        good = a->plan[i].call == b->plan[i].call &&
               a->plan[i].with == b->plan[i].with &&
               a->plan[i].candidate == b->plan[i].candidate &&
               a->plan[i].engine == b->plan[i].engine;
    good = good && a->num_algorithms == b->num_algorithms;
    for (int i = 0; good && i < a->num_algorithms; i++)
        good = a->algorithm[i].call == b->algorithm[i].call &&
               a->algorithm[i].candidate == b->algorithm[i].candidate &&
               a->algorithm[i].digest == b->algorithm[i].digest;
    return good && memcmp(a->fused, b->fused, 4 * sizeof(bool)) == 0 &&
           memcmp(a->unmerged, b->unmerged, JOINS * sizeof(bool)) == 0;
}

// A new file: some file systems wait for the disk when one is made shorter.
static void write_text(const char *path, const char *text, size_t length) {
    unlink(path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, length, f), length);
    fclose(f);
}

// Every file that is shorter, or has another byte, is read as one that fits the
// plan or not at all.
START_TEST(a_file_is_read_as_it_was_written) {
    RtChosen t, back;
    RtError e;
    double before, after;
    char path[] = "/tmp/sinter-tuning-XXXXXX", text[4000] = "";
    tune((Times){.kernel = 5, .call = 10, .merged = {8, 8, 8}, .fast = 6}, &t,
         &before, &after);
    t.algorithm[t.num_algorithms++] =
        (RtChosenAlgorithm){3, 7, UINT64_MAX >> 2};
    close(mkstemp(path));
    ck_assert(rt_tuning_write(&t, path, &here, &rt_system_files, &e));
    ck_assert_msg(rt_tuning_read(&back, path, &here, &rt_system_files, &e),
                  "%s", e.text);
    ck_assert(same(&t, &back));
    rt_chosen_free(&back);
    FILE *f = fopen(path, "r");
    size_t length = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t i = 0; i + 1 < length; i++) {
        write_text(path, text, i);
        ck_assert(!rt_tuning_read(&back, path, &here, &rt_system_files, &e));
        ck_assert_int_eq(e.status, EXIT_DATA);
    }
    for (size_t i = 0; i < length; i++) {
        char is = text[i];
        text[i] = '9';
        write_text(path, text, length);
        if (rt_tuning_read(&back, path, &here, &rt_system_files, &e)) {
            for (int k = 0; k < back.num_plans; k++)
                ck_assert_int_lt(back.plan[k].call, plan.num_calls);
            rt_chosen_free(&back);
        }
        text[i] = is;
    }
    unlink(path);
    rt_chosen_free(&t);
}
END_TEST

// A choice whose engine the library no longer has in that place is not used.
START_TEST(another_engine_is_not_taken) {
    RtChosen t;
    RtError e;
    RtPlanned p;
    ck_assert(rt_chosen_new(&t, &plan, &e));
    t.num_plans = 1;
    t.plan[0] =
        (RtChosenPlan){.call = 0, .with = 0, .candidate = 6, .engine = 999};
    RtConvolutions *v = rt_convolutions_new(&cudnn, &plan, &t, &e);
    ck_assert(rt_convolutions_plan_at(v, rt_convolutions_plan_of(v, 0), &p));
    ck_assert_int_ne(p.plan->candidate, 6);
    ck_assert_uint_eq(p.with, 0); // no fusion
    rt_convolutions_free(v);
    rt_chosen_free(&t);
}
END_TEST

// Each differs from `here` in one thing.
static const RtPlan fewer = {.call = calls, .num_calls = 4};
static const struct {
    RtTuningKey key;
    int status;
    const char *says;
} others[] = {
    {{&fewer, NULL, "NVIDIA H200", 90, 132, 13000, 91900, 0},
     EXIT_DATA,
     "for another model"},
    {{&plan, NULL, "NVIDIA H100", 90, 132, 13000, 91900, 0},
     EXIT_DEVICE,
     "measured on NVIDIA H200 (9.0, 132 multiprocessors), driver for CUDA "
     "13.0, cuDNN 9.19.0, but this is NVIDIA H100"},
    {{&plan, NULL, "NVIDIA H200", 90, 114, 13000, 91900, 0},
     EXIT_DEVICE,
     "114 mul"},
    {{&plan, NULL, "NVIDIA H200", 90, 132, 12080, 91900, 0},
     EXIT_DEVICE,
     "12.8"},
    {{&plan, NULL, "NVIDIA H200", 90, 132, 13000, 91800, 0},
     EXIT_DEVICE,
     "9.18.0"},
    {{&plan, NULL, "NVIDIA H200", 90, 132, 13000, 91900, 130100},
     EXIT_DEVICE,
     "cuBLASLt 13.1.0: measure again with --tune"},
};
enum { OTHERS = sizeof others / sizeof others[0] };

START_TEST(a_file_is_for_one_plan_on_one_kind_of_gpu) {
    RtChosen t, back;
    RtError e;
    char path[] = "/tmp/sinter-tuning-XXXXXX";
    char *name = rt_tuning_path("folder", &here);
    char *another = rt_tuning_path("folder", &others[_i].key);
    ck_assert_int_eq(strncmp(name, "folder/", 7), 0);
    // The libraries are opened after the file is found.
    bool same_path = others[_i].key.plan == &plan &&
                     strcmp(others[_i].key.gpu, here.gpu) == 0 &&
                     others[_i].key.processors == here.processors &&
                     others[_i].key.driver == here.driver;
    ck_assert_int_eq(strcmp(name, another) == 0, same_path);
    close(mkstemp(path));
    ck_assert(rt_chosen_new(&t, &plan, &e));
    ck_assert(rt_tuning_write(&t, path, &here, &rt_system_files, &e));
    ck_assert(
        !rt_tuning_read(&back, path, &others[_i].key, &rt_system_files, &e));
    ck_assert_int_eq(e.status, others[_i].status);
    ck_assert_msg(strstr(e.text, others[_i].says) != NULL, "%s", e.text);
    RtTuningKey unused = here;
    unused.cudnn = 0;
    ck_assert(rt_tuning_read(&back, path, &unused, &rt_system_files, &e));
    rt_chosen_free(&back);
    unlink(path);
    rt_chosen_free(&t);
    free(name);
    free(another);
}
END_TEST

Suite *tune_suite(void) {
    Suite *s = suite_create("tune");
    TCase *t = tcase_create("tune");
    tcase_add_checked_fixture(t, open_library, close_library);
    tcase_add_test(t, fusions_that_save_are_taken);
    tcase_add_test(t, fusions_that_cost_are_not);
    tcase_add_test(t, statistics_pay_by_their_readers);
    tcase_add_test(t, finalize_must_pay);
    tcase_add_test(t, the_fastest_candidate_is_found);
    tcase_add_loop_test(t, merged_launches_must_pay, 0, 3);
    tcase_add_test(t, tile_kernels_that_save_are_taken);
    tcase_add_test(t, tile_kernels_with_one_prologue_are_taken_together);
    tcase_add_test(t, a_file_is_read_as_it_was_written);
    tcase_add_test(t, another_engine_is_not_taken);
    tcase_add_loop_test(t, a_file_is_for_one_plan_on_one_kind_of_gpu, 0,
                        OTHERS);
    suite_add_tcase(s, t);
    return s;
}
