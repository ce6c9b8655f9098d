// Tensors: see tensors.h.
#include "tests/codegen/tensors.h"

#include "ir/bytes.h"

#include <math.h>
#include <string.h>

// ---- numbers in memory ----

static DType stored_type(const Graph *g, DType d) {
    return d == ACT ? g->act : d;
}

double *tensor_read(RtDevice *device, Arena *a, const Graph *g, NodeId n) {
    int64_t count = type_count(g->node[n].type);
    size_t bytes = (size_t)graph_bytes(g, g->node[n].type);
    DType d = stored_type(g, g->node[n].type->dtype);
    char *raw = arena_alloc(a, bytes + 1);
    double *value = ARENA_ARRAY(a, (size_t)count + 1, double);
    device->read(device, raw, (size_t)g->node[n].offset, bytes);
    for (int64_t i = 0; i < count; i++)
        value[i] = bytes_load(raw, d, i);
    return value;
}

void tensor_write(RtDevice *device, Arena *a, const Graph *g, NodeId n,
                  const double *value) {
    int64_t count = type_count(g->node[n].type);
    size_t bytes = (size_t)graph_bytes(g, g->node[n].type);
    DType d = stored_type(g, g->node[n].type->dtype);
    char *raw = arena_alloc(a, bytes + 1);
    for (int64_t i = 0; i < count; i++)
        bytes_store(raw, d, i, value[i]);
    device->write(device, (size_t)g->node[n].offset, raw, bytes);
}

// ---- leaves ----

// Numbers at which functions jump or end.
static double end_value(int64_t i) {
    static const double end[] = {NAN,     INFINITY,  -INFINITY, 0.0,
                                 -0.0,    0x1p-149,  0x1p-130,  -0x1p-126,
                                 0x1p-25, 0x1.8p-24, 1,         -1.5,
                                 0x1p30,  65519,     -65520,    0x1.fffffep127};
    return end[i % (int64_t)(sizeof end / sizeof *end)];
}

static double input_value(const char *name, Type t, int64_t i, uint32_t seed,
                          int classes) {
    double u = random_uniform(seed, (uint32_t)stream_of(name), 0, (uint32_t)i);
    if (strcmp(name, "label") == 0)
        return floor(u * classes);
    if (strcmp(name, "index") == 0)
        return (double)(3 * i + 1);
    if (strcmp(name, "valid") == 0)
        return 3;
    if (strcmp(name, "ends.column") == 0)
        return end_value(i / t.dim[t.rank - 1]);
    if (strcmp(name, "ends.row") == 0)
        return end_value(i % t.dim[t.rank - 1]);
    switch (t.dtype) {
    case U8:
        return floor(u * 256);
    case I32:
        return floor(u * 7) - 3;
    case BOOL:
        return u < 0.5;
    default:
        return dtype_round(F16, 2 * u - 1);
    }
}

static double first_value(const char *name, const Node *d, int64_t i,
                          uint32_t seed) {
    static const struct {
        const char *name;
        double value;
    } run[] = {{"run.step", 7},
               {"run.steps", 20},
               {"run.epoch_steps", 5},
               {"run.seed", 3}};
    for (int k = 0; k < 4; k++)
        if (strcmp(name, run[k].name) == 0)
            return run[k].value;
    double u = random_uniform(seed, (uint32_t)stream_of(name), 0, (uint32_t)i);
    const char *kind = node_text(d, ATTR_kind);
    if (kind != NULL && strcmp(kind, STATE_OPTIMIZER) == 0)
        return 0.01 * dtype_round(F16, u); // a second moment is not negative
    if (kind != NULL && strcmp(kind, STATE_STATISTIC) == 0)
        return dtype_round(F16, 0.5 + u);
    if (d->op == OP_param && node_attr(d, ATTR_init) == NULL)
        return dtype_round(F16, u - 0.5); // unless the program assigns it
    return node_float(d, ATTR_init, 0);
}

double *tensor_leaf(const Graph *g, Arena *a, NodeId n, uint32_t seed,
                    int classes) {
    const Node *d = &g->node[n];
    const char *name = node_text(d, ATTR_name);
    int64_t count = type_count(d->type);
    double *value = ARENA_ARRAY(a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        value[i] = d->op == OP_input
                       ? input_value(name, *d->type, i, seed, classes)
                       : first_value(name, d, i, seed);
    return value;
}
