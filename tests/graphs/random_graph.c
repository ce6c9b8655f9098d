// Random graph: draws numbers and operands, and adds the nodes that are valid.
#include "tests/graphs/random_graph.h"

enum { TRIES = 20 };

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators, scrambled").
uint32_t random_draw(Random *b, uint32_t below) {
    b->state ^= b->state >> 12;
    b->state ^= b->state << 25;
    b->state ^= b->state >> 27;
    return (uint32_t)(b->state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % below;
}

const Type *random_type(const Random *b, NodeId n) {
    return b->g->node[n].type;
}

NodeId random_keep(Random *b, NodeId n) {
    if (n != NO_NODE)
        b->pick[b->count++] = n;
    return n;
}

NodeId random_add(Random *b, Node n) {
    Type type = n.type != NULL ? *n.type : (Type){.dtype = F32};
    n.group = -1;
    for (int i = 0; i < n.num_args; i++)
        if (n.arg[i] == NO_NODE)
            return NO_NODE;
    if (type_infer(b->g, &n, &type) != NULL ||
        type_count(&type) > b->max_elements ||
        (type_count(&type) == 0 && !b->vanishes))
        return NO_NODE;
    return graph_add(b->g, n);
}

NodeId random_op1(Random *b, Op op, NodeId x) {
    return random_add(b, (Node){.op = op, .num_args = 1, .arg = &x});
}

NodeId random_op2(Random *b, Op op, NodeId x, NodeId y) {
    return random_add(
        b, (Node){.op = op, .num_args = 2, .arg = (NodeId[]){x, y}});
}

NodeId random_op3(Random *b, Op op, NodeId x, NodeId y, NodeId z) {
    return random_add(
        b, (Node){.op = op, .num_args = 3, .arg = (NodeId[]){x, y, z}});
}

NodeId random_with(Random *b, Op op, NodeId x, int count, const Attr *attr) {
    return random_add(b, (Node){.op = op,
                                .num_args = 1,
                                .arg = &x,
                                .num_attrs = count,
                                .attr = attr});
}

NodeId random_contract(Random *b, Op op, NodeId x, NodeId y, int count,
                       const Attr *attr) {
    DType dtype = !b->source && random_draw(b, 2) ? ACT : F32;
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId arg[] = {graph_cast(b->g, x, dtype), graph_cast(b->g, y, dtype)};
    NodeId z = random_add(b, (Node){.op = op,
                                    .num_args = 2,
                                    .arg = arg,
                                    .num_attrs = count,
                                    .attr = attr});
    return z == NO_NODE ? z : graph_cast(b->g, z, F32);
}

NodeId random_any(Random *b, DType dtype, int rank) {
    for (int i = 0; i < TRIES; i++) {
        int back = (int)random_draw(b, 2) ? 12 : b->count;
        int first = b->count > back ? b->count - back : 0;
        NodeId n =
            b->pick[first + (int)random_draw(b, (uint32_t)(b->count - first))];
        if (random_type(b, n)->dtype == dtype &&
            (rank < 0 || random_type(b, n)->rank == rank))
            return n;
    }
    return NO_NODE;
}

const char *random_name(Random *b, const char *stem) {
    return arena_format(b->g->arena, "%s%u", stem, b->g->count);
}

NodeId random_leaf(Random *b, Op op, DType dtype, int rank,
                   const int64_t *dim) {
    return random_keep(b, graph_leaf(b->g, op, random_name(b, "leaf"),
                                     type_of(dtype, rank, dim)));
}

NodeId random_run(Random *b, const char *name) {
    NodeId n = graph_find(b->g, name);
    return n == NO_NODE
               ? graph_state(b->g, name, STATE_RUN, type_scalar(I32), 0)
               : n;
}

NodeId random_number(Random *b, double value) {
    return graph_constant(b->g, type_scalar(F32), value);
}
