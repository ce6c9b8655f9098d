// Passed: what lies in a folder and is no data is counted by how its names end,
// and told once: it may be data of a kind that is not known here.

#include "runtime/runtime.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

void rt_pass_over(RtPassed *p, const char *name) {
    char ending[RT_ENDING_BYTES];
    bool known = ending_of(ending, name);
    int at = 0;
    while (known && at < p->endings && strcmp(p->ending[at].name, ending) != 0)
        at++;
    if (!known || at == RT_MOST_ENDINGS) {
        p->others++;
        return;
    }
    if (at == p->endings)
        memcpy(p->ending[p->endings++].name, ending, sizeof ending);
    p->ending[at].count++;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b); // it is what an ending begins with
}

void rt_passed_text(char to[RT_MOST_PASSED], RtPassed *p, const char *folder,
                    const char *wanted) {
    char some[RT_MOST_ENDINGS * (RT_ENDING_BYTES + 24)] = "";
    size_t length = 0;
    *to = '\0';
    if (p->endings == 0 && p->others == 0)
        return;
    qsort(p->ending, (size_t)p->endings, sizeof p->ending[0], by_name);
    for (int i = 0; i < p->endings; i++)
        length += (size_t)snprintf(some + length, sizeof some - length,
                                   "%s%" PRId64 " %s", i > 0 ? ", " : "",
                                   p->ending[i].count, p->ending[i].name);
    if (p->others > 0)
        snprintf(some + length, sizeof some - length, "%s%" PRId64 " other%s",
                 length > 0 ? ", " : "", p->others, p->others == 1 ? "" : "s");
    snprintf(to, RT_MOST_PASSED, "passed over in %.200s, as no %s: %s", folder,
             wanted, some);
}
