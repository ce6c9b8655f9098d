// Reports errors of a model file, as diags.def lists them.
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
    const char *code, *title;
} DiagInfo;

extern const DiagInfo diag_info[NUM_DIAGS];

// Adds the diagnostic `id` at a span, with a sentence about this text.
Diagnostic *report(Diagnostics *d, DiagId id, Span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
