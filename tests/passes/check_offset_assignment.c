// Offset assignment: random live ranges, against every order of a few buffers
// and against the sum that is live at once.
#include "tests/passes/suites.h"

#include "passes/live_range.h"

#include <stdlib.h>

enum { SLOT = 256, FEW = 6, MANY = 10000 };

static int below(uint32_t *state, int limit) {
    *state = *state * 747796405u + 2891336453u;
    return (int)((uint64_t)(*state >> 8) * (uint64_t)limit >> 24);
}

static void fill(Buffer *b, int count, int times, uint32_t seed) {
    for (int i = 0; i < count; i++) {
        int from = below(&seed, times), to = from + below(&seed, times / 2 + 1);
        b[i] = (Buffer){.node = (NodeId)i,
                        .from = from,
                        .to = to < times ? to : times - 1,
                        .bytes = SLOT * (1 + below(&seed, 9)),
                        .offset = -1};
    }
}

// What a step of training looks like: values of the forward pass are needed
// again in the reverse order.
static void fill_nested(Buffer *b, int count, uint32_t seed) {
    for (int i = 0; i < count; i++)
        b[i] = (Buffer){.node = (NodeId)i,
                        .from = i,
                        .to = i % 3 ? i + 2 : 2 * count - i,
                        .bytes = SLOT * (1 + below(&seed, 64)),
                        .offset = -1};
}

static bool together(const Buffer *a, const Buffer *b) {
    return a->from <= b->to && b->from <= a->to;
}

static void check_sound(const Buffer *b, int count, int64_t end) {
    for (int i = 0; i < count; i++) {
        ck_assert_int_ge(b[i].offset, 0);
        ck_assert_int_eq(b[i].offset % SLOT, 0);
        ck_assert_int_le(b[i].offset + b[i].bytes, end);
        for (int j = 0; j < i; j++)
            if (together(&b[i], &b[j]) &&
                b[i].offset < b[j].offset + b[j].bytes &&
                b[j].offset < b[i].offset + b[i].bytes)
                ck_abort_msg("%u and %u overlap", b[i].node, b[j].node);
    }
    ck_assert_int_le(buffers_bound(b, count), end);
}

START_TEST(nothing_overlaps) {
    Buffer b[120];
    int count = 1 + _i % 120;
    fill(b, count, 4 + _i % 50, (uint32_t)_i);
    int64_t end = offsets_assign(b, count, 0);
    check_sound(b, count, end);
    ck_assert_int_le(end, buffers_bound(b, count) * 11 / 10);
}
END_TEST

// The least end with b[0 .. done) placed and the rest placed in any order,
// each at the lowest address that is free.
static int64_t least_end(Buffer *b, int count, int done, int64_t end) {
    int64_t least = INT64_MAX;
    if (done == count)
        return end;
    for (int i = done; i < count; i++) {
        Buffer chosen = b[i];
        b[i] = b[done];
        chosen.offset = 0;
        for (int j = 0; j < done; j++)
            if (together(&b[j], &chosen) &&
                chosen.offset < b[j].offset + b[j].bytes &&
                b[j].offset < chosen.offset + chosen.bytes) {
                chosen.offset = b[j].offset + b[j].bytes;
                j = -1;
            }
        b[done] = chosen;
        int64_t top = chosen.offset + chosen.bytes;
        int64_t found = least_end(b, count, done + 1, top > end ? top : end);
        least = found < least ? found : least;
        b[done] = b[i];
        b[i] = chosen;
    }
    return least;
}

START_TEST(few_are_packed_as_well_as_can_be) {
    Buffer b[FEW];
    for (int i = 0; i < 20; i++) {
        fill(b, FEW, 3 + i % 5, (uint32_t)(20 * _i + i));
        int64_t least = least_end(b, FEW, 0, 0);
        int64_t bound = buffers_bound(b, FEW), end = offsets_assign(b, FEW, 0);
        check_sound(b, FEW, end);
        ck_assert_int_le(end, least > bound ? least : bound);
    }
}
END_TEST

START_TEST(same_buffers_same_places) {
    Buffer x[60], y[60];
    fill(x, 60, 20, 7);
    fill(y, 60, 20, 7);
    ck_assert_int_eq(offsets_assign(x, 60, 0), offsets_assign(y, 60, 0));
    for (int i = 0; i < 60; i++)
        ck_assert_int_eq(x[i].offset, y[i].offset);
}
END_TEST

// The first order that ends within the room is taken, and none is missed.
START_TEST(what_fits_is_not_made_smaller) {
    Buffer b[60];
    int larger = 0;
    for (uint32_t seed = 0; seed < 10; seed++) {
        fill(b, 60, 20, seed);
        int64_t least = offsets_assign(b, 60, 0), wide = least + least / 8;
        int64_t end = offsets_assign(b, 60, wide);
        check_sound(b, 60, end);
        ck_assert_int_le(end, wide);
        larger += end > least;
        ck_assert_int_eq(offsets_assign(b, 60, least), least);
        ck_assert_int_eq(offsets_assign(b, 60, least - 1), least);
    }
    ck_assert_int_gt(larger, 0);
}
END_TEST

START_TEST(sizes_of_zero_take_nothing) {
    Buffer b[] = {{0, 0, 3, 0, -1}, {1, 1, 2, SLOT, -1}, {2, 2, 2, 0, -1}};
    ck_assert_int_eq(offsets_assign(b, 3, 0), SLOT);
    ck_assert_int_eq(offsets_assign(b, 0, 0), 0);
}
END_TEST

// Within the time of a test, and within a hundredth of the bound.
START_TEST(many_are_quick) {
    Buffer *b = malloc(MANY * sizeof *b);
    fill_nested(b, MANY, 1);
    int64_t end = offsets_assign(b, MANY, 0);
    ck_assert_int_le(end, buffers_bound(b, MANY) / 100 * 101);
    free(b);
}
END_TEST

START_TEST(a_walk_is_sound_and_near_the_bound) {
    Buffer b[300];
    int count = 1 + _i % 300;
    if (_i % 2)
        fill(b, count, 4 + _i % 50, (uint32_t)_i);
    else
        fill_nested(b, count, (uint32_t)_i);
    int64_t end = offsets_assign_walk(b, count);
    check_sound(b, count, end);
    ck_assert_int_le(end, 2 * buffers_bound(b, count));
}
END_TEST

Suite *offset_assignment_suite(void) {
    Suite *s = suite_create("offset_assignment");
    TCase *t = tcase_create("offset_assignment");
    tcase_set_timeout(t, 20);
    tcase_add_loop_test(t, nothing_overlaps, 0, 60);
    tcase_add_loop_test(t, a_walk_is_sound_and_near_the_bound, 0, 60);
    tcase_add_loop_test(t, few_are_packed_as_well_as_can_be, 0, 10);
    tcase_add_test(t, same_buffers_same_places);
    tcase_add_test(t, what_fits_is_not_made_smaller);
    tcase_add_test(t, sizes_of_zero_take_nothing);
    tcase_add_test(t, many_are_quick);
    suite_add_tcase(s, t);
    return s;
}
