// Errors: one sentence and an exit status, carried up to main.

#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>

bool rt_fail(RtError *e, int status, const char *format, ...) {
    e->status = status;
    va_list list;
    va_start(list, format);
    vsnprintf(e->text, sizeof e->text, format, list);
    va_end(list);
    return false;
}

int rt_complain(const RtError *e) {
    fprintf(stderr, "error: %s\n", e->text);
    return e->status;
}
