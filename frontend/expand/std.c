// The modules of `std/`, embedded in the compiler.

#include "frontend/frontend.h"

#include <string.h>

extern const unsigned char std_nets_text[], std_sequences_text[],
    std_transformers_text[], std_vision_text[];

static const struct {
    const char *path;
    const unsigned char *text;
} module[] = {
    {"std/nets.net", std_nets_text},
    {"std/sequences.net", std_sequences_text},
    {"std/transformers.net", std_transformers_text},
    {"std/vision.net", std_vision_text},
};

enum { NUM_MODULES = sizeof module / sizeof module[0] };

const char *std_path(int i) {
    return i < NUM_MODULES ? module[i].path : NULL;
}

const char *std_text(const char *path) {
    for (int i = 0; i < NUM_MODULES; i++)
        if (strcmp(module[i].path, path) == 0)
            return (const char *)module[i].text;
    return NULL;
}

const char *std_module_of(const char *function) {
    size_t length = strlen(function);
    for (int i = 0; i < NUM_MODULES; i++)
        for (const char *at = (const char *)module[i].text;
             (at = strstr(at, "\nfn ")) != NULL;) {
            at += strlen("\nfn ");
            if (strncmp(at, function, length) == 0 && at[length] == '(')
                return module[i].path;
        }
    return NULL;
}
