// Reference: see reference.h.
#include "tools/compare/reference.h"

#include "ir/noise.h"
#include "tools/compare/skip.h"

#include <string.h>

// ---- leaves ----

static bool is_leaf(const Node *d) {
    return d->op == OP_input || d->op == OP_param || d->op == OP_state;
}

// The recorded name of a leaf, or NULL. The loss scale is a state if
// accumulated gradients carry it.
static const char *leaf_name(const Node *d) {
    if (d->op == OP_loss_scale)
        return "run.loss_scale";
    return is_leaf(d) ? node_text(d, ATTR_name) : NULL;
}

// The leaves of a graph, from the inputs and states of a variant.
static double **leaves_of(const Variant *variant, Arena *a, const Graph *g) {
    double **leaf = ARENA_ARRAY(a, (size_t)g->count + 1, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const char *name = leaf_name(&g->node[n]);
        if (name != NULL)
            leaf[n] = snapshot_before(a, &variant->snapshot, name);
    }
    return leaf;
}

static bool *assignments_of(Arena *a, const Graph *g) {
    bool *is = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++)
        is[n] = g->node[n].op == OP_assign;
    return is;
}

// Replaces derived states among the leaves by values derived from their
// sources, if the snapshot has these.
static void leaves_derive(const Variant *variant, Arena *a,
                          const Graph *planned, const Graph *g, double **leaf) {
    Graph *derive = graph_clone(planned);
    derive->act = F32;
    Arena *scratch = arena_new();
    double **own_leaf = leaves_of(variant, scratch, derive);
    double **value =
        graph_eval_kept(derive, a, own_leaf, assignments_of(a, derive));
    bool *known = ARENA_ARRAY(a, (size_t)derive->count + 1, bool);
    for (NodeId n = 0; n < derive->count; n++) {
        const Node *d = &derive->node[n];
        known[n] = !is_leaf(d) || own_leaf[n] != NULL;
        for (int i = d->op == OP_assign; i < d->num_args; i++)
            known[n] &= known[d->arg[i]];
        if (d->op != OP_assign || !known[n])
            continue;
        NodeId own =
            graph_find(g, node_text(&derive->node[d->arg[0]], ATTR_name));
        if (own != NO_NODE)
            leaf[own] = value[n];
    }
    arena_free(scratch);
}

// The model has no 16-bit copies of weights, which are rounded.
static double **leaves_meant(const Variant *variant, Arena *a, const Graph *g) {
    double **leaf = leaves_of(variant, a, g);
    for (int i = 0; i < variant->plan->num_steps; i++)
        if (variant->plan->step[i].kind == STEP_DERIVE)
            leaves_derive(variant, a, variant->plan->step[i].graph, g, leaf);
    return leaf;
}

NodeId assignment_of(const Graph *g, const char *name) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign &&
            strcmp(node_text(&g->node[g->node[n].arg[0]], ATTR_name), name) ==
                0)
            return n;
    return NO_NODE;
}

// ---- the model ----

// The step with gradients, updates and averages, before passes rewrite it.  A
// step that was not skipped has no rule for skipping.
static const Graph *step_meant(const Variant *variant, const Rows *rows) {
    const Program *p = variant->program;
    int stage = variant->snapshot.step->stage;
    PassOptions o = pass_options(&p->recipe, "host");
    bool scaled = o.act == F16;
    o.act = F32;
    o = step_options(&o, variant->snapshot.step, p->recipe.shards);
    const Graph *g = passes_run(graph_clone(p->stage[stage].train), &o,
                                "optimizer", NULL, NULL);
    Arena *scratch = arena_new();
    if (scaled && (rows->skips_a || rows->skips_b))
        g = step_deciding(g, leaves_of(variant, scratch, g));
    arena_free(scratch);
    if (!program_averages_each_step(p) || o.part == PART_SHARD)
        return g;
    return step_with_average(g, p->average);
}

// Rows that are nodes of a graph.
typedef struct {
    const Graph *g;
    bool *wanted;    // nodes
    int *row;        // of a requested node
    double **beside; // of each row, or NULL
    RowSeen *seen;
    void *whose;
} Shown;

static Shown shown_new(Arena *a, const Graph *g, const Rows *rows,
                       RowSeen *seen, void *whose) {
    return (Shown){g,
                   ARENA_ARRAY(a, (size_t)g->count + 1, bool),
                   ARENA_ARRAY(a, (size_t)g->count + 1, int),
                   ARENA_ARRAY(a, (size_t)rows->count + 1, double *),
                   seen,
                   whose};
}

static void show(void *whose, NodeId n, double *const *value) {
    const Shown *s = whose;
    s->seen(s->whose, s->row[n], value[n], s->beside[s->row[n]]);
}

static void want(Shown *s, NodeId n, int row) {
    s->wanted[n] = true;
    s->row[n] = row;
}

// Requests the states after the model's step.
static void want_states(Shown *s, const Graph *plan, const Rows *rows,
                        const bool *row) {
    for (int i = 0; i < rows->count; i++) {
        const Row *r = &rows->row[i];
        bool state = plan->node[r->node].op == OP_assign;
        NodeId n = state ? assignment_of(s->g, r->name) : NO_NODE;
        if (n != NO_NODE && (row == NULL || row[i]))
            want(s, n, i);
    }
}

static void keep(Shown *s, Arena *a, double *const *leaf) {
    double **value = graph_eval_kept(s->g, a, leaf, s->wanted);
    for (NodeId n = 0; n < s->g->count; n++)
        if (s->wanted[n])
            s->beside[s->row[n]] = value[n];
}

// ---- all rows, in double ----

static const Graph *plan_of(const Variant *variant) {
    Graph *g = graph_clone(variant->snapshot.step->graph);
    g->act = F32;
    return g;
}

void rows_reference(const Variant *variant, const Rows *rows, int first,
                    RowSeen *seen, void *whose) {
    Arena *a = arena_new();
    const Graph *g = plan_of(variant);
    Shown s = shown_new(a, g, rows, seen, whose);
    for (int i = first; i < rows->count; i++)
        want(&s, rows->row[i].node, i);
    if (first == 0) {
        Shown model =
            shown_new(a, step_meant(variant, rows), rows, seen, whose);
        want_states(&model, g, rows, NULL);
        keep(&model, a, leaves_of(variant, a, model.g));
        s.beside = model.beside;
    }
    graph_eval_visit(g, leaves_meant(variant, a, g), false, s.wanted, show, &s);
    arena_free(a);
}

void rows_rounded(const Variant *variant, const Rows *rows, const bool *row,
                  RowSeen *seen, void *whose) {
    Arena *a = arena_new();
    const Graph *g = plan_of(variant);
    double **leaf = leaves_meant(variant, a, g);
    Shown s = shown_new(a, g, rows, seen, whose);
    for (int i = 0; i < rows->count; i++)
        if (row[i])
            want(&s, rows->row[i].node, i);
    keep(&s, a, leaf);
    graph_eval_visit(g, leaf, true, s.wanted, show, &s);
    arena_free(a);
}

static void decide(Arena *a, const Graph *g, double *const *leaf, Shown *s,
                   uint32_t seed) {
    keep(s, a, leaf);
    noise_visit_double(g, leaf, seed, s->wanted, show, s);
}

void rows_decided(const Variant *variant, const Rows *rows, const bool *row,
                  uint32_t seed, RowSeen *seen, void *whose) {
    Arena *a = arena_new();
    const Graph *g = plan_of(variant), *meant = step_meant(variant, rows);
    Shown plan = shown_new(a, g, rows, seen, whose);
    Shown model = shown_new(a, meant, rows, seen, whose);
    for (int i = 0; i < rows->count; i++)
        if (row[i])
            want(&plan, rows->row[i].node, i);
    want_states(&model, g, rows, row);
    decide(a, g, leaves_meant(variant, a, g), &plan, seed);
    decide(a, meant, leaves_of(variant, a, meant), &model, seed);
    arena_free(a);
}

void rows_disturbed(const Variant *variant, const Rows *rows, const bool *row,
                    double units, uint32_t seed, RowSeen *seen, void *whose) {
    Arena *a = arena_new();
    const Graph *g = step_meant(variant, rows);
    double **leaf = leaves_of(variant, a, g);
    Shown s = shown_new(a, g, rows, seen, whose);
    want_states(&s, variant->snapshot.step->graph, rows, row);
    keep(&s, a, leaf);
    noise_visit(g, leaf, variant->plan->act, units, seed, s.wanted, show, &s);
    arena_free(a);
}
