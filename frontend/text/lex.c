// Lexing: one scan over the text.  It marks the first token of each line,
// because a line's end ends a statement.

#include "frontend/text/lex.h"
#include "base/terminal.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Atoms *atoms;
    const Source *source;
    Diagnostics *diags;
    size_t at;
    Token *token;
    size_t count;
    bool first;    // no token on this line yet
    bool skipped;  // invalid characters since the last token
    Atom too_long; // the latest name over the limit, reported once
} Lexer;

static const struct {
    const char *spelling;
    TokenKind kind;
} keyword[] =
    {
#define KEYWORD(name, spelling) {spelling, TOKEN_##name},
#include "frontend/text/tokens.def"
},
  punct[] = {
#define PUNCT(name, spelling) {spelling, TOKEN_##name},
#include "frontend/text/tokens.def"
};

enum {
    NUM_KEYWORDS = sizeof keyword / sizeof keyword[0],
    NUM_PUNCTS = sizeof punct / sizeof punct[0],
};

const char *token_name(TokenKind k) {
    static const char *const name[NUM_TOKENS] = {
        [TOKEN_END] = "the end of the file",
        [TOKEN_NAME] = "a name",
        [TOKEN_NUMBER] = "a number",
        [TOKEN_STRING] = "a string",
#define KEYWORD(name, spelling) [TOKEN_##name] = "`" spelling "`",
#define PUNCT(name, spelling) [TOKEN_##name] = "`" spelling "`",
#include "frontend/text/tokens.def"
    };
    return name[k];
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static Span span_from(const Lexer *l, size_t start) {
    return (Span){l->source, (uint32_t)start, (uint32_t)l->at};
}

static Token *add_token(Lexer *l, TokenKind kind, size_t start) {
    ARENA_APPEND(l->arena, l->token, l->count,
                 (Token){.kind = kind,
                         .first = l->first,
                         .skipped = l->skipped,
                         .at = span_from(l, start)});
    l->skipped = false;
    l->first = false;
    return &l->token[l->count - 1];
}

static void lex_name(Lexer *l) {
    const char *text = l->source->text;
    size_t start = l->at;
    while (is_letter(text[l->at]) || is_digit(text[l->at]))
        l->at++;
    size_t length = l->at - start;
    size_t used = length > MAX_NAME ? MAX_NAME : length;
    Atom name = atom_of(l->atoms, text + start, used);
    if (used < length && name != l->too_long)
        report(l->diags, D_name_length, span_from(l, start),
               "this name is %zu bytes long; at most %d are allowed", length,
               MAX_NAME);
    if (used < length)
        l->too_long = name;
    Token *t = add_token(l, TOKEN_NAME, start);
    t->text = name;
    for (int i = 0; i < NUM_KEYWORDS; i++)
        if (strcmp(keyword[i].spelling, t->text) == 0)
            t->kind = keyword[i].kind;
}

static void skip_digits(Lexer *l) {
    while (is_digit(l->source->text[l->at]))
        l->at++;
}

// An exponent needs digits: `2 epoch` and `2epoch` have none.
static void skip_exponent(Lexer *l) {
    const char *s = l->source->text + l->at;
    if (*s != 'e' && *s != 'E')
        return;
    size_t sign = s[1] == '+' || s[1] == '-';
    if (is_digit(s[1 + sign])) {
        l->at += 1 + sign;
        skip_digits(l);
    }
}

static void lex_number(Lexer *l) {
    size_t start = l->at;
    const char *text = l->source->text;
    skip_digits(l);
    if (text[l->at] == '.' && is_digit(text[l->at + 1])) {
        l->at++;
        skip_digits(l);
    } else if (text[l->at] == '.' && text[l->at + 1] != '.' &&
               !is_letter(text[l->at + 1])) {
        l->at++;
        Diagnostic *d = report(l->diags, D_number, span_from(l, start),
                               "a number has digits behind its point");
        diag_note(d, "write %.*s0", (int)(l->at - start), text + start);
    }
    skip_exponent(l);
    double value = strtod(text + start, NULL);
    if (!(value <= FLT_MAX)) {
        Diagnostic *d = report(l->diags, D_number, span_from(l, start),
                               "this number is too large");
        diag_note(d, "the largest is %g", (double)FLT_MAX);
        value = 1;
    }
    add_token(l, TOKEN_NUMBER, start)->number = value;
}

// Warns of the first bidirectional control character from `start` on: it
// changes the order in which the line is shown.
static void check_bidi(Lexer *l, size_t start) {
    const char *text = l->source->text;
    for (size_t at = start, step; at < l->at; at += step) {
        step = utf8_length(text + at, l->at - at);
        if (!terminal_reorders(text + at, step))
            continue;
        Span span = {l->source, (uint32_t)at, (uint32_t)(at + step)};
        Diagnostic *d = report(l->diags, D_bidi_control, span,
                               "`%.*s` changes the order in which this line is "
                               "shown",
                               (int)step, text + at);
        diag_note(d, "delete it, unless the line has text that is written from "
                     "right to left");
        return;
    }
}

static void bad_string(Lexer *l, size_t start, const char *why) {
    report(l->diags, D_string, span_from(l, start), "%s", why);
}

// A C0 or C1 control character, or DEL.
static bool is_control(const char *s) {
    unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
    return c < 32 || c == 127 || (c == 0xc2 && next >= 0x80 && next < 0xa0);
}

// Copies the string's characters with \" and \\ resolved; l->at is after the
// opening quote.  False if the string does not end on its line.
static bool copy_string(Lexer *l, Text *t) {
    const char *text = l->source->text;
    for (;; l->at++) {
        char c = text[l->at];
        if (l->at == l->source->length || c == '\n')
            return false;
        if (c == '"')
            return true;
        if (c == '\\') {
            c = text[++l->at];
            if (c != '"' && c != '\\') {
                l->at -= 1;
                bad_string(l, l->at, "only \\\" and \\\\ may follow a \\");
                c = '\\';
            }
        }
        if (is_control(text + l->at))
            bad_string(l, l->at, "a string cannot hold a control character");
        text_bytes(t, &c, 1);
    }
}

static void lex_string(Lexer *l) {
    size_t start = l->at++;
    Text t = text_new(l->arena);
    bool closed = copy_string(l, &t);
    if (closed)
        l->at++;
    else
        bad_string(l, start, "this string does not end on its line");
    check_bidi(l, start);
    Token *token = add_token(l, TOKEN_STRING, start);
    token->broken = !closed;
    token->text = atom_of(l->atoms, text_string(&t), strlen(text_string(&t)));
}

// A spelling of other languages or word processors, the advice, and the
// intended token.
typedef struct {
    const char *found, *advice;
    TokenKind meant; // TOKEN_END: none
    const char *end; // STRING: the closing quote
} Misspelling;

static const Misspelling *misspelling_at(const char *s) {
    static const char quotes[] =
        "strings are written between straight quotes: \"...\"";
    static const Misspelling table[] = {
        {"\xe2\x80\x9c", quotes, TOKEN_STRING, "\xe2\x80\x9d"},
        {"\xe2\x80\x9e", quotes, TOKEN_STRING, "\xe2\x80\x9c"},
        {"'", "strings are written between double quotes: \"...\"",
         TOKEN_STRING, "'"},
        {"\xe2\x88\x92", "this is a typographic minus; write -", TOKEN_MINUS,
         NULL},
        {"\xe2\x80\x93", "this is a dash; write -", TOKEN_MINUS, NULL},
        {"\xc3\x97", "this is a multiplication sign; write *", TOKEN_TIMES,
         NULL},
        {"||", "write `or`", TOKEN_OR, NULL},
        {"|", "layers are chained by |>", TOKEN_PIPE, NULL},
        {"&&", "write `and`", TOKEN_AND, NULL},
        {"!", "write `not`", TOKEN_NOT, NULL},
        {"?", "a choice is written if ... { ... } else { ... }", TOKEN_END,
         NULL},
        {"\xc2\xa0", "this is a space that does not break; write a plain one",
         TOKEN_END, NULL},
        {"\xe2\x80\x8b", "this is a space without width; delete it", TOKEN_END,
         NULL},
        {"\xef\xbb\xbf",
         "this is an invisible byte order mark; save the file as UTF-8 without "
         "one",
         TOKEN_END, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strncmp(s, table[i].found, strlen(table[i].found)) == 0)
            return &table[i];
    return NULL;
}

// Skips to the end of a string in wrong quotes, or to the line's end.
static void skip_quoted(Lexer *l, const char *end) {
    const char *s = l->source->text + l->at, *close = strstr(s, end);
    size_t line = strcspn(s, "\n");
    bool closed = close != NULL && (size_t)(close - s) < line;
    l->at += closed ? (size_t)(close - s) + strlen(end) : line;
}

static void lex_misspelling(Lexer *l, const Misspelling *m) {
    size_t start = l->at;
    l->at += strlen(m->found);
    Diagnostic *d = report(l->diags, D_character, span_from(l, start),
                           "`%s` has no meaning here", m->found);
    diag_note(d, "%s", m->advice);
    if (m->meant == TOKEN_STRING)
        skip_quoted(l, m->end);
    l->skipped = m->meant == TOKEN_END;
    if (!l->skipped)
        add_token(l, m->meant, start)->text = atom_of(l->atoms, "", 0);
}

// Reports UTF-16 once, at its first byte, not at each zero byte.
static void lex_invalid_byte(Lexer *l, size_t start) {
    const char *s = l->source->text + start;
    Diagnostic *d =
        report(l->diags, D_character, span_from(l, start),
               "the byte 0x%02x has no meaning here", (unsigned char)*s);
    if (start == 0 &&
        (strncmp(s, "\xff\xfe", 2) == 0 || strncmp(s, "\xfe\xff", 2) == 0)) {
        diag_note(d, "the file is in UTF-16; save it as UTF-8");
        l->at = l->source->length;
    }
}

static void lex_unknown(Lexer *l) {
    size_t start = l->at;
    const char *s = l->source->text + start;
    if (misspelling_at(s) != NULL) {
        lex_misspelling(l, misspelling_at(s));
        return;
    }
    l->at += utf8_length(s, l->source->length - start);
    l->skipped = true;
    size_t length = l->at - start;
    bool hidden = (unsigned char)*s < 32 || *s == 127 ||
                  (length == 1 && (unsigned char)*s >= 128);
    if (hidden)
        lex_invalid_byte(l, start);
    else
        report(l->diags, D_character, span_from(l, start),
               "`%.*s` has no meaning here", (int)length, s);
}

// Reports zero bytes, which end C strings.
static void check_nul(Lexer *l, size_t start) {
    const char *zero = memchr(l->source->text + start, '\0', l->at - start);
    if (zero == NULL)
        return;
    uint32_t at = (uint32_t)(zero - l->source->text);
    report(l->diags, D_character, (Span){l->source, at, at + 1},
           "the byte 0x00 has no meaning here");
}

static void skip_line(Lexer *l) {
    size_t start = l->at;
    while (l->at < l->source->length && l->source->text[l->at] != '\n')
        l->at++;
    check_nul(l, start);
    check_bidi(l, start);
}

static void lex_punct(Lexer *l) {
    const char *s = l->source->text + l->at;
    if (s[0] == '/' && s[1] == '/') {
        size_t start = l->at;
        l->at += 2;
        Diagnostic *d = report(l->diags, D_character, span_from(l, start),
                               "`//` has no meaning here");
        diag_note(d, l->first ? "a comment begins with #"
                              : "a comment begins with #; a quotient is a / b, "
                                "rounded down by floor(a / b)");
        skip_line(l);
        return;
    }
    for (int i = 0; i < NUM_PUNCTS; i++) {
        size_t length = strlen(punct[i].spelling);
        if (strncmp(s, punct[i].spelling, length) == 0) {
            size_t start = l->at;
            l->at += length;
            add_token(l, punct[i].kind, start);
            return;
        }
    }
    lex_unknown(l);
}

static void lex_one(Lexer *l) {
    char c = l->source->text[l->at];
    if (c == ' ' || c == '\t' || c == '\r') {
        l->at++;
    } else if (c == '\n') {
        l->at++;
        l->first = true;
    } else if (c == '#') {
        skip_line(l);
    } else if (is_letter(c)) {
        lex_name(l);
    } else if (is_digit(c)) {
        lex_number(l);
    } else if (c == '"') {
        lex_string(l);
    } else {
        lex_punct(l);
    }
}

// Reports lone carriage returns: without line feeds, a file is one line, or one
// comment.
static bool check_line_ends(const Lexer *l) {
    const char *s = l->source->text, *end = s + l->source->length;
    for (const char *c = s; (c = memchr(c, '\r', (size_t)(end - c))); c++) {
        if (c[1] == '\n')
            continue;
        uint32_t at = (uint32_t)(c - s);
        Diagnostic *d =
            report(l->diags, D_character, (Span){l->source, at, at + 1},
                   "a carriage return that is not the end of a line");
        diag_note(d, "end lines with a line feed, or with both");
        return false;
    }
    return true;
}

const Token *lex(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d,
                 int *count) {
    Lexer l = {
        .arena = a, .atoms = atoms, .source = s, .diags = d, .first = true};
    // Stops after as many errors as are shown.
    if (!check_line_ends(&l))
        l.at = s->length;
    while (l.at < s->length && !d->truncated)
        lex_one(&l);
    l.first = true;
    add_token(&l, TOKEN_END, l.at);
    *count = (int)l.count;
    return l.token;
}
