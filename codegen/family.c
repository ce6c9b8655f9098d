// Family: kernels that differ only in sizes share one function on the host.
//
// Layers of one kind repeat with other rows and columns.  On a GPU each kernel
// has its own text, because constant sizes make it faster.  On the host,
// vectors are equally wide for any multiple of 64 columns.  So the first kernel
// is compiled for its whole family, and takes the differing sizes as
// parameters.

#include "codegen/structural_key.h"

#include <string.h>

// A kernel and its sizes in order.
typedef struct Sized {
    Kernel *kernel;
    struct Sized *next; // next with the same key
    Sizes sizes;
} Sized;

static bool size_equal(const Size *x, const Size *y) {
    return x->whole == y->whole && x->real == y->real;
}

static bool same_sizes(const Sized *x, const Sized *y) {
    for (int i = 0; i < x->sizes.count; i++)
        if (!size_equal(&x->sizes.size[i], &y->sizes.size[i]))
            return false;
    return true;
}

// ---- which sizes differ ----

// Whether sizes i and j are equal in each kernel of the family.
static bool sizes_agree(const Sized *first, int i, int j) {
    for (const Sized *z = first; z != NULL; z = z->next)
        if (!size_equal(&z->sizes.size[i], &z->sizes.size[j]))
            return false;
    return first->sizes.size[i].kind == first->sizes.size[j].kind;
}

static bool size_differs(const Sized *first, int i) {
    for (const Sized *z = first->next; z != NULL; z = z->next)
        if (!size_equal(&z->sizes.size[i], &first->sizes.size[i]))
            return true;
    return false;
}

// Chooses the sizes that become parameters, as indices among the sizes.
typedef struct {
    int *place, count;
    int *number; // for each size, its parameter, or -1
} Given;

static Given find_given(Arena *a, const Sized *first) {
    size_t most = (size_t)first->sizes.count + 1;
    Given g = {ARENA_ARRAY(a, most, int), 0, ARENA_ARRAY(a, most, int)};
    for (int i = 0; i < first->sizes.count; i++) {
        int k = 0;
        g.number[i] = -1;
        if (!size_differs(first, i))
            continue;
        while (k < g.count && !sizes_agree(first, i, g.place[k]))
            k++;
        g.number[i] = k;
        if (k == g.count)
            g.place[g.count++] = i;
    }
    return g;
}

// ---- a kernel that is given them ----

static const char *stem_of(const Size *s) {
    return s->kind == X_SCALE    ? "scale"
           : s->kind == X_STREAM ? "stream"
                                 : "size";
}

static const Expr *number_of_size(Arena *a, const Size *s) {
    return s->kind == X_SCALE ? x_scale(a, s->real) : x_number(a, s->whole);
}

typedef struct {
    Arena *a;
    const Sizes *sizes;
    const Given *given;
    int next; // index of the next size
} Giving;

// The parameter that replaces a size.
static const Expr *give(void *context, const Expr *x) {
    Giving *g = context;
    if (!is_size(g->sizes, x))
        return x;
    const Size *s = &g->sizes->size[g->next];
    int number = g->given->number[g->next++];
    if (number < 0)
        return x;
    const Expr *name =
        x_name(g->a, arena_format(g->a, "%s%d", stem_of(s), number));
    return s->of != NULL && s->of->kind == X_OP ? expr(g->a, "$ / VW", name)
                                                : name;
}

// The kernel's body, with declarations of its parameters.
static void give_sizes(Arena *a, const Sized *z, const Given *given) {
    Tree *tree = z->kernel->tree;
    Block body = {NULL, NULL};
    for (int k = 0; k < given->count; k++) {
        const Size *s = &z->sizes.size[given->place[k]];
        code(a, &body, NO_NODE,
             s->kind == X_SCALE ? "const float $ = SCALE($, $);"
                                : "const int $ = SIZE($, $);",
             x_name(a, arena_format(a, "%s%d", stem_of(s), k)), x_number(a, k),
             number_of_size(a, s));
    }
    Giving g = {a, &z->sizes, given, 0};
    Block own = block_rewrite(a, &tree->body, give, &g);
    block_append(&body, &own);
    tree->body = body;
}

static const char *sizes_text(Arena *a, const Sized *z, const Given *g) {
    Text t = text_new(a);
    for (int k = 0; k < g->count; k++) {
        const Size *s = &z->sizes.size[g->place[k]];
        text_add(&t, "%s{.%s = %s}", k ? ", " : "",
                 s->kind == X_SCALE ? "scale" : "size",
                 expr_print(a, number_of_size(a, s), ""));
    }
    return text_string(&t);
}

// Turns the differing sizes of a family into parameters of its head.
static void family_give(Arena *a, const Sized *first) {
    Arena *scratch = arena_new();
    Kernel *head = first->kernel;
    Given given = find_given(scratch, first);
    for (const Sized *z = first; z != NULL; z = z->next) {
        z->kernel->head = head;
        z->kernel->sizes = sizes_text(a, z, &given);
        z->kernel->family = z->next ? z->next->kernel : NULL;
    }
    give_sizes(head->tree->arena, first, &given);
    arena_free(scratch);
}

// ---- families ----

// Adds z to the family of its key, unless an equal kernel is there.
static void family_add(Sized *first, Sized *z) {
    Sized *y = first, *last = NULL;
    for (; y != NULL && !same_sizes(y, z); y = y->next)
        last = y;
    z->kernel->on_host = y != NULL ? y->kernel->name : z->kernel->name;
    if (y == NULL)
        last->next = z;
}

Families families_new(Arena *scratch, int most) {
    return (Families){.scratch = scratch, .keys = map_new(scratch, most)};
}

void family_take(Families *f, Kernel *k, Arena *a) {
    k->on_host = k->name;
    // A multi-tensor kernel equals no other, as its tables hold its own
    // addresses.  Its large tree is freed here.
    if (k->group != NULL && group_is_multi_tensor(k->group->kind)) {
        kernel_print(a, k);
        return;
    }
    Arena *temporary = arena_new();
    Sized *z = ARENA_NEW(f->scratch, Sized);
    Text key = text_new(temporary);
    *z = (Sized){.kernel = k};
    kernel_key(f->scratch, &key, k, &k->numbers, &z->sizes);
    void **first = map_at(&f->keys, text_string(&key));
    arena_free(temporary);
    if (*first == NULL) {
        *first = z;
        ARENA_APPEND(f->scratch, f->first, f->count, z);
    } else {
        family_add(*first, z);
        kernel_print(a, k);
    }
}

void families_print(Families *f, Arena *a) {
    for (int i = 0; i < f->count; i++) {
        Sized *first = f->first[i];
        if (first->next != NULL)
            family_give(a, first);
        kernel_print(a, first->kernel);
    }
}
