// Parsing: recursive descent.  Each function is named for the grammar rule in
// the comment above it, in this file and in parse_*.c:
// `grep -h '^// .* = ' parse*.c` prints the grammar.
//
// A line's end ends a statement, except inside brackets and before a line that
// begins with an operator; `-`, `(` and `[` may begin an expression, and so
// begin a new statement.
//
// After an error the parser is in panic mode: it consumes nothing and reports
// nothing until the statement's caller has skipped to the next statement.

#include "frontend/text/parse.h"

// import = "import" STRING "{" NAME { "," NAME } [ "," ] "}"
static Import import(Parser *p) {
    token_consume(p);
    Import i = {.path = token_current(p)->text, .at = token_current(p)->at};
    token_expect(p, TOKEN_STRING);
    token_expect(p, TOKEN_OPEN_BLOCK);
    while (items_next(p, TOKEN_CLOSE_BLOCK, i.num_names)) {
        Name n;
        if (name_parse(p, &n.name, &n.at))
            ARENA_APPEND(p->arena, i.name, i.num_names, n);
    }
    items_end(p, TOKEN_CLOSE_BLOCK);
    return i;
}

// item = import | let | function | model | train
static Item item(Parser *p) {
    Item i = {.kind = ITEM_LET};
    switch (token_current(p)->kind) {
    case TOKEN_IMPORT:
        i.kind = ITEM_IMPORT;
        i.import = import(p);
        break;
    case TOKEN_LET:
        i.let = assignment_parse(p);
        break;
    case TOKEN_FN:
    case TOKEN_MODEL:
        i.kind =
            token_current(p)->kind == TOKEN_FN ? ITEM_FUNCTION : ITEM_MODEL;
        i.function = function_parse(p, i.kind == ITEM_MODEL);
        break;
    case TOKEN_TRAIN:
        i.kind = ITEM_TRAIN;
        i.train = train_parse(p);
        break;
    default:
        token_expected(p, "`import`, `let`, `fn`, `model` or `train`");
    }
    return i;
}

static Parser parser_new(Arena *a, const Source *s, Diagnostics *d,
                         Atoms *atoms) {
    Parser p = {.arena = a, .diags = d, .misused = TOKEN_END};
    p.token = lex(a, atoms, s, d, &p.count);
    p.bad = expr_new(&p, EXPR_BAD, (Span){s, 0, 0});
    return p;
}

Entry parse_setting(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d) {
    Parser p = parser_new(a, s, d, atoms);
    Entry e = setting_parse(&p);
    if (!token_is(&p, TOKEN_END))
        token_expected(&p, "the end of the setting");
    return e;
}

// Skips to the next item: a line that begins with an item's keyword, at its
// margin if that keyword may begin a statement too.
static void recover_item(Parser *p) {
    p->panic = false;
    p->brackets = p->branches = 0;
    for (; !token_is(p, TOKEN_END); token_consume(p)) {
        const Token *t = token_current(p);
        bool margin =
            t->at.start == 0 || t->at.source->text[t->at.start - 1] == '\n';
        if (item_begins(p) ||
            (margin && (t->kind == TOKEN_LET || t->kind == TOKEN_FN)))
            return;
    }
}

// file = { item }
File *parse(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d) {
    Parser p = parser_new(a, s, d, atoms);
    File *f = ARENA_NEW(a, File);
    while (!token_is(&p, TOKEN_END) && !d->truncated) {
        Item i = item(&p);
        ARENA_APPEND(p.arena, f->item, f->count, i);
        statement_end(&p);
        if (p.panic)
            recover_item(&p);
    }
    return f;
}
