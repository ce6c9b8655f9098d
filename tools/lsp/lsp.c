// sinter lsp: the server's loop, which dispatches requests of an editor.
#define _POSIX_C_SOURCE 200809L

#include "tools/lsp/lsp.h"
#include "base/exits.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DOCUMENTS = 256 };

typedef struct {
    FILE *in, *out;
    Document document[MAX_DOCUMENTS];
    int num_documents;
    bool shut_down;
} Server;

// ---- documents ----

static Document *document_find(Server *s, const char *uri) {
    for (int i = 0; uri != NULL && i < s->num_documents; i++)
        if (strcmp(s->document[i].uri, uri) == 0)
            return &s->document[i];
    return NULL;
}

// Publishes the diagnostics of a document; none of one that is closed.
static void publish(Server *s, Arena *a, const char *uri, const Document *d) {
    Text t = text_new(a);
    text_add(&t, "{\"jsonrpc\": \"2.0\", \"method\": "
                 "\"textDocument/publishDiagnostics\", \"params\": {\"uri\": ");
    json_string(&t, uri);
    text_add(&t, ", \"diagnostics\": ");
    if (d != NULL)
        diagnostics_add(a, &t, d);
    else
        text_add(&t, "[]");
    text_add(&t, "}}");
    message_write(s->out, &t);
}

static void text_set(Server *s, Arena *a, const char *uri, const char *text) {
    Document *d = document_find(s, uri);
    if (uri == NULL || text == NULL ||
        (d == NULL && s->num_documents == MAX_DOCUMENTS))
        return;
    if (d == NULL) {
        Document own = {.uri = strdup(uri), .path = uri_path(uri)};
        if (own.uri == NULL || own.path == NULL) {
            document_free(&own);
            return;
        }
        d = &s->document[s->num_documents++];
        *d = own;
    }
    document_set(d, text, strlen(text));
    publish(s, a, d->uri, d);
}

static void document_close(Server *s, Arena *a, const char *uri) {
    Document *d = document_find(s, uri);
    if (d == NULL)
        return;
    document_free(d);
    *d = s->document[--s->num_documents];
    publish(s, a, uri, NULL);
}

// The last of the changes has the whole text.
static void change(Server *s, Arena *a, RtJson params) {
    RtJson list, last = {.at = NULL};
    if (!member_at(params, "contentChanges", &list) ||
        !rt_json_take(&list, '['))
        return;
    for (bool more = !rt_json_accept(&list, ']'); more;) {
        last = list;
        if (!rt_json_skip(&list))
            return;
        more = rt_json_accept(&list, ',');
    }
    if (last.at != NULL)
        text_set(s, a, member_text(a, params, "textDocument.uri"),
                 member_text(a, last, "text"));
}

// ---- requests ----

static void capabilities_add(Text *t) {
    text_add(t, "{\"capabilities\": {\"positionEncoding\": \"utf-16\", "
                "\"textDocumentSync\": {\"openClose\": true, \"change\": 1}, "
                "\"hoverProvider\": true, \"definitionProvider\": true, "
                "\"documentSymbolProvider\": true, "
                "\"documentFormattingProvider\": true, "
                "\"referencesProvider\": true, "
                "\"documentHighlightProvider\": true, "
                "\"renameProvider\": {\"prepareProvider\": true}, "
                "\"codeActionProvider\": true, \"inlayHintProvider\": true, "
                "\"completionProvider\": {}}, "
                "\"serverInfo\": {\"name\": \"sinter\", "
                "\"version\": \"" SINTER_VERSION "\"}}");
}

static uint32_t offset_of(const Document *d, RtJson params, const char *line,
                          const char *column) {
    return document_offset(d->source, member_count(params, line),
                           member_count(params, column));
}

// Why a request has no result.
typedef struct {
    enum { METHOD_NOT_FOUND = -32601, REQUEST_FAILED = -32803 } code;
    const char *text;
} Refusal;

// Adds the result of a request about a name; false: *why says what is wrong, or
// has no text for an unknown method.
static bool answer_name(Arena *a, Text *t, const Document *d,
                        const char *method, RtJson p, uint32_t at,
                        Refusal *why) {
    RtJson with;
    if (strcmp(method, "references") == 0) {
        bool without = member_at(p, "context.includeDeclaration", &with) &&
                       rt_json_accept(&with, 'f');
        references_add(a, t, d, at, !without);
    } else if (strcmp(method, "documentHighlight") == 0)
        highlights_add(a, t, d, at);
    else if (strcmp(method, "prepareRename") == 0)
        rename_range_add(a, t, d, at);
    else if (strcmp(method, "rename") == 0)
        *why = (Refusal){REQUEST_FAILED,
                         rename_add(a, t, d, at, member_text(a, p, "newName"))};
    else
        return false;
    return why->text == NULL;
}

// Adds the result of a request about a document; false as answer_name's.
static bool answer(Arena *a, Text *t, const Document *d, const char *method,
                   RtJson p, Refusal *why) {
    uint32_t at = offset_of(d, p, "position.line", "position.character");
    if (strcmp(method, "hover") == 0)
        hover_add(a, t, d, at);
    else if (strcmp(method, "definition") == 0)
        definition_add(a, t, d, at);
    else if (strcmp(method, "documentSymbol") == 0)
        symbols_add(t, d);
    else if (strcmp(method, "completion") == 0)
        completion_add(a, t, d, at);
    else if (strcmp(method, "formatting") == 0)
        formatting_add(a, t, d);
    else if (strcmp(method, "inlayHint") == 0)
        hints_add(a, t, d, (int)member_count(p, "range.start.line") + 1,
                  (int)member_count(p, "range.end.line") + 1);
    else if (strcmp(method, "codeAction") == 0)
        actions_add(
            a, t, d,
            offset_of(d, p, "range.start.line", "range.start.character"),
            offset_of(d, p, "range.end.line", "range.end.character"));
    else
        return answer_name(a, t, d, method, p, at, why);
    return true;
}

static bool result_add(Server *s, Arena *a, Text *t, const char *method,
                       RtJson params, Refusal *why) {
    static const char prefix[] = "textDocument/";
    if (strcmp(method, "initialize") == 0) {
        capabilities_add(t);
        return true;
    }
    if (strcmp(method, "shutdown") == 0) {
        s->shut_down = true;
        text_add(t, "null");
        return true;
    }
    if (strncmp(method, prefix, sizeof prefix - 1) != 0)
        return false;
    const Document *d =
        document_find(s, member_text(a, params, "textDocument.uri"));
    if (d != NULL)
        return answer(a, t, d, method + sizeof prefix - 1, params, why);
    text_add(t, "null");
    return true;
}

// A request has a number or a string as its id, which the answer repeats.
static void request(Server *s, Arena *a, const char *method, RtJson id,
                    RtJson params) {
    RtJson end = id;
    Refusal why = {0};
    Text t = text_new(a), result = text_new(a);
    if (!rt_json_skip(&end))
        return;
    text_add(&t, "{\"jsonrpc\": \"2.0\", \"id\": ");
    text_bytes(&t, id.at, (size_t)(end.at - id.at));
    if (result_add(s, a, &result, method, params, &why)) {
        text_add(&t, ", \"result\": ");
        text_bytes(&t, text_string(&result), result.length);
    } else {
        if (why.text == NULL)
            why = (Refusal){METHOD_NOT_FOUND,
                            arena_format(a, "no method %s", method)};
        text_add(&t, ", \"error\": {\"code\": %d, \"message\": ", why.code);
        json_string(&t, why.text);
        text_add(&t, "}");
    }
    text_add(&t, "}");
    message_write(s->out, &t);
}

static void notify(Server *s, Arena *a, const char *method, RtJson params) {
    const char *uri = member_text(a, params, "textDocument.uri");
    if (strcmp(method, "textDocument/didOpen") == 0)
        text_set(s, a, uri, member_text(a, params, "textDocument.text"));
    else if (strcmp(method, "textDocument/didChange") == 0)
        change(s, a, params);
    else if (strcmp(method, "textDocument/didClose") == 0)
        document_close(s, a, uri);
}

// False after the message that ends the server.
static bool message_take(Server *s, Arena *a, const char *body, size_t length) {
    RtJson j = {.at = body, .end = body + length}, id, params;
    const char *method = member_text(a, j, "method");
    if (method == NULL)
        return true; // an answer, or nonsense
    if (strcmp(method, "exit") == 0)
        return false;
    if (!member(j, "params", &params))
        params = (RtJson){.at = "{}", .end = NULL};
    if (params.end == NULL)
        params.end = params.at + 2;
    if (member(j, "id", &id))
        request(s, a, method, id, params);
    else
        notify(s, a, method, params);
    return true;
}

int lsp_command(Arena *a, const Arguments *arguments) {
    Server *s = ARENA_NEW(a, Server);
    size_t length;
    bool goes_on = true;
    (void)arguments;
    *s = (Server){.in = stdin, .out = stdout};
    while (goes_on) {
        char *body = message_read(s->in, &length);
        if (body == NULL)
            break;
        Arena *own = arena_new();
        goes_on = message_take(s, own, body, length);
        arena_free(own);
        free(body);
    }
    while (s->num_documents > 0)
        document_free(&s->document[--s->num_documents]);
    return s->shut_down ? EXIT_GOOD : EXIT_MODEL;
}
