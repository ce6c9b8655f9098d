// Expressions, from knots of a schedule down to names and up to chains.

#include "frontend/text/parse.h"

#include <string.h>

Expr *expr_new(Parser *p, ExprKind kind, Span at) {
    Expr *e = ARENA_NEW(p->arena, Expr);
    e->kind = kind;
    e->at = at;
    e->depth = 1;
    return e;
}

// Updates the depth of e with that of a child.
static void update_depth(Parser *p, Expr *e, const Expr *child) {
    if (child->depth >= e->depth)
        e->depth = child->depth + 1;
    if (e->depth <= MAX_DEPTH || p->panic)
        return;
    p->panic = true;
    report(p->diags, D_nesting, e->at,
           "this expression is more than %d operations deep", MAX_DEPTH);
}

// knot = expression [ ":" expression ]
static Expr *knot(Parser *p) {
    Expr *left = expression_parse(p);
    if (!token_accept(p, TOKEN_COLON))
        return left;
    Expr *right = expression_parse(p);
    Expr *e = expr_new(p, EXPR_KNOT, span_join(left->at, right->at));
    e->left = left;
    e->right = right;
    update_depth(p, e, left);
    update_depth(p, e, right);
    return e;
}

static void add_item(Parser *p, Expr *e, Expr *item) {
    ARENA_APPEND(p->arena, e->item, e->count, item);
    update_depth(p, e, item);
}

// targets = NAME { "," NAME }
Targets targets_parse(Parser *p) {
    Targets to = {0};
    do {
        Name n;
        name_parse(p, &n.name, &n.at);
        ARENA_APPEND(p->arena, to.name, to.count, n);
    } while (token_accept(p, TOKEN_COMMA));
    return to;
}

// each = "for" targets "in" expression [ "if" expression ]
static Expr *each(Parser *p, Span open, Expr *value) {
    Expr *e = expr_new(p, EXPR_EACH, open);
    token_consume(p);
    e->to = targets_parse(p);
    token_expect(p, TOKEN_IN);
    e->left = value;
    e->right = expression_parse(p);
    if (token_accept(p, TOKEN_IF))
        add_item(p, e, expression_parse(p));
    update_depth(p, e, e->left);
    update_depth(p, e, e->right);
    return e;
}

// list = "[" [ knot ( each | { "," knot } [ "," ] ) ] "]"
static Expr *list(Parser *p) {
    Expr *e = expr_new(p, EXPR_LIST, token_consume(p)->at);
    p->brackets++;
    while (items_next(p, TOKEN_CLOSE_LIST, e->count))
        add_item(p, e, knot(p));
    if (e->count == 1 && token_is(p, TOKEN_FOR))
        e = each(p, e->at, e->item[0]);
    p->brackets--;
    items_end(p, TOKEN_CLOSE_LIST);
    e->at = span_join(e->at, token_previous_at(p));
    return e;
}

static Expr *parenthesised(Parser *p) {
    token_consume(p);
    p->brackets++;
    Expr *e = expression_parse(p);
    p->brackets--;
    token_expect(p, TOKEN_CLOSE);
    return e;
}

// After an error, branches that are open stay counted: see recover.
// branch = "{" expression "}"
static Expr *branch(Parser *p) {
    int brackets = p->brackets;
    if (!token_expect(p, TOKEN_OPEN_BLOCK))
        return p->bad;
    p->brackets = 0;
    p->branches++;
    Expr *e = expression_parse(p);
    p->brackets = brackets;
    if (token_accept(p, TOKEN_CLOSE_BLOCK)) {
        p->branches--;
        return e;
    }
    Diagnostic *d = token_expected(p, "`}`");
    if (d != NULL)
        diag_note(d, "a branch of a value is one expression; in a function, an "
                     "`if` with statements is one itself: if c { x = a } else "
                     "{ x = b }");
    return e;
}

static Expr *choice(Parser *p);

static Expr *nested_choice(Parser *p) {
    Expr *e = nesting_enter(p) ? choice(p) : p->bad;
    nesting_leave(p);
    return e;
}

// choice = "if" expression branch "else" ( choice | branch )
static Expr *choice(Parser *p) {
    Expr *e = expr_new(p, EXPR_IF, token_consume(p)->at);
    add_item(p, e, expression_parse(p));
    add_item(p, e, branch(p));
    if (!token_accept(p, TOKEN_ELSE)) {
        Diagnostic *d = token_expected(p, "`else`");
        if (d != NULL)
            diag_note(d, "a value needs both branches: if c { a } else { b }");
        return e;
    }
    add_item(p, e, token_is(p, TOKEN_IF) ? nested_choice(p) : branch(p));
    e->at = span_join(e->at, token_previous_at(p));
    return e;
}

static Expr *leaf(Parser *p, ExprKind kind) {
    const Token *t = token_consume(p);
    Expr *e = expr_new(p, kind, t->at);
    e->text = t->text;
    e->number = t->number;
    e->boolean = t->kind == TOKEN_TRUE;
    return e;
}

// primary = NUMBER | STRING | NAME | "true" | "false" | list | choice
//         | "(" expression ")"
static Expr *primary(Parser *p) {
    switch (p->panic ? TOKEN_END : token_current(p)->kind) {
    case TOKEN_NUMBER:
        return leaf(p, EXPR_NUMBER);
    case TOKEN_STRING:
        return leaf(p, EXPR_STRING);
    case TOKEN_NAME:
        return leaf(p, EXPR_NAME);
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        return leaf(p, EXPR_BOOL);
    case TOKEN_OPEN_LIST:
        return list(p);
    case TOKEN_IF:
        return choice(p);
    case TOKEN_OPEN:
        return parenthesised(p);
    default:
        token_expected(p, "a value");
        return p->bad;
    }
}

// argument = [ NAME "=" ] knot
static Argument argument(Parser *p) {
    Argument a = {0};
    if (token_is(p, TOKEN_NAME) && token_peek(p)->kind == TOKEN_ASSIGN) {
        a.name = token_current(p)->text;
        a.name_at = token_consume(p)->at;
        token_consume(p);
    }
    a.value = knot(p);
    return a;
}

// call = postfix "(" [ argument { "," argument } [ "," ] ] ")"
static Expr *call(Parser *p, Expr *callee) {
    Expr *e = expr_new(p, EXPR_CALL, callee->at);
    e->left = callee;
    update_depth(p, e, callee);
    token_consume(p);
    p->brackets++;
    while (items_next(p, TOKEN_CLOSE, e->count)) {
        Argument a = argument(p);
        ARENA_APPEND(p->arena, e->argument, e->count, a);
        update_depth(p, e, a.value);
    }
    p->brackets--;
    items_end(p, TOKEN_CLOSE);
    e->at = span_join(e->at, token_previous_at(p));
    return e;
}

// member = postfix "." NAME
static Expr *member(Parser *p, Expr *base) {
    token_consume(p);
    Expr *e = expr_new(p, EXPR_MEMBER, base->at);
    e->left = base;
    e->text = token_current(p)->text;
    if (!token_accept(p, TOKEN_TRAIN)) // data.train
        token_expect(p, TOKEN_NAME);
    e->at = span_join(e->at, token_previous_at(p));
    update_depth(p, e, base);
    return e;
}

// index = postfix "[" expression "]"
static Expr *index_of(Parser *p, Expr *list) {
    Expr *e = expr_new(p, EXPR_INDEX, list->at);
    token_consume(p);
    p->brackets++;
    e->left = list;
    e->right = expression_parse(p);
    p->brackets--;
    if (!token_accept(p, TOKEN_CLOSE_LIST)) {
        Diagnostic *d = token_expected(p, "`]`");
        if (d != NULL)
            diag_note(d, list->kind == EXPR_LIST
                             ? "a comma is missing between two lists"
                             : "`slice` takes a part of a tensor");
    }
    e->at = span_join(e->at, token_previous_at(p));
    update_depth(p, e, list);
    update_depth(p, e, e->right);
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
    Expr *e = expr_new(p, EXPR_UNIT, value->at);
    e->left = value;
    e->unit = unit_of(token_consume(p));
    e->at = span_join(e->at, token_previous_at(p));
    update_depth(p, e, value);
    return e;
}

// postfix = primary | call | member | index | unit
static Expr *postfix(Parser *p) {
    Expr *e = primary(p);
    while (!p->panic && token_on_line(p)) {
        if (token_is(p, TOKEN_OPEN))
            e = call(p, e);
        else if (token_is(p, TOKEN_DOT))
            e = member(p, e);
        else if (token_is(p, TOKEN_OPEN_LIST))
            e = index_of(p, e);
        else if (unit_of(token_current(p)) != UNIT_NONE &&
                 token_peek(p)->kind != TOKEN_ASSIGN) // a key `epochs`
            e = unit(p, e);
        else
            break;
    }
    return e;
}

// From lowest to highest precedence.
enum { OR_LEVEL, AND_LEVEL, COMPARE_LEVEL, SUM_LEVEL, PRODUCT_LEVEL, TIGHTEST };

// The precedence of a binary operator; -1 for other tokens.
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

bool operator_is_binary(TokenKind k) {
    return level_of(k) >= 0;
}

static Expr *unary(Parser *p);

static Expr *operation(Parser *p, ExprKind kind, const Token *op, Expr *left,
                       Expr *right) {
    Span start = left ? left->at : op->at;
    Expr *e = expr_new(p, kind, span_join(start, right->at));
    e->op = op->kind;
    e->op_at = op->at;
    e->left = left;
    e->right = right;
    if (left)
        update_depth(p, e, left);
    update_depth(p, e, right);
    return e;
}

// binary = unary { OPERATOR binary }, operators of one level from the left
static Expr *binary(Parser *p, int level) {
    if (level == TIGHTEST)
        return unary(p);
    Expr *e = binary(p, level + 1);
    while (!p->panic && level_of(token_current(p)->kind) == level) {
        if (token_is(p, TOKEN_MINUS) && !token_on_line(p))
            break;
        const Token *op = token_consume(p);
        Expr *right = binary(p, level + 1);
        e = operation(p, EXPR_BINARY, op, e, right);
    }
    return e;
}

// power = postfix [ "^" unary ]
static Expr *power(Parser *p) {
    Expr *e = postfix(p);
    if (!token_is(p, TOKEN_POWER))
        return e;
    const Token *op = token_consume(p);
    Expr *right = unary(p);
    return operation(p, EXPR_BINARY, op, e, right);
}

// unary = "-" unary | "not" binary | power
static Expr *unary(Parser *p) {
    if (!nesting_enter(p)) {
        nesting_leave(p);
        return p->bad;
    }
    Expr *e;
    if (token_is(p, TOKEN_MINUS) || token_is(p, TOKEN_NOT)) {
        const Token *op = token_consume(p);
        Expr *right =
            op->kind == TOKEN_NOT ? binary(p, COMPARE_LEVEL) : unary(p);
        e = operation(p, EXPR_UNARY, op, NULL, right);
    } else {
        e = power(p);
    }
    nesting_leave(p);
    return e;
}

// stage = "|>" postfix [ "as" NAME ]
static Link stage(Parser *p) {
    token_consume(p);
    Link s = {.call = postfix(p)};
    if (token_accept(p, TOKEN_AS))
        name_parse(p, &s.name, &s.name_at);
    return s;
}

// expression = binary { stage }
Expr *expression_parse(Parser *p) {
    Expr *head = binary(p, OR_LEVEL);
    if (!token_is(p, TOKEN_PIPE))
        return head;
    Expr *e = expr_new(p, EXPR_PIPE, head->at);
    e->left = head;
    update_depth(p, e, head);
    while (token_is(p, TOKEN_PIPE)) {
        Link s = stage(p);
        ARENA_APPEND(p->arena, e->stage, e->count, s);
        update_depth(p, e, s.call);
    }
    e->at = span_join(e->at, token_previous_at(p));
    return e;
}
