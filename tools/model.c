// Loading a model file for a command, with its diagnostics on stderr.
#define _POSIX_C_SOURCE 200809L // isatty

#include "base/exits.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *target_of(const Arguments *arguments) {
    return arguments->target ? arguments->target : "cuda";
}

PassOptions plan_options(const Program *p, const Arguments *arguments,
                         const char *device) {
    PassOptions o = pass_options(&p->recipe, device);
    if (arguments->level)
        o.level = arguments->level[0] - '0';
    if (arguments->rewrite_limit.given)
        o.rewrite_limit = &arguments->rewrite_limit.value;
    o.memory = arguments->memory;
    if (o.memory > 0 && p->recipe.recompute == RECOMPUTE_FOR_LIMIT)
        o.recompute = true;
    return o;
}

char *stem_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return arena_string(a, base, length);
}

// Colours are for terminals, and for those who have not said NO_COLOR.
static bool wants_color(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(no && *no) && term &&
           strcmp(term, "dumb") != 0;
}

void diagnostics_print(Arena *a, const Arguments *arguments,
                       Diagnostics *diags) {
    Text t = text_new(a);
    diags->color = wants_color();
    if (arguments->diagnostics && strcmp(arguments->diagnostics, "json") == 0)
        diag_json(&t, diags);
    else
        diag_print(&t, diags);
    fputs(text_string(&t), stderr);
}

void file_report(Arena *a, const Arguments *arguments, const char *path,
                 const char *why) {
    if (!arguments->diagnostics ||
        strcmp(arguments->diagnostics, "json") != 0) {
        fprintf(stderr, "sinter: %s: %s\n", path, why);
        return;
    }
    Diagnostics diags = diag_new(a);
    diag_add(&diags, DIAG_ERROR, "E0105", (Span){0}, "cannot read %s: %s", path,
             why);
    diagnostics_print(a, arguments, &diags);
}

// Whether the file is there: a name that is mistyped is no mistake in a model.
static bool file_opens(Arena *a, const Arguments *arguments, const char *path) {
    if (access(path, R_OK) == 0)
        return true;
    file_report(a, arguments, path, strerror(errno));
    return false;
}

Program *model_load(Arena *a, const Arguments *arguments, Diagnostics *diags,
                    int *status) {
    const char *path = arguments->operand[arguments->num_operands - 1];
    *status = EXIT_IO;
    if (!file_opens(a, arguments, path))
        return NULL;
    *status = EXIT_MODEL;
    Program *p =
        frontend_load(a, path, arguments->set, arguments->num_settings, diags);
    diagnostics_print(a, arguments, diags);
    return p;
}
