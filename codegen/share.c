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

static int place_of(Numbers *n, long number) {
    int i = 0;
    while (i < n->count && n->number[i] != number)
        i++;
    if (i == n->count)
        n->number[n->count++] = number;
    return i;
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

// The last argument of a call that begins at s.
static const char *last_argument(const char *s) {
    int depth = 0;
    const char *last = s;
    for (; *s != '\0' && (depth != 1 || *s != ')'); s++) {
        depth += (*s == '(') - (*s == ')');
        if (depth == 1 && *s == ',')
            last = s + 1;
    }
    return last;
}

// The text without comments and its own name, and with the numbers of names
// counted anew: equal for kernels that do the same.  On the host the number of
// a statistic says nothing.
static const char *kernel_key(Arena *a, const Kernel *k, bool on_host,
                              Numbers *out) {
    static const char variance[] = "variance_of(";
    const char *ignored = NULL;
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
        } else if (s == ignored) {
            s = strchr(s, ')');
        } else {
            if (on_host && begins &&
                strncmp(s, variance, strlen(variance)) == 0)
                ignored = last_argument(s);
            text_bytes(&t, s++, 1);
        }
    }
    *out = n;
    return text_string(&t);
}

// ---- kernels by what they do ----

typedef struct {
    Kernel **slot;
    size_t size; // a power of two, at least twice the number of kernels
} Written;

static Written written_new(Arena *a, size_t most) {
    size_t size = 16;
    while (size < 2 * most)
        size *= 2;
    return (Written){ARENA_ARRAY(a, size, Kernel *), size};
}

static bool same_kernel(const Kernel *x, const Kernel *y) {
    return x->grid[0] == y->grid[0] && x->grid[1] == y->grid[1] &&
           x->num_args == y->num_args && strcmp(x->key, y->key) == 0;
}

// The first kernel that does what k does, which may be k.
static Kernel *first_like(Written *w, Kernel *k) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *s = k->key; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    size_t i = (size_t)(hash ^ hash >> 32) & (w->size - 1);
    while (w->slot[i] != NULL && !same_kernel(w->slot[i], k))
        i = (i + 1) & (w->size - 1);
    if (w->slot[i] == NULL)
        w->slot[i] = k;
    return w->slot[i];
}

static Numbers numbers_keep(Arena *a, const Numbers *n) {
    Numbers kept = {ARENA_ARRAY(a, (size_t)n->count + 1, long), n->count};
    memcpy(kept.number, n->number, (size_t)n->count * sizeof *n->number);
    return kept;
}

// The first kernel that does what k does.  Only of that one the key is kept.
static Kernel *first_with_key(Arena *a, Written *w, Kernel *k, bool on_host) {
    Arena *scratch = arena_new();
    Numbers n;
    k->key = kernel_key(scratch, k, on_host, &n);
    Kernel *first = first_like(w, k);
    k->key = first == k ? arena_string(a, k->key, strlen(k->key)) : NULL;
    // Those of the text as it is on the host may be fewer.
    if (!on_host)
        k->numbers = numbers_keep(a, &n);
    arena_free(scratch);
    return first;
}

static void share_text(Arena *a, Written *w, Kernel *k) {
    k->first = first_with_key(a, w, k, false);
    k->name = k->first->name;
}

static void share_on_host(Arena *a, Written *w, Kernel *k) {
    k->on_host = first_with_key(a, w, k, true)->name;
}

// The functions that the host has: one for kernels that do the same there, and
// one for those that differ in sizes alone.
static void share_functions(Launches *step, int num_steps, int number,
                            Arena *a) {
    Written functions = written_new(a, (size_t)number);
    Kernel **own = ARENA_ARRAY(a, (size_t)number + 1, Kernel *);
    int count = 0;
    for (int i = 0; i < num_steps; i++)
        for (int k = 0; k < step[i].count; k++) {
            Kernel *kernel = &step[i].kernel[k];
            if (kernel->text == NULL || kernel->first != kernel)
                continue;
            share_on_host(a, &functions, kernel);
            if (strcmp(kernel->on_host, kernel->name) == 0)
                own[count++] = kernel;
        }
    kernels_gather(own, count, a);
}

// ---- joined launches ----

static void split_joined(Launches *l, const Join *join, Arena *a) {
    for (int k = 0; k < join->count; k++)
        kernel_split(l->kernel[join->first + k].first, a);
}

// Joins what may be joined of the steps that run often.
static void share_joins(Launches *step, const Plan *device, Arena *a) {
    for (int i = 0; i < device->num_steps; i++) {
        Launches *l = &step[i];
        if (step_joins(device->step[i].kind))
            launches_join(l, device->step[i].graph, a);
        else
            l->rides = graph_rides(device->step[i].graph, a);
    }
    for (int i = 0; i < device->num_steps; i++)
        for (int k = 0; k < step[i].joins.count; k++)
            split_joined(&step[i], &step[i].joins.join[k], a);
}

Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    int number = 0;
    for (int i = 0; i < host->num_steps; i++)
        step[i].kernel =
            codegen_kernels(host->step[i].graph, device->step[i].graph, a,
                            &number, &step[i].count);
    Written texts = written_new(a, (size_t)number);
    for (int i = 0; i < host->num_steps; i++)
        for (int k = 0; k < step[i].count; k++)
            if (step[i].kernel[k].text != NULL)
                share_text(a, &texts, &step[i].kernel[k]);
    share_functions(step, host->num_steps, number, a);
    share_joins(step, device, a);
    return step;
}
