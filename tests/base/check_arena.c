// The arena: zeroed, aligned, disjoint, and no sum that overflows.
#include "base/arena.h"
#include "base/exits.h"
#include "tests/base/suites.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// Sizes around those of the blocks, in an order that leaves gaps.
static const size_t sizes[] = {1, 7, 16, 20000, 3, 0, 100000, 1, 9000000, 64};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static bool filled_with(const unsigned char *p, size_t count, int byte) {
    for (size_t i = 0; i < count; i++)
        if (p[i] != byte)
            return false;
    return true;
}

START_TEST(allocations_are_disjoint) {
    Arena *a = arena_new();
    unsigned char *p[NUM_SIZES];
    for (int i = 0; i < NUM_SIZES; i++) {
        p[i] = arena_alloc(a, sizes[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % alignof(max_align_t), 0);
        ck_assert(filled_with(p[i], sizes[i], 0));
        if (sizes[i] > 0)
            memset(p[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < NUM_SIZES; i++)
        ck_assert(filled_with(p[i], sizes[i], i + 1));
    arena_free(a);
}
END_TEST

// Memory that another arena has written and freed.
START_TEST(reused_memory_is_zero) {
    enum { SIZE = 1 << 20 };
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        memset(arena_uninit(a, SIZE, 1), 1, SIZE);
        unsigned char *p = arena_alloc(a, SIZE);
        ck_assert(filled_with(p, SIZE, 0));
        memset(p, 2, SIZE);
        arena_free(a);
    }
}
END_TEST

START_TEST(used_counts) {
    Arena *a = arena_new();
    ck_assert_uint_eq(arena_used(a), 0);
    arena_alloc(a, 100);
    ck_assert_uint_ge(arena_used(a), 100);
    ck_assert_uint_lt(arena_used(a), 200);
    arena_free(a);
}
END_TEST

START_TEST(strings_are_copies) {
    Arena *a = arena_new();
    char text[] = "conv_1.weight";
    char *copy = arena_string(a, text, 6);
    text[0] = 'X';
    ck_assert_str_eq(copy, "conv_1");
    ck_assert_str_eq(arena_format(a, "%s has %d", copy, 3), "conv_1 has 3");
    arena_free(a);
}
END_TEST

// Still allocated at exit, but no leak.
static Arena *volatile last;

START_TEST(lists_keep_appended_items) {
    Arena *a = arena_new();
    int *list = NULL, count = 0;
    for (int i = 0; i < 100; i++)
        ARENA_APPEND(a, list, count, 3 * i);
    ck_assert_int_eq(count, 100);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(list[i], 3 * i);
    arena_free(a);
}
END_TEST

START_TEST(product_too_large) {
    last = arena_new();
    arena_array(last, SIZE_MAX / 8 + 1, 16);
}
END_TEST

START_TEST(size_too_large) {
    last = arena_new();
    arena_alloc(last, SIZE_MAX - 4);
}
END_TEST

// Sanitizers report a double free or a leak.
START_TEST(children_are_freed_with_their_parent_or_before) {
    Arena *outer = arena_new();
    Arena *inner[4];
    for (int i = 0; i < 4; i++)
        inner[i] = arena_child(outer);
    char *text = arena_format(arena_child(inner[1]), "%d", 7);
    arena_free(inner[2]); // between two others
    arena_free(inner[3]); // the newest
    ck_assert_str_eq(text, "7");
    arena_free(inner[0]); // the oldest
    inner[0] = arena_child(outer);
    memset(arena_alloc(inner[0], 64), 1, 64);
    arena_free(outer);
}
END_TEST

Suite *arena_suite(void) {
    Suite *s = suite_create("arena");
    TCase *t = tcase_create("arena");
    tcase_add_test(t, allocations_are_disjoint);
    tcase_add_test(t, reused_memory_is_zero);
    tcase_add_test(t, used_counts);
    tcase_add_test(t, strings_are_copies);
    tcase_add_test(t, lists_keep_appended_items);
    tcase_add_test(t, children_are_freed_with_their_parent_or_before);
    tcase_add_exit_test(t, product_too_large, EXIT_MEMORY);
    tcase_add_exit_test(t, size_too_large, EXIT_MEMORY);
    suite_add_tcase(s, t);
    return s;
}
