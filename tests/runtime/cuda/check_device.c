// The CUDA device on the stand-in for the driver: steps run one by one, are
// captured and replayed, and every failure to open the device has its message.
#define _XOPEN_SOURCE 700

#include "runtime/cuda/libraries/libraries.h"
#include "tests/runtime/cuda/suites.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static RtDevice *open_device(int ordinal) {
    RtError e;
    RtDevice *d = rt_cuda_open(&counter, counter.plan, ordinal, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    return d;
}

// Three runs: one by one, captured, replayed.
static void count_up(RtDevice *d, int runs) {
    float sum = 0, value[COUNTERS], total[SUMS];
    for (int i = 0; i < runs; i++) {
        float input = (float)(i + 1);
        sum += input;
        d->write(d, INPUT_AT, &input, sizeof input);
        input = -1000; // ours again
        d->run(d, counter.plan->step);
    }
    d->read(d, value, 0, sizeof value);
    d->read(d, total, TOTALS_AT, sizeof total);
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_float_eq(value[i], sum);
    for (int i = 0; i < SUMS; i++)
        ck_assert_float_eq(total[i], COUNTERS * sum);
}

START_TEST(steps_do_the_same_however_they_are_launched) {
    static const char *const seed[] = {"0", "1", "2", "3", "4"};
    setenv("SINTER_DOUBLE_SEED", seed[_i], 1);
    RtDevice *d = open_device(0);
    d->reserve(d);
    count_up(d, 1 + 10 * _i);
    d->close(d);
}
END_TEST

// Room for half of the blocks, as with a tool that instruments the kernel.
START_TEST(fewer_blocks_than_the_driver_reports_suffice) {
    setenv("SINTER_DOUBLE_FAIL", "cuLaunchCooperativeKernel:1:720", 1);
    RtDevice *d = open_device(0);
    d->reserve(d);
    count_up(d, 10);
    d->close(d);
}
END_TEST

// The first run launches each kernel once; the second captures it twice and
// launches a graph.
START_TEST(a_step_that_cannot_be_captured_is_launched) {
    static const char *const fault[] = {
        "cuStreamBeginCapture_v2:1:900",
        "cuEventRecordWithFlags:1:801",
        "cuLaunchKernel:2:701",
        "cuLaunchCooperativeKernel:2:701",
        "cuStreamEndCapture:1:901",
        "cuStreamEndCapture:2:901",
        "cuGraphInstantiateWithFlags:1:2",
        "cuGraphInstantiateWithFlags:2:2",
        "cuGraphUpload:1:801",
        "cuGraphUpload:2:801",
        "cuLaunchCooperativeKernel:3:701",
        "cuGraphLaunch:1:801",
        "cuGraphLaunch:200:801",
    };
    setenv("SINTER_DOUBLE_FAIL", fault[_i], 1);
    RtDevice *d = open_device(0);
    d->reserve(d);
    count_up(d, 300);
    d->close(d);
}
END_TEST

// The blocks that the stand-in holds, four on each of 132, and more.
enum { ROOM = 4 * 132, MANY = ROOM + 72 };

static void run_many(RtDevice *d) {
    LAUNCH(d, 0, MANY, INPUT_AT, 0);
}

// The double logs its calls beside the cache, which is removed after the tests.
static void log_begin(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s/calls-%d", getenv("XDG_CACHE_HOME"),
             (int)getpid());
    setenv("SINTER_DOUBLE_LOG", path, 1);
}

static FILE *log_open(void) {
    FILE *f = fopen(getenv("SINTER_DOUBLE_LOG"), "r");
    ck_assert_ptr_nonnull(f);
    return f;
}

// The blocks of the first launch of "add".
static unsigned blocks_launched(void) {
    char line[200];
    unsigned blocks = 0;
    FILE *f = log_open();
    while (blocks == 0 && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "%*d cuLaunchKernel add grid=%u", &blocks);
    fclose(f);
    return blocks;
}

// A kernel may start early where it follows one of ours: not the first of a
// step, and not a cooperative one.
static void run_four(RtDevice *d) {
    LAUNCH(d, 0, 5, INPUT_AT, 0);
    LAUNCH(d, 0, 5, INPUT_AT, 0);
    LAUNCH(d, 1, 5, 0, TOTALS_AT, 24576, 32768);
    LAUNCH(d, 0, 5, INPUT_AT, 0);
}

// All of them since the first call.
static int early_launches(const RtPlan *plan, const RtOptions *o) {
    char line[200];
    int early = 0;
    RtError e;
    RtDevice *d = rt_cuda_open(&counter, plan, 0, o, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    d->run(d, plan->step);
    d->close(d);
    FILE *f = log_open();
    while (fgets(line, sizeof line, f) != NULL)
        early += strstr(line, " cuLaunchKernelEx add ") != NULL;
    fclose(f);
    return early;
}

START_TEST(kernels_start_early_where_they_wait) {
    const RtStep steps[] = {{.kind = RT_TRAIN, .run = run_four}};
    RtPlan plan = *counter.plan;
    const RtOptions other_text = {.resident = "auto",
                                  .decode = "cpu",
                                  .load_cuda = "folder"};
    plan.step = steps;
    log_begin();
    ck_assert_int_eq(early_launches(&plan, NULL), 2);
    ck_assert_int_eq(early_launches(&plan, &other_text), 2);
    plan.serialized = true;
    ck_assert_int_eq(early_launches(&plan, NULL), 2);
}
END_TEST

START_TEST(older_gpus_start_no_kernel_early) {
    const RtStep steps[] = {{.kind = RT_TRAIN, .run = run_four}};
    RtPlan plan = *counter.plan;
    char path[4200];
    plan.step = steps;
    snprintf(path, sizeof path, "%s/tools/devices/a100.json",
             getenv("SINTER_SOURCE"));
    setenv("SINTER_DOUBLE_DEVICE", path, 1);
    log_begin();
    ck_assert_int_eq(early_launches(&plan, NULL), 0);
}
END_TEST

// A kernel that works with fewer blocks gets the resident ones, with the same
// result.
START_TEST(no_block_waits_for_others_to_end) {
    const RtStep steps[] = {{.kind = RT_TRAIN, .run = run_many}};
    float one = 1, value[COUNTERS];
    RtPlan plan = *counter.plan;
    RtKernel kernel = plan.kernel[0];
    RtError e;
    kernel.fewer = _i;
    plan.kernel = &kernel;
    plan.num_kernels = 1;
    plan.step = steps;
    log_begin();
    RtDevice *d = rt_cuda_open(&counter, &plan, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    d->write(d, INPUT_AT, &one, sizeof one);
    for (int i = 0; i < 3; i++)
        d->run(d, steps);
    d->read(d, value, 0, sizeof value);
    d->close(d);
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_float_eq(value[i], 3);
    ck_assert_uint_eq(blocks_launched(), _i ? ROOM : MANY);
}
END_TEST

enum { WIDE = 200 };

// Adds the input to each of so many numbers.
static void run_wide(RtDevice *d) {
    size_t arg[1 + WIDE] = {INPUT_AT};
    for (int i = 0; i < WIDE; i++)
        arg[1 + i] = sizeof(float) * (size_t)i;
    d->launch(d, 0, 1, arg);
}

static const char *wide_text(void) {
    static char text[64 * (WIDE + 4)];
    char *at = text;
    at += sprintf(at, "#define SINTER_ACT 32\n"
                      "#include \"runtime/prelude/prelude.h\"\n"
                      "\n"
                      "KERNEL(256) wide(const float *input");
    for (int i = 0; i < WIDE; i++)
        at += sprintf(at, ", float *to%d", i);
    at +=
        sprintf(at, ")\n{\n    DECLARE_BLOCK;\n    if (threadIdx.x == 0) {\n");
    for (int i = 0; i < WIDE; i++)
        at += sprintf(at, "        *to%d += *input;\n", i);
    sprintf(at, "    }\n}\n");
    return text;
}

START_TEST(a_kernel_has_as_many_arguments_as_it_needs) {
    const RtStep steps[] = {{.kind = RT_TRAIN, .run = run_wide}};
    const RtKernel kernel = {
        .name = "wide", .phases = 1, .threads = 256, .args = 1 + WIDE};
    float two = 2, value[WIDE];
    RtPlan plan = *counter.plan;
    RtTrainer trainer = counter;
    RtError e;
    plan.kernel = &kernel;
    plan.num_kernels = 1;
    plan.step = steps;
    trainer.kernels = wide_text();
    trainer.kernels_end = trainer.kernels + strlen(trainer.kernels);
    RtDevice *d = rt_cuda_open(&trainer, &plan, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    d->write(d, INPUT_AT, &two, sizeof two);
    for (int i = 0; i < 3; i++)
        d->run(d, steps);
    d->read(d, value, 0, sizeof value);
    d->close(d);
    for (int i = 0; i < WIDE; i++)
        ck_assert_float_eq(value[i], 6);
}
END_TEST

START_TEST(bytes_of_any_length_arrive) {
    enum { BYTES = 30000 };
    static char sent[BYTES], got[BYTES];
    RtDevice *d = open_device(0);
    d->reserve(d);
    for (int length = 1; length < BYTES; length = 3 * length + 1) {
        for (int i = 0; i < length; i++)
            sent[i] = (char)(i * 7 + length);
        d->write(d, 1024, sent, (size_t)length);
        memset(got, 0, sizeof got);
        d->read(d, got, 1024, (size_t)length);
        ck_assert_mem_eq(sent, got, (size_t)length);
    }
    d->close(d);
}
END_TEST

// More than the pinned slots hold, so that each is used again while copies are
// in flight.
START_TEST(slots_are_not_filled_before_they_are_empty) {
    enum { BYTES = 44 << 20 };
    RtPlan large = *counter.plan;
    RtError e;
    uint32_t *sent = malloc(BYTES), *got = calloc(BYTES, 1);
    ck_assert(sent != NULL && got != NULL);
    for (uint32_t i = 0; i < BYTES / 4; i++)
        sent[i] = i * 2654435761u;
    setenv("SINTER_DOUBLE_SEED", "1", 1);
    large.arena_bytes = BYTES;
    RtDevice *d = rt_cuda_open(&counter, &large, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    d->write(d, 0, sent, BYTES);
    d->read(d, got, 0, BYTES);
    ck_assert_int_eq(memcmp(sent, got, BYTES), 0);
    d->close(d);
    free(sent);
    free(got);
}
END_TEST

START_TEST(memory_is_clear_at_first) {
    static char got[TOTALS_AT];
    RtDevice *d = open_device(0);
    d->reserve(d);
    d->read(d, got, 0, sizeof got);
    for (size_t i = 0; i < sizeof got; i++)
        ck_assert_int_eq(got[i], 0);
    d->close(d);
}
END_TEST

START_TEST(phases_are_timed) {
    RtTimes spent;
    RtDevice *d = open_device(0);
    d->reserve(d);
    count_up(d, 100);
    d->times(d, &spent);
    ck_assert(spent.phase[RT_FORWARD] > 0);
    ck_assert(spent.phase[RT_UPDATE] > 0);
    ck_assert(spent.phase[RT_BACKWARD] == 0);
    d->times(d, &spent);
    ck_assert(spent.phase[RT_FORWARD] == 0);
    d->close(d);
}
END_TEST

// ---- a device that cannot be used ----

// A setting of the stand-in, and a word of the message that follows.
static const struct {
    const char *name, *value;
    int ordinal, status;
    const char *word;
} refusals[] = {
    {"SINTER_DOUBLE_DEVICES", "0", 0, EXIT_DEVICE, "nvidia-smi"},
    {"SINTER_DOUBLE_DEVICES", "2", 2, EXIT_DEVICE, "from cuda:0 to cuda:1"},
    {"SINTER_DOUBLE_DRIVER", "11080", 0, EXIT_DEVICE, "525 or later"},
    {"SINTER_DOUBLE_DRIVER", "12040", 0, EXIT_DEVICE, "580 or later"},
    {"SINTER_DOUBLE_BUSY", "1", 0, EXIT_DEVICE, "nvidia-smi"},
    {"SINTER_DOUBLE_FAIL", "cuInit:1:34", 0, EXIT_DEVICE, "stub"},
    {"SINTER_DOUBLE_FAIL", "cuInit:1:803", 0, EXIT_DEVICE, "restart"},
    {"SINTER_DOUBLE_FAIL", "cuInit:1:804", 0, EXIT_DEVICE, "folder compat"},
    {"SINTER_DOUBLE_FAIL", "cuModuleLoadDataEx:2:222", 0, EXIT_DEVICE,
     "update the driver"},
    {"SINTER_DOUBLE_FAIL", "cuModuleLoadDataEx:2:200", 0, EXIT_DEVICE,
     "update the driver"},
    {"SINTER_DOUBLE_FAIL", "cuModuleLoadDataEx:1:221", 0, EXIT_DEVICE,
     "ptxjitcompiler"},
    {"SINTER_DOUBLE_FAIL", "cuMemHostAlloc:1:2", 0, EXIT_MEMORY,
     "pinned memory"},
    {"SINTER_DOUBLE_FAIL", "cuDevicePrimaryCtxRetain:1:2", 0, EXIT_MEMORY,
     "nvidia-smi"},
    {"SINTER_DOUBLE_FAIL", "cuDevicePrimaryCtxRetain:1:805", 0, EXIT_DEVICE,
     "CUDA_MPS_LOG_DIRECTORY"},
    {"SINTER_DOUBLE_FAIL", "cuInit:1:999", 0, EXIT_DEVICE, "/dev/nvidia-uvm"},
    {"SINTER_DOUBLE_FAIL", "cuStreamCreateWithPriority:1:719", 0, EXIT_DEVICE,
     "Xid"},
};
enum { NUM_REFUSALS = sizeof refusals / sizeof refusals[0] };

START_TEST(failures_to_open_have_messages) {
    RtError e = {0};
    setenv(refusals[_i].name, refusals[_i].value, 1);
    RtDevice *d = rt_cuda_open(&counter, counter.plan, refusals[_i].ordinal,
                               NULL, NULL, &e);
    ck_assert_ptr_null(d);
    ck_assert_int_eq(e.status, refusals[_i].status);
    ck_assert_msg(strstr(e.text, refusals[_i].word) != NULL, "%s", e.text);
}
END_TEST

// The double's device without cooperative launches, in a file beside the cache.
static void describe_without_cooperation(void) {
    char path[4200], command[9000];
    snprintf(path, sizeof path, "%s/single.json", getenv("XDG_CACHE_HOME"));
    snprintf(command, sizeof command,
             "sed 's/\"supportCoopLaunch\": 1/\"supportCoopLaunch\": 0/' "
             "'%s/tools/devices/h200.json' >'%s'",
             getenv("SINTER_SOURCE"), path);
    ck_assert_int_eq(system(command), 0);
    setenv("SINTER_DOUBLE_DEVICE", path, 1);
}

START_TEST(a_gpu_without_cooperative_launches_is_refused) {
    RtError e = {0};
    describe_without_cooperation();
    ck_assert_ptr_null(rt_cuda_open(&counter, counter.plan, 0, NULL, NULL, &e));
    ck_assert_int_eq(e.status, EXIT_DEVICE);
    ck_assert_msg(strstr(e.text, "not support cooperative launches") != NULL &&
                      strstr(e.text, "kernel sum needs one") != NULL,
                  "%s", e.text);
}
END_TEST

// An early failure is tried again, so the call must fail more than once.
START_TEST(a_failing_compiler_has_a_message) {
    static const char *const faults[] = {
        "nvrtcCompileProgram:2:7,nvrtcCompileProgram:3:7,"
        "nvrtcCompileProgram:4:7",
        "nvrtcCreateProgram:1:1,nvrtcCreateProgram:2:1,"
        "nvrtcCreateProgram:3:1,nvrtcCreateProgram:4:1",
    };
    RtError e = {0};
    setenv("SINTER_DOUBLE_FAIL", faults[_i], 1);
    ck_assert_ptr_null(rt_cuda_open(&counter, counter.plan, 0, NULL, NULL, &e));
    ck_assert_int_eq(e.status, EXIT_DEVICE);
    ck_assert_msg(strstr(e.text, _i == 0 ? "libnvrtc-builtins" : "memory") !=
                      NULL,
                  "%s", e.text);
}
END_TEST

// The launches of the rarer graph in 300 runs; runs one by one come first.
static int timed_runs(void) {
    char line[200], first[40] = "", graph[40];
    int count[2] = {0, 0};
    FILE *f = log_open();
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*d cuGraphLaunch %39s", graph) == 1) {
            if (first[0] == '\0')
                strcpy(first, graph);
            count[strcmp(first, graph) != 0]++;
        }
    fclose(f);
    ck_assert_int_eq(count[0] + count[1], 299);
    return count[0] < count[1] ? count[0] : count[1];
}

START_TEST(few_runs_are_timed) {
    log_begin();
    RtDevice *d = open_device(0);
    d->reserve(d);
    for (int i = 0; i < 300; i++)
        d->run(d, counter.plan->step);
    d->sync(d);
    d->close(d);
    ck_assert_int_ge(timed_runs(), 2);
    ck_assert_int_le(timed_runs(), 300 / 100);
}
END_TEST

static void run_add(RtDevice *d) {
    LAUNCH(d, 0, 5, INPUT_AT, 0);
}

START_TEST(kernels_that_are_not_launched_are_not_compiled) {
    const RtStep steps[] = {{.kind = RT_TRAIN, .run = run_add}};
    RtPlan plan = *counter.plan;
    RtError e;
    plan.step = steps;
    setenv("SINTER_DOUBLE_FAIL", "nvrtcCompileProgram:2:7", 1);
    RtDevice *d = rt_cuda_open(&counter, &plan, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    d->run(d, steps);
    d->sync(d);
    d->close(d);
}
END_TEST

START_TEST(too_little_memory_is_known_before_it_is_taken) {
    setenv("SINTER_DOUBLE_MEMORY", "30000", 1);
    RtDevice *d = open_device(0);
    ck_assert_uint_gt(d->needed(d), d->available(d));
    d->close(d);
}
END_TEST

// These end the program; the tests check the exit status.
START_TEST(memory_that_is_gone_ends_it) {
    setenv("SINTER_DOUBLE_FAIL", "cuMemAlloc_v2:1:2", 1);
    RtDevice *d = open_device(0);
    d->reserve(d);
}
END_TEST

START_TEST(an_illegal_address_ends_it) {
    setenv("SINTER_DOUBLE_FAIL", "run:20:700", 1);
    RtDevice *d = open_device(0);
    d->reserve(d);
    count_up(d, 30);
}
END_TEST

// A function that it gave to the driver for the end is still loaded.
START_TEST(a_library_that_was_used_stays) {
    static const char file[] = "libcudnn.so.9";
    RtCudnn c;
    RtError e;
    ck_assert_ptr_null(dlopen(file, RTLD_NOW | RTLD_NOLOAD));
    ck_assert(rt_cudnn_open(&c, &e));
    rt_cudnn_close(&c);
    ck_assert_ptr_nonnull(dlopen(file, RTLD_NOW | RTLD_NOLOAD));
}
END_TEST

static size_t cudnn_of;

static size_t cudnn_tells(void) {
    return cudnn_of;
}

START_TEST(cudnn_of_another_cuda_is_refused) {
    static const struct {
        size_t of;
        int gpu, driver;
        bool suits;
    } list[] = {
        {12090, 90, 12000, true},  {12090, 90, 13000, true},
        {13010, 90, 13000, true},  {13010, 90, 12080, false},
        {13010, 70, 13000, false}, {12090, 70, 13000, true},
        {14000, 90, 13020, false}, {14000, 90, 14000, true},
        {14000, 70, 14000, false}, {13010, 0, 13000, true},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        RtError e;
        const RtCudnn c = {.cuda = cudnn_tells};
        cudnn_of = list[i].of;
        ck_assert_msg(rt_cudnn_compatible(&c, list[i].gpu, list[i].driver,
                                          &e) == list[i].suits,
                      "CUDA %zu on %d with %d", list[i].of, list[i].gpu,
                      list[i].driver);
    }
}
END_TEST

Suite *device_suite(void) {
    Suite *s = suite_create("device");
    TCase *c = tcase_create("steps");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, steps_do_the_same_however_they_are_launched, 0, 5);
    tcase_add_test(c, fewer_blocks_than_the_driver_reports_suffice);
    tcase_add_loop_test(c, a_step_that_cannot_be_captured_is_launched, 0, 13);
    tcase_add_test(c, kernels_start_early_where_they_wait);
    tcase_add_test(c, older_gpus_start_no_kernel_early);
    tcase_add_loop_test(c, no_block_waits_for_others_to_end, 0, 2);
    tcase_add_test(c, a_kernel_has_as_many_arguments_as_it_needs);
    tcase_add_test(c, bytes_of_any_length_arrive);
    tcase_add_test(c, slots_are_not_filled_before_they_are_empty);
    tcase_add_test(c, memory_is_clear_at_first);
    tcase_add_test(c, phases_are_timed);
    tcase_add_test(c, few_runs_are_timed);
    tcase_add_test(c, a_library_that_was_used_stays);
    tcase_add_test(c, cudnn_of_another_cuda_is_refused);
    suite_add_tcase(s, c);
    c = tcase_create("refusals");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, failures_to_open_have_messages, 0, NUM_REFUSALS);
    tcase_add_test(c, a_gpu_without_cooperative_launches_is_refused);
    tcase_add_test(c, too_little_memory_is_known_before_it_is_taken);
    tcase_add_exit_test(c, memory_that_is_gone_ends_it, EXIT_MEMORY);
    tcase_add_exit_test(c, an_illegal_address_ends_it, EXIT_DEVICE);
    suite_add_tcase(s, c);
    c = tcase_create("cold");
    tcase_add_checked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_failing_compiler_has_a_message, 0, 2);
    tcase_add_test(c, kernels_that_are_not_launched_are_not_compiled);
    suite_add_tcase(s, c);
    return s;
}
