// Nearest: see nearest.h.

#include "base/nearest.h"

#include <string.h>

enum { LONGEST_COMPARED = 40, MOST_CANDIDATES = 2000 };

static int least(int a, int b) {
    return a < b ? a : b;
}

// Optimal string alignment distance: insertions, deletions, substitutions and
// exchanges of neighbours.  Both strings are at most LONGEST_COMPARED long.
static int edit_distance(const char *a, const char *b) {
    int rows[3][LONGEST_COMPARED + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    int m = (int)strlen(a), n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        last[j] = j;
    for (int i = 1; i <= m; i++) {
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int cost = a[i - 1] != b[j - 1];
            row[j] =
                least(least(last[j] + 1, row[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[n];
}

Nearest nearest_to(const char *name) {
    return (Nearest){.name = name};
}

// Case and underscores are cheap to get wrong, so they do not count.
static void fold(const char *s, char *out) {
    for (; *s != '\0'; s++)
        if (*s != '_')
            *out++ = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
    *out = '\0';
}

void nearest_offer(Nearest *n, const char *candidate) {
    char name[LONGEST_COMPARED + 1], other[LONGEST_COMPARED + 1];
    if (strlen(n->name) > LONGEST_COMPARED ||
        strlen(candidate) > LONGEST_COMPARED || n->tried++ > MOST_CANDIDATES)
        return;
    fold(n->name, name);
    fold(candidate, other);
    int distance = edit_distance(name, other);
    int allowed = ((int)strlen(name) + 1) / 3;
    if (distance > allowed || (n->best != NULL && distance >= n->distance))
        return;
    n->best = candidate;
    n->distance = distance;
}

void nearest_note(const Nearest *n, Diagnostic *d) {
    if (n->best != NULL)
        diag_note(d, "did you mean `%s`?", n->best);
}
