// Layers, functions and losses: one step of small models, whose gradients and
// statistics PyTorch gives in double (tests/pytorch/layers.py).
//
// Each model is judged twice: what its graph means, in double, and what the
// trainer that is built from it leaves behind, in f32.
#define _GNU_SOURCE
#include "tests/numbers/judged.h"
#include "tests/numbers/suites.h"

#include "frontend/frontend.h"
#include "passes/passes.h"
#include "runtime/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "layers",
    "recurrent",
    "sequences",
    "transformers",
    "loss-cross-entropy",
    "loss-smoothed",
    "loss-soft-targets",
    "loss-weighted",
    "loss-ignored",
    "loss-ignored-smoothed",
    "loss-mse",
    "loss-l1",
    "loss-bce",
    "loss-focal",
    "loss-sigmoid-focal",
};
enum { NUM_NAMES = sizeof names / sizeof names[0], BATCH = 2 };

// f32 keeps 24 bits; a sum in another order loses some of them.
static const double in_double = 1e-9, in_f32 = 1e-5;

// ---- what the graph means ----

static Program *load(Arena *a, const char *path) {
    Diagnostics d = diag_new(a);
    Program *p = frontend_load(a, path, NULL, 0, &d);
    ck_assert_msg(p != NULL, "%s: %s", path, d.count ? d.list[0]->message : "");
    return p;
}

// A product that a difference takes is not rounded by itself in a kernel
// (codegen/kernel/fma.c).  Products of f32 are exact in double.
static void round_once(const Graph *g, double **value, NodeId n) {
    const Node *node = &g->node[n];
    if (node->op != OP_sub || g->node[node->arg[0]].op != OP_mul)
        return;
    const Node *product = &g->node[node->arg[0]];
    const double *a = value[product->arg[0]], *b = value[product->arg[1]];
    bool one[] = {g->node[product->arg[0]].type->rank == 0,
                  g->node[product->arg[1]].type->rank == 0};
    for (int64_t i = 0; i < type_count(node->type); i++)
        value[n][i] = (float)(a[one[0] ? 0 : i] * b[one[1] ? 0 : i] -
                              value[node->arg[1]][0]);
}

// What the program assigns to a param or state of that name, or NULL.
static const double *assigned(const Graph *g, double **value,
                              const char *name) {
    NodeId to = graph_find(g, name);
    for (NodeId n = 0; to != NO_NODE && n < g->count; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == to)
            return value[g->node[n].arg[1]];
    return NULL;
}

static const double *input_line(const Judged *j, const char *name) {
    for (int i = 0; i < j->count; i++)
        if (strcmp(j->line[i].kind, "input") == 0 &&
            strcmp(j->line[i].name, name) == 0)
            return j->line[i].value;
    return NULL;
}

// Parameters start as the trainer's do: init computes them in f32.
static double **leaves(Arena *a, const Program *p, const Graph *g,
                       const Judged *j) {
    double **init = graph_eval(p->init, a, NULL, true);
    for (NodeId n = 0; n < p->init->count; n++)
        round_once(p->init, init, n);
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op != OP_input && node->op != OP_param)
            continue;
        const char *name = node_text(node, ATTR_name);
        const double *from = node->op == OP_param
                                 ? assigned(p->init, init, name)
                                 : input_line(j, name);
        size_t count = (size_t)type_count(node->type);
        leaf[n] = ARENA_ARRAY(a, count, double);
        for (size_t i = 0; i < count; i++)
            leaf[n][i] = from != NULL ? from[i]
                         : strcmp(name, "valid") == 0
                             ? BATCH
                             : node_float(node, ATTR_init, 0);
    }
    return leaf;
}

static const double *gradient(const Graph *g, double **value,
                              const char *name) {
    NodeId param = graph_find(g, name);
    for (NodeId n = 0; param != NO_NODE && n < g->count; n++)
        if (g->node[n].op == OP_gradient && g->node[n].arg[0] == param)
            return value[g->node[n].arg[1]];
    return NULL;
}

START_TEST(graphs_mean_what_pytorch_computes) {
    Arena *a = arena_new();
    Judged j = judged_read(a, names[_i]);
    Program *p = load(a, j.model);
    PassOptions o = pass_options(&p->recipe, "host");
    Graph *g = pass_run(p->stage[0].train, &o, pass_find("autodiff"));
    double **value = graph_eval(g, a, leaves(a, p, g, &j), false);
    for (int i = 0; i < j.count; i++) {
        const Line *l = &j.line[i];
        const double *found =
            strcmp(l->kind, "gradient") == 0 ? gradient(g, value, l->name)
            : strcmp(l->kind, "state") == 0  ? assigned(g, value, l->name)
            : strcmp(l->kind, "loss") == 0   ? value[graph_find(g, "loss")]
                                             : l->value;
        ck_assert_msg(found != NULL, "no %s of %s", l->kind, l->name);
        judged_compare(l, found, in_double);
    }
    arena_free(a);
}
END_TEST

// sigmoid(0) - y for each of ten outputs, where max(x, 0) has no derivative.
START_TEST(logits_of_zero_have_a_gradient) {
    enum { OUTPUTS = 10 };
    Arena *a = arena_new();
    Judged j = judged_read(a, "loss-bce");
    Program *p = load(a, j.model);
    PassOptions o = pass_options(&p->recipe, "host");
    Graph *g = pass_run(p->stage[0].train, &o, pass_find("autodiff"));
    double **leaf = leaves(a, p, g, &j);
    NodeId logits = graph_find(g, "parameter_1.value");
    memset(leaf[logits], 0, OUTPUTS * sizeof *leaf[logits]);
    double **value = graph_eval(g, a, leaf, false);
    const double *label = input_line(&j, "label");
    for (int i = 0; i < OUTPUTS; i++)
        ck_assert_double_eq_tol(gradient(g, value, "parameter_1.value")[i],
                                (0.5 - label[i]) / OUTPUTS, in_double);
    arena_free(a);
}
END_TEST

// ---- what a trainer computes ----

static char *file_bytes(Arena *a, const char *path, size_t *length) {
    enum { MOST = 1 << 22 };
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    char *bytes = arena_alloc(a, MOST);
    *length = fread(bytes, 1, MOST - 1, f);
    ck_assert(*length > 8 && *length < MOST - 1);
    bytes[*length] = 0;
    fclose(f);
    return bytes;
}

// Builds the model's trainer and takes one step in a folder of its own, which
// is gone afterwards.  The bytes of the checkpoint it leaves, and its rows.
static char *train(Arena *a, const char *model, size_t *length, char **rows) {
    static const char step[] = "step-00000001.safetensors";
    const char *sinter = getenv("SINTER");
    char folder[] = "/tmp/sinter-numbers-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    const char *command = arena_format(
        a,
        "cd %s && %s build %s -o trainer && ./trainer --data=synthetic:%d "
        "--device=host --quiet --out=. --metrics=rows >out",
        folder, sinter ? sinter : "sinter", model, BATCH);
    ck_assert_msg(system(command) == 0, "failed: %s", command);
    *rows = file_bytes(a, arena_format(a, "%s/rows", folder), length);
    char *bytes = file_bytes(a, arena_format(a, "%s/%s", folder, step), length);
    ck_assert_int_eq(system(arena_format(a, "rm -r %s", folder)), 0);
    return bytes;
}

// The numbers of a tensor of a checkpoint.
static const double *tensor(Arena *a, const RtHeader *h, const char *data,
                            const char *name, int count) {
    const RtTensor *t = rt_header_tensor(h, name);
    ck_assert_msg(t != NULL && t->type == RT_F32, "there is no %s", name);
    ck_assert_int_eq((int)(t->end - t->begin), 4 * count);
    double *value = ARENA_ARRAY(a, (size_t)count, double);
    for (int i = 0; i < count; i++) {
        float f;
        memcpy(&f, data + t->begin + 4 * (size_t)i, sizeof f);
        value[i] = f;
    }
    return value;
}

// The sum over the samples of the step, whose first row has the mean.
static double correct(const char *rows) {
    double mean = -1;
    const char *at = strstr(rows, "\"accuracy\":");
    ck_assert(at != NULL && sscanf(at, "\"accuracy\":%lf", &mean) == 1);
    return BATCH * mean;
}

// A gradient is the first momentum of sgd.
START_TEST(trainers_compute_what_pytorch_does) {
    Arena *a = arena_new();
    Judged j = judged_read(a, names[_i]);
    size_t length;
    char *rows, *bytes = train(a, j.model, &length, &rows);
    uint64_t header;
    memcpy(&header, bytes, 8);
    RtHeader h;
    RtError e;
    ck_assert(rt_header_parse(&h, bytes + 8, header, length - 8 - header, &e));
    for (int i = 0; i < j.count; i++) {
        const Line *l = &j.line[i];
        const char *name = l->name;
        if (strcmp(name, "metric.correct") == 0) {
            judged_compare(l, (double[]){correct(rows)}, in_f32);
            continue;
        }
        if (strcmp(l->kind, "gradient") == 0)
            name = arena_format(a, "%s.momentum", l->name);
        else if (strcmp(l->kind, "state") != 0)
            continue;
        judged_compare(l, tensor(a, &h, bytes + 8 + header, name, l->count),
                       in_f32);
    }
    rt_header_free(&h);
    arena_free(a);
}
END_TEST

Suite *layers_suite(void) {
    Suite *s = suite_create("layers");
    TCase *t = tcase_create("layers");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, graphs_mean_what_pytorch_computes, 0, NUM_NAMES);
    tcase_add_test(t, logits_of_zero_have_a_gradient);
    tcase_add_loop_test(t, trainers_compute_what_pytorch_does, 0, NUM_NAMES);
    suite_add_tcase(s, t);
    return s;
}
