// What the files of this test share: kernels, cut out of emitted texts, and
// what is known of each after it was compiled.
#ifndef SINTER_TESTS_NVRTC_H
#define SINTER_TESTS_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_PARAMETERS = 64, LONGEST_NAME = 255, MOST_MEMBERS = 8 };

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
    int unit;                 // of such, the text in which it is compiled
    int member[MOST_MEMBERS]; // kernels that this one joins
    int num_members;
    int num_parameters;
    char *name_of[MOST_PARAMETERS], *type[MOST_PARAMETERS];
    bool bulk[MOST_PARAMETERS]; // it has rows
    uint64_t hash; // where it is asked for: of its text and prelude
    bool known;    // what follows is, without compiling it
    int registers, shared, spilled;
    int instructions;
    bool stale; // it reads global memory as if nothing wrote to it
    Widths widths[MOST_PARAMETERS];
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
    bool joined;   // those that join others are meant, else those that do not
    bool reported; // what is known is all that reports tell
} Kernels;

static inline bool is_meant(const Kernels *kernels, const Kernel *k) {
    return (k->num_members > 0) == kernels->joined;
}

void *memory_get(size_t bytes);
char *file_read(const char *path);

// cut.c: the kernels of some files; equal ones are found.
Kernels kernels_cut(int num_files, char **file);
Kernel *kernel_find(const Kernels *kernels, const Model *model,
                    const char *name);

// The length of a kernel's text without the kernel itself: tables, and a
// function for kernels that join it.
size_t kernel_body(const Kernel *k);

// accesses.c: the widths of what the PTX of a unit loads and stores.
void accesses_read(const Kernels *kernels, const Model *model, char *ptx);

// Why a tensor with rows is accessed by less than 16 bytes, in one word: ""
// where it is not, NULL where there is none of the reasons.  accesses_explain
// lists them.
const char *access_reason(const Kernel *k, int parameter);
void accesses_explain(FILE *f);

// How many accesses of tensors with rows are narrower than 16 bytes without one
// of the reasons that accesses.c lists; each is said.
int accesses_narrow(const Kernels *kernels);

// report.c: compares with or, where BLESS is set, writes FOLDER/MODEL.ARCH; how
// many files differ.
int reports_compare(const Kernels *kernels, const char *arch,
                    const char *folder);

// Writes the line that says which NVRTC a report is of; whether that of the
// file is this one; and whether a file differs from its text, after BLESS.
void report_head(FILE *f);
bool report_fits(const char *path);
bool report_differs(const char *path, const char *text);

// known.c: takes from FOLDER/all.ARCH what is known, and compares that file, as
// reports are, with what is known after the others were compiled.
void known_read(Kernels *kernels, const char *include, const char *arch,
                const char *folder);
int known_compare(const Kernels *kernels, const char *arch, const char *folder);

#endif
