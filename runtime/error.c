// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors: one sentence and an exit status, carried up to main; and warnings,
// which are said at once.
#define _POSIX_C_SOURCE 200809L

#include "base/terminal.h"
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A name of a file or of what is in it may be part of the text, and is not to
// steer a terminal.
bool rt_fail(RtError *e, int status, const char *format, ...) {
    char text[sizeof e->text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    e->status = status;
    terminal_text(e->text, sizeof e->text, text);
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

void rt_sayv(const char *before, const char *format, va_list list) {
    char text[2 * RT_MOST_SAID], shown[2 * sizeof text];
    vsnprintf(text, sizeof text, format, list);
    terminal_text(shown, sizeof shown, text);
    fprintf(stderr, "%s%s\n", before, shown);
}

void rt_say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    rt_sayv("", format, list);
    va_end(list);
}

void rt_warn(const char *format, ...) {
    char before[24];
    va_list list;
    snprintf(before, sizeof before, "%swarning: ", rt_wiped());
    va_start(list, format);
    rt_sayv(before, format, list);
    va_end(list);
}
