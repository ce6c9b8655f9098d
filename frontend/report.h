// Reporting what is wrong with a model file, by the catalogue in diags.def.
#ifndef FRONTEND_REPORT_H
#define FRONTEND_REPORT_H

#include "base/diag.h"
#include "base/nearest.h"

typedef enum {
#define DIAGNOSTIC(name, ...) D_##name,
#include "frontend/diags.def"
    NUM_DIAGS
} DiagId;

typedef struct {
    Severity severity;
    const char *code, *what;
} DiagInfo;

extern const DiagInfo diag_info[NUM_DIAGS];

// Adds the diagnostic `id` at a place, with a sentence that says what is wrong
// with this text.
Diagnostic *report(Diagnostics *d, DiagId id, Span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
