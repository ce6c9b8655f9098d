// The parser's cursor: consumes tokens, and reports unexpected ones.

#include "frontend/foreign.h"
#include "frontend/text/parse.h"

#include <string.h>

static const char *found_text(Parser *p) {
    const Token *t = token_current(p);
    if (t->kind == TOKEN_NAME)
        return arena_format(p->arena, "`%s`", t->text);
    return token_name(t->kind);
}

static bool is_keyword(TokenKind k) {
    return k >= TOKEN_IMPORT && k <= TOKEN_NOT;
}

static bool is_infix(TokenKind k) {
    return k == TOKEN_PIPE || k == TOKEN_POWER || k == TOKEN_ASSIGN ||
           operator_is_binary(k);
}

// The binary operator at the end of a line whose right operand is missing, as
// the block ends or an assignment follows; NULL: none.
static const Token *dangling_operator(Parser *p, const char *expected) {
    const Token *next = token_current(p);
    if (next->kind == TOKEN_ASSIGN && p->at > 0)
        next--;
    else if (strcmp(expected, "a value") != 0)
        return NULL;
    bool behind = next > p->token && is_infix(next[-1].kind);
    return behind && (next->first || next->kind == TOKEN_END) ? next - 1 : NULL;
}

// The missing token may be one that the lexer could not read.
Diagnostic *token_expected(Parser *p, const char *expected) {
    if (p->panic)
        return NULL;
    p->panic = true;
    TokenKind here = token_current(p)->kind;
    bool misused = here == p->misused && here != TOKEN_END;
    if (misused || token_current(p)->skipped ||
        (p->at > 0 && p->token[p->at - 1].broken))
        return NULL;
    if (is_keyword(here) && token_peek(p)->kind == TOKEN_ASSIGN)
        p->misused = here;
    const Token *operator= dangling_operator(p, expected);
    if (operator!= NULL)
        return report(p->diags, D_syntax, operator->at,
                      "expected a value behind %s, found the end of its line",
                      token_name(operator->kind));
    Diagnostic *d = report(p->diags, D_syntax, token_current(p)->at,
                           "expected %s, found %s", expected, found_text(p));
    syntax_note(p->token, p->at, expected, d);
    return d;
}

bool token_expect(Parser *p, TokenKind k) {
    if (token_accept(p, k))
        return true;
    token_expected(p, token_name(k));
    return false;
}

bool name_parse(Parser *p, Atom *text, Span *at) {
    *text = token_current(p)->text;
    *at = token_current(p)->at;
    return token_expect(p, TOKEN_NAME);
}

Span token_previous_at(const Parser *p) {
    return p->token[p->at > 0 ? p->at - 1 : 0].at;
}

bool word_is(const Parser *p, const char *word) {
    return token_is(p, TOKEN_NAME) && strcmp(token_current(p)->text, word) == 0;
}

bool word_accept(Parser *p, const char *word) {
    if (!word_is(p, word))
        return false;
    token_consume(p);
    return true;
}

// The innermost expression enters too, but is no level.
bool nesting_enter(Parser *p) {
    if (++p->nesting <= MAX_NESTING + 1)
        return true;
    if (!p->panic)
        report(p->diags, D_nesting, token_current(p)->at,
               "this is nested deeper than %d levels", MAX_NESTING);
    p->panic = true;
    return false;
}

void nesting_leave(Parser *p) {
    p->nesting--;
}

bool item_begins(const Parser *p) {
    TokenKind next = token_peek(p)->kind;
    if (!token_current(p)->first)
        return false;
    switch (token_current(p)->kind) {
    case TOKEN_IMPORT:
        return next == TOKEN_STRING || next == TOKEN_NAME;
    case TOKEN_MODEL:
    case TOKEN_TRAIN:
        return next == TOKEN_NAME || next == TOKEN_OPEN_BLOCK ||
               next == TOKEN_COLON;
    default:
        return false;
    }
}

// ---- items between brackets, with commas between them ----

bool items_next(Parser *p, TokenKind close, int count) {
    return !p->panic && (count == 0 || token_accept(p, TOKEN_COMMA)) &&
           !token_is(p, close);
}

void items_end(Parser *p, TokenKind close) {
    if (!token_accept(p, close))
        token_expected(p,
                       arena_format(p->arena, "`,` or %s", token_name(close)));
}
