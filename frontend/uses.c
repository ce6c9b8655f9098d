// The uses of a file's names, for editors.  Names mean what expand/names.c and
// expand/scope.c say: a function has its own parameters and variables, and sees
// those of the functions around it and of the file.

#include "frontend/expand/expand.h"
#include "frontend/frontend.h"
#include "frontend/functions/functions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Definition {
    Atom name;
    uint32_t start;           // its offset in the text
    const Function *function; // that it names; NULL: none
    const Function *owner;    // NULL: the file
    bool imported;
    struct Definition *outer;   // the shadowed one of the same name
    struct Definition *sibling; // the previous one of the same function
} Definition;

// A use of the definition at offset `start`; the definition is one itself.
typedef struct {
    Span at;
    uint32_t start;
    bool imported;
} Use;

typedef struct {
    Arena *arena;
    AtomMap visible;       // the innermost definition of each name
    const Function *owner; // the current function
    Definition *latest;    // its latest
    Use *use;
    int num_uses;
    const char *searched; // a name; NULL: none
    bool found;           // the file uses it
} Uses;

// ---- definitions ----

static void use_add(Uses *u, Atom name, Span at, const Definition *d) {
    Use use = {{at.source, at.start, at.start + (uint32_t)strlen(name)},
               d->start,
               d->imported};
    ARENA_APPEND(u->arena, u->use, u->num_uses, use);
}

static void search(Uses *u, Atom name) {
    u->found |= u->searched != NULL && strcmp(name, u->searched) == 0;
}

static Definition *visible(Uses *u, Atom name) {
    return *atom_value(u->arena, &u->visible, name);
}

static Definition *define(Uses *u, Atom name, Span at, const Function *f) {
    void **innermost = atom_value(u->arena, &u->visible, name);
    Definition *d = ARENA_NEW(u->arena, Definition);
    *d = (Definition){.name = name,
                      .start = at.start,
                      .function = f,
                      .owner = u->owner,
                      .outer = *innermost,
                      .sibling = u->latest};
    *innermost = d;
    u->latest = d;
    search(u, name);
    return d;
}

static void define_here(Uses *u, Atom name, Span at, const Function *f) {
    use_add(u, name, at, define(u, name, at, f));
}

static void read_name(Uses *u, Atom name, Span at) {
    const Definition *d = visible(u, name);
    search(u, name);
    if (d != NULL)
        use_add(u, name, at, d);
}

// ---- the walk ----

// An argument's name is that of a parameter, if the file defines the function.
static void walk_argument(Uses *u, const Function *f, const Argument *x) {
    for (int i = 0; i < f->num_params; i++)
        if (f->param[i].name == x->name)
            use_add(u, x->name, x->name_at,
                    &(Definition){.start = f->param[i].at.start});
}

static void walk_expr(Uses *u, const Expr *x);

static void define_targets(Uses *u, const Targets *to) {
    for (int i = 0; i < to->count; i++)
        define_here(u, to->name[i].name, to->name[i].at, NULL);
}

// A comprehension: its names end with it.
static void walk_each(Uses *u, const Expr *x) {
    walk_expr(u, x->right);
    define_targets(u, &x->to);
    walk_expr(u, x->left);
    for (int i = 0; i < x->count; i++)
        walk_expr(u, x->item[i]);
    for (int i = 0; i < x->to.count; i++, u->latest = u->latest->sibling)
        *atom_value(u->arena, &u->visible, u->latest->name) = u->latest->outer;
}

static void walk_expr(Uses *u, const Expr *x) {
    if (x == NULL)
        return;
    if (x->kind == EXPR_EACH) {
        walk_each(u, x);
        return;
    }
    if (x->kind == EXPR_NAME)
        read_name(u, x->text, x->at);
    if (x->kind == EXPR_CALL && x->left->kind == EXPR_NAME) {
        const Definition *d = visible(u, x->left->text);
        for (int i = 0; d != NULL && d->function != NULL && i < x->count; i++)
            if (x->argument[i].name != NULL)
                walk_argument(u, d->function, &x->argument[i]);
    }
    for (int i = 0; i < expr_num_parts(x); i++)
        walk_expr(u, expr_part(x, i));
}

static void walk_type(Uses *u, const TypeExpr *t) {
    for (int i = 0; t != NULL && i < t->rank; i++)
        walk_expr(u, t->dim[i]);
}

static void walk_function(Uses *u, const Function *f);

static void walk_assign(Uses *u, const Stmt *s) {
    for (int i = 0; i < s->to.count; i++) {
        const Name *to = &s->to.name[i];
        const Definition *known = visible(u, to->name);
        if (known != NULL && known->owner == u->owner)
            read_name(u, to->name, to->at);
        else
            define_here(u, to->name, to->at, NULL);
    }
}

static void walk_block(Uses *u, const Block *b) {
    for (int i = 0; i < b->count; i++) {
        const Stmt *s = &b->stmt[i];
        if (s->kind == STMT_FUNCTION) {
            walk_function(u, s->function);
            define_here(u, s->function->name, s->function->name_at,
                        s->function);
            continue;
        }
        walk_expr(u, s->value);
        if (s->kind == STMT_ASSIGN)
            walk_assign(u, s);
        if (s->kind == STMT_FOR)
            define_targets(u, &s->to);
        walk_block(u, &s->body);
        walk_block(u, &s->otherwise);
    }
}

static void walk_function(Uses *u, const Function *f) {
    Definition *latest = u->latest;
    const Function *owner = u->owner;
    u->latest = NULL;
    u->owner = f;
    for (int i = 0; i < f->num_params; i++) {
        walk_type(u, f->param[i].type);
        walk_expr(u, f->param[i].otherwise);
        define_here(u, f->param[i].name, f->param[i].at, NULL);
    }
    walk_type(u, f->result);
    for (int i = 0; i < f->num_outputs; i++)
        walk_type(u, f->output[i].type);
    walk_block(u, &f->body);
    for (const Definition *d = u->latest; d != NULL; d = d->sibling)
        *atom_value(u->arena, &u->visible, d->name) = d->outer;
    u->latest = latest;
    u->owner = owner;
}

static void walk_entry(Uses *u, const Entry *e) {
    const Expr *const part[] = {e->value, e->every, e->on,
                                e->keep,  e->after, e->when};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        walk_expr(u, part[i]);
    for (int i = 0; i < e->num_keys; i++)
        walk_entry(u, &e->key[i]);
}

// A function may be used before its definition in the file.
static void define_items(Uses *u, const File *f) {
    for (int i = 0; i < f->count; i++) {
        const Item *item = &f->item[i];
        for (int k = 0; k < item->import.num_names; k++)
            define(u, item->import.name[k].name, item->import.name[k].at, NULL)
                ->imported = true;
        for (int k = 0; k < item->let.to.count; k++)
            define(u, item->let.to.name[k].name, item->let.to.name[k].at, NULL);
        if (item->function != NULL)
            define(u, item->function->name, item->function->name_at,
                   item->function);
    }
}

static void walk_items(Uses *u, const File *f) {
    for (int i = 0; i < f->count; i++) {
        const Item *item = &f->item[i];
        for (int k = 0; k < item->import.num_names; k++)
            read_name(u, item->import.name[k].name, item->import.name[k].at);
        if (item->kind == ITEM_LET) {
            walk_expr(u, item->let.value);
            for (int k = 0; k < item->let.to.count; k++)
                read_name(u, item->let.to.name[k].name,
                          item->let.to.name[k].at);
        }
        if (item->function != NULL) {
            read_name(u, item->function->name, item->function->name_at);
            walk_function(u, item->function);
        }
        if (item->kind != ITEM_TRAIN)
            continue;
        read_name(u, item->train.model, item->train.model_at);
        for (int k = 0; k < item->train.num_entries; k++)
            walk_entry(u, &item->train.entry[k]);
    }
}

// Finds all uses; false: the text has syntax errors.
static bool uses_find(Uses *u, const Source *s) {
    Diagnostics diags = diag_new(u->arena);
    const File *f = parse(u->arena, atoms_new(u->arena), s, &diags);
    if (diags.errors > 0)
        return false;
    define_items(u, f);
    walk_items(u, f);
    return true;
}

// ---- what an editor asks ----

static int by_offset(const void *left, const void *right) {
    const Span *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

NameUses frontend_uses(Arena *a, const Source *s, uint32_t offset) {
    Uses u = {.arena = a};
    NameUses found = {0};
    const Use *here = NULL;
    if (!uses_find(&u, s))
        return found;
    for (int i = 0; i < u.num_uses; i++)
        if (offset >= u.use[i].at.start && offset <= u.use[i].at.end)
            here = &u.use[i];
    for (int i = 0; here != NULL && i < u.num_uses; i++)
        if (u.use[i].start == here->start)
            ARENA_APPEND(a, found.at, found.count, u.use[i].at);
    if (here != NULL) {
        found.definition = here->start;
        found.imported = here->imported;
        qsort(found.at, (size_t)found.count, sizeof *found.at, by_offset);
    }
    return found;
}

// Whether the parser takes the text for a name: no keyword.
static bool is_name(Arena *a, const char *text) {
    Diagnostics diags = diag_new(a);
    const char *line = arena_format(a, "let %s = 1\n", text);
    for (const char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    parse(a, atoms_new(a), source_new(a, "name", line, strlen(line)), &diags);
    return diags.errors == 0;
}

bool frontend_name_is_free(Arena *a, const Source *s, const char *name) {
    Uses u = {.arena = a, .searched = name};
    return is_name(a, name) && builtin_find(name) == NULL && uses_find(&u, s) &&
           !u.found;
}
