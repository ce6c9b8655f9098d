// The race checker: the functions that -fsanitize=thread calls.
//
// Kernels are compiled with the flag and linked without it, so these are the
// functions that their loads and stores call.  Every byte has a cell that says
// who wrote and who read it last, and when.  Time is counted in epochs: one
// passes at each barrier, block and launch, so threads of a block that touch a
// byte in one epoch are not ordered, and threads of two blocks never are,
// unless a block has seen another's atomic_add after its accesses.
//
// Only the last of several earlier readers of a byte is recorded.
#define _GNU_SOURCE
#include "tests/simt/races.h"
#include "tests/simt/simt.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// ---- cells ----

// Threads are numbered block * SIMT_MAX_BLOCK + thread.  An epoch of 0 is
// never.
typedef struct {
    uint32_t writer, write_epoch;
    uint32_t reader, read_epoch;
    uint8_t shared_read; // by several threads in read_epoch
    uint8_t block_read;  // by an earlier block of the launch too
} Cell;

enum { PAGE_BYTES = 4096, MAX_PAGES = 1 << 18 };

// The cells of one page of memory, in a hash by the page's number.
typedef struct {
    uintptr_t page; // number, 0 for a free place
    Cell *cell;
} Page;

static Page *pages;

static void *memory_get(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("simt: the race checker's memory");
        abort();
    }
    return p;
}

static Cell *page_cells(uintptr_t page) {
    if (!pages)
        pages = memory_get(MAX_PAGES * sizeof *pages);
    size_t at = page * 0x9e3779b97f4a7c15u >> 46;
    while (pages[at].page != page && pages[at].page != 0)
        at = (at + 1) % MAX_PAGES;
    if (!pages[at].cell) {
        pages[at].page = page;
        pages[at].cell = memory_get(PAGE_BYTES * sizeof(Cell));
    }
    return pages[at].cell;
}

// Neighbours are looked up one after the other, on few pages.
static Cell *cell_of(const char *p) {
    enum { RECENT = 64 };
    static Page recent[RECENT];
    uintptr_t page = (uintptr_t)p / PAGE_BYTES;
    Page *r = &recent[page % RECENT];
    if (r->page != page)
        *r = (Page){page, page_cells(page)};
    return &r->cell[(uintptr_t)p % PAGE_BYTES];
}

// ---- regions ----

typedef struct {
    const char *start;
    size_t bytes;
    const char *name;
    bool initialised;
} Region;

enum { MAX_REGIONS = 1024, ARG_BYTES = 1 << 15 };

static Region region[MAX_REGIONS];
static int num_regions;
static const char *arguments;

void simt_region(const void *start, size_t bytes, const char *name,
                 bool initialised) {
    if (num_regions == MAX_REGIONS) {
        fputs("simt: more than 1024 regions\n", stderr);
        abort();
    }
    region[num_regions++] = (Region){start, bytes, name, initialised};
}

void simt_regions_clear(void) {
    num_regions = 0;
}

extern char __executable_start[], _end[];

static bool inside(const char *p, const char *start, const char *stop) {
    return p >= start && p < stop;
}

static const Region *region_of(const char *p) {
    for (int i = 0; i < num_regions; i++)
        if (inside(p, region[i].start, region[i].start + region[i].bytes))
            return &region[i];
    return NULL;
}

// ---- time ----

static uint32_t epoch = 1, launch_epoch = 1, block_epoch = 1;
static int num_blocks;
static uint32_t *released;     // for each block, when it last did an atomic_add
static uint32_t acquire_epoch; // when this block first did one; 0: never
static int acquirer;           // the thread that did

void race_launch(int grid, const size_t *arg) {
    launch_epoch = ++epoch;
    free(released);
    released = calloc((size_t)grid, sizeof *released);
    num_blocks = released ? grid : 0;
    arguments = (const char *)arg;
}

void race_block(void) {
    block_epoch = ++epoch;
    acquire_epoch = 0;
}

void race_barrier(void) {
    epoch++;
}

void race_atomic(void) {
    released[simt_self->block] = epoch;
    if (acquire_epoch)
        return;
    acquire_epoch = epoch;
    acquirer = simt_self->thread;
}

static uint32_t thread_id(void) {
    return (uint32_t)(simt_self->block * SIMT_MAX_BLOCK + simt_self->thread);
}

// Whether this thread has seen the accesses of `who`, in an earlier block, at
// `when`.  Other threads of that block must have passed a barrier before the
// atomic_add.
static bool visible(uint32_t who, uint32_t when) {
    if (!acquire_epoch ||
        (epoch == acquire_epoch && simt_self->thread != acquirer))
        return false;
    uint32_t block = who / SIMT_MAX_BLOCK;
    return block < (uint32_t)num_blocks && when < released[block];
}

// Whether an access by `who` at `when` has no order with one to the same byte
// by this thread now.  Each block has shared memory of its own.
static bool conflicts(bool shared, uint32_t who, uint32_t when) {
    if (when < launch_epoch)
        return false;
    if (when < block_epoch)
        return !shared && !visible(who, when);
    return who != thread_id() && when == epoch;
}

// ---- reports ----

static void address_find(const void *pc, char *line, size_t bytes) {
    Dl_info info;
    char command[512], text[256];
    snprintf(line, bytes, "%p", pc);
    if (!dladdr(pc, &info) || !info.dli_fname)
        return;
    // A return address lies behind the call.
    snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null",
             info.dli_fname,
             (size_t)((const char *)pc - (const char *)info.dli_fbase - 1));
    FILE *f = popen(command, "r");
    if (f && fgets(text, sizeof text, f) && text[0] != '?')
        snprintf(line, bytes, "%.*s", (int)strcspn(text, " \n"), text);
    if (f)
        pclose(f);
}

// The source line of a code address.  A race happens many times at one
// address, and finding the line takes a process.
static const char *address_line(const void *pc) {
    enum { MAX_LINES = 64 };
    static struct {
        const void *pc;
        char text[256];
    } line[MAX_LINES];
    static int next;
    for (int i = 0; i < MAX_LINES; i++)
        if (line[i].pc == pc)
            return line[i].text;
    int at = next++ % MAX_LINES;
    line[at].pc = pc;
    address_find(pc, line[at].text, sizeof line[at].text);
    return line[at].text;
}

static const char *memory_name(const char *p) {
    const Region *r = region_of(p);
    return r ? r->name : simt_is_shared(p) ? "shared memory" : "global memory";
}

static void race_report(const char *what, const char *p, const void *pc,
                        const uint32_t *other) {
    char fault[400], with[64] = "";
    snprintf(fault, sizeof fault, "%s: %s in %s", address_line(pc), what,
             memory_name(p));
    if (other)
        snprintf(with, sizeof with, " and block %u thread %u",
                 *other / SIMT_MAX_BLOCK, *other % SIMT_MAX_BLOCK);
    simt_fault_add(fault, "block %d thread %d%s", simt_self->block,
                   simt_self->thread, with);
}

// ---- accesses ----

static void cell_write(Cell *c, const char *p, bool shared, const void *pc) {
    if (conflicts(shared, c->writer, c->write_epoch))
        race_report("two writes without order", p, pc, &c->writer);
    bool many = c->read_epoch == epoch && c->shared_read;
    bool blocks = !shared && c->read_epoch >= launch_epoch && c->block_read &&
                  !acquire_epoch;
    if (many || blocks || conflicts(shared, c->reader, c->read_epoch))
        race_report("a write without order after a read", p, pc, &c->reader);
    c->writer = thread_id();
    c->write_epoch = epoch;
}

static void cell_read(Cell *c, const char *p, bool shared, const void *pc) {
    if (conflicts(shared, c->writer, c->write_epoch))
        race_report("a read without order after a write", p, pc, &c->writer);
    if (c->read_epoch != epoch) {
        c->shared_read = false;
        c->block_read = c->read_epoch >= launch_epoch &&
                        (c->block_read || c->read_epoch < block_epoch);
    } else if (c->reader != thread_id()) {
        c->shared_read = true;
    }
    c->reader = thread_id();
    c->read_epoch = epoch;
}

// Whether the bytes are in a declared region.
static bool access_allowed(const char *p, size_t bytes, bool write,
                           const Region *r, const void *pc) {
    if (r && p + bytes <= r->start + r->bytes)
        return true;
    bool own = inside(p, arguments, arguments + ARG_BYTES) ||
               inside(p, __executable_start, _end) ||
               inside(p, (char *)simt_self, (char *)(simt_self + 1));
    if (own && !write)
        return true;
    race_report(write ? "a write outside every buffer"
                      : "a read outside every buffer",
                p, pc, NULL);
    return false;
}

// Whether the byte has been written.  Shared memory starts anew with each
// block.
static bool byte_written(const Cell *c, bool shared, const Region *r) {
    if (shared)
        return c->write_epoch >= block_epoch;
    return !r || r->initialised || c->write_epoch != 0;
}

static void access_note(const void *address, size_t bytes, bool write,
                        const void *pc) {
    const char *p = address;
    if (!simt_self || simt_on_stack(p))
        return;
    const Region *r = region_of(p);
    bool shared = simt_is_shared(p);
    if (num_regions > 0 && !shared && !access_allowed(p, bytes, write, r, pc))
        return;
    for (size_t i = 0; i < bytes; i++) {
        Cell *c = cell_of(p + i);
        if (write) {
            cell_write(c, p + i, shared, pc);
            continue;
        }
        if (!byte_written(c, shared, r))
            race_report("a read of what nothing has written", p + i, pc, NULL);
        cell_read(c, p + i, shared, pc);
    }
}

// ---- functions that instrumented code calls ----

#define CALLED(name, bytes, write)                                             \
    void name(void *p);                                                        \
    void name(void *p) {                                                       \
        access_note(p, bytes, write, __builtin_return_address(0));             \
    }

// clang-format off
CALLED(__tsan_read1, 1, false)             CALLED(__tsan_write1, 1, true)
CALLED(__tsan_read2, 2, false)             CALLED(__tsan_write2, 2, true)
CALLED(__tsan_read4, 4, false)             CALLED(__tsan_write4, 4, true)
CALLED(__tsan_read8, 8, false)             CALLED(__tsan_write8, 8, true)
CALLED(__tsan_read16, 16, false)           CALLED(__tsan_write16, 16, true)
CALLED(__tsan_unaligned_read2, 2, false)   CALLED(__tsan_unaligned_write2, 2, true)
CALLED(__tsan_unaligned_read4, 4, false)   CALLED(__tsan_unaligned_write4, 4, true)
CALLED(__tsan_unaligned_read8, 8, false)   CALLED(__tsan_unaligned_write8, 8, true)
CALLED(__tsan_unaligned_read16, 16, false) CALLED(__tsan_unaligned_write16, 16, true)
    // clang-format on

    void __tsan_read_range(void *p, size_t bytes);
void __tsan_read_range(void *p, size_t bytes) {
    access_note(p, bytes, false, __builtin_return_address(0));
}

void __tsan_write_range(void *p, size_t bytes);
void __tsan_write_range(void *p, size_t bytes) {
    access_note(p, bytes, true, __builtin_return_address(0));
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
    access_note(from, bytes, false, __builtin_return_address(0));
    access_note(to, bytes, true, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes) {
    access_note(to, bytes, true, __builtin_return_address(0));
    return memset(to, value, bytes);
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
