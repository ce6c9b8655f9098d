// Value numbering over two graphs (Click, "Global code motion, global
// value numbering", 1995), with 64-bit hashes of a node and of its operands.
#include "tools/compare/value_numbering.h"
#include "tools/compare/gradient.h"

#include <string.h>

typedef struct {
    uint64_t hash;
    NodeId node;
} Entry;

static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_int(uint64_t hash, int64_t value) {
    return mix(hash, &value, sizeof value);
}

static uint64_t mix_attr(uint64_t hash, const Attr *t) {
    hash = mix_int(hash, t->key);
    switch (attr_info[t->key].kind) {
    case INT:
        return mix_int(hash, t->i);
    case FLOAT:
        return mix(hash, &t->f, sizeof t->f);
    case TEXT:
        return mix(hash, t->s, strlen(t->s));
    case INTS:
        return mix(hash, t->ints, (size_t)t->count * sizeof *t->ints);
    default:
        return mix(hash, t->floats, (size_t)t->count * sizeof *t->floats);
    }
}

static uint64_t hash_node(const Graph *g, NodeId n, const uint64_t *hash) {
    const Node *d = &g->node[n];
    uint64_t h = mix_int(UINT64_C(0xcbf29ce484222325), d->op);
    h = mix_int(mix_int(h, d->type->dtype), d->type->rank);
    h = mix(h, d->type->dim, (size_t)d->type->rank * sizeof *d->type->dim);
    for (int i = 0; i < d->num_attrs; i++)
        h = mix_attr(h, &d->attr[i]);
    for (int i = 0; i < d->num_args; i++)
        h = mix(h, &hash[d->arg[i]], sizeof *hash);
    return h ^ h >> 29;
}

static uint64_t *hash_nodes(Arena *a, const Graph *g) {
    uint64_t *hash = ARENA_ARRAY(a, (size_t)g->count + 1, uint64_t);
    for (NodeId n = 0; n < g->count; n++)
        hash[n] = hash_node(g, n, hash);
    return hash;
}

// An open-addressing table with twice as many slots as nodes.
static Entry *table_new(Arena *a, const Graph *g, const bool *wanted,
                        size_t *slots) {
    const uint64_t *hash = hash_nodes(a, g);
    *slots = 2 * (size_t)g->count + 1;
    Entry *table = ARENA_ARRAY(a, *slots, Entry);
    for (size_t i = 0; i < *slots; i++)
        table[i].node = NO_NODE;
    for (NodeId n = 0; n < g->count; n++) {
        size_t at = hash[n] % *slots;
        if (!wanted[n])
            continue;
        while (table[at].node != NO_NODE && table[at].hash != hash[n])
            at = (at + 1) % *slots;
        if (table[at].node == NO_NODE)
            table[at] = (Entry){hash[n], n};
    }
    return table;
}

// Pairs gradients of the same parameter that are computed differently.
static void gradients_pair(Arena *a, const Graph *g, const Graph *other,
                           const bool *wanted, NodeId *equal) {
    int mine, theirs;
    bool *taken = ARENA_ARRAY(a, (size_t)other->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++)
        if (equal[n] != NO_NODE)
            taken[equal[n]] = true;
    const Gradient *x = gradients_of(a, g, &mine);
    const Gradient *y = gradients_of(a, other, &theirs);
    for (int i = 0; i < mine; i++)
        for (int j = 0; j < theirs && equal[x[i].node] == NO_NODE; j++) {
            const Node *one = &g->node[x[i].node];
            const Node *two = &other->node[y[j].node];
            bool fits = wanted[y[j].node] && !taken[y[j].node] &&
                        strcmp(x[i].param, y[j].param) == 0 &&
                        one->op == two->op && type_is(one->type, two->type);
            if (fits)
                equal[x[i].node] = y[j].node;
            taken[y[j].node] |= fits;
        }
}

NodeId *equal_nodes(Arena *a, const Graph *g, const Graph *other,
                    const bool *wanted) {
    size_t slots;
    const Entry *table = table_new(a, other, wanted, &slots);
    const uint64_t *hash = hash_nodes(a, g);
    NodeId *equal = ARENA_ARRAY(a, (size_t)g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        size_t at = hash[n] % slots;
        while (table[at].node != NO_NODE && table[at].hash != hash[n])
            at = (at + 1) % slots;
        equal[n] = table[at].node;
    }
    gradients_pair(a, g, other, wanted, equal);
    return equal;
}
