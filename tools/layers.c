// Layers: see layers.h.
#include "tools/layers.h"
#include "passes/passes.h"

#include <inttypes.h>
#include <string.h>

// Rank of a node as the result of its layer.  The lowest is for nodes that the
// loss does not depend on, such as running statistics.  A WRITTEN node, a value
// of its own, may be another layer's result too.
typedef enum { ASIDE, WRITTEN, RESULT } Role;

// The path of a node's layer; for a parameter without one, from its name.
static const char *layer_path(Arena *a, const Node *n) {
    if (n->from.path || n->op != OP_param)
        return n->from.path;
    const char *name = node_text(n, ATTR_name), *dot = strrchr(name, '.');
    return dot ? arena_string(a, name, (size_t)(dot - name)) : name;
}

static Layers layers_new(Arena *a, const Graph *g) {
    size_t size = 16;
    while (size < 2 * (size_t)g->count)
        size *= 2;
    return (Layers){.layer = ARENA_ARRAY(a, g->count, Layer),
                    .slot = ARENA_ARRAY(a, size, int),
                    .size = size};
}

static Layer *layer_at(Layers *l, const char *path) {
    size_t i = 5381;
    for (const char *s = path; *s; s++)
        i = 33 * i + (unsigned char)*s;
    for (; l->slot[i & (l->size - 1)]; i++) {
        Layer *layer = &l->layer[l->slot[i & (l->size - 1)] - 1];
        if (strcmp(layer->path, path) == 0)
            return layer;
    }
    l->layer[l->count] = (Layer){.path = path};
    l->slot[i & (l->size - 1)] = l->count + 1;
    return &l->layer[l->count++];
}

// A node computed from constants alone is a constant.
static Role *roles_of(Arena *a, const Graph *g) {
    Role *role = ARENA_ARRAY(a, g->count, Role);
    for (NodeId n = g->count; n-- > 0;) {
        const Node *node = &g->node[n];
        for (int i = 0; i < node->num_args; i++)
            if (role[n] != ASIDE || node->op == OP_output)
                role[node->arg[i]] = RESULT;
    }
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        bool written = node->op == OP_constant || node->num_args > 0;
        for (int i = 0; i < node->num_args; i++)
            written &= role[node->arg[i]] == WRITTEN;
        if (written && role[n] == RESULT)
            role[n] = WRITTEN;
    }
    return role;
}

static void node_count(Layers *l, Layer *layer, const Program *p, NodeId n) {
    const Graph *g = p->stage[0].train;
    const Node *node = &g->node[n];
    int64_t flops = node_flops(g, n) / p->recipe.batch;
    int64_t parameters = node->op == OP_param ? type_count(node->type) : 0;
    l->flops += flops;
    l->parameters += parameters;
    if (layer) {
        layer->flops += flops;
        layer->parameters += parameters;
    }
}

Layers layers_of(Arena *a, const Program *p) {
    const Graph *g = p->stage[0].train;
    const Role *role = roles_of(a, g);
    const Samples *samples = graph_samples(g, g->count, a);
    Layers l = layers_new(a, g);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        const char *path = layer_path(a, node);
        Layer *layer = path ? layer_at(&l, path) : NULL;
        node_count(&l, layer, p, n);
        if (!layer || role[n] < (Role)layer->role)
            continue;
        layer->site = program_site(p, &node->from);
        layer->type = *node->type;
        layer->samples =
            samples[n].stride[0] != 0 && node->type->dim[0] == p->recipe.batch;
        layer->role = role[n];
    }
    return l;
}

const char *layer_shape(Arena *a, const Layer *layer) {
    Text t = text_new(a);
    text_add(&t, "[");
    for (int i = 0; i < layer->type.rank; i++)
        if (i == 0 && layer->samples)
            text_add(&t, "N");
        else
            text_add(&t, "%s%" PRId64, i ? ", " : "", layer->type.dim[i]);
    text_add(&t, "]");
    return text_string(&t);
}
