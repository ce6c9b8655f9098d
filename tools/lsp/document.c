// Documents of the language server, and positions in them.
#include "tools/lsp/lsp.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// ---- texts ----

void document_set(Document *d, const char *text, size_t length) {
    Arena *a = arena_new();
    if (d->arena != NULL)
        arena_free(d->arena);
    d->arena = a;
    d->source = source_new(a, d->path, text, length);
    d->diags = diag_new(a);
    d->program = frontend_parse(a, d->path, text, length, NULL, 0, &d->diags);
    d->names = frontend_names(a, d->source, &d->num_names);
}

void document_free(Document *d) {
    if (d->arena != NULL)
        arena_free(d->arena);
    free(d->uri);
    free(d->path);
    *d = (Document){0};
}

// ---- positions ----

// Units of UTF-16 of the character at s.
static int units_at(const char *s) {
    return ((unsigned char)*s & 0xf8) == 0xf0 ? 2 : 1;
}

uint32_t document_offset(const Source *s, int64_t line, int64_t column) {
    size_t length;
    if (line < 0 || line >= s->num_lines)
        return (uint32_t)(line < 0 ? 0 : s->length);
    const char *text = source_line(s, (int)line + 1, &length);
    size_t at = 0;
    for (int64_t units = 0; at < length && units < column;) {
        units += units_at(text + at);
        at += utf8_length(text + at, length - at);
    }
    return s->line_start[line] + (uint32_t)at;
}

static void position_add(Text *t, const Source *s, uint32_t offset) {
    size_t length;
    int line = source_line_of(s, offset);
    const char *text = source_line(s, line, &length);
    size_t end = offset - s->line_start[line - 1];
    int64_t units = 0;
    end = end < length ? end : length;
    for (size_t at = 0; at < end; at += utf8_length(text + at, length - at))
        units += units_at(text + at);
    text_add(t, "{\"line\": %d, \"character\": %lld}", line - 1,
             (long long)units);
}

void range_add(Text *t, Span at) {
    text_add(t, "{\"start\": ");
    position_add(t, at.source, at.start);
    text_add(t, ", \"end\": ");
    position_add(t, at.source, at.end);
    text_add(t, "}");
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

Span word_at(const Source *s, uint32_t offset) {
    uint32_t from = offset, to = offset;
    while (from > 0 && in_word(s->text[from - 1]))
        from--;
    while (to < s->length && in_word(s->text[to]))
        to++;
    return (Span){s, from, to};
}

char *span_text(Arena *a, Span s) {
    return arena_string(a, s.source->text + s.start, s.end - s.start);
}

// ---- paths ----

static int digit(char c) {
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

char *uri_path(const char *uri) {
    const char *from = strncmp(uri, "file://", 7) == 0 ? uri + 7 : uri;
    char *path = malloc(strlen(from) + 1), *to = path;
    for (; path != NULL && *from != '\0'; from++) {
        bool coded = *from == '%' && digit(from[1]) >= 0 && digit(from[2]) >= 0;
        *to++ = coded ? (char)(digit(from[1]) * 16 + digit(from[2])) : *from;
        from += coded ? 2 : 0;
    }
    if (path != NULL)
        *to = '\0';
    return path;
}

char *path_uri(Arena *a, const char *path) {
    Text t = text_new(a);
    text_add(&t, "file://");
    for (; *path != '\0'; path++)
        if (in_word(*path) || strchr("/.-~", *path) != NULL)
            text_add(&t, "%c", *path);
        else
            text_add(&t, "%%%02X", (unsigned char)*path);
    return arena_string(a, text_string(&t), t.length);
}
