// Parametrization: the pass kernel-parametrize makes parameters of the numbers
// in which kernels differ, so that the host compiles one function for all of
// them, as LLVM's GlobalMergeFunctions does.
//
// Layers of one kind repeat with other rows and columns.  Their sizes are
// specialization constants, SPIR-V's word, as are numbers of random streams and
// float factors.  Kernels that differ in these only are a family.  Its first
// kernel declares those that differ, as `const int size0 = SPEC_INT(0, 64)`. On
// the host, SPEC_INT is a parameter; vectors are equally wide for any multiple
// of 64 columns.  On a GPU it is the number: each kernel has its own text
// there, because constant sizes make it faster.

#include "codegen/kernel/parametrize.h"

enum { LEAST = 64 }; // smaller integers may bound unrolled loops

// ---- the specialization constants of a kernel ----

// The enumerator of that name if it is one, or NULL.
static const Enumerator *spec_named(const SpecConstants *z, const Expr *x) {
    for (int i = 0; i < z->names && x->kind == X_NAME; i++)
        if (is_named(x, z->name[i]->name))
            return z->name[i];
    return NULL;
}

static bool is_spec(const SpecConstants *z, const Expr *x) {
    return x->kind == X_SIZE || x->kind == X_STREAM || x->kind == X_CONSTANT ||
           spec_named(z, x) != NULL;
}

static SpecConstant spec_of(const SpecConstants *z, const Expr *x) {
    const Enumerator *c = spec_named(z, x);
    if (c == NULL)
        return (SpecConstant){x->kind, x->integer, x->real, LITERAL};
    if (c->value->kind != X_OP)
        return (SpecConstant){X_SIZE, c->value->integer, 0, ENUMERATOR};
    c = spec_named(z, c->value->arg[0]);
    return (SpecConstant){X_SIZE, c->value->integer, 0, QUOTIENT};
}

// Whether the number may differ within a family: an int above unrolled loops.
static bool may_differ(const SpecConstant *s) {
    return s->kind == X_CONSTANT || s->form != LITERAL ||
           (s->integer >= LEAST && s->integer <= INT32_MAX);
}

// Finds the enumerators that are specialization constants: their number or the
// enumerator that they divide is one.
static void find_names(SpecConstants *z, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        for (int i = 0; i < s->num_enumerators && z->names < MAX_NAMES; i++) {
            const Enumerator *c = &s->enumerator[i];
            if (c->spec && (c->value->kind == X_OP
                                ? spec_named(z, c->value->arg[0]) != NULL
                                : c->value->integer <= INT32_MAX))
                z->name[z->names++] = c;
        }
}

typedef struct {
    Arena *a, *scratch;
    SpecConstants *specs;
} Taking;

// Takes a specialization constant out of a tree: those that may differ look the
// same.
static const Expr *spec_take(void *context, const Expr *x) {
    const Taking *t = context;
    Expr *same = x_new(t->scratch, (Expr){.kind = x->kind, .node = NO_NODE});
    if (x->kind == X_GPU_ONLY)
        return same;
    if (!is_spec(t->specs, x))
        return x;
    SpecConstant s = spec_of(t->specs, x);
    ARENA_APPEND(t->a, t->specs->spec, t->specs->count, s);
    same->kind = s.kind;
    same->name = s.form == QUOTIENT ? "/" : may_differ(&s) ? "spec" : NULL;
    same->integer = may_differ(&s) ? 0 : s.integer;
    return same;
}

// ---- families ----

Families families_new(Arena *a, Arena *scratch, int most) {
    return (Families){.a = a, .first = map_new(scratch, most)};
}

static bool spec_equal(const SpecConstant *x, const SpecConstant *y) {
    return x->integer == y->integer && x->real == y->real;
}

static bool same_specs(const FamilyKernel *x, const FamilyKernel *y) {
    for (int i = 0; i < x->specs.count; i++)
        if (!spec_equal(&x->specs.spec[i], &y->specs.spec[i]))
            return false;
    return true;
}

// The entry of a kernel in the map, by the key of its tree without
// specialization constants.
static void **families_at(Families *f, FamilyKernel *k) {
    Arena *scratch = arena_new();
    Text key = text_new(scratch);
    Tree same = *k->tree;
    Numbers numbers = {NULL, 0};
    Taking t = {f->a, scratch, &k->specs};
    find_names(&k->specs, &same.body);
    same.body = stmts_rewrite(scratch, &same.body, spec_take, &t);
    tree_key(scratch, &key, &same, &numbers, &k->specs);
    void **first = map_at(&f->first, text_string(&key));
    arena_free(scratch);
    return first;
}

FamilyKernel *families_add(Families *f, Tree *tree) {
    FamilyKernel *k = ARENA_NEW(f->a, FamilyKernel), *last = NULL;
    *k = (FamilyKernel){
        .name = tree->name, .tree = tree, .first = k, .equal = k};
    void **first = families_at(f, k);
    if (*first == NULL) {
        *first = k;
        ARENA_APPEND(f->a, f->family, f->count, k);
        return k;
    }
    k->first = *first;
    for (FamilyKernel *x = k->first; x != NULL; x = x->next) {
        if (same_specs(x, k)) {
            k->equal = x;
            return k;
        }
        last = x;
    }
    last->next = k;
    return k;
}

// ---- parameters ----

// The specialization constants that become parameters.
typedef struct {
    int *spec, count; // of each the first such number of a kernel
    int *parameter;   // of each specialization constant, or -1
} Parameters;

// Whether numbers i and j are equal in each kernel of the family.
static bool specs_agree(const FamilyKernel *first, int i, int j) {
    for (const FamilyKernel *k = first; k != NULL; k = k->next)
        if (!spec_equal(&k->specs.spec[i], &k->specs.spec[j]))
            return false;
    return first->specs.spec[i].kind == first->specs.spec[j].kind;
}

static bool spec_differs(const FamilyKernel *first, int i) {
    for (const FamilyKernel *k = first->next; k != NULL; k = k->next)
        if (!spec_equal(&k->specs.spec[i], &first->specs.spec[i]))
            return true;
    return false;
}

static Parameters find_parameters(Arena *a, const FamilyKernel *first) {
    size_t most = (size_t)first->specs.count + 1;
    Parameters p = {ARENA_ARRAY(a, most, int), 0, ARENA_ARRAY(a, most, int)};
    for (int i = 0; i < first->specs.count; i++) {
        int k = 0;
        p.parameter[i] = -1;
        if (!spec_differs(first, i))
            continue;
        while (k < p.count && !specs_agree(first, i, p.spec[k]))
            k++;
        p.parameter[i] = k;
        if (k == p.count)
            p.spec[p.count++] = i;
    }
    return p;
}

static const Expr *parameter_name(Arena *a, const SpecConstant *s, int number) {
    const char *stem = s->kind == X_CONSTANT ? "constant"
                       : s->kind == X_STREAM ? "stream"
                                             : "size";
    return x_name(a, arena_format(a, "%s%d", stem, number));
}

static const Expr *spec_value(Arena *a, const SpecConstant *s) {
    return s->kind == X_CONSTANT ? x_constant(a, s->real)
                                 : x_number(a, s->integer);
}

typedef struct {
    Arena *a;
    const SpecConstants *specs;
    const Parameters *parameters;
    int next; // index of the next specialization constant
} Replacing;

// The parameter that replaces a specialization constant.
static const Expr *spec_replace(void *context, const Expr *x) {
    Replacing *r = context;
    if (!is_spec(r->specs, x))
        return x;
    const SpecConstant *s = &r->specs->spec[r->next];
    int parameter = r->parameters->parameter[r->next++];
    if (parameter < 0)
        return x;
    const Expr *name = parameter_name(r->a, s, parameter);
    return s->form == QUOTIENT ? expr(r->a, "$ / VW", name) : name;
}

static void tree_parametrize(const FamilyKernel *k, const Parameters *p) {
    Arena *a = k->tree->arena;
    Replacing r = {a, &k->specs, p, 0};
    Stmts body = {NULL, NULL};
    for (int i = 0; i < p->count; i++) {
        const SpecConstant *s = &k->specs.spec[p->spec[i]];
        code(a, &body, NO_NODE,
             s->kind == X_CONSTANT ? "const float $ = SPEC_FLOAT($, $);"
                                   : "const int $ = SPEC_INT($, $);",
             parameter_name(a, s, i), x_number(a, i), spec_value(a, s));
    }
    Stmts rest = stmts_rewrite(a, &k->tree->body, spec_replace, &r);
    stmts_append(&body, &rest);
    k->tree->body = body;
}

void family_parametrize(Arena *a, FamilyKernel *first) {
    Arena *scratch = arena_new();
    Parameters p = find_parameters(scratch, first);
    for (FamilyKernel *k = first; k != NULL; k = k->next) {
        Expr *values = x_list(a, p.count);
        for (int i = 0; i < p.count; i++)
            list_add(values, spec_value(a, &k->specs.spec[p.spec[i]]));
        k->values = values;
    }
    tree_parametrize(first, &p);
    arena_free(scratch);
}

void kernels_parametrize(Arena *a, Tree *tree, int count) {
    Families f = families_new(a, a, count);
    FamilyKernel **own = ARENA_ARRAY(a, (size_t)count + 1, FamilyKernel *);
    for (int i = 0; i < count; i++)
        own[i] = families_add(&f, &tree[i]);
    for (int i = 0; i < f.count; i++)
        if (f.family[i]->next != NULL)
            family_parametrize(a, f.family[i]);
    for (int i = 0; i < count; i++) {
        bool shares = own[i]->first->next != NULL || own[i]->equal != own[i];
        tree[i].function = shares ? own[i]->first->name : NULL;
        tree[i].values = own[i]->equal->values;
    }
}
