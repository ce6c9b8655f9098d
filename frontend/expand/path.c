// Names of layers.
//
// A layer's path is the names given by `as` around it and its kind with a
// number, counted within the innermost name: "layer1.conv_2".  Where a name is
// given to a single layer with parameters, that is its path: "stem".  A name
// that is given twice in the same place gets a number too, so every path is
// unique.

#include "frontend/expand/expand.h"

struct Path {
    const char *prefix; // "" or "layer1."
    const char *own; // of the one layer with parameters; NULL: there are more
    AtomMap count;   // an int for each name
    Path *outer;
};

// How often a name was given within the innermost path.
static int *count_of(Expansion *e, Atom name) {
    void **count = atom_value(e->arena, &e->path->count, name);
    if (*count == NULL)
        *count = ARENA_NEW(e->arena, int);
    return *count;
}

static Atom numbered(Expansion *e, Atom name, int number) {
    Text t = text_new(e->arena);
    text_add(&t, "%s_%d", name, number);
    return atom_of(e->atoms, text_string(&t), t.length);
}

// name, or name_2 and so on where that is taken.
static Atom untaken(Expansion *e, Atom name) {
    Atom unique = name;
    while ((*count_of(e, name))++ > 0) {
        unique = numbered(e, name, *count_of(e, name));
        if ((*count_of(e, unique))++ == 0)
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
    int *count = count_of(e, atom_of(e->atoms, text_string(&t), t.length));
    Atom name = numbered(e, kind, ++*count);
    while (trains && (*count_of(e, name))++ > 0)
        name = numbered(e, kind, ++*count);
    return arena_format(e->arena, "%s%s", e->path->prefix, name);
}
