// Result: reads an output of compare --json or bench --json.  A key is found by
// its text: sinter writes it before any other text with its name.
#include "tools/compare/result.h"
#include "base/exits.h"
#include "base/source.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 };

static const char *text_behind(Arena *a, const char *text, const char *key) {
    const char *word = arena_format(a, "\"%s\": ", key);
    const char *at = strstr(text, word);
    return at ? at + strlen(word) : NULL;
}

static const char *string_behind(Arena *a, const char *text, const char *key) {
    const char *at = text_behind(a, text, key);
    if (at == NULL || *at != '"')
        return "";
    return arena_string(a, at + 1, strcspn(at + 1, "\""));
}

static long number_behind(Arena *a, const char *text, const char *key) {
    const char *at = text_behind(a, text, key);
    return at ? strtol(at, NULL, 10) : 0;
}

int result_read(Arena *a, const Arguments *arguments, const char *command,
                const char *key, const char *path, Result *out) {
    const char *why = "";
    const Source *s = source_read(a, path, MOST_BYTES, &why);
    if (s == NULL) {
        file_report(a, arguments, path, why);
        return EXIT_IO;
    }
    if (!json_is_object(s->text) || number_behind(a, s->text, "schema") != 1 ||
        text_behind(a, s->text, key) == NULL) {
        complain(arguments,
                 "%s is not a result of sinter %s --json with \"schema\": 1",
                 path, command);
        return EXIT_DATA;
    }
    *out = (Result){.text = s->text,
                    .model = string_behind(a, s->text, "model"),
                    .device = string_behind(a, s->text, "device"),
                    .batch = number_behind(a, s->text, "batch")};
    return EXIT_GOOD;
}
