// Names of layers.
//
// A layer's path is the names given by `as` around it and its kind with a
// number, counted within the innermost name: "layer1.conv_2".  Where a name is
// given to a single layer with parameters, that is its path: "stem".  A name
// that is given twice in the same place gets a number too, so every path is
// unique.

#include "frontend/expand.h"

typedef struct Count {
    Atom name;
    int count;
    struct Count *next;
} Count;

struct Path {
    const char *prefix; // "" or "layer1."
    const char *own; // of the one layer with parameters; NULL: there are more
    Count *counts;
    Path *outer;
};

// The count of a name within the innermost path, which comes to the front.
static Count *count_of(Expansion *e, Atom name) {
    for (Count *c = e->path->counts; c != NULL; c = c->next, e->work++)
        if (c->name == name)
            return c;
    Count *new = ARENA_NEW(e->arena, Count);
    *new = (Count){.name = name, .next = e->path->counts};
    e->path->counts = new;
    return new;
}

static Atom numbered(Expansion *e, Atom name, int number) {
    Text t = text_new(e->arena);
    text_add(&t, "%s_%d", name, number);
    return atom_of(e->atoms, text_string(&t), t.length);
}

// name, or name_2 and so on where that is taken.
static Atom untaken(Expansion *e, Atom name) {
    Count *count = count_of(e, name);
    Atom unique = name;
    while (count->count++ > 0) {
        unique = numbered(e, name, count->count);
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
