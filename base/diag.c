// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diagnostics: see diag.h.

#include "base/diag.h"
#include "base/json.h"
#include "base/terminal.h"

#include <stdio.h>
#include <string.h>

Diagnostics diag_new(Arena *a) {
    return (Diagnostics){.arena = a};
}

static char *format_list(Arena *a, const char *format, va_list list) {
    Text t = text_new(a);
    text_addv(&t, format, list);
    return arena_string(a, text_string(&t), t.length);
}

static bool span_equal(Span a, Span b) {
    return a.source == b.source && a.start == b.start && a.end == b.end;
}

// Whether an equal diagnostic was reported before, as when a function with a
// mistake is expanded twice.
static bool is_duplicate(const Diagnostics *d, const Diagnostic *new) {
    for (int i = 0; i < d->count; i++)
        if (strcmp(d->list[i]->code, new->code) == 0 &&
            span_equal(d->list[i]->label[0].at, new->label[0].at) &&
            (new->label[0].at.source != NULL ||
             strcmp(d->list[i]->message, new->message) == 0))
            return true;
    return false;
}

// A dropped diagnostic has no room for labels and notes, and needs no memory.
static Diagnostic *dropped(Diagnostics *d) {
    d->dummy = (Diagnostic){.num_labels = MAX_LABELS, .num_notes = MAX_NOTES};
    return &d->dummy;
}

Diagnostic *diag_addv(Diagnostics *d, Severity severity, const char *code,
                      Span at, const char *format, va_list list) {
    bool error = severity == DIAG_ERROR;
    if ((error ? d->errors : d->warnings) == MAX_COUNTED) {
        d->truncated |= error;
        return dropped(d);
    }
    Diagnostic *new = ARENA_NEW(d->arena, Diagnostic);
    *new = (Diagnostic){.arena = d->arena,
                        .severity = severity,
                        .code = code,
                        .label = {{at, ""}},
                        .num_labels = 1};
    new->message = format_list(d->arena, format, list);
    if (is_duplicate(d, new))
        return dropped(d);
    d->errors += error;
    d->warnings += !error;
    d->list[d->count++] = new;
    return new;
}

Diagnostic *diag_add(Diagnostics *d, Severity severity, const char *code,
                     Span at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    Diagnostic *new = diag_addv(d, severity, code, at, format, list);
    va_end(list);
    return new;
}

void diag_label(Diagnostic *d, const char *format, ...) {
    if (d->num_labels == MAX_LABELS)
        return;
    va_list list;
    va_start(list, format);
    d->label[0].text = format_list(d->arena, format, list);
    va_end(list);
}

void diag_secondary(Diagnostic *d, Span at, const char *format, ...) {
    if (d->num_labels == MAX_LABELS || at.source == NULL)
        return;
    va_list list;
    va_start(list, format);
    d->label[d->num_labels++] =
        (Label){at, format_list(d->arena, format, list)};
    va_end(list);
}

void diag_note(Diagnostic *d, const char *format, ...) {
    if (d->num_notes == MAX_NOTES)
        return;
    va_list list;
    va_start(list, format);
    d->note[d->num_notes++] = format_list(d->arena, format, list);
    va_end(list);
}

void nearest_note(const Nearest *n, Diagnostic *d) {
    if (n->best != NULL)
        diag_note(d, "did you mean `%s`?", n->best);
}

typedef struct {
    const Diagnostic *list[2 * MAX_SHOWN];
    int count;
} Shown;

// The first errors, then the first warnings.
static Shown select_shown(const Diagnostics *d) {
    Shown s = {.count = 0};
    for (int severity = DIAG_ERROR; severity <= DIAG_WARNING; severity++)
        for (int i = 0, n = 0; i < d->count && n < MAX_SHOWN; i++)
            if ((int)d->list[i]->severity == severity) {
                s.list[s.count++] = d->list[i];
                n++;
            }
    return s;
}

// ---- for people ----

enum { MAX_LINE = 200 };

// Terminal escapes for the parts of a message.
#define STYLE_ERROR "\033[1;31m"
#define STYLE_WARNING "\033[1;33m"
#define STYLE_PLACE "\033[1;34m"
#define STYLE_MESSAGE "\033[1m"
#define STYLE_END "\033[0m"

static void style(Text *t, bool color, const char *code) {
    if (color)
        text_add(t, "%s", code);
}

static const char *severity_style(Severity s) {
    return s == DIAG_ERROR ? STYLE_ERROR : STYLE_WARNING;
}

// Prints one character of a source line, a tab as spaces.  Returns its width in
// columns.
static int show_character(Text *t, const char *s, size_t length) {
    char shown[TERMINAL_ROOM] = "    ";
    bool plain = terminal_shows(s, length);
    if (*s != '\t')
        terminal_character(shown, s, length);
    text_bytes(t, shown, strlen(shown));
    return plain ? 1 : (int)strlen(shown);
}

// Prints text that may hold names from files, with escapes.
static void show_text(Text *t, const char *s) {
    char shown[TERMINAL_ROOM];
    for (size_t left = strlen(s), step; left > 0; left -= step, s += step) {
        step = terminal_character(shown, s, left);
        text_bytes(t, shown, strlen(shown));
    }
}

// The offset at which to begin a long line, so that the first underline is
// visible.
static size_t first_shown(size_t length, size_t mark) {
    if (length <= MAX_LINE || mark < MAX_LINE / 2)
        return 0;
    return mark - MAX_LINE / 2;
}

static void show_line(Text *t, const char *line, size_t length, size_t from) {
    size_t end = length - from > MAX_LINE ? from + MAX_LINE : length;
    for (size_t i = from, step; i < end; i += step) {
        step = utf8_length(line + i, length - i);
        show_character(t, line + i, step);
    }
}

// The columns that bytes from .. to-1 of a line take when printed.
static int display_width(Arena *a, const char *line, size_t length, size_t from,
                         size_t to) {
    Text ignored = text_new(a);
    int width = 0;
    for (size_t i = from, step; i < to && i < length; i += step) {
        step = utf8_length(line + i, length - i);
        width += show_character(&ignored, line + i, step);
    }
    return width;
}

// Prints the underline of one label.  A span of several lines is underlined to
// the end of its first.
static void show_marks(Text *t, const Label *l, const char *line, size_t length,
                       size_t from, char mark) {
    size_t offset = (size_t)(line - l->at.source->text);
    size_t start = l->at.start - offset, end = l->at.end - offset;
    size_t last = from + MAX_LINE;
    start = start < from ? from : start > last ? last : start;
    end = end > last ? last : end;
    int before = display_width(t->arena, line, length, from, start);
    int width = display_width(t->arena, line, length, start, end);
    text_add(t, "%*s", before, "");
    for (int i = 0; i < (width > 0 ? width : 1); i++)
        text_bytes(t, &mark, 1);
    text_add(t, *l->text ? " " : "");
    show_text(t, l->text);
    text_add(t, "\n");
}

static int line_of(const Label *l) {
    return source_line_of(l->at.source, l->at.start);
}

// Sorts labels by line, those in the primary span's source first.
static void sort_labels(const Diagnostic *d, int *order) {
    const Source *home = d->label[0].at.source;
    for (int i = 0; i < d->num_labels; i++) {
        int at = i;
        for (; at > 0; at--) {
            const Label *l = &d->label[order[at - 1]], *new = &d->label[i];
            bool here = l->at.source == home, new_here = new->at.source == home;
            if (here != new_here ? here : line_of(l) <= line_of(new))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static int gutter_width(const Diagnostic *d) {
    int largest = 1;
    for (int i = 0; i < d->num_labels; i++)
        if (line_of(&d->label[i]) > largest)
            largest = line_of(&d->label[i]);
    return snprintf(NULL, 0, "%d", largest);
}

static void show_span(Text *t, const char *arrow, const Label *l, int gutter) {
    LineColumn p = source_line_column(l->at.source, l->at.start);
    text_add(t, "%*s%s ", gutter, "", arrow);
    show_text(t, l->at.source->path);
    text_add(t, ":%d:%d\n", p.line, p.column);
}

static bool on_same_line(const Label *a, const Label *b) {
    return a->at.source == b->at.source && line_of(a) == line_of(b);
}

// Prints label i of the sorted order, and its line unless label i - 1 has
// printed it.
static void show_label(Text *t, const Diagnostic *d, const int *order, int i,
                       int gutter, bool color) {
    const Label *l = &d->label[order[i]], *first = l;
    for (int k = i; k > 0 && on_same_line(l, &d->label[order[k - 1]]); k--)
        first = &d->label[order[k - 1]];
    if (i > 0 && d->label[order[i - 1]].at.source != l->at.source)
        show_span(t, ":::", l, gutter);
    size_t length;
    const char *line = source_line(l->at.source, line_of(l), &length);
    size_t offset = (size_t)(line - l->at.source->text);
    size_t from = first_shown(length, first->at.start - offset);
    if (first == l) {
        style(t, color, STYLE_PLACE);
        text_add(t, "%*s |\n%*d |", gutter, "", gutter, line_of(l));
        style(t, color, STYLE_END);
        text_add(t, "%s", length ? " " : "");
        show_line(t, line, length, from);
        text_add(t, "\n");
    }
    style(t, color, STYLE_PLACE);
    text_add(t, "%*s | ", gutter, "");
    bool main = order[i] == 0;
    style(t, color, main ? severity_style(d->severity) : STYLE_PLACE);
    show_marks(t, l, line, length, from, main ? '^' : '-');
    style(t, color, STYLE_END);
}

static const char *severity_name(Severity s) {
    return s == DIAG_ERROR ? "error" : "warning";
}

static void show_note(Text *t, int gutter, const char *note) {
    text_add(t, "%*s = ", gutter, "");
    show_text(t, note);
    text_add(t, "\n");
}

static void print_one(Text *t, const Diagnostic *d, bool color) {
    style(t, color, severity_style(d->severity));
    text_add(t, "%s", severity_name(d->severity));
    if (*d->code)
        text_add(t, "[%s]", d->code);
    style(t, color, STYLE_END);
    style(t, color, STYLE_MESSAGE);
    text_add(t, ": ");
    show_text(t, d->message);
    text_add(t, "\n");
    style(t, color, STYLE_END);
    int gutter = 1, order[MAX_LABELS];
    if (d->label[0].at.source != NULL) {
        gutter = gutter_width(d);
        sort_labels(d, order);
        show_span(t, "-->", &d->label[0], gutter);
        for (int i = 0; i < d->num_labels; i++)
            show_label(t, d, order, i, gutter, color);
        if (d->num_notes)
            text_add(t, "%*s |\n", gutter, "");
    }
    for (int i = 0; i < d->num_notes; i++)
        show_note(t, gutter, d->note[i]);
    text_add(t, "\n");
}

// "1 error", "25 errors (20 shown)"
static void print_count(Text *t, Severity s, int count) {
    text_add(t, "%s%d %s%s", count == MAX_COUNTED ? "at least " : "", count,
             severity_name(s), count == 1 ? "" : "s");
    if (count > MAX_SHOWN)
        text_add(t, " (%d shown)", MAX_SHOWN);
}

static void print_counts(Text *t, const Diagnostics *d) {
    if (d->errors)
        print_count(t, DIAG_ERROR, d->errors);
    if (d->errors && d->warnings)
        text_add(t, ", ");
    if (d->warnings)
        print_count(t, DIAG_WARNING, d->warnings);
    text_add(t, d->count ? "\n" : "");
}

void diag_print(Text *t, const Diagnostics *d) {
    const Shown shown = select_shown(d);
    for (int i = 0; i < shown.count; i++)
        print_one(t, shown.list[i], d->color);
    print_counts(t, d);
}

// ---- for programs ----

static void json_span(Text *t, const Label *l) {
    LineColumn start = source_line_column(l->at.source, l->at.start);
    LineColumn end = source_line_column(l->at.source, l->at.end);
    text_add(t, "\"file\":");
    json_string(t, l->at.source->path);
    text_add(t,
             ",\"line\":%d,\"column\":%d,\"end_line\":%d,\"end_column\":%d,"
             "\"label\":",
             start.line, start.column, end.line, end.column);
    json_string(t, l->text);
}

static void json_one(Text *t, const Diagnostic *d) {
    text_add(t, "{\"severity\":\"%s\",\"code\":\"%s\",\"message\":",
             severity_name(d->severity), d->code);
    json_string(t, d->message);
    if (d->label[0].at.source != NULL) {
        text_add(t, ",");
        json_span(t, &d->label[0]);
    }
    text_add(t, ",\"related\":[");
    for (int i = 1; i < d->num_labels; i++) {
        text_add(t, i > 1 ? ",{" : "{");
        json_span(t, &d->label[i]);
        text_add(t, "}");
    }
    text_add(t, "],\"notes\":[");
    for (int i = 0; i < d->num_notes; i++) {
        text_add(t, i > 0 ? "," : "");
        json_string(t, d->note[i]);
    }
    text_add(t, "]}\n");
}

void diag_json(Text *t, const Diagnostics *d) {
    const Shown shown = select_shown(d);
    for (int i = 0; i < shown.count; i++)
        json_one(t, shown.list[i]);
}
