// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: the user's mistakes, each with the places that explain it.
//
// A diagnostic has a code, a message, a primary place, other places with
// labels, and notes.  Errors are shown before warnings, the first MAX_SHOWN of
// each; up to MAX_COUNTED of each are counted.  A repetition of an earlier one
// is neither counted nor shown.
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/source.h"
#include "base/text.h"

#include <stdbool.h>

typedef enum { DIAG_ERROR, DIAG_WARNING } Severity;

enum { MAX_SHOWN = 20, MAX_COUNTED = 100, MAX_LABELS = 4, MAX_NOTES = 4 };

typedef struct {
    Span at;
    const char *text; // "": only marked
} Label;

typedef struct {
    Arena *arena;
    Severity severity;
    const char *code; // "E0312"; "" for none
    const char *message;
    Label label[MAX_LABELS]; // the first is the primary place
    int num_labels;
    const char *note[MAX_NOTES];
    int num_notes;
} Diagnostic;

typedef struct {
    Arena *arena;
    Diagnostic *list[2 * MAX_COUNTED]; // in the order of their reports
    int count;
    int errors, warnings;
    bool more;        // errors were left out; readers of a file give up
    bool color;       // diag_print marks with the colours of terminals
    Diagnostic spare; // stands for what is left out
} Diagnostics;

Diagnostics diag_new(Arena *a);

// Adds a diagnostic and returns it for labels and notes.  at without a source
// stands for no place at all.
Diagnostic *diag_add(Diagnostics *d, Severity severity, const char *code,
                     Span at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
Diagnostic *diag_addv(Diagnostics *d, Severity severity, const char *code,
                      Span at, const char *format, va_list list);

// The words beside the primary place.
void diag_label(Diagnostic *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Another place and its words.
void diag_place(Diagnostic *d, Span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A sentence below.
void diag_note(Diagnostic *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// For people: each followed by an empty line, and a last line that counts them.
void diag_print(Text *t, const Diagnostics *d);

// For programs: one JSON object on a line for each that diag_print shows.
void diag_json(Text *t, const Diagnostics *d);

#endif
