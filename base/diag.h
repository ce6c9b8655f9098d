// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: the user's mistakes, each with the spans that explain it.
//
// A diagnostic has a code, a message, a primary span, secondary spans with
// labels, and notes.  Errors are shown before warnings, the first MAX_SHOWN of
// each; up to MAX_COUNTED of each are counted.  Repetitions are dropped.
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/nearest.h"
#include "base/source.h"
#include "base/text.h"

#include <stdbool.h>

typedef enum { DIAG_ERROR, DIAG_WARNING } Severity;

enum { MAX_SHOWN = 20, MAX_COUNTED = 100, MAX_LABELS = 4, MAX_NOTES = 4 };

typedef struct {
    Span at;
    const char *text; // "": an underline only
} Label;

typedef struct {
    Arena *arena;
    Severity severity;
    const char *code; // "E0312"; "" for none
    const char *message;
    Label label[MAX_LABELS]; // the first is the primary span
    int num_labels;
    const char *note[MAX_NOTES];
    int num_notes;
} Diagnostic;

typedef struct {
    Arena *arena;
    Diagnostic *list[2 * MAX_COUNTED]; // in the order of the reports
    int count;
    int errors, warnings;
    bool truncated;   // errors were dropped; readers of a file stop
    bool color;       // diag_print uses terminal colours
    Diagnostic dummy; // stands for dropped diagnostics
} Diagnostics;

Diagnostics diag_new(Arena *a);

// Adds a diagnostic and returns it for labels and notes.  A span without a
// source stands for no location.
Diagnostic *diag_add(Diagnostics *d, Severity severity, const char *code,
                     Span at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
Diagnostic *diag_addv(Diagnostics *d, Severity severity, const char *code,
                      Span at, const char *format, va_list list);

// Labels the primary span.
void diag_label(Diagnostic *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Adds a secondary span with a label.
void diag_secondary(Diagnostic *d, Span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds a sentence below the labels.
void diag_note(Diagnostic *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Adds "did you mean" if a candidate is near.
void nearest_note(const Nearest *n, Diagnostic *d);

// Prints for people: each with an empty line after it, and a last line with
// counts.
void diag_print(Text *t, const Diagnostics *d);

// Prints for programs: a line with a JSON object for each that diag_print
// shows.
void diag_json(Text *t, const Diagnostics *d);

#endif
