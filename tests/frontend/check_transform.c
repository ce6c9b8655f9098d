// Labels that follow the image: if the label is the image and the model returns
// the image, the loss is 0 after any augmentation and for any view. ir/eval.c
// is the reference.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 16, ROWS = 12, COLUMNS = 8 };

// The label as a function of the image.
typedef enum {
    CLASSES, // its first channel, as integers
    TARGETS, // all of it
    DOUBLED, // twice as many rows and columns
    HALVED,  // the mean of each square of four pixels
    BESIDE,  // all of it, in a loss that reads the input, too
    WHOLE,   // the image before the chain, which the model resizes back
} Kind;

static const struct {
    const char *model, *output, *loss;
    int up, down; // label elements per pixel of the file, and the inverse
} kinds[] = {
    [CLASSES] = {"", "[N, H, W, 2]",
                 "square(reshape(slice(output, channels, to=1), [-1, "
                 "height_of(output), width_of(output)]) - label)",
                 1, 1},
    [TARGETS] = {"", "[N, H, W, 2]", "square(output - label)", 1, 1},
    [DOUBLED] = {"|> resize(factor=2)", "[N, 2 * H, 2 * W, 2]",
                 "square(output - label)", 2, 1},
    [HALVED] = {"|> avg_pool(2)", "[N, H / 2, W / 2, 2]",
                "square(output - label)", 1, 2},
    [BESIDE] = {"", "[N, H, W, 2]",
                "square(output - label) + square(output - input)", 1, 1},
    [WHOLE] = {"|> resize(factor=2)", "[N, 2 * H, 2 * W, 2]",
               "square(output - label)", 1, 1},
};

// ---- the image and its label ----

// A pixel's number: hashed, its row or column, or constant with a label that is
// another constant.
typedef enum { MIXED, ROW, COLUMN, EVEN } Picture;
enum { EVEN_PIXEL = 3, EVEN_LABEL = 0 };

static double pixel(Picture p, int64_t n, int64_t y, int64_t x, int64_t c) {
    if (p == EVEN)
        return EVEN_PIXEL;
    if (p == MIXED)
        return (double)((n * 7 + y * 5 + x * 3 + y * x + c) % 13);
    return (double)(p == ROW ? y : x);
}

// The mean over the pixels of a label element.
static double place(Picture p, Kind kind, int64_t n, int64_t y, int64_t x,
                    int64_t c) {
    int up = kinds[kind].up, down = kinds[kind].down;
    double sum = 0;
    if (p == EVEN)
        return EVEN_LABEL;
    for (int i = 0; i < down * down; i++)
        sum +=
            pixel(p, n, y * down / up + i / down, x * down / up + i % down, c);
    return sum / (down * down);
}

static double input_value(const Graph *g, NodeId n, Picture p, Kind kind,
                          int64_t i) {
    const Type *t = g->node[n].type;
    const char *name = node_text(&g->node[n], ATTR_name);
    int64_t channels = t->rank == 4 ? t->dim[3] : 1;
    int64_t c = i % channels, x = i / channels;
    if (strcmp(name, "image") == 0)
        return pixel(p, x / COLUMNS / ROWS, x / COLUMNS % ROWS, x % COLUMNS, c);
    if (strcmp(name, "label") == 0)
        return place(p, kind, x / t->dim[2] / t->dim[1],
                     x / t->dim[2] % t->dim[1], x % t->dim[2], c);
    if (strcmp(name, "index") == 0)
        return (double)i;
    return strcmp(name, "run.seed") == 0 ? 3
           : strcmp(name, "valid") == 0  ? N
           : strncmp(name, "run.", 4) == 0
               ? 10
               : node_float(&g->node[n], ATTR_init, 0);
}

// ---- the loss ----

static NodeId assigned(const Graph *g, const char *state) {
    NodeId found = graph_find(g, state);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == found)
            return g->node[n].arg[1];
    ck_abort_msg("nothing assigns %s", state);
}

// The mean of a metric over a batch.
static double mean_of(Arena *a, const Graph *g, Picture p, Kind kind,
                      const char *metric) {
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (op != OP_input && op != OP_param && op != OP_state)
            continue;
        int64_t count = type_count(g->node[n].type);
        leaf[n] = ARENA_ARRAY(a, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] = op == OP_param ? 1 : input_value(g, n, p, kind, i);
    }
    double **value = graph_eval(g, a, leaf, false);
    return value[assigned(g, metric)][0] / N;
}

static double loss_of(Arena *a, const Graph *g, Picture p, Kind kind) {
    return mean_of(a, g, p, kind, "metric.loss");
}

static Loaded load_kind(Kind kind, const char *chain, const char *eval) {
    static char text[2000];
    snprintf(text, sizeof text,
             "import \"std/vision.net\" { random_crop, random_translate, "
             "random_resized_crop, flip_lr, alternating_flip, cutout, cutmix, "
             "mixup, brightness, rotate, affine, rand_augment }\n"
             "model M(image: f32[N, H, W, 2]) -> f32%s {\n"
             "image * parameter([1], init=ones) %s\n}\n"
             "train M { data = synthetic(shape=[%d, %d, 2]%s)\n"
             "input = data.train %s\nbatch = %d; epochs = 4\n"
             "loss = mean(%s)\noptimizer = sgd(lr=1)\n%s }\n",
             kinds[kind].output, kinds[kind].model, ROWS, COLUMNS,
             kind == CLASSES ? "" : ", targets", chain, N, kinds[kind].loss,
             eval);
    return load_text(text);
}

#define CROP "|> random_crop(8, pad=3"
#define MOVE "|> random_translate(2"
#define BILINEAR "|> affine(30, shear=9, interpolation=\"bilinear\""

static const struct {
    Kind kind;
    const char *chain;
} followed[] = {
    {CLASSES, "|> flip_lr"},
    {CLASSES, "|> alternating_flip"},
    {CLASSES, CROP ")"},
    {CLASSES, CROP ", mode=edge)"},
    {CLASSES, CROP ", mode=reflect)"},
    {CLASSES, MOVE ")"},
    {CLASSES, MOVE ", mode=edge)"},
    {CLASSES, MOVE ", mode=reflect)"},
    {CLASSES, "|> random_translate(40)"},
    {CLASSES, "|> cutmix(5)"},
    {CLASSES, "|> cutmix(alpha=1, p=0.7)"},
    {CLASSES, "|> resize([6, 4])"},
    {CLASSES, "|> resize([31, 17])"},
    {CLASSES, MOVE ") |> flip_lr |> cutmix(5) |> random_crop(6, pad=0)"},
    {CLASSES, MOVE ") |> cutmix(6) |> resize([24, 16]) |> flip_lr"},
    {CLASSES, "|> rotate(90)"},
    {CLASSES, "|> rotate(30) |> flip_lr |> affine(0, [0.3, 0.2], [0.5, 2], 9)"},
    {CLASSES, MOVE ") |> rotate(20) " CROP ") |> cutmix(5) |> rotate(20)"},
    {CLASSES, "|> rotate(30) |> resize([6, 4])"},
    {TARGETS, "|> flip_lr"},
    {TARGETS, "|> rotate(90)"},
    {TARGETS, "|> rotate(90, interpolation=\"bilinear\")"},
    {TARGETS, BILINEAR ") |> flip_lr |> mixup(1) " BILINEAR ")"},
    {TARGETS, MOVE ") " BILINEAR ") |> random_resized_crop(7)"},
    {TARGETS, "|> alternating_flip"},
    {TARGETS, CROP ")"},
    {TARGETS, CROP ", mode=edge)"},
    {TARGETS, CROP ", mode=reflect)"},
    {TARGETS, MOVE ")"},
    {TARGETS, "|> random_resized_crop(8)"},
    {TARGETS, "|> random_resized_crop(5, scale=[0.1, 0.3])"},
    {TARGETS, "|> resize([6, 16], mode=bilinear)"},
    {TARGETS, "|> resize([5, 17])"},
    {TARGETS, "|> cutmix(alpha=0.5)"},
    {TARGETS, "|> mixup(0.5)"},
    {TARGETS, "|> mixup(1, p=0.5) |> flip_lr |> cutmix(4) |> mixup(1)"},
    {TARGETS, MOVE ") |> random_resized_crop(7) |> flip_lr"},
    {TARGETS, MOVE ", mode=edge) |> mixup(1) " CROP ", mode=edge)"},
    {BESIDE, MOVE ") |> flip_lr"},
    {DOUBLED, "|> flip_lr"},
    {DOUBLED, CROP ")"},
    {DOUBLED, CROP ", mode=edge)"},
    {DOUBLED, CROP ", mode=reflect)"},
    {DOUBLED, "|> cutmix(5)"},
    {DOUBLED, MOVE ") |> cutmix(5) |> flip_lr"},
    {HALVED, "|> flip_lr"},
    {HALVED, "|> mixup(1) |> alternating_flip"},
};

// In training as in evaluation, where a crop takes the centre.
START_TEST(labels_follow_the_image) {
    Kind kind = followed[_i].kind;
    Loaded l = load_kind(kind, followed[_i].chain, "");
    ck_assert_msg(l.program != NULL, "%s: %s", followed[_i].chain,
                  codes_of(&l));
    const Graph *g[] = {l.program->stage[0].train, l.program->eval};
    for (int i = 0; i < 2; i++) {
        double loss = loss_of(l.arena, g[i], MIXED, kind);
        ck_assert_msg(loss <= 1e-12, "%s in %s: %g", followed[_i].chain,
                      g[i]->name, loss);
    }
    arena_free(l.arena);
}
END_TEST

// In constant images each pixel has the same loss, and so has the mean, if it
// excludes invalid pixels; these are not wrong, either.
START_TEST(pixels_from_outside_are_invalid) {
    static const struct {
        Kind kind;
        const char *chain;
    } cut[] = {
        {CLASSES, CROP ")"},
        {CLASSES, MOVE ") |> flip_lr |> cutmix(5) |> resize([6, 4])"},
        {TARGETS, CROP ") |> random_crop(8, pad=1)"},
        {TARGETS, MOVE ") |> mixup(1)"},
        {TARGETS, MOVE ") |> mixup(1, p=0.5) " CROP ")"},
        {TARGETS, MOVE ") |> random_resized_crop(7)"},
        {DOUBLED, CROP ", mode=reflect)"},
        {DOUBLED, MOVE ") |> cutmix(alpha=1)"},
        {CLASSES, "|> rotate(90) |> flip_lr |> resize([6, 4])"},
        {TARGETS, BILINEAR ") |> mixup(1)"},
    };
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        Kind kind = cut[i].kind;
        Loaded l = load_kind(kind, cut[i].chain, "");
        ck_assert_msg(l.program != NULL, "%s: %s", cut[i].chain, codes_of(&l));
        const Graph *g = l.program->stage[0].train;
        double loss = loss_of(l.arena, g, EVEN, kind);
        double each = EVEN_PIXEL - EVEN_LABEL;
        ck_assert_msg(fabs(loss - each * each) < 1e-9, "%s: %g", cut[i].chain,
                      loss);
        if (kind == CLASSES)
            ck_assert_double_eq_tol(
                mean_of(l.arena, g, EVEN, kind, "metric.correct"), 1, 1e-12);
        arena_free(l.arena);
    }
}
END_TEST

// Classes are those of the nearest pixel: at most half a pixel off, if the
// image's numbers are its rows or columns.
START_TEST(classes_are_the_nearest) {
    static const char chain[] =
        "|> random_resized_crop(8, scale=[0.1, 1]) |> flip_lr";
    Loaded l = load_kind(CLASSES, chain, "");
    ck_assert_str_eq(codes_of(&l), "");
    const Graph *g = l.program->stage[0].train;
    for (Picture p = ROW; p <= COLUMN; p++) {
        double loss = loss_of(l.arena, g, p, CLASSES);
        ck_assert_double_le(loss, 0.25);
        ck_assert_double_gt(loss, 0);
    }
    arena_free(l.arena);
}
END_TEST

// An enlarged map reads no pixels from outside.  Means of a ramp are exact;
// pixels that are doubled are a quarter of one off, and half as much in the
// enlarged image.
START_TEST(maps_scale_with_the_label) {
    static const char chain[] = "|> affine(10, [0.1, 0.1], [2, 2], 5, "
                                "interpolation=\"bilinear\")";
    static const struct {
        Kind kind;
        double most;
    } by[] = {{HALVED, 1e-6}, {DOUBLED, 0.25 + 0.125}};
    for (int i = 0; i < 2; i++) {
        Loaded l = load_kind(by[i].kind, chain, "");
        ck_assert_str_eq(codes_of(&l), "");
        const Graph *g = l.program->stage[0].train;
        for (Picture p = ROW; p <= COLUMN; p++)
            ck_assert_double_le(loss_of(l.arena, g, p, by[i].kind),
                                by[i].most * by[i].most);
        arena_free(l.arena);
    }
}
END_TEST

// A label that the model maps back to its size is not resized, and follows the
// earlier steps.
START_TEST(labels_of_resized_outputs_are_kept) {
    static const char *const chains[] = {
        "|> resize(factor=0.5, mode=nearest)",
        "|> flip_lr |> resize(factor=0.5, mode=nearest)",
        MOVE ") |> resize(factor=0.5, mode=nearest) |> flip_lr",
    };
    for (int i = 0; i < 3; i++) {
        Loaded l = load_kind(WHOLE, chains[i], "");
        ck_assert_msg(l.program != NULL, "%s: %s", chains[i], codes_of(&l));
        const Graph *g = l.program->stage[0].train;
        Type t = *g->node[graph_find(g, "label")].type;
        ck_assert_int_eq(t.dim[1], ROWS);
        ck_assert_int_eq(t.dim[2], COLUMNS);
        // The image of rows equals its own half doubled, except that every
        // second row is one more: rows are not mirrored, and here not moved.
        if (i < 2)
            ck_assert_double_eq_tol(loss_of(l.arena, g, ROW, WHOLE), 0.5,
                                    1e-12);
        arena_free(l.arena);
    }
}
END_TEST

// A sample has as many labels as its image has squares.
START_TEST(labels_of_samples_stay) {
    Loaded l = load_text(
        "import \"std/vision.net\" { random_translate }\n"
        "model M(image: u8[N, 8, 8, 1]) -> f32[N, 4, 10] {\n"
        "image |> flatten |> linear(40) |> reshape([-1, 4, 10])\n}\n"
        "train M { data = npy(\"x\"); batch = 4; epochs = 1\n"
        "input = data.train |> random_translate(2)\n"
        "loss = mean(cross_entropy(output, label)); optimizer = sgd(lr=1) }\n");
    ck_assert_str_eq(codes_of(&l), "");
    arena_free(l.arena);
}
END_TEST

static const char *const views[] = {
    "[identity, flip_lr]",
    "[flip_lr]",
    "[0.5: identity, 0.25: shift(1), 0.25: shift(-2, 3)]",
    "[shift(0)]",
    "[identity, flip_lr |> shift(2, 1), shift(1, mode=zero) |> flip_lr]",
};

START_TEST(views_are_inverted) {
    static const Kind kind[] = {CLASSES, TARGETS, DOUBLED, HALVED};
    for (int k = 0; k < 4; k++) {
        if (kind[k] == HALVED && strstr(views[_i], "shift(1") != NULL)
            continue; // half a pixel has no inverse
        char eval[200];
        snprintf(eval, sizeof eval, "eval every 1 epoch { views = %s }",
                 views[_i]);
        Loaded l = load_kind(kind[k], "", eval);
        ck_assert_msg(l.program != NULL, "%s: %s", views[_i], codes_of(&l));
        double loss = loss_of(l.arena, l.program->eval, MIXED, kind[k]);
        ck_assert_msg(loss <= 1e-12, "%s of %d: %g", views[_i], k, loss);
        arena_free(l.arena);
    }
}
END_TEST

Suite *transform_suite(void) {
    Suite *s = suite_create("transform");
    TCase *t = tcase_create("transform");
    tcase_set_tags(t, "numbers");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, labels_follow_the_image, 0,
                        sizeof followed / sizeof followed[0]);
    tcase_add_test(t, pixels_from_outside_are_invalid);
    tcase_add_test(t, classes_are_the_nearest);
    tcase_add_test(t, maps_scale_with_the_label);
    tcase_add_test(t, labels_of_resized_outputs_are_kept);
    tcase_add_test(t, labels_of_samples_stay);
    tcase_add_loop_test(t, views_are_inverted, 0,
                        sizeof views / sizeof views[0]);
    suite_add_tcase(s, t);
    return s;
}
