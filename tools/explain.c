// sinter explain: the page of a diagnostic's code in docs/diagnostics.md, which
// is part of the compiler.
#include "base/exits.h"
#include "tools/tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char diagnostics_text[];

static const char heading[] = "\n## ";

// The page after this position, from its code on; NULL after the last.
static const char *page_after(const char *text) {
    const char *page = strstr(text, heading);
    return page ? page + sizeof heading - 1 : NULL;
}

// A code in the letters of the catalogue, whatever was typed: "E0312".  Digits
// alone are an error's.
static const char *code_of(Arena *a, const char *word) {
    if (*word && strspn(word, "0123456789") == strlen(word))
        return arena_format(a, "E%04ld", strtol(word, NULL, 10));
    char *code = arena_string(a, word, strlen(word));
    *code = (char)toupper((unsigned char)*code);
    return code;
}

static const char *page_find(Arena *a, const char *code, Nearest *near) {
    const char *page = page_after((const char *)diagnostics_text);
    for (; page; page = page_after(page)) {
        size_t length = strcspn(page, ":");
        if (strlen(code) == length && strncmp(page, code, length) == 0)
            return page;
        nearest_offer(near, arena_string(a, page, length));
    }
    return NULL;
}

// A page to the end.
static const char *page_text(Arena *a, const char *page) {
    const char *next = strstr(page, heading);
    return arena_string(a, page, next ? (size_t)(next - page) : strlen(page));
}

const char *diagnostic_page(Arena *a, const char *code) {
    Nearest near = nearest_to(code);
    const char *page = page_find(a, code, &near);
    return page ? page_text(a, page) : NULL;
}

int explain_command(Arena *a, const Arguments *arguments) {
    const char *code = code_of(a, arguments->operand[0]);
    Nearest near = nearest_to(code);
    const char *page = page_find(a, code, &near);
    if (page) {
        Text t = text_new(a);
        text_add(&t, "%s", page_text(a, page));
        lines_print(&t);
    } else {
        complain(arguments, "no diagnostic has the code '%s'%s%s%s",
                 arguments->operand[0], near.best ? "; is it " : "",
                 near.best ? near.best : "", near.best ? "?" : "");
    }
    return page ? EXIT_GOOD : EXIT_USAGE;
}
