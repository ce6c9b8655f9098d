// A random graph: it grows node by node.  Operands are drawn from what is
// there, the newer the likelier, and an operation whose shape rule refuses
// them is left out.
#include "tests/graphs/graphs.h"
#include "tests/graphs/training.h"

#include <assert.h>

// ---- leaves ----

// Mostly a size that vectors do not divide.
static int64_t draw_size(Random *b, uint32_t most) {
    if (b->vanishes && random_draw(b, 6) == 0)
        return 0;
    return 1 + random_draw(b, most);
}

static void add_leaves(Random *b) {
    static const int64_t channels[] = {1, 3, 8, 10, 17, 24, 2, 64};
    bool large = b->max_elements > 2000 && random_draw(b, 3) == 0;
    int64_t n = draw_size(b, large ? 70 : 3), c = channels[random_draw(b, 8)];
    uint32_t most = random_draw(b, 4) ? 6 : 12;
    int64_t image[] = {n, draw_size(b, most), draw_size(b, most), c};
    random_leaf(b, OP_input, F32, 4, image);
    if (random_draw(b, 2))
        random_leaf(b, OP_input, F32, 4, image);
    random_leaf(b, OP_input, F32, 2, (int64_t[]){n, c});
    random_leaf(b, OP_param, F32, 1, &c);
    random_leaf(b, OP_param, F32, 1, &c);
    random_keep(b, graph_state(b->g, random_name(b, "leaf"), STATE_STATISTIC,
                               type_scalar(F32), 0));
    random_keep(b, random_number(b, 0.5));
}

// Pixels as data sets have them.
static void add_bytes(Random *b) {
    int64_t image[] = {draw_size(b, 3), draw_size(b, 5), draw_size(b, 5), 3};
    NodeId pixel =
        graph_cast(b->g, random_leaf(b, OP_input, U8, 4, image), F32);
    random_keep(b, random_op2(b, OP_mul, pixel, random_number(b, 0x1p-8)));
}

// ---- what is between ----

static void grow(Random *b, int steps) {
    static Family *const family[] = {
        family_unary,     family_unary,      family_unary,
        family_binary,    family_binary,     family_binary,
        family_choice,    family_reduction,  family_reduction,
        family_pool,      family_resized,    family_convolution,
        family_moved,     family_view,       family_product,
        family_uniform,   family_transposed, family_gathered,
        family_taken,     family_collected,  family_guarded,
        family_guarded,   family_truth,      family_whole,
        family_narrowed,  family_normalized, family_exponents,
        family_composite, family_composite,  family_costs,
        family_layer,     family_layer,      family_tail,
        family_embedded,  family_placed,     family_dropped,
        family_attention, family_separable,  family_pixels,
        family_upsampled, family_sequence,   family_rms,
        family_tied,      family_rotary,     family_grouped,
        family_attention,
    };
    enum { FAMILIES = sizeof family / sizeof *family };
    for (int i = 0; i < steps; i++) {
        b->g->origin.full_precision = b->source && random_draw(b, 16) == 0;
        random_keep(b, family[random_draw(b, FAMILIES)](b));
    }
    b->g->origin.full_precision = false;
    random_keep(b, family_best(b));
}

// ---- effects ----

// A value of the type that comes after n, or n itself.
static NodeId follower(const Random *b, NodeId n) {
    for (int i = b->count - 1; i >= 0; i--)
        if (b->pick[i] > n &&
            type_is(random_type(b, b->pick[i]), random_type(b, n)))
            return b->pick[i];
    return n;
}

static bool is_updated(const Random *b, NodeId n) {
    const Node *d = &b->g->node[n];
    bool state = d->op == OP_state && d->type->dtype == F32;
    return state || (d->op == OP_param && !b->source);
}

// Params and states follow values of their shape, and scalars count.
static void add_updates(Random *b) {
    NodeId count = b->g->count;
    NodeId rate = random_number(b, 0.1);
    for (NodeId n = 0; n < count; n++) {
        if (!is_updated(b, n) || random_draw(b, 3) == 0)
            continue;
        NodeId step = graph_op2(b->g, OP_mul, follower(b, n), rate);
        graph_assign(b->g, n, graph_op2(b->g, OP_sub, n, step));
    }
}

static void add_finite(Random *b, int count, const NodeId *checked) {
    NodeId finite = graph_add(b->g, (Node){.op = OP_all_finite,
                                           .num_args = count,
                                           .arg = checked,
                                           .group = -1});
    NodeId state = graph_state(b->g, "finite", STATE_RUN, type_scalar(F32), 0);
    graph_assign(b->g, state, finite);
}

static void add_outputs(Random *b) {
    uint32_t *uses = graph_uses(b->g, b->g->arena);
    NodeId count = b->g->count, checked[4];
    int num_checked = 0;
    for (NodeId n = 0; n < count; n++) {
        unsigned traits = op_info[b->g->node[n].op].traits;
        if ((traits & (LEAF | EFFECT)) || uses[n] > 0)
            continue;
        Attr attr = attr_text(ATTR_name, random_name(b, "out"));
        random_with(b, OP_output, n, 1, &attr);
        if (num_checked < 4 && dtype_float(random_type(b, n)->dtype))
            checked[num_checked++] = n;
    }
    if (num_checked > 0)
        add_finite(b, num_checked, checked);
}

// ---- the whole ----

Graph *random_graph_of(Arena *a, uint32_t seed, const Habit *habit) {
    size_t room = 16 * (size_t)habit->steps + 16;
    Random b = {.g = graph_new(a, "train"),
                .state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15),
                .pick = ARENA_ARRAY(a, room, NodeId),
                .max_elements = habit->max_elements,
                .source = habit->source,
                .vanishes = habit->vanishes};
    b.g->facts = habit->source ? 0 : PRIMITIVE | TYPED | BACKWARD | UPDATES;
    b.g->act = F32;
    add_leaves(&b);
    if (random_draw(&b, 4) == 0)
        add_bytes(&b);
    grow(&b, habit->steps);
    if (habit->source)
        training_add(&b);
    add_updates(&b);
    add_outputs(&b);
    assert(graph_verify(b.g, a) == NULL);
    return b.g;
}

Graph *random_graph(Arena *a, uint32_t seed, int steps) {
    enum { MAX_ELEMENTS = 2000 };
    Habit habit = {steps, MAX_ELEMENTS, false, false};
    return random_graph_of(a, seed, &habit);
}
