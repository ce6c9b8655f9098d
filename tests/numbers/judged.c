// Judged: see judged.h.
#include "tests/numbers/judged.h"

#include "base/text.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *judged_text(Arena *a, const char *path) {
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot read %s", path);
    char *text = arena_alloc(a, MOST);
    size_t length = fread(text, 1, MOST - 1, f);
    ck_assert_msg(length < MOST - 1 && !ferror(f), "%s is too long", path);
    fclose(f);
    text[length] = '\0';
    return text;
}

static Line read_line(Arena *a, char *text) {
    Line l = {.kind = strtok(text, " "), .name = ""};
    if (strcmp(l.kind, "loss") != 0)
        l.name = strtok(NULL, " ");
    char *rest = strtok(NULL, "");
    ck_assert_msg(rest != NULL, "no numbers for %s %s", l.kind, l.name);
    l.value = ARENA_ARRAY(a, strlen(rest), double);
    for (char *end = rest;; rest = end) {
        double value = strtod(rest, &end);
        if (end == rest)
            return l;
        l.value[l.count++] = value;
    }
}

Judged judged_read(Arena *a, const char *name) {
    const char *source = getenv("SINTER_SOURCE");
    const char *base = arena_format(a, "%s/tests/golden/numbers/%s",
                                    source ? source : ".", name);
    char *text = judged_text(a, arena_format(a, "%s.txt", base));
    Judged j = {.model = arena_format(a, "%s.net", base),
                .line = ARENA_ARRAY(a, strlen(text) + 1, Line)};
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char *next = text + length + (text[length] != '\0');
        text[length] = '\0';
        j.line[j.count++] = read_line(a, text);
        text = next;
    }
    return j;
}

void judged_compare(const Line *l, const double *found, double tolerance) {
    double size = 0;
    for (int i = 0; i < l->count; i++)
        size += l->value[i] * l->value[i] / l->count;
    for (int i = 0; i < l->count; i++) {
        double allowed = tolerance * (fabs(l->value[i]) + sqrt(size) + 1e-3);
        ck_assert_msg(fabs(found[i] - l->value[i]) <= allowed,
                      "%s %s: element %d is %.12g, PyTorch has %.12g", l->kind,
                      l->name, i, found[i], l->value[i]);
    }
}
