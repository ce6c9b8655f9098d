// Messages of JSON-RPC, each behind a header with its length.
#include "tools/lsp/lsp.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGE = 64 << 20 };

// ---- members ----

bool member(RtJson j, const char *name, RtJson *value) {
    char key[64];
    if (!rt_json_take(&j, '{'))
        return false;
    for (bool more = !rt_json_accept(&j, '}'); more;) {
        RtJson before = j;
        bool known = rt_json_string(&j, key, sizeof key);
        if (!known) { // no name is as long
            j = before;
            known = rt_json_skip(&j);
            key[0] = '\0';
        }
        if (!known || !rt_json_take(&j, ':'))
            return false;
        *value = j;
        if (strcmp(key, name) == 0)
            return true;
        if (!rt_json_skip(&j))
            return false;
        more = rt_json_accept(&j, ',');
        if (!more && !rt_json_take(&j, '}'))
            return false;
    }
    return false;
}

bool member_at(RtJson j, const char *path, RtJson *value) {
    *value = j;
    while (*path != '\0') {
        char name[64];
        size_t length = strcspn(path, ".");
        if (length >= sizeof name)
            return false;
        memcpy(name, path, length);
        name[length] = '\0';
        path += length + (path[length] == '.');
        if (!member(*value, name, value))
            return false;
    }
    return true;
}

char *member_text(Arena *a, RtJson j, const char *path) {
    RtJson value;
    if (!member_at(j, path, &value))
        return NULL;
    RtJson end = value;
    if (!rt_json_skip(&end))
        return NULL;
    size_t room = (size_t)(end.at - value.at) + 1;
    char *text = ARENA_ARRAY(a, room, char);
    return rt_json_string(&value, text, room) ? text : NULL;
}

int64_t member_count(RtJson j, const char *path) {
    RtJson value;
    uint64_t count;
    bool good = member_at(j, path, &value) && rt_json_count(&value, &count);
    return good && count <= INT32_MAX ? (int64_t)count : -1;
}

// ---- messages ----

// Reads the lines of a header; -1 at the end of the file.
static int64_t header_read(FILE *f) {
    char line[256];
    int64_t length = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (strcmp(line, "\r\n") == 0 || strcmp(line, "\n") == 0)
            return length;
        if (strncmp(line, "Content-Length:", 15) == 0)
            length = strtoll(line + 15, NULL, 10);
    }
    return -1;
}

char *message_read(FILE *f, size_t *length) {
    int64_t bytes = header_read(f);
    if (bytes < 0 || bytes > MAX_MESSAGE)
        return NULL;
    char *body = malloc((size_t)bytes + 1);
    if (body == NULL || fread(body, 1, (size_t)bytes, f) != (size_t)bytes) {
        free(body);
        return NULL;
    }
    body[bytes] = '\0';
    *length = (size_t)bytes;
    return body;
}

void message_write(FILE *f, const Text *body) {
    fprintf(f, "Content-Length: %zu\r\n\r\n", body->length);
    fwrite(text_string(body), 1, body->length, f);
    fflush(f);
}
