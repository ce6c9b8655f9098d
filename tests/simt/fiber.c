// Fibers by switching stacks: about 20 ns on x86-64, where ten instructions
// do it; elsewhere ucontext, which makes two system calls and takes 500 ns.
#define _GNU_SOURCE
#include "tests/simt/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
#include <ucontext.h>
#define SIMT_USES_UCONTEXT
#endif

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4 << 10 };

struct Fiber {
    char *stack; // above a page that may not be touched
#ifdef SIMT_USES_UCONTEXT
    ucontext_t inside, outside;
#else
    void *inside, *outside; // stack pointers while the other side runs
#endif
};

Fiber *fiber_new(void) {
    Fiber *f = calloc(1, sizeof *f);
    char *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!f || memory == MAP_FAILED ||
        mprotect(memory, GUARD_BYTES, PROT_NONE) != 0) {
        perror("simt: a thread's stack");
        abort();
    }
    f->stack = memory + GUARD_BYTES;
    return f;
}

bool fiber_owns(const Fiber *f, const void *p) {
    return (const char *)p >= f->stack &&
           (const char *)p < f->stack + STACK_BYTES;
}

#ifdef SIMT_USES_UCONTEXT

void fiber_reset(Fiber *f, void (*body)(void)) {
    getcontext(&f->inside);
    f->inside.uc_stack.ss_sp = f->stack;
    f->inside.uc_stack.ss_size = STACK_BYTES;
    f->inside.uc_link = NULL;
    makecontext(&f->inside, body, 0);
}

void fiber_enter(Fiber *f) {
    swapcontext(&f->outside, &f->inside);
}

void fiber_leave(Fiber *f) {
    swapcontext(&f->inside, &f->outside);
}

#else

// Saves the callee-saved registers on this stack, stores the stack pointer in
// *save and continues where `load` was saved.
void simt_switch(void **save, void *load);

// clang-format off
__asm__(".text\n"
        ".globl simt_switch\n"
        ".type simt_switch, @function\n"
        "simt_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size simt_switch, . - simt_switch\n");
// clang-format on

void fiber_reset(Fiber *f, void (*body)(void)) {
    // Six registers, the return address, and a null return address for body,
    // which is entered with the stack pointer 8 past a multiple of 16.
    enum { REGISTERS = 6 };
    void **top = (void **)(f->stack + STACK_BYTES);
    *--top = NULL;
    *--top = (void *)body;
    for (int i = 0; i < REGISTERS; i++)
        *--top = NULL;
    f->inside = top;
}

void fiber_enter(Fiber *f) {
    simt_switch(&f->outside, f->inside);
}

void fiber_leave(Fiber *f) {
    simt_switch(&f->inside, f->outside);
}

#endif
