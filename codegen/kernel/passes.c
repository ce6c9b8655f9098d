// Passes on kernels that were read as kernel IR: any of them, in any order.

#include "codegen/codegen.h"
#include "codegen/kernel/tree.h"

#include <string.h>

static void fuse_products(Arena *a, Block *b) {
    block_fma(a, b, NULL);
}

static const struct {
    const char *name, *what;
    void (*run)(Arena *a, Block *b);
} passes[] = {
    {"kernel-fma", "in kernel IR: fuse products and sums", fuse_products},
    {"kernel-hoist", "in kernel IR: move invariants out of loops", block_hoist},
    {"kernel-dce", "in kernel IR: remove unused computations", block_dce},
};

enum { NUM_PASSES = sizeof passes / sizeof *passes };

const char *codegen_pass(int i, const char **what) {
    if (i >= NUM_PASSES)
        return NULL;
    *what = passes[i].what;
    return passes[i].name;
}

// Runs a comma-separated list of passes; NULL, or the name of an unknown one.
static const char *run_list(Arena *a, Block *b, const char *list) {
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        const char *name = arena_string(a, list, length);
        int i = 0;
        while (i < NUM_PASSES && strcmp(passes[i].name, name) != 0)
            i++;
        if (i == NUM_PASSES)
            return name;
        passes[i].run(a, b);
        list += length + (list[length] == ',');
    }
    return NULL;
}

const char *codegen_optimize(Arena *a, Text *t, const char *kernels,
                             const char *list) {
    while (*kernels != '\0') {
        const char *name, *why = NULL;
        Tree tree;
        if (!tree_read(a, &tree, &name, &kernels, &why))
            return why;
        why = tree_verify(a, &tree);
        if (why != NULL)
            return why;
        const char *unknown = run_list(a, &tree.body, list);
        if (unknown != NULL)
            return arena_format(a, "no pass '%s'; see sinter passes", unknown);
        why = tree_verify(a, &tree);
        if (why != NULL)
            return why;
        tree_print(t, &tree, name);
    }
    return NULL;
}
