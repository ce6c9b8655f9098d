// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors carry one sentence and an exit status up to main; warnings are printed
// at once.
#define _POSIX_C_SOURCE 200809L

#include "base/terminal.h"
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The text may contain a file name; escape sequences in it must not reach the
// terminal.
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

int rt_print_error(const RtError *e) {
    char text[sizeof e->text + 40];
    snprintf(text, sizeof text, "%s%serror:%s %s\n", rt_wiped(),
             rt_colour(stderr, "\033[1;31m"), rt_colour(stderr, "\033[0m"),
             e->text);
    rt_print(stderr, text);
    return e->status;
}

_Thread_local RtGuard *rt_guard;

void rt_guard_end(const RtError *e) {
    if (rt_guard == NULL)
        return;
    rt_guard->error = *e;
    longjmp(rt_guard->at, 1);
}

_Noreturn void rt_end(int status, const char *format, ...) {
    RtError e = {.status = status};
    va_list list;
    va_start(list, format);
    vsnprintf(e.text, sizeof e.text, format, list);
    va_end(list);
    rt_guard_end(&e);
    exit(rt_print_error(&e));
}

void rt_print_linev(const char *before, const char *format, va_list list) {
    char text[2 * RT_MESSAGE_BYTES], shown[2 * sizeof text];
    char line[sizeof shown + 64];
    vsnprintf(text, sizeof text, format, list);
    terminal_text(shown, sizeof shown, text);
    snprintf(line, sizeof line, "%s%s\n", before, shown);
    rt_print(stderr, line);
}

void rt_print_line(const char *format, ...) {
    va_list list;
    va_start(list, format);
    rt_print_linev("", format, list);
    va_end(list);
}

// This process's number among several; -1: it is alone.
static int rank = -1;

void rt_warn_as_rank(int number) {
    rank = number;
}

bool rt_warns_as_rank(void) {
    return rank >= 0;
}

static void warn(const char *of, const char *format, va_list list) {
    char before[96];
    snprintf(before, sizeof before, "%s%swarning:%s %s", rt_wiped(),
             rt_colour(stderr, "\033[1;33m"), rt_colour(stderr, "\033[0m"),
             of);
    rt_print_linev(before, format, list);
}

void rt_warnv(const char *format, va_list list) {
    if (rank <= 0)
        warn("", format, list);
}

void rt_warn_own(const char *format, ...) {
    char of[32] = "";
    va_list list;
    if (rank >= 0)
        snprintf(of, sizeof of, "rank %d: ", rank);
    va_start(list, format);
    warn(of, format, list);
    va_end(list);
}

void rt_warn(const char *format, ...) {
    va_list list;
    va_start(list, format);
    rt_warnv(format, list);
    va_end(list);
}
