// Key: a text that kernels share only if they do the same.
#ifndef CODEGEN_KEY_H
#define CODEGEN_KEY_H

#include "codegen/emit.h"

enum { MOST_NAMES = 4 }; // ROWS, C, CG and WIDTH

// A number of a kernel in which others of its family may differ.
typedef struct {
    ExprKind kind; // X_SIZE, X_STREAM or X_SCALE
    int64_t whole;
    double real;
    const Expr *of; // the constant's value, in which it is named; NULL: it is
                    // the number itself
} Size;

// The sizes of a kernel in their order.
typedef struct {
    Size *size;
    int count;
    const Constant *name[MOST_NAMES]; // the kernel's constants that are sizes
    int names;
} Sizes;

// Appends the key of k's tree, in which nodes count anew.  With z, sizes are no
// part of it, and z has them.
void kernel_key(Arena *a, Text *t, const Kernel *k, Numbers *n, Sizes *z);

// Whether x is one of the sizes of a kernel with these named ones.
bool is_size(const Sizes *z, const Expr *x);

#endif
