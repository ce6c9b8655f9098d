// Source lines: the lines of the model's files that a group comes from.

#include "codegen/emit.h"

#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b) {
    const Origin *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : (x->line > y->line) - (x->line < y->line);
}

// The origins of a group's nodes in ascending order, each once.
static int find_places(const Graph *g, const Group *group, Origin *place) {
    int count = 0, distinct = 0;
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].from.file != NULL)
            place[count++] = g->node[n].from;
    qsort(place, (size_t)count, sizeof *place, by_place);
    for (int i = 0; i < count; i++)
        if (i == 0 || by_place(&place[i], &place[i - 1]) != 0)
            place[distinct++] = place[i];
    return distinct;
}

const char *group_lines(const Graph *g, Arena *a, const Group *group,
                        const char *between, int most) {
    size_t nodes = (size_t)(group->last - group->first) + 1;
    Origin *place = ARENA_ARRAY(a, nodes, Origin);
    int count = find_places(g, group, place), written = 0;
    Text t = text_new(a);
    for (int i = 0; i < count; i++) {
        bool file = i == 0 || strcmp(place[i].file, place[i - 1].file) != 0;
        if (file) {
            text_add(&t, "%s%s:", i > 0 ? " " : "",
                     file_text(a, place[i].file));
            written = 0;
        }
        if (written < most)
            text_add(&t, "%s%d", file ? "" : between, place[i].line);
        else if (written == most)
            text_add(&t, "%s...", between);
        written++;
    }
    return text_string(&t);
}
