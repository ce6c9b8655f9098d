// sinter benchcmp: two results of sinter bench --json beside each other.
//
// A difference is called real where the 95% intervals of the two medians do not
// meet, which is stricter than a test of the difference at that level would be.
#define _POSIX_C_SOURCE 200809L // isatty

#include "base/exits.h"
#include "base/source.h"
#include "tools/spread.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 28 };

// What follows "key": in the text, or NULL.
static const char *behind(Arena *a, const char *text, const char *key) {
    const char *word = arena_format(a, "\"%s\": ", key);
    const char *at = strstr(text, word);
    return at ? at + strlen(word) : NULL;
}

static const char *string_behind(Arena *a, const char *text, const char *key) {
    const char *at = behind(a, text, key);
    if (at == NULL || *at != '"')
        return "";
    return arena_string(a, at + 1, strcspn(at + 1, "\""));
}

static bool times_read(Arena *a, const char *text, Spread *out) {
    const char *at = behind(a, text, "step_ms");
    if (at == NULL || *at++ != '[')
        return false;
    double *value = ARENA_ARRAY(a, strlen(at) / 2 + 1, double);
    int count = 0;
    for (char *end; *at != ']' && *at != 0; at = end + strspn(end, ", ")) {
        value[count++] = strtod(at, &end);
        if (end == at)
            return false;
    }
    *out = spread_of(a, value, count);
    return count > 0 && *at == ']';
}

static int result_read(Arena *a, const Arguments *arguments, const char *path,
                       Spread *out, const char **what) {
    const char *why = "";
    const Source *s = source_read(a, path, MOST_BYTES, &why);
    if (s == NULL) {
        file_report(a, arguments, path, why);
        return EXIT_IO;
    }
    const char *schema = behind(a, s->text, "schema");
    if (schema == NULL || strtol(schema, NULL, 10) != 1 ||
        !times_read(a, s->text, out)) {
        complain(
            arguments,
            "%s is no result of sinter bench --json, whose \"schema\" is 1",
            path);
        return EXIT_DATA;
    }
    const char *batch = behind(a, s->text, "batch");
    *what = arena_format(a, "%s, batch %ld, on %s",
                         string_behind(a, s->text, "model"),
                         batch ? strtol(batch, NULL, 10) : 0,
                         string_behind(a, s->text, "device"));
    return EXIT_GOOD;
}

static bool is_real(const Spread *a, const Spread *b) {
    bool sure = a->confidence >= 0.95 && b->confidence >= 0.95;
    return sure && (a->high < b->low || b->high < a->low);
}

static void difference_print(Text *t, const Spread *a, const Spread *b) {
    const char *no = getenv("NO_COLOR");
    bool real = is_real(a, b), less = b->median < a->median;
    bool colour = real && isatty(STDOUT_FILENO) && !(no && *no);
    text_add(t, "%s%+.1f%%%s%s\n", colour ? less ? "\033[32m" : "\033[31m" : "",
             100 * (b->median / a->median - 1), colour ? "\033[0m" : "",
             real ? "" : ", which is not beyond what measuring leaves open");
}

static int results_compare(Arena *a, const Arguments *arguments) {
    Spread s[2];
    const char *what[2];
    Text t = text_new(a);
    for (int i = 0; i < 2; i++) {
        int status =
            result_read(a, arguments, arguments->operand[i], &s[i], &what[i]);
        if (status != EXIT_GOOD)
            return status;
    }
    if (strcmp(what[0], what[1]) != 0)
        text_add(&t, "these are not the same: %s; %s\n", what[0], what[1]);
    for (int i = 0; i < 2; i++)
        text_add(&t, "%c %10.3f ms  %.3f .. %.3f (%.1f%%, %d steps)\n", 'A' + i,
                 s[i].median, s[i].low, s[i].high, 100 * s[i].confidence,
                 s[i].count);
    text_add(&t, "B against A: ");
    difference_print(&t, &s[0], &s[1]);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}

int benchcmp_command(const Arguments *arguments) {
    Arena *a = arena_new();
    int status = results_compare(a, arguments);
    arena_free(a);
    return status;
}
