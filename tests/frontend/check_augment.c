// Augmentation: which offsets, sizes and weights occur, and how often, with
// ir/eval.c as the reference.  Seeds are fixed, so each test is deterministic.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10 };

// ---- a model that exposes its input ----

typedef struct {
    Loaded loaded;
    const Graph *graph;
    int batch;
    double step;
    const double *x;     // the model's input: batch samples of `values`
    const double *label; // the loss's labels; NULL: classes
    int64_t values;
} Seen;

static NodeId find_op(const Graph *g, Op op) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return n;
    ck_abort_msg("there is no %s", op_info[op].name);
}

// The meaning of a pixel's number: its index in the batch, column or row.
static enum { PLACE, COLUMN, ROW } picture;

// Pixel p of sample i is i * PIXELS + p, its label i % CLASSES.
static double input_value(const char *name, int64_t i, double step) {
    if (strcmp(name, "image") == 0 && picture != PLACE)
        return (double)(picture == COLUMN ? i % SIDE : i / SIDE % SIDE);
    if (strcmp(name, "image") == 0 || strcmp(name, "index") == 0)
        return (double)i;
    if (strcmp(name, "label") == 0)
        return (double)(i % CLASSES);
    if (strcmp(name, "run.step") == 0)
        return step;
    if (strcmp(name, "run.steps") == 0)
        return 40;
    if (strcmp(name, "run.epoch_steps") == 0)
        return 10;
    return strcmp(name, "run.seed") == 0 ? 5 : 0.5;
}

static void look(Seen *s) {
    const Graph *g = s->graph;
    Arena *a = s->loaded.arena;
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const char *name = node_text(&g->node[n], ATTR_name);
        Op op = g->node[n].op;
        if (op != OP_input && op != OP_param && op != OP_state)
            continue;
        int64_t count = type_count(g->node[n].type);
        leaf[n] = ARENA_ARRAY(a, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] = input_value(name, i, s->step);
    }
    double **value = graph_eval(g, a, leaf, false);
    NodeId rows = g->node[find_op(g, OP_matmul)].arg[0];
    NodeId label = g->node[find_op(g, OP_cross_entropy)].arg[1];
    s->x = value[rows];
    s->values = g->node[rows].type->dim[1];
    s->label = g->node[label].type->dtype == F32 ? value[label] : NULL;
}

// The input after `chain`, side x side pixels.
static Seen see(const char *chain, int side, int batch, bool training) {
    static char text[2000];
    snprintf(text, sizeof text,
             "import \"std/vision.net\" { random_crop, random_translate, "
             "random_resized_crop, flip_lr, alternating_flip, cutout, cutmix, "
             "mixup, brightness, contrast }\n"
             "model M(image: f32[N, %d, %d, 1]) -> f32[N, %d] {\n"
             "image |> flatten |> linear(%d, bias=false)\n}\n"
             "train M { data = synthetic(shape=[%d, %d, 1])\n"
             "input = data.train |> %s\nbatch = %d, drop_last; epochs = 4\n"
             "loss = mean(cross_entropy(output, label))\n"
             "optimizer = sgd(lr=1) }\n",
             side, side, CLASSES, CLASSES, SIDE, SIDE, chain, batch);
    Seen s = {.loaded = load_text(text), .batch = batch};
    ck_assert_str_eq(codes_of(&s.loaded), "");
    const Program *p = s.loaded.program;
    s.graph = training ? p->stage[0].train : p->eval;
    look(&s);
    return s;
}

static void done(Seen *s) {
    arena_free(s->loaded.arena);
}

static double at(const Seen *s, int sample, int64_t pixel) {
    return s->x[(int64_t)sample * s->values + pixel];
}

// Whether counts are uniform: Pearson's chi-squared statistic is near its mean,
// to a bound that chance exceeds once in 3,000 times.
static void check_even(const int *count, int cells, int all) {
    double chi = 0, expected = (double)all / cells;
    int sum = 0;
    for (int i = 0; i < cells; i++) {
        ck_assert_msg(count[i] > 0, "%d of %d never occurs", i, cells);
        chi += (count[i] - expected) * (count[i] - expected) / expected;
        sum += count[i];
    }
    ck_assert_int_eq(sum, all);
    ck_assert_msg(chi < cells - 1 + 3.4 * sqrt(2.0 * (cells - 1)) + 7,
                  "chi square %f of %d cells", chi, cells);
}

// ---- geometry ----

// The row or column that a mode reads for i; -1: none.
static int moved(int i, const char *mode) {
    if (i >= 0 && i < SIDE)
        return i;
    if (*mode == 'z')
        return -1;
    if (*mode == 'e')
        return i < 0 ? 0 : SIDE - 1;
    return i < 0 ? -i : 2 * (SIDE - 1) - i;
}

// Every pixel of a crop at (top, left).
static void check_crop(const Seen *s, int sample, int side, int top, int left,
                       const char *mode) {
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            int row = moved(top + y, mode), column = moved(left + x, mode);
            double want = row < 0 || column < 0
                              ? 0
                              : sample * PIXELS + row * SIDE + column;
            ck_assert_double_eq(at(s, sample, y * side + x), want);
        }
}

static const struct {
    const char *chain, *mode;
    int side, first, places; // along each axis, from -first on
} crops[] = {
    {"random_translate(2)", "zero", 8, 2, 5},
    {"random_translate(1, mode=edge)", "edge", 8, 1, 3},
    {"random_translate(3, mode=reflect)", "reflect", 8, 3, 7},
    {"random_crop(8, pad=2)", "zero", 8, 2, 5},
    {"random_crop(5, pad=0)", "zero", 5, 0, 4},
    {"random_crop(5, pad=1, mode=edge)", "edge", 5, 1, 6},
    {"random_crop(6, pad=2, mode=reflect)", "reflect", 6, 2, 7},
};

// All offsets occur, equally often, with their pixels.
START_TEST(crops_are_everywhere) {
    enum { BATCH = 2000 };
    int places = crops[_i].places, count[100] = {0}, middle = 4;
    int side = crops[_i].side, in = (middle - 1) * side + middle - 1;
    Seen s = see(crops[_i].chain, side, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        int from = (int)at(&s, i, in) - i * PIXELS;
        int top = from / SIDE - (middle - 1), left = from % SIDE - (middle - 1);
        check_crop(&s, i, side, top, left, crops[_i].mode);
        count[(top + crops[_i].first) * places + left + crops[_i].first]++;
    }
    check_even(count, places * places, BATCH);
    done(&s);
}
END_TEST

START_TEST(evaluation_takes_the_middle) {
    Seen s = see("random_crop(5, pad=2)", 5, 4, false);
    for (int i = 0; i < 4; i++)
        check_crop(&s, i, 5, 1, 1, "zero");
    done(&s);
    s = see("random_resized_crop(4)", 4, 4, false);
    for (int i = 0; i < 4; i++)
        check_crop(&s, i, 4, 2, 2, "zero");
    done(&s);
    s = see("random_translate(2) |> alternating_flip |> cutmix(3) |> "
            "mixup(0.2) |> brightness(1) |> contrast(0.5)",
            8, 4, false);
    for (int i = 0; i < 4; i++)
        check_crop(&s, i, 8, 0, 0, "zero");
    ck_assert_ptr_null(s.label);
    done(&s);
}
END_TEST

// 1 if a sample is mirrored; checks every pixel.
static int mirrored(const Seen *s, int sample) {
    int yes = at(s, sample, 0) != sample * PIXELS;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            ck_assert_double_eq(at(s, sample, y * SIDE + x),
                                sample * PIXELS + y * SIDE +
                                    (yes ? SIDE - 1 - x : x));
    return yes;
}

START_TEST(flips_alternate) {
    enum { BATCH = 1000 };
    int first[BATCH], count[2] = {0};
    Seen s = see("alternating_flip", SIDE, BATCH, true);
    for (int epoch = 0; epoch < 4; epoch++) {
        s.step = 10 * epoch + 9;
        look(&s);
        for (int i = 0; i < BATCH; i++) {
            int now = mirrored(&s, i);
            if (epoch == 0)
                count[first[i] = now]++;
            ck_assert_int_eq(now, (first[i] + epoch) % 2);
        }
    }
    check_even(count, 2, BATCH);
    done(&s);
}
END_TEST

START_TEST(flips_have_a_chance) {
    enum { BATCH = 2000 };
    int count = 0;
    Seen s = see("flip_lr(0.25)", SIDE, BATCH, true);
    for (int i = 0; i < BATCH; i++)
        count += mirrored(&s, i);
    ck_assert_int_le(abs(count - BATCH / 4), 60);
    done(&s);
}
END_TEST

// The image is a slope, which bilinear interpolation preserves: so the middle
// of the result reveals the offset and size of the crop.
START_TEST(resized_crops_keep_their_ranges) {
    enum { BATCH = 1000, SIZE = 8 };
    Seen s =
        see("random_resized_crop(8, scale=[0.25, 0.75], ratio=[0.8, 1.25])",
            SIZE, BATCH, true);
    double smallest = 1, largest = 0, narrow = 9, wide = 0;
    int count[10] = {0};
    for (int i = 0; i < BATCH; i++) {
        double a = at(&s, i, 3 * SIZE + 3) - i * PIXELS;
        double h = (at(&s, i, 4 * SIZE + 3) - i * PIXELS - a) / SIDE * SIZE;
        double w = (at(&s, i, 3 * SIZE + 4) - i * PIXELS - a) * SIZE;
        double area = h * w / PIXELS, ratio = w / h;
        ck_assert(h <= SIDE + 1e-6 && w <= SIDE + 1e-6);
        ck_assert(area > 0.25 - 1e-6 && area < 0.75 + 1e-6);
        ck_assert(ratio > 0.8 - 1e-6 && ratio < 1.25 + 1e-6);
        smallest = fmin(smallest, area);
        largest = fmax(largest, area);
        narrow = fmin(narrow, ratio);
        wide = fmax(wide, ratio);
        count[(int)((area - 0.25) * 20)]++;
    }
    ck_assert(smallest < 0.26 && largest > 0.74);
    ck_assert(narrow < 0.81 && wide > 1.235);
    check_even(count, 10, BATCH);
    done(&s);
}
END_TEST

// The offset of a crop, as a fraction of the valid offsets; `slope` is from one
// pixel of the result to the next.
static double begins(double middle, double slope) {
    double length = slope * SIDE, first = middle + 0.5 - 3.5 * slope;
    return first / (SIDE - length);
}

START_TEST(resized_crops_are_everywhere) {
    enum { BATCH = 2000, BINS = 5 };
    static const char chain[] = "random_resized_crop(8, scale=[0.2, 0.6])";
    int count[BINS * BINS] = {0};
    picture = COLUMN;
    Seen across = see(chain, SIDE, BATCH, true);
    picture = ROW;
    Seen down = see(chain, SIDE, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        double x = at(&across, i, 27), y = at(&down, i, 27);
        double left = begins(x, at(&across, i, 28) - x);
        double top = begins(y, at(&down, i, 27 + SIDE) - y);
        ck_assert(left >= -1e-9 && left < 1 && top >= -1e-9 && top < 1);
        count[(int)(top * BINS) * BINS + (int)(left * BINS)]++;
    }
    check_even(count, BINS * BINS, BATCH);
    done(&across);
    done(&down);
}
END_TEST

// The whole image at its own size is the image.
START_TEST(a_whole_resized_crop) {
    Seen s = see("random_resized_crop(8, scale=[1, 1], ratio=[1, 1])", SIDE, 4,
                 true);
    for (int i = 0; i < 4 * PIXELS; i++)
        ck_assert_double_eq_tol(s.x[i], i, 1e-9);
    done(&s);
    s = see("random_resized_crop(4, scale=[1, 1], ratio=[1, 1])", 4, 1, true);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            ck_assert_double_eq_tol(at(&s, 0, y * 4 + x),
                                    (2 * y + 0.5) * SIDE + 2 * x + 0.5, 1e-9);
    done(&s);
}
END_TEST

// ---- colour ----

START_TEST(brightness_and_contrast) {
    enum { BATCH = 2000 };
    int count[2][10] = {{0}};
    Seen bright = see("brightness(0.5)", SIDE, BATCH, true);
    Seen strong = see("contrast(0.5)", SIDE, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        double by = at(&bright, i, 0) - i * PIXELS;
        double times = at(&strong, i, 1) / (i * PIXELS + 1);
        for (int p = 0; p < PIXELS; p++) {
            double own = i * PIXELS + p;
            ck_assert_double_eq_tol(at(&bright, i, p), own + by, 1e-6);
            ck_assert_double_eq_tol(at(&strong, i, p), own * times,
                                    1e-9 * (own + 1));
        }
        ck_assert(by >= -0.5 && by < 0.5 && times >= 0.5 && times < 1.5);
        count[0][(int)((by + 0.5) * 10)]++;
        count[1][(int)((times - 0.5) * 10)]++;
    }
    check_even(count[0], 10, BATCH);
    check_even(count[1], 10, BATCH);
    done(&bright);
    done(&strong);
}
END_TEST

// ---- mixing ----

typedef struct {
    int top, bottom, left, right, pixels;
} Box;

// The pixels from the next sample, at their positions; all others are the
// sample's.
static Box pasted(const Seen *s, int sample) {
    int next = (sample + 1) % s->batch;
    Box b = {SIDE, -1, SIDE, -1, 0};
    for (int p = 0; p < PIXELS; p++) {
        if (at(s, sample, p) == sample * PIXELS + p)
            continue;
        ck_assert_double_eq(at(s, sample, p), next * PIXELS + p);
        int y = p / SIDE, x = p % SIDE;
        b.top = y < b.top ? y : b.top;
        b.bottom = y > b.bottom ? y : b.bottom;
        b.left = x < b.left ? x : b.left;
        b.right = x > b.right ? x : b.right;
        b.pixels++;
    }
    if (b.pixels > 0)
        ck_assert_int_eq(b.pixels,
                         (b.bottom - b.top + 1) * (b.right - b.left + 1));
    return b;
}

// A sample's label has weight `share` on its own class and the rest on the next
// sample's.
static void check_label(const Seen *s, int sample, double share) {
    int next = (sample + 1) % s->batch;
    for (int k = 0; k < CLASSES; k++) {
        double want = share * (k == sample % CLASSES) +
                      (1 - share) * (k == next % CLASSES);
        ck_assert_double_eq_tol(s->label[sample * CLASSES + k], want, 1e-6);
    }
}

START_TEST(cutmix_pastes_a_square) {
    enum { BATCH = 2000 };
    int count[36] = {0};
    Seen s = see("cutmix(3)", SIDE, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        Box b = pasted(&s, i);
        ck_assert_int_eq(b.pixels, 9);
        ck_assert_int_eq(b.bottom - b.top, 2);
        check_label(&s, i, 1 - 9.0 / PIXELS);
        count[b.top * 6 + b.left]++;
    }
    check_even(count, 36, BATCH);
    done(&s);
}
END_TEST

// With alpha = 1 the box's area is uniform before it is clipped at the edges
// and to whole pixels; labels have the clipped area.
START_TEST(cutmix_labels_match_the_box) {
    enum { BATCH = 2000 };
    int large = 0, none = 0;
    Seen s = see("cutmix(alpha=1)", SIDE, BATCH, true);
    for (int i = 0; i < BATCH; i++) {
        Box b = pasted(&s, i);
        check_label(&s, i, 1 - (double)b.pixels / PIXELS);
        large += b.pixels > PIXELS / 2;
        none += b.pixels == 0;
    }
    // A side of less than two pixels, an area below 1/16.
    ck_assert_int_le(abs(none - BATCH / 16), 40);
    ck_assert_int_gt(large, BATCH / 20);
    ck_assert_int_lt(large, BATCH / 3);
    done(&s);
}
END_TEST

START_TEST(cutmix_has_a_time_and_a_chance) {
    enum { BATCH = 1000 };
    static const double step[] = {0, 14, 15, 29, 30};
    static const bool active[] = {false, false, true, true, false};
    Seen s =
        see("cutmix(4, p=0.3, from=1.5 epoch, until=75%)", SIDE, BATCH, true);
    for (int k = 0; k < 5; k++) {
        int mixed = 0;
        s.step = step[k];
        look(&s);
        for (int i = 0; i < BATCH; i++) {
            Box b = pasted(&s, i);
            check_label(&s, i, 1 - (double)b.pixels / PIXELS);
            mixed += b.pixels > 0;
        }
        ck_assert_int_le(abs(mixed - (active[k] ? 300 : 0)),
                         active[k] ? 50 : 0);
    }
    done(&s);
}
END_TEST

// Weights follow Beta(alpha, alpha): symmetric, with variance 1 / (8 alpha + 4)
// and fourth central moment 3 / (16 (2 alpha + 1) (2 alpha + 3)).
START_TEST(mixup_weights_are_beta) {
    enum { BATCH = 4000 };
    static const double alphas[] = {0.2, 0.5, 1, 3, 40, 1000};
    const double alpha = alphas[_i];
    char chain[40];
    snprintf(chain, sizeof chain, "mixup(%g)", alpha);
    Seen s = see(chain, SIDE, BATCH, true);
    double mean = 0, square = 0, fourth = 0;
    for (int i = 0; i < BATCH; i++) {
        double share = s.label[i * CLASSES + i % CLASSES], d = share - 0.5;
        ck_assert(share >= 0 && share <= 1);
        check_label(&s, i, share);
        for (int p = 0; p < PIXELS; p++) {
            double own = i * PIXELS + p, other = (i + 1) % BATCH * PIXELS + p;
            ck_assert_double_eq_tol(at(&s, i, p),
                                    share * own + (1 - share) * other, 1e-6);
        }
        mean += share / BATCH;
        square += d * d / BATCH;
        fourth += d * d * d * d / BATCH;
    }
    double var = 1 / (8 * alpha + 4);
    double four = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3));
    ck_assert_double_eq_tol(mean, 0.5, 4 * sqrt(var / BATCH));
    ck_assert_double_eq_tol(square, var, 4 * sqrt((four - var * var) / BATCH));
    ck_assert_double_eq_tol(fourth, four, 0.15 * four);
    done(&s);
}
END_TEST

// Two mixes in sequence: labels follow the pixels.
START_TEST(mixes_add_up) {
    Seen s = see("cutmix(4) |> mixup(1)", SIDE, 20, true);
    for (int i = 0; i < 20; i++) {
        double sum = 0, weighted = 0;
        for (int k = 0; k < CLASSES; k++) {
            ck_assert(s.label[i * CLASSES + k] >= 0);
            sum += s.label[i * CLASSES + k];
        }
        for (int p = 0; p < PIXELS; p++)
            weighted += (at(&s, i, p) - p) / PIXELS / PIXELS;
        ck_assert_double_eq_tol(sum, 1, 1e-6);
        // The mean number of the samples that a pixel comes from, by label.
        double by_label = 0;
        for (int far = 0; far < 3; far++)
            by_label +=
                (i + far) % 20 * s.label[i * CLASSES + (i + far) % CLASSES];
        ck_assert_double_eq_tol(weighted, by_label, 1e-6);
    }
    done(&s);
}
END_TEST

// Random numbers depend on the sample and the epoch, not on the index in the
// batch or the step.
START_TEST(random_numbers_belong_to_samples) {
    Seen one = see("random_translate(2, mode=reflect)", SIDE, 50, true);
    Seen two = see("random_translate(2, mode=reflect)", SIDE, 30, true);
    two.step = 9;
    look(&two);
    for (int i = 0; i < 30 * PIXELS; i++)
        ck_assert_double_eq(one.x[i], two.x[i]);
    two.step = 10;
    look(&two);
    int differ = 0;
    for (int i = 0; i < 30; i++)
        differ += at(&one, i, 27) != at(&two, i, 27);
    ck_assert_int_gt(differ, 15);
    done(&one);
    done(&two);
}
END_TEST

Suite *augment_suite(void) {
    Suite *s = suite_create("augment");
    TCase *t = tcase_create("augment");
    tcase_set_tags(t, "numbers");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, crops_are_everywhere, 0,
                        sizeof crops / sizeof crops[0]);
    tcase_add_test(t, evaluation_takes_the_middle);
    tcase_add_test(t, flips_alternate);
    tcase_add_test(t, flips_have_a_chance);
    tcase_add_test(t, resized_crops_keep_their_ranges);
    tcase_add_test(t, resized_crops_are_everywhere);
    tcase_add_test(t, a_whole_resized_crop);
    tcase_add_test(t, brightness_and_contrast);
    tcase_add_test(t, cutmix_pastes_a_square);
    tcase_add_test(t, cutmix_labels_match_the_box);
    tcase_add_test(t, cutmix_has_a_time_and_a_chance);
    tcase_add_loop_test(t, mixup_weights_are_beta, 0, 6);
    tcase_add_test(t, mixes_add_up);
    tcase_add_test(t, random_numbers_belong_to_samples);
    suite_add_tcase(s, t);
    return s;
}
