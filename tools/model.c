// Loading a model file for a command, with its diagnostics on stderr.
#include "base/exits.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>

const char *target_of(const Arguments *arguments) {
    return arguments->target ? arguments->target : "cuda";
}

char *stem_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return arena_string(a, base, length);
}

void diagnostics_print(Arena *a, const Arguments *arguments,
                       const Diagnostics *diags) {
    Text t = text_new(a);
    if (arguments->diagnostics && strcmp(arguments->diagnostics, "json") == 0)
        diag_json(&t, diags);
    else
        diag_print(&t, diags);
    fputs(text_string(&t), stderr);
}

// Whether the file can be opened: a name that is mistyped is no mistake in a
// model.
static bool file_opens(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "sinter: %s: %s\n", path, strerror(errno));
        return false;
    }
    fclose(f);
    return true;
}

Program *model_load(Arena *a, const Arguments *arguments, Diagnostics *diags,
                    int *status) {
    const char *path = arguments->operand[arguments->num_operands - 1];
    *status = EXIT_IO;
    if (!file_opens(path))
        return NULL;
    *status = EXIT_MODEL;
    Program *p =
        frontend_load(a, path, arguments->set, arguments->num_settings, diags);
    diagnostics_print(a, arguments, diags);
    return p;
}
