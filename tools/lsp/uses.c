// Answers of the language server about the uses of a name.
#include "tools/lsp/lsp.h"

void references_add(Arena *a, Text *t, const Document *d, uint32_t offset,
                    bool with_definition) {
    NameUses uses = frontend_uses(a, d->source, offset);
    int count = 0;
    text_add(t, "[");
    for (int i = 0; i < uses.count; i++) {
        if (uses.at[i].start == uses.definition && !with_definition)
            continue;
        text_add(t, "%s{\"uri\": ", count++ > 0 ? ", " : "");
        json_string(t, d->uri);
        text_add(t, ", \"range\": ");
        range_add(t, uses.at[i]);
        text_add(t, "}");
    }
    text_add(t, "]");
}

void highlights_add(Arena *a, Text *t, const Document *d, uint32_t offset) {
    NameUses uses = frontend_uses(a, d->source, offset);
    text_add(t, "[");
    for (int i = 0; i < uses.count; i++) {
        text_add(t, "%s{\"range\": ", i > 0 ? ", " : "");
        range_add(t, uses.at[i]);
        text_add(t, "}");
    }
    text_add(t, "]");
}

void rename_range_add(Arena *a, Text *t, const Document *d, uint32_t offset) {
    NameUses uses = frontend_uses(a, d->source, offset);
    if (uses.count == 0 || uses.imported)
        text_add(t, "null");
    else
        range_add(t, word_at(d->source, offset));
}

const char *rename_add(Arena *a, Text *t, const Document *d, uint32_t offset,
                       const char *name) {
    NameUses uses = frontend_uses(a, d->source, offset);
    if (uses.count == 0)
        return "this is no name that the file defines";
    if (uses.imported)
        return "another file defines this name";
    if (name == NULL || !frontend_name_is_free(a, d->source, name))
        return arena_format(a, "`%s` is no name, or one in use",
                            name != NULL ? name : "");
    text_add(t, "{\"changes\": {");
    json_string(t, d->uri);
    text_add(t, ": [");
    for (int i = 0; i < uses.count; i++) {
        text_add(t, i > 0 ? ", " : "");
        edit_add(t, uses.at[i], name);
    }
    text_add(t, "]}}");
    return NULL;
}
