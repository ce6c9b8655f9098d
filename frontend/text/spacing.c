// Spacing: the spaces between the tokens of a formatted line.
//
// Binary operators stand between spaces, with three exceptions: `^` never does,
// a fraction of two numerals does not (`5/24`), and neither do short products
// in the value of a named argument (`lr=lr/batch`) and in types (`f32[N,
// S/2]`).

#include "frontend/text/format.h"

#include <string.h>

bool ends_operand(const Token *t, int i) {
    switch (t[i].kind) {
    case TOKEN_NAME:
    case TOKEN_NUMBER:
    case TOKEN_STRING:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_CLOSE:
    case TOKEN_CLOSE_LIST:
    case TOKEN_CLOSE_BLOCK:
    case TOKEN_PERCENT:
        return true;
    default: // data.train
        return i > 0 && t[i - 1].kind == TOKEN_DOT;
    }
}

typedef struct {
    TokenKind open; // TOKEN_END: outside of brackets
    bool type;      // the dimensions of a type
    bool named;     // inside the value of a named argument
} Bracket;

static bool in_brackets(Bracket b) {
    return b.open == TOKEN_OPEN || b.open == TOKEN_OPEN_LIST;
}

// A contextual keyword before an expression in brackets: `every (2 * n) epoch`.
static bool is_clause_word(const Token *t, int i) {
    static const char *const word[] = {"every", "on",   "keep",
                                       "after", "when", "best",
                                       "of"};
    if (t[i].kind != TOKEN_NAME || i == 0 || t[i].first ||
        !ends_operand(t, i - 1))
        return false;
    for (size_t k = 0; k < sizeof word / sizeof word[0]; k++)
        if (strcmp(t[i].text, word[k]) == 0)
            return true;
    return false;
}

// Only a type's name precedes a list.
static bool opens_type(const Token *t, int i) {
    return t[i].kind == TOKEN_OPEN_LIST && i > 0 &&
           t[i - 1].kind == TOKEN_NAME && !is_clause_word(t, i - 1);
}

static bool is_product(TokenKind k) {
    return k == TOKEN_TIMES || k == TOKEN_DIVIDE;
}

static bool is_plain(TokenKind k) {
    return k == TOKEN_NAME || k == TOKEN_NUMBER;
}

// Whether both operands of t[i] are a single name or number.
static bool joins_plain(const Token *t, int i) {
    TokenKind before = i > 1 ? t[i - 2].kind : TOKEN_END;
    TokenKind after = t[i + 1].kind == TOKEN_END ? TOKEN_END : t[i + 2].kind;
    bool unit = after == TOKEN_NAME && !t[i + 2].first;
    return is_plain(t[i - 1].kind) && is_plain(t[i + 1].kind) &&
           before != TOKEN_POWER && before != TOKEN_DOT && !unit &&
           after != TOKEN_POWER && after != TOKEN_DOT && after != TOKEN_OPEN &&
           after != TOKEN_PERCENT;
}

// Whether the product at t[i] has no spaces: a fraction of numerals that begins
// a product, and a short one in named arguments and in types.
static bool is_short(const Token *t, int i, bool dense) {
    if (i == 0 || !joins_plain(t, i))
        return false;
    bool numerals =
        t[i - 1].kind == TOKEN_NUMBER && t[i + 1].kind == TOKEN_NUMBER;
    bool begins =
        i < 2 || (!is_product(t[i - 2].kind) && t[i - 2].kind != TOKEN_PRODUCT);
    bool alone =
        begins && !is_product(t[i + 2].kind) && t[i + 2].kind != TOKEN_PRODUCT;
    return (numerals && begins && t[i].kind == TOKEN_DIVIDE) ||
           (dense && (alone || numerals));
}

static bool is_unary(const Token *t, int i, Bracket b) {
    return t[i].kind == TOKEN_MINUS && (i == 0 || !ends_operand(t, i - 1) ||
                                        (t[i].first && !in_brackets(b)));
}

// Whether the operator t[i] has no spaces.
static bool is_tight(const Token *t, int i, Bracket b) {
    if (t[i].kind == TOKEN_POWER)
        return true;
    if (t[i].kind == TOKEN_ASSIGN)
        return b.open == TOKEN_OPEN;
    return is_product(t[i].kind) && is_short(t, i, b.type || b.named);
}

static bool needs_space(const Token *t, int i, Bracket b) {
    TokenKind before = t[i - 1].kind, k = t[i].kind;
    switch (k) {
    case TOKEN_COMMA:
    case TOKEN_SEMICOLON:
    case TOKEN_COLON:
    case TOKEN_CLOSE:
    case TOKEN_CLOSE_LIST:
    case TOKEN_DOT:
    case TOKEN_PERCENT:
        return false;
    case TOKEN_CLOSE_BLOCK:
        return before != TOKEN_OPEN_BLOCK;
    case TOKEN_OPEN:
        if (ends_operand(t, i - 1))
            return is_clause_word(t, i - 1);
        break;
    case TOKEN_OPEN_LIST:
        if (before == TOKEN_NAME)
            return is_clause_word(t, i - 1);
        if (before == TOKEN_CLOSE || before == TOKEN_CLOSE_LIST ||
            before == TOKEN_CLOSE_BLOCK)
            return false;
        break;
    default:
        break;
    }
    return before != TOKEN_OPEN && before != TOKEN_OPEN_LIST &&
           before != TOKEN_DOT && !is_tight(t, i, b);
}

bool *spaces_find(Arena *a, const Token *t, int count) {
    bool *space = ARENA_ARRAY(a, (size_t)count, bool);
    Bracket *stack = ARENA_ARRAY(a, (size_t)count + 1, Bracket);
    Bracket *top = stack;
    top->open = TOKEN_END;
    bool glued = false; // to the operator before it
    for (int i = 0; i < count; i++) {
        TokenKind k = t[i].kind;
        if (k == TOKEN_CLOSE || k == TOKEN_CLOSE_LIST || k == TOKEN_CLOSE_BLOCK)
            top -= top > stack;
        space[i] = i > 0 && !glued && needs_space(t, i, *top);
        glued = is_tight(t, i, *top) || is_unary(t, i, *top);
        if (k == TOKEN_OPEN || k == TOKEN_OPEN_LIST || k == TOKEN_OPEN_BLOCK)
            *++top = (Bracket){k, opens_type(t, i), false};
        else if (k == TOKEN_COMMA)
            top->named = false;
        else if (k == TOKEN_ASSIGN && top->open == TOKEN_OPEN)
            top->named = true;
    }
    return space;
}
