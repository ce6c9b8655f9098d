// Families of kernels that differ in specialization constants only.
#ifndef CODEGEN_KERNEL_PARAMETRIZE_H
#define CODEGEN_KERNEL_PARAMETRIZE_H

#include "codegen/codegen.h"
#include "codegen/kernel/string_map.h"
#include "codegen/kernel/tree.h"

enum { MAX_NAMES = 4 }; // ROWS, C, CG and WIDTH

// A specialization constant, SPIR-V's word: a number that may differ within a
// family.
typedef struct {
    ExprKind kind; // X_SIZE, X_STREAM or X_CONSTANT
    int64_t integer;
    double real;
    enum { LITERAL, ENUMERATOR, QUOTIENT } form; // 64, C, or CG = C / VW
} SpecConstant;

// The specialization constants of a kernel in order.
typedef struct {
    SpecConstant *spec;
    int count;
    const Enumerator *name[MAX_NAMES]; // those that are enumerators
    int names;
} SpecConstants;

// ---- structural_key.c ----

// Appends a text that is equal for two trees only if they compute the same,
// with nodes renumbered.  Specialization constants of z are left out; z
// may be NULL.
void tree_key(Arena *a, Text *t, const Tree *tree, Numbers *n,
              const SpecConstants *z);

// ---- parametrize.c ----

// A kernel of a family.
typedef struct FamilyKernel {
    const char *name;
    Tree *tree; // used only in the first of a family
    SpecConstants specs;
    const Expr *values; // with which it calls the family's function; NULL: it
                        // has a function of its own, or is equal to another
    struct FamilyKernel *first, *next; // of its family
    const struct FamilyKernel *equal; // the first with the same ones, or itself
} FamilyKernel;

typedef struct {
    Arena *a;
    StringMap first;       // by key
    FamilyKernel **family; // the first of each
    int count;
} Families;

// Keys are in the scratch arena.
Families families_new(Arena *a, Arena *scratch, int most);

// Adds a kernel to its family, which it may begin.
FamilyKernel *families_add(Families *f, Tree *tree);

// Makes the specialization constants in which a family's kernels differ
// parameters of the first, and finds the values of all.
void family_parametrize(Arena *a, FamilyKernel *first);

// The pass: does so for all families of a list of kernels.
void kernels_parametrize(Arena *a, Tree *tree, int count);

#endif
