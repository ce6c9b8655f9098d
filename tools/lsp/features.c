// Answers of the language server about a document.
#include "tools/layers.h"
#include "tools/lsp/lsp.h"

#include <inttypes.h>
#include <string.h>

// The document's own place of a span, or its first line for another file's.
static Span span_in(const Document *d, Span at) {
    bool own = at.source != NULL && at.end <= d->source->length &&
               strcmp(at.source->path, d->path) == 0;
    return own ? (Span){d->source, at.start, at.end} : (Span){d->source, 0, 0};
}

// Whether the paths of imported files are those of files: std/ is none.
static bool is_file(const Source *s) {
    return s != NULL && std_text(s->path) == NULL;
}

// ---- diagnostics ----

static void related_add(Arena *a, Text *t, const Diagnostic *d) {
    int count = 0;
    text_add(t, ", \"relatedInformation\": [");
    for (int i = 0; i < d->num_labels; i++) {
        const Label *l = &d->label[i];
        if (!is_file(l->at.source) || *l->text == '\0')
            continue;
        text_add(t, "%s{\"location\": {\"uri\": ", count++ > 0 ? ", " : "");
        json_string(t, path_uri(a, l->at.source->path));
        text_add(t, ", \"range\": ");
        range_add(t, l->at);
        text_add(t, "}, \"message\": ");
        json_string(t, l->text);
        text_add(t, "}");
    }
    text_add(t, "]");
}

// The message, its label and its notes in lines.
static const char *message_of(Arena *a, const Document *doc,
                              const Diagnostic *d) {
    Text t = text_new(a);
    const Source *s = d->label[0].at.source;
    text_add(&t, "%s", d->message);
    if (*d->label[0].text != '\0')
        text_add(&t, "\n%s", d->label[0].text);
    if (s != NULL && strcmp(s->path, doc->path) != 0)
        text_add(&t, "\nin %s, line %d", s->path,
                 source_line_of(s, d->label[0].at.start));
    for (int i = 0; i < d->num_notes; i++)
        text_add(&t, "\n%s", d->note[i]);
    return text_string(&t);
}

void diagnostics_add(Arena *a, Text *t, const Document *d) {
    text_add(t, "[");
    for (int i = 0; i < d->diags.count; i++) {
        const Diagnostic *own = d->diags.list[i];
        text_add(t, "%s{\"range\": ", i > 0 ? ", " : "");
        range_add(t, span_in(d, own->label[0].at));
        text_add(t, ", \"severity\": %d, \"source\": \"sinter\", \"code\": ",
                 own->severity == DIAG_ERROR ? 1 : 2);
        json_string(t, own->code);
        text_add(t, ", \"message\": ");
        json_string(t, message_of(a, d, own));
        related_add(a, t, own);
        text_add(t, "}");
    }
    text_add(t, "]");
}

// ---- layers of a line ----

static bool is_on(const Document *d, const Layer *l, int line) {
    return l->site.line == line && l->site.file != NULL &&
           strcmp(l->site.file, d->source->name) == 0;
}

static void layers_add(Arena *a, Text *t, const Document *d, int line) {
    Layers l = layers_of(a, d->program);
    bool any = false;
    for (int i = 0; i < l.count; i++) {
        const Layer *own = &l.layer[i];
        if (!is_on(d, own, line))
            continue;
        if (!any)
            text_add(t, "| layer | output | parameters | flops |\n"
                        "|---|---|---:|---:|\n");
        any = true;
        text_add(t, "| %s | %s | %" PRId64 " | %" PRId64 " |\n", own->path,
                 layer_shape(a, own), own->parameters, own->flops);
    }
}

void hints_add(Arena *a, Text *t, const Document *d, int first, int last) {
    int count = 0;
    text_add(t, "[");
    Layers l = d->program != NULL ? layers_of(a, d->program) : (Layers){0};
    const Layer **of = ARENA_ARRAY(a, d->source->num_lines + 2, const Layer *);
    for (int i = 0; i < l.count; i++) {
        int line = l.layer[i].site.line;
        if (line > 0 && line <= d->source->num_lines &&
            is_on(d, &l.layer[i], line))
            of[line] = &l.layer[i];
    }
    for (int line = 1; line <= d->source->num_lines; line++) {
        size_t length;
        if (of[line] == NULL || line < first || line > last)
            continue;
        source_line(d->source, line, &length);
        uint32_t end = d->source->line_start[line - 1] + (uint32_t)length;
        Text range = text_new(a);
        range_add(&range, (Span){d->source, end, end});
        const char *place = strchr(text_string(&range), ':') + 2;
        text_add(t,
                 "%s{\"position\": %.*s, \"label\": ", count++ > 0 ? ", " : "",
                 (int)(strchr(place, '}') + 1 - place), place);
        json_string(t, layer_shape(a, of[line]));
        text_add(t, ", \"paddingLeft\": true}");
    }
    text_add(t, "]");
}

// ---- names ----

static const DefinedName *name_find(const DefinedName *list, int count,
                                    const char *name) {
    for (int i = 0; i < count; i++)
        if (list[i].kind != NAME_TRAIN && strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static const char *form_of_builtin(Arena *a, const char *name) {
    const char *form, *other;
    for (int i = 0; (other = frontend_builtin(a, i, &form)) != NULL; i++)
        if (strcmp(other, name) == 0)
            return form;
    return NULL;
}

// The file that an import names, beside the document.
static Source *import_read(Arena *a, const Document *d, const char *path) {
    const char *slash = strrchr(d->path, '/'), *why;
    int folder = slash != NULL ? (int)(slash - d->path) + 1 : 0;
    if (std_text(path) != NULL)
        return NULL;
    return source_read(a, arena_format(a, "%.*s%s", folder, d->path, path),
                       MODEL_BYTES, &why);
}

// The definition of a name, here or in the file that it is imported from, whose
// URI is then *uri; NULL: there is none.
static const DefinedName *definition_find(Arena *a, const Document *d,
                                          const char *word, const char **uri) {
    int count = 0;
    const DefinedName *name =
        d->names != NULL ? name_find(d->names, d->num_names, word) : NULL;
    *uri = d->uri;
    if (name == NULL || name->kind != NAME_IMPORT)
        return name;
    Source *s = import_read(a, d, name->path);
    const DefinedName *list = s != NULL ? frontend_names(a, s, &count) : NULL;
    const DefinedName *there = name_find(list, count, word);
    if (there != NULL)
        *uri = path_uri(a, s->path);
    return there != NULL ? there : name;
}

// ---- hover ----

void hover_add(Arena *a, Text *t, const Document *d, uint32_t offset) {
    Text said = text_new(a);
    const char *word = span_text(a, word_at(d->source, offset));
    const char *uri;
    const DefinedName *name = definition_find(a, d, word, &uri);
    const char *form = name != NULL && name->kind != NAME_IMPORT
                           ? name->form
                           : form_of_builtin(a, word);
    for (int i = 0; i < d->diags.count; i++) {
        Span at = span_in(d, d->diags.list[i]->label[0].at);
        const char *page = diagnostic_page(a, d->diags.list[i]->code);
        if (offset >= at.start && offset <= at.end && at.end > 0 && page)
            text_add(&said, "%s\n", page);
    }
    if (form != NULL)
        text_add(&said, "```net\n%s\n```\n", form);
    if (d->program != NULL)
        layers_add(a, &said, d, source_line_of(d->source, offset));
    if (said.length == 0) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{\"contents\": {\"kind\": \"markdown\", \"value\": ");
    json_string(t, text_string(&said));
    text_add(t, "}}");
}

// ---- definition ----

void definition_add(Arena *a, Text *t, const Document *d, uint32_t offset) {
    const char *word = span_text(a, word_at(d->source, offset));
    const char *uri;
    const DefinedName *name = definition_find(a, d, word, &uri);
    if (name == NULL) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{\"uri\": ");
    json_string(t, uri);
    text_add(t, ", \"range\": ");
    range_add(t, name->at);
    text_add(t, "}");
}

void symbols_add(Text *t, const Document *d) {
    enum { CLASS = 5, FUNCTION = 12, CONSTANT = 14, EVENT = 24 };
    static const int kind[] = {[NAME_FUNCTION] = FUNCTION,
                               [NAME_MODEL] = CLASS,
                               [NAME_TRAIN] = EVENT,
                               [NAME_LET] = CONSTANT};
    int count = 0;
    text_add(t, "[");
    for (int i = 0; d->names != NULL && i < d->num_names; i++) {
        const DefinedName *n = &d->names[i];
        if (n->kind == NAME_IMPORT)
            continue;
        bool train = n->kind == NAME_TRAIN;
        text_add(t, "%s{\"name\": ", count++ > 0 ? ", " : "");
        json_string(
            t, arena_format(t->arena, "%s%s", train ? "train " : "", n->name));
        text_add(t, ", \"kind\": %d, \"selectionRange\": ", kind[n->kind]);
        range_add(t, n->at);
        text_add(t, ", \"range\": ");
        range_add(t, span_join(n->at, n->item));
        text_add(t, "}");
    }
    text_add(t, "]");
}

// ---- completion ----

static void item_add(Text *t, int *count, const char *name, int kind,
                     const char *detail) {
    text_add(t, "%s{\"label\": ", (*count)++ > 0 ? ", " : "");
    json_string(t, name);
    text_add(t, ", \"kind\": %d", kind);
    if (detail != NULL)
        json_text(t, "detail", detail);
    text_add(t, "}");
}

// Whether an offset is in a train block: no other item begins after it.
static bool in_train(const Document *d, uint32_t offset) {
    static const char *const items[] = {"fn ", "model ", "import ", "let "};
    for (int line = source_line_of(d->source, offset); line > 0; line--) {
        size_t length;
        const char *text = source_line(d->source, line, &length);
        if (strncmp(text, "train ", 6) == 0)
            return true;
        for (size_t i = 0; i < sizeof items / sizeof *items; i++)
            if (strncmp(text, items[i], strlen(items[i])) == 0)
                return false;
    }
    return false;
}

void completion_add(Arena *a, Text *t, const Document *d, uint32_t offset) {
    enum { FUNCTION = 3, VARIABLE = 6, CLASS = 7, PROPERTY = 10, KEYWORD = 14 };
    static const char *const keywords[] = {
        "fn",   "model", "train", "import", "let",   "for", "in", "if", "else",
        "with", "as",    "every", "true",   "false", "and", "or", "not"};
    int count = 0;
    const char *name, *form;
    text_add(t, "[");
    for (int i = 0; in_train(d, offset) && (name = frontend_key(i)); i++)
        item_add(t, &count, name, PROPERTY, NULL);
    for (int i = 0; d->names != NULL && i < d->num_names; i++)
        if (d->names[i].kind != NAME_TRAIN)
            item_add(t, &count, d->names[i].name,
                     d->names[i].kind == NAME_MODEL ? CLASS
                     : d->names[i].kind == NAME_LET ? VARIABLE
                                                    : FUNCTION,
                     d->names[i].form);
    for (int i = 0; (name = frontend_builtin(a, i, &form)) != NULL; i++)
        item_add(t, &count, name, FUNCTION, form);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        item_add(t, &count, keywords[i], KEYWORD, NULL);
    text_add(t, "]");
}

// ---- changes ----

void edit_add(Text *t, Span at, const char *text) {
    text_add(t, "{\"range\": ");
    range_add(t, at);
    text_add(t, ", \"newText\": ");
    json_string(t, text);
    text_add(t, "}");
}

// The name that a note suggests: did you mean `conv`?
static const char *suggested(Arena *a, const Diagnostic *d) {
    static const char begins[] = "did you mean `";
    for (int i = 0; i < d->num_notes; i++) {
        const char *at = strstr(d->note[i], begins);
        if (at == NULL)
            continue;
        at += sizeof begins - 1;
        return arena_string(a, at, strcspn(at, "`"));
    }
    return NULL;
}

void actions_add(Arena *a, Text *t, const Document *d, uint32_t from,
                 uint32_t to) {
    int count = 0;
    text_add(t, "[");
    for (int i = 0; i < d->diags.count; i++) {
        Span at = span_in(d, d->diags.list[i]->label[0].at);
        const char *name = suggested(a, d->diags.list[i]);
        if (name == NULL || at.start > to || at.end < from)
            continue;
        text_add(t, "%s{\"title\": ", count++ > 0 ? ", " : "");
        json_string(t, arena_format(a, "Change to `%s`", name));
        text_add(t, ", \"kind\": \"quickfix\", \"isPreferred\": true, "
                    "\"edit\": {\"changes\": {");
        json_string(t, d->uri);
        text_add(t, ": [");
        edit_add(t, at, name);
        text_add(t, "]}}}");
    }
    text_add(t, "]");
}

void formatting_add(Arena *a, Text *t, const Document *d) {
    Text formatted = text_new(a);
    Diagnostics diags = diag_new(a);
    const Source *s = d->source;
    bool good =
        frontend_format(a, d->path, s->text, s->length, &formatted, &diags);
    text_add(t, "[");
    if (good && (formatted.length != s->length ||
                 memcmp(text_string(&formatted), s->text, s->length) != 0))
        edit_add(t, (Span){s, 0, (uint32_t)s->length}, text_string(&formatted));
    text_add(t, "]");
}
