// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nearest: see nearest.h.

#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum {
    MAX_COMPARED = 40,
    MAX_CANDIDATES = 2000,
    MIN_PREFIX = 3,
    TOO_FAR = 3 * MAX_COMPARED
};

static int min_int(int a, int b) {
    return a < b ? a : b;
}

// Optimal string alignment distance: insertions, deletions, substitutions and
// exchanges of neighbours.  Both strings are at most MAX_COMPARED long.
static int edit_distance(const char *a, const char *b) {
    int rows[3][MAX_COMPARED + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    int m = (int)strlen(a), n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        last[j] = j;
    for (int i = 1; i <= m; i++) {
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int cost = a[i - 1] != b[j - 1];
            row[j] = min_int(min_int(last[j] + 1, row[j - 1] + 1),
                             last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_int(row[j], before[j - 2] + 1);
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

// Drops case and underscores, which cost no distance.
static void fold(const char *s, char *out) {
    for (; *s != '\0'; s++)
        if (*s != '_')
            *out++ = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
    *out = '\0';
}

// The distance between name and other, or TOO_FAR.  A name that other begins
// with is further than all misspelt ones.
static int name_distance(const char *name, const char *other) {
    int length = (int)strlen(name), allowed = (length + 1) / 3;
    int distance = edit_distance(name, other);
    if (distance <= allowed)
        return distance;
    bool is_prefix =
        length >= MIN_PREFIX && strncmp(name, other, strlen(name)) == 0;
    return is_prefix ? MAX_COMPARED + distance : TOO_FAR;
}

void nearest_offer(Nearest *n, const char *candidate) {
    char name[MAX_COMPARED + 1], other[MAX_COMPARED + 1];
    if (strlen(n->name) > MAX_COMPARED || strlen(candidate) > MAX_COMPARED ||
        n->tried++ > MAX_CANDIDATES)
        return;
    fold(n->name, name);
    fold(candidate, other);
    int distance = name_distance(name, other);
    if (distance == TOO_FAR || (n->best != NULL && distance >= n->distance))
        return;
    n->best = candidate;
    n->distance = distance;
}
