// Errors: one sentence and an exit status, carried up to main; and warnings,
// which are said at once.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A name of a file or of what is in it may be part of the text, and is not to
// steer a terminal.
static void make_plain(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

bool rt_fail(RtError *e, int status, const char *format, ...) {
    e->status = status;
    va_list list;
    va_start(list, format);
    vsnprintf(e->text, sizeof e->text, format, list);
    va_end(list);
    make_plain(e->text);
    return false;
}

const char *rt_wiped(void) {
    const char *term = getenv("TERM");
    bool can = isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb");
    return can ? "\r\033[K" : "";
}

int rt_complain(const RtError *e) {
    fprintf(stderr, "%serror: %s\n", rt_wiped(), e->text);
    return e->status;
}

void rt_warn(const char *format, ...) {
    char text[2 * RT_MOST_SAID];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    make_plain(text);
    fprintf(stderr, "%swarning: %s\n", rt_wiped(), text);
}
