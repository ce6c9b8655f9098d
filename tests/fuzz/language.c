// Any bytes as a model file: a program or a diagnostic, never a crash; what can
// be parsed has a layout, and that layout is its own.
#include "frontend/frontend.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check_layout(Arena *a, const char *text, size_t length) {
    Diagnostics diags = diag_new(a);
    Text once = text_new(a), twice = text_new(a);
    if (!frontend_format(a, "fuzz.net", text, length, &once, &diags))
        return;
    if (!frontend_format(a, "fuzz.net", text_string(&once), once.length, &twice,
                         &diags) ||
        once.length != twice.length ||
        memcmp(text_string(&once), text_string(&twice), once.length) != 0)
        abort();
}

static void check_program(Arena *a, const char *text, size_t length) {
    Diagnostics diags = diag_new(a);
    const Program *p =
        frontend_parse(a, "fuzz.net", text, length, NULL, 0, &diags);
    if ((p == NULL) != (diags.errors > 0))
        abort();
    Text t = text_new(a);
    diag_print(&t, &diags);
    diag_json(&t, &diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *a = arena_new();
    check_layout(a, (const char *)data, size);
    check_program(a, (const char *)data, size);
    arena_free(a);
    return 0;
}
