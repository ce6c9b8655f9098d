// Graph: adding nodes and asking about them.
//
// Equal nodes are found through an open-addressing hash of operation,
// attributes and operands.  Types and groups are compared but not hashed, so a
// pass may set them on a node that is there already.

#include "base/exits.h"
#include "ir/form.h"
#include "ir/ir.h"
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
                 .own = arena_within(a),
                 .types = types_new(a),
                 .name = name,
                 .act = F32,
                 .most = MAX_NODES};
    return g;
}

void graph_free(Graph *g) {
    arena_free(g->own);
    *g = (Graph){.arena = g->arena, .types = g->types, .name = g->name};
}

// ---- attributes ----

Attr attr_int(AttrKey key, int64_t value) {
    return (Attr){.key = key, .i = value};
}

Attr attr_float(AttrKey key, double value) {
    return (Attr){.key = key, .f = value};
}

Attr attr_text(AttrKey key, const char *value) {
    return (Attr){.key = key, .count = (int)strlen(value), .s = value};
}

Attr attr_ints(AttrKey key, int count, const int64_t *value) {
    return (Attr){.key = key, .count = count, .ints = value};
}

Attr attr_floats(AttrKey key, int count, const double *value) {
    return (Attr){.key = key, .count = count, .floats = value};
}

const Attr *node_attr(const Node *n, AttrKey key) {
    for (int i = 0; i < n->num_attrs; i++)
        if (n->attr[i].key == key)
            return &n->attr[i];
    return NULL;
}

int64_t node_int(const Node *n, AttrKey key, int64_t otherwise) {
    const Attr *attr = node_attr(n, key);
    return attr ? attr->i : otherwise;
}

double node_float(const Node *n, AttrKey key, double otherwise) {
    const Attr *attr = node_attr(n, key);
    return attr ? attr->f : otherwise;
}

const char *node_text(const Node *n, AttrKey key) {
    const Attr *attr = node_attr(n, key);
    return attr ? attr->s : NULL;
}

bool state_is(const Node *n, const char *kind) {
    const char *own = n->op == OP_state ? node_text(n, ATTR_kind) : NULL;
    return own != NULL && strcmp(own, kind) == 0;
}

int64_t node_ints(const Node *n, AttrKey key, int i, int64_t otherwise) {
    const Attr *attr = node_attr(n, key);
    return attr && i >= 0 && i < attr->count ? attr->ints[i] : otherwise;
}

bool node_number(const Node *n, double *value) {
    const Attr *values =
        n->op == OP_constant ? node_attr(n, ATTR_values) : NULL;
    if (values == NULL || values->count != 1)
        return false;
    *value = values->floats[0];
    return true;
}

// What an attribute holds, as bytes: two are equal when these are.
static const void *attr_bytes(const Attr *attr, size_t *size) {
    switch (attr_info[attr->key].kind) {
    case INT:
        *size = sizeof attr->i;
        return &attr->i;
    case FLOAT:
        *size = sizeof attr->f;
        return &attr->f;
    case TEXT:
        *size = (size_t)attr->count;
        return attr->s;
    case INTS:
        *size = (size_t)attr->count * sizeof attr->ints[0];
        return attr->ints;
    case FLOATS:
        *size = (size_t)attr->count * sizeof attr->floats[0];
        return attr->floats;
    }
    die("attribute", "unknown kind");
}

static bool attr_equal(const Attr *a, const Attr *b) {
    if (a->key != b->key)
        return false;
    size_t size, other;
    const void *x = attr_bytes(a, &size), *y = attr_bytes(b, &other);
    return size == other && (size == 0 || memcmp(x, y, size) == 0);
}

static Attr attr_copy(Arena *a, Attr attr) {
    AttrKind kind = attr_info[attr.key].kind;
    if (kind == INT || kind == FLOAT)
        return attr;
    if (kind == TEXT) {
        attr.s = arena_string(a, attr.s, (size_t)attr.count);
        return attr;
    }
    size_t size;
    const void *from = attr_bytes(&attr, &size);
    void *to = arena_room(a, size ? size : 1, 1);
    if (size)
        memcpy(to, from, size);
    if (kind == INTS)
        attr.ints = to;
    else
        attr.floats = to;
    return attr;
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
    bool named = op_info[n->op].facts & (LEAF | EFFECT);
    return named ? node_text(n, ATTR_name) : NULL;
}

// Without the operands: what a node of one graph keeps in the next.  What has a
// name is never merged, and is looked up by that.
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
    return a->from.full == b->from.full || (op_info[a->op].facts & LEAF);
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
    case OP_scratch:
        return false;
    default:
        return !(op_info[n->op].facts & EFFECT);
    }
}

// A node of the hash, from 1; 0 is none.  Its hash is here too, so that what is
// not equal is passed over without a look at it.
struct Slot {
    NodeId place;
    uint32_t hash;
};

// Where a node is looked for: first in a line of slots near those of its
// neighbours, for graphs are built and copied in order and do not fit into the
// caches; then from a place that its hash gives.
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
    while (g->slot[slot_at(g, near, hash, i)].place != 0)
        i++;
    g->slot[slot_at(g, near, hash, i)] = (struct Slot){id + 1, hash};
}

// An array of NO_NODE.
static NodeId *ids_new(Arena *a, uint32_t count) {
    NodeId *id = ARENA_ROOM(a, count, NodeId);
    memset(id, 0xff, count * sizeof *id);
    return id;
}

static void hash_resize(Graph *g, uint32_t size) {
    g->num_slots = size;
    g->slot = ARENA_ARRAY(g->own, size, struct Slot);
    for (NodeId id = 0; id < g->count; id++)
        if (mergeable(&g->node[id]))
            hash_insert(g, id, node_hash(&g->node[id]));
}

static NodeId hash_find(const Graph *g, const Node *n, uint32_t hash) {
    if (g->num_slots == 0 || !mergeable(n))
        return NO_NODE;
    uint32_t near = near_slot(n);
    for (uint32_t i = 0;; i++) {
        const struct Slot *slot = &g->slot[slot_at(g, near, hash, i)];
        if (slot->place == 0)
            return NO_NODE;
        if (slot->hash == hash && node_equal(&g->node[slot->place - 1], n))
            return slot->place - 1;
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
    Node *node = ARENA_ROOM(g->own, capacity, Node);
    if (g->count)
        memcpy(node, g->node, g->count * sizeof *node);
    g->node = node;
    g->capacity = capacity;
}

// What passes add to a graph counts as well, and they have no diagnostics.
_Noreturn void graph_refuse(const Graph *g) {
    if (g->full)
        g->full(g);
    fprintf(stderr,
            "error[E0318]: the model becomes more than %lu operations\n",
            (unsigned long)g->most);
    if (g->at.file)
        fprintf(stderr, "  --> %s:%d\n", g->at.file, g->at.line);
    exit(EXIT_MODEL);
}

static void make_room(Graph *g) {
    if (g->count >= g->most + NODES_OVER)
        graph_refuse(g);
    if (g->count < g->capacity)
        return;
    nodes_resize(g, g->capacity ? 2 * g->capacity : 64);
}

static const Attr *attrs_copy(Arena *a, const Node *n) {
    Attr *attr = ARENA_ROOM(a, n->num_attrs, Attr);
    for (int i = 0; i < n->num_attrs; i++)
        attr[i] = attr_copy(a, n->attr[i]);
    return attr;
}

// The attributes are in the arena already.
static NodeId append(Graph *g, const Node *n, uint32_t hash) {
    NodeId *arg = ARENA_ROOM(g->own, n->num_args, NodeId);
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

// Room for about as many nodes as g has: what doubles on the way leaves as much
// in the arena again.
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
    like->rewrites = g->rewrites;
    like->most = g->most;
    like->full = g->full;
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
    if (!(op_info[n->op].facts & COMMUTES) || n->num_args != 2 ||
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
    n.from = g->at;
    n.hash = kind_hash(&n);
    return add(g, &n, false, false);
}

NodeId graph_move(Graph *g, Node n) {
    n.from = g->at;
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

// ---- nodes by kind ----

static NodeId add_plain(Graph *g, Op op, int count, const NodeId *arg) {
    return graph_add(
        g, (Node){.op = op, .num_args = count, .arg = arg, .group = -1});
}

NodeId graph_op1(Graph *g, Op op, NodeId a) {
    return add_plain(g, op, 1, &a);
}

NodeId graph_op2(Graph *g, Op op, NodeId a, NodeId b) {
    return add_plain(g, op, 2, (NodeId[]){a, b});
}

NodeId graph_op3(Graph *g, Op op, NodeId a, NodeId b, NodeId c) {
    return add_plain(g, op, 3, (NodeId[]){a, b, c});
}

static NodeId add_leaf(Graph *g, Op op, Type type, int count,
                       const Attr *attr) {
    return graph_add(g, (Node){.op = op,
                               .type = &type,
                               .num_attrs = count,
                               .attr = attr,
                               .group = -1});
}

NodeId graph_leaf(Graph *g, Op op, const char *name, Type type) {
    Attr attr = attr_text(ATTR_name, name);
    return add_leaf(g, op, type, 1, &attr);
}

NodeId graph_state(Graph *g, const char *name, const char *kind, Type type,
                   double init) {
    Attr attr[] = {attr_float(ATTR_init, init), attr_text(ATTR_kind, kind),
                   attr_text(ATTR_name, name)};
    return add_leaf(g, OP_state, type, 3, attr);
}

NodeId graph_constant(Graph *g, Type type, double value) {
    Attr attr = attr_floats(ATTR_values, 1, &value);
    return add_leaf(g, OP_constant, type, 1, &attr);
}

NodeId graph_number(Graph *g, double value) {
    return graph_constant(g, type_scalar(F32), value);
}

NodeId graph_vector(Graph *g, const double *value, int count) {
    Attr attr = attr_floats(ATTR_values, count, value);
    return add_leaf(g, OP_constant, type_of(F32, 1, (int64_t[]){count}), 1,
                    &attr);
}

NodeId graph_iota(Graph *g, Type type, int axis) {
    Attr attr = attr_int(ATTR_axis, axis);
    return add_leaf(g, OP_iota, type, 1, &attr);
}

// Of operations whose type is declared.
static NodeId add_declared(Graph *g, Op op, NodeId a, const Type *type) {
    return graph_add(
        g,
        (Node){.op = op, .type = type, .num_args = 1, .arg = &a, .group = -1});
}

NodeId graph_cast(Graph *g, NodeId a, DType to) {
    if (g->node[a].type->dtype == to)
        return a;
    return add_declared(g, OP_cast, a, (Type[]){type_scalar(to)});
}

NodeId graph_reshape(Graph *g, NodeId a, int rank, const int64_t *dim) {
    Type type = type_of(g->node[a].type->dtype, rank, dim);
    if (type_is(&type, g->node[a].type))
        return a;
    return add_declared(g, OP_reshape, a, &type);
}

NodeId graph_broadcast(Graph *g, NodeId a, const Type *to) {
    return add_declared(g, OP_broadcast, a, to);
}

static NodeId add_with(Graph *g, Op op, NodeId a, int count, const Attr *attr) {
    return graph_add(g, (Node){.op = op,
                               .num_args = 1,
                               .num_attrs = count,
                               .arg = &a,
                               .attr = attr,
                               .group = -1});
}

NodeId graph_reduce(Graph *g, Op op, NodeId a, int count, const int64_t *axes) {
    Attr attr = attr_ints(ATTR_axes, count, axes);
    return add_with(g, op, a, 1, &attr);
}

NodeId graph_transpose(Graph *g, NodeId a, const int64_t *order) {
    int rank = g->node[a].type->rank;
    bool same = true;
    for (int i = 0; i < rank; i++)
        same &= order[i] == i;
    Attr attr = attr_ints(ATTR_order, rank, order);
    return same ? a : add_with(g, OP_transpose, a, 1, &attr);
}

static NodeId add_ends(Graph *g, Op op, NodeId a, const int64_t *low,
                       const int64_t *high) {
    int rank = g->node[a].type->rank;
    bool none = true;
    for (int i = 0; i < rank; i++)
        none &= low[i] == 0 && high[i] == 0;
    Attr attr[] = {attr_ints(ATTR_high, rank, high),
                   attr_ints(ATTR_low, rank, low)};
    return none ? a : add_with(g, op, a, 2, attr);
}

NodeId graph_pad(Graph *g, NodeId a, const int64_t *low, const int64_t *high) {
    return add_ends(g, OP_pad, a, low, high);
}

NodeId graph_slice(Graph *g, NodeId a, const int64_t *low,
                   const int64_t *high) {
    return add_ends(g, OP_slice, a, low, high);
}

NodeId graph_assign(Graph *g, NodeId state, NodeId value) {
    return graph_op2(g, OP_assign, state, value);
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

NodeId *graph_none(const Graph *g, Arena *a) {
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
    Users u = {ARENA_ROOM(a, g->count, int), ARENA_ROOM(a, entries, int),
               ARENA_ROOM(a, entries, NodeId)};
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
