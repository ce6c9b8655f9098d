// Passes on kernels that were read as kernel IR: any of them, in any order.

#include "codegen/kernel/parametrize.h"

#include <string.h>

static void fuse_products(Arena *a, Stmts *b) {
    stmts_fma(a, b, NULL);
}

static void interchange(Arena *a, Stmts *b) {
    stmts_interchange(a, b);
}

// A pass on each kernel's body, or on all kernels together.
static const struct {
    const char *name, *purpose;
    void (*each)(Arena *a, Stmts *b);
    void (*all)(Arena *a, Tree *tree, int count);
} passes[] = {
    {"kernel-fma", "in kernel IR: fuse products and sums", fuse_products, NULL},
    {"kernel-hoist", "in kernel IR: move invariants out of loops", stmts_hoist,
     NULL},
    {"kernel-interchange", "in kernel IR: loop over few columns in each row",
     interchange, NULL},
    {"kernel-dce", "in kernel IR: remove unused computations", stmts_dce, NULL},
    {"kernel-promote",
     "in kernel IR: promote factors of columns to shared memory", stmts_promote,
     NULL},
    {"kernel-parametrize",
     "in kernel IR: make parameters of numbers that differ", NULL,
     kernels_parametrize},
};

enum { NUM_PASSES = sizeof passes / sizeof *passes };

const char *codegen_pass(int i, const char **purpose) {
    if (i >= NUM_PASSES)
        return NULL;
    *purpose = passes[i].purpose;
    return passes[i].name;
}

// Runs a comma-separated list of passes; NULL, or the name of an unknown one.
static const char *run_list(Arena *a, Tree *tree, int count, const char *list) {
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        const char *name = arena_string(a, list, length);
        int i = 0;
        while (i < NUM_PASSES && strcmp(passes[i].name, name) != 0)
            i++;
        if (i == NUM_PASSES)
            return name;
        if (passes[i].all != NULL)
            passes[i].all(a, tree, count);
        for (int k = 0; k < count && passes[i].each != NULL; k++)
            passes[i].each(a, &tree[k].body);
        list += length + (list[length] == ',');
    }
    return NULL;
}

// NULL, or why one of the kernels is invalid.
static const char *verify_all(Arena *a, const Tree *tree, int count) {
    const char *why = NULL;
    for (int k = 0; k < count && why == NULL; k++)
        why = tree_verify(a, &tree[k]);
    return why;
}

const char *codegen_optimize(Arena *a, Text *t, const char *kernels,
                             const char *list) {
    Tree *tree = NULL;
    int count = 0;
    while (*kernels != '\0') {
        const char *why = NULL;
        Tree own;
        if (!tree_read(a, &own, &kernels, &why))
            return why;
        ARENA_APPEND(a, tree, count, own);
    }
    const char *why = verify_all(a, tree, count);
    if (why != NULL)
        return why;
    const char *unknown = run_list(a, tree, count, list);
    if (unknown != NULL)
        return arena_format(a, "no pass '%s'; see sinter passes", unknown);
    why = verify_all(a, tree, count);
    for (int k = 0; k < count && why == NULL; k++)
        tree_print(t, &tree[k]);
    return why;
}
