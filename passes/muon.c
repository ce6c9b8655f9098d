// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural
// networks", 2024): the momentum of a matrix is replaced by the nearest
// orthogonal one.
//
// Newton-Schulz iterations find it with products only: X := a X + (b A + c A A)
// X with A = X X', which leaves the singular vectors and moves the singular
// values towards 1.  As the products are contractions, they are done in the
// recipe's type.  Filters [K, R, S, C] are matrices of K rows.  With the term a
// as a multiple of the identity beside b A + c A A, an iteration is three
// products and one kernel.
//
// Matrices go through the iterations together, one after the other in one
// tensor.  Rows and columns of zeros stay zeros and change nothing else, so
// those of different sizes can too: where the arithmetic that this adds takes
// less time than the launches that it saves.

#include "base/round_up.h"
#include "passes/update.h"

#include <math.h>

// Matrices that go together.
typedef struct {
    int first, last; // of its updates, a list through next
    int count;
    int64_t rows, columns; // of the largest, in multiples of 8 for vectors and
                           // tensor cores
} Batch;

typedef struct {
    Update *u;
    NodeId *matrix; // to be made orthogonal, for each update
    int *next;      // of the same batch, or -1
    Batch *batch;
    int count;
} Muon;

static NodeId product(Graph *g, NodeId x, NodeId y, int ta, int tb) {
    Attr attr[] = {attr_int(ATTR_ta, ta), attr_int(ATTR_tb, tb)};
    return graph_add(g, (Node){.op = OP_matmul,
                               .num_args = 2,
                               .arg = (NodeId[]){x, y},
                               .num_attrs = 2,
                               .attr = attr,
                               .group = -1});
}

static NodeId scaled(Graph *g, double a, NodeId x) {
    return graph_op2(g, OP_mul, graph_number(g, a), x);
}

// a times the identity of n rows.
static NodeId diagonal(Graph *g, double a, int64_t n) {
    Type square = type_of(I32, 2, (int64_t[]){n, n});
    NodeId column = graph_iota(g, square, 1), row = graph_iota(g, square, 0);
    NodeId here = graph_op2(g, OP_eq, row, column), zero = graph_number(g, 0);
    return graph_op3(g, OP_select, here, graph_number(g, a), zero);
}

static bool is_tall(int64_t rows, int64_t columns) {
    return rows > columns;
}

// One iteration.  Tall matrices use X' X, which is smaller, from the right.
static NodeId iterate(Graph *g, NodeId x, const double *c) {
    Type t = *g->node[x].type;
    bool tall = is_tall(t.dim[1], t.dim[2]);
    NodeId A = product(g, x, x, tall, !tall);
    NodeId B = scaled(g, c[2], product(g, A, A, 0, 0));
    B = graph_op2(g, OP_add, scaled(g, c[1], A), B);
    B = graph_op2(g, OP_add, diagonal(g, c[0], tall ? t.dim[2] : t.dim[1]), B);
    return tall ? product(g, x, B, 0, 0) : product(g, B, x, 0, 0);
}

// ---- batches ----

static double flops(int64_t rows, int64_t columns, int count, int64_t times) {
    double r = (double)(rows < columns ? rows : columns);
    double c = (double)(rows < columns ? columns : rows);
    return (double)times * count * (4 * r * r * c + 2 * r * r * r);
}

static int64_t iterations(const Update *u) {
    return node_int(&u->from, ATTR_iterations, 5);
}

static bool same_recipe(const Update *x, const Update *y) {
    const Attr *a = node_attr(&x->from, ATTR_coefficients);
    const Attr *b = node_attr(&y->from, ATTR_coefficients);
    for (int i = 0; i < 3; i++)
        if (a->floats[i] != b->floats[i])
            return false;
    return iterations(x) == iterations(y);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// The saving of joining two batches, in flops.  A launch takes some five
// microseconds; the larger GPUs do that many flops meanwhile.
static double gain(const Muon *m, const Batch *x, const Batch *y) {
    const double launch = 5e8;
    const Update *u = &m->u[x->first];
    int64_t times = iterations(u);
    if (!same_recipe(u, &m->u[y->first]) ||
        is_tall(x->rows, x->columns) != is_tall(y->rows, y->columns))
        return 0;
    double before = flops(x->rows, x->columns, x->count, times) +
                    flops(y->rows, y->columns, y->count, times);
    double after =
        flops(larger(x->rows, y->rows), larger(x->columns, y->columns),
              x->count + y->count, times);
    return (double)(4 * times + 1) * launch - (after - before);
}

static void batch_join(Muon *m, Batch *to, const Batch *from) {
    m->next[to->last] = from->first;
    to->last = from->last;
    to->count += from->count;
    to->rows = larger(to->rows, from->rows);
    to->columns = larger(to->columns, from->columns);
}

// Adds a batch, to one of its size where there is such.
static void batch_add(Muon *m, Batch own) {
    for (int i = 0; i < m->count; i++) {
        Batch *b = &m->batch[i];
        if (b->rows == own.rows && b->columns == own.columns &&
            same_recipe(&m->u[b->first], &m->u[own.first])) {
            batch_join(m, b, &own);
            return;
        }
    }
    m->batch[m->count++] = own;
}

// Joins the two batches that gain most; false when none do.
static bool batches_join(Muon *m) {
    double most = 0;
    int to = -1, from = -1;
    for (int i = 0; i < m->count; i++)
        for (int j = i + 1; j < m->count; j++) {
            double saved = gain(m, &m->batch[i], &m->batch[j]);
            if (saved > most) {
                most = saved;
                to = i;
                from = j;
            }
        }
    if (to < 0)
        return false;
    batch_join(m, &m->batch[to], &m->batch[from]);
    m->batch[from] = m->batch[--m->count];
    return true;
}

static void find_batches(Muon *m, int updates) {
    for (int i = 0; i < updates; i++) {
        Type t = *m->u[i].g->node[m->matrix[i]].type;
        m->next[i] = -1;
        batch_add(m,
                  (Batch){.first = i,
                          .last = i,
                          .count = 1,
                          .rows = round_up(t.dim[0], 8),
                          .columns = round_up(type_count(&t) / t.dim[0], 8)});
    }
    while (batches_join(m))
        continue;
}

// ---- a batch ----

// The matrix with norm 1.
static NodeId normalized(Update *u, NodeId d) {
    NodeId size = update_norm(u, d);
    size = update_op2(u, OP_add, size, update_setting(u, ATTR_eps));
    return update_op2(u, OP_div, d, size);
}

static NodeId stack(const Muon *m, const Batch *b) {
    Graph *g = m->u[b->first].g;
    NodeId *arg = ARENA_ARRAY(g->arena, (size_t)b->count, NodeId);
    int count = 0;
    for (int i = b->first; i >= 0; i = m->next[i]) {
        g->origin = m->u[i].from.from;
        arg[count++] = normalized(&m->u[i], m->matrix[i]);
    }
    return graph_stack(g, arg, count, b->rows, b->columns);
}

// Matrix number `index` of a stack, with the shape of a parameter.
static NodeId unstack(Graph *g, NodeId x, int index, Type t) {
    Type all = *g->node[x].type;
    int64_t columns = type_count(&t) / t.dim[0];
    int64_t low[] = {index, 0, 0};
    int64_t high[] = {all.dim[0] - 1 - index, all.dim[1] - t.dim[0],
                      all.dim[2] - columns};
    return graph_reshape(g, graph_slice(g, x, low, high), t.rank, t.dim);
}

// The parameter, or scaled so that its rows have norm 1 on average.
static NodeId renormalized(Update *u) {
    double rows = (double)u->g->node[u->param].type->dim[0];
    if (!node_int(&u->from, ATTR_renormalize, 0))
        return u->param;
    NodeId want = update_number(u, sqrt(rows));
    NodeId size = update_norm(u, u->param);
    NodeId ratio = update_op2(u, OP_div, want, size);
    ratio = update_unless_zero(u, size, want, ratio);
    return update_op2(u, OP_mul, u->param, ratio);
}

static void update_batch(const Muon *m, const Batch *b) {
    Update *u = &m->u[b->first];
    const double *c = node_attr(&u->from, ATTR_coefficients)->floats;
    NodeId x = stack(m, b);
    for (int64_t i = 0; i < iterations(u); i++)
        x = iterate(u->g, x, c);
    int index = 0;
    for (int i = b->first; i >= 0; i = m->next[i]) {
        u = &m->u[i];
        u->g->origin = u->from.from;
        NodeId d = unstack(u->g, x, index++, *u->g->node[u->param].type);
        NodeId decay = update_in(u, "weight_decay");
        update_descend(u, update_shrink(u, renormalized(u), decay), u->rate, d);
    }
}

void update_muon(Update *u, int count, Arena *scratch) {
    Muon m = {.u = u,
              .matrix = ARENA_ARRAY(scratch, (size_t)count + 1, NodeId),
              .next = ARENA_ARRAY(scratch, (size_t)count + 1, int),
              .batch = ARENA_ARRAY(scratch, (size_t)count + 1, Batch)};
    for (int i = 0; i < count; i++) {
        u[i].g->origin = u[i].from.from;
        m.matrix[i] = update_accelerate(&u[i], u[i].gradient);
    }
    find_batches(&m, count);
    for (int i = 0; i < m.count; i++)
        update_batch(&m, &m.batch[i]);
}
