// Family: kernels that differ in sizes alone are one function on the host.
//
// Layers of one kind repeat with other rows and columns.  On a GPU each kernel
// has its own text, as sizes that are constants are worth having there.  On the
// host, where vectors are as wide for any 64 columns, the first such kernel is
// compiled for all of them and is given the sizes that differ.

#include "codegen/emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SIZE = 64, // smaller ones may be lengths of loops to unroll
    MOST_NAMES = 4,  // ROWS, C and WIDTH
};

// A size that a kernel's text reads.
typedef struct {
    const char *value;
    bool real, groups, stream; // groups: columns / VW
} Size;

// A kernel, and the sizes that it reads in their order.
typedef struct Sized {
    Kernel *kernel;
    struct Sized *next; // of the same key
    Text key;           // the kernel's key without its sizes
    Size *size;
    int count;
    const char *name[MOST_NAMES], *value[MOST_NAMES]; // that it defines
    int names;
} Sized;

// ---- the sizes of a text ----

// Whether an int can be given as a size.
static bool is_int(const char *value) {
    return strtoll(value, NULL, 10) <= INT32_MAX;
}

// "ROWS = 1000"
static void name_take(Arena *a, Sized *z, Piece p) {
    const char *all = arena_string(a, p.s, p.length);
    const char *value = strrchr(all, ' ') + 1;
    if (!is_int(value)) {
        text_bytes(&z->key, p.s, p.length);
        return;
    }
    z->name[z->names] = arena_string(a, all, strcspn(all, " "));
    z->value[z->names] = value;
    text_add(&z->key, "%s", z->name[z->names++]);
}

// The value of what is written as a size; NULL where it is none.
static const char *value_of(const Sized *z, const char *written) {
    bool groups = strcmp(written, "CG") == 0;
    if (!isalpha((unsigned char)*written))
        return strtoll(written, NULL, 10) >= LEAST_SIZE && is_int(written)
                   ? written
                   : NULL;
    for (int i = 0; i < z->names; i++)
        if (strcmp(z->name[i], groups ? "C" : written) == 0)
            return z->value[i];
    return NULL;
}

static void size_take(Arena *a, Sized *z, Piece p) {
    Size s = {arena_string(a, p.s, p.length), p.mark == SCALED, false,
              p.mark == STREAMED};
    const char *value = s.real ? s.value : value_of(z, s.value);
    s.groups = strcmp(s.value, "CG") == 0;
    if (value != NULL)
        s.value = value;
    else // the same for all with this key
        text_add(&z->key, "%s", s.value);
    text_bytes(&z->key, s.real ? "f" : s.groups ? "g" : "i", 1);
    ARENA_APPEND(a, z->size, z->count, s);
}

static Sized *sizes_take(Arena *a, Kernel *k) {
    Sized *z = ARENA_NEW(a, Sized);
    Piece p;
    *z = (Sized){.kernel = k, .key = text_new(a)};
    for (const char *s = k->key; piece_next(&s, &p);)
        if (p.mark == DEFINES)
            name_take(a, z, p);
        else if (is_given(p.mark))
            size_take(a, z, p);
        else if (p.mark != NOT_ON_HOST)
            piece_add(&z->key, p);
    return z;
}

static bool same_sizes(const Sized *x, const Sized *y) {
    for (int i = 0; i < x->count; i++)
        if (strcmp(x->size[i].value, y->size[i].value) != 0)
            return false;
    return true;
}

// ---- which sizes differ ----

// Whether sizes i and j of each member have the same value.
static bool sizes_agree(const Sized *first, int i, int j) {
    for (const Sized *z = first; z != NULL; z = z->next)
        if (strcmp(z->size[i].value, z->size[j].value) != 0)
            return false;
    return true;
}

static bool size_differs(const Sized *first, int i) {
    for (const Sized *z = first->next; z != NULL; z = z->next)
        if (strcmp(z->size[i].value, first->size[i].value) != 0)
            return true;
    return false;
}

// The sizes that a family is given, as places in what its members read.
typedef struct {
    int *place, count;
    int *number; // for each place, which of them, or -1
} Given;

static Given find_given(Arena *a, const Sized *first) {
    size_t most = (size_t)first->count + 1;
    Given g = {ARENA_ARRAY(a, most, int), 0, ARENA_ARRAY(a, most, int)};
    for (int i = 0; i < first->count; i++) {
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

// ---- what is written ----

// What it is given as, and what it is called.
static const char *size_kind(Size s) {
    return s.real ? "scale" : "size";
}

static const char *size_name(Size s) {
    return s.stream ? "stream" : size_kind(s);
}

static Sizes sizes_named(Arena *a, const Sized *z, const Given *g) {
    Sizes sizes = {NULL, ARENA_ARRAY(a, (size_t)z->count, const char *)};
    Text t = text_new(a);
    for (int k = 0; k < g->count; k++) {
        Size s = z->size[g->place[k]];
        text_add(&t, "    const %s %s%d = %s(%d, %s);\n",
                 s.real ? "float" : "int", size_name(s), k,
                 s.real ? "SCALE" : "SIZE", k, s.value);
    }
    for (int i = 0; i < z->count; i++)
        if (g->number[i] >= 0)
            sizes.name[i] =
                arena_format(a, z->size[i].groups ? "(%s%d / VW)" : "%s%d",
                             size_name(z->size[i]), g->number[i]);
    sizes.declared = text_string(&t);
    return sizes;
}

static const char *sizes_text(Arena *a, const Sized *z, const Given *g) {
    Text t = text_new(a);
    for (int k = 0; k < g->count; k++) {
        Size s = z->size[g->place[k]];
        text_add(&t, "%s{.%s = %s}", k ? ", " : "", size_kind(s), s.value);
    }
    return text_string(&t);
}

static void family_join(Arena *a, Arena *scratch, const Sized *first) {
    Kernel *head = first->kernel;
    Given given = find_given(scratch, first);
    Sizes sizes = sizes_named(scratch, first, &given);
    for (const Sized *z = first; z != NULL; z = z->next) {
        z->kernel->head = head;
        z->kernel->sizes = sizes_text(a, z, &given);
        z->kernel->family = z->next ? z->next->kernel : NULL;
    }
    kernel_named(a, head, &sizes);
}

// ---- families ----

// Adds z to those of its key, unless one of them does the same.
static void family_add(Sized *first, Sized *z) {
    Sized *y = first, *last = NULL;
    for (; y != NULL && !same_sizes(y, z); y = y->next)
        last = y;
    z->kernel->on_host = y != NULL ? y->kernel->name : z->kernel->name;
    if (y == NULL)
        last->next = z;
}

void kernels_gather(Kernel *const *kernel, int count, Arena *a) {
    Arena *scratch = arena_new();
    Keys keys = keys_new(scratch, count);
    Sized **all = ARENA_ARRAY(scratch, (size_t)count + 1, Sized *);
    int families = 0;
    for (int k = 0; k < count; k++) {
        Sized *z = sizes_take(scratch, kernel[k]);
        void **first = keys_at(&keys, text_string(&z->key));
        kernel[k]->on_host = kernel[k]->name;
        if (*first == NULL)
            *first = all[families++] = z;
        else
            family_add(*first, z);
    }
    for (int i = 0; i < families; i++)
        if (all[i]->next != NULL)
            family_join(a, scratch, all[i]);
    for (int k = 0; k < count; k++)
        if (kernel[k]->head != kernel[k])
            kernel_named(a, kernel[k], NULL);
    arena_free(scratch);
}
