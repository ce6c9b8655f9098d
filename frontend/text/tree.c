// Tree: dumps the parsed tree, a line for each node, with its location.
//
// A child is indented by two columns.  No tree is deeper than MAX_DEPTH, so
// recursion is safe.

#include "frontend/frontend.h"
#include "frontend/text/ast.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    Text *out;
    int depth;
} Printer;

// Ends a line that began at `start` with its location.
static void location_add(Printer *p, size_t start, Span at) {
    enum { COLUMN = 40 };
    int wide = (int)(p->out->length - start);
    LineColumn location = source_line_column(at.source, at.start);
    text_add(p->out, "%*s# %d:%d\n", wide < COLUMN ? COLUMN - wide : 2, "",
             location.line, location.column);
}

static void line_add(Printer *p, Span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void line_add(Printer *p, Span at, const char *format, ...) {
    size_t start = p->out->length;
    va_list list;
    text_add(p->out, "%*s", 2 * p->depth, "");
    va_start(list, format);
    text_addv(p->out, format, list);
    va_end(list);
    location_add(p, start, at);
}

// ---- expressions ----

static const char *const unit_names[] = {
    [UNIT_NONE] = "",     [UNIT_EPOCH] = "epoch", [UNIT_STEP] = "step",
    [UNIT_PERCENT] = "%", [UNIT_KIB] = "KiB",     [UNIT_MIB] = "MiB",
    [UNIT_GIB] = "GiB",
};

static void expr_print(Printer *p, const char *role, const Expr *x);

static void part_print(Printer *p, const char *role, const Expr *x) {
    p->depth++;
    expr_print(p, role, x);
    p->depth--;
}

static void number_print(Printer *p, const char *role, const Expr *x) {
    size_t start = p->out->length;
    text_add(p->out, "%*s%snumber ", 2 * p->depth, "", role);
    text_double(p->out, x->number);
    location_add(p, start, x->at);
}

static void arguments_print(Printer *p, const Expr *x) {
    for (int i = 0; i < x->count; i++) {
        const Argument *argument = &x->argument[i];
        char role[MAX_NAME + 3] = "";
        if (argument->name)
            snprintf(role, sizeof role, "%s = ", argument->name);
        part_print(p, role, argument->value);
    }
}

static void stages_print(Printer *p, const Expr *x) {
    for (int i = 0; i < x->count; i++) {
        part_print(p, "|> ", x->stage[i].call);
        if (x->stage[i].name) {
            p->depth += 2;
            line_add(p, x->stage[i].name_at, "as %s", x->stage[i].name);
            p->depth -= 2;
        }
    }
}

// "a, b"
static const char *names_text(Printer *p, const Targets *to) {
    Text t = text_new(p->out->arena);
    for (int i = 0; i < to->count; i++)
        text_add(&t, "%s%s", i ? ", " : "", to->name[i].name);
    return text_string(&t);
}

// Prints an expression's kind and value.
static void head_print(Printer *p, const char *role, const Expr *x) {
    static const char *const plain[] = {
        [EXPR_BAD] = "nothing", [EXPR_LIST] = "list",  [EXPR_KNOT] = "knot",
        [EXPR_CALL] = "call",   [EXPR_PIPE] = "chain", [EXPR_INDEX] = "index",
        [EXPR_UNIT] = "count", [EXPR_IF] = "if",
    };
    switch (x->kind) {
    case EXPR_NUMBER:
        number_print(p, role, x);
        break;
    case EXPR_STRING:
        line_add(p, x->at, "%sstring \"%s\"", role, x->text);
        break;
    case EXPR_BOOL:
        line_add(p, x->at, "%s%s", role, x->boolean ? "true" : "false");
        break;
    case EXPR_NAME:
        line_add(p, x->at, "%sname %s", role, x->text);
        break;
    case EXPR_MEMBER:
        line_add(p, x->at, "%smember %s", role, x->text);
        break;
    case EXPR_EACH:
        line_add(p, x->at, "%sfor %s", role, names_text(p, &x->to));
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        line_add(p, x->op_at, "%soperator %s", role, token_name(x->op));
        break;
    case EXPR_UNIT:
        line_add(p, x->at, "%scount in %s", role, unit_names[x->unit]);
        break;
    default:
        line_add(p, x->at, "%s%s", role, plain[x->kind]);
    }
}

static void expr_print(Printer *p, const char *role, const Expr *x) {
    head_print(p, role, x);
    if (x->left)
        part_print(p, "", x->left);
    if (x->right)
        part_print(p, "", x->right);
    if (x->kind == EXPR_CALL)
        arguments_print(p, x);
    if (x->kind == EXPR_PIPE)
        stages_print(p, x);
    for (int i = 0; x->item != NULL && i < x->count; i++)
        part_print(p, "", x->item[i]);
}

// ---- statements ----

static void block_print(Printer *p, const Block *b);

static void type_print_tree(Printer *p, const char *role, const TypeExpr *t) {
    line_add(p, t->at, "%s%s", role, dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        part_print(p, "", t->dim[i]);
}

static void function_print(Printer *p, const char *keyword, const Function *f) {
    line_add(p, f->name_at, "%s %s", keyword, f->name);
    p->depth++;
    for (int i = 0; i < f->num_params; i++) {
        const Param *param = &f->param[i];
        line_add(p, param->at, "parameter %s", param->name);
        p->depth++;
        if (param->type)
            type_print_tree(p, ": ", param->type);
        if (param->otherwise)
            expr_print(p, "= ", param->otherwise);
        p->depth--;
    }
    if (f->result)
        type_print_tree(p, "-> ", f->result);
    for (int i = 0; i < f->num_outputs; i++) {
        line_add(p, f->output[i].at, "output %s", f->output[i].name);
        p->depth++;
        type_print_tree(p, ": ", f->output[i].type);
        p->depth--;
    }
    block_print(p, &f->body);
    p->depth--;
}

static void inner_block(Printer *p, const Block *b) {
    p->depth++;
    block_print(p, b);
    p->depth--;
}

static void stmt_print(Printer *p, const Stmt *s) {
    static const char *const words[] = {
        [STMT_IF] = "if", [STMT_WITH] = "with", [STMT_VALUE] = "value"};
    if (s->kind == STMT_FUNCTION) {
        function_print(p, "fn", s->function);
        return;
    }
    if (s->kind == STMT_VALUE) {
        expr_print(p, "", s->value);
        return;
    }
    if (s->kind == STMT_ASSIGN || s->kind == STMT_FOR)
        line_add(p, s->to.name[0].at, "%s %s",
                 s->kind == STMT_FOR ? "for" : "let", names_text(p, &s->to));
    else
        line_add(p, s->at, "%s", words[s->kind]);
    if (s->value)
        part_print(p, "", s->value);
    inner_block(p, &s->body);
    if (s->otherwise.count > 0) {
        line_add(p, s->otherwise.at, "else");
        inner_block(p, &s->otherwise);
    }
}

static void block_print(Printer *p, const Block *b) {
    for (int i = 0; i < b->count; i++)
        stmt_print(p, &b->stmt[i]);
}

// ---- the train block ----

static void entry_print(Printer *p, const Entry *e) {
    line_add(p, e->at, "%s %s", e->value ? "key" : "clause", e->name);
    p->depth++;
    if (e->value)
        expr_print(p, "", e->value);
    for (int i = 0; i < e->num_flags; i++)
        line_add(p, e->flag_at[i], "flag %s", e->flag[i]);
    if (e->glob)
        line_add(p, e->glob_at, "parameters \"%s\"", e->glob);
    const struct {
        const char *role;
        const Expr *value;
    } part[] = {{"every ", e->every},
                {"on ", e->on},
                {"keep ", e->keep},
                {"after ", e->after},
                {"when ", e->when},
                {"best ", e->best},
                {"patience ", e->patience}};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (part[i].value)
            expr_print(p, part[i].role, part[i].value);
    for (int i = 0; i < e->num_keys; i++)
        entry_print(p, &e->key[i]);
    p->depth--;
}

static void train_print(Printer *p, const Train *t) {
    line_add(p, t->at, "train %s", t->model);
    p->depth++;
    for (int i = 0; i < t->num_entries; i++)
        entry_print(p, &t->entry[i]);
    p->depth--;
}

static void import_print(Printer *p, const Import *import) {
    line_add(p, import->at, "import \"%s\"", import->path);
    p->depth++;
    for (int i = 0; i < import->num_names; i++)
        line_add(p, import->name[i].at, "name %s", import->name[i].name);
    p->depth--;
}

static void item_print(Printer *p, const Item *item) {
    switch (item->kind) {
    case ITEM_IMPORT:
        import_print(p, &item->import);
        break;
    case ITEM_LET:
        stmt_print(p, &item->let);
        break;
    case ITEM_FUNCTION:
    case ITEM_MODEL:
        function_print(p, item->kind == ITEM_MODEL ? "model" : "fn",
                       item->function);
        break;
    case ITEM_TRAIN:
        train_print(p, &item->train);
        break;
    }
}

bool frontend_tree(Arena *a, const Source *s, Text *out, Diagnostics *diags) {
    int errors = diags->errors;
    const File *f = parse(a, atoms_new(a), s, diags);
    if (diags->errors > errors)
        return false;
    Printer p = {.out = out};
    for (int i = 0; i < f->count; i++)
        item_print(&p, &f->item[i]);
    return true;
}
