// Notes on syntax errors: recognizes other languages' syntax by the tokens
// around the error.

#include "frontend/foreign.h"
#include "frontend/text/parse.h"

#include <string.h>

// The tokens around the error; END beyond the file.
typedef struct {
    const Token *t;
    int at;
    TokenKind before, here, after;
    const char *expected;
} ErrorContext;

static bool is_open(TokenKind k) {
    return k == TOKEN_OPEN || k == TOKEN_OPEN_LIST;
}

static bool is_close(TokenKind k) {
    return k == TOKEN_CLOSE || k == TOKEN_CLOSE_LIST;
}

// The innermost open bracket at a token, -1 for none; a block ends the search.
static int open_bracket(const Token *t, int at) {
    int closed = 0;
    for (int i = at - 1; i >= 0; i--) {
        if (t[i].kind == TOKEN_OPEN_BLOCK || t[i].kind == TOKEN_CLOSE_BLOCK)
            return -1;
        closed += is_close(t[i].kind);
        if (is_open(t[i].kind) && closed-- == 0)
            return i;
    }
    return -1;
}

static const struct {
    TokenKind first, second;
    const char *note;
} pairs[] = {
    {TOKEN_TIMES, TOKEN_TIMES, "a power is written ^"},
    {TOKEN_DIVIDE, TOKEN_TIMES, "a comment begins with #"},
    {TOKEN_MORE, TOKEN_MORE, "layers are chained by |>"},
    {TOKEN_COLON, TOKEN_COLON, "a name stands alone, without its module"},
    {TOKEN_COLON, TOKEN_ASSIGN, "a variable is written NAME = VALUE"},
    {TOKEN_OPEN_LIST, TOKEN_COLON, "`slice` takes a part of a tensor"},
    {TOKEN_OPEN_LIST, TOKEN_DOT, "`slice` takes a part of a tensor"},
    {TOKEN_DOT, TOKEN_DOT,
     "a `for` goes over a list: for i in [0, 1, 2] { ... }"},
    {TOKEN_FOR, TOKEN_OPEN, "as in: for i in [0, 1, 2] { ... }"},
    {TOKEN_DOT, TOKEN_NUMBER, "a number begins with a digit, as 0.5"},
    {TOKEN_PLUS, TOKEN_ASSIGN, "write it out, as in: h = h + x"},
    {TOKEN_MINUS, TOKEN_ASSIGN, "write it out, as in: h = h - x"},
    {TOKEN_TIMES, TOKEN_ASSIGN, "write it out, as in: h = h * x"},
    {TOKEN_DIVIDE, TOKEN_ASSIGN, "write it out, as in: h = h / x"},
    {TOKEN_ASSIGN, TOKEN_MORE, "a function has a name: fn NAME(x) = ..."},
    {TOKEN_ASSIGN, TOKEN_TRAIN, "the training samples are data.train"},
    {TOKEN_ASSIGN, TOKEN_FN, "a function has a name: fn NAME(x) = ..."},
    {TOKEN_COMMA, TOKEN_CLOSE_BLOCK, "a line needs no comma at its end"},
    {TOKEN_TRAIN, TOKEN_OPEN_BLOCK,
     "name the model that is trained, as in: train Net { ... }"},
    {TOKEN_TRAIN, TOKEN_COLON,
     "name the model that is trained, as in: train Net { ... }"},
    {TOKEN_IMPORT, TOKEN_NAME,
     "an import is written import \"std/vision.net\" { flip_lr }"},
    {TOKEN_STRING, TOKEN_AS,
     "names are imported one by one: import \"std/vision.net\" { flip_lr }"},
    {TOKEN_OPEN_BLOCK, TOKEN_TIMES,
     "names are imported one by one: import \"std/vision.net\" { flip_lr }"},
};

static const char *pair_note(TokenKind first, TokenKind second) {
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].first == first && pairs[i].second == second)
            return pairs[i].note;
    return NULL;
}

// Whether a value precedes the error on its line.
static bool ends_value(const ErrorContext *a) {
    return !a->t[a->at].first && strcmp(a->expected, "a value") != 0 &&
           strncmp(a->expected, "`when`", 6) != 0;
}

// Whether a stage of a chain precedes the error, in the same brackets and on
// its line.
static bool ends_stage(const ErrorContext *a) {
    int closed = 0;
    for (int i = a->at - 1; i >= 0 && closed >= 0; i--) {
        TokenKind k = a->t[i].kind;
        closed += is_close(k);
        closed -= is_open(k);
        if (closed == 0 && k == TOKEN_PIPE)
            return true;
        if (a->t[i].first)
            return false;
    }
    return false;
}

// A separator other than a comma between two entries, names or values.
static const char *separator_note(const ErrorContext *a) {
    if (a->t[a->at + 1].first)
        return "a line needs no comma at its end";
    if (a->before == TOKEN_STRING && a->after == TOKEN_STRING)
        return "each has an entry of its own: freeze \"a.*\"; freeze \"b.*\"";
    return "entries are separated by a `;` or a new line";
}

// Whether no space precedes the token.
static bool is_adjacent(const ErrorContext *a) {
    return a->at > 0 && a->t[a->at - 1].at.end == a->t[a->at].at.start;
}

static const char *string_note(const ErrorContext *a) {
    if (!is_adjacent(a))
        return NULL;
    return a->before == TOKEN_STRING ? "a comment begins with #"
           : a->before == TOKEN_NAME ? "a string has no prefix and is written "
                                       "out, as in: \"data/cifar10\""
                                     : NULL;
}

// A dictionary, or a block, after a `=`.
static const char *brace_note(const ErrorContext *a) {
    bool named = a->after == TOKEN_NAME || a->after == TOKEN_STRING;
    bool pair = named && a->t[a->at + 2].kind == TOKEN_COLON;
    return pair || a->after == TOKEN_CLOSE_BLOCK
               ? "there are no dictionaries: each value has a name of its own"
               : "a block needs no `=` before it";
}

// A statement that goes on behind its block.
static const char *block_note(const ErrorContext *a) {
    bool goes_on = a->here == TOKEN_PIPE || operator_is_binary(a->here);
    return goes_on && a->before == TOKEN_CLOSE_BLOCK &&
                   strcmp(a->expected, "a new line") == 0
               ? "an `if` that begins a line is a statement; name its value, "
                 "as in: h = if c { a } else { b }"
               : NULL;
}

// A missing separator between two items on one line.
static const char *missing_comma(const ErrorContext *a) {
    bool begins_item = a->here == TOKEN_NAME || a->here == TOKEN_NUMBER ||
                       a->here == TOKEN_STRING || a->here == TOKEN_OPEN_LIST ||
                       a->here == TOKEN_OPEN || a->here == TOKEN_TRUE ||
                       a->here == TOKEN_FALSE || a->here == TOKEN_NOT;
    return begins_item && !a->t[a->at].first &&
                   strncmp(a->expected, "`,` or", 6) == 0
               ? "a comma is missing before it"
               : NULL;
}

static const char *token_note(const ErrorContext *a) {
    bool line = strcmp(a->expected, "a new line") == 0;
    bool item = strncmp(a->expected, "`import`", 8) == 0;
    switch (a->here) {
    case TOKEN_ARROW:
        return line ? "layers are chained by |>" : NULL;
    case TOKEN_PRODUCT:
    case TOKEN_PLUS:
    case TOKEN_MINUS:
    case TOKEN_TIMES:
    case TOKEN_DIVIDE:
    case TOKEN_POWER:
        return item && a->here == TOKEN_PRODUCT
                   ? "there are no decorators; leave it out"
               : ends_stage(a)
                   ? "a chain stands in parentheses: (x |> f) + (y |> g)"
                   : NULL;
    case TOKEN_NUMBER:
        return line && a->before == TOKEN_PERCENT
                   ? "% divides by 100; there is no remainder"
                   : NULL;
    case TOKEN_STRING:
        return string_note(a);
    case TOKEN_IF:
        return ends_value(a) ? "where(x > 0, a, b) chooses between elements; a "
                               "choice before the run is if c { a } else { b }"
                             : NULL;
    case TOKEN_COLON:
        return strcmp(a->expected, "`{`") == 0
                   ? "a block stands between { and }"
                   : NULL;
    case TOKEN_ASSIGN:
        return strcmp(a->expected, "`{`") == 0 ? "a comparison is written =="
               : a->before == TOKEN_TRAIN || a->before == TOKEN_MODEL
                   ? "it begins a block, as in: train Net { batch = 128 }"
               : line && a->before == TOKEN_NAME
                   ? "only a name can be given a value"
                   : NULL;
    case TOKEN_OPEN_LIST:
        return item ? "there are no sections: a model is written model NAME"
                      "(image: u8[N, 32, 32, 3]) -> f32[N, 10] { ... }, its "
                      "recipe train NAME { ... }"
                    : NULL;
    case TOKEN_OPEN:
        return strcmp(a->expected, "`[`") == 0
                   ? "dimensions stand between [ and ], as in u8[N, 32, 32, 3]"
               : strcmp(a->expected, "`{`") == 0
                   ? "keys stand in a block: train Net { batch = 128 }"
                   : NULL;
    case TOKEN_COMMA:
        return strcmp(a->expected, "`)`") == 0
                   ? "a list stands between [ and ], as in [3, 3]"
               : line ? separator_note(a)
                      : NULL;
    case TOKEN_DOT:
        return a->t[a->at].first ? "a function is applied by |>, as in: x |> f"
                                 : NULL;
    case TOKEN_AS:
        return line ? "`as` names a stage of a chain: x |> f as NAME" : NULL;
    case TOKEN_CLOSE:
    case TOKEN_CLOSE_LIST:
        return line ? "no bracket is open here" : NULL;
    case TOKEN_OPEN_BLOCK:
        return strcmp(a->expected, "`(`") == 0
                   ? "a model has an input, as in: (image: u8[N, 32, 32, 3])"
               : a->before == TOKEN_ASSIGN ? brace_note(a)
                                           : NULL;
    case TOKEN_NAME:
        if (a->before == TOKEN_NUMBER && is_adjacent(a))
            return "a number has digits, a point and an exponent, as 1000000, "
                   "0.5 or 1e6";
        return item && a->after == TOKEN_ASSIGN
                   ? "a constant is written let NAME = VALUE"
               : line && a->after == TOKEN_ASSIGN
                   ? "a `;` or a new line is missing before it"
               : a->after == TOKEN_COLON &&
                       (a->t[a->at].first ||
                        strcmp(a->expected, "a key and `=`") == 0)
                   ? "a key and its value are joined by ="
                   : NULL;
    default:
        return NULL;
    }
}

// A word of another language here or just before; a capitalized name is a
// model's.
static bool word_note(const ErrorContext *a, Diagnostic *d) {
    const Token *here = &a->t[a->at];
    bool type = strncmp(a->expected, "a type", 6) == 0;
    bool tensor = type && a->after == TOKEN_OPEN_LIST;
    if (a->here == TOKEN_NAME &&
        ((tensor && foreign_note(FOREIGN_WORD, here->text, d)) ||
         foreign_note(FOREIGN_SYNTAX, here->text, d) ||
         (type && foreign_note(FOREIGN_WORD, here->text, d))))
        return true;
    if (a->here == TOKEN_MODEL && a->after == TOKEN_DOT &&
        here[2].kind == TOKEN_NAME) // model.parameters()
        return foreign_note(FOREIGN_METHOD, here[2].text, d);
    return a->before == TOKEN_NAME && !here->first &&
           !(here[-1].text[0] >= 'A' && here[-1].text[0] <= 'Z') &&
           foreign_note(FOREIGN_SYNTAX, here[-1].text, d);
}

// A keyword before a `=`.
static const char *keyword_note(const ErrorContext *a) {
    return a->here == TOKEN_TRAIN && open_bracket(a->t, a->at) >= 0
               ? "a data set has both parts, data.train and data.test; leave "
                 "it out"
               : "it is a word of the language; use another name";
}

static void bracket_note(const ErrorContext *a, Diagnostic *d) {
    int open = open_bracket(a->t, a->at);
    bool closes = strstr(a->expected, "`)`") || strstr(a->expected, "`]`");
    if (closes && open >= 0 && a->t[a->at].first)
        diag_secondary(d, a->t[open].at, "this bracket is still open");
}

// Notes for an expected token alone.
static const char *context_note(const char *expected) {
    return strncmp(expected, "a key such as", 13) == 0
               ? "a train block has keys, no statements; the trainer runs "
                 "epochs, steps and updates"
           : strncmp(expected, "`import`", 8) == 0
               ? "statements stand in a function or a model"
           : strcmp(expected, "`[`") == 0
               ? "a type has its dimensions: f32[N, 10]"
               : NULL;
}

void syntax_note(const Token *t, int at, const char *expected, Diagnostic *d) {
    ErrorContext a = {.t = t, .at = at, .expected = expected};
    a.before = at > 0 ? t[at - 1].kind : TOKEN_END;
    a.here = t[at].kind;
    a.after = a.here == TOKEN_END ? TOKEN_END : t[at + 1].kind;
    bracket_note(&a, d);
    const char *note = pair_note(a.before, a.here);
    if (note == NULL)
        note = pair_note(a.here, a.after);
    if (note == NULL && word_note(&a, d))
        return;
    if (note == NULL && a.here >= TOKEN_IMPORT && a.here <= TOKEN_NOT &&
        a.after == TOKEN_ASSIGN)
        note = keyword_note(&a);
    if (note == NULL)
        note = token_note(&a);
    if (note == NULL)
        note = block_note(&a);
    if (note == NULL)
        note = missing_comma(&a);
    if (note == NULL)
        note = context_note(expected);
    if (note == NULL && strstr(expected, "`{`") && at > 1 &&
        t[at - 2].kind == TOKEN_IMPORT)
        note = "names are imported one by one: import \"std/vision.net\" "
               "{ flip_lr }";
    if (note != NULL)
        diag_note(d, "%s", note);
}
