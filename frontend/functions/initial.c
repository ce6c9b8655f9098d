// Initialisation: reads a layer's `init`, and builds the nodes of the init
// graph.  Fans are PyTorch's: of a weight [K, ..., C] the inputs of one output,
// and the outputs of one input.

#include "frontend/functions/functions.h"

#include <math.h>
#include <string.h>

// ---- arguments ----

// The product of all dimensions but one, in double: the weight may be too large
// for an integer.
static double count_without(const Type *t, int dim) {
    double count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= i == dim ? 1 : (double)t->dim[i];
    return count;
}

static double fan_in(Type t) {
    return count_without(&t, 0);
}

static double fan_out(Type t) {
    return count_without(&t, t.rank - 1);
}

static Init uniform(double bound) {
    return (Init){INIT_UNIFORM, .low = -bound, .high = bound};
}

Init initial_default(Type weight) {
    return uniform(1 / sqrt(fan_in(weight)));
}

static Init with_std(bool normal, double std) {
    if (!normal)
        return uniform(sqrt(3) * std);
    return (Init){INIT_NORMAL, .low = 0, .high = std};
}

static bool is_text(const Call *c, ParamId p, const char *text) {
    return strcmp(call_arg(c, p)->text, text) == 0;
}

static Init kaiming(const Call *c, Type t) {
    bool in = is_text(c, P_kaiming_mode, "fan_in");
    bool normal = is_text(c, P_kaiming_distribution, "normal");
    double fan = in ? fan_in(t) : fan_out(t);
    return with_std(normal, call_number(c, P_kaiming_gain) / sqrt(fan));
}

Init initial_xavier(Type weight) {
    return with_std(false, sqrt(2 / (fan_in(weight) + fan_out(weight))));
}

static Init xavier(const Call *c, Type t) {
    bool normal = is_text(c, P_xavier_distribution, "normal");
    double fans = fan_in(t) + fan_out(t);
    return with_std(normal, call_number(c, P_xavier_gain) * sqrt(2 / fans));
}

static Init uniform_interval(Expansion *e, const Call *c) {
    Init i = {INIT_UNIFORM, .low = call_number(c, P_uniform_low),
              .high = call_number(c, P_uniform_high)};
    if (i.low > i.high)
        report(e->diags, D_out_of_range, c->at,
               "the lower bound of uniform must not be above its upper bound");
    return i;
}

static Init from_initialiser(Expansion *e, const Call *c, Type t,
                             const Init *old) {
    Init i = *old;
    switch (builtin_id(c->builtin)) {
    case B_ones:
        return (Init){INIT_CONSTANT, .low = 1};
    case B_uniform:
        return uniform_interval(e, c);
    case B_normal:
        return (Init){INIT_NORMAL, .low = call_number(c, P_normal_mean),
                      .high = call_number(c, P_normal_std)};
    case B_kaiming:
        return kaiming(c, t);
    case B_xavier:
        return xavier(c, t);
    case B_orthogonal:
        return (Init){INIT_ORTHOGONAL,
                      .high = call_number(c, P_orthogonal_gain)};
    case B_dirac:
        i.kind = is_text(c, P_dirac_mode, "add") ? INIT_ADD_DIRAC : INIT_DIRAC;
        return i;
    case B_whitening:
        return (Init){INIT_WHITENING, .low = call_number(c, P_whitening_eps),
                      .images = call_count(c, P_whitening_images)};
    default:
        return (Init){INIT_CONSTANT, .low = 0};
    }
}

static int min_rank(const Call *c) {
    switch (builtin_id(c->builtin)) {
    case B_kaiming:
    case B_xavier:
    case B_orthogonal:
        return 2;
    case B_dirac:
    case B_whitening:
        return 4;
    default:
        return 0;
    }
}

static bool expect_fans(Expansion *e, const Call *c, Type t, int64_t groups) {
    if (t.rank >= min_rank(c) && (min_rank(c) < 4 || groups > 0))
        return builtin_id(c->builtin) != B_whitening ||
               whitening_check(e, c, t, groups);
    Diagnostic *d =
        report(e->diags, D_wrong_rank, c->at, "%s is for %s", c->builtin->name,
               min_rank(c) == 4 ? "the weights of a convolution"
                                : "weights of two dimensions or more");
    diag_label(d, "the parameter is %s", type_text(e, t));
    return false;
}

// A literal, broadcast along axes of 1.
static bool from_literal(Expansion *e, const Value *list, Type t, Init *init) {
    Literal *n = ARENA_NEW(e->arena, Literal);
    Type both;
    if (!expect_literal(e, list->at, list, n))
        return false;
    init->kind = INIT_LITERAL;
    init->literal = n;
    if (type_broadcast(&n->type, &t, &both) && type_has_shape(&both, &t))
        return true;
    Diagnostic *d =
        report(e->diags, D_incompatible_shapes, list->at,
               "numbers of this shape do not broadcast to the parameter");
    diag_label(d, "this is %s, and the parameter is %s", type_text(e, n->type),
               type_text(e, t));
    return false;
}

bool initial_argument(Expansion *e, const Value *v, Type t, Init *init) {
    if (v->kind == VALUE_NONE)
        return true;
    if (v->kind == VALUE_NUMBER) {
        *init = (Init){INIT_CONSTANT, .low = v->number};
        return true;
    }
    if (v->kind == VALUE_LIST)
        return from_literal(e, v, t, init);
    if (!expect_fans(e, v->call, t, init->groups))
        return false;
    int errors = e->diags->errors;
    *init = from_initialiser(e, v->call, t, init);
    return e->diags->errors == errors;
}

Value lower_initial(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c, .at = c->at};
}

// ---- nodes ----

typedef struct {
    Graph *g;
    NodeId seed, epoch;
    const Parameter *p;
} Start;

static NodeId number(const Start *s, double value) {
    return graph_number(s->g, value);
}

static const char *stream_name(const Start *s) {
    return arena_format(s->g->arena, "init/%s", s->p->name);
}

static RandomSource random_source(const Start *s) {
    return (RandomSource){s->seed, s->epoch, 1};
}

static NodeId uniform_values(const Start *s, double low, double high) {
    NodeId width = number(s, high - low);
    NodeId u = rand_uniform(s->g, stream_name(s), random_source(s), s->p->type);
    NodeId wide = graph_op2(s->g, OP_mul, width, u);
    return graph_op2(s->g, OP_sub, wide, number(s, -low));
}

static NodeId normal_values(const Start *s, double mean, double std) {
    NodeId z = rand_normal(s->g, stream_name(s), random_source(s), s->p->type);
    NodeId scaled = graph_op2(s->g, OP_mul, z, number(s, std));
    return graph_op2(s->g, OP_add, scaled, number(s, mean));
}

// An axis of a weight [K,R,S,C], as broadcastable indices.
static NodeId along(const Start *s, int axis) {
    Type t = {.dtype = I32, .rank = 4, .dim = {1, 1, 1, 1}};
    t.dim[axis] = s->p->type.dim[axis];
    return graph_iota(s->g, t, axis);
}

static NodeId i32_constant(const Start *s, int64_t value) {
    return graph_constant(s->g, type_scalar(I32), (double)value);
}

// The identity filters, bool [K,1,1,1], and where such a filter is 1, bool
// [1,R,S,1] by [K,1,1,C]: at its centre, for its own channel.
static NodeId dirac_filter(const Start *s) {
    const int64_t *dim = s->p->type.dim;
    int64_t out = dim[0] / s->p->init.groups;
    int64_t count = out < dim[3] ? out : dim[3];
    NodeId divisor = i32_constant(s, out);
    NodeId in_group = graph_op2(s->g, OP_mod, along(s, 0), divisor);
    return graph_op2(s->g, OP_lt, in_group, i32_constant(s, count));
}

static NodeId dirac_values(const Start *s) {
    Graph *g = s->g;
    const int64_t *dim = s->p->type.dim;
    int64_t out = dim[0] / s->p->init.groups;
    NodeId channel = along(s, 3), divisor = i32_constant(s, out);
    NodeId in_group = graph_op2(g, OP_mod, along(s, 0), divisor);
    NodeId at = graph_op2(g, OP_eq, in_group, channel);
    for (int axis = 1; axis <= 2; axis++) {
        NodeId centre = i32_constant(s, dim[axis] / 2);
        centre = graph_op2(g, OP_eq, along(s, axis), centre);
        at = graph_op2(g, OP_and, at, centre);
    }
    return graph_cast(g, at, F32);
}

// The identity filters, and these numbers in the others.
static NodeId dirac_or(const Start *s, NodeId random) {
    NodeId dirac = dirac_values(s);
    return graph_op3(s->g, OP_select, dirac_filter(s), dirac, random);
}

static NodeId reduced(const Start *s, Op op, NodeId x) {
    static const int64_t all[] = {0, 1, 2, 3};
    return graph_reduce(s->g, op, x, 4, all);
}

static NodeId mean_of(const Start *s, NodeId x) {
    double count = (double)type_count(&s->p->type);
    NodeId divisor = number(s, count);
    return graph_op2(s->g, OP_div, reduced(s, OP_sum, x), divisor);
}

// The default's numbers plus the identity, rescaled to the default's mean and
// standard deviation.
static NodeId add_dirac(const Start *s, NodeId random) {
    Graph *g = s->g;
    NodeId sum = graph_op2(g, OP_add, random, dirac_values(s));
    NodeId ratio = reduced(s, OP_var, sum);
    ratio = graph_op2(g, OP_div, reduced(s, OP_var, random), ratio);
    NodeId centred = graph_op2(g, OP_sub, sum, mean_of(s, sum));
    NodeId scaled = graph_op2(g, OP_mul, centred, graph_op1(g, OP_sqrt, ratio));
    return graph_op2(g, OP_add, scaled, mean_of(s, random));
}

// Orthonormal rows, or columns if there are more rows, of a uniformly random
// orthogonal matrix; a weight [K, ...] has K rows.
static NodeId orthogonal_values(const Start *s, double gain) {
    Type t = s->p->type;
    int64_t view[] = {t.dim[0], type_count(&t) / t.dim[0]};
    NodeId random = graph_reshape(s->g, normal_values(s, 0, 1), 2, view);
    NodeId q = graph_op1(s->g, OP_orthogonal, random);
    q = graph_reshape(s->g, q, t.rank, t.dim);
    return graph_op2(s->g, OP_mul, q, number(s, gain));
}

NodeId initial_values(Graph *g, NodeId seed, NodeId epoch, const Parameter *p) {
    Start s = {g, seed, epoch, p};
    double low = p->init.low, high = p->init.high;
    switch (p->init.kind) {
    case INIT_CONSTANT:
        break;
    case INIT_UNIFORM:
        return uniform_values(&s, low, high);
    case INIT_NORMAL:
        return normal_values(&s, low, high);
    case INIT_DIRAC:
        return dirac_or(&s, uniform_values(&s, low, high));
    case INIT_WHITENING:
        return whitening_values(g, p);
    case INIT_ORTHOGONAL:
        return orthogonal_values(&s, high);
    case INIT_ADD_DIRAC:
        return add_dirac(&s, uniform_values(&s, low, high));
    case INIT_LITERAL:
        return graph_broadcast(
            g, graph_values(g, p->init.literal->type, p->init.literal->number),
            &p->type);
    }
    return graph_constant(g, p->type, low);
}
