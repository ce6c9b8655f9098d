// Mark: what kernels that do the same may differ in.
//
// The text of a kernel is written once, for all that has to be done with it.
// Where it says its own name, the number of a node, a size or what is for a
// reader alone, that is marked where it is written.  So kernels are compared
// and named by their marks, and no text is read as C again.

#include "codegen/emit.h"

#include <string.h>

enum { MARK_ENDS = '\002' };

bool piece_next(const char **text, Piece *p) {
    static const char opening[] = {OF_MEMBER, OWN,     NUMBER,   SIZED,
                                   SCALED,    DEFINES, REMARKS,  NOT_ON_HOST,
                                   BODY,      ENTRY,   STREAMED, '\0'};
    const char *s = *text;
    size_t plain = strcspn(s, opening);
    if (*s == '\0')
        return false;
    if (plain > 0) {
        *p = (Piece){PLAIN, s, plain};
        *text = s + plain;
        return true;
    }
    const char *end = strchr(s, MARK_ENDS);
    *p = (Piece){(Mark)*s, s + 1, (size_t)(end - s) - 1};
    *text = end + 1;
    return true;
}

bool is_given(Mark m) {
    return m == SIZED || m == SCALED || m == STREAMED;
}

void piece_add(Text *t, Piece p) {
    bool marked = p.mark != PLAIN;
    text_bytes(t, p.s - marked, p.length + 2 * marked);
}

const char *text_unmarked(Arena *a, const char *text) {
    Text t = text_new(a);
    for (Piece p; piece_next(&text, &p);)
        text_bytes(&t, p.s, p.length);
    return text_string(&t);
}

void kernel_named(Arena *a, Kernel *k, const Sizes *sizes) {
    Arena *scratch = arena_new();
    Text t = text_new(scratch);
    Piece p;
    int size = 0;
    for (const char *s = k->text; piece_next(&s, &p);) {
        const char *given = NULL;
        if (p.mark == REMARKS && t.length == 0)
            k->comment = p.length;
        else if (p.mark == ENTRY)
            k->entry = t.length;
        else if (p.mark == BODY)
            k->body = t.length;
        if (p.mark == OWN)
            given = k->name;
        else if (p.mark == BODY && sizes != NULL)
            given = sizes->declared;
        else if (is_given(p.mark) && sizes != NULL)
            given = sizes->name[size++];
        if (given != NULL)
            text_bytes(&t, given, strlen(given));
        else
            text_bytes(&t, p.s, p.length);
    }
    k->text = arena_string(a, text_string(&t), t.length);
    arena_free(scratch);
}

void node_line(Text *t, NodeId n, const char *format, ...) {
    Text named = text_new(t->arena), line = named;
    va_list list;
    for (const char *s = format; *s != '\0'; s++)
        if (*s == '#')
            text_add(&named, NODE, n);
        else
            text_bytes(&named, s, 1);
    va_start(list, format);
    text_addv(&line, text_string(&named), list);
    va_end(list);
    text_line(t, "%s", text_string(&line));
}
