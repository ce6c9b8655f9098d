// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ignored: counts files of a folder that are not data, by suffix, and reports
// them once, as they may be data of an unknown kind.  If there are many
// suffixes, the first ones in alphabetical order are named, in any order of
// files.

#include "runtime/data/data.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Copies the suffix of a name in lower case; false if it has no plausible one.
static bool suffix_of(char to[RT_SUFFIX_BYTES], const char *name) {
    const char *dot = strrchr(name, '.');
    size_t length = dot == NULL ? 0 : strlen(dot);
    if (length < 2 || length >= RT_SUFFIX_BYTES)
        return false;
    for (size_t i = 1; i < length; i++)
        if (!isalnum((unsigned char)dot[i]))
            return false;
    for (size_t i = 0; i <= length; i++)
        to[i] = (char)tolower((unsigned char)dot[i]);
    return true;
}

// Inserts a suffix at its place in alphabetical order; if the table is full,
// the last one is counted as other.
static void insert(RtIgnored *p, int at, const char *suffix) {
    if (p->suffixes == RT_MAX_SUFFIXES)
        p->others += p->suffix[--p->suffixes].count;
    memmove(&p->suffix[at + 1], &p->suffix[at],
            (size_t)(p->suffixes++ - at) * sizeof p->suffix[0]);
    p->suffix[at].count = 0;
    memcpy(p->suffix[at].name, suffix, RT_SUFFIX_BYTES);
}

void rt_ignored_add(RtIgnored *p, const char *name) {
    char suffix[RT_SUFFIX_BYTES];
    int at = 0, order = 1;
    if (strcmp(name, RT_CLASSES_FILE) == 0)
        return;
    bool known = suffix_of(suffix, name);
    while (known && at < p->suffixes &&
           (order = strcmp(suffix, p->suffix[at].name)) > 0)
        at++;
    if (!known || at == RT_MAX_SUFFIXES) {
        p->others++;
        return;
    }
    if (order != 0)
        insert(p, at, suffix);
    p->suffix[at].count++;
}

void rt_ignored_text(char to[RT_IGNORED_BYTES], const RtIgnored *p,
                     const char *folder, const char *expected) {
    char list[RT_MAX_SUFFIXES * (RT_SUFFIX_BYTES + 24)] = "";
    size_t length = 0;
    *to = '\0';
    if (p->suffixes == 0 && p->others == 0)
        return;
    for (int i = 0; i < p->suffixes; i++)
        length += (size_t)snprintf(list + length, sizeof list - length,
                                   "%s%" PRId64 " %s", i > 0 ? ", " : "",
                                   p->suffix[i].count, p->suffix[i].name);
    if (p->others > 0)
        snprintf(list + length, sizeof list - length, "%s%" PRId64 " other%s",
                 length > 0 ? ", " : "", p->others, p->others == 1 ? "" : "s");
    snprintf(to, RT_IGNORED_BYTES, "ignored in %.200s, not %s: %s", folder,
             expected, list);
}
