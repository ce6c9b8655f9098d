// Errors: one sentence and an exit status, carried up to main.

#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>

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

int rt_complain(const RtError *e) {
    fprintf(stderr, "error: %s\n", e->text);
    return e->status;
}
