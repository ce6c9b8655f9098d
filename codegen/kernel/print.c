// Print: a kernel's tree as C and CUDA C, or as kernel IR.

#include "codegen/kernel/tree.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

typedef struct {
    Text *t;
    const char *own; // the kernel's name; NULL: print kernel IR
    bool tiles;      // values are tiles: no conditional, no cast
} Printer;

// The precedence of an expression: a level of parse.c's operators.
enum { LOOSEST = 1, UNARY = 11, TIGHTEST = 12 };

enum { WIDTH = 96 }; // of a line

// ---- expressions ----

static void expr_add(const Printer *p, const Expr *x, int least);

static void digits_add(Text *t, const char *before, unsigned number) {
    char digit[10];
    int i = sizeof digit;
    do
        digit[--i] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    text_add(t, "%s", before);
    text_bytes(t, digit + i, sizeof digit - (size_t)i);
}

// Adds text, with the next expression for each $ and the next word for each %.
static void add(const Printer *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    for (; *format != '\0'; format++)
        if (*format == '$')
            expr_add(p, va_arg(list, const Expr *), LOOSEST);
        else if (*format == '%')
            text_add(p->t, "%s", va_arg(list, const char *));
        else
            text_bytes(p->t, format, 1);
    va_end(list);
}

static void name_add(const Printer *p, const Expr *x) {
    bool own = p->own != NULL && strncmp(x->name, "OWN", 3) == 0;
    text_add(p->t, "%s", own ? p->own : "");
    text_add(p->t, "%s", own ? x->name + 3 : x->name);
    if (x->node != NO_NODE)
        digits_add(p->t, p->own != NULL ? "" : "@", x->node);
    if (x->again > 0)
        digits_add(p->t, "_", (unsigned)x->again);
}

static void type_add(const Printer *p, const char *type) {
    const char *own = p->own != NULL ? strstr(type, "OWN") : NULL;
    if (own == NULL)
        text_add(p->t, "%s", type);
    else
        text_add(p->t, "%.*s%s%s", (int)(own - type), type, p->own, own + 3);
}

// Zero without a sign, as compilers warn of -0.0f.
static void real_add(Text *t, double value) {
    if (isinf((float)value)) {
        text_add(t, value < 0 ? "-INF" : "INF");
    } else if (isnan(value)) {
        text_add(t, "(INF - INF)");
    } else {
        text_double(t, (float)value == 0 ? 0.0 : value);
        text_add(t, "f");
    }
}

static void number_add(const Printer *p, const Expr *x) {
    bool says = p->own == NULL && number_kind[x->kind] != NULL;
    if (says)
        text_add(p->t, "%s(", number_kind[x->kind]);
    if (x->kind == X_REAL || x->kind == X_CONSTANT)
        real_add(p->t, x->real);
    else
        text_add(p->t, "%lld", (long long)x->integer);
    if (says)
        text_add(p->t, ")");
}

static void arguments_add(const Printer *p, const Expr *x, const char *end) {
    for (int i = 0; i < x->count; i++)
        add(p, "%$", i > 0 ? ", " : "", x->arg[i]);
    text_add(p->t, "%s", end);
}

static int precedence_of(const Expr *x) {
    switch (x->kind) {
    case X_OP:
        return x->count == 1 ? UNARY : operator_precedence(x->name);
    case X_CAST:
        return UNARY;
    case X_NUMBER:
    case X_SIZE:
        return x->integer < 0 ? UNARY : TIGHTEST;
    case X_REAL:
    case X_CONSTANT:
        return signbit(x->real) ? UNARY : TIGHTEST;
    default:
        return TIGHTEST;
    }
}

// The level that x, operand i of a binary operation, needs without parentheses.
// Operands of |, ^ and & have them, but for more of the same: precedences that
// gcc warns of.
static int level_of(const Expr *x, int i) {
    bool bitwise = strchr("|^&", *x->name) != NULL && x->name[1] == 0;
    const Expr *of = x->arg[i];
    if (bitwise &&
        (of->kind != X_OP || of->count != 2 || *of->name != *x->name))
        return UNARY;
    return precedence_of(x) + i;
}

static void operation_add(const Printer *p, const Expr *x) {
    int level = precedence_of(x);
    if (x->count == 1) {
        text_add(p->t, "%s", x->name);
        expr_add(p, x->arg[0], *x->name == '-' ? TIGHTEST : UNARY);
        return;
    }
    if (*x->name == '?') {
        expr_add(p, x->arg[0], level + 1);
        text_add(p->t, " ? ");
        expr_add(p, x->arg[1], LOOSEST);
        add(p, " : $", x->arg[2]);
        return;
    }
    expr_add(p, x->arg[0], level_of(x, 0));
    text_add(p->t, " %s ", x->name);
    expr_add(p, x->arg[1], level_of(x, 1));
}

// A conditional or a cast as a function of tiles.
static bool is_tile_call(const Printer *p, const Expr *x) {
    return p->tiles &&
           (x->kind == X_CAST || (x->kind == X_OP && *x->name == '?'));
}

static void tile_call_add(const Printer *p, const Expr *x) {
    if (x->kind == X_CAST)
        text_add(p->t, "to_%s", x->name);
    else
        text_add(p->t, "where");
    text_add(p->t, "(");
    arguments_add(p, x, ")");
}

// Appends x, in parentheses if it binds less tightly than `least`.
static void expr_add(const Printer *p, const Expr *x, int least) {
    bool loose = precedence_of(x) < least;
    if (is_tile_call(p, x)) {
        tile_call_add(p, x);
        return;
    }
    text_add(p->t, loose ? "(" : "");
    switch (x->kind) {
    case X_NAME:
        name_add(p, x);
        break;
    case X_OP:
        operation_add(p, x);
        break;
    case X_CALL:
        text_add(p->t, "%s(", x->name);
        arguments_add(p, x, ")");
        break;
    case X_CAST:
        text_add(p->t, "(");
        type_add(p, x->name);
        text_add(p->t, ")");
        expr_add(p, x->arg[0], UNARY);
        break;
    case X_INDEX:
        expr_add(p, x->arg[0], TIGHTEST);
        add(p, "[$]", x->arg[1]);
        break;
    case X_FIELD:
        expr_add(p, x->arg[0], TIGHTEST);
        text_add(p->t, ".%s", x->name);
        break;
    case X_LIST:
        text_add(p->t, "{");
        arguments_add(p, x, "}");
        break;
    default:
        number_add(p, x);
    }
    text_add(p->t, loose ? ")" : "");
}

// ---- statements ----

static void stmt_add(const Printer *p, const Stmt *s);

static void begin(const Printer *p) {
    text_add(p->t, "%*s", 4 * p->t->indent, "");
}

static size_t line_start(const Text *t) {
    size_t from = t->length;
    while (from > 0 && t->data[from - 1] != '\n')
        from--;
    return from;
}

// The last space before WIDTH for a line break, preferably after a comma; 0 if
// no space lies past the margin.  No token has a space.
static size_t break_at(const char *s, size_t margin) {
    size_t at = WIDTH, comma = WIDTH;
    while (at > margin && s[at] != ' ')
        at--;
    while (comma > WIDTH / 2 && !(s[comma] == ' ' && s[comma - 1] == ','))
        comma--;
    return comma > WIDTH / 2 ? comma : at > margin ? at : 0;
}

// Breaks the last line of t, which begins at `from`, if it is too long.
static void wrap(Text *t, size_t from) {
    Text rest = text_new(t->arena);
    const char *s = t->data + from;
    size_t length = t->length - from, margin = strspn(s, " ") + 4;
    if (length <= WIDTH)
        return;
    while (length > WIDTH) {
        size_t at = break_at(s, margin);
        if (at == 0)
            break;
        text_bytes(&rest, s, at);
        text_add(&rest, "\n%*s", (int)margin, "");
        s += at + 1;
        length -= at + 1;
    }
    text_bytes(&rest, s, length);
    t->length = from;
    text_bytes(t, text_string(&rest), rest.length);
}

// Ends a line.  In kernel IR it ends in the statement's node.
static void end(const Printer *p, const Stmt *s, const char *line) {
    text_add(p->t, "%s", line);
    wrap(p->t, line_start(p->t));
    if (p->own == NULL && s != NULL && s->node != NO_NODE)
        text_add(p->t, " // %%%u", s->node);
    else if (p->own != NULL && s != NULL && s->comment != NULL)
        text_add(p->t, " // %s", s->comment);
    text_add(p->t, "\n");
}

static void stmts_add_text(const Printer *p, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        stmt_add(p, s);
}

static bool is_short(const Stmt *s) {
    return s->kind == S_SET || s->kind == S_CALL || s->kind == S_JUMP;
}

// Whether a block needs no braces: one statement of one line, or a loop in a
// loop.
static bool is_bare(const Stmt *in, const Stmts *b) {
    const Stmt *only = b->first;
    if (only == NULL || only->next != NULL)
        return false;
    return is_short(only) || (in->kind == S_FOR && only->kind == S_FOR);
}

// Appends the only statement of b to its head's line, if it fits there.
static bool short_add(const Printer *p, const Stmts *b) {
    Text line = text_new(p->t->arena);
    stmt_add(&(Printer){&line, p->own, p->tiles}, b->first);
    const char *s = text_string(&line);
    if (strchr(s, '\n') != s + line.length - 1 ||
        p->t->length - line_start(p->t) + line.length > WIDTH)
        return false;
    text_add(p->t, " %s", s);
    return true;
}

// Appends a statement's body after its head.
static void body_add(const Printer *p, const Stmt *in, const Stmts *b) {
    bool bare = is_bare(in, b);
    if (bare && is_short(b->first)) {
        if (short_add(p, b))
            return;
        bare = false;
    }
    text_add(p->t, bare ? "\n" : " {\n");
    p->t->indent++;
    stmts_add_text(p, b);
    p->t->indent--;
    if (bare)
        return;
    begin(p);
    text_add(p->t, "}\n");
}

static void declare_add(const Printer *p, const Stmt *s) {
    size_t length = strlen(s->type);
    bool pointer = s->type[length - 1] == '*';
    if (s->word != NULL)
        text_add(p->t, "%s ", s->word);
    type_add(p, s->type);
    text_add(p->t, pointer ? "" : " ");
    add(p, "$", s->name);
    for (int i = 0; i < MAX_DIMS && s->dim[i] != NULL; i++)
        add(p, "[$]", s->dim[i]);
    if (s->value != NULL)
        add(p, " = $", s->value);
    end(p, s, ";");
}

static void enum_add(const Printer *p, const Stmt *s) {
    text_add(p->t, "enum { ");
    for (int i = 0; i < s->num_enumerators; i++) {
        const Enumerator *c = &s->enumerator[i];
        add(p, "%%% = $", i > 0 ? ", " : "",
            c->spec && p->own == NULL ? "spec " : "", c->name, c->value);
    }
    text_add(p->t, " };\n");
}

static void for_add(const Printer *p, const Stmt *s) {
    add(p, "%%for (% $ = $; $; $", s->word ? s->word : "", s->word ? " " : "",
        s->type, s->name, s->value, s->test, s->name);
    if (is_number(s->step, 1))
        add(p, "++)");
    else
        add(p, " += $)", s->step);
    body_add(p, s, &s->body);
}

static void if_add(const Printer *p, const Stmt *s) {
    add(p, "if ($)", s->value);
    body_add(p, s, &s->body);
    if (s->other.first == NULL)
        return;
    begin(p);
    text_add(p->t, "else");
    body_add(p, s, &s->other);
}

// A row of a multi-tensor table; more than three addresses end a line, and more
// than five begin one.
static void row_add(const Printer *p, const Expr *row) {
    enum { FEW = 3, MANY = 5 };
    bool listed = false, ended = false;
    text_add(p->t, "{");
    for (int i = 0; i < row->count; i++) {
        const Expr *x = row->arg[i], *before = i > 0 ? row->arg[i - 1] : NULL;
        bool begins = x->kind == X_LIST && !listed && x->count > MANY;
        bool ends = listed && !ended && before->count > FEW;
        text_add(p->t, "%s",
                 before == NULL ? "" : begins || ends ? ",\n     " : ", ");
        ended |= listed;
        listed |= x->kind == X_LIST;
        expr_add(p, x, LOOSEST);
    }
    text_add(p->t, "}");
}

static void table_add(const Printer *p, const Stmt *s) {
    enum { IN_LINE = 10 };
    text_add(p->t, "%s ", s->word);
    type_add(p, s->type);
    add(p, " $", s->name);
    text_add(p->t, "[%d]%s = {", s->num_rows,
             s->aligned ? " __attribute__((aligned(16)))" : "");
    for (int i = 0; i < s->num_rows; i++) {
        const TableRow *row = &s->row[i];
        bool list = row->value->kind == X_LIST;
        if (list || (s->num_rows > IN_LINE && i % IN_LINE == 0))
            text_add(p->t, "\n");
        if (list && p->own != NULL && *row->comment != '\0')
            text_add(p->t, "    // %s\n", row->comment);
        text_add(p->t, "%s",
                 list || (s->num_rows > IN_LINE && i % IN_LINE == 0) ? "    "
                                                                     : "");
        if (list)
            row_add(p, row->value);
        else
            add(p, "$", row->value);
        text_add(p->t, "%s",
                 i + 1 == s->num_rows                 ? ""
                 : list || i % IN_LINE == IN_LINE - 1 ? ","
                                                      : ", ");
    }
    bool lines = s->num_rows > IN_LINE || s->row[0].value->kind == X_LIST;
    text_add(p->t, lines ? "\n};\n" : "};\n");
}

static void struct_add(const Printer *p, const Stmt *s) {
    text_add(p->t, "typedef struct {\n    int kind, elements, first;\n");
    for (int i = 0; i < s->num_enumerators; i++)
        text_add(p->t, "    %s[%lld];\n", s->enumerator[i].name,
                 (long long)s->enumerator[i].value->integer);
    add(p, "} $;\n", s->name);
}

static void stmt_add(const Printer *p, const Stmt *s) {
    begin(p);
    switch (s->kind) {
    case S_DECLARE:
        declare_add(p, s);
        break;
    case S_SET:
        add(p, "$ % $", s->name, s->word, s->value);
        end(p, s, ";");
        break;
    case S_CALL:
        add(p, "$", s->value);
        end(p, s, ";");
        break;
    case S_FOR:
        for_add(p, s);
        break;
    case S_REPEAT:
        add(p, "$", s->value);
        body_add(p, s, &s->body);
        break;
    case S_IF:
        if_add(p, s);
        break;
    case S_JUMP:
        text_add(p->t, "%s", s->word);
        end(p, s, ";");
        break;
    case S_ENUM:
        enum_add(p, s);
        break;
    case S_BLOCK:
        text_add(p->t, "{\n");
        p->t->indent++;
        stmts_add_text(p, &s->body);
        p->t->indent--;
        begin(p);
        text_add(p->t, "}\n");
        break;
    case S_SWITCH:
        add(p, "switch ($) {\n", s->value);
        stmts_add_text(p, &s->body);
        begin(p);
        text_add(p->t, "}\n");
        break;
    case S_CASE:
        add(p, "case $:", s->value);
        body_add(p, s, &s->body);
        break;
    case S_STRUCT:
        struct_add(p, s);
        break;
    case S_TABLE:
        table_add(p, s);
        break;
    }
}

void stmts_print(Text *t, const Stmts *b, const char *own) {
    stmts_add_text(&(Printer){t, own, false}, b);
}

void stmts_print_tiles(Text *t, const Stmts *b) {
    stmts_add_text(&(Printer){t, "", true}, b);
}

void tree_print(Text *t, const Tree *tree) {
    Printer p = {t, NULL, false};
    text_add(t, "kernel %s(", tree->name);
    for (int i = 0; i < tree->num_params; i++)
        add(&p, "%% *$", i > 0 ? ", " : "", tree->type[i], tree->param[i]);
    text_add(t, ")%s", tree->phased ? " phased" : "");
    if (tree->min_blocks > 1)
        text_add(t, " min_blocks %d", tree->min_blocks);
    if (tree->function != NULL)
        text_add(t, " host %s", tree->function);
    if (tree->values != NULL)
        add(&p, "$", tree->values);
    wrap(t, line_start(t));
    text_add(t, " {\n");
    stmts_add_text(&p, &tree->tables);
    t->indent++;
    stmts_add_text(&p, &tree->body);
    t->indent--;
    text_add(t, "}\n");
}

const char *expr_print(Arena *a, const Expr *x, const char *own) {
    Text t = text_new(a);
    expr_add(&(Printer){&t, own, false}, x, LOOSEST);
    return text_string(&t);
}
