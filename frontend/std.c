// The modules of `std/`, embedded in the compiler.

#include "frontend/frontend.h"

#include <string.h>

extern const unsigned char std_augment_text[], std_losses_text[],
    std_nets_text[], std_recurrent_text[], std_sequences_text[],
    std_transformers_text[], std_vision_text[];

static const struct {
    const char *path;
    const unsigned char *text;
} module[] = {
    {"std/augment.net", std_augment_text},
    {"std/losses.net", std_losses_text},
    {"std/nets.net", std_nets_text},
    {"std/recurrent.net", std_recurrent_text},
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

// The name of the next function of a module, or NULL.
static const char *next_function(const char *text) {
    static const char before[] = "\nfn ";
    text = strstr(text, before);
    return text ? text + strlen(before) : NULL;
}

const char *std_functions(Arena *a, const char *path) {
    Text t = text_new(a);
    for (const char *at = std_text(path); (at = next_function(at)) != NULL;)
        text_add(&t, "%s%.*s", t.length ? ", " : "", (int)strcspn(at, "("), at);
    return text_string(&t);
}

const char *std_module_of(const char *function) {
    size_t length = strlen(function);
    for (int i = 0; i < NUM_MODULES; i++)
        for (const char *at = (const char *)module[i].text;
             (at = next_function(at)) != NULL;)
            if (strncmp(at, function, length) == 0 && at[length] == '(')
                return module[i].path;
    return NULL;
}
