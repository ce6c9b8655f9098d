// The parts of sinter lsp, a language server for model files: LSP 3.17 over
// standard input and output.
#ifndef TOOLS_LSP_LSP_H
#define TOOLS_LSP_LSP_H

#include "frontend/frontend.h"
#include "runtime/runtime.h"
#include "tools/tools.h"

// A text that an editor has open.  Its arena lives until its next change.
typedef struct {
    char *uri, *path;
    Arena *arena;
    Source *source;
    Diagnostics diags;
    const Program *program;   // NULL: it has errors
    const DefinedName *names; // NULL: it has syntax errors
    int num_names;
} Document;

// ---- message.c: JSON-RPC ----

// The member of that name of the object at j; false if there is none.
bool member(RtJson j, const char *name, RtJson *value);
// A member of a member, by a path such as "textDocument.uri".
bool member_at(RtJson j, const char *path, RtJson *value);
char *member_text(Arena *a, RtJson j, const char *path); // NULL: none
int64_t member_count(RtJson j, const char *path);        // -1: none

// A body of a message from f, which the caller frees; NULL at its end.
char *message_read(FILE *f, size_t *length);
void message_write(FILE *f, const Text *body);

// ---- document.c ----

// Replaces the text, compiles it as far as it goes, and finds its names.
void document_set(Document *d, const char *text, size_t length);
void document_free(Document *d);

// A position of the protocol, whose columns are UTF-16 units, and an offset.
uint32_t document_offset(const Source *s, int64_t line, int64_t column);
void range_add(Text *t, Span at); // {"start": ..., "end": ...}
// The name at an offset; "" if there is none.
Span word_at(const Source *s, uint32_t offset);
char *span_text(Arena *a, Span s);
// file:///a%20b as /a b, and back.
char *uri_path(const char *uri);
char *path_uri(Arena *a, const char *path);

// ---- features.c: each adds the result of a request ----

void diagnostics_add(Arena *a, Text *t, const Document *d);
void hover_add(Arena *a, Text *t, const Document *d, uint32_t offset);
void definition_add(Arena *a, Text *t, const Document *d, uint32_t offset);
void symbols_add(Text *t, const Document *d);
void completion_add(Arena *a, Text *t, const Document *d, uint32_t offset);
void hints_add(Arena *a, Text *t, const Document *d, int first, int last);
void actions_add(Arena *a, Text *t, const Document *d, uint32_t from,
                 uint32_t to);
void formatting_add(Arena *a, Text *t, const Document *d);
void edit_add(Text *t, Span at, const char *text); // a TextEdit

// ---- uses.c: the uses of the name at an offset ----

void references_add(Arena *a, Text *t, const Document *d, uint32_t offset,
                    bool with_definition);
void highlights_add(Arena *a, Text *t, const Document *d, uint32_t offset);
void rename_range_add(Arena *a, Text *t, const Document *d, uint32_t offset);
// Why the name cannot be changed to `name`; NULL: it was added.
const char *rename_add(Arena *a, Text *t, const Document *d, uint32_t offset,
                       const char *name);

#endif
