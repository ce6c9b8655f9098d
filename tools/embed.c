// Embed: machine code for each architecture of --target, and PTX for later
// ones.
#include "tools/embed.h"
#include "base/exits.h"
#include "runtime/machine_code.h"
#include "tools/machine.h"
#include "tools/tile.h"

#include <stdlib.h>
#include <string.h>

static const char opening[] = "cuda:";

// The number in "sm_90" at s, up to a comma or the end; 0 for another word.
static int arch_at(const char *s) {
    size_t length = strcspn(s, ",");
    char *end;
    if (strncmp(s, "sm_", 3) != 0 || s[3] < '1' || s[3] > '9')
        return 0;
    long number = strtol(s + 3, &end, 10);
    return end == s + length && number >= 50 && number < 1000 ? (int)number : 0;
}

bool embed_wanted(const Arguments *arguments, int *status) {
    const char *s = arguments->embed;
    bool good = strncmp(s, opening, sizeof opening - 1) == 0;
    for (s += good ? sizeof opening - 1 : 0; good; s++) {
        good = arch_at(s) > 0;
        s += strcspn(s, ",");
        if (*s == '\0')
            break;
    }
    if (!good) {
        complain(arguments,
                 "--target needs architectures as cuda:sm_90 or "
                 "cuda:sm_80,sm_90, not '%s'",
                 arguments->embed);
        *status = EXIT_USAGE;
    }
    return good;
}

void embed_add(Text *out, int arch, int form, const char *code, size_t length) {
    static const char zeros[16];
    RtEmbeddedCode h = {arch, form, length};
    text_bytes(out, (const char *)&h, sizeof h);
    text_bytes(out, code, length);
    text_bytes(out, zeros, (sizeof zeros - length % sizeof zeros) % 16);
}

static bool arch_add(Machine *m, const Arguments *arguments,
                     const char *kernels, int arch, Text *out) {
    const RtCodeForm forms[] = {RT_CUBIN, RT_PTX};
    for (int i = 0; i < 2; i++) {
        const char *why;
        size_t length;
        const char *code =
            machine_code(m, kernels, arch, arguments->lineinfo != NULL,
                         forms[i], &length, &why);
        if (code == NULL) {
            complain(arguments, "--target=%s: %s", arguments->embed, why);
            return false;
        }
        // PTX is a string: its zero byte is embedded, too.
        embed_add(out, arch, (int)forms[i], code,
                  length + (forms[i] == RT_PTX));
    }
    return true;
}

static bool kernels_embed(Arena *a, const Arguments *arguments,
                          const Text *kernels, Text *out, int *status) {
    const char *why, *s = arguments->embed + sizeof opening - 1;
    Machine *m = machine_open(a, arch_at(s), &why);
    *status = EXIT_DEVICE;
    if (m == NULL) {
        complain(arguments, "--target=%s: %s", arguments->embed, why);
        return false;
    }
    const char *text =
        arena_format(a, "%s\n%s", text_string(kernels), rt_builtin_kernels);
    bool good = true;
    while (good && *s != '\0') {
        good = arch_add(m, arguments, text, arch_at(s), out);
        s += strcspn(s, ",");
        s += *s == ',';
    }
    machine_close(m);
    return good;
}

int embed_tile_archs(Arena *a, const Arguments *arguments, int **arch) {
    enum { FIRST = 80 };
    int count = 0;
    const char *s = arguments->embed + sizeof opening - 1;
    *arch = NULL;
    while (*s != '\0') {
        if (arch_at(s) >= FIRST)
            ARENA_APPEND(a, *arch, count, arch_at(s));
        s += strcspn(s, ",");
        s += *s == ',';
    }
    return count;
}

bool embed_make(Arena *a, const Arguments *arguments, TrainerText *t,
                int *status) {
    int *arch, count = embed_tile_archs(a, arguments, &arch);
    return kernels_embed(a, arguments, &t->cu_file, &t->code, status) &&
           (t->tiles.count == 0 || tiles_embed(a, arguments, &t->tiles, arch,
                                               count, &t->code, status));
}
