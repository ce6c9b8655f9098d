// Initial weights: a file's tensors are all loaded, or the file is refused.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static RtDevice *device;
static RtCheckpoint *checkpoint;
static RtError error;
static char said[RT_LOADED_BYTES];
static const char *map; // a file of names; NULL: none
static const char *advice;

// ---- files ----

typedef struct {
    const char *name, *type, *shape;
    size_t bytes;
} Part;

#define CONV                                                                   \
    { "conv.weight", "F32", "8,3,3,3", 864 }
#define LINEAR                                                                 \
    { "linear.weight", "F32", "512,4", 8192 }
enum { MAX_PARTS = 8 };

// A file of these tensors with the numbers 0, 1/64, 2/64 ...
static void write_file(const char *path, const char *notes, const Part *part) {
    static float data[1 << 16];
    char header[4096];
    size_t at = 0, length;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
        data[i] = (float)i / 64;
    length = (size_t)snprintf(header, sizeof header, "{%s", notes);
    for (int i = 0; i < MAX_PARTS && part[i].name != NULL; i++) {
        length +=
            (size_t)snprintf(header + length, sizeof header - length,
                             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                             "\"data_offsets\":[%zu,%zu]}",
                             length > 1 ? "," : "", part[i].name, part[i].type,
                             part[i].shape, at, at + part[i].bytes);
        at += part[i].bytes;
    }
    length += (size_t)snprintf(header + length, sizeof header - length, "}");
    uint8_t size[8] = {(uint8_t)length, (uint8_t)(length >> 8)};
    FILE *f = fopen(path, "wb");
    fwrite(size, 1, sizeof size, f);
    fwrite(header, 1, length, f);
    fwrite(data, 1, at, f);
    fclose(f);
}

static bool start(const char *path, const char *except) {
    memset(&error, 0, sizeof error);
    memset(said, 0, sizeof said);
    RtWeightsOptions how = {.except = except, .map = map, .advice = advice};
    return rt_checkpoint_load_weights(checkpoint, path, &how, said, &error);
}

// ---- states ----

static void begin_with(const RtTrainer *t) {
    place_enter();
    device = host_open(t->plan, 1);
    device->reserve(device);
    checkpoint =
        rt_checkpoint_new(t, t->plan, device, &rt_system_files, &error);
    ck_assert_ptr_nonnull(checkpoint);
}

static void begin(void) {
    begin_with(&tiny);
    for (int i = 0; i < tiny.plan->num_states; i++)
        for (size_t k = 0; k < rt_state_bytes(&tiny.plan->state[i]); k++)
            device->write(device, tiny.plan->state[i].offset + k, "\x2a", 1);
}

static void end(void) {
    rt_checkpoint_free(checkpoint);
    device->close(device);
    place_leave();
}

// Whether a state has the bytes that begin wrote.
static bool is_untouched(const RtState *s) {
    bool same = true;
    for (size_t k = 0; k < rt_state_bytes(s); k++) {
        char byte;
        device->read(device, &byte, s->offset + k, 1);
        same = same && byte == 0x2a;
    }
    return same;
}

static int untouched(void) {
    int count = 0;
    for (int i = 0; i < tiny.plan->num_states; i++)
        count += is_untouched(&tiny.plan->state[i]);
    return count;
}

// Whether a state has the numbers of a file from `first` on.
static bool holds(const char *name, int first) {
    const RtState *s = rt_state_find(tiny.plan, name);
    bool same = true;
    for (size_t k = 0; k < rt_state_bytes(s) / sizeof(float); k++) {
        float f;
        device->read(device, &f, s->offset + k * sizeof f, sizeof f);
        same = same && f == (float)(first + (int)k) / 64;
    }
    return same;
}

// ---- accepted files ----

START_TEST(a_file_of_another_program) {
    write_file("f", "", (Part[]){LINEAR, CONV, {0}});
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert(holds("linear.weight", 0));
    ck_assert(holds("conv.weight", 2048));
    ck_assert_int_eq(untouched(), tiny.plan->num_states - 2);
    ck_assert_str_eq(said, "2 of 2 tensors of Tiny");
}
END_TEST

// With any model name and recipe.
START_TEST(a_checkpoint_of_another_recipe) {
    RtTrainer t = tiny;
    RtProgress p = {17, 40, 8, 3, 5};
    float one = 1;
    t.fingerprint++;
    t.model = "Large";
    RtCheckpoint *c =
        rt_checkpoint_new(&t, t.plan, device, &rt_system_files, &error);
    device->write(device, tiny.plan->state[0].offset, &one, sizeof one);
    ck_assert(rt_checkpoint_write(c, "c", &p, &error));
    rt_checkpoint_free(c);
    for (int i = 0; i < tiny.plan->num_states; i++)
        device->write(device, tiny.plan->state[i].offset, "abcd", 4);
    ck_assert_msg(start("c", NULL), "%s", error.text);
    for (int i = 0; i < tiny.plan->num_states; i++) {
        char bytes[4];
        const void *right = i == 0   ? (const void *)&one
                            : i == 1 ? "\x2a\x2a\x2a\x2a"
                                     : "abcd";
        device->read(device, bytes, tiny.plan->state[i].offset, 4);
        ck_assert_msg(memcmp(bytes, right, 4) == 0, "state %d", i);
    }
    ck_assert_str_eq(said, "2 of 2 tensors of Tiny");
}
END_TEST

// The average of a weight differs from it; its run evaluated the average.
START_TEST(averages_are_the_weights) {
    const Part part[] = {CONV,
                         LINEAR,
                         {"conv.weight.average", "F32", "8,3,3,3", 864},
                         {"run.step", "I32", "", 4},
                         {0}};
    write_file("f", "", part);
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert(holds("conv.weight", 216 + 2048));
    ck_assert(holds("linear.weight", 216));
    ck_assert_ptr_nonnull(
        strstr(said, "Tiny\n1 of them is a weight average from"));
    ck_assert_msg(start("f", "*.average"), "%s", error.text);
    ck_assert(holds("conv.weight", 0));
    ck_assert_str_eq(said, "2 of 2 tensors of Tiny\n"
                           "in the file, not loaded: conv.weight.average\n"
                           "ignored optimizer states and counters: "
                           "run.step");
    ck_assert_msg(start("f", "conv.*"), "%s", error.text);
    ck_assert_str_eq(said, "1 of 2 tensors of Tiny\n"
                           "initialized, not loaded: conv.weight\n"
                           "ignored optimizer states and counters: "
                           "run.step");
    write_file("g", "", part + 1);
    ck_assert_msg(start("g", NULL), "%s", error.text);
    ck_assert(holds("conv.weight", 2048));
    ck_assert(!start("g", "*.average"));
    ck_assert_ptr_nonnull(strstr(error.text, "it has no conv.weight; "));
}
END_TEST

enum { MANY = 700001 }; // more than one read

static float half_right(uint16_t bits) {
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t wide = (exponent + 112) << 23 | fraction << 13;
    float f = (float)fraction * 0x1p-24f;
    if (exponent != 0)
        memcpy(&f, &wide, sizeof f);
    return bits >> 15 ? -f : f;
}

static float bfloat_right(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

// Every representable number, many times.
START_TEST(halves_are_widened) {
    static const RtState state = {"big.weight", RT_PARAM, RT_F32, 1,
                                  {MANY},       64,       0};
    static const RtPlan plan = {.device = "host",
                                .arena_bytes = 64 + 4 * MANY,
                                .state = &state,
                                .num_states = 1};
    static uint16_t bits[MANY];
    static float found[MANY];
    RtTrainer t = tiny;
    uint16_t infinite = _i ? 0x7f80 : 0x7c00;
    char header[128] = {0};
    t.plan = &plan;
    for (int i = 0; i < MANY; i++)
        bits[i] = (i & infinite) == infinite ? 0 : (uint16_t)i;
    size_t length = (size_t)snprintf(
        header + 8, sizeof header - 8,
        "{\"big.weight\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":"
        "[0,%d]}}",
        _i ? "BF16" : "F16", MANY, 2 * MANY);
    header[0] = (char)length;
    begin_with(&t);
    FILE *f = fopen("f", "wb");
    fwrite(header, 1, 8 + length, f);
    fwrite(bits, 1, sizeof bits, f);
    fclose(f);
    ck_assert_msg(start("f", NULL), "%s", error.text);
    device->read(device, found, state.offset, sizeof found);
    for (int i = 0; i < MANY; i++) {
        float right = _i ? bfloat_right(bits[i]) : half_right(bits[i]);
        ck_assert_msg(memcmp(&found[i], &right, sizeof right) == 0,
                      "%04x: %a, not %a", bits[i], (double)found[i],
                      (double)right);
    }
    end();
}
END_TEST

// ---- refused files ----

#define SAYS_HOW "; --init-except=GLOB leaves out the tensors that GLOB matches"
static const struct {
    const char *except;
    Part part[MAX_PARTS];
    int status;
    const char *says; // or, of a file that loads, the whole message
} files[] = {
    {NULL,
     {CONV},
     EXIT_DATA,
     "f: it does not fit: it has no linear.weight" SAYS_HOW},
    {NULL,
     {CONV, LINEAR, {"head.bias", "F32", "4", 16}},
     EXIT_DATA,
     "f: it does not fit: Tiny has no head.bias" SAYS_HOW},
    {NULL,
     {CONV, {"linear.weight", "F32", "512,5", 10240}},
     EXIT_DATA,
     "f: it does not fit: linear.weight is [512,5] not [512,4]" SAYS_HOW},
    {NULL,
     {{"conv.weight", "F32", "8,3,3", 288}, LINEAR},
     EXIT_DATA,
     "conv.weight is [8,3,3] not [8,3,3,3]"},
    {NULL,
     {{"conv.weight", "I32", "8,3,3,3", 864}, LINEAR},
     EXIT_DATA,
     "conv.weight has type I32"},
    {NULL,
     {{"conv.weight", "F64", "8,3,3,3", 1728}, LINEAR},
     EXIT_DATA,
     "conv.weight has type F64"},
    {NULL,
     {{"conv.weight", "F8_E4M3", "8,3,3,3", 216}, LINEAR},
     EXIT_DATA,
     "f: conv.weight has the unsupported type F8_E4M3; write weights as F32"},
    {NULL,
     {{"conv.\\u001b[1m", "\\u007f\\u000aF32", "1", 4}, LINEAR},
     EXIT_DATA,
     "f: conv.\\x1b[1m has the unsupported type \\x7f\\x0aF32"},
    {NULL, {{0}}, EXIT_DATA, "it has no conv.weight, linear.weight;"},
    {NULL,
     {{"a", "F32", "", 4}, {"b.c", "F32", "", 4}},
     EXIT_DATA,
     "it has no conv.weight, linear.weight; Tiny has no a, b.c; --map=FILE "
     "maps names of the model to the file's" SAYS_HOW},
    {NULL,
     {{"a", "U8", "", 1},
      {"b", "U8", "", 1},
      {"c", "U8", "", 1},
      {"d", "U8", "", 1},
      {"e\\u001b", "U8", "", 1}},
     EXIT_DATA,
     "Tiny has no a, b, c and 2 more;"},
    // Names of a run's states are scalars, and optimizer states belong to
    // tensors.
    {NULL,
     {CONV, LINEAR, {"run.weight", "F32", "4", 16}},
     EXIT_DATA,
     "Tiny has no run.weight"},
    {NULL,
     {CONV, LINEAR, {"fc.weight.momentum", "F32", "4", 16}},
     EXIT_DATA,
     "Tiny has no fc.weight.momentum"},
    // The shape of everything is wrong.
    {NULL,
     {{"conv.weight", "F32", "4,3,3,3", 432},
      {"linear.weight", "F32", "4,512", 8192}},
     EXIT_DATA,
     "conv.weight is [4,3,3,3] not [8,3,3,3], linear.weight is "
     "[4,512] not [512,4];"},
    // Excluded names are excluded on both sides, and no others.
    {"linear.*",
     {CONV, {"linear.weight", "F32", "512,5", 10240}},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight"},
    {"linear.*",
     {CONV},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight"},
    {"Tiny.linear.weight",
     {CONV},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight"},
    {"fc.*,linear.weigh?",
     {CONV, {"fc.weight", "I32", "1", 4}},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight\n"
     "in the file, not loaded: fc.weight"},
    // Other programs' additional tensors are reported, unless excluded.
    {"linear.*",
     {CONV, {"conv.weight.exp_avg", "F32", "2", 8}},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight\n"
     "ignored optimizer states and counters: conv.weight.exp_avg"},
    {"linear.*,*.exp_avg",
     {CONV, {"conv.weight.exp_avg", "F32", "2", 8}},
     0,
     "1 of 2 tensors of Tiny\ninitialized, not loaded: linear.weight"},
    {"linear.*",
     {CONV, LINEAR, {"fc.weight", "F32", "1", 4}},
     EXIT_DATA,
     "f: it does not fit: Tiny has no fc.weight" SAYS_HOW},
    {"linear.*", {LINEAR}, EXIT_DATA, "it has no conv.weight"},
    {"*", {CONV, LINEAR}, EXIT_DATA, "--init-except leaves nothing to load"},
    {"linear",
     {CONV, LINEAR},
     EXIT_USAGE,
     "f: --init-except=linear matches no tensor in it nor in Tiny; did you "
     "mean "
     "linear.*"},
    {"linear.*,,",
     {CONV, LINEAR},
     EXIT_USAGE,
     "--init-except= matches no tensor"},
    {"*.velocity", {CONV, LINEAR}, EXIT_USAGE, "matches no tensor"},
};

START_TEST(mismatched_tensors) {
    write_file("f", "", files[_i].part);
    bool good = start("f", files[_i].except);
    ck_assert_msg(good == (files[_i].status == 0), "%s", error.text);
    if (good) {
        ck_assert_str_eq(said, files[_i].says);
        ck_assert(holds("conv.weight", 0));
        ck_assert_int_eq(untouched(), tiny.plan->num_states - 1);
        return;
    }
    ck_assert_int_eq(error.status, files[_i].status);
    ck_assert_msg(strstr(error.text, files[_i].says) != NULL, "%s", error.text);
    ck_assert_int_eq(untouched(), tiny.plan->num_states);
}
END_TEST

// ---- PyTorch's files ----

// A plan of one state, the first of tiny's, by another name and shape.
static RtTrainer single;
static RtPlan single_plan;
static RtState single_state;

static void begin_single(const char *name, int rank, const int64_t *dim) {
    single = tiny;
    single_plan = *tiny.plan;
    single_state = tiny.plan->state[0];
    single.plan = &single_plan;
    single_plan.state = &single_state;
    single_plan.num_states = 1;
    single_state.name = name;
    single_state.rank = rank;
    memcpy(single_state.dim, dim, (size_t)rank * sizeof *dim);
    rt_checkpoint_free(checkpoint);
    checkpoint = rt_checkpoint_new(&single, &single_plan, device,
                                   &rt_system_files, &error);
}

// Whether the state has filters that were [8,channels,3,3] in the file.
static bool is_turned(int channels) {
    bool same = true;
    for (int i = 0; i < 8 * 9 * channels; i++) {
        int filter = i / (9 * channels), spot = i / channels % 9;
        int at = (filter * channels + i % channels) * 9 + spot;
        float f;
        device->read(device, &f, single_state.offset + (size_t)i * sizeof f,
                     sizeof f);
        same = same && f == (float)at / 64;
    }
    return same;
}

#define COUNTER                                                                \
    { "bn.num_batches_tracked", "I64", "", 8 }

START_TEST(channels_first_are_turned) {
    begin_single("conv.weight", 4, (int64_t[]){8, 3, 3, 2});
    write_file("f", "", (Part[]){{"conv.weight", "F32", "8,2,3,3", 576}, {0}});
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert(is_turned(2));
    ck_assert_str_eq(said, "1 of 1 tensors of Tiny\nits filters have channels "
                           "first, and are turned");
    write_file("f", "", (Part[]){{"conv.weight", "F32", "8,3,3,2", 576}, {0}});
    ck_assert(start("f", NULL));
    ck_assert(!is_turned(2));
}
END_TEST

// Filters whose shape does not tell are PyTorch's if the file has a counter.
START_TEST(a_counter_is_passed_over) {
    begin_single("conv.weight", 4, (int64_t[]){8, 3, 3, 3});
    write_file("f", "", (Part[]){CONV, COUNTER, {0}});
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert(is_turned(3));
    ck_assert_ptr_nonnull(strstr(said, "\nignored optimizer states and "
                                       "counters: bn.num_batches_tracked"));
    write_file("f", "", (Part[]){CONV, {0}});
    ck_assert(start("f", NULL));
    ck_assert(!is_turned(3));
    write_file("f", "", (Part[]){{"conv.weight", "I64", "8,3,3,3", 1728}, {0}});
    ck_assert(!start("f", NULL));
    ck_assert_ptr_nonnull(strstr(error.text, "conv.weight has type I64"));
}
END_TEST

START_TEST(the_weight_of_a_normalization_is_its_scale) {
    begin_single("bn.scale", 1, (int64_t[]){4});
    write_file("f", "", (Part[]){{"bn.weight", "F32", "4", 16}, {0}});
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert_str_eq(said, "1 of 1 tensors of Tiny");
}
END_TEST

static void map_write(const char *text) {
    FILE *f = fopen("map", "w");
    fputs(text, f);
    fclose(f);
    map = "map";
}

// The longest line counts; a line that names nothing is a mistake.
START_TEST(a_map_names_layers) {
    write_file("f", "",
               (Part[]){{"head.0.weight", "F32", "512,4", 8192},
                        {"stem.kernel", "F32", "8,3,3,3", 864},
                        {0}});
    ck_assert(!start("f", NULL));
    map_write("# of Tiny\n\n linear = head.0 # the last layer\n"
              "conv = unused\nconv.weight = stem.kernel\r\n");
    ck_assert(!start("f", NULL));
    ck_assert_ptr_nonnull(strstr(error.text, "map maps conv, but no weight"));
    map_write("# of Tiny\nlinear = head.9\nconv.weight = stem.kernel\n");
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text,
                     "f: it does not fit: it has no head.9.weight "
                     "(linear.weight, line 2 of the map); Tiny has no "
                     "head.0.weight" SAYS_HOW);
    map_write("linear = head.0\nconv.weight = stem.kernel\n");
    ck_assert_msg(start("f", NULL), "%s", error.text);
    ck_assert(holds("linear.weight", 0));
    ck_assert(holds("conv.weight", 2048));
    map_write("linear head.0\n");
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text, "f: map: a line has no =: linear head.0");
    map = "nowhere";
    ck_assert(!start("f", NULL));
    ck_assert_ptr_nonnull(strstr(error.text, "cannot open nowhere"));
    map = NULL;
}
END_TEST

// Changes the last two bytes of a file.
static void put_end(const char *path, uint8_t last_but_one, uint8_t last) {
    FILE *f = fopen(path, "r+b");
    fseek(f, -2, SEEK_END);
    fputc(last_but_one, f);
    fputc(last, f);
    fclose(f);
}

START_TEST(numbers_that_are_not_finite) {
    write_file("f", "", (Part[]){CONV, LINEAR, {0}});
    put_end("f", 0x7f, 0xff); // the exponent ends in the byte before the last
    ck_assert_msg(start("f", NULL), "%s", error.text);
    put_end("f", 0x80, 0xff);
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text,
                     "f: linear.weight has numbers that are not finite");
    ck_assert(start("f", "linear.*"));
}
END_TEST

START_TEST(every_length_but_its_own) {
    size_t length;
    write_file("f", "", (Part[]){CONV, LINEAR, {0}});
    uint8_t *bytes = place_read("f", &length);
    place_write("longer", bytes, length + 1);
    ck_assert(!start("longer", NULL));
    for (size_t left = length; left-- > 0;) {
        ck_assert_int_eq(truncate("f", (off_t)left), 0);
        ck_assert_msg(!start("f", NULL), "%zu bytes are accepted", left);
        ck_assert_int_eq(error.status, EXIT_DATA);
        if (left > 512 && left % 61 != 0)
            left -= left % 61;
    }
    ck_assert_int_eq(untouched(), tiny.plan->num_states);
    free(bytes);
}
END_TEST

// A prediction leaves no tensor out.
START_TEST(other_advice_than_to_leave_tensors_out) {
    advice = "build with the --set of its run";
    write_file("f", "", (Part[]){CONV, {0}});
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text, "f: it does not fit: it has no linear.weight; "
                                 "build with the --set of its run");
    advice = NULL;
}
END_TEST

// As torch.save writes it: an archive.
START_TEST(no_safetensors_file) {
    const char archive[] = "PK\3\4 and what else an archive has";
    place_write("f", archive, sizeof archive);
    ck_assert(!start("f", NULL));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_str_eq(error.text,
                     "f: it is an archive, as torch.save writes one, and no "
                     "safetensors file: "
                     "safetensors.torch.save_file(net.state_dict(), FILE) "
                     "writes that");
    place_write("f", "{\"weights\"}", 11);
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text,
                     "f: it is not a safetensors file, or it is truncated");
}
END_TEST

// A file with our metadata must have our hashes; other programs' metadata is
// their own.
START_TEST(notes_of_other_programs) {
    write_file("f", "\"__metadata__\":{\"format\":\"pt\"}",
               (Part[]){CONV, LINEAR, {0}});
    ck_assert_msg(start("f", NULL), "%s", error.text);
    write_file("f", "\"__metadata__\":{\"producer\":\"sinter\"}",
               (Part[]){CONV, LINEAR, {0}});
    ck_assert(!start("f", NULL));
    ck_assert_str_eq(error.text, "f: its header is damaged");
}
END_TEST

// A hundred thousand names, each looked up.
START_TEST(many_names_take_no_time) {
    enum { NAMES = 100000 };
    char *text = malloc((size_t)NAMES * 80), *at = text;
    *at++ = '{';
    for (int i = 0; i < NAMES; i++)
        at += sprintf(at,
                      "%s\"a%06d.b\":{\"dtype\":\"U8\",\"shape\":[0],"
                      "\"data_offsets\":[0,0]}",
                      i ? "," : "", i);
    *at++ = '}';
    size_t length = (size_t)(at - text);
    FILE *f = fopen("f", "wb");
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 255), f);
    fwrite(text, 1, length, f);
    fclose(f);
    free(text);
    ck_assert(!start("f", NULL));
    ck_assert_ptr_nonnull(strstr(error.text, "and 99997 more"));
}
END_TEST

// A system whose n-th read fails.
static int reads;

static ssize_t read_some(int fd, void *to, size_t bytes) {
    if (--reads == 0) {
        errno = EIO;
        return -1;
    }
    return read(fd, to, bytes < 1000 ? bytes : 1000);
}

START_TEST(reads_that_fail) {
    RtFiles broken = rt_system_files;
    broken.read = read_some;
    write_file("f", "", (Part[]){CONV, LINEAR, {0}});
    rt_checkpoint_free(checkpoint);
    checkpoint = rt_checkpoint_new(&tiny, tiny.plan, device, &broken, &error);
    int failed = 0;
    for (;; failed++) {
        reads = failed + 1;
        if (start("f", NULL))
            break;
        ck_assert_int_eq(error.status, EXIT_IO);
    }
    ck_assert_int_eq(failed, 12); // length, header, and 1 and 9 of the data
    ck_assert(holds("conv.weight", 0) && holds("linear.weight", 216));
}
END_TEST

Suite *weights_suite(void) {
    Suite *s = suite_create("weights");
    TCase *t = tcase_create("weights");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_file_of_another_program);
    tcase_add_test(t, a_checkpoint_of_another_recipe);
    tcase_add_test(t, averages_are_the_weights);
    tcase_add_loop_test(t, mismatched_tensors, 0,
                        sizeof files / sizeof files[0]);
    tcase_add_test(t, channels_first_are_turned);
    tcase_add_test(t, a_counter_is_passed_over);
    tcase_add_test(t, the_weight_of_a_normalization_is_its_scale);
    tcase_add_test(t, a_map_names_layers);
    tcase_add_test(t, numbers_that_are_not_finite);
    tcase_add_test(t, every_length_but_its_own);
    tcase_add_test(t, other_advice_than_to_leave_tensors_out);
    tcase_add_test(t, no_safetensors_file);
    tcase_add_test(t, notes_of_other_programs);
    tcase_add_test(t, many_names_take_no_time);
    tcase_add_test(t, reads_that_fail);
    suite_add_tcase(s, t);
    TCase *large = tcase_create("large");
    tcase_set_timeout(large, 60);
    tcase_add_loop_test(large, halves_are_widened, 0, 2);
    suite_add_tcase(s, large);
    return s;
}
