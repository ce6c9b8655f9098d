// Memory of the device, and pinned memory of the host.
//
// Device memory lies in a range of addresses of its own, each allocation with
// its end at a page that may not be touched.  No address is allocated twice, so
// that a freed one is recognized.  Fresh memory is filled with bytes that make
// every number a NaN.
//
// All of it is opened for each operation and closed behind it, which takes the
// kernel as long as it has pages: so larger allocations have huge ones.
#define _DEFAULT_SOURCE
#include "tests/runtime/cuda/double/double.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    MANY_PAGES = 16 * PAGE,
    GRAIN = 256,
    MAX_BLOCKS = 4096,
    FRESH = 0xff
};
static const size_t range_bytes = (size_t)1 << 42;

// GLOBAL: a variable of a module, which no page is kept for.
typedef enum { DEVICE_BLOCK, PINNED_BLOCK, GLOBAL_BLOCK } BlockKind;

typedef struct {
    char *start, *pages;
    size_t bytes, used, mapped; // of the request, whole pages, and its pages
    BlockKind kind;
    const void *owner; // of a global
} Block;

static struct {
    char *range, *next; // device memory is range .. range + range_bytes
    Block block[MAX_BLOCKS];
    int count;
    size_t used; // bytes of device memory
    bool open;
} memory;

static size_t up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

static bool in_range(const void *p) {
    const char *at = p;
    return memory.range != NULL && at >= memory.range &&
           at < memory.range + range_bytes;
}

// A kernel that goes astray, or a program that touches device memory, ends
// with a word about which of them it was.
static void fault_report(int number, siginfo_t *info, void *context) {
    (void)context;
    if (in_range(info->si_addr)) {
        static const char inside[] =
            "double: a kernel or copy touches device memory that is not "
            "allocated\n";
        static const char outside[] =
            "double: the program itself touches device memory\n";
        ssize_t ignored = memory.open ? write(2, inside, sizeof inside - 1)
                                      : write(2, outside, sizeof outside - 1);
        (void)ignored;
    }
    signal(number, SIG_DFL);
}

static void range_make(void) {
    struct sigaction action = {.sa_sigaction = fault_report,
                               .sa_flags = SA_SIGINFO};
    memory.range = mmap(NULL, range_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory.range == MAP_FAILED)
        complain("no range of addresses for device memory");
    madvise(memory.range, range_bytes, MADV_HUGEPAGE);
    memory.next = memory.range + PAGE;
    sigaction(SIGSEGV, &action, NULL);
}

size_t device_bytes_total(void) {
    long limit = setting_number("SINTER_DOUBLE_MEMORY", 0);
    return limit > 0 ? (size_t)limit : (size_t)device_number("totalGlobalMem");
}

size_t device_bytes_free(void) {
    size_t total = device_bytes_total();
    return total > memory.used ? total - memory.used : 0;
}

static void block_add(Block b) {
    if (memory.count == MAX_BLOCKS)
        complain("more than %d allocations", MAX_BLOCKS);
    memory.block[memory.count++] = b;
}

// The block's end is at the end of its pages, as near as its alignment allows.
static void *pages_add(char *pages, size_t bytes, size_t mapped,
                       BlockKind kind) {
    char *start = pages + mapped - up(bytes, GRAIN);
    block_add(
        (Block){start, pages, bytes, up(bytes, PAGE), mapped, kind, NULL});
    memset(pages, FRESH, mapped);
    return start;
}

void *device_addresses(size_t bytes, size_t alignment) {
    if (memory.range == NULL)
        range_make();
    size_t mapped = up(bytes, PAGE);
    char *pages = (char *)up((uintptr_t)memory.next, alignment);
    if (mapped > (size_t)(memory.range + range_bytes - pages - PAGE))
        return NULL;
    memory.next = pages + mapped + PAGE;
    return pages;
}

void device_use(size_t bytes) {
    memory.used += bytes;
}

void device_unuse(size_t bytes) {
    memory.used -= bytes;
}

static void *device_add(char *pages, size_t bytes, size_t mapped) {
    device_use(up(bytes, PAGE));
    if (mprotect(pages, mapped, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    void *start = pages_add(pages, bytes, mapped, DEVICE_BLOCK);
    if (!memory.open)
        mprotect(pages, mapped, PROT_NONE);
    return start;
}

void *device_place(char *pages, size_t bytes) {
    return device_add(pages, bytes, up(bytes, PAGE));
}

void *device_take(size_t bytes) {
    size_t page = bytes < MANY_PAGES ? PAGE : HUGE_PAGE;
    size_t mapped = up(bytes, page);
    char *pages =
        bytes > device_bytes_free() ? NULL : device_addresses(mapped, page);
    return pages != NULL ? device_add(pages, bytes, mapped) : NULL;
}

bool code_take(void) {
    long bytes = setting_number("SINTER_DOUBLE_CODE", 0);
    return bytes == 0 || device_take((size_t)bytes) != NULL;
}

void *pinned_take(size_t bytes) {
    size_t mapped = up(bytes, PAGE);
    char *pages = mmap(NULL, mapped + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    mprotect(pages + mapped, PAGE, PROT_NONE);
    return pages_add(pages, bytes, mapped, PINNED_BLOCK);
}

// Bytes around the allocation, in its pages, must be fresh.
static void ends_check(const Block *b) {
    for (const char *p = b->pages; p < b->start; p++)
        if ((unsigned char)*p != FRESH)
            complain("something was written before the %zu bytes at %p",
                     b->bytes, (void *)b->start);
    for (const char *p = b->start + b->bytes; p < b->pages + b->mapped; p++)
        if ((unsigned char)*p != FRESH)
            complain("something was written behind the %zu bytes at %p",
                     b->bytes, (void *)b->start);
}

static bool block_give(const void *start, BlockKind kind) {
    for (int i = 0; i < memory.count; i++) {
        Block *b = &memory.block[i];
        if (b->start != start || b->kind != kind)
            continue;
        mprotect(b->pages, b->mapped, PROT_READ);
        ends_check(b);
        if (kind == PINNED_BLOCK) {
            munmap(b->pages, b->mapped + PAGE);
        } else {
            madvise(b->pages, b->mapped, MADV_DONTNEED);
            mprotect(b->pages, b->mapped, PROT_NONE);
            memory.used -= b->used;
        }
        *b = memory.block[--memory.count];
        return true;
    }
    return false;
}

bool device_give(const void *start) {
    return block_give(start, DEVICE_BLOCK);
}

bool pinned_give(const void *start) {
    return block_give(start, PINNED_BLOCK);
}

// A range of 0 bytes may lie at the end of its allocation.
Memory memory_of(const void *p, size_t bytes) {
    const char *at = p;
    for (int i = 0; i < memory.count; i++) {
        const Block *b = &memory.block[i];
        if (at >= b->pages && at < b->pages + b->mapped + (bytes == 0))
            return at < b->start || bytes > b->bytes ||
                           (size_t)(at - b->start) > b->bytes - bytes
                       ? MEMORY_NONE
                   : b->kind == PINNED_BLOCK ? MEMORY_PINNED
                                             : MEMORY_DEVICE;
    }
    return in_range(p) ? MEMORY_NONE : MEMORY_HOST;
}

void global_add(const void *owner, void *start, size_t bytes) {
    if (memory_of(start, bytes) == MEMORY_HOST)
        block_add(
            (Block){start, start, bytes, bytes, bytes, GLOBAL_BLOCK, owner});
}

void globals_forget(const void *owner) {
    for (int i = memory.count - 1; i >= 0; i--)
        if (memory.block[i].owner == owner)
            memory.block[i] = memory.block[--memory.count];
}

void device_must_hold(const char *what, const void *p, size_t bytes) {
    static const char *const is[] = {
        [MEMORY_HOST] = "memory of the host",
        [MEMORY_PINNED] = "pinned memory of the host",
        [MEMORY_NONE] = "not allocated",
    };
    Memory m = memory_of(p, bytes);
    if (m != MEMORY_DEVICE)
        complain("%s: %zu bytes at %p are %s", what, bytes, p, is[m]);
}

static void blocks_protect(int how) {
    for (int i = 0; i < memory.count; i++)
        if (memory.block[i].kind == DEVICE_BLOCK)
            mprotect(memory.block[i].pages, memory.block[i].mapped, how);
}

void device_open(void) {
    memory.open = true;
    blocks_protect(PROT_READ | PROT_WRITE);
}

void device_close(void) {
    blocks_protect(PROT_NONE);
    memory.open = false;
}
