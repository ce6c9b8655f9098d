// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arena: a list of growing blocks; the newest serves requests.

#define _DEFAULT_SOURCE // madvise

#include "base/arena.h"

#include "base/exits.h"
#include "base/round_up.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Block {
    struct Block *next;
    size_t used, size;
    max_align_t data[];
} Block;

struct Arena {
    Block *block;
    size_t used;
    Arena *inner;         // its newest child
    Arena *outer;         // its parent, or NULL
    Arena *older, *newer; // its siblings
};

enum { FIRST_BLOCK = 16 << 10, LARGE = 4 << 20, MAX_BLOCK = 8 << 20 };

static void out_of_memory(void) {
    fputs("sinter: out of memory\n", stderr);
    exit(EXIT_MEMORY);
}

Arena *arena_new(void) {
    Arena *a = calloc(1, sizeof *a);
    if (a == NULL)
        out_of_memory();
    return a;
}

Arena *arena_child(Arena *outer) {
    Arena *a = arena_new();
    a->outer = outer;
    a->older = outer->inner;
    if (a->older != NULL)
        a->older->newer = a;
    outer->inner = a;
    return a;
}

// Requests huge pages for large blocks: repeated walks of a graph otherwise
// miss the TLB.
static Block *allocate_block(size_t bytes) {
    enum { PAGE = 4096 };
    char *b = malloc(bytes);
    if (b == NULL)
        out_of_memory();
    size_t before = PAGE - (uintptr_t)b % PAGE; // to the next page
    if (bytes >= LARGE)
        madvise(b + before, bytes - before, MADV_HUGEPAGE);
    return (Block *)b;
}

static void add_block(Arena *a, size_t bytes) {
    size_t size = a->block == NULL ? FIRST_BLOCK : a->block->size * 2;
    if (size > MAX_BLOCK)
        size = MAX_BLOCK;
    if (size < bytes)
        size = bytes;
    if (size > SIZE_MAX - sizeof(Block))
        out_of_memory();
    Block *b = allocate_block(sizeof(Block) + size);
    *b = (Block){.size = size};
    b->next = a->block;
    a->block = b;
}

static void *allocate(Arena *a, size_t bytes) {
    enum { ALIGN = _Alignof(max_align_t) };
    if (bytes > SIZE_MAX - ALIGN)
        out_of_memory();
    bytes = align_up(bytes, ALIGN);
    if (a->block == NULL || bytes > a->block->size - a->block->used)
        add_block(a, bytes);
    void *p = (char *)a->block->data + a->block->used;
    a->block->used += bytes;
    a->used += bytes;
    return p;
}

// Zeroes each request, not each block: most blocks are freed half empty and
// reused.
void *arena_alloc(Arena *a, size_t bytes) {
    return memset(allocate(a, bytes), 0, bytes);
}

static size_t product(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory();
    return bytes;
}

void *arena_array(Arena *a, size_t count, size_t size) {
    return arena_alloc(a, product(count, size));
}

void *arena_uninit(Arena *a, size_t count, size_t size) {
    return allocate(a, product(count, size));
}

void *arena_grow(Arena *a, void *list, size_t count, size_t size) {
    if (count & (count - 1))
        return list;
    void *more = arena_array(a, count ? product(count, 2) : 1, size);
    if (count)
        memcpy(more, list, count * size);
    return more;
}

char *arena_string(Arena *a, const char *s, size_t length) {
    char *copy = allocate(a, length + 1);
    memcpy(copy, s, length);
    copy[length] = '\0';
    return copy;
}

// Formats in place if there is room.
char *arena_format(Arena *a, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    Block *b = a->block;
    size_t room = b != NULL ? b->size - b->used : 0;
    char *end = room > 0 ? (char *)b->data + b->used : NULL;
    int length = vsnprintf(end, room, format, list);
    va_end(list);
    if (length < 0)
        out_of_memory();
    char *s = allocate(a, (size_t)length + 1);
    if (s != end)
        vsnprintf(s, (size_t)length + 1, format, again);
    va_end(again);
    return s;
}

size_t arena_used(const Arena *a) {
    return a->used;
}

static void unlink_child(Arena *a) {
    if (a->older != NULL)
        a->older->newer = a->newer;
    if (a->newer != NULL)
        a->newer->older = a->older;
    else if (a->outer != NULL)
        a->outer->inner = a->older;
}

void arena_free(Arena *a) {
    if (a == NULL)
        return;
    while (a->inner != NULL)
        arena_free(a->inner);
    unlink_child(a);
    for (Block *b = a->block, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}
