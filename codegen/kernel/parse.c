// Parse: the text of kernel IR to a tree.
//
// The text is a subset of C with the additions that docs/ir.md lists, such as
// size(512), a number that differs between kernels, and v@12, a name of node
// %12.  Emitters write statements as such text, too: $ stands for an expression
// that they have computed, and ~ for a block.

#include "codegen/kernel/tree.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *a;
    const char *s; // rest of the text
    NodeId node;   // of names that end in @, and of statements
    va_list *hole;
    const Expr *const *operand;
    Stmt *last; // statement read last
    const char *why;
    jmp_buf *failed;
} Parser;

_Noreturn static void fail(Parser *p, const char *why) {
    p->why = arena_format(p->a, "%s at \"%.40s\"", why, p->s);
    longjmp(*p->failed, 1);
}

// ---- tokens ----

static bool is_letter(char c) {
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_digit(char c) {
    return isdigit((unsigned char)c);
}

// A comment "// %12" gives the node of the preceding statement.
static void skip_space(Parser *p) {
    while (true) {
        while (*p->s <= ' ' && isspace((unsigned char)*p->s))
            p->s++;
        if (p->s[0] != '/' || p->s[1] != '/')
            return;
        if (strncmp(p->s, "// %", 4) == 0 && p->last != NULL)
            p->last->node = (NodeId)strtoul(p->s + 4, NULL, 10);
        p->s += strcspn(p->s, "\n");
    }
}

// Accepts a token of punctuation or a whole word.
static bool take(Parser *p, const char *token) {
    skip_space(p);
    if (*p->s != *token)
        return false;
    size_t length = strlen(token);
    if (strncmp(p->s, token, length) != 0)
        return false;
    if (is_letter(*token) &&
        (is_letter(p->s[length]) || is_digit(p->s[length])))
        return false;
    p->s += length;
    return true;
}

// Accepts words with spaces between, such as "unsigned char".
static bool take_words(Parser *p, const char *words) {
    const char *before = p->s;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (!take(p, arena_string(p->a, words, length))) {
            p->s = before;
            return false;
        }
        words += length + (words[length] == ' ');
    }
    return true;
}

static void need(Parser *p, const char *token) {
    if (!take(p, token))
        fail(p, arena_format(p->a, "%s is missing", token));
}

static const char *word(Parser *p) {
    skip_space(p);
    const char *start = p->s;
    if (!is_letter(*start))
        fail(p, "a name is missing");
    while (is_letter(*p->s) || is_digit(*p->s))
        p->s++;
    return arena_string(p->a, start, (size_t)(p->s - start));
}

// ---- types ----

static const char *const scalar_types[] = {
    "int",           "float", "size_t",    "act",
    "unsigned char", "char",  "long long", "OWN_entry"};

// A type without its pointers and qualifiers, or NULL.
static const char *scalar_type(Parser *p) {
    enum { COUNT = sizeof scalar_types / sizeof *scalar_types };
    for (int i = 0; i + 1 < COUNT; i++)
        if (take_words(p, scalar_types[i]))
            return scalar_types[i];
    skip_space(p);
    const char *own = scalar_types[COUNT - 1];
    size_t length = strlen(own);
    if (strncmp(p->s, own, length) != 0 ||
        !(p->s[length] == '_' || p->s[length] == ' '))
        return NULL;
    return word(p);
}

// A qualified type, such as "const act *RESTRICT".
static const char *type_read(Parser *p) {
    const char *before = p->s;
    bool constant = take(p, "const");
    const char *type = scalar_type(p);
    if (type == NULL) {
        p->s = before;
        return NULL;
    }
    if (constant)
        type = arena_format(p->a, "const %s", type);
    while (take(p, "*"))
        type = arena_format(p->a, "%s *", type);
    return take(p, "const") ? arena_format(p->a, "%sconst", type) : type;
}

// ---- expressions ----

static const Expr *expression(Parser *p);

static Expr *node_of(Parser *p, ExprKind kind, const char *name, int count) {
    Expr *x = x_list(p->a, count);
    x->kind = kind;
    x->name = name;
    x->count = count;
    return x;
}

static const Expr *hole(Parser *p) {
    if (is_digit(*p->s) && p->operand != NULL)
        return p->operand[*p->s++ - '0'];
    if (p->hole == NULL)
        fail(p, "no hole is filled");
    return va_arg(*p->hole, const Expr *);
}

static const Expr *number(Parser *p) {
    char *end;
    const char *start = p->s;
    double real = strtod(start, &end);
    bool is_real = memchr(start, '.', (size_t)(end - start)) != NULL ||
                   memchr(start, 'e', (size_t)(end - start)) != NULL;
    Expr *x = node_of(p, is_real ? X_REAL : X_NUMBER, NULL, 0);
    x->real = is_real ? real : 0;
    x->integer = is_real ? 0 : strtoll(start, &end, 10);
    p->s = end + (is_real && *end == 'f');
    return x;
}

// The node suffix of a name: v@, v@12, v@12_1.
static void name_node(Parser *p, Expr *x) {
    char *end;
    if (*p->s != '@')
        return;
    p->s++;
    x->node = p->node;
    if (!is_digit(*p->s))
        return;
    x->node = (NodeId)strtoul(p->s, &end, 10);
    p->s = end;
    if (*end == '_' && is_digit(end[1])) {
        x->again = (int)strtol(end + 1, &end, 10);
        p->s = end;
    }
}

// A number with a kind, such as size(512).
static const Expr *marked(Parser *p, const char *name) {
    for (int i = 0; i < X_NAME; i++) {
        if (number_kind[i] == NULL || strcmp(name, number_kind[i]) != 0 ||
            !take(p, "("))
            continue;
        bool minus = take(p, "-");
        skip_space(p);
        Expr x = *(is_digit(*p->s) ? number(p) : expression(p)), *own;
        own = node_of(p, (ExprKind)i, NULL, 0);
        own->integer = minus ? -x.integer : x.integer;
        own->real = minus ? -x.real : x.real;
        need(p, ")");
        return own;
    }
    return NULL;
}

static const Expr *list(Parser *p, Expr *x, const char *end) {
    const Expr **arg = NULL;
    int count = 0;
    while (!take(p, end)) {
        if (count > 0)
            need(p, ",");
        ARENA_APPEND(p->a, arg, count, expression(p));
    }
    x->arg = arg;
    x->count = count;
    return x;
}

static const Expr *primary(Parser *p) {
    skip_space(p);
    if (take(p, "$"))
        return hole(p);
    if (is_digit(*p->s))
        return number(p);
    if (take(p, "{"))
        return list(p, node_of(p, X_LIST, NULL, 0), "}");
    if (take(p, "(")) {
        const Expr *x = expression(p);
        need(p, ")");
        return x;
    }
    const char *name = word(p);
    const Expr *x = marked(p, name);
    if (x != NULL)
        return x;
    if (take(p, "("))
        return list(p, node_of(p, X_CALL, name, 0), ")");
    Expr *own = node_of(p, X_NAME, name, 0);
    name_node(p, own);
    return own;
}

static const Expr *postfix(Parser *p) {
    const Expr *x = primary(p);
    while (true) {
        if (take(p, "[")) {
            x = x_element(p->a, x, expression(p));
            need(p, "]");
        } else if (take(p, ".")) {
            Expr *field = node_of(p, X_FIELD, word(p), 1);
            field->arg[0] = x;
            x = field;
        } else {
            return x;
        }
    }
}

// A type in parentheses, or NULL.
static const char *cast_type(Parser *p) {
    const char *before = p->s, *type = NULL;
    if (take(p, "("))
        type = type_read(p);
    if (type == NULL || !take(p, ")")) {
        p->s = before;
        return NULL;
    }
    return type;
}

static const Expr *unary(Parser *p) {
    static const char *const sign[] = {"-", "!", "&"};
    const char *type = cast_type(p);
    if (type != NULL) {
        Expr *x = node_of(p, X_CAST, type, 1);
        x->arg[0] = unary(p);
        return x;
    }
    for (int i = 0; i < 3; i++) {
        if (!take(p, sign[i]))
            continue;
        skip_space(p);
        bool literal = i == 0 && is_digit(*p->s);
        const Expr *of = unary(p);
        if (literal && (of->kind == X_NUMBER || of->kind == X_REAL)) {
            Expr *negative = node_of(p, of->kind, NULL, 0);
            negative->integer = -of->integer;
            negative->real = -of->real;
            return negative;
        }
        Expr *x = node_of(p, X_OP, sign[i], 1);
        x->arg[0] = of;
        return x;
    }
    return postfix(p);
}

int operator_precedence(const char *op) {
    static const char *const level[] = {"||", "&&", "|", "^", "&"};
    for (int i = 0; i < 5; i++)
        if (strcmp(op, level[i]) == 0)
            return i + 2;
    return strcmp(op, "?") == 0                             ? 1
           : strcmp(op, "==") == 0 || strcmp(op, "!=") == 0 ? 7
           : *op == '<' || *op == '>'                       ? 8
           : *op == '+' || *op == '-'                       ? 9
                                                            : 10;
}

// An operator of at least this level, or NULL.
static const char *operator_take(Parser *p, int least) {
    static const char *const op[] = {
        "||", "&&", "==", "!=", "<=", ">=", "<", ">",
        "|",  "^",  "&",  "+",  "-",  "*",  "/", "%"};
    const char *before = p->s;
    for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
        if (!take(p, op[i]))
            continue;
        if (operator_precedence(op[i]) >= least && *p->s != '=')
            return op[i];
        p->s = before;
        return NULL;
    }
    return NULL;
}

static const Expr *binary(Parser *p, int least) {
    const Expr *x = unary(p);
    const char *op;
    while ((op = operator_take(p, least)) != NULL) {
        Expr *both = node_of(p, X_OP, op, 2);
        both->arg[0] = x;
        both->arg[1] = binary(p, operator_precedence(op) + 1);
        x = both;
    }
    return x;
}

static const Expr *expression(Parser *p) {
    const Expr *x = binary(p, 2);
    if (!take(p, "?"))
        return x;
    Expr *choice = node_of(p, X_OP, "?", 3);
    choice->arg[0] = x;
    choice->arg[1] = expression(p);
    need(p, ":");
    choice->arg[2] = expression(p);
    return choice;
}

// ---- statements ----

static void statement(Parser *p, Stmts *b);

static Stmt *stmt_new(Parser *p, Stmts *b, StmtKind kind) {
    Stmt *s = ARENA_NEW(p->a, Stmt);
    *s = (Stmt){.kind = kind, .node = p->node};
    stmts_add(b, s);
    p->last = s;
    return s;
}

// The body of another statement, with or without braces.
static void inner(Parser *p, Stmts *b) {
    if (!take(p, "{")) {
        statement(p, b);
        return;
    }
    while (!take(p, "}"))
        statement(p, b);
}

static void enumeration(Parser *p, Stmts *b) {
    Stmt *s = stmt_new(p, b, S_ENUM);
    need(p, "{");
    do {
        if (s->num_enumerators == MAX_ENUMERATORS)
            fail(p, "too many constants");
        Enumerator *c = &s->enumerator[s->num_enumerators++];
        c->spec = take(p, "spec");
        c->name = word(p);
        need(p, "=");
        c->value = expression(p);
    } while (take(p, ","));
    need(p, "}");
    need(p, ";");
}

static void loop(Parser *p, Stmts *b, const char *before) {
    Stmt *s = stmt_new(p, b, S_FOR);
    s->word = before;
    need(p, "(");
    s->type = type_read(p);
    s->name = postfix(p);
    need(p, "=");
    s->value = expression(p);
    need(p, ";");
    s->test = expression(p);
    need(p, ";");
    postfix(p);
    if (take(p, "++")) {
        s->step = x_number(p->a, 1);
    } else {
        need(p, "+=");
        s->step = expression(p);
    }
    need(p, ")");
    inner(p, &s->body);
}

static void dimensions(Parser *p, Stmt *s) {
    for (int i = 0; i < MAX_DIMS && take(p, "["); i++) {
        s->dim[i] = expression(p);
        need(p, "]");
    }
}

// typedef struct { int kind, elements, first; size_t offset[4]; } OWN_entry;
static void structure(Parser *p, Stmts *b) {
    Stmt *s = stmt_new(p, b, S_STRUCT);
    static const char *const head[] = {"struct",   "{", "int",   "kind", ",",
                                       "elements", ",", "first", ";"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        need(p, head[i]);
    while (!take(p, "}")) {
        const char *type = type_read(p);
        if (type == NULL || s->num_enumerators == MAX_ENUMERATORS)
            fail(p, "no field of a table");
        Enumerator *c = &s->enumerator[s->num_enumerators++];
        c->name = arena_format(p->a, "%s %s", type, word(p));
        need(p, "[");
        c->value = number(p);
        need(p, "]");
        need(p, ";");
    }
    s->name = x_name(p->a, word(p));
    need(p, ";");
}

// LARGE_TABLE int OWN_first[2] = {0, 1};
static void table(Parser *p, Stmts *b, const char *before) {
    Stmt *s = stmt_new(p, b, S_TABLE);
    s->word = before;
    s->type = type_read(p);
    s->name = primary(p);
    need(p, "[");
    number(p);
    need(p, "]");
    s->aligned = take(p, "__attribute__((aligned(16)))");
    need(p, "=");
    need(p, "{");
    const Expr *rows = list(p, node_of(p, X_LIST, NULL, 0), "}");
    for (int i = 0; i < rows->count; i++)
        ARENA_APPEND(p->a, s->row, s->num_rows, ((TableRow){rows->arg[i], ""}));
    need(p, ";");
}

static void declaration(Parser *p, Stmts *b, const char *before,
                        const char *type) {
    do {
        Stmt *s = stmt_new(p, b, S_DECLARE);
        s->word = before;
        s->type = type;
        s->name = take(p, "$") ? hole(p) : NULL;
        if (s->name == NULL) {
            Expr *name = node_of(p, X_NAME, word(p), 0);
            name_node(p, name);
            s->name = name;
        }
        dimensions(p, s);
        if (take(p, "="))
            s->value = expression(p);
    } while (take(p, ","));
    need(p, ";");
}

// if (value) body else other, or switch (value) body
static void choice(Parser *p, Stmts *b, StmtKind kind) {
    Stmt *s = stmt_new(p, b, kind);
    need(p, "(");
    s->value = expression(p);
    need(p, ")");
    inner(p, &s->body);
    if (kind == S_IF && take(p, "else"))
        inner(p, &s->other);
}

static void one_case(Parser *p, Stmts *b) {
    Stmt *s = stmt_new(p, b, S_CASE);
    s->value = expression(p);
    need(p, ":");
    inner(p, &s->body);
}

static void other_statement(Parser *p, Stmts *b) {
    Stmt *s = stmt_new(p, b, S_CALL);
    const Expr *x = binary(p, 2);
    if (is_call(x, LOOP)) {
        s->kind = S_REPEAT;
        s->value = x;
        inner(p, &s->body);
        return;
    }
    s->value = x;
    skip_space(p);
    bool adds = take(p, "+=");
    if (adds || take(p, "=")) {
        s->kind = S_SET;
        s->word = adds ? "+=" : "=";
        s->name = x;
        s->value = expression(p);
    }
    need(p, ";");
}

static void statement(Parser *p, Stmts *b) {
    static const char *const before[] = {"SHARED", "LARGE_TABLE", "TABLE"};
    if (take(p, "~")) {
        stmts_append(b, va_arg(*p->hole, const Stmts *));
        return;
    }
    const char *jump = take(p, "break")      ? "break"
                       : take(p, "continue") ? "continue"
                                             : NULL;
    const char *unroll = NULL;
    for (int i = 2; i <= MAX_UNROLLING && unroll == NULL; i++)
        unroll = take(p, unroll_word[i]) ? unroll_word[i] : NULL;
    if (jump != NULL) {
        stmt_new(p, b, S_JUMP)->word = jump;
        need(p, ";");
    } else if (take(p, "enum")) {
        enumeration(p, b);
    } else if (take(p, "if")) {
        choice(p, b, S_IF);
    } else if (unroll != NULL || take(p, "for")) {
        if (unroll != NULL)
            need(p, "for");
        loop(p, b, unroll);
    } else if (take(p, "typedef")) {
        structure(p, b);
    } else if (take(p, "switch")) {
        choice(p, b, S_SWITCH);
    } else if (take(p, "case")) {
        one_case(p, b);
    } else if (take(p, "{")) {
        Stmt *s = stmt_new(p, b, S_BLOCK);
        while (!take(p, "}"))
            statement(p, &s->body);
    } else {
        const char *storage = NULL;
        for (int i = 0; i < 3 && storage == NULL; i++)
            storage = take(p, before[i]) ? before[i] : NULL;
        bool is_table = storage != NULL && strcmp(storage, "SHARED") != 0;
        const char *type = is_table ? NULL : type_read(p);
        if (is_table)
            table(p, b, storage);
        else if (type != NULL)
            declaration(p, b, storage, type);
        else
            other_statement(p, b);
    }
}

// ---- entry points ----

_Noreturn static void mistake(const Parser *p, const char *format) {
    fprintf(stderr, "kernel IR: %s in \"%s\"\n", p->why, format);
    abort();
}

static const Expr *expr_parse(Parser *p, const char *format) {
    jmp_buf failed;
    p->failed = &failed;
    if (setjmp(failed) != 0)
        mistake(p, format);
    const Expr *x = expression(p);
    skip_space(p);
    if (*p->s != '\0')
        fail(p, "more than an expression");
    return x;
}

const Expr *expr(Arena *a, const char *format, ...) {
    va_list list;
    va_start(list, format);
    Parser p = {.a = a, .s = format, .node = NO_NODE, .hole = &list};
    const Expr *x = expr_parse(&p, format);
    va_end(list);
    return x;
}

const Expr *expr_of(Arena *a, const char *format, const Expr *const *operand) {
    Parser p = {.a = a, .s = format, .node = NO_NODE, .operand = operand};
    return expr_parse(&p, format);
}

static bool stmts_parse(Parser *p, Stmts *b) {
    jmp_buf failed;
    p->failed = &failed;
    if (setjmp(failed) != 0)
        return false;
    for (skip_space(p); *p->s != '\0'; skip_space(p))
        statement(p, b);
    return true;
}

void code(Arena *a, Stmts *b, NodeId n, const char *format, ...) {
    va_list list;
    va_start(list, format);
    Parser p = {.a = a, .s = format, .node = n, .hole = &list};
    if (!stmts_parse(&p, b))
        mistake(&p, format);
    va_end(list);
}

bool stmts_read(Arena *a, Stmts *b, const char *text, const char **why) {
    Parser p = {.a = a, .s = text, .node = NO_NODE};
    bool good = stmts_parse(&p, b);
    *why = p.why;
    return good;
}

static void parameters(Parser *p, Tree *tree) {
    int types = 0;
    need(p, "(");
    while (!take(p, ")")) {
        if (tree->num_params > 0)
            need(p, ",");
        bool constant = take(p, "const");
        const char *type = scalar_type(p);
        if (type == NULL)
            fail(p, "no type");
        if (constant)
            type = arena_format(p->a, "const %s", type);
        need(p, "*");
        ARENA_APPEND(p->a, tree->type, types, type);
        ARENA_APPEND(p->a, tree->param, tree->num_params, primary(p));
    }
}

bool tree_read(Arena *a, Tree *tree, const char **text, const char **why) {
    Parser p = {.a = a, .s = *text, .node = NO_NODE};
    jmp_buf failed;
    *tree = (Tree){.arena = a, .min_blocks = 1};
    p.failed = &failed;
    if (setjmp(failed) != 0) {
        *why = p.why;
        return false;
    }
    need(&p, "kernel");
    tree->name = word(&p);
    parameters(&p, tree);
    tree->phased = take(&p, "phased");
    if (take(&p, "min_blocks")) {
        skip_space(&p);
        tree->min_blocks = (int)number(&p)->integer;
    }
    if (take(&p, "host")) {
        tree->function = word(&p);
        if (take(&p, "{"))
            tree->values = list(&p, x_list(a, 0), "}");
    }
    need(&p, "{");
    while (!take(&p, "}")) {
        Stmts one = {NULL, NULL};
        statement(&p, &one);
        bool table = one.first->kind == S_TABLE || one.first->kind == S_STRUCT;
        stmts_append(table ? &tree->tables : &tree->body, &one);
    }
    skip_space(&p);
    *text = p.s;
    return true;
}
