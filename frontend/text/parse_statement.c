// Statements, blocks, functions and models.

#include "frontend/text/parse.h"

#include <string.h>

// Whether the line that begins here continues the one before.
static bool continues(const Parser *p) {
    TokenKind k = token_current(p)->kind;
    return k == TOKEN_PIPE || k == TOKEN_POWER ||
           (operator_is_binary(k) && k != TOKEN_MINUS);
}

// Skips to the next statement: a new line outside brackets, or the end of the
// block.  An item of the file always ends the search.
static void recover(Parser *p) {
    int open = p->branches;
    p->panic = false;
    p->brackets = p->branches = 0;
    for (bool moved = false; !token_is(p, TOKEN_END); moved = true) {
        TokenKind k = token_current(p)->kind;
        bool line = token_current(p)->first && !continues(p);
        if (item_begins(p) || (line && moved && open <= 0))
            return;
        if (k == TOKEN_CLOSE_BLOCK && open <= 0)
            return;
        open +=
            k == TOKEN_OPEN || k == TOKEN_OPEN_LIST || k == TOKEN_OPEN_BLOCK;
        open -=
            k == TOKEN_CLOSE || k == TOKEN_CLOSE_LIST || k == TOKEN_CLOSE_BLOCK;
        token_consume(p);
    }
}

// A statement ends at a new line, ";" or the end of the block.  A comma at the
// end of a line is reported once.
void statement_end(Parser *p) {
    if (p->panic || token_accept(p, TOKEN_SEMICOLON) ||
        token_current(p)->first || token_is(p, TOKEN_CLOSE_BLOCK) ||
        token_is(p, TOKEN_END))
        return;
    bool comma = token_is(p, TOKEN_COMMA);
    token_expected(p, "a new line");
    if (comma)
        p->misused = TOKEN_COMMA;
}

bool block_continues(const Parser *p) {
    return !token_is(p, TOKEN_CLOSE_BLOCK) && !token_is(p, TOKEN_END) &&
           !item_begins(p) && !p->diags->truncated;
}

void statement_next(Parser *p) {
    statement_end(p);
    if (p->panic)
        recover(p);
}

void block_close(Parser *p, Span open) {
    if (token_accept(p, TOKEN_CLOSE_BLOCK))
        return;
    Diagnostic *d = token_expected(p, "`}`");
    if (d != NULL)
        diag_secondary(d, open, "this block is still open");
}

static Block block(Parser *p);

// let = "let" targets "=" expression
// assignment = targets "=" expression
Stmt assignment_parse(Parser *p) {
    Stmt s = {.kind = STMT_ASSIGN, .at = token_current(p)->at};
    token_accept(p, TOKEN_LET);
    s.to = targets_parse(p);
    if (!token_accept(p, TOKEN_ASSIGN)) {
        Diagnostic *d = token_expected(p, token_name(TOKEN_ASSIGN));
        if (d != NULL && s.to.count > 1)
            diag_note(d, "several values are a list, as in: [a, b]");
    }
    s.value = p->panic ? p->bad : expression_parse(p);
    s.at = span_join(s.at, token_previous_at(p));
    return s;
}

// for = "for" targets "in" expression block
static Stmt for_statement(Parser *p) {
    Stmt s = {.kind = STMT_FOR, .at = token_consume(p)->at};
    s.to = targets_parse(p);
    token_expect(p, TOKEN_IN);
    s.value = expression_parse(p);
    s.body = block(p);
    return s;
}

// if = "if" expression block [ "else" ( if | block ) ]
static Stmt if_statement(Parser *p) {
    Stmt s = {.kind = STMT_IF, .at = token_consume(p)->at};
    s.value = expression_parse(p);
    s.body = block(p);
    if (!token_accept(p, TOKEN_ELSE))
        return s;
    if (!token_is(p, TOKEN_IF)) {
        s.otherwise = block(p);
        return s;
    }
    if (nesting_enter(p)) {
        Stmt *other = ARENA_NEW(p->arena, Stmt);
        *other = if_statement(p);
        s.otherwise = (Block){other, 1, other->at};
    }
    nesting_leave(p);
    return s;
}

// with = "with" expression block
static Stmt with_statement(Parser *p) {
    Stmt s = {.kind = STMT_WITH, .at = token_consume(p)->at};
    s.value = expression_parse(p);
    s.body = block(p);
    return s;
}

static bool begins_assignment(const Parser *p) {
    TokenKind next = token_peek(p)->kind;
    return token_is(p, TOKEN_NAME) &&
           (next == TOKEN_ASSIGN || next == TOKEN_COMMA);
}

// statement = function | for | if | with | let | assignment | expression
static Stmt statement(Parser *p) {
    Stmt s = {.kind = STMT_VALUE, .at = token_current(p)->at};
    switch (token_current(p)->kind) {
    case TOKEN_FN:
        s.kind = STMT_FUNCTION;
        s.function = function_parse(p, false);
        return s;
    case TOKEN_FOR:
        return for_statement(p);
    case TOKEN_IF:
        return if_statement(p);
    case TOKEN_WITH:
        return with_statement(p);
    case TOKEN_LET:
        return assignment_parse(p);
    default:
        if (begins_assignment(p))
            return assignment_parse(p);
        s.value = expression_parse(p);
        s.at = s.value->at;
        return s;
    }
}

// Parses the statements of a block, up to its closing bracket.
static void statements(Parser *p, Block *b) {
    while (block_continues(p)) {
        Stmt s = statement(p);
        ARENA_APPEND(p->arena, b->stmt, b->count, s);
        statement_next(p);
    }
}

// block = "{" { statement } "}"
static Block block(Parser *p) {
    Block b = {.at = token_current(p)->at};
    int brackets = p->brackets;
    if (!token_expect(p, TOKEN_OPEN_BLOCK))
        return b;
    p->brackets = 0;
    if (nesting_enter(p))
        statements(p, &b);
    nesting_leave(p);
    p->brackets = brackets;
    Span open = b.at;
    b.at = span_join(open, token_current(p)->at);
    block_close(p, open);
    return b;
}

// ---- functions ----

// type = NAME "[" [ expression { "," expression } ] "]"
static TypeExpr *type(Parser *p) {
    TypeExpr *t = ARENA_NEW(p->arena, TypeExpr);
    const Token *name = token_current(p);
    t->at = name->at;
    if (!token_is(p, TOKEN_NAME) ||
        !dtype_find(name->text, strlen(name->text), &t->dtype)) {
        token_expected(p, "a type such as f32[N, 10]");
        return t;
    }
    token_consume(p);
    p->brackets++;
    token_expect(p, TOKEN_OPEN_LIST);
    while (items_next(p, TOKEN_CLOSE_LIST, t->rank)) {
        if (t->rank == MAX_RANK)
            token_expected(p, "at most 8 dimensions");
        else
            t->dim[t->rank++] = expression_parse(p);
    }
    p->brackets--;
    items_end(p, TOKEN_CLOSE_LIST);
    t->at = span_join(t->at, token_previous_at(p));
    return t;
}

// parameter = NAME [ ":" type ] [ "=" expression ]
static Param parameter(Parser *p) {
    Param param = {0};
    name_parse(p, &param.name, &param.at);
    if (token_accept(p, TOKEN_COLON))
        param.type = type(p);
    if (token_accept(p, TOKEN_ASSIGN))
        param.otherwise = expression_parse(p);
    return param;
}

// parameters = "(" [ parameter { "," parameter } [ "," ] ] ")"
static void parameters(Parser *p, Function *f) {
    token_expect(p, TOKEN_OPEN);
    p->brackets++;
    while (items_next(p, TOKEN_CLOSE, f->num_params)) {
        Param param = parameter(p);
        ARENA_APPEND(p->arena, f->param, f->num_params, param);
    }
    p->brackets--;
    items_end(p, TOKEN_CLOSE);
}

// body = "=" expression | block
static Block body(Parser *p) {
    if (!token_accept(p, TOKEN_ASSIGN))
        return block(p);
    Stmt s = {.kind = STMT_VALUE};
    s.value = expression_parse(p);
    s.at = s.value->at;
    Block b = {.at = s.at};
    ARENA_APPEND(p->arena, b.stmt, b.count, s);
    return b;
}

// outputs = "(" NAME ":" type { "," NAME ":" type } [ "," ] ")"
static void outputs(Parser *p, Function *f) {
    token_consume(p);
    p->brackets++;
    while (items_next(p, TOKEN_CLOSE, f->num_outputs)) {
        Param output = {0};
        name_parse(p, &output.name, &output.at);
        token_expect(p, TOKEN_COLON);
        output.type = type(p);
        ARENA_APPEND(p->arena, f->output, f->num_outputs, output);
    }
    p->brackets--;
    items_end(p, TOKEN_CLOSE);
}

// function = "fn" NAME parameters [ "->" type ] body
// model = "model" NAME parameters [ "->" ( type | outputs ) ] block
Function *function_parse(Parser *p, bool is_model) {
    Function *f = ARENA_NEW(p->arena, Function);
    token_consume(p);
    if (!name_parse(p, &f->name, &f->name_at))
        return f;
    parameters(p, f);
    f->is_model = is_model;
    bool arrow = token_accept(p, TOKEN_ARROW);
    if (arrow && is_model && token_is(p, TOKEN_OPEN))
        outputs(p, f);
    else if (arrow)
        f->result = type(p);
    f->body = is_model ? block(p) : body(p);
    return f;
}
