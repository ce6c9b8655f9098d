// Parsing: recursive descent.  Each function is named for the grammar rule in
// the comment above it; `grep '^// .* = '` prints the grammar.
//
// A statement ends with its line.  A line that begins with an operator goes on
// with the one before, and so does everything inside brackets; only `-` and
// `(` and `[`, which may begin an expression, begin a new one.
//
// After a mistake the parser is in panic: it consumes nothing and reports
// nothing until the statement's caller has skipped to the next statement.

#include "frontend/foreign.h"
#include "frontend/text/ast.h"

#include <string.h>

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

// ---- tokens ----

static const Token *current(const Parser *p) {
    return &p->token[p->at];
}

static const Token *following(const Parser *p) {
    return &p->token[p->at + 1 < p->count ? p->at + 1 : p->at];
}

static bool is(const Parser *p, TokenKind k) {
    return !p->panic && current(p)->kind == k;
}

static const Token *advance(Parser *p) {
    const Token *t = current(p);
    if (p->at + 1 < p->count)
        p->at++;
    return t;
}

static bool accept(Parser *p, TokenKind k) {
    if (!is(p, k))
        return false;
    advance(p);
    return true;
}

static const char *found(Parser *p) {
    const Token *t = current(p);
    if (t->kind == TOKEN_NAME)
        return arena_format(p->arena, "`%s`", t->text);
    return token_name(t->kind);
}

static bool is_keyword(TokenKind k) {
    return k >= TOKEN_IMPORT && k <= TOKEN_NOT;
}

// NULL while in panic.  What is missing may be what the lexer could not read.
static Diagnostic *expected(Parser *p, const char *what) {
    if (p->panic)
        return NULL;
    p->panic = true;
    TokenKind here = current(p)->kind;
    bool misused = here == p->misused && here != TOKEN_END;
    if (misused || current(p)->skipped ||
        (p->at > 0 && p->token[p->at - 1].broken))
        return NULL;
    if (is_keyword(here) && following(p)->kind == TOKEN_ASSIGN)
        p->misused = here;
    Diagnostic *d = report(p->diags, D_syntax, current(p)->at,
                           "expected %s, found %s", what, found(p));
    syntax_note(p->token, p->at, what, d);
    return d;
}

static bool expect(Parser *p, TokenKind k) {
    if (accept(p, k))
        return true;
    expected(p, token_name(k));
    return false;
}

// Reads a name into *text, and where it stands.
static bool name(Parser *p, Atom *text, Span *at) {
    *text = current(p)->text;
    *at = current(p)->at;
    return expect(p, TOKEN_NAME);
}

static Span last_at(const Parser *p) {
    return p->token[p->at > 0 ? p->at - 1 : 0].at;
}

// Whether the current token is a word of a clause, such as `every`.
static bool is_word(const Parser *p, const char *word) {
    return is(p, TOKEN_NAME) && strcmp(current(p)->text, word) == 0;
}

static bool accept_word(Parser *p, const char *word) {
    if (!is_word(p, word))
        return false;
    advance(p);
    return true;
}

// Whether the current token is on the line that the statement has reached.
static bool same_line(const Parser *p) {
    return p->brackets > 0 || !current(p)->first;
}

// False, and a report, when nested too deep.  What is inside all of them enters
// too, and is no level.
static bool enter(Parser *p) {
    if (++p->nesting <= MAX_NESTING + 1)
        return true;
    if (!p->panic)
        report(p->diags, D_nesting, current(p)->at,
               "this is nested deeper than %d levels", MAX_NESTING);
    p->panic = true;
    return false;
}

static void leave(Parser *p) {
    p->nesting--;
}

// Whether an item of the file begins here, whatever is still open.
static bool at_item(const Parser *p) {
    TokenKind next = following(p)->kind;
    if (!current(p)->first)
        return false;
    switch (current(p)->kind) {
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

// Whether another item comes, of which there are `count` already.
static bool next_item(Parser *p, TokenKind close, int count) {
    return !p->panic && (count == 0 || accept(p, TOKEN_COMMA)) && !is(p, close);
}

static void end_items(Parser *p, TokenKind close) {
    if (!accept(p, close))
        expected(p, arena_format(p->arena, "`,` or %s", token_name(close)));
}

// ---- expressions ----

static Expr *new_expr(Parser *p, ExprKind kind, Span at) {
    Expr *e = ARENA_NEW(p->arena, Expr);
    e->kind = kind;
    e->at = at;
    e->depth = 1;
    return e;
}

// Notes that child is a part of e.
static void deepen(Parser *p, Expr *e, const Expr *child) {
    if (child->depth >= e->depth)
        e->depth = child->depth + 1;
    if (e->depth <= MAX_DEPTH || p->panic)
        return;
    p->panic = true;
    report(p->diags, D_nesting, e->at,
           "this expression is more than %d operations deep", MAX_DEPTH);
}

static Expr *expression(Parser *p);

// knot = expression [ ":" expression ]
static Expr *knot(Parser *p) {
    Expr *left = expression(p);
    if (!accept(p, TOKEN_COLON))
        return left;
    Expr *right = expression(p);
    Expr *e = new_expr(p, EXPR_KNOT, span_join(left->at, right->at));
    e->left = left;
    e->right = right;
    deepen(p, e, left);
    deepen(p, e, right);
    return e;
}

// list = "[" [ knot { "," knot } [ "," ] ] "]"
static Expr *list(Parser *p) {
    Expr *e = new_expr(p, EXPR_LIST, advance(p)->at);
    p->brackets++;
    while (next_item(p, TOKEN_CLOSE_LIST, e->count)) {
        Expr *item = knot(p);
        ARENA_APPEND(p->arena, e->item, e->count, item);
        deepen(p, e, item);
    }
    p->brackets--;
    end_items(p, TOKEN_CLOSE_LIST);
    e->at = span_join(e->at, last_at(p));
    return e;
}

static Expr *parenthesised(Parser *p) {
    advance(p);
    p->brackets++;
    Expr *e = expression(p);
    p->brackets--;
    expect(p, TOKEN_CLOSE);
    return e;
}

static Expr *leaf(Parser *p, ExprKind kind) {
    const Token *t = advance(p);
    Expr *e = new_expr(p, kind, t->at);
    e->text = t->text;
    e->number = t->number;
    e->truth = t->kind == TOKEN_TRUE;
    return e;
}

// primary = NUMBER | STRING | NAME | "true" | "false" | list
//         | "(" expression ")"
static Expr *primary(Parser *p) {
    switch (p->panic ? TOKEN_END : current(p)->kind) {
    case TOKEN_NUMBER:
        return leaf(p, EXPR_NUMBER);
    case TOKEN_STRING:
        return leaf(p, EXPR_STRING);
    case TOKEN_NAME:
        return leaf(p, EXPR_NAME);
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        return leaf(p, EXPR_TRUTH);
    case TOKEN_OPEN_LIST:
        return list(p);
    case TOKEN_OPEN:
        return parenthesised(p);
    default:
        expected(p, "a value");
        return p->bad;
    }
}

// argument = [ NAME "=" ] knot
static Argument argument(Parser *p) {
    Argument a = {0};
    if (is(p, TOKEN_NAME) && following(p)->kind == TOKEN_ASSIGN) {
        a.name = current(p)->text;
        a.name_at = advance(p)->at;
        advance(p);
    }
    a.value = knot(p);
    return a;
}

// call = postfix "(" [ argument { "," argument } [ "," ] ] ")"
static Expr *call(Parser *p, Expr *callee) {
    Expr *e = new_expr(p, EXPR_CALL, callee->at);
    e->left = callee;
    deepen(p, e, callee);
    advance(p);
    p->brackets++;
    while (next_item(p, TOKEN_CLOSE, e->count)) {
        Argument a = argument(p);
        ARENA_APPEND(p->arena, e->argument, e->count, a);
        deepen(p, e, a.value);
    }
    p->brackets--;
    end_items(p, TOKEN_CLOSE);
    e->at = span_join(e->at, last_at(p));
    return e;
}

// member = postfix "." NAME
static Expr *member(Parser *p, Expr *base) {
    advance(p);
    Expr *e = new_expr(p, EXPR_MEMBER, base->at);
    e->left = base;
    e->text = current(p)->text;
    if (!accept(p, TOKEN_TRAIN)) // data.train
        expect(p, TOKEN_NAME);
    e->at = span_join(e->at, last_at(p));
    deepen(p, e, base);
    return e;
}

// index = postfix "[" expression "]"
static Expr *index_of(Parser *p, Expr *list) {
    Expr *e = new_expr(p, EXPR_INDEX, list->at);
    advance(p);
    p->brackets++;
    e->left = list;
    e->right = expression(p);
    p->brackets--;
    if (!accept(p, TOKEN_CLOSE_LIST)) {
        Diagnostic *d = expected(p, "`]`");
        if (d != NULL)
            diag_note(d, "`slice` takes a part of a tensor");
    }
    e->at = span_join(e->at, last_at(p));
    deepen(p, e, list);
    deepen(p, e, e->right);
    return e;
}

static Unit unit_of(const Token *t) {
    static const struct {
        const char *word;
        Unit unit;
    } table[] = {
        {"epoch", UNIT_EPOCH}, {"epochs", UNIT_EPOCH}, {"step", UNIT_STEP},
        {"steps", UNIT_STEP},  {"KiB", UNIT_KIB},      {"MiB", UNIT_MIB},
        {"GiB", UNIT_GIB},
    };
    if (t->kind == TOKEN_PERCENT)
        return UNIT_PERCENT;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (t->kind == TOKEN_NAME && strcmp(t->text, table[i].word) == 0)
            return table[i].unit;
    return UNIT_NONE;
}

// unit = postfix ( "%" | "epoch" | "step" | "KiB" | "MiB" | "GiB" )
static Expr *unit(Parser *p, Expr *value) {
    Expr *e = new_expr(p, EXPR_UNIT, value->at);
    e->left = value;
    e->unit = unit_of(advance(p));
    e->at = span_join(e->at, last_at(p));
    deepen(p, e, value);
    return e;
}

// postfix = primary | call | member | index | unit
static Expr *postfix(Parser *p) {
    Expr *e = primary(p);
    while (!p->panic && same_line(p)) {
        if (is(p, TOKEN_OPEN))
            e = call(p, e);
        else if (is(p, TOKEN_DOT))
            e = member(p, e);
        else if (is(p, TOKEN_OPEN_LIST))
            e = index_of(p, e);
        else if (unit_of(current(p)) != UNIT_NONE)
            e = unit(p, e);
        else
            break;
    }
    return e;
}

// From loosest to tightest.
enum { OR_LEVEL, AND_LEVEL, COMPARE_LEVEL, SUM_LEVEL, PRODUCT_LEVEL, TIGHTEST };

// The level of a binary operator; -1 for what is none.
static int level_of(TokenKind k) {
    switch (k) {
    case TOKEN_OR:
        return OR_LEVEL;
    case TOKEN_AND:
        return AND_LEVEL;
    case TOKEN_EQUAL:
    case TOKEN_DIFFERS:
    case TOKEN_LESS:
    case TOKEN_MORE:
    case TOKEN_AT_MOST:
    case TOKEN_AT_LEAST:
        return COMPARE_LEVEL;
    case TOKEN_PLUS:
    case TOKEN_MINUS:
        return SUM_LEVEL;
    case TOKEN_TIMES:
    case TOKEN_DIVIDE:
    case TOKEN_PRODUCT:
        return PRODUCT_LEVEL;
    default:
        return -1;
    }
}

static Expr *unary(Parser *p);

static Expr *operation(Parser *p, ExprKind kind, const Token *op, Expr *left,
                       Expr *right) {
    Span start = left ? left->at : op->at;
    Expr *e = new_expr(p, kind, span_join(start, right->at));
    e->op = op->kind;
    e->op_at = op->at;
    e->left = left;
    e->right = right;
    if (left)
        deepen(p, e, left);
    deepen(p, e, right);
    return e;
}

// binary = unary { OPERATOR binary }, operators of one level from the left
static Expr *binary(Parser *p, int level) {
    if (level == TIGHTEST)
        return unary(p);
    Expr *e = binary(p, level + 1);
    while (!p->panic && level_of(current(p)->kind) == level) {
        if (is(p, TOKEN_MINUS) && !same_line(p))
            break;
        const Token *op = advance(p);
        Expr *right = binary(p, level + 1);
        e = operation(p, EXPR_BINARY, op, e, right);
    }
    return e;
}

// power = postfix [ "^" unary ]
static Expr *power(Parser *p) {
    Expr *e = postfix(p);
    if (!is(p, TOKEN_POWER))
        return e;
    const Token *op = advance(p);
    Expr *right = unary(p);
    return operation(p, EXPR_BINARY, op, e, right);
}

// unary = "-" unary | "not" binary | power
static Expr *unary(Parser *p) {
    if (!enter(p)) {
        leave(p);
        return p->bad;
    }
    Expr *e;
    if (is(p, TOKEN_MINUS) || is(p, TOKEN_NOT)) {
        const Token *op = advance(p);
        Expr *right =
            op->kind == TOKEN_NOT ? binary(p, COMPARE_LEVEL) : unary(p);
        e = operation(p, EXPR_UNARY, op, NULL, right);
    } else {
        e = power(p);
    }
    leave(p);
    return e;
}

// stage = "|>" postfix [ "as" NAME ]
static Link stage(Parser *p) {
    advance(p);
    Link s = {.call = postfix(p)};
    if (accept(p, TOKEN_AS))
        name(p, &s.name, &s.name_at);
    return s;
}

// expression = binary { stage }
static Expr *expression(Parser *p) {
    Expr *head = binary(p, OR_LEVEL);
    if (!is(p, TOKEN_PIPE))
        return head;
    Expr *e = new_expr(p, EXPR_PIPE, head->at);
    e->left = head;
    deepen(p, e, head);
    while (is(p, TOKEN_PIPE)) {
        Link s = stage(p);
        ARENA_APPEND(p->arena, e->stage, e->count, s);
        deepen(p, e, s.call);
    }
    e->at = span_join(e->at, last_at(p));
    return e;
}

// ---- statements ----

// Whether the line that begins here goes on with the one before.
static bool continues(const Parser *p) {
    TokenKind k = current(p)->kind;
    return k == TOKEN_PIPE || k == TOKEN_POWER ||
           (level_of(k) >= 0 && k != TOKEN_MINUS);
}

// Skips to where the next statement may begin: a new line outside brackets, or
// the end of the block.  What begins a file's item ends the search anyhow.
static void recover(Parser *p) {
    p->panic = false;
    p->brackets = 0;
    int open = 0;
    for (bool moved = false; !is(p, TOKEN_END); moved = true) {
        TokenKind k = current(p)->kind;
        bool line = current(p)->first && !continues(p);
        if (at_item(p) || (line && moved && open <= 0))
            return;
        if (k == TOKEN_CLOSE_BLOCK && open <= 0)
            return;
        open +=
            k == TOKEN_OPEN || k == TOKEN_OPEN_LIST || k == TOKEN_OPEN_BLOCK;
        open -=
            k == TOKEN_CLOSE || k == TOKEN_CLOSE_LIST || k == TOKEN_CLOSE_BLOCK;
        advance(p);
    }
}

// What may come after a statement: a new line, ";" or the end of the block. Who
// ends one line with a comma ends all of them so.
static void end_statement(Parser *p) {
    if (p->panic || accept(p, TOKEN_SEMICOLON) || current(p)->first ||
        is(p, TOKEN_CLOSE_BLOCK) || is(p, TOKEN_END))
        return;
    bool comma = is(p, TOKEN_COMMA);
    expected(p, "a new line");
    if (comma)
        p->misused = TOKEN_COMMA;
}

// Whether what is in a block goes on here.
static bool in_block(const Parser *p) {
    return !is(p, TOKEN_CLOSE_BLOCK) && !is(p, TOKEN_END) && !at_item(p) &&
           !p->diags->more;
}

static void next_statement(Parser *p) {
    end_statement(p);
    if (p->panic)
        recover(p);
}

static void close_block(Parser *p, Span open) {
    if (accept(p, TOKEN_CLOSE_BLOCK))
        return;
    Diagnostic *d = expected(p, "`}`");
    if (d != NULL)
        diag_place(d, open, "this block is still open");
}

static Block block(Parser *p);
static Function *function(Parser *p, bool is_model);

// let = "let" NAME "=" expression
// assignment = NAME "=" expression
static Stmt assignment(Parser *p) {
    Stmt s = {.kind = STMT_ASSIGN, .at = current(p)->at};
    accept(p, TOKEN_LET);
    bool good = name(p, &s.name, &s.name_at) && expect(p, TOKEN_ASSIGN);
    s.value = good ? expression(p) : p->bad;
    s.at = span_join(s.at, last_at(p));
    return s;
}

// for = "for" NAME "in" expression block
static Stmt for_statement(Parser *p) {
    Stmt s = {.kind = STMT_FOR, .at = advance(p)->at};
    name(p, &s.name, &s.name_at);
    expect(p, TOKEN_IN);
    s.value = expression(p);
    s.body = block(p);
    return s;
}

// if = "if" expression block [ "else" ( if | block ) ]
static Stmt if_statement(Parser *p) {
    Stmt s = {.kind = STMT_IF, .at = advance(p)->at};
    s.value = expression(p);
    s.body = block(p);
    if (!accept(p, TOKEN_ELSE))
        return s;
    if (!is(p, TOKEN_IF)) {
        s.otherwise = block(p);
        return s;
    }
    if (enter(p)) {
        Stmt *other = ARENA_NEW(p->arena, Stmt);
        *other = if_statement(p);
        s.otherwise = (Block){other, 1, other->at};
    }
    leave(p);
    return s;
}

// with = "with" expression block
static Stmt with_statement(Parser *p) {
    Stmt s = {.kind = STMT_WITH, .at = advance(p)->at};
    s.value = expression(p);
    s.body = block(p);
    return s;
}

// statement = function | for | if | with | let | assignment | expression
static Stmt statement(Parser *p) {
    Stmt s = {.kind = STMT_VALUE, .at = current(p)->at};
    switch (current(p)->kind) {
    case TOKEN_FN:
        s.kind = STMT_FUNCTION;
        s.function = function(p, false);
        s.name = s.function->name;
        s.name_at = s.function->name_at;
        return s;
    case TOKEN_FOR:
        return for_statement(p);
    case TOKEN_IF:
        return if_statement(p);
    case TOKEN_WITH:
        return with_statement(p);
    case TOKEN_LET:
        return assignment(p);
    default:
        if (is(p, TOKEN_NAME) && following(p)->kind == TOKEN_ASSIGN)
            return assignment(p);
        s.value = expression(p);
        s.at = s.value->at;
        return s;
    }
}

// The statements of a block, up to its closing bracket.
static void statements(Parser *p, Block *b) {
    while (in_block(p)) {
        Stmt s = statement(p);
        ARENA_APPEND(p->arena, b->stmt, b->count, s);
        next_statement(p);
    }
}

// block = "{" { statement } "}"
static Block block(Parser *p) {
    Block b = {.at = current(p)->at};
    int brackets = p->brackets;
    if (!expect(p, TOKEN_OPEN_BLOCK))
        return b;
    p->brackets = 0;
    if (enter(p))
        statements(p, &b);
    leave(p);
    p->brackets = brackets;
    Span open = b.at;
    b.at = span_join(open, current(p)->at);
    close_block(p, open);
    return b;
}

// ---- functions ----

// type = NAME "[" [ expression { "," expression } ] "]"
static TypeExpr *type(Parser *p) {
    TypeExpr *t = ARENA_NEW(p->arena, TypeExpr);
    const Token *name = current(p);
    t->at = name->at;
    if (!is(p, TOKEN_NAME) ||
        !dtype_find(name->text, strlen(name->text), &t->dtype)) {
        expected(p, "a type such as f32[N, 10]");
        return t;
    }
    advance(p);
    p->brackets++;
    expect(p, TOKEN_OPEN_LIST);
    while (next_item(p, TOKEN_CLOSE_LIST, t->rank)) {
        if (t->rank == MAX_RANK)
            expected(p, "at most 8 dimensions");
        else
            t->dim[t->rank++] = expression(p);
    }
    p->brackets--;
    expect(p, TOKEN_CLOSE_LIST);
    t->at = span_join(t->at, last_at(p));
    return t;
}

// parameter = NAME [ ":" type ] [ "=" expression ]
static Param parameter(Parser *p) {
    Param param = {0};
    name(p, &param.name, &param.at);
    if (accept(p, TOKEN_COLON))
        param.type = type(p);
    if (accept(p, TOKEN_ASSIGN))
        param.otherwise = expression(p);
    return param;
}

// parameters = "(" [ parameter { "," parameter } [ "," ] ] ")"
static void parameters(Parser *p, Function *f) {
    expect(p, TOKEN_OPEN);
    p->brackets++;
    while (next_item(p, TOKEN_CLOSE, f->num_params)) {
        Param param = parameter(p);
        ARENA_APPEND(p->arena, f->param, f->num_params, param);
    }
    p->brackets--;
    end_items(p, TOKEN_CLOSE);
}

// body = "=" expression | block
static Block body(Parser *p) {
    if (!accept(p, TOKEN_ASSIGN))
        return block(p);
    Stmt s = {.kind = STMT_VALUE};
    s.value = expression(p);
    s.at = s.value->at;
    Block b = {.at = s.at};
    ARENA_APPEND(p->arena, b.stmt, b.count, s);
    return b;
}

// function = "fn" NAME parameters [ "->" type ] body
// model = "model" NAME parameters [ "->" type ] block
static Function *function(Parser *p, bool is_model) {
    Function *f = ARENA_NEW(p->arena, Function);
    advance(p);
    if (!name(p, &f->name, &f->name_at))
        return f;
    parameters(p, f);
    if (accept(p, TOKEN_ARROW))
        f->result = type(p);
    f->is_model = is_model;
    f->body = is_model ? block(p) : body(p);
    return f;
}

// ---- the train block ----

// Whether a comma and a word come next that end the key, and no other key.
static bool at_flag(const Parser *p) {
    if (!is(p, TOKEN_COMMA) || following(p)->kind != TOKEN_NAME)
        return false;
    const Token *after = &p->token[p->at + 2];
    return after->first || after->kind == TOKEN_COMMA ||
           after->kind == TOKEN_SEMICOLON || after->kind == TOKEN_CLOSE_BLOCK;
}

// The word that an entry begins with.
static Entry entry_named(Parser *p) {
    const Token *word = advance(p);
    return (Entry){.name = word->text, .at = word->at};
}

// key = NAME "=" expression { "," NAME }
static Entry key(Parser *p) {
    Entry e = entry_named(p);
    advance(p);
    e.value = expression(p);
    int num_places = 0;
    while (at_flag(p)) {
        advance(p);
        const Token *t = advance(p);
        ARENA_APPEND(p->arena, e.flag, e.num_flags, t->text);
        ARENA_APPEND(p->arena, e.flag_at, num_places, t->at);
    }
    return e;
}

static void keys(Parser *p, Entry *owner, Entry (*entry)(Parser *));

// setting = NAME "=" expression, in the block of a clause
static Entry setting(Parser *p) {
    if (is(p, TOKEN_NAME) && following(p)->kind == TOKEN_ASSIGN)
        return key(p);
    expected(p, "a key and `=`");
    return (Entry){.at = current(p)->at, .value = p->bad};
}

// eval = "eval" ( "every" expression | "at" "end" ) [ "on" expression ]
//        [ "{" { setting } "}" ]
static Entry eval_clause(Parser *p) {
    Entry e = entry_named(p);
    if (accept_word(p, "every"))
        e.every = expression(p);
    else if (!accept_word(p, "at") || !accept_word(p, "end"))
        expected(p, "`every` or `at end`");
    if (accept_word(p, "on"))
        e.on = expression(p);
    if (is(p, TOKEN_OPEN_BLOCK))
        keys(p, &e, setting);
    return e;
}

// checkpoint = "checkpoint" "every" expression [ "keep" expression ]
static Entry checkpoint_clause(Parser *p) {
    Entry e = entry_named(p);
    if (accept_word(p, "every"))
        e.every = expression(p);
    else
        expected(p, "`every`");
    if (accept_word(p, "keep"))
        e.keep = expression(p);
    return e;
}

// The names of parameters that a clause is about.
static void glob(Parser *p, Entry *e) {
    e->glob = current(p)->text;
    e->glob_at = current(p)->at;
    if (!accept(p, TOKEN_STRING))
        expected(p, "names of parameters in quotes, as \"*.bias\"");
}

// params = "params" STRING "{" { setting } "}"
static Entry params_clause(Parser *p) {
    Entry e = entry_named(p);
    glob(p, &e);
    keys(p, &e, setting);
    return e;
}

// freeze = "freeze" STRING [ "after" expression ]
static Entry freeze_clause(Parser *p) {
    Entry e = entry_named(p);
    glob(p, &e);
    if (accept_word(p, "after"))
        e.after = expression(p);
    return e;
}

// stop = "stop" "when" expression
static Entry stop_clause(Parser *p) {
    Entry e = entry_named(p);
    if (accept_word(p, "when"))
        e.when = expression(p);
    else
        expected(p, "`when`, as in `stop when accuracy >= 94%`");
    return e;
}

// entry = key | eval | checkpoint | params | freeze | stop
static Entry entry(Parser *p) {
    static const struct {
        const char *word;
        Entry (*parse)(Parser *);
    } clause[] = {
        {"eval", eval_clause},     {"checkpoint", checkpoint_clause},
        {"params", params_clause}, {"freeze", freeze_clause},
        {"stop", stop_clause},
    };
    if (is(p, TOKEN_NAME) && following(p)->kind == TOKEN_ASSIGN)
        return key(p);
    for (size_t i = 0; i < sizeof clause / sizeof clause[0]; i++)
        if (is_word(p, clause[i].word))
            return clause[i].parse(p);
    expected(p, "a key such as `batch = 128`, or eval, checkpoint, params, "
                "freeze or stop");
    return (Entry){.at = current(p)->at, .value = p->bad};
}

// A block of entries, which become owner's.
static void keys(Parser *p, Entry *owner, Entry (*parse_entry)(Parser *)) {
    Span open = current(p)->at;
    if (!expect(p, TOKEN_OPEN_BLOCK))
        return;
    while (in_block(p)) {
        Entry e = parse_entry(p);
        ARENA_APPEND(p->arena, owner->key, owner->num_keys, e);
        next_statement(p);
    }
    close_block(p, open);
}

// train = "train" NAME "{" { entry } "}"
static Train train(Parser *p) {
    Train t = {.at = advance(p)->at};
    name(p, &t.model, &t.model_at);
    Entry all = {0};
    keys(p, &all, entry);
    t.entry = all.key;
    t.num_entries = all.num_keys;
    return t;
}

// ---- the file ----

// import = "import" STRING "{" NAME { "," NAME } [ "," ] "}"
static Import import(Parser *p) {
    advance(p);
    Import i = {.path = current(p)->text, .at = current(p)->at};
    expect(p, TOKEN_STRING);
    expect(p, TOKEN_OPEN_BLOCK);
    while (next_item(p, TOKEN_CLOSE_BLOCK, i.num_names)) {
        ImportedName n;
        if (name(p, &n.name, &n.at))
            ARENA_APPEND(p->arena, i.name, i.num_names, n);
    }
    end_items(p, TOKEN_CLOSE_BLOCK);
    return i;
}

// item = import | let | function | model | train
static Item item(Parser *p) {
    Item i = {.kind = ITEM_LET};
    switch (current(p)->kind) {
    case TOKEN_IMPORT:
        i.kind = ITEM_IMPORT;
        i.import = import(p);
        break;
    case TOKEN_LET:
        i.let = assignment(p);
        break;
    case TOKEN_FN:
    case TOKEN_MODEL:
        i.kind = current(p)->kind == TOKEN_FN ? ITEM_FUNCTION : ITEM_MODEL;
        i.function = function(p, i.kind == ITEM_MODEL);
        break;
    case TOKEN_TRAIN:
        i.kind = ITEM_TRAIN;
        i.train = train(p);
        break;
    default:
        expected(p, "`import`, `let`, `fn`, `model` or `train`");
    }
    return i;
}

static Parser parser_new(Arena *a, const Source *s, Diagnostics *d,
                         Atoms *atoms) {
    Parser p = {.arena = a, .diags = d, .misused = TOKEN_END};
    p.token = lex(a, atoms, s, d, &p.count);
    p.bad = new_expr(&p, EXPR_BAD, (Span){s, 0, 0});
    return p;
}

// What is set of an argument: a key, a point, and then as for a key.
static Entry argument_setting(Parser *p) {
    Entry e = entry_named(p);
    advance(p);
    bool good = name(p, &e.argument, &e.argument_at) && expect(p, TOKEN_ASSIGN);
    e.value = good ? expression(p) : p->bad;
    return e;
}

Entry parse_setting(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d) {
    Parser p = parser_new(a, s, d, atoms);
    bool dotted = is(&p, TOKEN_NAME) && following(&p)->kind == TOKEN_DOT;
    Entry e = dotted ? argument_setting(&p) : setting(&p);
    if (!is(&p, TOKEN_END))
        expected(&p, "the end of the setting");
    return e;
}

// Skips to the next item: a line that begins with a word for one, at its
// margin where that word may begin a statement too.
static void recover_item(Parser *p) {
    p->panic = false;
    p->brackets = 0;
    for (; !is(p, TOKEN_END); advance(p)) {
        const Token *t = current(p);
        bool margin =
            t->at.start == 0 || t->at.source->text[t->at.start - 1] == '\n';
        if (at_item(p) ||
            (margin && (t->kind == TOKEN_LET || t->kind == TOKEN_FN)))
            return;
    }
}

// file = { item }
File *parse(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d) {
    Parser p = parser_new(a, s, d, atoms);
    File *f = ARENA_NEW(a, File);
    while (!is(&p, TOKEN_END) && !d->more) {
        Item i = item(&p);
        ARENA_APPEND(p.arena, f->item, f->count, i);
        end_statement(&p);
        if (p.panic)
            recover_item(&p);
    }
    return f;
}
