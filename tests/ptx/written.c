// What a launch has written of global memory: sectors of 32 bytes, each with a
// bit for each of its bytes, in a table that is looked through from where an
// address belongs.
#include "tests/ptx/module.h"

#include <stdlib.h>

enum { SECTOR = 32, LEAST_ROOM = 1024 };

typedef struct {
    uint64_t number; // of the sector
    uint32_t bytes;  // 0: the place is free
} Sector;

struct Written {
    Sector *sector;
    size_t room, count; // room: a power of two
};

static Sector *places(size_t count) {
    Sector *s = calloc(count, sizeof *s);
    if (s == NULL)
        ptx_fail(0, "out of memory");
    return s;
}

Written *written_new(void) {
    Written *w = malloc(sizeof *w);
    if (w == NULL)
        ptx_fail(0, "out of memory");
    *w = (Written){places(LEAST_ROOM), LEAST_ROOM, 0};
    return w;
}

void written_free(Written *w) {
    if (w != NULL)
        free(w->sector);
    free(w);
}

// The place of a sector, or the free one where it would be.
static Sector *place_of(const Written *w, uint64_t number) {
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20);
    for (;; i++) {
        Sector *s = &w->sector[i & (w->room - 1)];
        if (s->bytes == 0 || s->number == number)
            return s;
    }
}

static void grow(Written *w) {
    Written all = {places(2 * w->room), 2 * w->room, w->count};
    for (size_t i = 0; i < w->room; i++)
        if (w->sector[i].bytes != 0)
            *place_of(&all, w->sector[i].number) = w->sector[i];
    free(w->sector);
    *w = all;
}

// No access crosses the end of a sector, as it is aligned.
static uint32_t bits_of(uint64_t address, int bytes) {
    return (uint32_t)((1ull << bytes) - 1) << address % SECTOR;
}

void written_add(Written *w, uint64_t address, int bytes) {
    if (2 * w->count >= w->room)
        grow(w);
    Sector *s = place_of(w, address / SECTOR);
    w->count += s->bytes == 0;
    s->number = address / SECTOR;
    s->bytes |= bits_of(address, bytes);
}

bool written_has(const Written *w, uint64_t address, int bytes) {
    return (place_of(w, address / SECTOR)->bytes & bits_of(address, bytes)) !=
           0;
}
