// Parts: replaces layers by their operand, so that a step has its time without
// them.
//
// Each operation of a removed layer becomes its operand of the same type; nodes
// without other uses are eliminated.  An operation without such an operand,
// such as a crop to another size or a cast, stays.
#include "tools/compare/parts.h"
#include "frontend/frontend.h"

#include <ctype.h>
#include <string.h>

const char *const part_name[NUM_PARTS] = {
    [PART_NONE] = "nothing",
    [PART_LOADING] = "loading",
    [PART_AUGMENTATION] = "augmentation",
    [PART_NORMS] = "norms, activations",
    [PART_UPDATES] = "updates",
};

// ---- which nodes ----

// Whether a path ends in a kind of layer: "batch_norm" in
// "layer1.batch_norm_2".
static bool path_is(const char *path, const char *kind) {
    const char *dot = strrchr(path, '.');
    const char *last = dot ? dot + 1 : path;
    size_t length = strlen(kind);
    if (strncmp(last, kind, length) != 0)
        return false;
    last += length;
    last += *last == '_';
    while (isdigit((unsigned char)*last))
        last++;
    return *last == '\0';
}

static bool is_norm(const Node *n) {
    const char *name;
    for (int i = 0; n->from.path && (name = norm_or_activation(i)); i++)
        if (path_is(n->from.path, name))
            return true;
    return n->op == OP_batch_norm || n->op == OP_relu;
}

// The recipe's `input` has a path of its own; normalization of pixels is not
// augmentation.
static bool is_augmentation(const Node *n) {
    static const char input[] = "input.";
    return n->from.path && strncmp(n->from.path, input, strlen(input)) == 0 &&
           !path_is(n->from.path, "normalize");
}

static bool goes(const Node *n, Part part) {
    return !n->from.backward &&
           (part == PART_NORMS ? is_norm(n) : is_augmentation(n));
}

// ---- removal ----

// The operand that replaces the node, or NO_NODE.
static NodeId stand_in(const Graph *g, const Node *n) {
    if (op_info[n->op].traits & EFFECT)
        return NO_NODE;
    for (int i = 0; i < n->num_args; i++)
        if (!(op_info[g->node[n->arg[i]].op].traits & LEAF &&
              g->node[n->arg[i]].op != OP_input) &&
            type_is(g->node[n->arg[i]].type, n->type))
            return n->arg[i];
    return NO_NODE;
}

static bool keeps_statistics(const Graph *g, const Node *n) {
    return n->op == OP_assign && state_is(&g->node[n->arg[0]], STATE_STATISTIC);
}

// A tiny learning rate leaves the optimizer's time unchanged, and keeps the
// changed model from diverging.
static NodeId optimizer_copy(Graph *out, const Graph *g, NodeId n,
                             const NodeId *now, Arena *scratch) {
    Node copy = g->node[n];
    NodeId *arg = ARENA_ARRAY(scratch, (size_t)copy.num_args + 1, NodeId);
    for (int i = 0; i < copy.num_args; i++)
        arg[i] = now[copy.arg[i]];
    if (copy.num_args > 1)
        arg[1] = graph_number(out, 1e-30);
    copy.arg = arg;
    out->origin = copy.from;
    return graph_move(out, copy);
}

static Graph *graph_without(const Graph *g, Part part, int *removed) {
    Graph *out = graph_like(g);
    Arena *scratch = arena_new();
    NodeId *now = ARENA_ARRAY(scratch, (size_t)g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        NodeId other = goes(d, part) ? stand_in(g, d) : NO_NODE;
        *removed += other != NO_NODE;
        if (other != NO_NODE)
            now[n] = now[other];
        else if (part == PART_NORMS && keeps_statistics(g, d))
            now[n] = NO_NODE;
        else if (op_info[d->op].traits & OPTIMIZES)
            now[n] = optimizer_copy(out, g, n, now, scratch);
        else
            now[n] = graph_copy(out, g, n, now);
    }
    arena_free(scratch);
    return out;
}

bool part_remove(Program *p, Part part) {
    int removed = 0;
    if (part != PART_AUGMENTATION && part != PART_NORMS)
        return true;
    Stage *stage = ARENA_ARRAY(p->eval->arena, (size_t)p->num_stages, Stage);
    for (int i = 0; i < p->num_stages; i++) {
        stage[i] = p->stage[i];
        stage[i].train = graph_without(p->stage[i].train, part, &removed);
        if (p->stage[i].accumulate != NULL)
            stage[i].accumulate =
                graph_without(p->stage[i].accumulate, part, &removed);
    }
    p->stage = stage;
    return removed > 0;
}
