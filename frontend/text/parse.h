// What the files of the parser share: where it is, and what a rule of one file
// takes from another's.
#ifndef FRONTEND_PARSE_H
#define FRONTEND_PARSE_H

#include "frontend/text/ast.h"

typedef struct {
    Arena *arena;
    Diagnostics *diags;
    const Token *token;
    int at, count;
    int brackets; // open ( and [ around the current token
    int nesting;
    bool panic;
    TokenKind misused; // what was told once: a word of the language that was
                       // used as a name, a comma behind a line, or END
    Expr *bad;
} Parser;

// ---- the tokens that are next, which every rule asks for again and again ----

static inline const Token *token_current(const Parser *p) {
    return &p->token[p->at];
}

static inline const Token *token_following(const Parser *p) {
    return &p->token[p->at + 1 < p->count ? p->at + 1 : p->at];
}

// Whether the current token is of that kind; no token is while in panic.
static inline bool token_is(const Parser *p, TokenKind k) {
    return !p->panic && token_current(p)->kind == k;
}

// Whether it is on the line that the statement has reached.
static inline bool token_on_line(const Parser *p) {
    return p->brackets > 0 || !token_current(p)->first;
}

// Goes on to the next token, and returns the one that was current.
static inline const Token *token_take(Parser *p) {
    const Token *t = token_current(p);
    if (p->at + 1 < p->count)
        p->at++;
    return t;
}

// Takes the current token if it is of that kind.
static inline bool token_accept(Parser *p, TokenKind k) {
    if (!token_is(p, k))
        return false;
    token_take(p);
    return true;
}

// ---- parse_tokens.c ----

// Where the token before the current one stands.
Span token_last_at(const Parser *p);

// As token_accept, but reports a token of another kind.
bool token_expect(Parser *p, TokenKind k);
// Reports that something else was expected here, and panics.  NULL where there
// is nothing to report: in panic, or after what the lexer could not read.
Diagnostic *token_expected(Parser *p, const char *what);

// As for tokens, of a word of a clause, such as `every`, which elsewhere is a
// name.
bool word_is(const Parser *p, const char *word);
bool word_accept(Parser *p, const char *word);
// Reads a name into *text, and where it stands.
bool name_parse(Parser *p, Atom *text, Span *at);

// False, and a report, when nested too deep; to be left all the same.
bool nesting_enter(Parser *p);
void nesting_leave(Parser *p);

// Whether another item comes in brackets, with commas between them, of which
// there are `count` already; and the bracket behind the last.
bool items_next(Parser *p, TokenKind close, int count);
void items_end(Parser *p, TokenKind close);

// Whether an item of the file begins here, whatever is still open.
bool item_begins(const Parser *p);

// ---- parse_expression.c ----

Expr *expr_new(Parser *p, ExprKind kind, Span at);
Expr *expression_parse(Parser *p);
// Whether a token stands between two operands.
bool operator_is_binary(TokenKind k);

// ---- parse_statement.c ----

// After a statement: what must end it.
void statement_end(Parser *p);
// After a statement of a block: the same, and where there was a mistake, what
// is left of the statement is skipped.
void statement_next(Parser *p);

// Whether what is in a block goes on here.
bool block_goes_on(const Parser *p);
void block_close(Parser *p, Span open);

Stmt assignment_parse(Parser *p);
Function *function_parse(Parser *p, bool is_model);

// ---- parse_train.c ----

Train train_parse(Parser *p);
// NAME = expression, or NAME.NAME = expression.
Entry setting_parse(Parser *p);

#endif
