// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The end of a line, as a token: a line ends its statement unless the next one
// begins with an operator.  Between brackets the parser never asks for it.
#include "tree_sitter/parser.h"

#include <string.h>

enum { LINE_END };

static bool is_blank(int32_t c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_word(int32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
}

// Skips blanks up to the end of the line.  Whether it ends here.
static bool skip_line_end(TSLexer *l) {
    while (is_blank(l->lookahead) && l->lookahead != '\n')
        l->advance(l, true);
    if (l->lookahead != '\n')
        return false;
    l->advance(l, true);
    return true;
}

// Looks past blanks and comments, which stay behind the token's end.
static void pass_comments(TSLexer *l) {
    for (bool comment = false; !l->eof(l); l->advance(l, false)) {
        comment = l->lookahead == '#' || (comment && l->lookahead != '\n');
        if (!comment && !is_blank(l->lookahead))
            return;
    }
}

// Whether the word here continues an expression, a stage or an `if`.
static bool word_continues(TSLexer *l) {
    static const char *const words[] = {"and", "or", "as", "else"};
    char word[8] = "";
    size_t length = 0;
    for (; is_word(l->lookahead); l->advance(l, false), length++)
        if (length < sizeof word - 1)
            word[length] = (char)l->lookahead;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

// A statement begins with a name, a value, `-`, `(` or `[`.
static bool continues(TSLexer *l) {
    return is_word(l->lookahead)
               ? word_continues(l)
               : l->lookahead != 0 && l->lookahead < 128 &&
                     strchr("|^=!<>+*/@,;{", (int)l->lookahead) != NULL;
}

bool tree_sitter_sinter_external_scanner_scan(void *state, TSLexer *l,
                                              const bool *valid) {
    (void)state;
    if (!valid[LINE_END] || !skip_line_end(l))
        return false;
    l->mark_end(l);
    l->result_symbol = LINE_END;
    pass_comments(l);
    return !continues(l);
}

// The scanner has no state.

void *tree_sitter_sinter_external_scanner_create(void) {
    return NULL;
}

void tree_sitter_sinter_external_scanner_destroy(void *state) {
    (void)state;
}

unsigned tree_sitter_sinter_external_scanner_serialize(void *state,
                                                       char *buffer) {
    (void)state;
    (void)buffer;
    return 0;
}

void tree_sitter_sinter_external_scanner_deserialize(void *state,
                                                     const char *buffer,
                                                     unsigned length) {
    (void)state;
    (void)buffer;
    (void)length;
}
