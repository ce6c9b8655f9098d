// Layout: pads contractions for tensor cores, and folds transposes of operands
// and results into matrix products.
//
//   requires   The graph is typed.
//   preserves  Every value stays the same, as zeros add nothing to a sum.  But
//              those that depend on an infinite one may become NaN.
//   result     The last axis of operands and results of contractions of ACT
//              without groups is a multiple of 8: tensor cores load 16 bytes
//              at once.
//
// Operands are padded with zeros, results are sliced.  Then slices leave out
// zeros, so a contraction that reads such a result reads it whole.
#include "passes/passes.h"

enum { MULTIPLE = 8 };

static const int64_t none[MAX_RANK];

// The padding of a contraction's operands and result, at the end of each axis.
typedef struct {
    int64_t arg[2][MAX_RANK], result[MAX_RANK];
} Growth;

static int64_t missing(int64_t dim) {
    return (MULTIPLE - dim % MULTIPLE) % MULTIPLE;
}

// x [N,H,W,C], w [K,R,S,C], y [N,OH,OW,K]; which is operand and which is result
// depends on the operation.
static Growth conv_growth(const Graph *g, const Node *n) {
    Type a = *g->node[n->arg[0]].type, b = *g->node[n->arg[1]].type;
    bool input = n->op == OP_conv_grad_input;
    int64_t ca = missing(a.dim[3]), cb = missing(b.dim[3]);
    if (n->op == OP_conv_grad_weight)
        return (Growth){{{0, 0, 0, ca}, {0, 0, 0, cb}}, {ca, 0, 0, cb}};
    int64_t k = missing(b.dim[0]);
    return (Growth){{{0, 0, 0, ca}, {k, 0, 0, cb}}, {0, 0, 0, input ? cb : k}};
}

// A [...,M,K], B [...,K,N], Y [...,M,N], or transposed.  M and K are padded
// where they are some matrix's last axis; N always is.
static Growth matmul_growth(const Graph *g, const Node *n) {
    Type a = *g->node[n->arg[0]].type;
    bool ta = node_int(n, ATTR_ta, 0), tb = node_int(n, ATTR_tb, 0);
    int row = a.rank - 2, column = a.rank - 1;
    int64_t m = ta ? missing(n->type->dim[row]) : 0;
    int64_t k = !ta || tb ? missing(a.dim[ta ? row : column]) : 0;
    int64_t out = missing(n->type->dim[column]);
    Growth by = {0};
    by.arg[0][row] = ta ? k : m;
    by.arg[0][column] = ta ? m : k;
    by.arg[1][row] = tb ? out : k;
    by.arg[1][column] = tb ? k : out;
    by.result[row] = m;
    by.result[column] = out;
    return by;
}

static bool wants_padding(const Node *n) {
    return n->type->dtype == ACT && node_int(n, ATTR_groups, 1) == 1;
}

// Whether n does nothing but exchange the last two axes.
static bool swaps_last(const Node *n) {
    int rank = n->type->rank;
    if (n->op != OP_transpose || rank < 2)
        return false;
    for (int i = 0; i < rank; i++) {
        int from = i < rank - 2 ? i : 2 * rank - 3 - i;
        if (node_ints(n, ATTR_order, i, 0) != from)
            return false;
    }
    return true;
}

// The matrices that operand a holds transposed, also through a cast, or
// NO_NODE.
static NodeId untransposed(Graph *g, NodeId a) {
    const Node *n = &g->node[a];
    NodeId inner = n->op == OP_cast ? n->arg[0] : a;
    if (!swaps_last(&g->node[inner]))
        return NO_NODE;
    return graph_cast(g, g->node[inner].arg[0], n->type->dtype);
}

// The operands of the node that is added, and whether each is the result of a
// contraction, also in another shape or transposed.
typedef struct {
    NodeId arg[2];
    bool contracted[2];
    Attr attr[2];
} Parts;

// A product reads an operand as it is in memory before it is transposed.
static void untranspose(Graph *g, Node *n, Parts *p) {
    static const AttrKey key[] = {ATTR_ta, ATTR_tb};
    int count = 0;
    for (int i = 0; i < 2; i++) {
        NodeId inner = untransposed(g, p->arg[i]);
        bool flip = inner != NO_NODE;
        if (flip)
            p->arg[i] = inner;
        if ((node_int(n, key[i], 0) != 0) != flip)
            p->attr[count++] = attr_int(key[i], 1);
    }
    n->attr = p->attr;
    n->num_attrs = count;
}

// Whether a is a slice that leaves out so much of the end of each axis.
static bool leaves_out(const Graph *g, NodeId a, const int64_t *by) {
    const Node *n = &g->node[a];
    bool same = n->op == OP_slice;
    for (int i = 0; same && i < n->type->rank; i++)
        same = g->node[n->arg[0]].type->dim[i] == n->type->dim[i] + by[i];
    return same;
}

static bool keeps_last_axis(const Graph *g, const Node *n) {
    Type to = *n->type;
    if (n->op != OP_reshape || to.rank == 0)
        return false;
    Type from = *g->node[n->arg[0]].type;
    return from.rank > 0 && from.dim[from.rank - 1] == to.dim[to.rank - 1];
}

// Pads the last axis of a.  If a is a reshape that keeps this axis, its operand
// is padded, so that the kernel that computes the operand stores it padded.
static NodeId pad_last_axis(Graph *g, NodeId a, bool contracted, int64_t by) {
    Node n = g->node[a];
    Type to = *n.type;
    int64_t high[MAX_RANK] = {0};
    if (keeps_last_axis(g, &n)) {
        to.dim[to.rank - 1] += by;
        NodeId inner = pad_last_axis(g, n.arg[0], contracted, by);
        return graph_reshape(g, inner, to.rank, to.dim);
    }
    high[to.rank - 1] = by;
    return contracted && leaves_out(g, a, high) ? n.arg[0]
                                                : graph_pad(g, a, none, high);
}

// Pads an operand.  The slice of a padded result is read whole instead.
static NodeId pad_operand(Graph *g, NodeId a, bool contracted,
                          const int64_t *by) {
    if (contracted && leaves_out(g, a, by))
        return g->node[a].arg[0];
    int last = g->node[a].type->rank - 1;
    bool only_last = by[last] > 0;
    for (int i = 0; i < last; i++)
        only_last &= by[i] == 0;
    return only_last ? pad_last_axis(g, a, contracted, by[last])
                     : graph_pad(g, a, none, by);
}

static NodeId add_padded(Graph *g, Node n, Parts *p) {
    Growth by = n.op == OP_matmul ? matmul_growth(g, &n) : conv_growth(g, &n);
    for (int i = 0; i < 2; i++)
        p->arg[i] = pad_operand(g, p->arg[i], p->contracted[i], by.arg[i]);
    Type wide = *n.type;
    for (int i = 0; i < wide.rank; i++)
        wide.dim[i] += by.result[i];
    n.type = &wide;
    return graph_slice(g, graph_add(g, n), none, by.result);
}

static bool contracts(const Node *n) {
    return op_info[n->op].traits & CONTRACTS;
}

typedef struct {
    Graph *g;
    const Graph *old;
    NodeId *now;     // the node of g for each of the old graph
    NodeId *product; // that a transpose computes transposed, or NO_NODE
} Layout;

// Whether n is the result of a contraction, also in another shape or
// transposed.
static bool is_contracted(const Graph *g, NodeId n) {
    while (keeps_last_axis(g, &g->node[n]) || swaps_last(&g->node[n]))
        n = g->node[n].arg[0];
    return contracts(&g->node[n]);
}

// Adds contraction n, whose operands are nodes of the old graph.
static NodeId add_contraction(Layout *l, Node n) {
    Parts p = {.arg = {l->now[n.arg[0]], l->now[n.arg[1]]},
               .contracted = {is_contracted(l->old, n.arg[0]),
                              is_contracted(l->old, n.arg[1])}};
    n.arg = p.arg;
    if (n.op == OP_matmul)
        untranspose(l->g, &n, &p);
    return wants_padding(&n) ? add_padded(l->g, n, &p) : graph_add(l->g, n);
}

// Adds a transposed product: (A B)^T is B^T A^T.
static NodeId add_transposed(Layout *l, const Type *type, Node product) {
    NodeId arg[] = {product.arg[1], product.arg[0]};
    Attr attr[] = {attr_int(ATTR_ta, !node_int(&product, ATTR_tb, 0)),
                   attr_int(ATTR_tb, !node_int(&product, ATTR_ta, 0))};
    product.type = type;
    product.arg = arg;
    product.attr = attr;
    product.num_attrs = 2;
    return add_contraction(l, product);
}

// Which nodes anything but products and transposes reads, also behind casts.  A
// product can read its operand transposed, and simplify merges transposes.
static const bool *find_read(const Graph *g, Arena *scratch) {
    bool *read = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        const Node *d = &g->node[n];
        bool other = d->op != OP_matmul && d->op != OP_transpose;
        for (int i = 0; i < d->num_args; i++)
            read[d->arg[i]] |= d->op == OP_cast ? read[n] : other;
    }
    return read;
}

// The product that computes its transpose n itself, or NO_NODE.  Nothing else
// uses it, the result's rows need no padding, and they are several: the
// transpose of one row moves no element.
static NodeId product_of(const Graph *g, const uint32_t *uses, const bool *read,
                         NodeId n) {
    const Node *d = &g->node[n];
    NodeId a = swaps_last(d) ? d->arg[0] : NO_NODE;
    if (a == NO_NODE || g->node[a].op != OP_matmul || uses[a] > 1 || !read[n])
        return NO_NODE;
    int last = d->type->rank - 1;
    bool pads = wants_padding(d) && missing(d->type->dim[last]) > 0;
    return pads || d->type->dim[last - 1] == 1 ? NO_NODE : a;
}

Graph *pass_layout(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Layout l = {graph_like(g), g, graph_map_new(g, scratch),
                graph_map_new(g, scratch)};
    bool *folded = ARENA_ARRAY(scratch, g->count, bool); // such a product
    const uint32_t *uses = graph_uses(g, scratch);
    const bool *read = find_read(g, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        l.product[n] = product_of(g, uses, read, n);
        if (l.product[n] != NO_NODE)
            folded[l.product[n]] = true;
    }
    for (NodeId n = 0; n < g->count; n++) {
        Node *d = &g->node[n];
        l.g->origin = d->from;
        if (l.product[n] != NO_NODE)
            l.now[n] = add_transposed(&l, d->type, g->node[l.product[n]]);
        else if (contracts(d) && !folded[n])
            l.now[n] = add_contraction(&l, *d);
        else if (!folded[n])
            l.now[n] = graph_copy(l.g, g, n, l.now);
    }
    return l.g;
}
