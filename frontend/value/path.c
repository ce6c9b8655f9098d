// Paths of layers.
//
// A layer's path has the `as` names around it, and its kind with a number,
// counted within the innermost name: "layer1.conv_2".  If a name covers a
// single layer with parameters, it is the path: "stem".  A repeated name gets a
// number too, so every path is unique.

#include "frontend/value/value.h"

struct Path {
    const char *prefix; // "" or "layer1."
    const char *
        own; // the path of the only layer with parameters; NULL: there are more
    AtomMap count; // an int for each name
    Path *outer;
};

// The uses of a name within the innermost path.
static int *use_count(Expansion *e, Atom name) {
    void **count = atom_value(e->arena, &e->path->count, name);
    if (*count == NULL)
        *count = ARENA_NEW(e->arena, int);
    return *count;
}

static Atom numbered_name(Expansion *e, Atom name, int number) {
    Text t = text_new(e->arena);
    text_add(&t, "%s_%d", name, number);
    return atom_of(e->atoms, text_string(&t), t.length);
}

// name, or name_2 and so on if that exists.
static Atom unique_name(Expansion *e, Atom name) {
    Atom unique = name;
    while ((*use_count(e, name))++ > 0) {
        unique = numbered_name(e, name, *use_count(e, name));
        if ((*use_count(e, unique))++ == 0)
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
        arena_format(e->arena, "%s%s", e->path->prefix, unique_name(e, name));
    Path *outer = path_begin(e, arena_format(e->arena, "%s.", own));
    e->path->outer = outer;
    e->path->own = alone ? own : NULL;
}

void path_leave(Expansion *e) {
    e->path = e->path->outer;
}

// Layers with parameters share the namespace of `as`.
const char *path_layer(Expansion *e, const char *kind, bool trains) {
    if (trains && e->path->own != NULL)
        return e->path->own;
    Text t = text_new(e->arena);
    text_add(&t, "%s", kind);
    int *count = use_count(e, atom_of(e->atoms, text_string(&t), t.length));
    Atom name = numbered_name(e, kind, ++*count);
    while (trains && (*use_count(e, name))++ > 0)
        name = numbered_name(e, kind, ++*count);
    return arena_format(e->arena, "%s%s", e->path->prefix, name);
}
