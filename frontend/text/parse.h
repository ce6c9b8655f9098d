// Shared by the files of the parser: its position, and the rules that other
// files use.
#ifndef FRONTEND_PARSE_H
#define FRONTEND_PARSE_H

#include "frontend/text/ast.h"

typedef struct {
    Arena *arena;
    Diagnostics *diags;
    const Token *token;
    int at, count;
    int brackets; // open ( and [ around the current token
    int branches; // open { of branches of expressions
    int nesting;
    bool panic;
    TokenKind misused; // reported once: a keyword as a name, a comma after a
                       // line, or END
    Expr *bad;
} Parser;

// ---- token lookahead, inline ----

static inline const Token *token_current(const Parser *p) {
    return &p->token[p->at];
}

static inline const Token *token_peek(const Parser *p) {
    return &p->token[p->at + 1 < p->count ? p->at + 1 : p->at];
}

// Whether the current token is of kind k; false in panic mode.
static inline bool token_is(const Parser *p, TokenKind k) {
    return !p->panic && token_current(p)->kind == k;
}

// Whether it is on the line of the statement so far.
static inline bool token_on_line(const Parser *p) {
    return p->brackets > 0 || !token_current(p)->first;
}

// Advances to the next token, and returns the consumed one.
static inline const Token *token_consume(Parser *p) {
    const Token *t = token_current(p);
    if (p->at + 1 < p->count)
        p->at++;
    return t;
}

// Consumes the current token if it is of kind k.
static inline bool token_accept(Parser *p, TokenKind k) {
    if (!token_is(p, k))
        return false;
    token_consume(p);
    return true;
}

// ---- parse_tokens.c ----

// The span of the token before the current one.
Span token_previous_at(const Parser *p);

// As token_accept, but reports a token of another kind.
bool token_expect(Parser *p, TokenKind k);
// Reports that something else was expected here, and enters panic mode.  NULL
// if there is nothing to report: in panic mode, or after a lexical error.
Diagnostic *token_expected(Parser *p, const char *expected);

// The same for a contextual keyword, such as `every`, which is a name
// elsewhere.
bool word_is(const Parser *p, const char *word);
bool word_accept(Parser *p, const char *word);
// Reads a name into *text, and its span.
bool name_parse(Parser *p, Atom *text, Span *at);

// False, with a report, if nested too deep; nesting_leave is due either way.
bool nesting_enter(Parser *p);
void nesting_leave(Parser *p);

// Whether another item follows in a comma-separated list of `count` items so
// far; and the closing bracket.
bool items_next(Parser *p, TokenKind close, int count);
void items_end(Parser *p, TokenKind close);

// Whether an item of the file begins here, even inside open brackets.
bool item_begins(const Parser *p);

// ---- parse_expression.c ----

Expr *expr_new(Parser *p, ExprKind kind, Span at);
Expr *expression_parse(Parser *p);
Targets targets_parse(Parser *p);
// Whether a token is a binary operator.
bool operator_is_binary(TokenKind k);

// ---- parse_statement.c ----

// Checks the end of a statement.
void statement_end(Parser *p);
// After a statement of a block: checks its end, and after an error skips the
// rest of the statement.
void statement_next(Parser *p);

// Whether the block has another statement.
bool block_continues(const Parser *p);
void block_close(Parser *p, Span open);

Stmt assignment_parse(Parser *p);
Function *function_parse(Parser *p, bool is_model);

// ---- parse_train.c ----

Train train_parse(Parser *p);
// A setting: NAME = expression, or NAME.NAME = expression.
Entry setting_parse(Parser *p);

// ---- syntax_notes.c ----

// Adds notes to a syntax error at t[at].
void syntax_note(const Token *t, int at, const char *expected, Diagnostic *d);

#endif
