// Imports: reads modules and binds their names.
//
// An import's path is relative to the importing file and stays below its
// directory.  The modules of `std/` are embedded in the compiler; a function
// that is `native` there is a builtin (builtins.def).

#define _XOPEN_SOURCE 700 // realpath

#include "frontend/expand/expand.h"
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_IMPORTS = 256, MAX_IMPORT_DEPTH = 32 };

typedef struct Module {
    const char *path;
    Source *source;
    const File *file;
    Binding *names;
    bool failed;             // some of its names are missing
    struct Module *importer; // the file that first imported it
    Span at;                 // the import there
    struct Module *next;
} Module;

static File *expand_file(Expansion *e, const Source *s);

static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

// ---- std/ ----

static bool is_std(const char *path) {
    return strncmp(path, "std/", 4) == 0;
}

static Source *read_std(Expansion *e, const Import *i) {
    const char *text = std_text(i->path);
    if (text != NULL)
        return source_new(e->arena, i->path, text, strlen(text));
    Diagnostic *d =
        report(e->diags, D_import, i->at, "there is no module `%s`", i->path);
    Nearest near = nearest_to(i->path);
    for (int m = 0; std_path(m) != NULL; m++)
        nearest_offer(&near, std_path(m));
    nearest_note(&near, d);
    return NULL;
}

bool function_is_native(const Function *f) {
    const Expr *x = f->body.count == 1 ? f->body.stmt[0].value : NULL;
    const Builtin *b = builtin_find(f->name);
    return x != NULL && x->kind == EXPR_NAME &&
           strcmp(x->text, "native") == 0 && b != NULL && b->module != NULL &&
           strcmp(b->module, x->at.source->path) == 0;
}

// ---- other files ----

// Why a path must not be imported, or NULL.
static const char *path_error(const char *path) {
    if (*path == '\0')
        return "the path is empty";
    if (*path == '/')
        return "a path must be relative to this file";
    for (const char *p = path; p != NULL; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return "a path must not leave this file's directory";
    }
    return NULL;
}

// The path without "." and empty parts: one file has one name.
static const char *normalized_path(Expansion *e, const char *path) {
    char *all = arena_string(e->arena, path, strlen(path)), *to = all;
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        bool none = length == 0 || (length == 1 && *path == '.');
        length += path[length] == '/';
        if (!none) {
            memcpy(to, path, length);
            to += length;
        }
        path += length;
    }
    *to = '\0';
    return all;
}

// A path relative to a file.  A path that begins with std/ is the compiler's,
// so that a folder of that name never shadows it.
static const char *resolve(Expansion *e, const Source *s, const char *path) {
    const char *all =
        arena_format(e->arena, "%.*s%s", (int)folder_length(s->path), s->path,
                     normalized_path(e, path));
    if (is_std(all))
        return arena_format(e->arena, "./%s", all);
    return *all != '\0' ? all : ".";
}

// Whether path, with links followed, is below the directory of s.
static bool is_below(Expansion *e, const Source *s, const char *path) {
    char *real = realpath(path, NULL);
    char *base = realpath(resolve(e, s, ""), NULL);
    size_t length = base ? strlen(base) : 0;
    bool below = real && base && strncmp(real, base, length) == 0 &&
                 (real[length] == '/' || (length == 1 && *base == '/'));
    free(real);
    free(base);
    return below;
}

static void report_export(Expansion *e, const Import *i, const Name *n,
                          Nearest near) {
    Diagnostic *d = report(e->diags, D_import, n->at, "`%s` defines no `%s`",
                           i->path, n->name);
    if (builtin_find(n->name) != NULL)
        diag_note(d, "`%s` is part of the language and needs no import",
                  n->name);
    else
        nearest_note(&near, d);
}

static Module *module_find(Expansion *e, const char *path, int *count) {
    *count = 0;
    for (Module *m = e->modules; m != NULL; m = m->next, ++*count)
        if (strcmp(m->path, path) == 0)
            return m;
    return NULL;
}

static Source *read_import(Expansion *e, const Import *i, const char *path) {
    if (is_std(i->path))
        return read_std(e, i);
    const char *why = path_error(i->path);
    Source *s = NULL;
    if (why == NULL)
        s = source_read(e->arena, path, MAX_FILE, &why);
    if (s != NULL && !is_below(e, i->at.source, path)) {
        s = NULL;
        why = "it is a link out of this file's directory";
    }
    if (s == NULL)
        report(e->diags, D_import, i->at, "cannot import `%s`: %s", i->path,
               why);
    return s;
}

// Expands the file of a new module, with the interpreter's state saved.
static void module_load(Expansion *e, Module *m) {
    Binding *scope = e->scope;
    const File *file = e->file;
    int errors = e->diags->errors;
    e->import_depth++;
    e->importing = m;
    m->file = expand_file(e, m->source);
    m->names = e->scope;
    m->failed = e->diags->errors > errors;
    e->importing = m->importer;
    e->import_depth--;
    e->scope = scope;
    e->file = file;
}

// The chain of imports from m to the current file: "a.net -> b.net".
static const char *chain_from(Expansion *e, const Module *m) {
    const char *chain = e->importing->path;
    for (const Module *by = e->importing; by != m; by = by->importer)
        chain = arena_format(e->arena, "%s -> %s", by->importer->path, chain);
    return chain;
}

// Import i in the current file leads back to m.
static void report_cycle(Expansion *e, const Import *i, const Module *m) {
    Diagnostic *d =
        report(e->diags, D_import_cycle, i->at,
               "files import one another: %s -> %s", chain_from(e, m), m->path);
    if (m == e->importing) {
        diag_label(d, "this file imports itself");
        return;
    }
    diag_label(d, "and this leads back to `%s`", m->path);
    for (const Module *by = e->importing; by != m; by = by->importer)
        diag_secondary(d, by->at, "`%s` is imported here", by->path);
}

// The module that an import names; NULL after a report.
static Module *module_of(Expansion *e, const Import *i) {
    const char *path =
        is_std(i->path) ? i->path : resolve(e, i->at.source, i->path);
    for (const Module *m = e->importing; m != NULL; m = m->importer)
        if (strcmp(m->path, path) == 0) {
            report_cycle(e, i, m);
            return NULL;
        }
    int count;
    Module *m = module_find(e, path, &count);
    if (m != NULL)
        return m;
    if (count >= MAX_IMPORTS || e->import_depth >= MAX_IMPORT_DEPTH) {
        report(e->diags, D_import, i->at,
               "there are more than %d imports, or more than %d inside one "
               "another",
               MAX_IMPORTS, MAX_IMPORT_DEPTH);
        return NULL;
    }
    Source *s = read_import(e, i, path);
    if (s == NULL)
        return NULL;
    m = ARENA_NEW(e->arena, Module);
    *m = (Module){.path = path,
                  .source = s,
                  .importer = e->importing,
                  .at = i->at,
                  .next = e->modules};
    e->modules = m;
    module_load(e, m);
    return m;
}

static void import_names(Expansion *e, const Import *i) {
    const Module *m = module_of(e, i);
    for (int k = 0; k < i->num_names; k++) {
        const Name *n = &i->name[k];
        Value v = value_poison();
        Nearest near = nearest_to(n->name);
        const Binding *b = m ? m->names : NULL;
        for (; b != NULL && b->name != n->name; b = b->next, e->work++)
            nearest_offer(&near, b->name);
        if (b != NULL)
            v = b->value;
        else if (m != NULL && !m->failed)
            report_export(e, i, n, near);
        scope_bind(e, n->name, v);
    }
}

// ---- a file's top level ----

static void bind_native(Expansion *e, const Function *f) {
    scope_bind(e, f->name,
               (Value){.kind = VALUE_BUILTIN,
                       .at = f->name_at,
                       .builtin = builtin_find(f->name)});
}

static void expand_item(Expansion *e, const Item *item) {
    switch (item->kind) {
    case ITEM_IMPORT:
        import_names(e, &item->import);
        return;
    case ITEM_LET:
        targets_bind(e, &item->let, scope_bind);
        return;
    case ITEM_FUNCTION:
    case ITEM_MODEL:
        if (function_is_native(item->function))
            bind_native(e, item->function);
        else
            scope_bind(e, item->function->name,
                       (Value){.kind = VALUE_FUNCTION,
                               .at = item->function->name_at,
                               .closure = {item->function, e->scope}});
        return;
    case ITEM_TRAIN:
        return;
    }
}

static File *expand_file(Expansion *e, const Source *s) {
    int errors = e->diags->errors;
    File *f = parse(e->arena, e->atoms, s, e->diags);
    e->file = f;
    e->scope = NULL;
    if (e->diags->errors > errors)
        return f;
    names_check(e->arena, f, NAMES_ONCE, e->diags);
    for (int i = 0; i < f->count && !e->stopped; i++)
        expand_item(e, &f->item[i]);
    return f;
}

// Whether a file other than m's has the same name without its folder; s is the
// main file.
static bool shares_name(const Expansion *e, const Module *m, const Source *s) {
    const char *name = m->path + folder_length(m->path);
    bool shared = strcmp(name, s->name) == 0;
    for (const Module *other = e->modules; other != NULL; other = other->next)
        shared |= other != m &&
                  strcmp(name, other->path + folder_length(other->path)) == 0;
    return shared;
}

// Files of equal name get their folders, relative to the main file's.
static void files_name(Expansion *e, const Source *s) {
    e->main_folder = folder_length(resolve(e, s, ""));
    for (Module *m = e->modules; m != NULL; m = m->next)
        if (shares_name(e, m, s))
            m->source->name =
                m->source->path + (is_std(m->path) ? 0 : e->main_folder);
}

File *file_expand(Expansion *e, const Source *s) {
    e->importing = ARENA_NEW(e->arena, Module);
    *e->importing = (Module){.path = resolve(e, s, s->name)};
    File *f = expand_file(e, s);
    e->importing = NULL;
    files_name(e, s);
    return f;
}

const ImportedFile *files_imported(Expansion *e, int *count) {
    ImportedFile *list = ARENA_ARRAY(e->arena, MAX_IMPORTS, ImportedFile);
    *count = 0;
    for (const Module *m = e->modules; m != NULL; m = m->next)
        if (!is_std(m->path))
            list[(*count)++] = (ImportedFile){m->path, m->source->name,
                                              m->path + e->main_folder};
    return list;
}

void files_check(Expansion *e, NameCheck check) {
    names_check(e->arena, e->file, check, e->diags);
    for (const Module *m = e->modules; m != NULL; m = m->next)
        names_check(e->arena, m->file, check, e->diags);
}
