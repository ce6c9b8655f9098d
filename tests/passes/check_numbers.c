// Numbers: what PyTorch's optimizers leave in the parameters of a small
// network, kept in tests/golden/numbers, and what a model file's do.
//
// tests/pytorch/optimizers.py says what batches are and where parameters start.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "frontend/frontend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, PIXELS = 3, MAX_VALUES = 64 };

// ---- a run ----

typedef struct {
    Graph *g;
    double **leaf;
    Arena *arena;
} Run;

static Graph *read_model(Arena *a, const char *text, size_t length) {
    Diagnostics d = diag_new(a);
    Program *p = frontend_parse(a, "numbers.net", text, length, NULL, 0, &d);
    ck_assert_msg(d.count == 0 && p != NULL, "%s in\n%.*s", d.list[0]->message,
                  (int)length, text);
    Graph *g = run_pass(p->stage[0].train, "autodiff", F32);
    return run_pass(g, "optimizer", F32);
}

static double start_of(const char *name, int64_t i) {
    static const char *const order[] = {"linear_1.weight", "linear_1.bias",
                                        "linear_2.weight", "linear_2.bias"};
    int k = 0;
    while (strcmp(order[k], name) != 0)
        k++;
    return sin((double)(i + 10 * k));
}

static Run run_new(Arena *a, Graph *g) {
    Run r = {g, ARENA_ARRAY(a, g->count, double *), a};
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op != OP_input && node->op != OP_param &&
            node->op != OP_state)
            continue;
        int64_t count = type_count(node->type);
        r.leaf[n] = ARENA_ARRAY(a, (size_t)count + 1, double);
        for (int64_t i = 0; i < count; i++)
            r.leaf[n][i] = node->op == OP_param
                               ? start_of(node_text(node, ATTR_name), i)
                               : node_float(node, ATTR_init, 0);
    }
    return r;
}

static void set_batch(Run *r, int update) {
    double *image = r->leaf[graph_find(r->g, "image")];
    double *label = r->leaf[graph_find(r->g, "label")];
    for (int i = 0; i < BATCH * PIXELS; i++)
        image[i] = (i * 37 + update * 53) % 251;
    for (int i = 0; i < BATCH; i++)
        label[i] = (i + update / 2) % 2;
}

// One step: what is assigned is there in the next.
static void run_update(Run *r, int update, bool round) {
    Arena *a = arena_new();
    set_batch(r, update);
    double **value = graph_eval(r->g, a, r->leaf, round);
    for (NodeId n = 0; n < r->g->count; n++) {
        const Node *node = &r->g->node[n];
        if (node->op == OP_assign)
            memcpy(r->leaf[node->arg[0]], value[n],
                   (size_t)type_count(node->type) * sizeof(double));
    }
    arena_free(a);
}

// ---- a case ----

static const double *find_param(const Run *r, const char *line, int *length) {
    *length = (int)strcspn(line, " ");
    NodeId n = graph_find(r->g, arena_string(r->arena, line, (size_t)*length));
    ck_assert_msg(n != NO_NODE, "no parameter of the line %.40s", line);
    return r->leaf[n];
}

// Compares with a line `NAME NUMBERS...`; errors are taken relative to the
// largest number.
static void check_line(const Run *r, const char *model, const char *line,
                       double tolerance) {
    int length, count = 0;
    const double *got = find_param(r, line, &length);
    double want[MAX_VALUES], most = 0;
    const char *s = line + length;
    for (char *end; count < MAX_VALUES && *s != '\n'; s = end, count++) {
        want[count] = strtod(s, &end);
        ck_assert_ptr_ne(end, s);
        most = fmax(most, fabs(want[count]));
    }
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= tolerance * most,
                      "%.*s[%d] is %.17g and not %.17g after\n%s", length, line,
                      i, got[i], want[i], model);
}

// Whether a name is PARAM.SLOT or run.SLOT_SETTINGS.
static bool names_slot(const char *name, const OptimizerSlot *slot) {
    size_t length = strlen(slot->name);
    if (slot->scope == SLOT_shared)
        return strncmp(name, "run.", 4) == 0 &&
               strncmp(name + 4, slot->name, length) == 0 &&
               name[4 + length] == '_';
    return strcmp(strrchr(name, '.') + 1, slot->name) == 0;
}

// Marks the slots of the model's optimizer that its graph has.
static void note_slots(const Graph *g, const char *model, bool *had) {
    const char *name = strstr(model, "optimizer = ") + strlen("optimizer = ");
    Op op;
    ck_assert(op_find(name, strcspn(name, "("), &op));
    for (NodeId n = 0; n < g->count; n++)
        for (int i = 0; i < num_optimizer_slots; i++)
            had[i] |= optimizer_slots[i].op == op &&
                      state_is(&g->node[n], STATE_OPTIMIZER) &&
                      names_slot(node_text(&g->node[n], ATTR_name),
                                 &optimizer_slots[i]);
}

// A model, up to its last line, a brace; then lines of parameters up to the
// next model.  Returns where that begins.
static const char *check_case(const char *text, int updates, bool round,
                              bool *had) {
    Arena *a = arena_new();
    const char *end = strstr(text, "\n}\nlinear");
    ck_assert_ptr_nonnull(end);
    size_t length = (size_t)(end - text) + 3;
    const char *model = arena_string(a, text, length);
    Run r = run_new(a, read_model(a, text, length));
    note_slots(r.g, model, had);
    for (int i = 0; i < updates; i++)
        run_update(&r, i, round);
    const char *line = text + length;
    for (; strncmp(line, "linear", 6) == 0; line = strchr(line, '\n') + 1)
        check_line(&r, model, line, round ? 1e-5 : 1e-9);
    arena_free(a);
    return line;
}

START_TEST(optimizers_are_pytorchs) {
    Arena *a = arena_new();
    const char *text = numbers_read(a, "optimizers.txt"), *begin = "model\n";
    int updates = 0, cases = 0;
    bool *had = ARENA_ARRAY(a, (size_t)num_optimizer_slots, bool);
    text = strchr(text, '\n') + 1;
    ck_assert_int_eq(sscanf(text, "updates %d", &updates), 1);
    text = strchr(text, '\n') + 1;
    for (; strncmp(text, begin, strlen(begin)) == 0; cases++)
        text = check_case(text + strlen(begin), updates, _i == 1, had);
    ck_assert_msg(*text == '\0', "this is no model: %.40s", text);
    for (int i = 0; i < num_optimizer_slots; i++)
        ck_assert_msg(had[i], "no case has a state %s of %s",
                      optimizer_slots[i].name,
                      op_info[optimizer_slots[i].op].name);
    arena_free(a);
}
END_TEST

Suite *numbers_suite(void) {
    Suite *s = suite_create("numbers");
    TCase *t = tcase_create("numbers");
    tcase_add_loop_test(t, optimizers_are_pytorchs, 0, 2); // double, f32
    suite_add_tcase(s, t);
    return s;
}
