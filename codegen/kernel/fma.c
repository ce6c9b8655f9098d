// Fused multiply-add: a product and a sum of floats become one operation, which
// rounds once.
//
//     const float v1 = a * b;
//     const float v2 = v1 + c;      ->  const float v2 = fma_of(a, b, c);
//     s += d * d;                   ->  s = fma_of(d, d, s);
//
// No compiler does that to kernels, so both devices round as the text says.
//
// A sum takes a product of its own block: one of an outer block is computed
// once for several sums.  It takes the first of two products, a difference the
// second.  It takes a product that has other uses as well, so its value does
// not depend on them: a rematerialized copy of a launch may store other values,
// and has the same bits.  dce.c removes products without uses.
//
// Sums of exact nodes stay as they are: see fma_exact.

#include "codegen/kernel/tree.h"

#include <string.h>

// The innermost declaration of a name so far.  Statements are counted from 1.
typedef struct {
    const Stmt *declared;
    const Stmts *stmts;
    int at, written; // numbers of its declaration and of its last assignment
} Name;

typedef struct {
    Arena *a;
    const bool *exact; // indexed by node, or NULL
    StringMap names;
    int now; // the number of this statement
} Fma;

// ---- names ----

static Name *name_of(Fma *f, const Expr *x) {
    return map_name(&f->names, x, sizeof(Name));
}

static void write_name(void *context, const Expr *x) {
    Fma *f = context;
    if (x->kind == X_NAME)
        name_of(f, x)->written = f->now;
}

// Records the names that s declares or may assign.
static void record(Fma *f, const Stmts *b, Stmt *s) {
    Stmts call = {s, s};
    Stmt *next = s->next;
    if (s->kind == S_DECLARE) {
        Name *name = name_of(f, s->name);
        *name = (Name){s, b, f->now, name->written};
    } else if (s->kind == S_SET) {
        const Expr *name = s->name;
        while (name->count > 0)
            name = name->arg[0];
        write_name(f, name);
    } else if (s->kind == S_CALL) {
        s->next = NULL;
        stmts_visit(&call, write_name, f);
        s->next = next;
    }
}

// ---- products ----

// Whether x is known to be a float: a constant, or a variable or an element of
// an array.
static bool is_float(Fma *f, const Expr *x) {
    while (x->kind == X_INDEX)
        x = x->arg[0];
    if (x->kind != X_NAME)
        return x->kind == X_REAL || x->kind == X_CONSTANT;
    const Stmt *s = name_of(f, x)->declared;
    return s != NULL && strstr(s->type, "float") != NULL;
}

static bool is_product(Fma *f, const Expr *x) {
    return is_operator(x, "*") &&
           (is_float(f, x->arg[0]) || is_float(f, x->arg[1]));
}

// Whether no name in x was assigned after statement `at`.
static bool is_unchanged(Fma *f, const Expr *x, int at) {
    if (x->kind == X_NAME && name_of(f, x)->written > at)
        return false;
    for (int i = 0; i < x->count; i++)
        if (!is_unchanged(f, x->arg[i], at))
            return false;
    return true;
}

// The product that x is or, within b, names; NULL if it is none.
static const Expr *product_of(Fma *f, const Stmts *b, const Expr *x) {
    if (is_product(f, x))
        return x;
    if (x->kind != X_NAME)
        return NULL;
    const Name *name = name_of(f, x);
    const Stmt *s = name->declared;
    if (s == NULL || name->stmts != b || strcmp(s->type, "const float") != 0 ||
        !is_unchanged(f, s->value, name->at))
        return NULL;
    return product_of(f, b, s->value);
}

// ---- sums ----

static const Expr *fma_new(Fma *f, const Expr *x, const Expr *y,
                           const Expr *addend) {
    return expr(f->a, "fma_of($, $, $)", x, y, addend);
}

// Whether x is a number, an entry's number or a variable of an outer block.
static bool is_outer(Fma *f, const Stmts *b, const Expr *x) {
    if (x->kind == X_INDEX)
        return x->arg[0]->kind == X_FIELD;
    return x->kind != X_NAME || name_of(f, x)->stmts != b;
}

// addend - product.  The negation of an outer factor is computed once.
static const Expr *difference_fused(Fma *f, const Stmts *b, const Expr *addend,
                                    const Expr *product) {
    const Expr *x = product->arg[0], *y = product->arg[1];
    if (!is_outer(f, b, x) && is_outer(f, b, y))
        return fma_new(f, x, expr(f->a, "-$", y), addend);
    return fma_new(f, expr(f->a, "-$", x), y, addend);
}

// The fma of the sum or difference x in b; x if it has no product.
static const Expr *sum_fused(Fma *f, const Stmts *b, const Expr *x) {
    bool minus = is_operator(x, "-");
    if ((!minus && !is_operator(x, "+")) || expr_equal(x->arg[0], x->arg[1]))
        return x;
    const Expr *left = product_of(f, b, x->arg[0]);
    const Expr *right = product_of(f, b, x->arg[1]);
    if (minus && right != NULL)
        return difference_fused(f, b, x->arg[0], right);
    if (left != NULL)
        return fma_new(f, left->arg[0], left->arg[1],
                       minus ? expr(f->a, "-$", x->arg[1]) : x->arg[1]);
    return right != NULL ? fma_new(f, right->arg[0], right->arg[1], x->arg[0])
                         : x;
}

static void stmt_fma(Fma *f, const Stmts *b, Stmt *s) {
    bool exact = f->exact != NULL && s->node != NO_NODE && f->exact[s->node];
    bool sets = s->kind == S_SET && strcmp(s->word, "=") == 0;
    if ((s->kind == S_DECLARE && s->value != NULL) || sets) {
        if (!exact)
            s->value = sum_fused(f, b, s->value);
    } else if (s->kind == S_SET && strcmp(s->word, "+=") == 0) {
        const Expr *product = product_of(f, b, s->value);
        if (product == NULL)
            return;
        s->word = "=";
        s->value = fma_new(f, product->arg[0], product->arg[1], s->name);
    }
}

static void statements_fma(Fma *f, Stmts *b) {
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        f->now++;
        stmt_fma(f, b, s);
        record(f, b, s);
        statements_fma(f, &s->body);
        statements_fma(f, &s->other);
    }
}

void stmts_fma(Arena *a, Stmts *b, const bool *exact) {
    Fma f = {a, exact, map_new(a, stmts_names(b)), 0};
    statements_fma(&f, b);
}

// ---- exact nodes ----

// Whether n finds a maximum, compares for equality or makes an integer: a
// rounding of its operand decides the result.
static bool decides(const Graph *g, NodeId n) {
    Op op = g->node[n].op;
    bool integer = !dtype_float(g->node[n].type->dtype);
    return op == OP_eq || op == OP_max || op == OP_floor ||
           (op == OP_cast && integer);
}

// Whether n is what a sum has lost, y - ((x + y) - x): the sum and n round the
// same y.
static bool compensates(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    const Node *rest = d->op == OP_sub ? &g->node[d->arg[1]] : d;
    const Node *sum = rest->op == OP_sub ? &g->node[rest->arg[0]] : d;
    return rest != d && sum->op == OP_add && sum->arg[1] == d->arg[0] &&
           sum->arg[0] == rest->arg[1];
}

// The float operands of nodes that decide, and the values from which they
// follow element by element.  Forward and backward pass must agree on a
// decision, but one kernel may load a product that another computes: the
// gradient of `max` would then find no maximum.  And a variance, whose distance
// from the pivot is 0 for a constant.
bool *fma_exact(Arena *a, const Graph *g) {
    enum { FOLLOWED = POINTWISE | VIEW | INDEXES | STACKS };
    bool *exact = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        const Node *d = &g->node[n];
        bool follows = op_info[d->op].traits & FOLLOWED;
        exact[n] |= d->op == OP_var;
        if (compensates(g, n))
            exact[n] = exact[g->node[d->arg[1]].arg[0]] = true;
        if (!decides(g, n) && !(exact[n] && follows))
            continue;
        for (int i = 0; i < d->num_args; i++)
            exact[d->arg[i]] |= dtype_float(g->node[d->arg[i]].type->dtype);
    }
    return exact;
}
