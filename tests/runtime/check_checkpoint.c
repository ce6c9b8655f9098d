// One checkpoint: it loads exactly as written, or is refused.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const RtProgress where = {17, 40, 8, 3, 0xfedcba9876543210};
static RtDevice *device;
static RtCheckpoint *checkpoint;
static RtError error;

// Every saved byte depends on its state and on the `version`.
static void fill_states(int version) {
    const RtPlan *plan = tiny.plan;
    for (int i = 0; i < plan->num_states; i++)
        for (size_t k = 0; k < rt_state_bytes(&plan->state[i]); k++) {
            char byte = (char)((version * 31 + i * 7 + (int)(k % 13)) & 63);
            device->write(device, plan->state[i].offset + k, &byte, 1);
        }
}

static bool states_are(int version) {
    const RtPlan *plan = tiny.plan;
    for (int i = 0; i < plan->num_states; i++)
        for (size_t k = 0; k < rt_state_bytes(&plan->state[i]); k++) {
            char byte;
            device->read(device, &byte, plan->state[i].offset + k, 1);
            if (byte != (char)((version * 31 + i * 7 + (int)(k % 13)) & 63))
                return false;
        }
    return true;
}

static void begin(void) {
    place_enter();
    device = host_open(tiny.plan, 1);
    device->reserve(device);
    checkpoint =
        rt_checkpoint_new(&tiny, tiny.plan, device, &rt_system_files, &error);
    ck_assert_ptr_nonnull(checkpoint);
    fill_states(1);
}

static void end(void) {
    rt_checkpoint_free(checkpoint);
    device->close(device);
    place_leave();
}

static RtLoad load(const char *name, RtProgress *p) {
    memset(&error, 0, sizeof error);
    return rt_checkpoint_read(checkpoint, name, p, &error);
}

// Whether a run could start with the weights of a file.
static bool starts(const char *name) {
    char said[RT_LOADED_BYTES];
    return rt_checkpoint_load_weights(checkpoint, name, &(RtWeightsOptions){0},
                                      said, &error);
}

static void write_good(void) {
    ck_assert_msg(rt_checkpoint_write(checkpoint, "c", &where, &error), "%s",
                  error.text);
}

START_TEST(round_trip) {
    RtProgress p = {0};
    write_good();
    fill_states(2);
    ck_assert_msg(load("c", &p) == RT_GOOD, "%s", error.text);
    ck_assert(states_are(1));
    ck_assert_int_eq(p.step, where.step);
    ck_assert_int_eq(p.steps, where.steps);
    ck_assert_int_eq(p.epoch_steps, where.epoch_steps);
    ck_assert_int_eq(p.seed, where.seed);
    ck_assert_uint_eq(p.data_hash, where.data_hash);
}
END_TEST

// Impossible positions of a run are refused, in a valid file.
START_TEST(no_run_was_there) {
    static const RtProgress places[] = {
        {-1, 40, 8, 3, 0},
        {41, 40, 8, 3, 0},
        {INT64_MAX - 1, INT64_MAX, 8, 3, 0},
        {17, INT64_MAX, 8, 3, 0},
        {17, 40, 0, 3, 0},
        {17, 40, INT64_MAX, 3, 0},
        {17, 40, 8, -1, 0},
        {17, 40, 8, INT64_MAX, 0},
    };
    RtProgress p;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        ck_assert(rt_checkpoint_write(checkpoint, "c", &places[i], &error));
        ck_assert_msg(load("c", &p) == RT_BROKEN, "place %zu is taken", i);
        ck_assert_str_eq(error.text, "c: it has no position of its run");
    }
}
END_TEST

START_TEST(equal_states_are_equal_files) {
    size_t length, other;
    write_good();
    uint8_t *first = place_read("c", &length);
    ck_assert(rt_checkpoint_write(checkpoint, "c", &where, &error));
    uint8_t *second = place_read("c", &other);
    ck_assert_uint_eq(length, other);
    ck_assert_int_eq(memcmp(first, second, length), 0);
    free(first);
    free(second);
}
END_TEST

START_TEST(the_file_is_safetensors) {
    size_t length;
    RtHeader h;
    write_good();
    uint8_t *bytes = place_read("c", &length);
    uint64_t header = 0;
    for (int i = 0; i < 8; i++)
        header |= (uint64_t)bytes[i] << 8 * i;
    ck_assert_uint_eq((header + 8) % 64, 0);
    ck_assert_int_eq(bytes[8], '{');
    ck_assert_msg(rt_header_parse(&h, (char *)bytes + 8, header,
                                  length - 8 - header, &error),
                  "%s", error.text);
    ck_assert_uint_eq(h.num_tensors, (size_t)tiny.plan->num_states);
    ck_assert_str_eq(rt_header_metadata(&h, "model")->value, "Tiny");
    ck_assert_str_eq(rt_header_metadata(&h, "step")->value, "17");
    ck_assert_str_eq(rt_header_metadata(&h, "epoch")->value, "2.125");
    rt_header_free(&h);
    free(bytes);
}
END_TEST

START_TEST(every_length_but_its_own_is_refused) {
    size_t length;
    RtProgress p;
    write_good();
    uint8_t *bytes = place_read("c", &length);
    place_write("longer", bytes, length + 1);
    ck_assert_int_eq(load("longer", &p), RT_BROKEN);
    for (size_t left = length; left-- > 0;) {
        ck_assert_int_eq(truncate("c", (off_t)left), 0);
        ck_assert_msg(load("c", &p) == RT_BROKEN, "%zu bytes are accepted",
                      left);
        ck_assert_int_eq(error.status, EXIT_DATA);
        if (left > 4096 && left % 7 != 0) // of the data, one length in 7
            left -= left % 7;
    }
    free(bytes);
}
END_TEST

static void flip(FILE *f, const uint8_t *bytes, size_t at, int bit) {
    fseek(f, (long)at, SEEK_SET);
    fputc(bytes[at] ^ 1 << bit, f);
    fflush(f);
    RtProgress p;
    ck_assert_msg(load("c", &p) != RT_GOOD, "byte %zu, bit %d", at, bit);
    ck_assert_msg(!starts("c"), "a run starts with byte %zu, bit %d", at, bit);
    fseek(f, (long)at, SEEK_SET);
    fputc(bytes[at], f);
    fflush(f);
}

// Each bit of the header, and one bit of every seventh byte of the data, so of
// each byte of the checksum's words.
START_TEST(every_flipped_bit_is_seen) {
    size_t length;
    RtProgress p;
    write_good();
    uint8_t *bytes = place_read("c", &length);
    size_t header = 8 + bytes[8 - 8] + ((size_t)bytes[1] << 8);
    FILE *f = fopen("c", "r+b");
    for (size_t at = 0; at < header; at++)
        for (int bit = 0; bit < 8; bit++)
            flip(f, bytes, at, bit);
    for (size_t at = header; at < length; at += 7)
        flip(f, bytes, at, (int)(at % 8));
    fclose(f);
    ck_assert_int_eq(load("c", &p), RT_GOOD);
    ck_assert(starts("c"));
    free(bytes);
}
END_TEST

static void refused_by(const RtTrainer *t, const char *says) {
    RtProgress p;
    RtCheckpoint *other =
        rt_checkpoint_new(t, t->plan, device, &rt_system_files, &error);
    ck_assert_int_eq(rt_checkpoint_read(other, "c", &p, &error), RT_OTHER_RUN);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
    rt_checkpoint_free(other);
}

START_TEST(another_trainer_is_named) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtState states[16];
    write_good();
    t.model = "Large";
    refused_by(&t, "for model Tiny, but this trainer is for Large");
    t = tiny;
    t.fingerprint++;
    refused_by(&t, "different model text or recipe");
    t = tiny;
    t.plan = &plan;
    plan.num_states--;
    refused_by(&t, "tensors, but this trainer has");
    plan.num_states++;
    plan.state = states;
    memcpy(states, tiny.plan->state,
           sizeof states[0] * (size_t)plan.num_states);
    states[0].dim[0]--;
    refused_by(&t, "conv.weight has a different type or shape");
    states[0].dim[0]++;
    states[0].name = "conv_1.weight";
    refused_by(&t, "it has no tensor conv_1.weight");
}
END_TEST

START_TEST(parameters_that_are_not_finite_are_not_saved) {
    float bad = _i ? INFINITY : NAN;
    const RtState *s = &tiny.plan->state[1];
    device->write(device, s->offset + rt_state_bytes(s) - 4, &bad, 4);
    ck_assert(!rt_checkpoint_write(checkpoint, "c", &where, &error));
    ck_assert_int_eq(error.status, EXIT_DIVERGED);
    ck_assert_ptr_nonnull(strstr(error.text, "linear.weight"));
    ck_assert_int_ne(access("c", F_OK), 0);
}
END_TEST

START_TEST(strange_files) {
    RtProgress p;
    ck_assert_int_eq(load("nothing", &p), RT_BROKEN);
    ck_assert_ptr_nonnull(strstr(error.text, "nothing"));
    place_folder("folder");
    ck_assert_int_eq(load("folder", &p), RT_BROKEN);
    place_write("empty", "", 0);
    ck_assert_int_eq(load("empty", &p), RT_BROKEN);
    place_write("huge", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    ck_assert_int_eq(load("huge", &p), RT_BROKEN);
    place_write("none", "\x02\0\0\0\0\0\0\0{}", 10);
    ck_assert_int_eq(load("none", &p), RT_BROKEN);
}
END_TEST

Suite *checkpoint_suite(void) {
    Suite *s = suite_create("checkpoint");
    TCase *t = tcase_create("checkpoint");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, no_run_was_there);
    tcase_add_test(t, equal_states_are_equal_files);
    tcase_add_test(t, the_file_is_safetensors);
    tcase_add_test(t, every_length_but_its_own_is_refused);
    tcase_add_test(t, every_flipped_bit_is_seen);
    tcase_add_test(t, another_trainer_is_named);
    tcase_add_loop_test(t, parameters_that_are_not_finite_are_not_saved, 0, 2);
    tcase_add_test(t, strange_files);
    suite_add_tcase(s, t);
    return s;
}
