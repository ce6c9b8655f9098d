// Atoms: interned strings, and maps from them.  Both are hash tables that are
// at most half full.

#include "frontend/text/lex.h"

#include <string.h>

struct Atoms {
    Arena *arena;
    Atom *slot;
    size_t count, size; // size is a power of two
};

Atoms *atoms_new(Arena *a) {
    Atoms *atoms = ARENA_NEW(a, Atoms);
    *atoms = (Atoms){.arena = a, .size = 256};
    atoms->slot = ARENA_ARRAY(a, atoms->size, Atom);
    return atoms;
}

static size_t hash_of(const char *s, size_t length) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

// The slot that holds the name, or the free one for it.
static Atom *slot_of(const Atoms *atoms, const char *s, size_t length) {
    size_t i = hash_of(s, length);
    for (;; i++) {
        Atom *slot = &atoms->slot[i & (atoms->size - 1)];
        if (*slot == NULL ||
            (strncmp(*slot, s, length) == 0 && (*slot)[length] == '\0'))
            return slot;
    }
}

static void grow(Atoms *atoms) {
    Atoms old = *atoms;
    atoms->size *= 2;
    atoms->slot = ARENA_ARRAY(atoms->arena, atoms->size, Atom);
    for (size_t i = 0; i < old.size; i++)
        if (old.slot[i] != NULL)
            *slot_of(atoms, old.slot[i], strlen(old.slot[i])) = old.slot[i];
}

Atom atom_of(Atoms *atoms, const char *s, size_t length) {
    Atom *slot = slot_of(atoms, s, length);
    if (*slot != NULL)
        return *slot;
    Atom new = arena_string(atoms->arena, s, length);
    *slot = new;
    if (++atoms->count * 2 > atoms->size)
        grow(atoms);
    return new;
}

// ---- maps ----

// The slot of the name, or the free one for it.  Atoms hash by address.
static AtomSlot *map_slot(const AtomMap *m, Atom name) {
    size_t i = (size_t)(((uintptr_t)name >> 4) * 0x9e3779b1u);
    for (;; i++) {
        AtomSlot *slot = &m->slot[i & (m->size - 1)];
        if (slot->name == NULL || slot->name == name)
            return slot;
    }
}

static void map_grow(Arena *a, AtomMap *m) {
    AtomMap old = *m;
    m->size = old.size ? 2 * old.size : 8;
    m->slot = ARENA_ARRAY(a, m->size, AtomSlot);
    for (size_t i = 0; i < old.size; i++)
        if (old.slot[i].name != NULL)
            *map_slot(m, old.slot[i].name) = old.slot[i];
}

void **atom_value(Arena *a, AtomMap *m, Atom name) {
    if (2 * m->count >= m->size)
        map_grow(a, m);
    AtomSlot *slot = map_slot(m, name);
    m->count += slot->name == NULL;
    slot->name = name;
    return &slot->value;
}
