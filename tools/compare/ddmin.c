// Ddmin: finds the parts of a model file that can be left out, or be smaller.
// Brackets, commas, lines and the operator |> delimit layers, arguments,
// statements and blocks.  The front end decides whether the rest is a model.
#include "tools/compare/ddmin.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *a;
    const char *text;
    Cut *cut;
    int count;
} Cuts;

static void cut_add(Cuts *c, size_t start, size_t end, const char *with) {
    if (start >= end)
        return;
    ARENA_APPEND(c->a, c->cut, c->count, (Cut){start, end, with});
}

// The end of a comment or string that begins at `at`, or `at`.
static size_t skip_quiet(const char *text, size_t at) {
    if (text[at] == '#')
        return at + strcspn(text + at, "\n");
    if (text[at] != '"')
        return at;
    for (at++; text[at] && text[at] != '"' && text[at] != '\n'; at++)
        at += text[at] == '\\' && text[at + 1];
    return at + (text[at] == '"');
}

// The end of the part that begins at `at`: before one of `ends` outside of
// brackets, or at the bracket that closes around it.
static size_t part_end(const char *text, size_t at, const char *ends) {
    int depth = 0;
    while (text[at]) {
        size_t after = skip_quiet(text, at);
        if (after != at) {
            at = after;
            continue;
        }
        char ch = text[at];
        if (depth == 0 && (strchr(ends, ch) || strchr(")]}", ch)) &&
            !(ch == '|' && text[at + 1] != '>'))
            break;
        depth += strchr("([{", ch) != NULL;
        depth -= strchr(")]}", ch) != NULL;
        at++;
    }
    return at;
}

static bool is_blank(char ch) {
    return ch == ' ' || ch == '\t';
}

// Adds a line with the contents of its brackets.
static void statement_add(Cuts *c, size_t line) {
    size_t start = line + strspn(c->text + line, " \t");
    if (strchr("})]#|\n", c->text[start]))
        return;
    size_t end = part_end(c->text, start, "\n");
    cut_add(c, line, end + (c->text[end] == '\n'), "");
}

static void link_add(Cuts *c, size_t at) {
    size_t end = part_end(c->text, at + 2, "|,\n");
    while (end > at && is_blank(c->text[end - 1]))
        end--;
    size_t line = at;
    while (line > 0 && is_blank(c->text[line - 1]))
        line--;
    bool alone = line > 0 && c->text[line - 1] == '\n';
    cut_add(c, alone && c->text[end] == '\n' ? line - 1 : at, end, "");
}

// Adds an argument with the comma before it, or after the first one.
static void argument_add(Cuts *c, size_t at) {
    size_t end = part_end(c->text, at + 1, ",");
    if (c->text[at] != ',') {
        at++;
        end += c->text[end] == ',';
    }
    cut_add(c, at, end, "");
}

// Adds halving a whole number that is not part of a name, at least to 1.
static void number_add(Cuts *c, size_t at, size_t end) {
    long value = strtol(c->text + at, NULL, 10);
    if (value > 3)
        cut_add(c, at, end, arena_format(c->a, "%ld", value / 2));
    if (value > 1)
        cut_add(c, at, end, "1");
}

static void place_add(Cuts *c, size_t at) {
    const char *text = c->text;
    bool first = at == 0 || text[at - 1] == '\n';
    bool named = at > 0 && (isalnum((unsigned char)text[at - 1]) ||
                            text[at - 1] == '_' || text[at - 1] == '.');
    if (first)
        statement_add(c, at);
    if (text[at] == '|' && text[at + 1] == '>')
        link_add(c, at);
    if (text[at] == ',' || text[at] == '(' || text[at] == '[')
        argument_add(c, at);
    if (isdigit((unsigned char)text[at]) && !named) {
        size_t digits = strspn(text + at, "0123456789");
        if (digits < 10 && text[at + digits] != '.' &&
            !isalpha((unsigned char)text[at + digits]))
            number_add(c, at, at + digits);
    }
}

static int longest_first(const void *x, const void *y) {
    const Cut *a = x, *b = y;
    size_t one = a->end - a->start, two = b->end - b->start;
    if (one != two)
        return one < two ? 1 : -1;
    if (a->start != b->start)
        return a->start < b->start ? 1 : -1;
    return (int)strlen(a->with) - (int)strlen(b->with);
}

Cut *ddmin_cuts(Arena *a, const char *text, int *count) {
    Cuts c = {.a = a, .text = text};
    for (size_t at = 0; text[at];) {
        size_t after = skip_quiet(text, at);
        if (after == at || at == 0 || text[at - 1] == '\n')
            place_add(&c, at);
        at = after > at ? after : at + 1;
    }
    if (c.count > 0)
        qsort(c.cut, (size_t)c.count, sizeof *c.cut, longest_first);
    *count = c.count;
    return c.cut;
}

const char *ddmin_cut(Arena *a, const char *text, const Cut *cut) {
    return arena_format(a, "%.*s%s%s", (int)cut->start, text, cut->with,
                        text + cut->end);
}
