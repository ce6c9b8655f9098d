// sinter benchcmp: two results of sinter bench --json beside each other.
//
// A difference is called real where the 95% intervals of the two medians do not
// meet, which is stricter than a test of the difference at that level would be.
#define _POSIX_C_SOURCE 200809L // isatty

#include "base/exits.h"
#include "tools/compare/result.h"
#include "tools/compare/spread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool times_read(Arena *a, const char *text, Spread *out) {
    const char *at = result_behind(a, text, "step_ms");
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

static int bench_read(Arena *a, const Arguments *arguments, const char *path,
                      Spread *out, const char **what) {
    Result r;
    int status = result_read(a, arguments, "bench", "runs", path, &r);
    if (status != EXIT_GOOD)
        return status;
    if (!times_read(a, r.text, out)) {
        complain(arguments, "%s: \"step_ms\" has no times of steps", path);
        return EXIT_DATA;
    }
    *what = arena_format(a, "%s, batch %" PRId64 ", on %s", r.model, r.batch,
                         r.device);
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
            bench_read(a, arguments, arguments->operand[i], &s[i], &what[i]);
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
