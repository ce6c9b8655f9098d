// Replay: it names the operation that causes the first non-finite number.
#include "runtime/replay/range.h"
#include "runtime/replay/replay.h"
#include "tests/runtime/replay/suites.h"

#include <math.h>
#include <string.h>

// Two graphs; queries are about the second: two kernels and the update.
static const char text[] =
    "graph accumulate {\n"
    "  %0 = input {name = \"image\"} : f32[9]\n"
    "}\n"
    "graph train (grouped) {\n"
    "  %0 = input {name = \"image\"} : f32[4]  # a.net:1\n"
    "  %1 = param {name = \"w\"} : f32[4]  # a.net:2\n"
    "  %2 = constant {values = [inf]} : f32[]\n"
    "  %3 = mul %0, %1 : f32[4] !g0  # a.net:3 first\n"
    "  %4 = relu %3 : f32[4] !g1  # a.net:4 one\n"
    "  %5 = log %4 : f32[4] !g1  # a.net:5 two\n"
    "  %6 = minimum %5, %2 : f32[4] !g1  # a.net:6 three\n"
    "  %7 = exp %3 : f32[4] !g1  # a.net:7 four\n"
    "  %8 = add %6, %7 : f32[4] !g1  # a.net:8 five backward\n"
    "  %9 = mul %7, %7 : act[4] !g1  # a.net:9 six\n"
    "  %10 = mul %8, %9 : f32[4] !g2  # a.net:10 seven\n"
    "  %11 = assign %1, %10 : f32[4] !g3  # a.net:11\n"
    "  %12 = log %0 : f32[4] !g4  # a.net:12 eight\n"
    "  %13 = add %12, %7 : f32[4] !g4  # a.net:13 nine\n"
    "}\n";

typedef struct {
    ReplayMemory memory;
    double image[4], w[4];
    const double *first; // the stored value of %3; NULL: not stored
} Numbers;

static bool numbers_read(const ReplayMemory *m, uint32_t node, const char *name,
                         int64_t count, double *to) {
    const Numbers *n = (const Numbers *)(const void *)m;
    const double *from = name == NULL                 ? NULL
                         : strcmp(name, "image") == 0 ? n->image
                                                      : n->w;
    if (name == NULL && node == 3)
        from = n->first;
    if (from != NULL && to != NULL)
        memcpy(to, from, (size_t)count * sizeof *to);
    return from != NULL && count == 4;
}

// The message about a node; "" for none.
static const char *said_of(const Numbers *n, uint32_t node, double most,
                           size_t room) {
    static char said[400];
    Replay *r = replay_open(text, strlen(text), "train");
    ReplayQuery ask = {node, most, room};
    ck_assert_ptr_nonnull(r);
    said[0] = '\0';
    ck_assert_int_eq(replay_explain(r, &ask, &n->memory, said, sizeof said),
                     said[0] != '\0');
    replay_close(r);
    return said;
}

enum { ROOM = 1 << 20 };
static const double LARGEST = 0x1.fffffep127;
static const double HALF = 65504;

static const Numbers usual = {
    .memory = {numbers_read}, .image = {1, 2, 0, 4}, .w = {1, 1, 1, 1}};

START_TEST(the_first_operation_of_a_kernel_is_named) {
    static const double first[] = {1, 2, 0, 3};
    Numbers n = usual;
    n.first = first;
    ck_assert_str_eq(
        said_of(&n, 8, LARGEST, ROOM),
        "log of two, a.net:5 is the first tensor that is not finite, in "
        "1 of 4 elements; relu of one, a.net:4 is 0 .. 3");
}
END_TEST

START_TEST(a_nan_comes_before_an_infinity) {
    static const double first[] = {-1, 2, NAN, 3};
    Numbers n = usual;
    n.first = first;
    ck_assert_str_eq(
        said_of(&n, 12, LARGEST, ROOM),
        "log of eight, a.net:12 is the first tensor that is not finite, "
        "in 1 of 4 elements; image is 0 .. 4");
    ck_assert_str_eq(
        said_of(&n, 13, LARGEST, ROOM),
        "mul of first, a.net:3 is an input that is not finite, in 1 of 4 "
        "elements");
}
END_TEST

// The kernel's value differs from the definition in double.
START_TEST(overflow_in_f32_is_infinite) {
    static const double first[] = {1, 2, 200, 3};
    Numbers n = usual;
    n.first = first;
    ck_assert_str_eq(
        said_of(&n, 9, LARGEST, ROOM),
        "exp of four, a.net:7 is the first tensor that is not finite, in "
        "1 of 4 elements; mul of first, a.net:3 is 1 .. 200");
}
END_TEST

START_TEST(a_stored_number_may_overflow_its_type) {
    static const double first[] = {1, 1, 6, 1};
    Numbers n = usual;
    n.first = first;
    const char *said = said_of(&n, 9, HALF, ROOM);
    ck_assert_str_eq(said, "mul of six, a.net:9 is 7.38906 .. 162755, but the "
                           "largest number of its type in memory is 65504; "
                           "exp of four, a.net:7 is 2.71828 .. 403.429");
    ck_assert_str_eq(said_of(&n, 9, LARGEST, ROOM), "");
}
END_TEST

// A launch that a library fusion replaces stores nothing.
START_TEST(values_that_are_not_stored_are_computed) {
    Numbers n = usual;
    n.w[1] = INFINITY;
    ck_assert_str_eq(said_of(&n, 7, LARGEST, ROOM),
                     "w is an input that is not finite, in 1 of 4 elements");
    n.w[1] = 1e30;
    n.image[1] = 1e30;
    ck_assert_str_eq(
        said_of(&n, 7, LARGEST, ROOM),
        "mul of first, a.net:3 is the first tensor that is not finite, "
        "in 1 of 4 elements; image is 0 .. 1e+30; w is 1 .. 1e+30");
}
END_TEST

START_TEST(an_assignment_is_looked_behind) {
    Numbers n = usual;
    uint32_t node = 0;
    int launch = -1;
    Replay *r = replay_open(text, strlen(text), "train");
    ck_assert(replay_assignment(r, "w", &node, &launch));
    ck_assert_uint_eq(node, 11);
    ck_assert_int_eq(launch, 3);
    ck_assert(!replay_assignment(r, "image", &node, &launch));
    replay_close(r);
    ck_assert_ptr_nonnull(strstr(said_of(&n, 11, LARGEST, ROOM), "log of two"));
}
END_TEST

START_TEST(there_may_be_too_little_room) {
    ck_assert_str_eq(said_of(&usual, 8, LARGEST, 100), "");
}
END_TEST

START_TEST(a_graph_that_is_not_there_is_not_found) {
    ck_assert_ptr_null(replay_open(text, strlen(text), "trai"));
    ck_assert_ptr_null(replay_open(text, strlen(text), "eval"));
    ck_assert_ptr_null(replay_open("", 0, "train"));
}
END_TEST

START_TEST(ranges_are_short_texts) {
    char said[RANGE_TEXT];
    Range r = range_new();
    ck_assert_str_eq(range_text(said, &r), "empty");
    range_add(&r, NAN);
    ck_assert_str_eq(range_text(said, &r), "not finite");
    range_add(&r, 2);
    ck_assert_str_eq(range_text(said, &r),
                     "2 .. 2 and not finite in 1 element");
    ck_assert_int_eq(r.nans, 1);
    range_add(&r, -INFINITY);
    range_add(&r, -1.5);
    ck_assert_str_eq(range_text(said, &r),
                     "-1.5 .. 2 and not finite in 2 elements");
    ck_assert_int_eq(r.nans, 1);
}
END_TEST

Suite *replay_suite(void) {
    Suite *s = suite_create("replay");
    TCase *t = tcase_create("replay");
    tcase_add_test(t, the_first_operation_of_a_kernel_is_named);
    tcase_add_test(t, a_nan_comes_before_an_infinity);
    tcase_add_test(t, overflow_in_f32_is_infinite);
    tcase_add_test(t, a_stored_number_may_overflow_its_type);
    tcase_add_test(t, values_that_are_not_stored_are_computed);
    tcase_add_test(t, an_assignment_is_looked_behind);
    tcase_add_test(t, there_may_be_too_little_room);
    tcase_add_test(t, a_graph_that_is_not_there_is_not_found);
    tcase_add_test(t, ranges_are_short_texts);
    suite_add_tcase(s, t);
    return s;
}
