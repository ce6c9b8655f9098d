// Sizes: the pass kernel-sizes makes parameters of the sizes in which kernels
// differ, so that the host compiles one function for all of them.
//
// Layers of one kind repeat with other rows and columns.  Kernels that differ
// in sizes only are a family.  Its first kernel declares the differing sizes,
// as `const int size0 = SIZE(0, 64)`.  On the host, SIZE is a parameter;
// vectors are equally wide for any multiple of 64 columns.  On a GPU it is the
// number: each kernel has its own text there, because constant sizes make it
// faster.

#include "codegen/kernel/sizes.h"

enum { LEAST_SIZE = 64 }; // smaller ones may bound unrolled loops

// ---- the sizes of a kernel ----

// The constant of that name if it is a size, or NULL.
static const Constant *size_named(const Sizes *z, const Expr *x) {
    for (int i = 0; i < z->names && x->kind == X_NAME; i++)
        if (is_named(x, z->name[i]->name))
            return z->name[i];
    return NULL;
}

static bool is_size(const Sizes *z, const Expr *x) {
    return x->kind == X_SIZE || x->kind == X_STREAM || x->kind == X_CONSTANT ||
           size_named(z, x) != NULL;
}

static Size size_of(const Sizes *z, const Expr *x) {
    const Constant *c = size_named(z, x);
    if (c == NULL)
        return (Size){x->kind, x->integer, x->real, LITERAL};
    if (c->value->kind != X_OP)
        return (Size){X_SIZE, c->value->integer, 0, CONSTANT};
    c = size_named(z, c->value->arg[0]);
    return (Size){X_SIZE, c->value->integer, 0, QUOTIENT};
}

// Whether the size may differ within a family: an int above unrolled loops.
static bool may_differ(const Size *s) {
    return s->kind == X_CONSTANT || s->form != LITERAL ||
           (s->integer >= LEAST_SIZE && s->integer <= INT32_MAX);
}

// Finds the constants that are sizes: their number or the constant that they
// divide is one.
static void find_names(Sizes *z, const Block *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        for (int i = 0; i < s->num_constants && z->names < MAX_NAMES; i++) {
            const Constant *c = &s->constant[i];
            if (c->sized && (c->value->kind == X_OP
                                 ? size_named(z, c->value->arg[0]) != NULL
                                 : c->value->integer <= INT32_MAX))
                z->name[z->names++] = c;
        }
}

typedef struct {
    Arena *a, *scratch;
    Sizes *sizes;
} Taking;

// Takes a size out of a tree: those that may differ look the same.
static const Expr *size_take(void *context, const Expr *x) {
    const Taking *t = context;
    Expr *same = x_new(t->scratch, (Expr){.kind = x->kind, .node = NO_NODE});
    if (x->kind == X_GPU)
        return same;
    if (!is_size(t->sizes, x))
        return x;
    Size s = size_of(t->sizes, x);
    ARENA_APPEND(t->a, t->sizes->size, t->sizes->count, s);
    same->kind = s.kind;
    same->name = s.form == QUOTIENT ? "/" : may_differ(&s) ? "size" : NULL;
    same->integer = may_differ(&s) ? 0 : s.integer;
    return same;
}

// ---- families ----

Families families_new(Arena *a, Arena *scratch, int most) {
    return (Families){.a = a, .first = map_new(scratch, most)};
}

static bool size_equal(const Size *x, const Size *y) {
    return x->integer == y->integer && x->real == y->real;
}

static bool same_sizes(const SizedKernel *x, const SizedKernel *y) {
    for (int i = 0; i < x->sizes.count; i++)
        if (!size_equal(&x->sizes.size[i], &y->sizes.size[i]))
            return false;
    return true;
}

// The entry of a kernel in the map, by the key of its tree without sizes.
static void **families_at(Families *f, SizedKernel *k) {
    Arena *scratch = arena_new();
    Text key = text_new(scratch);
    Tree same = *k->tree;
    Numbers numbers = {NULL, 0};
    Taking t = {f->a, scratch, &k->sizes};
    find_names(&k->sizes, &same.body);
    same.body = block_rewrite(scratch, &same.body, size_take, &t);
    tree_key(scratch, &key, &same, &numbers, &k->sizes);
    void **first = map_at(&f->first, text_string(&key));
    arena_free(scratch);
    return first;
}

SizedKernel *families_add(Families *f, Tree *tree) {
    SizedKernel *k = ARENA_NEW(f->a, SizedKernel), *last = NULL;
    *k =
        (SizedKernel){.name = tree->name, .tree = tree, .first = k, .equal = k};
    void **first = families_at(f, k);
    if (*first == NULL) {
        *first = k;
        ARENA_APPEND(f->a, f->family, f->count, k);
        return k;
    }
    k->first = *first;
    for (SizedKernel *x = k->first; x != NULL; x = x->next) {
        if (same_sizes(x, k)) {
            k->equal = x;
            return k;
        }
        last = x;
    }
    last->next = k;
    return k;
}

// ---- parameters ----

// The sizes that become parameters.
typedef struct {
    int *size, count; // of each the first such size of a kernel
    int *parameter;   // of each size, or -1
} Parameters;

// Whether sizes i and j are equal in each kernel of the family.
static bool sizes_agree(const SizedKernel *first, int i, int j) {
    for (const SizedKernel *k = first; k != NULL; k = k->next)
        if (!size_equal(&k->sizes.size[i], &k->sizes.size[j]))
            return false;
    return first->sizes.size[i].kind == first->sizes.size[j].kind;
}

static bool size_differs(const SizedKernel *first, int i) {
    for (const SizedKernel *k = first->next; k != NULL; k = k->next)
        if (!size_equal(&k->sizes.size[i], &first->sizes.size[i]))
            return true;
    return false;
}

static Parameters find_parameters(Arena *a, const SizedKernel *first) {
    size_t most = (size_t)first->sizes.count + 1;
    Parameters p = {ARENA_ARRAY(a, most, int), 0, ARENA_ARRAY(a, most, int)};
    for (int i = 0; i < first->sizes.count; i++) {
        int k = 0;
        p.parameter[i] = -1;
        if (!size_differs(first, i))
            continue;
        while (k < p.count && !sizes_agree(first, i, p.size[k]))
            k++;
        p.parameter[i] = k;
        if (k == p.count)
            p.size[p.count++] = i;
    }
    return p;
}

static const Expr *parameter_name(Arena *a, const Size *s, int number) {
    const char *stem = s->kind == X_CONSTANT ? "constant"
                       : s->kind == X_STREAM ? "stream"
                                             : "size";
    return x_name(a, arena_format(a, "%s%d", stem, number));
}

static const Expr *size_value(Arena *a, const Size *s) {
    return s->kind == X_CONSTANT ? x_constant(a, s->real)
                                 : x_number(a, s->integer);
}

typedef struct {
    Arena *a;
    const Sizes *sizes;
    const Parameters *parameters;
    int next; // index of the next size
} Replacing;

// The parameter that replaces a size.
static const Expr *size_replace(void *context, const Expr *x) {
    Replacing *r = context;
    if (!is_size(r->sizes, x))
        return x;
    const Size *s = &r->sizes->size[r->next];
    int parameter = r->parameters->parameter[r->next++];
    if (parameter < 0)
        return x;
    const Expr *name = parameter_name(r->a, s, parameter);
    return s->form == QUOTIENT ? expr(r->a, "$ / VW", name) : name;
}

static void tree_parametrize(const SizedKernel *k, const Parameters *p) {
    Arena *a = k->tree->arena;
    Replacing r = {a, &k->sizes, p, 0};
    Block body = {NULL, NULL};
    for (int i = 0; i < p->count; i++) {
        const Size *s = &k->sizes.size[p->size[i]];
        code(a, &body, NO_NODE,
             s->kind == X_CONSTANT ? "const float $ = CONSTANT($, $);"
                                   : "const int $ = SIZE($, $);",
             parameter_name(a, s, i), x_number(a, i), size_value(a, s));
    }
    Block rest = block_rewrite(a, &k->tree->body, size_replace, &r);
    block_append(&body, &rest);
    k->tree->body = body;
}

void family_parametrize(Arena *a, SizedKernel *first) {
    Arena *scratch = arena_new();
    Parameters p = find_parameters(scratch, first);
    for (SizedKernel *k = first; k != NULL; k = k->next) {
        Expr *values = x_list(a, p.count);
        for (int i = 0; i < p.count; i++)
            list_add(values, size_value(a, &k->sizes.size[p.size[i]]));
        k->values = values;
    }
    tree_parametrize(first, &p);
    arena_free(scratch);
}

void kernels_parametrize(Arena *a, Tree *tree, int count) {
    Families f = families_new(a, a, count);
    SizedKernel **own = ARENA_ARRAY(a, (size_t)count + 1, SizedKernel *);
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
