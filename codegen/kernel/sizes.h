// Sizes: families of kernels that differ in sizes only.
#ifndef CODEGEN_KERNEL_SIZES_H
#define CODEGEN_KERNEL_SIZES_H

#include "codegen/codegen.h"
#include "codegen/kernel/string_map.h"
#include "codegen/kernel/tree.h"

enum { MAX_NAMES = 4 }; // ROWS, C, CG and WIDTH

// A number that may differ within a family.
typedef struct {
    ExprKind kind; // X_SIZE, X_STREAM or X_CONSTANT
    int64_t integer;
    double real;
    enum { LITERAL, CONSTANT, QUOTIENT } form; // 64, C, or CG = C / VW
} Size;

// The sizes of a kernel in order.
typedef struct {
    Size *size;
    int count;
    const Constant *name[MAX_NAMES]; // the kernel's constants that are sizes
    int names;
} Sizes;

// ---- structural_key.c ----

// Appends a text that is equal for two trees only if they compute the same,
// with nodes renumbered.  The numbers of constants that are sizes in z are left
// out; z may be NULL.
void tree_key(Arena *a, Text *t, const Tree *tree, Numbers *n, const Sizes *z);

// ---- sizes.c ----

// A kernel of a family.
typedef struct SizedKernel {
    const char *name;
    Tree *tree; // used only in the first of a family
    Sizes sizes;
    const Expr *values; // the sizes with which it calls the family's function;
                        // NULL: it has a function of its own
    struct SizedKernel *first, *next; // of its family
    const struct SizedKernel *equal; // the first with the same sizes, or itself
} SizedKernel;

typedef struct {
    Arena *a;
    StringMap first;      // by key
    SizedKernel **family; // the first of each
    int count;
} Families;

// Keys are in the scratch arena.
Families families_new(Arena *a, Arena *scratch, int most);

// Adds a kernel to its family, which it may begin.
SizedKernel *families_add(Families *f, Tree *tree);

// Makes the sizes in which a family's kernels differ parameters of the first,
// and finds the values of all.
void family_parametrize(Arena *a, SizedKernel *first);

// The pass: does so for all families of a list of kernels.
void kernels_parametrize(Arena *a, Tree *tree, int count);

#endif
