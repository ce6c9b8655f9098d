// Library fusions: finds the kernels that a library call can do.
//
// The search starts at the statistics of a convolution's result.  Evaluating
// expressions at a few points (probe.c) tells whether the next kernel is
// batch_norm and relu, and whether a reduction of the gradient is their
// backward pass.

#include "passes/plan/library_fusion.h"

#include "base/round_up.h"
#include "passes/plan/probe.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Graph *g;
    Arena *a;
    const Group *group;
    int num_groups;
    const int *owner; // of each node: which group, or -1
    Readers readers;
    bool *is_output; // of each node: whether it is a result of the graph
    int *number;  // of each var that only var_finalize reads; else -1
    LibraryFusions *fusions;
} Search;

// A call may leave sums of squares for a var only if all its readers know.
static int *find_numbers(const Graph *g, Arena *a) {
    enum { UNREAD = -2, READ = -1 };
    int *number = ARENA_UNINIT(a, g->count, int);
    NodeId *base = ARENA_UNINIT(a, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool view = (op_info[d->op].traits & VIEW) && d->group < 0;
        number[n] = UNREAD;
        base[n] = view ? base[d->arg[0]] : n;
        for (int i = 0; i < d->num_args; i++) {
            int *of = &number[base[d->arg[i]]];
            if (d->op == OP_var_finalize && i == 0 && *of != READ)
                *of = (int)node_int(d, ATTR_number, READ);
            else
                *of = READ;
        }
    }
    return number;
}

static Search search_new(const Graph *g, const Group *group, int count,
                         Arena *a, LibraryFusions *fusions) {
    Search s = {.g = g,
                .a = a,
                .group = group,
                .num_groups = count,
                .fusions = fusions};
    s.owner = group_owners(g, group, count, a);
    s.readers = group_readers(g, group, count, a);
    s.is_output = ARENA_ARRAY(a, g->count, bool);
    s.number = find_numbers(g, a);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output)
            s.is_output[node_base(g, g->node[n].arg[0])] = true;
    return s;
}

static bool reads(const Group *group, NodeId n) {
    for (int i = 0; i < group->num_inputs; i++)
        if (group->input[i] == n)
            return true;
    return false;
}

// ---- calls ----

// The call that a group is, or NO_NODE.
static NodeId call_of(const Search *s, int k) {
    const Group *group = &s->group[k];
    return group->kind == GROUP_CALL ? group_first(s->g, group, CALLS)
                                     : NO_NODE;
}

// The call of operation op that computes n, if n is all that it leaves;
// NO_NODE otherwise.
static NodeId computed_by(const Search *s, NodeId n, Op op) {
    if (s->owner[n] < 0 || graph_node(s->g, n)->op != op)
        return NO_NODE;
    return call_of(s, s->owner[n]) == n ? n : NO_NODE;
}

static bool is_images(Type t) {
    return t.dtype == ACT && t.rank == 4 && t.dim[3] % 8 == 0;
}

// Whether the library has fusions for a convolution or one of its gradients,
// given the type of its weight.
static bool fits(const Search *s, NodeId call) {
    const Node *d = graph_node(s->g, call);
    bool weight = d->op == OP_conv_grad_weight;
    Type w = *(weight ? d : graph_node(s->g, d->arg[1]))->type;
    Type other = *(weight ? graph_node(s->g, d->arg[1]) : d)->type;
    int64_t window = w.dim[1], stride = node_ints(d, ATTR_stride, 0, 1);
    return is_images(*graph_node(s->g, d->arg[0])->type) && is_images(other) &&
           node_int(d, ATTR_groups, 1) == 1 && w.dim[2] == window &&
           (window == 1 || window == 3 || window == 5) &&
           node_ints(d, ATTR_stride, 1, 1) == stride && stride <= 2 &&
           node_ints(d, ATTR_dilation, 0, 1) == 1 &&
           node_ints(d, ATTR_dilation, 1, 1) == 1 &&
           !node_int(d, ATTR_accumulate, 0);
}

// ---- points ----

enum { X, SUM, VAR, SCALE, BIAS, Y, DY, NUM_VALUES };

typedef struct {
    Probe of[NUM_VALUES];
    double normal[PROBE_POINTS]; // (x - mean) / deviation
    double result[PROBE_POINTS]; // of batch_norm
} Points;

// An element of each tensor of a batch_norm at points where it is above and
// below 0.
static Points points_of(const Search *s, const Norm *norm) {
    static const double x[PROBE_POINTS] = {0.7,  -1.3, 2.1, -0.4,
                                           -2.6, 0.9,  1.7, -1.1};
    Points p;
    const NodeId node[NUM_VALUES] = {norm->x,     norm->sum,  norm->var,
                                     norm->scale, norm->bias, norm->y,
                                     NO_NODE};
    int64_t columns = space_columns(graph_node(s->g, norm->x)->type);
    double rows =
        (double)(type_count(graph_node(s->g, norm->x)->type) / columns);
    for (int i = 0; i < NUM_VALUES; i++)
        p.of[i].node = node[i];
    for (int i = 0; i < PROBE_POINTS; i++) {
        double mean = 0.3 - 0.11 * i, var = 0.5 + 0.23 * i;
        p.of[X].at[i] = x[i];
        p.of[SUM].at[i] = mean * rows;
        p.of[VAR].at[i] = var;
        p.of[SCALE].at[i] = 1.4 - 0.17 * i;
        p.of[BIAS].at[i] = 0.2 + 0.05 * i;
        p.of[DY].at[i] = x[PROBE_POINTS - 1 - i] - 0.35;
        p.normal[i] = (x[i] - mean) / sqrt(var + norm->epsilon);
        p.result[i] = p.normal[i] * p.of[SCALE].at[i] + p.of[BIAS].at[i];
        p.of[Y].at[i] = p.result[i] > 0 ? p.result[i] : 0;
    }
    return p;
}

// ---- statistics ----

static bool reduces_columns(const Search *s, NodeId n, Op op, NodeId x) {
    const Node *d = graph_node(s->g, n);
    return d->op == op && node_base(s->g, d->arg[0]) == x &&
           reduction_kind(s->g, n) == COLUMN_REDUCTION;
}

// A kernel that computes only sum and variance of each channel of a
// convolution's result.
static bool match_statistics(const Search *s, int k, Norm *norm) {
    const Group *group = &s->group[k];
    if (group->kind != GROUP_GRID || group->num_inputs != 1 ||
        group->num_outputs != 2)
        return false;
    NodeId x = group->input[0];
    bool first = graph_node(s->g, group->output[0])->op == OP_sum;
    NodeId sum = group->output[!first], var = group->output[first];
    if (!reduces_columns(s, sum, OP_sum, x) ||
        !reduces_columns(s, var, OP_var, x) ||
        computed_by(s, x, OP_conv) == NO_NODE || !fits(s, x) ||
        s->number[var] < 0)
        return false;
    *norm = (Norm){.x = x,
                   .sum = sum,
                   .var = var,
                   .scale = NO_NODE,
                   .bias = NO_NODE,
                   .y = NO_NODE,
                   .number = s->number[var],
                   .kernel = -1,
                   .bn_params = -1};
    return true;
}

static int64_t bytes_of(const Search *s, NodeId n) {
    return graph_bytes(s->g, graph_node(s->g, n)->type);
}

static LibraryFusion *fusion_add(Search *s, FusionKind kind, NodeId call,
                                 int kernel, int norm) {
    LibraryFusion *fusion = &s->fusions->fusion[s->fusions->count++];
    *fusion = (LibraryFusion){.kind = kind,
                              .call = s->owner[call],
                              .kernel = kernel,
                              .norm = norm,
                              .statistics_of_call = -1,
                              .paired = -1,
                              .d_scale = NO_NODE,
                              .d_bias = NO_NODE};
    return fusion;
}

static void find_statistics(Search *s) {
    for (int k = 0; k < s->num_groups; k++) {
        Norm norm;
        if (!match_statistics(s, k, &norm))
            continue;
        norm.statistics = s->fusions->count;
        LibraryFusion *fusion =
            fusion_add(s, FUSION_statistics, norm.x, k, s->fusions->num_norms);
        fusion->bytes = bytes_of(s, norm.x);
        s->fusions->norm[s->fusions->num_norms++] = norm;
    }
}

// ---- kernels that apply batch_norm and relu ----

// The epsilon with which an expression is batch_norm; negative for none.
static double epsilon_of(const Search *s, int k, NodeId n, const Norm *norm) {
    double value[PROBE_POINTS];
    Points p = points_of(s, norm);
    for (int i = 0; i < PROBE_POINTS; i++) {
        p.of[X].at[i] = p.of[SCALE].at[i] = 1;
        p.of[SUM].at[i] = p.of[BIAS].at[i] = 0;
        p.of[VAR].at[i] = 0;
    }
    if (!probe_eval(s->g, s->group[k].group, n, p.of, Y, value) ||
        !(value[0] > 0))
        return -1;
    return 1 / (value[0] * value[0]);
}

// Whether expression n of group k is the batch_norm with these parameters,
// whose epsilon is filled in.
static bool is_norm(const Search *s, int k, NodeId n, Norm *norm) {
    double value[PROBE_POINTS];
    norm->epsilon = epsilon_of(s, k, n, norm);
    if (norm->epsilon < 0)
        return false;
    Points p = points_of(s, norm);
    return probe_eval(s->g, s->group[k].group, n, p.of, Y, value) &&
           probe_equal(value, p.result);
}

static bool is_row(const Search *s, NodeId n, NodeId like) {
    return type_is(graph_node(s->g, n)->type, graph_node(s->g, like)->type);
}

// A kernel that stores relu of the batch_norm and nothing else.
static bool match_apply(const Search *s, int k, Norm *norm) {
    const Group *group = &s->group[k];
    NodeId other[2];
    int others = 0;
    if (group->kind != GROUP_GRID || group->num_outputs != 1 ||
        group->workspace != NO_NODE || group->num_inputs != 5)
        return false;
    NodeId y = group->output[0], n = y;
    while (graph_node(s->g, n)->op == OP_cast &&
           graph_node(s->g, n)->group >= 0)
        n = graph_node(s->g, n)->arg[0];
    if (graph_node(s->g, n)->op != OP_relu || !is_row(s, y, norm->x))
        return false;
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId in = group->input[i];
        if (in == norm->x || in == norm->sum || in == norm->var)
            continue;
        if (others == 2 || !is_row(s, in, norm->sum))
            return false;
        other[others++] = in;
    }
    for (int swap = 0; swap < 2 && others == 2; swap++) {
        norm->scale = other[swap];
        norm->bias = other[!swap];
        if (is_norm(s, k, graph_node(s->g, n)->arg[0], norm)) {
            norm->y = y;
            norm->kernel = k;
            return true;
        }
    }
    return false;
}

static void find_apply(Search *s, Norm *norm) {
    Norm found = *norm;
    for (int e = s->readers.first[norm->x]; e >= 0; e = s->readers.next[e])
        if (match_apply(s, s->readers.group[e], &found)) {
            *norm = found;
            return;
        }
}

// ---- prologues ----

// The calls that read y, if none but a convolution and its weight's gradient
// do.
static bool only_readers(const Search *s, NodeId y, NodeId *conv,
                         NodeId *weight) {
    *conv = *weight = NO_NODE;
    for (int e = s->readers.first[y]; e >= 0; e = s->readers.next[e]) {
        NodeId call = call_of(s, s->readers.group[e]);
        if (call == NO_NODE || !fits(s, call))
            return false;
        const Node *d = graph_node(s->g, call);
        if (d->op == OP_conv && d->arg[0] == y && *conv == NO_NODE)
            *conv = call;
        else if (d->op == OP_conv_grad_weight && d->arg[1] == y &&
                 d->arg[0] != y && *weight == NO_NODE)
            *weight = call;
        else
            return false;
    }
    return *conv != NO_NODE && !s->is_output[y];
}

static int statistics_on(const Search *s, int call) {
    for (int i = 0; i < s->fusions->num_norms; i++)
        if (s->fusions->fusion[s->fusions->norm[i].statistics].call == call)
            return s->fusions->norm[i].statistics;
    return -1;
}

static void find_prologue(Search *s, int norm) {
    const Norm *n = &s->fusions->norm[norm];
    NodeId conv, weight;
    if (n->y == NO_NODE || !only_readers(s, n->y, &conv, &weight))
        return;
    int at = s->fusions->count;
    LibraryFusion *fusion =
        fusion_add(s, FUSION_prologue, conv, n->kernel, norm);
    fusion->bytes = bytes_of(s, n->x) + bytes_of(s, n->y);
    fusion->statistics_of_call = statistics_on(s, fusion->call);
    if (weight == NO_NODE)
        return;
    fusion->paired = at + 1;
    fusion_add(s, FUSION_prologue_weight, weight, -1, norm)->paired = at;
}

// ---- the backward pass ----

// The data gradient of a convolution that a group reads.
static NodeId gradient_of(const Search *s, const Group *group, NodeId x) {
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId n = group->input[i];
        if (n != x && is_row(s, n, x) &&
            computed_by(s, n, OP_conv_grad_input) != NO_NODE && fits(s, n))
            return n;
    }
    return NO_NODE;
}

// Whether sum `n` of group k is over this at each place.
static bool sums(const Search *s, int k, NodeId n, const Points *p,
                 const double *expected) {
    double value[PROBE_POINTS];
    const Node *d = graph_node(s->g, n);
    return d->op == OP_sum && reduction_kind(s->g, n) == COLUMN_REDUCTION &&
           probe_eval(s->g, s->group[k].group, d->arg[0], p->of, NUM_VALUES,
                      value) &&
           probe_equal(value, expected);
}

// A kernel that sums the gradient where relu passes it, and its product with
// the normalised x, over each channel.
static bool match_reduce(const Search *s, int k, const Norm *norm, NodeId *bias,
                         NodeId *scale, NodeId *dy) {
    const Group *group = &s->group[k];
    if (group->kind != GROUP_GRID || group->num_outputs != 2 ||
        (*dy = gradient_of(s, group, norm->x)) == NO_NODE)
        return false;
    Points p = points_of(s, norm);
    double passed[PROBE_POINTS], product[PROBE_POINTS];
    p.of[DY].node = *dy;
    for (int i = 0; i < PROBE_POINTS; i++) {
        passed[i] = p.result[i] > 0 ? p.of[DY].at[i] : 0;
        product[i] = passed[i] * p.normal[i];
    }
    for (int swap = 0; swap < 2; swap++) {
        *bias = group->output[swap];
        *scale = group->output[!swap];
        if (sums(s, k, *bias, &p, passed) && sums(s, k, *scale, &p, product))
            return true;
    }
    return false;
}

// The values of other tensors, which do not matter.
static int add_others(const Group *group, const Points *p, Probe *given) {
    int count = NUM_VALUES;
    memcpy(given, p->of, sizeof p->of);
    for (int i = 0; i < group->num_inputs; i++) {
        bool known = false;
        for (int j = 0; j < NUM_VALUES; j++)
            known |= given[j].node == group->input[i];
        if (known)
            continue;
        given[count].node = group->input[i];
        for (int j = 0; j < PROBE_POINTS; j++)
            given[count].at[j] = 0.6 + 0.31 * count - 0.07 * j;
        count++;
    }
    return count;
}

// Whether group k leaves the same when the gradient is already 0 where relu
// stops it.
static bool may_be_stopped(const Search *s, int k, const Norm *norm,
                           NodeId dy) {
    const Group *group = &s->group[k];
    Points p = points_of(s, norm);
    p.of[DY].node = dy;
    Probe *given =
        ARENA_ARRAY(s->a, (size_t)group->num_inputs + NUM_VALUES, Probe);
    int count = add_others(group, &p, given);
    for (int i = 0; i < group->num_outputs; i++) {
        double before[PROBE_POINTS], after[PROBE_POINTS];
        NodeId n = group->output[i];
        memcpy(given[DY].at, p.of[DY].at, sizeof p.of[DY].at);
        if (!probe_eval(s->g, group->group, n, given, count, before))
            return false;
        for (int j = 0; j < PROBE_POINTS; j++)
            if (p.result[j] <= 0)
                given[DY].at[j] = 0;
        if (!probe_eval(s->g, group->group, n, given, count, after) ||
            !probe_equal(before, after))
            return false;
    }
    return true;
}

static bool all_may_be_stopped(const Search *s, const Norm *norm, NodeId dy,
                               int but) {
    for (int e = s->readers.first[dy]; e >= 0; e = s->readers.next[e])
        if (s->readers.group[e] != but &&
            !may_be_stopped(s, s->readers.group[e], norm, dy))
            return false;
    return !s->is_output[dy];
}

static void find_backward(Search *s, int norm) {
    Norm *n = &s->fusions->norm[norm];
    NodeId bias, scale, dy;
    for (int e = n->y == NO_NODE ? -1 : s->readers.first[n->x]; e >= 0;
         e = s->readers.next[e]) {
        int k = s->readers.group[e];
        if (!match_reduce(s, k, n, &bias, &scale, &dy) ||
            !all_may_be_stopped(s, n, dy, k))
            continue;
        LibraryFusion *fusion = fusion_add(s, FUSION_backward, dy, k, norm);
        fusion->d_scale = scale;
        fusion->d_bias = bias;
        fusion->bytes = bytes_of(s, dy);
        if (reads(&s->group[k], n->y))
            fusion->bytes += bytes_of(s, n->y);
        return;
    }
}

// ---- all of a graph ----

int64_t bn_param_bytes(int64_t channels) {
    return round_up(4 * channels, ARENA_ALIGNMENT);
}

static void assign_bn_params(const Graph *g, LibraryFusions *fusions) {
    for (int i = 0; i < fusions->count; i++) {
        Norm *norm = &fusions->norm[fusions->fusion[i].norm];
        if (fusions->fusion[i].kind == FUSION_statistics ||
            norm->bn_params >= 0)
            continue;
        norm->bn_params = fusions->bytes;
        fusions->bytes += NUM_BN_PARAMS *
                          bn_param_bytes(space_columns(g->node[norm->x].type));
    }
}

LibraryFusions groups_library_fusions(const Graph *g, const Group *group,
                                      int count, Arena *a) {
    LibraryFusions fusions = {.group = group, .num_groups = count};
    if (g->act != F16)
        return fusions;
    Search s = search_new(g, group, count, a, &fusions);
    fusions.norm = ARENA_ARRAY(a, (size_t)s.num_groups + 1, Norm);
    fusions.fusion =
        ARENA_ARRAY(a, 4 * (size_t)s.num_groups + 1, LibraryFusion);
    find_statistics(&s);
    for (int i = 0; i < fusions.num_norms; i++)
        find_apply(&s, &fusions.norm[i]);
    for (int i = 0; i < fusions.num_norms; i++) {
        find_prologue(&s, i);
        find_backward(&s, i);
    }
    assign_bn_params(g, &fusions);
    return fusions;
}

LibraryFusions graph_library_fusions(const Graph *g, Arena *a) {
    int count;
    const Group *group = graph_groups(g, a, &count);
    return groups_library_fusions(g, group, count, a);
}
