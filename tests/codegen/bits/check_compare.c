// What is a difference and what is none: four bytes at 0 are a tensor that a
// launch stored, four at 4 a state, and the last four are nobody's.
#include "tests/codegen/bits/bits.h"

#include <string.h>

enum { STORED = 0, STATE = 4, NOBODYS = 8, BYTES = 12, LAUNCH = 3 };

typedef struct {
    RtType type; // of the tensor and the state
    int64_t count;
    int launch; // that stored the tensor
    size_t at;  // of what differs
    uint32_t left, meant;
    const char *said; // NULL: nothing
} Row;

static const Row rows[] = {
    // Another bit of what is no number.
    {RT_F32, 1, LAUNCH, STORED, 0x7fffffff, 0xffc00000, NULL},
    {RT_F32, 1, LAUNCH, STATE, 0x7fffffff, 0xffc00000, NULL},
    {RT_F32, 1, LAUNCH, NOBODYS, 0x7fffffff, 0xffc00000, NULL},
    {RT_BF16, 2, LAUNCH, STORED, 0x7fff3f80, 0xffc03f80, NULL},
    {RT_F16, 2, LAUNCH, STATE, 0x7fff3c00, 0xfe003c00, NULL},
    {RT_F32, 1, LAUNCH, STORED, 0x7fffffff, 0x3f800000,
     "stored[0] is nan, should be 1"},
    {RT_F32, 1, LAUNCH, NOBODYS, 0x3f800000, 0x7fffffff,
     "kept for a while[0] is 1, should be nan"},
    // A number beside what is none.
    {RT_BF16, 2, LAUNCH, STORED, 0x7fff3f80, 0x7fff4000,
     "stored[0] is 1, should be 2"},
    {RT_BF16, 2, LAUNCH, STATE, 0x7fff3f80, 0x7fff4000,
     "state[0] is 1, should be 2"},
    {RT_F16, 2, LAUNCH, STORED, 0x7fff3c00, 0x7fff4000,
     "stored[0] is 1, should be 2"},
    // Integers that would be no number.
    {RT_I32, 1, LAUNCH, STORED, 0xffffffff, 0xfffffffe,
     "stored[0] is -1, should be -2"},
    {RT_I32, 1, LAUNCH, STATE, 0xffffffff, 0xfffffffe,
     "state[0] is -1, should be -2"},
    {RT_U8, 4, LAUNCH, STORED, 0x7fff0201, 0x7fff0301,
     "stored[1] is 2, should be 3"},
    // What the launches before left may be stored over by room of f32.
    {RT_BF16, 2, LAUNCH - 1, STORED, 0x7fffffff, 0xffc00000, NULL},
    {RT_BF16, 2, LAUNCH - 1, STORED, 0x3f800000, 0x40000000,
     "kept for a while[0] is 1, should be 2"},
    // The last of some launches that were compared together.
    {RT_BF16, 2, LAUNCH + 1, STORED, 0x7fff3f80, 0x7fff4000,
     "stored[0] is 1, should be 2"},
};
enum { NUM_ROWS = sizeof rows / sizeof rows[0] };

static void compare(const Row *r, Text *report) {
    const RtStored stored = {.launch = r->launch,
                             .type = r->type,
                             .count = r->count,
                             .offset = STORED,
                             .what = "stored"};
    const RtState state = {.name = "state",
                           .type = r->type,
                           .rank = 1,
                           .dim = {r->count},
                           .offset = STATE};
    const RtPlan plan = {.state = &state,
                         .num_states = 1,
                         .stored = &stored,
                         .num_stored = 1,
                         .arena_bytes = BYTES};
    const Launches of = {0, LAUNCH, LAUNCH + 1};
    char left[BYTES] = "", meant[BYTES] = "";
    memcpy(left + r->at, &r->left, sizeof r->left);
    memcpy(meant + r->at, &r->meant, sizeof r->meant);
    bits_compare(&plan, &of, left, meant, "kernel", report);
}

START_TEST(only_another_no_number_is_no_difference) {
    const Row *r = &rows[_i];
    Arena *a = arena_new();
    Text report = text_new(a);
    compare(r, &report);
    const char *said = text_string(&report);
    if (r->said == NULL)
        ck_assert_str_eq(said, "");
    else
        ck_assert_msg(strstr(said, r->said) != NULL, "%s: %s", r->said, said);
    arena_free(a);
}
END_TEST

Suite *compare_suite(void) {
    Suite *s = suite_create("compare");
    TCase *t = tcase_create("compare");
    tcase_add_loop_test(t, only_another_no_number_is_no_difference, 0,
                        NUM_ROWS);
    suite_add_tcase(s, t);
    return s;
}
