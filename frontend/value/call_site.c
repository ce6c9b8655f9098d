// Call sites of layers: costs are charged to the line that calls a function,
// not to the function's own line, which all its calls share.

#include "frontend/value/value.h"

#include <stdlib.h>
#include <string.h>

// The train block calls the model, so calls in its body are one level down.
static Span call_site(const Expansion *e) {
    const struct CallFrame *a = e->call_stack;
    int depth = e->phase == PHASE_MODEL ? 2 : 1;
    while (a != NULL && a->depth > depth)
        a = a->outer;
    return a != NULL && a->depth == depth ? a->at : (Span){0};
}

void call_site_add(Expansion *e, const char *path) {
    Span at = call_site(e);
    if (at.source == NULL)
        return;
    Atom name = atom_of(e->atoms, path, strlen(path));
    void **site = atom_value(e->arena, &e->site, name);
    if (*site != NULL)
        return;
    CallSite *s = ARENA_NEW(e->arena, CallSite);
    *s = (CallSite){name, at.source->name, source_line_of(at.source, at.start)};
    *site = s;
}

static int by_path(const void *a, const void *b) {
    const CallSite *x = a, *y = b;
    return strcmp(x->path, y->path);
}

const CallSite *call_sites_list(const Expansion *e, int *count) {
    CallSite *list = ARENA_ARRAY(e->arena, e->site.count + 1, CallSite);
    *count = 0;
    for (size_t i = 0; i < e->site.size; i++)
        if (e->site.slot[i].value != NULL)
            list[(*count)++] = *(const CallSite *)e->site.slot[i].value;
    qsort(list, (size_t)*count, sizeof *list, by_path);
    return list;
}
