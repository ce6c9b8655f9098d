// Trees as text, fully parenthesised: see tree.h.
#include "tests/frontend/tree.h"

static void spell_call(Text *t, const Expr *x) {
    tree_spell(t, x->left);
    text_add(t, "(");
    for (int i = 0; i < x->count; i++) {
        const Argument *a = &x->argument[i];
        text_add(t, "%s%s%s", i ? ", " : "", a->name ? a->name : "",
                 a->name ? "=" : "");
        tree_spell(t, a->value);
    }
    text_add(t, ")");
}

static void spell_pipe(Text *t, const Expr *x) {
    text_add(t, "<");
    tree_spell(t, x->left);
    for (int i = 0; i < x->count; i++) {
        text_add(t, " |> ");
        tree_spell(t, x->stage[i].call);
        if (x->stage[i].name)
            text_add(t, " as %s", x->stage[i].name);
    }
    text_add(t, ">");
}

static void spell_list(Text *t, const Expr *x) {
    text_add(t, "[");
    for (int i = 0; i < x->count; i++) {
        text_add(t, i ? ", " : "");
        tree_spell(t, x->item[i]);
    }
    text_add(t, "]");
}

static void spell_names(Text *t, const Targets *to) {
    for (int i = 0; i < to->count; i++)
        text_add(t, "%s%s", i ? ", " : "", to->name[i].name);
}

static void spell_each(Text *t, const Expr *x) {
    text_add(t, "[");
    tree_spell(t, x->left);
    text_add(t, " for ");
    spell_names(t, &x->to);
    text_add(t, " in ");
    tree_spell(t, x->right);
    for (int i = 0; i < x->count; i++) {
        text_add(t, " if ");
        tree_spell(t, x->item[i]);
    }
    text_add(t, "]");
}

static void spell_choice(Text *t, const Expr *x) {
    static const char *const before[] = {"(if ", " then ", " else "};
    for (int i = 0; i < x->count; i++) {
        text_add(t, "%s", before[i]);
        tree_spell(t, x->item[i]);
    }
    text_add(t, ")");
}

static void spell_pair(Text *t, const Expr *x, const char *between) {
    text_add(t, "(");
    if (x->left)
        tree_spell(t, x->left);
    text_add(t, "%s", between);
    tree_spell(t, x->right);
    text_add(t, ")");
}

void tree_spell(Text *t, const Expr *x) {
    switch (x->kind) {
    case EXPR_BAD:
        text_add(t, "?");
        return;
    case EXPR_NUMBER:
        text_add(t, "%.16g", x->number);
        return;
    case EXPR_STRING:
        text_add(t, "\"%s\"", x->text);
        return;
    case EXPR_BOOL:
        text_add(t, x->boolean ? "true" : "false");
        return;
    case EXPR_NAME:
        text_add(t, "%s", x->text);
        return;
    case EXPR_LIST:
        spell_list(t, x);
        return;
    case EXPR_EACH:
        spell_each(t, x);
        return;
    case EXPR_IF:
        spell_choice(t, x);
        return;
    case EXPR_KNOT:
        spell_pair(t, x, ": ");
        return;
    case EXPR_CALL:
        spell_call(t, x);
        return;
    case EXPR_PIPE:
        spell_pipe(t, x);
        return;
    case EXPR_UNARY:
    case EXPR_BINARY:
        spell_pair(t, x, token_name(x->op));
        return;
    case EXPR_MEMBER:
        tree_spell(t, x->left);
        text_add(t, ".%s", x->text);
        return;
    case EXPR_INDEX:
        text_add(t, "{");
        tree_spell(t, x->left);
        text_add(t, " at ");
        tree_spell(t, x->right);
        text_add(t, "}");
        return;
    case EXPR_UNIT:
        text_add(t, "{");
        tree_spell(t, x->left);
        text_add(t, " %d}", x->unit);
        return;
    }
}

static void spell_optional(Text *t, const char *before, const Expr *x) {
    if (x == NULL)
        return;
    text_add(t, "%s", before);
    tree_spell(t, x);
}

static void spell_type(Text *t, const TypeExpr *type) {
    if (type == NULL)
        return;
    text_add(t, ": %s[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        spell_optional(t, i ? ", " : "", type->dim[i]);
    text_add(t, "]");
}

static void spell_block(Text *t, const Block *b);

static void spell_function(Text *t, const Function *f) {
    text_add(t, "fn %s(", f->name);
    for (int i = 0; i < f->num_params; i++) {
        text_add(t, "%s%s", i ? ", " : "", f->param[i].name);
        spell_type(t, f->param[i].type);
        spell_optional(t, " = ", f->param[i].otherwise);
    }
    text_add(t, ")");
    spell_type(t, f->result);
    spell_block(t, &f->body);
}

static void spell_stmt(Text *t, const Stmt *s) {
    text_add(t, "\n%d ", s->kind);
    if (s->function != NULL) {
        spell_function(t, s->function);
        return;
    }
    spell_names(t, &s->to);
    spell_optional(t, " = ", s->value);
    spell_block(t, &s->body);
    spell_block(t, &s->otherwise);
}

static void spell_block(Text *t, const Block *b) {
    text_add(t, " {");
    for (int i = 0; i < b->count; i++)
        spell_stmt(t, &b->stmt[i]);
    text_add(t, "}");
}

static void spell_entry(Text *t, const Entry *e) {
    text_add(t, "\n%s", e->name);
    spell_optional(t, " = ", e->value);
    for (int i = 0; i < e->num_flags; i++)
        text_add(t, ", %s", e->flag[i]);
    spell_optional(t, " every ", e->every);
    spell_optional(t, " on ", e->on);
    spell_optional(t, " keep ", e->keep);
    for (int i = 0; i < e->num_keys; i++)
        spell_entry(t, &e->key[i]);
    text_add(t, ";");
}

static void spell_import(Text *t, const Import *i) {
    text_add(t, "import %s", i->path);
    for (int k = 0; k < i->num_names; k++)
        text_add(t, " %s", i->name[k].name);
}

void tree_print(Text *t, const File *f) {
    for (int i = 0; i < f->count; i++) {
        const Item *item = &f->item[i];
        text_add(t, "\n%d ", item->kind);
        if (item->kind == ITEM_IMPORT)
            spell_import(t, &item->import);
        else if (item->kind == ITEM_LET)
            spell_stmt(t, &item->let);
        else if (item->kind != ITEM_TRAIN)
            spell_function(t, item->function);
        else
            text_add(t, "train %s", item->train.model);
        for (int k = 0; k < item->train.num_entries; k++)
            spell_entry(t, &item->train.entry[k]);
    }
}
