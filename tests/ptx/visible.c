// Global memory as the blocks of a launch see it, as late as PTX's memory
// consistency model allows: a block's stores are visible to its own threads at
// once, to others from the block's next release or the end of the launch on,
// and there to threads that have acquired since.  A thread that has not reads
// the bytes of its last acquire, or of the start of the launch.
//
// A release by a thread covers its own stores and those that other threads of
// its block made before the last barrier; a barrier hands an acquire on.
#include "tests/ptx/module.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 8, LEAST_ROOM = 256 };

// Bytes that a word had until a release replaced them.
typedef struct Change {
    struct Change *before;
    uint64_t time;
    uint8_t bytes; // a bit for each
    char was[WORD];
} Change;

// Bytes that a block has stored, with their thread, the barriers before, and
// the release that covers them.
typedef struct {
    uint64_t number; // of the word; 0: the place is free
    uint8_t bytes;
    char is[WORD];
    int writer[WORD], barriers[WORD];
    uint64_t released[WORD]; // 0: not yet
    Change *changes;         // in the table of a launch; the last one first
} Word;

typedef struct {
    Word *word;
    size_t room, count; // room: a power of two
} Words;

struct Visible {
    Words changed;
    uint64_t now; // releases so far
};

struct Stores {
    Visible *launch;
    Words pending;
    int barriers;
};

static void *zeroed(size_t count, size_t bytes) {
    void *p = calloc(count, bytes);
    if (p == NULL)
        ptx_fail(0, "out of memory");
    return p;
}

// ---- tables ----

// The word with this number, or the free place where it would be.
static Word *place_of(const Words *w, uint64_t number) {
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20);
    for (;; i++) {
        Word *at = &w->word[i & (w->room - 1)];
        if (at->number == 0 || at->number == number)
            return at;
    }
}

static Word *word_add(Words *w, uint64_t number) {
    if (2 * w->count >= w->room) {
        size_t room = w->room == 0 ? LEAST_ROOM : 2 * w->room;
        Words all = {zeroed(room, sizeof *all.word), room, w->count};
        for (size_t i = 0; i < w->room; i++)
            if (w->word[i].number != 0)
                *place_of(&all, w->word[i].number) = w->word[i];
        free(w->word);
        *w = all;
    }
    Word *at = place_of(w, number);
    w->count += at->number == 0;
    at->number = number;
    return at;
}

static const Word *word_find(const Words *w, uint64_t number) {
    const Word *at = w->room > 0 ? place_of(w, number) : NULL;
    return at != NULL && at->number != 0 ? at : NULL;
}

Visible *visible_new(void) {
    return zeroed(1, sizeof(Visible));
}

void visible_free(Visible *v) {
    for (size_t i = 0; v != NULL && i < v->changed.room; i++)
        for (Change *c = v->changed.word[i].changes, *before; c; c = before) {
            before = c->before;
            free(c);
        }
    if (v != NULL)
        free(v->changed.word);
    free(v);
}

Stores *stores_new(Visible *v) {
    Stores *s = zeroed(1, sizeof *s);
    s->launch = v;
    return s;
}

void stores_barrier(Stores *s) {
    s->barriers++;
}

// ---- release and acquire ----

static char *memory_of(uint64_t number) {
    return (char *)(uintptr_t)(number * WORD);
}

// Makes these bytes of a word visible.  Others may be of no memory.
static void word_release(Visible *v, Word *w, uint8_t bytes) {
    char *to = memory_of(w->number);
    Word *at = word_add(&v->changed, w->number);
    Change *c = zeroed(1, sizeof *c);
    *c = (Change){.before = at->changes, .time = v->now, .bytes = bytes};
    at->changes = c;
    for (int i = 0; i < WORD; i++)
        if (bytes >> i & 1) {
            c->was[i] = to[i];
            to[i] = w->is[i];
            w->released[i] = v->now;
        }
}

void stores_release(Stores *s, int thread) {
    s->launch->now++;
    for (size_t i = 0; i < s->pending.room; i++) {
        Word *w = &s->pending.word[i];
        uint8_t bytes = 0;
        for (int j = 0; w->bytes != 0 && j < WORD; j++)
            if (w->released[j] == 0 && (thread < 0 || w->writer[j] == thread ||
                                        w->barriers[j] < s->barriers))
                bytes |= (uint8_t)(w->bytes & 1u << j);
        if (bytes != 0)
            word_release(s->launch, w, bytes);
    }
}

void stores_end(Stores *s) {
    if (s == NULL)
        return;
    stores_release(s, -1);
    free(s->pending.word);
    free(s);
}

uint64_t visible_now(const Stores *s) {
    return s->launch->now;
}

// ---- accesses ----

void visible_store(Stores *s, int thread, uint64_t address, const char *from,
                   int count) {
    for (int i = 0; i < count; i++) {
        uint64_t at = address + (uint64_t)i;
        Word *w = word_add(&s->pending, at / WORD);
        int j = (int)(at % WORD);
        w->bytes |= (uint8_t)(1u << j);
        w->is[j] = from[i];
        w->writer[j] = thread;
        w->barriers[j] = s->barriers;
        w->released[j] = 0;
    }
}

// A byte of a word as it was after release number `since`.
static char byte_since(const Visible *v, uint64_t number, int j,
                       uint64_t since) {
    const Word *w = word_find(&v->changed, number);
    char is = memory_of(number)[j];
    for (const Change *c = w ? w->changes : NULL; c && c->time > since;
         c = c->before)
        if (c->bytes >> j & 1)
            is = c->was[j];
    return is;
}

// Whether a byte is the block's own for a thread that has acquired since: a
// later one of another block may then have replaced it.
static bool is_own(const Word *w, int j, uint64_t since) {
    return w != NULL && (w->bytes >> j & 1) != 0 &&
           (w->released[j] == 0 || w->released[j] > since);
}

void visible_load(const Stores *s, uint64_t since, uint64_t address, char *to,
                  int count) {
    for (int i = 0; i < count; i++) {
        uint64_t at = address + (uint64_t)i;
        const Word *own = word_find(&s->pending, at / WORD);
        int j = (int)(at % WORD);
        to[i] = is_own(own, j, since)
                    ? own->is[j]
                    : byte_since(s->launch, at / WORD, j, since);
    }
}
