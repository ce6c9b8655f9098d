// Touches: what the instrumentation of -fsanitize=thread calls.
//
// Kernels are compiled with the flag and linked without it, so these are the
// functions that their loads and stores call.  Only one thread runs them.

#include "tests/codegen/traffic/touch.h"

#include <string.h>

static const char *watched;
static size_t watched_bytes;
static Touch *touched;
static char *touched_page;

void touch_watch(const char *start, size_t bytes, Touch *touch, char *page) {
    watched = start;
    watched_bytes = bytes;
    touched = touch;
    touched_page = page;
}

static void note(const void *p, size_t bytes, uint32_t reads, uint32_t writes) {
    size_t at = (size_t)((uintptr_t)p - (uintptr_t)watched);
    for (size_t i = at; i - at < bytes && i < watched_bytes; i++) {
        touched[i].reads += reads;
        touched[i].writes += writes;
        touched_page[i / TOUCH_PAGE] = 1;
    }
}

static void note_read(const void *p, size_t bytes) {
    note(p, bytes, 1, 0);
}

static void note_write(const void *p, size_t bytes) {
    note(p, bytes, 0, 1);
}

#define CALLED(bytes)                                                          \
    void __tsan_read##bytes(void *p);                                          \
    void __tsan_read##bytes(void *p) {                                         \
        note_read(p, bytes);                                                   \
    }                                                                          \
    void __tsan_write##bytes(void *p);                                         \
    void __tsan_write##bytes(void *p) {                                        \
        note_write(p, bytes);                                                  \
    }
#define CALLED_UNALIGNED(bytes)                                                \
    void __tsan_unaligned_read##bytes(void *p);                                \
    void __tsan_unaligned_read##bytes(void *p) {                               \
        note_read(p, bytes);                                                   \
    }                                                                          \
    void __tsan_unaligned_write##bytes(void *p);                               \
    void __tsan_unaligned_write##bytes(void *p) {                              \
        note_write(p, bytes);                                                  \
    }

CALLED(1)
CALLED(2)
CALLED(4)
CALLED(8)
CALLED(16)
CALLED_UNALIGNED(2)
CALLED_UNALIGNED(4)
CALLED_UNALIGNED(8)
CALLED_UNALIGNED(16)

void __tsan_read_range(void *p, size_t bytes);
void __tsan_read_range(void *p, size_t bytes) {
    note_read(p, bytes);
}

void __tsan_write_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes) {
    note_write(p, bytes);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
    note_read(from, bytes);
    note_write(to, bytes);
    return memcpy(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes) {
    note_write(to, bytes);
    return memset(to, value, bytes);
}

int __tsan_atomic32_fetch_add(int *p, int value, int order);
int __tsan_atomic32_fetch_add(int *p, int value, int order) {
    (void)order;
    note_read(p, sizeof *p);
    note_write(p, sizeof *p);
    int before = *p;
    *p += value;
    return before;
}

void __tsan_init(void);
void __tsan_init(void) {
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) {
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void) {
}
