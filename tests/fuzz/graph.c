// Any bytes as a graph: a message or a graph; one that the verifier accepts is
// printed and read back as the same.
#include "ir/ir.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *a = arena_new();
    const char *error = NULL;
    const Graph *g = graph_read(a, (const char *)data, size, &error);
    if ((g == NULL) != (error != NULL))
        abort();
    if (g != NULL && graph_verify(g, a) == NULL) {
        Text once = text_new(a), twice = text_new(a);
        graph_print(&once, g);
        g = graph_read(a, text_string(&once), once.length, &error);
        if (g == NULL)
            abort();
        graph_print(&twice, g);
        if (strcmp(text_string(&once), text_string(&twice)) != 0)
            abort();
    }
    arena_free(a);
    return 0;
}
