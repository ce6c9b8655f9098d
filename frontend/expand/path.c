// Names of layers.
//
// A layer's path is the names given by `as` around it and its kind with a
// number, counted within the innermost name: "layer1.conv_2".  Where a name is
// given to a single layer with parameters, that is its path: "stem".  A name
// that is given twice in the same place gets a number too, so every path is
// unique.

#include "frontend/expand/expand.h"

typedef struct {
    Atom name; // NULL: free
    int count;
} Count;

struct Path {
    const char *prefix; // "" or "layer1."
    const char *own; // of the one layer with parameters; NULL: there are more
    Count *slot;     // a hash of names; its size is a power of two or 0
    size_t size, used;
    Path *outer;
};

static Count *slot_of(Count *slot, size_t size, Atom name) {
    size_t i = (size_t)(((uintptr_t)name >> 4) * 0x9e3779b1u);
    while (slot[i & (size - 1)].name != NULL &&
           slot[i & (size - 1)].name != name)
        i++;
    return &slot[i & (size - 1)];
}

static void grow(Expansion *e, Path *p) {
    size_t size = p->size ? 2 * p->size : 8;
    Count *slot = ARENA_ARRAY(e->arena, size, Count);
    for (size_t i = 0; i < p->size; i++)
        if (p->slot[i].name != NULL)
            *slot_of(slot, size, p->slot[i].name) = p->slot[i];
    p->slot = slot;
    p->size = size;
}

// The count of a name within the innermost path.
static Count *count_of(Expansion *e, Atom name) {
    Path *p = e->path;
    if (2 * p->used >= p->size)
        grow(e, p);
    Count *c = slot_of(p->slot, p->size, name);
    p->used += c->name == NULL;
    c->name = name;
    return c;
}

static Atom numbered(Expansion *e, Atom name, int number) {
    Text t = text_new(e->arena);
    text_add(&t, "%s_%d", name, number);
    return atom_of(e->atoms, text_string(&t), t.length);
}

// name, or name_2 and so on where that is taken.
static Atom untaken(Expansion *e, Atom name) {
    Atom unique = name;
    while (count_of(e, name)->count++ > 0) {
        unique = numbered(e, name, count_of(e, name)->count);
        if (count_of(e, unique)->count++ == 0)
            break;
    }
    return unique;
}

Path *path_begin(Expansion *e, const char *prefix) {
    Path *outer = e->path;
    e->path = ARENA_NEW(e->arena, Path);
    *e->path = (Path){.prefix = prefix};
    return outer;
}

void path_enter(Expansion *e, Atom name, bool alone) {
    const char *own =
        arena_format(e->arena, "%s%s", e->path->prefix, untaken(e, name));
    Path *outer = path_begin(e, arena_format(e->arena, "%s.", own));
    e->path->outer = outer;
    e->path->own = alone ? own : NULL;
}

void path_leave(Expansion *e) {
    e->path = e->path->outer;
}

// Layers with parameters are as unique as what `as` names.
const char *path_layer(Expansion *e, const char *kind, bool trains) {
    if (trains && e->path->own != NULL)
        return e->path->own;
    Text t = text_new(e->arena);
    text_add(&t, "%s", kind);
    Count *count = count_of(e, atom_of(e->atoms, text_string(&t), t.length));
    Atom name = numbered(e, kind, ++count->count);
    while (trains && count_of(e, name)->count++ > 0)
        name = numbered(e, kind, ++count->count);
    return arena_format(e->arena, "%s%s", e->path->prefix, name);
}
