// Pixels: labels of each place of an image, moved as augmentation moves them,
// and a loss over the places that are still inside.
#include "tests/graphs/random_graph.h"

typedef struct {
    NodeId label;  // i32[N,H,W,1]
    NodeId inside; // bool[N,H,W,1]
} Followed;

static NodeId whole_numbers(Random *b, int rank, const int64_t *dim) {
    return random_leaf(b, OP_input, I32, rank, dim);
}

static Followed moved(Random *b, Followed f, const int64_t *dim) {
    Attr mode = attr_text(ATTR_mode, "zero");
    NodeId down = whole_numbers(b, 1, dim), right = whole_numbers(b, 1, dim);
    NodeId *part[] = {&f.label, &f.inside};
    for (int i = 0; i < 2; i++)
        *part[i] =
            random_add(b, (Node){.op = OP_shift,
                                 .num_args = 3,
                                 .arg = (NodeId[]){*part[i], down, right},
                                 .num_attrs = 1,
                                 .attr = &mode});
    return f;
}

static Followed taken(Random *b, Followed f, const int64_t *dim) {
    NodeId rows = whole_numbers(b, 2, (int64_t[]){dim[0], dim[1]});
    NodeId columns = whole_numbers(b, 2, (int64_t[]){dim[0], dim[2]});
    return (Followed){random_op3(b, OP_take, f.label, rows, columns),
                      random_op3(b, OP_take, f.inside, rows, columns)};
}

// The first rows are another sample's.
static Followed pasted(Random *b, Followed f, const int64_t *dim) {
    Type rows = type_of(I32, 4, (int64_t[]){1, dim[1], 1, 1});
    NodeId row = graph_iota(b->g, rows, 1), index = whole_numbers(b, 1, dim);
    int64_t some = random_draw(b, (uint32_t)dim[1] + 1);
    NodeId until = graph_constant(b->g, type_scalar(I32), (double)some);
    NodeId box = random_op2(b, OP_lt, row, until);
    NodeId label = random_op2(b, OP_gather, f.label, index);
    NodeId inside = random_op2(b, OP_gather, f.inside, index);
    return (Followed){random_op3(b, OP_select, box, label, f.label),
                      random_op3(b, OP_select, box, inside, f.inside)};
}

static Followed flipped(Random *b, Followed f, const int64_t *dim) {
    NodeId by = random_leaf(b, OP_input, BOOL, 1, dim);
    return (Followed){random_op2(b, OP_flip, f.label, by),
                      random_op2(b, OP_flip, f.inside, by)};
}

static bool all_there(const Type *t) {
    return type_count(t) > 0 && t->rank == 4;
}

// The mean over the places inside.
static NodeId cost_of(Random *b, NodeId x, Followed f) {
    Type t = *random_type(b, x);
    int64_t rows[] = {t.dim[0] * t.dim[1] * t.dim[2], t.dim[3]};
    NodeId none = graph_constant(b->g, type_scalar(I32), 0);
    NodeId label = random_op3(b, OP_select, f.inside, f.label, none);
    if (label == NO_NODE)
        return NO_NODE;
    NodeId arg[] = {graph_reshape(b->g, x, 2, rows),
                    graph_reshape(b->g, label, 1, rows)};
    NodeId cost = random_add(
        b, (Node){.op = OP_cross_entropy, .num_args = 2, .arg = arg});
    if (cost == NO_NODE)
        return NO_NODE;
    const int64_t axes[] = {0, 1, 2, 3};
    int64_t places[] = {t.dim[0], t.dim[1], t.dim[2], 1};
    cost = graph_reshape(b->g, cost, 4, places);
    cost = random_op3(b, OP_select, f.inside, cost, random_number(b, 0));
    NodeId inside = graph_cast(b->g, f.inside, F32);
    NodeId count = graph_reduce(b->g, OP_sum, inside, 4, axes);
    count = random_op2(b, OP_maximum, count, random_number(b, 1));
    return random_op2(b, OP_div, graph_reduce(b->g, OP_sum, cost, 4, axes),
                      count);
}

NodeId family_pixels(Random *b) {
    static Followed (*const step[])(Random *, Followed, const int64_t *) = {
        moved, taken, pasted, flipped};
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE || !b->source || !all_there(random_type(b, x)))
        return NO_NODE;
    Type t = *random_type(b, x);
    // Labels are below the number of classes, which their name has.
    const char *stem = arena_format(b->g->arena, "label%d.", (int)t.dim[3]);
    t.dim[3] = 1;
    t.dtype = I32;
    NodeId label = graph_leaf(b->g, OP_input, random_name(b, stem), t);
    t.dtype = BOOL;
    Followed f = {label, graph_constant(b->g, t, 1)};
    for (int i = 1 + (int)random_draw(b, 3); i > 0; i--) {
        f = step[random_draw(b, 4)](b, f, t.dim);
        if (f.label == NO_NODE || f.inside == NO_NODE)
            return NO_NODE;
    }
    return cost_of(b, x, f);
}
