// What the files of this test share: kernels, cut out of emitted texts, and
// what is known of each after it was compiled.
#ifndef SINTER_TESTS_NVRTC_H
#define SINTER_TESTS_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_PARAMETERS = 64, LONGEST_NAME = 255, MAX_MEMBERS = 8 };

// How wide a tensor is accessed: the sum of the widths in bytes that occur,
// which are powers of two.
typedef struct {
    int read, written;
} Widths;

typedef struct Model Model;

typedef struct {
    const Model *model;
    char name[LONGEST_NAME + 1];
    char *text;               // with the tables that belong to it
    char *key;                // the same for kernels that do the same
    int twin;                 // the first kernel with this key
    int member[MAX_MEMBERS];  // kernels that this one merges
    int num_members;
    int num_parameters;
    char *name_of[MAX_PARAMETERS], *type[MAX_PARAMETERS];
    bool bulk[MAX_PARAMETERS]; // it has rows
    bool restricted[MAX_PARAMETERS];
    uint64_t hash; // of the inputs of its machine code
    bool known;    // its facts below are, without compiling it
    bool faulty;
    int registers, shared;
    int instructions;
    int in_flight; // bytes that a thread loads before it waits
    bool stale;    // it reads what it may write as if nothing wrote to it
    Widths widths[MAX_PARAMETERS];
} Kernel;

struct Model {
    char *name;
    char *head; // the text before its first kernel
    int first, end;
};

typedef struct {
    Model *model;
    int num_models;
    Kernel *kernel;
    int num_kernels;
    bool merged; // merged kernels are meant, else the others
} Kernels;

static inline bool is_meant(const Kernels *kernels, const Kernel *k) {
    return (k->num_members > 0) == kernels->merged;
}

// Whether a kernel is one to compile: the first of those with its text.
static inline bool is_first(const Kernels *all, int i) {
    return all->kernel[i].twin == i && is_meant(all, &all->kernel[i]);
}

void *memory_get(size_t bytes);
char *file_read(const char *path);

// cut.c: the kernels of some files; equal ones are found.
Kernels kernels_cut(int num_files, char **file);
Kernel *kernel_find(const Kernels *kernels, const Model *model,
                    const char *name);

// The length of a kernel's text without the kernel itself: tables, and a
// function for kernels that merge it.
size_t kernel_body(const Kernel *k);

// accesses.c: the widths of what the PTX of a unit loads and stores.
void accesses_read(const Kernels *kernels, const Model *model, const char *ptx);

// The number of accesses of tensors with rows that are narrower than 16 bytes
// without one of the reasons that accesses.c lists; prints each.
int accesses_narrow(Kernels *kernels);

// flight.c: the bytes that a thread loads in its main loop before it waits,
// from `count` instructions of machine code for compute capability arch.  A
// phased kernel has barriers of its grid between its loops.
int bytes_in_flight(const char *text, int count, int arch, bool phased);

// known.c: takes from a file the facts of kernels that were compiled before,
// and adds the others of this run that had no fault.
void known_read(Kernels *kernels, const char *include, const char *arch,
                const char *path);
void known_add(const Kernels *kernels, const char *path);

#endif
