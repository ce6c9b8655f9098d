// Share: a kernel that does what an earlier one does is not written again.
//
// Blocks of a network repeat, and stages of a run differ in a few gradients and
// updates, so most kernels are the same but for the numbers of nodes in their
// names.  Compiling them is most of what building a trainer takes, for the C
// compiler as for NVRTC.  A shared kernel is named after the first layer that
// has it.

#include "codegen/emit.h"

#include <stdlib.h>
#include <string.h>

static int place_of(Arena *a, Numbers *n, long number) {
    int i = 0;
    while (i < n->count && n->number[i] != number)
        i++;
    if (i == n->count)
        ARENA_APPEND(a, n->number, n->count, number);
    return i;
}

// The text without comments and its own name, and with the nodes of names
// counted anew: equal for kernels that do the same.
static const char *kernel_key(Arena *a, const Kernel *k, Arena *kept,
                              Numbers *n) {
    Text t = text_new(a);
    Piece p;
    text_add(&t, OFF_HOST("%d, %d"), k->grid[0], k->grid[1]);
    for (const char *s = k->text; piece_next(&s, &p);)
        if (p.mark == NUMBER)
            text_add(&t, NODE,
                     (NodeId)place_of(kept, n, strtol(p.s, NULL, 10)));
        else if (p.mark != REMARKS)
            piece_add(&t, p);
    return text_string(&t);
}

// ---- keys ----

struct Keyed {
    const char *key;
    void *value;
};

Keys keys_new(Arena *a, int most) {
    size_t size = 16;
    while (size < 2 * (size_t)most)
        size *= 2;
    return (Keys){ARENA_ARRAY(a, size, struct Keyed), size};
}

void **keys_at(Keys *k, const char *key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *s = key; *s != '\0'; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
    size_t i = (size_t)(hash ^ hash >> 32) & (k->size - 1);
    while (k->slot[i].key != NULL && strcmp(k->slot[i].key, key) != 0)
        i = (i + 1) & (k->size - 1);
    k->slot[i].key = key;
    return &k->slot[i].value;
}

// ---- kernels by what they do ----

// Names a kernel after the first that does the same, which may be it.
static void share_text(Arena *a, Arena *scratch, Keys *written, Kernel *k) {
    k->key = kernel_key(scratch, k, a, &k->numbers);
    void **first = keys_at(written, k->key);
    if (*first == NULL)
        *first = k;
    k->first = *first;
    k->name = k->first->name;
}

// Each text is written once, and the host has one function for texts that do
// the same there or differ in sizes alone.
static void share_texts(Launches *step, int num_steps, int number, Arena *a,
                        Arena *scratch) {
    Keys written = keys_new(scratch, number);
    Kernel **own = ARENA_ARRAY(scratch, (size_t)number + 1, Kernel *);
    int count = 0;
    for (int i = 0; i < num_steps; i++)
        for (int j = 0; j < step[i].count; j++) {
            Kernel *k = &step[i].kernel[j];
            if (k->text == NULL)
                continue;
            share_text(a, scratch, &written, k);
            if (k->first == k)
                own[count++] = k;
        }
    kernels_gather(own, count, a);
    for (int i = 0; i < num_steps; i++)
        for (int j = 0; j < step[i].count; j++) {
            Kernel *k = &step[i].kernel[j];
            k->key = NULL;
            if (k->text != NULL)
                k->text = k->first->text;
        }
}

// ---- merged launches ----

static void split_merged(Launches *l, const MergedLaunch *launch, Arena *a) {
    for (int k = 0; k < launch->count; k++)
        kernel_split(l->kernel[launch->first + k].first, a);
}

static void share_merged(Launches *step, int count, Arena *a) {
    for (int i = 0; i < count; i++)
        launches_merge(&step[i], a);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < step[i].plan->merged.count; k++)
            split_merged(&step[i], &step[i].plan->merged.launch[k], a);
}

Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    Arena *scratch = arena_new();
    int number = 0;
    for (int i = 0; i < host->num_steps; i++) {
        const GraphPlan *on_host = host->step[i].plan;
        step[i].plan = device->step[i].plan;
        step[i].count = on_host->num_groups;
        step[i].kernel =
            kernels_marked(on_host, step[i].plan, a, scratch, &number);
    }
    share_texts(step, host->num_steps, number, a, scratch);
    arena_free(scratch);
    share_merged(step, host->num_steps, a);
    return step;
}
