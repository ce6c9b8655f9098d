// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passed: what lies in a folder and is no data is counted by how its names end,
// and told once: it may be data of a kind that is not known here.  Of many
// endings those are named that come first by name, in whichever order files are
// listed.

#include "runtime/data/data.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Copies the ending of a name in small letters; false where it has none that
// could be one.
static bool ending_of(char to[RT_ENDING_BYTES], const char *name) {
    const char *dot = strrchr(name, '.');
    size_t length = dot == NULL ? 0 : strlen(dot);
    if (length < 2 || length >= RT_ENDING_BYTES)
        return false;
    for (size_t i = 1; i < length; i++)
        if (!isalnum((unsigned char)dot[i]))
            return false;
    for (size_t i = 0; i <= length; i++)
        to[i] = (char)tolower((unsigned char)dot[i]);
    return true;
}

// Makes room for an ending at a place, behind which are those that come later
// by name; there are so many at most, and the last of more is an other.
static void insert(RtPassed *p, int at, const char *ending) {
    if (p->endings == RT_MOST_ENDINGS)
        p->others += p->ending[--p->endings].count;
    memmove(&p->ending[at + 1], &p->ending[at],
            (size_t)(p->endings++ - at) * sizeof p->ending[0]);
    p->ending[at].count = 0;
    memcpy(p->ending[at].name, ending, RT_ENDING_BYTES);
}

void rt_pass_over(RtPassed *p, const char *name) {
    char ending[RT_ENDING_BYTES];
    int at = 0, order = 1;
    bool known = ending_of(ending, name);
    while (known && at < p->endings &&
           (order = strcmp(ending, p->ending[at].name)) > 0)
        at++;
    if (!known || at == RT_MOST_ENDINGS) {
        p->others++;
        return;
    }
    if (order != 0)
        insert(p, at, ending);
    p->ending[at].count++;
}

void rt_passed_text(char to[RT_MOST_PASSED], const RtPassed *p,
                    const char *folder, const char *wanted) {
    char some[RT_MOST_ENDINGS * (RT_ENDING_BYTES + 24)] = "";
    size_t length = 0;
    *to = '\0';
    if (p->endings == 0 && p->others == 0)
        return;
    for (int i = 0; i < p->endings; i++)
        length += (size_t)snprintf(some + length, sizeof some - length,
                                   "%s%" PRId64 " %s", i > 0 ? ", " : "",
                                   p->ending[i].count, p->ending[i].name);
    if (p->others > 0)
        snprintf(some + length, sizeof some - length, "%s%" PRId64 " other%s",
                 length > 0 ? ", " : "", p->others, p->others == 1 ? "" : "s");
    snprintf(to, RT_MOST_PASSED, "ignored in %.200s, not %s: %s", folder,
             wanted, some);
}
