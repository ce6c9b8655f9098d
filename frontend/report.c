// Reporting: the table of diags.def.

#include "frontend/report.h"

const DiagInfo diag_info[NUM_DIAGS] = {
#define DIAGNOSTIC(name, severity, code, title)                                \
    [D_##name] = {DIAG_##severity, code, title},
#include "frontend/diags.def"
};

Diagnostic *report(Diagnostics *d, DiagId id, Span at, const char *format,
                   ...) {
    va_list list;
    va_start(list, format);
    const DiagInfo *info = &diag_info[id];
    Diagnostic *new =
        diag_addv(d, info->severity, info->code, at, format, list);
    va_end(list);
    return new;
}
