// Structural key: a text that is equal for two kernels only if they compute the
// same.
#ifndef CODEGEN_STRUCTURAL_KEY_H
#define CODEGEN_STRUCTURAL_KEY_H

#include "codegen/emit.h"

enum { MOST_NAMES = 4 }; // ROWS, C, CG and WIDTH

// A number that may differ within a family.
typedef struct {
    ExprKind kind; // X_SIZE, X_STREAM or X_SCALE
    int64_t whole;
    double real;
    const Expr *of; // constant that holds it; NULL: a literal
} Size;

// The sizes of a kernel in order.
typedef struct {
    Size *size;
    int count;
    const Constant *name[MOST_NAMES]; // the kernel's constants that are sizes
    int names;
} Sizes;

// Appends the key of k's tree, with nodes renumbered.  If z is not NULL, sizes
// go to z instead of the key.
void kernel_key(Arena *a, Text *t, const Kernel *k, Numbers *n, Sizes *z);

// Whether x is a size of a kernel with these named constants.
bool is_size(const Sizes *z, const Expr *x);

#endif
