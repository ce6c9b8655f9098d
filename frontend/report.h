// Reporting what is wrong with a model file, by the catalogue in diags.def.
#ifndef FRONTEND_REPORT_H
#define FRONTEND_REPORT_H

#include "base/diag.h"

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

// The name nearest to a misspelt one, kept as more names are offered.
typedef struct {
    const char *name; // misspelt
    const char *best; // NULL: none is near
    int distance;
    int tried;
} Nearest;

Nearest nearest_to(const char *name);
void nearest_offer(Nearest *n, const char *candidate);

// Adds "did you mean" when there is one.
void nearest_note(const Nearest *n, Diagnostic *d);

#endif
