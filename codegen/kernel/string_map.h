// String map: a hash table whose keys are strings.
#ifndef CODEGEN_KERNEL_STRING_MAP_H
#define CODEGEN_KERNEL_STRING_MAP_H

#include "base/arena.h"

typedef struct {
    Arena *a; // owns the keys
    struct MapSlot *slot;
    size_t size; // a power of two, at least twice the number of keys
} StringMap;

// Reserves room for so many keys.
StringMap map_new(Arena *a, int most);

// The value of a key; initially NULL.
void **map_at(StringMap *map, const char *key);

#endif
