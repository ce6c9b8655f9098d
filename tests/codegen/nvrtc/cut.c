// Cut: the kernels of emitted texts, each with the tables before it.  Two whose
// texts differ in nothing but the kernel's name and the numbers of values are
// compiled once.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *memory_get(size_t bytes) {
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p)
        abort();
    return p;
}

static char *text_copy(const char *text, size_t length) {
    char *copy = memory_get(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *file_read(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    long length = ftell(f);
    char *text = memory_get((size_t)length + 1);
    rewind(f);
    if (fread(text, 1, (size_t)length, f) != (size_t)length) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(f);
    return text;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// Where the comment of the next kernel starts, or the end: its name begins with
// k, that of a merged kernel with m.
static const char *kernel_start(const char *text) {
    const char *s = text;
    while ((s = strstr(s, "\n// ")) != NULL) {
        size_t digits = strspn(s + 5, "0123456789");
        if ((s[4] == 'k' || s[4] == 'm') && digits > 0 && s[5 + digits] == '_')
            return s + 1;
        s++;
    }
    return text + strlen(text);
}

// ---- what kernels that do the same have in common ----

typedef struct {
    const char **word;
    size_t *length;
    int count;
} Words;

static int word_number(Words *w, const char *word, size_t length) {
    for (int i = 0; i < w->count; i++)
        if (w->length[i] == length && memcmp(w->word[i], word, length) == 0)
            return i;
    w->word[w->count] = word;
    w->length[w->count] = length;
    return w->count++;
}

// Whether a word is letters and the number of a value: v12, near7_1.
static bool is_numbered(const char *word, size_t length) {
    size_t letters = 0;
    while (letters < length && isalpha((unsigned char)word[letters]))
        letters++;
    return letters > 0 && letters < length &&
           letters + strspn(word + letters, "0123456789_") >= length &&
           word[letters] != '_';
}

// Adds a word to a key; returns where the key then ends.
static char *key_word(char *end, Words *w, const Kernel *k, const char *word,
                      size_t length) {
    size_t own = strlen(k->name);
    if (k->num_members > 0 && word[0] == 'k') {
        return end; // a member, which is compared as such
    } else if (length >= own && memcmp(word, k->name, own) == 0) {
        *end++ = '@';
        word += own;
        length -= own;
    } else if (is_numbered(word, length)) {
        return end +
               sprintf(end, "%c#%d", word[0], word_number(w, word, length));
    }
    memcpy(end, word, length);
    return end + length;
}

// Over several lines, where all but the last end in a backslash.
static size_t directive_length(const char *s) {
    size_t length = strcspn(s, "\n");
    while (s[length - 1] == '\\')
        length += 1 + strcspn(s + length + 1, "\n");
    return length;
}

size_t kernel_body(const Kernel *k) {
    static const char entry[] = "\n#if IS_NEEDED(";
    const char *s = k->text, *last = NULL;
    while ((s = strstr(s, entry)) != NULL)
        last = ++s;
    return last ? (size_t)(last - k->text) : strlen(k->text);
}

// What activations are is part of what a kernel does.  Directives before the
// kernel itself only say who else calls what is there.
static char *key_make(const Kernel *k) {
    static const char define[] = "#define SINTER_ACT ";
    const char *entry = k->text + kernel_body(k);
    const char *act = strstr(k->model->head, define);
    size_t length = strlen(k->text) + sizeof define + 4;
    Words words = {memory_get(length * sizeof *words.word),
                   memory_get(length * sizeof *words.length), 0};
    // A word of two letters can become one letter and a number of five
    // digits.
    char *key = memory_get(4 * length + 1), *end = key;
    if (act != NULL)
        end += sprintf(end, "%.2s", act + strlen(define));
    for (const char *s = k->text; *s != '\0';) {
        size_t word = 0;
        while (is_word(s[word]))
            word++;
        if (word > 0)
            end = key_word(end, &words, k, s, word);
        else if (s[0] == '#')
            word = directive_length(s) + (s < entry);
        else if (s[0] == '/' && s[1] == '/')
            word = strcspn(s, "\n");
        else
            *end++ = s[word++];
        s += word;
    }
    free(words.word);
    free(words.length);
    return key;
}

// ---- parameters ----

// Whether a kernel asks for the rows of a tensor.
static bool has_rows(const char *text, const char *name, size_t length) {
    for (const char *s = text; (s = strstr(s, name)) != NULL; s++) {
        const char *after = s + length;
        bool packed = strncmp(after, ", ", 2) == 0; // as load_bits has it
        if (is_word(s[-1]) || (!packed && strncmp(after, " + ", 3) != 0))
            continue;
        after += packed ? 2 : 3;
        after += strspn(after, "(");
        if (strncmp(after, "size_t)", 7) == 0)
            return true;
    }
    return false;
}

static void parameter_read(Kernel *k, const char *start, const char *end) {
    const char *star = memchr(start, '*', (size_t)(end - start));
    int n = k->num_parameters++;
    const char *word = strstr(start, "RESTRICT ");
    if (n == MAX_PARAMETERS) {
        fprintf(stderr, "%s: more than %d parameters\n", k->name, n);
        exit(EXIT_FAILURE);
    }
    k->restricted[n] = word != NULL && word < end;
    start += strspn(start, " \n");
    if (strncmp(start, "const ", 6) == 0)
        start += 6;
    k->type[n] = text_copy(start, (size_t)((star ? star : end) - start));
    k->type[n][strcspn(k->type[n], " ")] = '\0';
    if (strcmp(k->type[n], "unsigned") == 0)
        strcpy(k->type[n], "u8");
    const char *name = end;
    while (is_word(name[-1]))
        name--;
    char *copy = text_copy(name, (size_t)(end - name));
    k->bulk[n] = strpbrk(copy, "0123456789") != NULL &&
                 has_rows(k->text, copy, strlen(copy));
    k->name_of[n] = copy;
}

static void parameters_read(Kernel *k) {
    char opening[LONGEST_NAME + 3];
    snprintf(opening, sizeof opening, " %s(", k->name);
    const char *s = strstr(k->text, opening);
    if (s == NULL) {
        fprintf(stderr, "%s is not defined where it is announced\n", k->name);
        exit(EXIT_FAILURE);
    }
    s += strlen(opening);
    while (s[-1] != ')') {
        const char *end = s + strcspn(s, ",)");
        parameter_read(k, s, end);
        s = end + 1;
    }
}

// ---- merged kernels ----

static void members_find(const Kernels *all, Kernel *k) {
    static const char end[] = "_body(";
    const Model *m = k->model;
    for (const char *s = k->text;
         k->name[0] == 'm' && (s = strstr(s, end)) != NULL; s += strlen(end)) {
        const char *name = s;
        while (is_word(name[-1]))
            name--;
        for (int i = m->first; i < all->num_kernels - 1; i++)
            if (strlen(all->kernel[i].name) == (size_t)(s - name) &&
                memcmp(all->kernel[i].name, name, (size_t)(s - name)) == 0)
                k->member[k->num_members++] = i;
    }
}

static bool same_members(const Kernels *all, const Kernel *a, const Kernel *b) {
    for (int i = 0; i < a->num_members && a->num_members == b->num_members; i++)
        if (all->kernel[a->member[i]].twin != all->kernel[b->member[i]].twin)
            return false;
    return a->num_members == b->num_members;
}

// ---- all of them ----

static void model_cut(Kernels *all, Model *m, const char *path) {
    char *text = file_read(path);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *s = kernel_start(text);
    m->name = text_copy(base, strcspn(base, "."));
    m->head = text_copy(text, (size_t)(s - text));
    m->first = all->num_kernels;
    while (*s != '\0') {
        const char *end = kernel_start(s);
        all->kernel = realloc(all->kernel, ((size_t)all->num_kernels + 1) *
                                               sizeof *all->kernel);
        if (all->kernel == NULL)
            abort();
        Kernel *k = &all->kernel[all->num_kernels++];
        *k = (Kernel){.model = m, .text = text_copy(s, (size_t)(end - s))};
        sscanf(s, "// %255[A-Za-z0-9_]", k->name);
        parameters_read(k);
        members_find(all, k);
        k->key = key_make(k);
        s = end;
    }
    m->end = all->num_kernels;
    free(text);
}

static void twins_find(Kernels *all) {
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        while (strcmp(all->kernel[k->twin].key, k->key) != 0 ||
               !same_members(all, &all->kernel[k->twin], k))
            k->twin++;
    }
}

Kernels kernels_cut(int num_files, char **file) {
    Kernels all = {.num_models = num_files};
    all.model = memory_get((size_t)num_files * sizeof *all.model);
    for (int i = 0; i < num_files; i++)
        model_cut(&all, &all.model[i], file[i]);
    twins_find(&all);
    return all;
}

Kernel *kernel_find(const Kernels *kernels, const Model *model,
                    const char *name) {
    for (int i = model->first; i < model->end; i++)
        if (strcmp(kernels->kernel[i].name, name) == 0)
            return &kernels->kernel[i];
    return NULL;
}
