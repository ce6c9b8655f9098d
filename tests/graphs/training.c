// Training: a loss of some values of a random graph, and optimizers of every
// kind for its params.
#include "tests/graphs/training.h"

#include <limits.h>

static NodeId zero_or(Garden *b, double value) {
    return garden_number(b, garden_draw(b, 2) ? 0 : value);
}

// The mean of x, or of its square.
static NodeId cost_of(Garden *b, NodeId x) {
    Type t = *garden_type(b, x);
    int64_t axes[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        axes[i] = i;
    NodeId square = garden_draw(b, 2) ? garden_op2(b, OP_mul, x, x) : NO_NODE;
    if (square != NO_NODE) // of what is not too large
        x = square;
    double share = type_count(&t) ? 1 / (double)type_count(&t) : 1;
    NodeId sum = graph_reduce(b->g, OP_sum, x, t.rank, axes);
    return garden_op2(b, OP_mul, sum, garden_number(b, share));
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
static void plant_loss(Garden *b) {
    uint32_t *uses = graph_uses(b->g, b->g->arena);
    bool *trained = find_trained(b->g);
    NodeId loss = garden_number(b, 0), count = b->g->count;
    int wanted = garden_draw(b, 2) ? INT_MAX : 1 + (int)garden_draw(b, 4);
    for (NodeId n = count; n-- > 0 && wanted > 0;) {
        bool last = n < count - 1 && uses[n] == 0;
        bool leaf = op_info[b->g->node[n].op].facts & LEAF;
        if (leaf || !trained[n] || garden_type(b, n)->dtype != F32 ||
            !(last || garden_draw(b, 8) == 0))
            continue;
        loss = garden_op2(b, OP_add, loss, cost_of(b, n));
        wanted--;
    }
    Attr name = attr_text(ATTR_name, "loss");
    garden_with(b, OP_output, loss, 1, &name);
}

// ---- optimizers ----

static void plant_optimizer(Garden *b, Op op, int num_args, const NodeId *arg,
                            int count, const Attr *attr) {
    graph_add(b->g, (Node){.op = op,
                           .num_args = num_args,
                           .arg = arg,
                           .num_attrs = count,
                           .attr = attr,
                           .group = -1});
}

static void plant_sgd(Garden *b, NodeId param, NodeId rate) {
    NodeId arg[] = {param, rate, zero_or(b, 0.9), zero_or(b, 0.05)};
    Attr attr[] = {attr_int(ATTR_decoupled, garden_draw(b, 2)),
                   attr_float(ATTR_eps, 1e-3),
                   attr_int(ATTR_nesterov, garden_draw(b, 2)),
                   attr_int(ATTR_rate_in_velocity, garden_draw(b, 2)),
                   attr_float(ATTR_trust, 0.5)};
    // LARS has a form of its own.
    bool trust = garden_draw(b, 6) == 0;
    if (trust) {
        attr[0].i = attr[2].i = attr[3].i = 0;
        plant_optimizer(b, OP_sgd, 4, arg, 5, attr);
        return;
    }
    Attr plain[] = {attr[0], attr[2], attr[3]};
    plant_optimizer(b, OP_sgd, 4, arg, 3, plain);
}

static void plant_adam(Garden *b, NodeId param, NodeId rate, NodeId updates) {
    NodeId arg[] = {param,
                    rate,
                    garden_number(b, 0.9),
                    garden_number(b, 0.99),
                    zero_or(b, 0.05),
                    updates};
    Attr attr[] = {attr_int(ATTR_decoupled, garden_draw(b, 2)),
                   attr_float(ATTR_eps, 1e-3), attr_float(ATTR_trust, 1)};
    plant_optimizer(b, OP_adam, 6, arg, garden_draw(b, 6) ? 2 : 3, attr);
}

static void plant_muon(Garden *b, NodeId param, NodeId rate) {
    static const double coefficients[] = {3, -3.2, 1.2};
    NodeId arg[] = {param, rate, garden_number(b, 0.6), zero_or(b, 0.05)};
    Attr attr[] = {attr_floats(ATTR_coefficients, 3, coefficients),
                   attr_float(ATTR_eps, 1e-3),
                   attr_int(ATTR_iterations, 1 + garden_draw(b, 3)),
                   attr_int(ATTR_nesterov, garden_draw(b, 2)),
                   attr_int(ATTR_renormalize, garden_draw(b, 2))};
    plant_optimizer(b, OP_muon, 4, arg, 5, attr);
}

// A rate that falls with the step, or stays.
static NodeId rate_of(Garden *b) {
    NodeId most = garden_number(b, garden_draw(b, 2) ? 0.125 : 0.5);
    if (garden_draw(b, 2))
        return most;
    NodeId step = garden_run(b, "run.step");
    NodeId done = garden_op2(b, OP_mul, graph_cast(b->g, step, F32),
                             garden_number(b, 0.05));
    return garden_op2(b, OP_mul, most,
                      garden_op2(b, OP_sub, garden_number(b, 1), done));
}

// Counted from 1.
static NodeId updates_of(Garden *b) {
    NodeId one = graph_constant(b->g, type_scalar(I32), 1);
    if (garden_draw(b, 2))
        return graph_constant(b->g, type_scalar(I32), 3);
    return garden_op2(b, OP_add, garden_run(b, "run.step"), one);
}

static void plant_update(Garden *b, NodeId param, NodeId rate, NodeId updates) {
    int rank = garden_type(b, param)->rank;
    uint32_t kind = garden_draw(b, 7);
    if (kind == 0 && (rank == 2 || rank == 4) &&
        type_count(garden_type(b, param)) > 0)
        plant_muon(b, param, rate);
    else if (kind < 3)
        plant_adam(b, param, rate, updates);
    else if (kind < 6)
        plant_sgd(b, param, rate);
}

void training_plant(Garden *b) {
    plant_loss(b);
    NodeId count = b->g->count;
    NodeId rate[] = {rate_of(b), rate_of(b)}, updates = updates_of(b);
    bool gathers = garden_draw(b, 10) == 0, some = false;
    for (NodeId n = 0; n < count; n++) {
        if (b->g->node[n].op != OP_param)
            continue;
        if (gathers)
            plant_optimizer(b, OP_accumulate, 1, &n, 0, NULL);
        else
            plant_update(b, n, rate[garden_draw(b, 2)], updates);
        some = true;
    }
    if (!some || gathers)
        return;
    if (garden_draw(b, 6) == 0)
        garden_op1(b, OP_accumulated, garden_number(b, 0.25));
    if (garden_draw(b, 3) == 0) {
        Attr mode = attr_text(ATTR_mode, garden_draw(b, 2) ? "norm" : "value");
        garden_with(b, OP_clip, garden_number(b, 0.05), 1, &mode);
    }
}
