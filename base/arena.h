// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arena: memory that is released all at once.
//
// The compiler's only allocator.  An arena is passed, never global, so a
// compile can run twice in one process.  Nothing in the compiler calls free.
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

typedef struct Arena Arena;

// Returns a new, empty arena.
Arena *arena_new(void);

// Returns a new arena that arena_free(a) releases too.
Arena *arena_child(Arena *a);

// Allocates bytes of zeroed memory, aligned for any type.  Never NULL: without
// memory it prints an error and exits with EXIT_MEMORY.
void *arena_alloc(Arena *a, size_t bytes);

// Allocates count * size zeroed bytes; a product past SIZE_MAX is out of
// memory.
void *arena_array(Arena *a, size_t count, size_t size);

// Like arena_array, without zeroing.
void *arena_uninit(Arena *a, size_t count, size_t size);

// Returns a list of count items with room for one more.  If count is a power of
// two, copies the items to a zeroed list of twice the size.
void *arena_grow(Arena *a, void *list, size_t count, size_t size);

// A copy of length bytes of s, and a zero byte.
char *arena_string(Arena *a, const char *s, size_t length);

// printf into the arena.
char *arena_format(Arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Bytes allocated so far.
size_t arena_used(const Arena *a);

void arena_free(Arena *a);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, n, type) ((type *)arena_array((a), (n), sizeof(type)))
#define ARENA_UNINIT(a, n, type) ((type *)arena_uninit((a), (n), sizeof(type)))
#define ARENA_APPEND(a, list, count, ...)                                      \
    ((list) = arena_grow((a), (list), (size_t)(count), sizeof *(list)),        \
     (list)[count] = (__VA_ARGS__), (count)++)

#endif
