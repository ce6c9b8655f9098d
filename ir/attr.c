// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes of nodes, beside their operands.

#include "ir/attr.h"

#include <stdlib.h>
#include <string.h>

const struct AttrInfo attr_info[NUM_ATTRS] = {
#define ATTR(name, kind) {#name, kind},
#include "ir/attrs.def"
};

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

void attr_insert(Attr *attr, int count, Attr added) {
    int i = count;
    for (; i > 0 && attr[i - 1].key > added.key; i--)
        attr[i] = attr[i - 1];
    attr[i] = added;
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

int64_t state_bucket(const Node *n) {
    return state_is(n, STATE_PARTIAL) ? node_int(n, ATTR_bucket, -1) : -1;
}

int node_optimizer_shard(const Node *n) {
    return (int)node_int(n, ATTR_optimizer_shard, -1);
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

// ---- values ----

const void *attr_bytes(const Attr *attr, size_t *size) {
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
    abort();
}

bool attr_equal(const Attr *a, const Attr *b) {
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
    void *to = arena_uninit(a, size ? size : 1, 1);
    if (size)
        memcpy(to, from, size);
    if (kind == INTS)
        attr.ints = to;
    else
        attr.floats = to;
    return attr;
}

const Attr *attrs_copy(Arena *a, const Node *n) {
    Attr *attr = ARENA_UNINIT(a, n->num_attrs, Attr);
    for (int i = 0; i < n->num_attrs; i++)
        attr[i] = attr_copy(a, n->attr[i]);
    return attr;
}
