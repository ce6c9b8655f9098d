// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graph: adding nodes, finding equal ones, and asking about them.
//
// Equal nodes are found through an open-addressing hash of operation,
// attributes and operands.  Types and groups are compared but not hashed, so a
// pass may set them on a node that is there already.

#include "base/exits.h"
#include "ir/attr.h"
#include "ir/form.h"
#include "ir/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void die(const char *what, const char *why) {
    fprintf(stderr, "sinter: internal error: %s: %s\n", what, why);
    abort();
}

Graph *graph_new(Arena *a, const char *name) {
    Graph *g = ARENA_NEW(a, Graph);
    *g = (Graph){.arena = a,
                 .own = arena_child(a),
                 .types = types_new(a),
                 .name = name,
                 .act = F32,
                 .multiprocessors = GENERIC_MULTIPROCESSORS,
                 .max_nodes = MAX_NODES};
    return g;
}

void graph_free(Graph *g) {
    arena_free(g->own);
    *g = (Graph){.arena = g->arena, .types = g->types, .name = g->name};
}

// ---- the hash of nodes ----

static const uint32_t HASH_START = UINT32_C(2166136261);

static uint32_t hash_word(uint32_t hash, uint64_t word) {
    uint64_t product = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(product >> 32) ^ (uint32_t)product;
}

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    uint64_t word = size;
    hash = hash_word(hash, word);
    for (; size >= sizeof word; size -= sizeof word, byte += sizeof word) {
        memcpy(&word, byte, sizeof word);
        hash = hash_word(hash, word);
    }
    word = 0;
    memcpy(&word, byte, size);
    return hash_word(hash, word);
}

static uint32_t name_hash(const char *name) {
    return hash_bytes(HASH_START, name, strlen(name));
}

// The name that a node is found by, or NULL.
static const char *name_of(const Node *n) {
    bool named = op_info[n->op].traits & (LEAF | EFFECT);
    return named ? node_text(n, ATTR_name) : NULL;
}

// The hash of the parts of a node that stay from graph to graph: not of its
// operands.  Nodes with names are never merged, and are found by name.
static uint32_t kind_hash(const Node *n) {
    const char *name = name_of(n);
    if (name != NULL)
        return name_hash(name);
    uint32_t hash = hash_word(HASH_START, n->op);
    for (int i = 0; i < n->num_attrs; i++) {
        size_t size;
        const void *bytes = attr_bytes(&n->attr[i], &size);
        hash = hash_word(hash, n->attr[i].key);
        hash = hash_bytes(hash, bytes, size);
    }
    return hash;
}

static uint32_t node_hash(const Node *n) {
    uint32_t hash = n->hash;
    for (int i = 0; i < n->num_args; i++)
        hash = hash_word(hash, n->arg[i]);
    return hash;
}

// Leaves are the same in every precision.
static bool same_precision(const Node *a, const Node *b) {
    return a->from.full_precision == b->from.full_precision ||
           (op_info[a->op].traits & LEAF);
}

static bool node_equal(const Node *a, const Node *b) {
    if (a->hash != b->hash || a->op != b->op || a->group != b->group ||
        a->num_args != b->num_args || a->num_attrs != b->num_attrs ||
        !type_is(a->type, b->type) || !same_precision(a, b))
        return false;
    for (int i = 0; i < a->num_args; i++)
        if (a->arg[i] != b->arg[i])
            return false;
    for (int i = 0; i < a->num_attrs && a->attr != b->attr; i++)
        if (!attr_equal(&a->attr[i], &b->attr[i]))
            return false;
    return true;
}

// Leaves that stand for memory of their own, and effects, are each themselves.
static bool mergeable(const Node *n) {
    switch (n->op) {
    case OP_input:
    case OP_param:
    case OP_state:
    case OP_workspace:
        return false;
    default:
        return !(op_info[n->op].traits & EFFECT);
    }
}

// A slot of the hash table: a node + 1, or 0 if it is empty.  It has the node's
// hash, so that a search skips other nodes without reading them.
struct HashSlot {
    NodeId entry;
    uint32_t hash;
};

// A node is searched in a line of slots near those of its neighbours first:
// graphs are built and copied in order and do not fit into the caches.  Then it
// is searched from a slot that its hash gives.
enum { LINE = 8 };

static uint32_t near_slot(const Node *n) {
    uint32_t near = 0;
    for (int i = 0; i < n->num_args; i++)
        near = near > n->arg[i] ? near : n->arg[i];
    return near / (LINE / 2) * LINE;
}

static uint32_t slot_at(const Graph *g, uint32_t near, uint32_t hash,
                        uint32_t i) {
    uint32_t at = i < LINE ? near + i : hash + i;
    return at & (g->num_slots - 1);
}

static void hash_insert(Graph *g, NodeId id, uint32_t hash) {
    uint32_t near = near_slot(&g->node[id]), i = 0;
    while (g->slot[slot_at(g, near, hash, i)].entry != 0)
        i++;
    g->slot[slot_at(g, near, hash, i)] = (struct HashSlot){id + 1, hash};
}

// An array of NO_NODE.
static NodeId *ids_new(Arena *a, uint32_t count) {
    NodeId *id = ARENA_UNINIT(a, count, NodeId);
    memset(id, 0xff, count * sizeof *id);
    return id;
}

static void hash_resize(Graph *g, uint32_t size) {
    g->num_slots = size;
    g->slot = ARENA_ARRAY(g->own, size, struct HashSlot);
    for (NodeId id = 0; id < g->count; id++)
        if (mergeable(&g->node[id]))
            hash_insert(g, id, node_hash(&g->node[id]));
}

static NodeId hash_find(const Graph *g, const Node *n, uint32_t hash) {
    if (g->num_slots == 0 || !mergeable(n))
        return NO_NODE;
    uint32_t near = near_slot(n);
    for (uint32_t i = 0;; i++) {
        const struct HashSlot *slot = &g->slot[slot_at(g, near, hash, i)];
        if (slot->entry == 0)
            return NO_NODE;
        if (slot->hash == hash && node_equal(&g->node[slot->entry - 1], n))
            return slot->entry - 1;
    }
}

// ---- the hash of names ----

static bool has_name(const Node *n, const char *name, uint32_t hash) {
    return n->hash == hash && strcmp(node_text(n, ATTR_name), name) == 0;
}

// The slot of the first node of that name, or the free one where it belongs.
static NodeId *name_slot(const Graph *g, const char *name, uint32_t hash) {
    uint32_t mask = g->named_size - 1;
    uint32_t slot = hash & mask;
    while (g->named[slot] != NO_NODE &&
           !has_name(&g->node[g->named[slot]], name, hash))
        slot = (slot + 1) & mask;
    return &g->named[slot];
}

static NodeId *node_slot(const Graph *g, NodeId id) {
    return name_slot(g, name_of(&g->node[id]), g->node[id].hash);
}

static void names_resize(Graph *g, uint32_t size) {
    const NodeId *old = g->named;
    uint32_t old_size = g->named_size;
    g->named_size = size;
    g->named = ids_new(g->own, size);
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i] != NO_NODE)
            *node_slot(g, old[i]) = old[i];
}

static void name_insert(Graph *g, NodeId id) {
    if (name_of(&g->node[id]) == NULL)
        return;
    if (2 * ++g->num_named > g->named_size)
        names_resize(g, g->named_size ? 2 * g->named_size : 16);
    NodeId *slot = node_slot(g, id);
    if (*slot == NO_NODE)
        *slot = id;
}

// ---- adding ----

static void nodes_resize(Graph *g, NodeId capacity) {
    Node *node = ARENA_UNINIT(g->own, capacity, Node);
    if (g->count)
        memcpy(node, g->node, g->count * sizeof *node);
    g->node = node;
    g->capacity = capacity;
}

// Nodes that passes add count as well, and passes have no diagnostics.
_Noreturn void graph_report_full(const Graph *g) {
    if (g->on_full)
        g->on_full(g);
    fprintf(stderr, "error[E0318]: the model has more than %lu operations\n",
            (unsigned long)g->max_nodes);
    if (g->origin.file)
        fprintf(stderr, "  --> %s:%d\n", g->origin.file, g->origin.line);
    exit(EXIT_MODEL);
}

static void make_room(Graph *g) {
    if (g->count >= g->max_nodes + NODES_MARGIN)
        graph_report_full(g);
    if (g->count < g->capacity)
        return;
    nodes_resize(g, g->capacity ? 2 * g->capacity : 64);
}

// The attributes are in the arena already.
static NodeId append(Graph *g, const Node *n, uint32_t hash) {
    NodeId *arg = ARENA_UNINIT(g->own, n->num_args, NodeId);
    for (int i = 0; i < n->num_args; i++)
        arg[i] = n->arg[i];
    make_room(g);
    NodeId id = g->count++;
    g->node[id] = *n;
    g->node[id].arg = arg;
    if (2 * g->count > g->num_slots)
        hash_resize(g, g->num_slots ? 2 * g->num_slots : 64);
    else if (mergeable(n))
        hash_insert(g, id, hash);
    name_insert(g, id);
    return id;
}

NodeId graph_append(Graph *g, Node n) {
    n.type = graph_type(g, n.type);
    n.attr = attrs_copy(g->arena, &n);
    n.hash = kind_hash(&n);
    return append(g, &n, node_hash(&n));
}

// ---- graphs like others ----

// Room for about as many nodes as g has: an array that doubles on the way
// leaves as much in the arena again.
static void reserve(Graph *like, const Graph *g) {
    uint32_t size = 64;
    while (size / 2 < g->count)
        size *= 2;
    nodes_resize(like, g->count + g->count / 16 + 16);
    hash_resize(like, size);
}

Graph *graph_like(const Graph *g) {
    Graph *like = graph_new(g->arena, g->name);
    like->types = g->types;
    like->facts = g->facts;
    like->act = g->act;
    like->multiprocessors = g->multiprocessors;
    like->rewrites = g->rewrites;
    like->max_nodes = g->max_nodes;
    like->on_full = g->on_full;
    reserve(like, g);
    return like;
}

Graph *graph_clone(const Graph *g) {
    Graph *out = graph_like(g);
    Arena *scratch = arena_new();
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++)
        now[n] = graph_copy(out, g, n, now);
    arena_free(scratch);
    return out;
}

// ---- looked up, then added ----

// Puts the attributes in order of key into sorted.
static void sort_attrs(Attr *sorted, const Node *n) {
    for (int i = 0; i < n->num_attrs; i++) {
        int j = i;
        for (; j > 0 && sorted[j - 1].key > n->attr[i].key; j--)
            sorted[j] = sorted[j - 1];
        if (j > 0 && sorted[j - 1].key == n->attr[i].key)
            die(op_info[n->op].name, "an attribute is given twice");
        sorted[j] = n->attr[i];
    }
}

// Adds a node whose operands and attributes are in order, the latter in the
// arena if they are to be shared; its hash is that of its kind.
static NodeId add_ordered(Graph *g, Node *n, bool typed, bool shared) {
    Type type;
    const char *why = typed ? NULL : type_infer(g, n, &type);
    if (why)
        die(op_info[n->op].name, why);
    if (!typed || !shared)
        n->type = graph_type(g, typed ? n->type : &type);
    uint32_t hash = node_hash(n);
    NodeId found = hash_find(g, n, hash);
    if (found != NO_NODE)
        return found;
    n->offset = -1;
    if (!shared)
        n->attr = attrs_copy(g->arena, n);
    return append(g, n, hash);
}

static NodeId add(Graph *g, Node *n, bool typed, bool shared) {
    if (!(op_info[n->op].traits & COMMUTES) || n->num_args != 2 ||
        n->arg[0] <= n->arg[1])
        return add_ordered(g, n, typed, shared);
    Node turned = *n;
    turned.arg = (NodeId[]){n->arg[1], n->arg[0]};
    return add_ordered(g, &turned, typed, shared);
}

NodeId graph_add(Graph *g, Node n) {
    Attr sorted[NUM_ATTRS];
    if (n.num_attrs > NUM_ATTRS)
        die(op_info[n.op].name, "too many attributes");
    sort_attrs(sorted, &n);
    n.attr = sorted;
    n.from = g->origin;
    n.hash = kind_hash(&n);
    return add(g, &n, false, false);
}

NodeId graph_move(Graph *g, Node n) {
    n.from = g->origin;
    return add(g, &n, false, true);
}

// Whether operands of n have become others of the same types, so that its own
// is the same.
static bool keeps_types(const Graph *g, const Graph *old, const Node *n,
                        const NodeId *now) {
    for (int i = 0; i < n->num_args; i++) {
        NodeId to = now[n->arg[i]];
        if (to >= g->count ||
            !type_is(g->node[to].type, old->node[n->arg[i]].type))
            return false;
    }
    return true;
}

NodeId graph_copy(Graph *g, const Graph *old, NodeId id, const NodeId *now) {
    Node n = old->node[id];
    NodeId few[8];
    NodeId *arg = few;
    if (n.num_args > (int)(sizeof few / sizeof few[0]))
        arg = ARENA_ARRAY(g->own, n.num_args, NodeId);
    for (int i = 0; i < n.num_args; i++)
        arg[i] = now[n.arg[i]];
    bool typed = keeps_types(g, old, &n, now);
    n.arg = arg;
    NodeId copy = add(g, &n, typed, g->arena == old->arena);
    g->node[copy].offset = old->node[id].offset;
    return copy;
}

Node node_mapped(const Node *old, const NodeId *now, Arena *a) {
    NodeId *arg = ARENA_ARRAY(a, (size_t)old->num_args + 1, NodeId);
    for (int i = 0; i < old->num_args; i++)
        arg[i] = now[old->arg[i]];
    Node n = *old;
    n.arg = arg;
    return n;
}

// ---- questions ----

NodeId graph_find(const Graph *g, const char *name) {
    return g->named_size ? *name_slot(g, name, name_hash(name)) : NO_NODE;
}

const Type *graph_type(Graph *g, const Type *t) {
    return types_add(g->types, t);
}

int64_t graph_bytes(const Graph *g, const Type *t) {
    DType dtype = t->dtype == ACT ? g->act : t->dtype;
    int64_t size = dtype == F32 || dtype == I32    ? 4
                   : dtype == F16 || dtype == BF16 ? 2
                                                   : 1;
    return size * type_count(t);
}

bool nodes_overlap(const Graph *g, NodeId a, NodeId b) {
    const Node *x = &g->node[a], *y = &g->node[b];
    return x->offset < y->offset + graph_bytes(g, y->type) &&
           y->offset < x->offset + graph_bytes(g, x->type);
}

bool node_immediate(const Node *n) {
    return n->op == OP_constant || n->op == OP_iota;
}

NodeId node_base(const Graph *g, NodeId n) {
    while ((op_info[g->node[n].op].traits & VIEW) && g->node[n].group < 0)
        n = g->node[n].arg[0];
    return n;
}

NodeId *graph_map_new(const Graph *g, Arena *a) {
    return ids_new(a, g->count);
}

uint32_t *graph_uses(const Graph *g, Arena *a) {
    uint32_t *uses = ARENA_ARRAY(a, g->count ? g->count : 1, uint32_t);
    for (NodeId id = 0; id < g->count; id++)
        for (int i = 0; i < g->node[id].num_args; i++)
            uses[g->node[id].arg[i]]++;
    return uses;
}

Users graph_users(const Graph *g, Arena *a) {
    size_t entries = 1;
    for (NodeId id = 0; id < g->count; id++)
        entries += (size_t)g->node[id].num_args;
    Users u = {ARENA_UNINIT(a, g->count, int), ARENA_UNINIT(a, entries, int),
               ARENA_UNINIT(a, entries, NodeId)};
    int e = 0;
    for (NodeId id = 0; id < g->count; id++)
        u.first[id] = -1;
    for (NodeId id = g->count; id-- > 0;)
        for (int i = 0; i < g->node[id].num_args; i++, e++) {
            NodeId arg = g->node[id].arg[i];
            u.user[e] = id;
            u.next[e] = u.first[arg];
            u.first[arg] = e;
        }
    return u;
}
