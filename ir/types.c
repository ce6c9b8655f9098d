// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types of a graph, each once, through a hash.

#include "ir/types.h"

struct Types {
    Arena *arena;
    const Type **slot;
    uint32_t count, size;
};

Types *types_new(Arena *a) {
    Types *s = ARENA_NEW(a, Types);
    s->arena = a;
    return s;
}

static uint32_t type_hash(const Type *t) {
    uint64_t hash = (uint64_t)t->dtype << 8 | (uint64_t)t->rank;
    for (int i = 0; i < t->rank; i++)
        hash = (hash ^ (uint64_t)t->dim[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

// The slot of an equal type, or the free one where it belongs.
static const Type **find(const Types *s, const Type *t) {
    uint32_t mask = s->size - 1;
    uint32_t i = type_hash(t) & mask;
    while (s->slot[i] != NULL && !type_is(s->slot[i], t))
        i = (i + 1) & mask;
    return &s->slot[i];
}

static void resize(Types *s, uint32_t size) {
    Types old = *s;
    s->size = size;
    s->slot = ARENA_ARRAY(s->arena, size, const Type *);
    for (uint32_t i = 0; i < old.size; i++)
        if (old.slot[i] != NULL)
            *find(s, old.slot[i]) = old.slot[i];
}

const Type *types_add(Types *s, const Type *t) {
    if (2 * s->count >= s->size)
        resize(s, s->size ? 2 * s->size : 64);
    const Type **slot = find(s, t);
    if (*slot == NULL) {
        Type *copy = ARENA_NEW(s->arena, Type);
        *copy = *t;
        *slot = copy;
        s->count++;
    }
    return *slot;
}
