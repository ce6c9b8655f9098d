// Kernel names: k03_batch_norm_relu_grad__layer1 is launch 3, counted over all
// graphs of the program, and computes the backward pass of batch_norm and relu
// in layer1.  Equal kernels have the name of the first one.  The first words
// are functions of the model file, the last its layer whose values are stored.
// The name of a library call begins with c, that of a merged launch with m.

#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

enum { MAX_WORDS = 4, MAX_LENGTH = 64 };

// The last part of a path without its number: "layer1.conv_1" is a conv.
static const char *kind_of_path(Arena *a, const char *path) {
    const char *dot = strrchr(path, '.');
    const char *last = dot ? dot + 1 : path;
    size_t length = strlen(last);
    while (length > 0 && isdigit((unsigned char)last[length - 1]))
        length--;
    if (length > 1 && last[length - 1] == '_' && last[length] != '\0')
        return arena_string(a, last, length - 1);
    return last;
}

static const char *layer_of_path(Arena *a, const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? arena_string(a, path, (size_t)(dot - path)) : "";
}

// Only letters, digits and _ reach a kernel's text.
static void add_plain(Text *t, const char *word) {
    for (; *word != '\0'; word++) {
        char c = (char)tolower((unsigned char)*word);
        if (!isalnum((unsigned char)c))
            c = '_';
        text_bytes(t, &c, 1);
    }
}

const char *file_text(Arena *a, const char *file) {
    char *text = arena_string(a, file, strlen(file));
    for (char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-/", *c))
            *c = '_';
    return text;
}

void quoted_add(Text *t, const char *s) {
    text_add(t, "\"");
    for (; *s != '\0'; s++)
        if (*s == '"' || *s == '\\' || *s == '?') // no trigraphs
            text_add(t, "\\%c", *s);
        else if ((unsigned char)*s < 32 || (unsigned char)*s > 126)
            text_add(t, "\\%03o", (unsigned char)*s);
        else
            text_bytes(t, s, 1);
    text_add(t, "\"");
}

typedef struct {
    const char *word[MAX_WORDS];
    int count;
} Words;

static void word_add(Words *w, const char *word) {
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->word[i], word) == 0)
            return;
    if (w->count < MAX_WORDS)
        w->word[w->count++] = word;
}

static bool is_root(const Group *group, NodeId n) {
    for (int i = 0; i < group->num_outputs; i++)
        if (group->output[i] == n)
            return true;
    return false;
}

const char *kernel_name(const Graph *g, Arena *a, const Group *group,
                        int number) {
    Words words = {{NULL}, 0};
    const char *layer = "";
    bool backward = group->backward;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_workspace)
            continue;
        if (d->from.path != NULL)
            word_add(&words, kind_of_path(a, d->from.path));
        if (is_root(group, n) && d->from.path != NULL && *layer == '\0')
            layer = layer_of_path(a, d->from.path);
    }
    if (group->kind == GROUP_UPDATE || group->kind == GROUP_MULTI_REDUCE) {
        bool step = strcmp(g->name, "train") == 0;
        words.word[0] = group->kind == GROUP_MULTI_REDUCE
                            ? op_info[g->node[group->last].op].name
                        : group_stores_terms(g, group) ? "bucket"
                        : step                         ? "update"
                                                       : g->name;
        words.count = 1;
        layer = "";
        backward = false;
    }
    if (group->kind == GROUP_STACK) {
        words.word[0] = "stack";
        words.count = 1;
        backward = false;
    }
    if (words.count == 0)
        word_add(&words, op_info[g->node[group->last].op].name);
    Text t = text_new(a);
    text_add(&t, "%c%02d", group->kind == GROUP_CALL ? 'c' : 'k', number);
    for (int i = 0; i < words.count && t.length < MAX_LENGTH; i++) {
        text_add(&t, "_");
        add_plain(&t, words.word[i]);
    }
    if (backward)
        text_add(&t, "_grad");
    if (*layer != '\0') {
        text_add(&t, "__");
        add_plain(&t, layer);
    }
    return text_string(&t);
}
