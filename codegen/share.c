// Share: a kernel that does what an earlier one does is not written again.
//
// Blocks of a network repeat, and stages of a run differ in a few gradients and
// updates, so most kernels are the same but for the numbers of nodes in their
// names.  Compiling them is most of what building a trainer takes, for the C
// compiler as for NVRTC.  A shared kernel is named after the first layer that
// has it.

#include "codegen/emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// The numbers that names have, in the order in which they appear.
typedef struct {
    long *number;
    int count;
} Numbers;

static int place_of(Numbers *n, long number) {
    int i = 0;
    while (i < n->count && n->number[i] != number)
        i++;
    if (i == n->count)
        n->number[n->count++] = number;
    return i;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// How many letters begin a name such as v12, p12 or v12_1; 0 for other words
// and for functions.
static size_t letters_of(const char *s) {
    size_t letters = 0;
    while (islower((unsigned char)s[letters]))
        letters++;
    if (letters == 0 || !isdigit((unsigned char)s[letters]))
        return 0;
    size_t end = letters + strspn(s + letters, "0123456789");
    if (s[end] == '_' && isdigit((unsigned char)s[end + 1]))
        return letters;
    return is_word(s[end]) || s[end] == '(' ? 0 : letters;
}

static const char *skip_comment(const char *s) {
    return s[0] == '/' && s[1] == '/' ? s + strcspn(s, "\n") : s;
}

// The text without comments and its own name, and with the numbers of names
// counted anew: equal for kernels that do the same.
static const char *kernel_key(Arena *a, const Kernel *k) {
    Text t = text_new(a);
    size_t own = strlen(k->name), length = strlen(k->text);
    Numbers n = {ARENA_ARRAY(a, length, long), 0};
    for (const char *s = k->text; *(s = skip_comment(s)) != '\0';) {
        bool begins = s == k->text || !is_word(s[-1]);
        size_t letters = begins ? letters_of(s) : 0;
        if (begins && strncmp(s, k->name, own) == 0) {
            s += own;
        } else if (letters > 0) {
            char *end;
            int place = place_of(&n, strtol(s + letters, &end, 10));
            text_add(&t, "%.*s%d", (int)letters, s, place);
            s = end;
        } else {
            text_bytes(&t, s++, 1);
        }
    }
    return text_string(&t);
}

// ---- kernels by what they do ----

typedef struct {
    Kernel **slot;
    size_t size; // a power of two, above twice the number of kernels
} Written;

static Written written_new(Arena *a, const Plan *plan) {
    size_t most = 0, size = 16;
    for (int i = 0; i < plan->num_steps; i++)
        most += plan->step[i].graph->count;
    while (size < 2 * most)
        size *= 2;
    return (Written){ARENA_ARRAY(a, size, Kernel *), size};
}

static bool same_kernel(const Kernel *x, const Kernel *y) {
    return x->grid[0] == y->grid[0] && x->grid[1] == y->grid[1] &&
           x->num_args == y->num_args && strcmp(x->key, y->key) == 0;
}

// Lets a kernel be an earlier one that does the same.
static void share(Written *w, Kernel *k) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *s = k->key; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    size_t i = (size_t)(hash ^ hash >> 32) & (w->size - 1);
    while (w->slot[i] != NULL && !same_kernel(w->slot[i], k))
        i = (i + 1) & (w->size - 1);
    if (w->slot[i] == NULL) {
        w->slot[i] = k;
        return;
    }
    k->shared = true;
    k->name = w->slot[i]->name;
}

Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    Written written = written_new(a, host);
    int number = 0;
    for (int i = 0; i < host->num_steps; i++) {
        Launches *own = &step[i];
        own->kernel =
            codegen_kernels(host->step[i].graph, device->step[i].graph, a,
                            &number, &own->count);
        for (int k = 0; k < own->count; k++) {
            if (own->kernel[k].text == NULL)
                continue;
            own->kernel[k].key = kernel_key(a, &own->kernel[k]);
            share(&written, &own->kernel[k]);
        }
    }
    return step;
}
