// The augmentations that std/vision.net and std/sequences.net compute in the
// language: against torchvision's numbers, stored in tests/golden/numbers, and
// how often their draws occur.  ir/eval.c computes them.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- a model that exposes its input ----

typedef struct {
    int height, width, channels; // sequences have one row
    const char *type;            // of the model's input
    double (*image)(int64_t sample, int64_t y, int64_t x, int64_t c);
} Data;

typedef struct {
    Arena *arena;
    Data data;
    int batch;
    const double *x; // [batch, height, width, channels]
} Seen;

static double leaf_value(const Data *d, const char *name, int64_t i) {
    int64_t pixel = i / d->channels, row = pixel / d->width;
    if (strcmp(name, "image") == 0)
        return d->image(row / d->height, row % d->height, pixel % d->width,
                        i % d->channels);
    if (strcmp(name, "index") == 0)
        return (double)i;
    return strncmp(name, "run.", 4) == 0 ? 10 : 0;
}

static void evaluate(Seen *s, const Graph *g) {
    double **leaf = ARENA_ARRAY(s->arena, g->count, double *);
    NodeId rows = NO_NODE;
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (op == OP_matmul && rows == NO_NODE)
            rows = g->node[n].arg[0];
        if (op != OP_input && op != OP_param && op != OP_state)
            continue;
        int64_t count = type_count(g->node[n].type);
        leaf[n] = ARENA_ARRAY(s->arena, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] =
                leaf_value(&s->data, node_text(&g->node[n], ATTR_name), i);
    }
    s->x = graph_eval(g, s->arena, leaf, false)[rows];
}

static Seen see(Data d, const char *chain, int batch, bool training) {
    static char text[2000];
    snprintf(text, sizeof text,
             "import \"std/augment.net\" { warp_affine, composed }\n"
             "import \"std/vision.net\" { rotate, affine, color_jitter, "
             "grayscale, solarize, posterize, autocontrast, random_erasing, "
             "rand_augment, trivial_augment_wide }\n"
             "import \"std/sequences.net\" { time_masking, frequency_masking, "
             "random_gain, time_shift }\n"
             "model M(image: %s) -> f32[N, 2] {\n"
             "image |> flatten |> linear(2, bias=false)\n}\n"
             "train M { data = synthetic(samples=9999)\n"
             "input = data.train |> %s\n"
             "batch = %d, drop_last; epochs = 1\n"
             "loss = mean(cross_entropy(output, label))\n"
             "optimizer = sgd(lr=1) }\n",
             d.type, chain, batch);
    Loaded l = load_text(text);
    ck_assert_msg(l.program != NULL, "%s: %s", chain, codes_of(&l));
    Seen s = {.arena = l.arena, .data = d, .batch = batch};
    evaluate(&s, training ? l.program->stage[0].train : l.program->eval);
    return s;
}

static int64_t values_of(const Data *d) {
    return (int64_t)d->height * d->width * d->channels;
}

static double at(const Seen *s, int sample, int y, int x, int c) {
    const Data *d = &s->data;
    int64_t pixel = ((int64_t)sample * d->height + y) * d->width + x;
    return s->x[pixel * d->channels + c];
}

static double given(const Data *d, int sample, int64_t i) {
    return leaf_value(d, "image", sample * values_of(d) + i);
}

// ---- torchvision ----

static double colours(int64_t sample, int64_t y, int64_t x, int64_t c) {
    (void)sample;
    return (double)((37 * y * y + 61 * x * c + 17 * x * y + 29 * y + 83 * c) %
                    256);
}

static const Data photo = {5, 6, 3, "u8[N, 5, 6, 3]", colours};
enum { VALUES = 5 * 6 * 3, MAX_RESULTS = 30 };

static char *numbers_text(Arena *a) {
    const char *source = getenv("SINTER_SOURCE"), *why;
    const char *path = arena_format(
        a, "%s/tests/golden/numbers/augmentations.txt", source ? source : ".");
    const Source *s = source_read(a, path, 1 << 20, &why);
    ck_assert_msg(s != NULL, "%s", why);
    return arena_string(a, s->text, s->length);
}

// Numbers are written to 1e-4, and torchvision computes hues in f32: an ulp of
// the 17 operations on the way is 255 * 2^-24.
static bool is_result(const Seen *s, int sample, const double *want) {
    for (int i = 0; i < VALUES; i++)
        if (fabs(s->x[sample * VALUES + i] - want[i]) > 5e-5 + 17 * 1.6e-5)
            return false;
    return true;
}

// Each sample has one of the results, and each result occurs.
static void check_results(const char *chain, const double *want, int results) {
    int batch = results == 1 ? 2 : 40 * results, count[MAX_RESULTS] = {0};
    Seen s = see(photo, chain, batch, true);
    for (int i = 0; i < batch; i++) {
        int found = 0;
        while (found < results && !is_result(&s, i, want + found * VALUES))
            found++;
        ck_assert_msg(found < results, "%s: sample %d has none of %d results",
                      chain, i, results);
        count[found]++;
    }
    for (int i = 0; i < results; i++)
        ck_assert_msg(count[i] > 0, "%s never has result %d", chain, i);
    arena_free(s.arena);
}

START_TEST(augmentations_are_torchvisions) {
    static double want[MAX_RESULTS * VALUES];
    Arena *a = arena_new();
    int cases = 0;
    for (char *s = numbers_text(a); *s != '\0'; cases++) {
        ck_assert_int_eq(*s, '#');
        char *chain = s + 2, *end = strchr(s, '\n');
        int count = 0;
        *end = '\0';
        for (s = end + 1; *s != '#' && *s != '\0'; s += strspn(s, "\n")) {
            ck_assert_int_lt(count, MAX_RESULTS * VALUES);
            want[count++] = strtod(s, &s);
        }
        ck_assert_int_eq(count % VALUES, 0);
        check_results(chain, want, count / VALUES);
    }
    ck_assert_int_ge(cases, 19);
    arena_free(a);
}
END_TEST

START_TEST(evaluation_changes_nothing) {
    static const char *const chains[] = {"rotate(40)",
                                         "affine(10, [0.2, 0.2])",
                                         "color_jitter(1, 1, 1, 0.5)",
                                         "grayscale(p=1)",
                                         "solarize(9, p=1)",
                                         "posterize(1, p=1)",
                                         "autocontrast(p=1)",
                                         "random_erasing(p=1)",
                                         "rand_augment",
                                         "trivial_augment_wide"};
    Seen s = see(photo, chains[_i], 2, false);
    for (int i = 0; i < 2 * VALUES; i++)
        ck_assert_double_eq(s.x[i], given(&photo, 0, i % VALUES));
    arena_free(s.arena);
}
END_TEST

// The first map is a translation, the second a quarter turn, which no third
// commutes with.
START_TEST(maps_compose_in_order) {
    static const Data square = {6, 6, 3, "u8[N, 6, 6, 3]", colours};
    Seen one = see(square,
                   "warp_affine(composed([1, 0, 2, 0, 1, -1], "
                   "[0, -1, 0, 1, 0, 0]))",
                   1, true);
    Seen two = see(square,
                   "warp_affine([1, 0, 2, 0, 1, -1]) |> "
                   "warp_affine([0, -1, 0, 1, 0, 0])",
                   1, true);
    for (int i = 0; i < values_of(&square); i++)
        ck_assert_double_eq(one.x[i], two.x[i]);
    ck_assert_double_eq(at(&one, 0, 3, 3, 1), colours(0, 2, 4, 1));
    arena_free(one.arena);
    arena_free(two.arena);
}
END_TEST

// ---- draws ----

// Whether counts are uniform: Pearson's chi-squared statistic is below a bound
// that chance exceeds once in 3,000 times.
static void check_even(const int *count, int cells, int all) {
    double chi = 0, expected = (double)all / cells;
    int sum = 0;
    for (int i = 0; i < cells; i++) {
        chi += (count[i] - expected) * (count[i] - expected) / expected;
        sum += count[i];
    }
    ck_assert_int_eq(sum, all);
    ck_assert_msg(chi < cells - 1 + 3.4 * sqrt(2.0 * (cells - 1)) + 7,
                  "chi square %f of %d cells", chi, cells);
}

static void check_share(int count, int all, double p) {
    double sd = sqrt(all * p * (1 - p));
    ck_assert_msg(fabs(count - all * p) < 4 * sd, "%d of %d for %g", count, all,
                  p);
}

// Channels are the row, the column and 1, so bilinear pixels reveal the map.
static double places(int64_t sample, int64_t y, int64_t x, int64_t c) {
    (void)sample;
    return c == 0 ? (double)y : c == 1 ? (double)x : 1;
}

enum { SIDE = 9, MIDDLE = SIDE / 2, BATCH = 2000, CELLS = 10 };
static const Data board = {SIDE, SIDE, 3, "f32[N, 9, 9, 3]", places};

// How far channel c of the pixel that follows the middle is from the middle's.
static double slope(const Seen *s, int i, int down, int right, int c) {
    return at(s, i, MIDDLE + down, MIDDLE + right, c) -
           at(s, i, MIDDLE, MIDDLE, c);
}

START_TEST(angles_are_uniform) {
    int count[CELLS] = {0};
    Seen s = see(board, "rotate(30, interpolation=\"bilinear\")", BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        double right = slope(&s, i, 0, 1, 1), down = slope(&s, i, 0, 1, 0);
        double degrees = atan2(down, right) * 180 / acos(-1);
        ck_assert_double_eq_tol(hypot(right, down), 1, 1e-9);
        ck_assert_double_eq_tol(slope(&s, i, 1, 0, 0), right, 1e-9);
        ck_assert(fabs(degrees) <= 30);
        count[(int)((degrees + 30) / 60 * CELLS)]++;
    }
    check_even(count, CELLS, BATCH);
    arena_free(s.arena);
}
END_TEST

// Scales, and translations by whole pixels: those at the ends have half the
// chance of others.
START_TEST(affine_draws_are_uniform) {
    int scales[CELLS] = {0}, columns[3] = {0}, rows = 0;
    Seen s = see(board,
                 "affine(0, translate=[0.2, 0.1], scale=[0.8, 1.2], "
                 "interpolation=\"bilinear\")",
                 BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        double inverse = slope(&s, i, 0, 1, 1), scale = 1 / inverse;
        double dx = (MIDDLE - at(&s, i, MIDDLE, MIDDLE, 1)) * scale;
        double dy = (MIDDLE - at(&s, i, MIDDLE, MIDDLE, 0)) * scale;
        ck_assert_double_eq_tol(dx, round(dx), 1e-9);
        ck_assert_double_eq_tol(dy, round(dy), 1e-9);
        ck_assert(scale > 0.8 - 1e-9 && scale < 1.2 + 1e-9);
        ck_assert(fabs(dx) < 2.1 && fabs(dy) < 1.1);
        scales[(int)((scale - 0.8) / 0.4 * CELLS)]++;
        columns[(int)round(fabs(dx))]++;
        rows += round(dy) == 1;
    }
    check_even(scales, CELLS, BATCH);
    check_share(columns[0], BATCH, 1 / 3.6); // of -1.8 .. 1.8
    check_share(columns[2], BATCH, 0.6 / 3.6);
    check_share(rows, BATCH, 0.4 / 1.8); // of -0.9 .. 0.9
    arena_free(s.arena);
}
END_TEST

START_TEST(brightness_is_uniform_and_not_negative) {
    int count[CELLS] = {0};
    Seen s = see(board, "color_jitter(brightness=0.5)", BATCH, true);
    for (int i = 0; i < BATCH; i++)
        count[(int)((at(&s, i, 0, 0, 2) - 0.5) * CELLS)]++;
    check_even(count, CELLS, BATCH);
    arena_free(s.arena);
    s = see(board, "color_jitter(brightness=3)", BATCH, true);
    int most = 0;
    for (int i = 0; i < BATCH; i++) {
        ck_assert(at(&s, i, 0, 0, 2) >= 0 && at(&s, i, 0, 0, 2) < 4);
        most += at(&s, i, 0, 0, 2) > 2;
    }
    check_share(most, BATCH, 0.5);
    arena_free(s.arena);
}
END_TEST

// The share of samples that change; `places` is grey nowhere.
START_TEST(probabilities) {
    static const struct {
        const char *chain;
        double p;
    } by[] = {{"grayscale(0.3)", 0.3},
              {"solarize(1)", 0.5},
              {"posterize(1, p=0.8)", 0.8},
              {"autocontrast(p=0.2)", 0.2},
              {"random_erasing(0.4, value=9)", 0.4}};
    int changed = 0;
    Seen s = see(board, by[_i].chain, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        bool same = true;
        for (int64_t k = 0; k < values_of(&board); k++)
            same &= s.x[i * values_of(&board) + k] == given(&board, 0, k);
        changed += !same;
    }
    check_share(changed, BATCH, by[_i].p);
    arena_free(s.arena);
}
END_TEST

// One of 12 operations changes nothing, and ten of magnitude 0, one of 31.
START_TEST(operations_are_drawn_alike) {
    int same = 0;
    Seen s = see(photo, "trivial_augment_wide", BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        bool all = true;
        for (int k = 0; k < VALUES; k++)
            all &= s.x[i * VALUES + k] == given(&photo, 0, k);
        same += all;
    }
    check_share(same, BATCH, 1 / 12.0 + 10 / 12.0 / 31);
    arena_free(s.arena);
}
END_TEST

// ---- rectangles ----

typedef struct {
    int first[2], end[2], pixels; // along rows and columns
} Box;

// The elements that are `value` in channel c; they are a box.
static Box box_of(const Seen *s, int sample, int c, double value) {
    Box b = {{s->data.height, s->data.width}, {0, 0}, 0};
    for (int y = 0; y < s->data.height; y++)
        for (int x = 0; x < s->data.width; x++) {
            const int place[] = {y, x};
            if (at(s, sample, y, x, c) != value)
                continue;
            for (int i = 0; i < 2; i++) {
                b.first[i] = place[i] < b.first[i] ? place[i] : b.first[i];
                b.end[i] = place[i] >= b.end[i] ? place[i] + 1 : b.end[i];
            }
            b.pixels++;
        }
    if (b.pixels > 0)
        ck_assert_int_eq(b.pixels,
                         (b.end[0] - b.first[0]) * (b.end[1] - b.first[1]));
    return b;
}

// The area and the ratio of the sides of a rectangle are those before rounding
// to whole pixels, and its place is uniform.
START_TEST(erased_rectangles) {
    enum { SIZE = 60 };
    static const Data wide = {SIZE, SIZE, 2, "f32[N, 60, 60, 2]", places};
    int areas[5] = {0}, ratios[5] = {0}, halves[2] = {0};
    Seen s = see(wide,
                 "random_erasing(p=1, scale=[0.1, 0.3], ratio=[0.5, 2], "
                 "value=[-1, -2])",
                 500, true);
    for (int i = 0; i < 500; i++) {
        Box b = box_of(&s, i, 0, -1), c = box_of(&s, i, 1, -2);
        ck_assert_int_eq(memcmp(&b, &c, sizeof b), 0);
        double h = b.end[0] - b.first[0], w = b.end[1] - b.first[1];
        double area = (h * w / (SIZE * SIZE) - 0.1) / 0.2;
        double ratio = log(h / w) / log(2) / 2 + 0.5;
        ck_assert(area > -0.1 && area < 1.1 && ratio > -0.1 && ratio < 1.1);
        areas[(int)fmin(fmax(area, 0) * 5, 4)]++;
        ratios[(int)fmin(fmax(ratio, 0) * 5, 4)]++;
        halves[b.first[1] + b.end[1] > SIZE]++;
        ck_assert_int_gt(b.pixels, 0);
    }
    check_even(areas, 5, 500);
    check_even(ratios, 5, 500);
    ck_assert_int_lt(abs(halves[0] - halves[1]), 110);
    arena_free(s.arena);
}
END_TEST

// ---- sequences ----

static double ramp(int64_t sample, int64_t y, int64_t x, int64_t c) {
    (void)sample, (void)y;
    return (double)(1 + x + 100 * c);
}

static const Data sound = {1, 40, 20, "f32[N, 40, 20]", ramp};

// Lengths are uniform below the most, and each place is as likely.
static void check_masks(const char *chain, int axis, int most) {
    int count[40] = {0}, early = 0, size = axis == 0 ? 40 : 20;
    Seen s = see(sound, chain, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        bool masked[40];
        int length = 0, first = -1, last = 0;
        for (int k = 0; k < size; k++) {
            masked[k] = at(&s, i, 0, axis == 0 ? k : 3, axis == 0 ? 3 : k) == 0;
            length += masked[k];
            first = masked[k] && first < 0 ? k : first;
            last = masked[k] ? k : last;
        }
        for (int t = 0; t < 40; t++)
            for (int c = 0; c < 20; c++)
                ck_assert_double_eq(
                    at(&s, i, 0, t, c),
                    masked[axis == 0 ? t : c] ? 0 : ramp(0, 0, t, c));
        ck_assert(length == 0 || last - first + 1 == length);
        ck_assert_int_lt(length, most);
        count[length]++;
        early += length > 0 && first + last < size - 1;
    }
    check_even(count, most, BATCH);
    ck_assert_int_lt(abs(2 * early - (BATCH - count[0])), BATCH / 6);
    arena_free(s.arena);
}

START_TEST(masks_of_sequences) {
    check_masks("time_masking(10)", 0, 10);
    check_masks("time_masking(30, p=0.2)", 0, 8);
    check_masks("frequency_masking(5)", 1, 5);
}
END_TEST

START_TEST(shifts_and_gains_of_sequences) {
    int shifts[7] = {0}, gains[CELLS] = {0};
    Seen moved = see(sound, "time_shift(3)", BATCH, true);
    Seen loud = see(sound, "random_gain([-6, 12])", BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        int by = (int)at(&moved, i, 0, 20, 0) - 21;
        for (int t = 0; t < 40; t++)
            ck_assert_double_eq(
                at(&moved, i, 0, t, 7),
                t + by < 0 || t + by >= 40 ? 0 : ramp(0, 0, t + by, 7));
        double gain = at(&loud, i, 0, 0, 0);
        for (int t = 0; t < 40; t++)
            ck_assert_double_eq_tol(at(&loud, i, 0, t, 9),
                                    gain * ramp(0, 0, t, 9), 1e-9);
        shifts[by + 3]++;
        gains[(int)((20 * log10(gain) + 6) / 18 * CELLS)]++;
    }
    check_even(shifts, 7, BATCH);
    check_even(gains, CELLS, BATCH);
    arena_free(moved.arena);
    arena_free(loud.arena);
}
END_TEST

Suite *augment_std_suite(void) {
    Suite *s = suite_create("augment_std");
    TCase *t = tcase_create("augment_std");
    tcase_set_tags(t, "numbers");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, augmentations_are_torchvisions);
    tcase_add_loop_test(t, evaluation_changes_nothing, 0, 10);
    tcase_add_test(t, maps_compose_in_order);
    tcase_add_test(t, angles_are_uniform);
    tcase_add_test(t, affine_draws_are_uniform);
    tcase_add_test(t, brightness_is_uniform_and_not_negative);
    tcase_add_loop_test(t, probabilities, 0, 5);
    tcase_add_test(t, operations_are_drawn_alike);
    tcase_add_test(t, erased_rectangles);
    tcase_add_test(t, masks_of_sequences);
    tcase_add_test(t, shifts_and_gains_of_sequences);
    suite_add_tcase(s, t);
    return s;
}
