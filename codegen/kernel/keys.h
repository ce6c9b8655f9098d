// Keys: a hash table by text.
#ifndef CODEGEN_KERNEL_KEYS_H
#define CODEGEN_KERNEL_KEYS_H

#include "base/arena.h"

typedef struct {
    Arena *a; // owns the keys
    struct Keyed *slot;
    size_t size; // a power of two, at least twice the number of keys
} Keys;

// Reserves room for so many keys.
Keys keys_new(Arena *a, int most);

// The value of a key; initially NULL.
void **keys_at(Keys *k, const char *key);

#endif
