// Training: a loss of some values of a random graph, and optimizers of every
// kind for its params.
#include "tests/graphs/training.h"

#include <limits.h>

// The mean of x, or of its square.
static NodeId cost_of(Random *b, NodeId x) {
    Type t = *random_type(b, x);
    int64_t axes[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        axes[i] = i;
    NodeId square = random_draw(b, 2) ? random_op2(b, OP_mul, x, x) : NO_NODE;
    if (square != NO_NODE) // of what is not too large
        x = square;
    double share = type_count(&t) ? 1 / (double)type_count(&t) : 1;
    NodeId sum = graph_reduce(b->g, OP_sum, x, t.rank, axes);
    return random_op2(b, OP_mul, sum, random_number(b, share));
}

// Which nodes a param has a part in.
static bool *find_trained(const Graph *g) {
    bool *trained = ARENA_ARRAY(g->arena, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        trained[n] = d->op == OP_param;
        for (int i = 0; i < d->num_args; i++)
            trained[n] |= trained[d->arg[i]];
        trained[n] &= dtype_float(d->type->dtype) && d->op != OP_stop_gradient;
    }
    return trained;
}

// Of what a param has a part in, some or all of the last values and a few
// others.
static void add_loss(Random *b) {
    uint32_t *uses = graph_uses(b->g, b->g->arena);
    bool *trained = find_trained(b->g);
    NodeId loss = random_number(b, 0), count = b->g->count;
    int wanted = random_draw(b, 2) ? INT_MAX : 1 + (int)random_draw(b, 4);
    for (NodeId n = count; n-- > 0 && wanted > 0;) {
        bool last = n < count - 1 && uses[n] == 0;
        bool leaf = op_info[b->g->node[n].op].traits & LEAF;
        if (leaf || !trained[n] || random_type(b, n)->dtype != F32 ||
            !(last || random_draw(b, 8) == 0))
            continue;
        loss = random_op2(b, OP_add, loss, cost_of(b, n));
        wanted--;
    }
    Attr name = attr_text(ATTR_name, "loss");
    random_with(b, OP_output, loss, 1, &name);
}

// ---- optimizers ----

static const Op optimizers[] = {
#define OPTIMIZER(name, ...) OP_##name,
#include "ir/optimizers.def"
};

enum { NUM_OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

typedef enum { RANGE_any, RANGE_from_0, RANGE_below_1, RANGE_to_100 } Range;

static const struct {
    Op op;
    Range range;
} scalars[] = {
#define SCALAR(optimizer, name, default, range) {OP_##optimizer, RANGE_##range},
#include "ir/optimizers.def"
};

static const struct {
    Op op;
    AttrKey key;
    Range range;
} settings[] = {
#define SETTING(optimizer, name, kind, default, range)                         \
    {OP_##optimizer, ATTR_##name, RANGE_##range},
#include "ir/optimizers.def"
};

// A number of a range, most often the first.
static double number_in(Random *b, Range range) {
    static const double some[][3] = {[RANGE_any] = {1e-3, 0.5, 1e-3},
                                     [RANGE_from_0] = {0, 0.05, 0},
                                     [RANGE_below_1] = {0.9, 0.99, 0},
                                     [RANGE_to_100] = {1, 2, 3}};
    return some[range][random_draw(b, 3)];
}

static Attr attr_in(Random *b, AttrKey key, Range range) {
    static const double list[] = {3, -3.2, 1.2};
    if (attr_info[key].kind == FLOATS)
        return attr_floats(key, 3, list);
    if (attr_info[key].kind == FLOAT)
        return attr_float(key, number_in(b, range));
    return attr_int(key, range == RANGE_any ? random_draw(b, 2)
                                            : (int64_t)number_in(b, range));
}

// Adds the update of a param by an optimizer, unless its shape rule refuses.
static void add_optimizer(Random *b, Op op, NodeId param, NodeId rate,
                            NodeId updates) {
    enum { MOST = 16 };
    NodeId arg[MOST] = {param, rate};
    Attr attr[MOST];
    Node n = {.op = op, .num_args = 1, .arg = arg, .attr = attr, .group = -1};
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        if (scalars[i].op != op)
            continue;
        if (n.num_args > 1)
            arg[n.num_args] = random_number(b, number_in(b, scalars[i].range));
        n.num_args++;
    }
    if (optimizer_counts(op))
        arg[n.num_args++] = updates;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (settings[i].op == op)
            attr_insert(attr, n.num_attrs++,
                        attr_in(b, settings[i].key, settings[i].range));
    Type t = *random_type(b, param);
    if (type_infer(b->g, &n, &t) == NULL)
        graph_add(b->g, n);
}

// A rate that falls with the step, or stays.
static NodeId rate_of(Random *b) {
    NodeId most = random_number(b, random_draw(b, 2) ? 0.125 : 0.5);
    if (random_draw(b, 2))
        return most;
    NodeId step = random_run(b, "run.step");
    NodeId done = random_op2(b, OP_mul, graph_cast(b->g, step, F32),
                             random_number(b, 0.05));
    return random_op2(b, OP_mul, most,
                      random_op2(b, OP_sub, random_number(b, 1), done));
}

// Counted from 1.
static NodeId updates_of(Random *b) {
    NodeId one = graph_constant(b->g, type_scalar(I32), 1);
    if (random_draw(b, 2))
        return graph_constant(b->g, type_scalar(I32), 3);
    return random_op2(b, OP_add, random_run(b, "run.step"), one);
}

// Mostly: some params stay as they are.
static void add_update(Random *b, NodeId param, NodeId rate, NodeId updates) {
    uint32_t kind = random_draw(b, NUM_OPTIMIZERS + 1);
    if (kind < NUM_OPTIMIZERS)
        add_optimizer(b, optimizers[kind], param, rate, updates);
}

void training_add(Random *b) {
    add_loss(b);
    NodeId count = b->g->count;
    NodeId rate[] = {rate_of(b), rate_of(b)}, updates = updates_of(b);
    bool gathers = random_draw(b, 10) == 0, some = false;
    for (NodeId n = 0; n < count; n++) {
        if (b->g->node[n].op != OP_param)
            continue;
        if (gathers)
            random_op1(b, OP_accumulate, n);
        else
            add_update(b, n, rate[random_draw(b, 2)], updates);
        some = true;
    }
    if (!some || gathers)
        return;
    if (random_draw(b, 6) == 0)
        random_op1(b, OP_accumulated, random_number(b, 0.25));
    if (random_draw(b, 3) == 0) {
        Attr mode = attr_text(ATTR_mode, random_draw(b, 2) ? "norm" : "value");
        random_with(b, OP_clip, random_number(b, 0.05), 1, &mode);
    }
}
