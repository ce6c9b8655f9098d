// Source lines: the lines of the model's files that a group comes from.

#include "codegen/emit.h"

#include <stdlib.h>
#include <string.h>

static int by_line(const void *a, const void *b) {
    const Origin *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : (x->line > y->line) - (x->line < y->line);
}

// The origins of a group's nodes in ascending order, each once.
static int find_lines(const Graph *g, const Group *group, Origin *line) {
    int count = 0, distinct = 0;
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].from.file != NULL)
            line[count++] = g->node[n].from;
    qsort(line, (size_t)count, sizeof *line, by_line);
    for (int i = 0; i < count; i++)
        if (i == 0 || by_line(&line[i], &line[i - 1]) != 0)
            line[distinct++] = line[i];
    return distinct;
}

const char *group_lines(const Graph *g, Arena *a, const Group *group,
                        const char *between, int most) {
    size_t nodes = (size_t)(group->last - group->first) + 1;
    Origin *line = ARENA_ARRAY(a, nodes, Origin);
    int count = find_lines(g, group, line), written = 0;
    Text t = text_new(a);
    for (int i = 0; i < count; i++) {
        bool file = i == 0 || strcmp(line[i].file, line[i - 1].file) != 0;
        if (file) {
            text_add(&t, "%s%s:", i > 0 ? " " : "", file_text(a, line[i].file));
            written = 0;
        }
        if (written < most)
            text_add(&t, "%s%d", file ? "" : between, line[i].line);
        else if (written == most)
            text_add(&t, "%s...", between);
        written++;
    }
    return text_string(&t);
}
