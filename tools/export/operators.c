// Operators: the evaluation graph in the operators of ONNX, opset 18
// (github.com/onnx/onnx/blob/main/docs/Operators.md), which formats print.
//
// ONNX has images as [N,C,H,W], the graph as [N,H,W,C].  A value of four axes
// has a name in each layout that something reads.  Windows and convolutions
// make the first; pointwise operations keep the layout of their operands; all
// others read and make the second.  So a network of images has one transpose
// before its first convolution and one behind its last.
#include "tools/export/operators.h"

#include <math.h>
#include <string.h>

typedef enum { CHANNELS_LAST, CHANNELS_FIRST, NUM_LAYOUTS } Layout;

typedef const char *Names[NUM_LAYOUTS];

typedef struct {
    Arena *a;
    const Export *x;
    const Graph *g;
    Operators *out;
    int room[2];     // of its operators and tensors
    Names *name;     // of each value; NULL: not made
    int made;        // names of inner values
    const char *why; // the first operation that ONNX lacks
} Builder;

static Type type_at(const Builder *o, NodeId n) {
    return *graph_node(o->g, n)->type;
}

static const char *fail(Builder *o, NodeId n, const char *why) {
    const Node *d = graph_node(o->g, n);
    if (o->why == NULL)
        o->why = arena_format(o->a, "%s:%d: %s: %s", d->from.file, d->from.line,
                              op_info[d->op].name, why);
    return "";
}

static ElementType element_type(DType d) {
    return d == I32    ? ELEMENT_I32
           : d == U8   ? ELEMENT_U8
           : d == BOOL ? ELEMENT_BOOL
                       : ELEMENT_F32;
}

// ---- dimensions ----

// How often a dimension has the batch; 0: it does not depend on it; -1: in
// another way.
static int64_t batches(const Builder *o, NodeId n, int i) {
    const Graph *doubled = o->x->doubled;
    int64_t batch = o->x->program->recipe.batch,
            dim = graph_node(o->g, n)->type->dim[i];
    int64_t other = doubled != NULL ? doubled->node[n].type->dim[i] : dim;
    return other == dim                           ? 0
           : other == 2 * dim && dim % batch == 0 ? dim / batch
                                                  : -1;
}

static bool is_static(const Builder *o, NodeId n) {
    for (int i = 0; i < graph_node(o->g, n)->type->rank; i++)
        if (batches(o, n, i) != 0)
            return false;
    return true;
}

// ---- records ----

static const char *name_new(Builder *o, NodeId n, const char *part) {
    const char *path = graph_node(o->g, n)->from.path;
    return arena_format(o->a, "%s%s%s_%d", path != NULL ? path : "",
                        path != NULL ? "/" : "", part, o->made++);
}

static void int_add(Attributes *t, const char *name, int64_t value) {
    t->list[t->count++] = (Attribute){
        .name = name, .kind = ATTRIBUTE_INT, .count = 1, .ints = {value}};
}

static void float_add(Attributes *t, const char *name, double value) {
    t->list[t->count++] =
        (Attribute){.name = name, .kind = ATTRIBUTE_FLOAT, .real = value};
}

static void text_attribute_add(Attributes *t, const char *name,
                               const char *value) {
    t->list[t->count++] =
        (Attribute){.name = name, .kind = ATTRIBUTE_TEXT, .text = value};
}

static void ints_add(Attributes *t, const char *name, const int64_t *value,
                     int count) {
    Attribute *to = &t->list[t->count++];
    *to = (Attribute){.name = name, .kind = ATTRIBUTE_INTS, .count = count};
    memcpy(to->ints, value, (size_t)count * sizeof *value);
}

// A list with room for one more.
static void *grown(Arena *a, void *list, int count, int *room, size_t bytes) {
    if (count < *room)
        return list;
    *room = *room == 0 ? 64 : 2 * *room;
    char *to = arena_alloc(a, (size_t)*room * bytes);
    if (count > 0)
        memcpy(to, list, (size_t)count * bytes);
    return to;
}

// Adds an operator with these attributes; returns the name of its output.
static const char *node_add(Builder *o, NodeId n, const char *op,
                            const char *out, const Attributes *attributes,
                            int count, const char *const *input) {
    Operators *to = o->out;
    const char *name = out != NULL ? out : name_new(o, n, op);
    to->made =
        grown(o->a, to->made, to->num_operators, &o->room[0], sizeof *to->made);
    Operator *made = &to->made[to->num_operators++];
    const char **own = ARENA_ARRAY(o->a, (size_t)count, const char *);
    memcpy(own, input, (size_t)count * sizeof *input);
    *made = (Operator){
        .op = op, .out = name, .from = n, .num_inputs = count, .input = own};
    if (attributes != NULL)
        made->attributes = *attributes;
    return name;
}

static const char *unary(Builder *o, NodeId n, const char *op, const char *x) {
    return node_add(o, n, op, NULL, NULL, 1, (const char *[]){x});
}

static const char *binary(Builder *o, NodeId n, const char *op, const char *x,
                          const char *y) {
    return node_add(o, n, op, NULL, NULL, 2, (const char *[]){x, y});
}

static const char *initializer_add(Builder *o, const char *name, int type,
                                   int rank, const int64_t *dim,
                                   const void *bytes, size_t count) {
    Operators *to = o->out;
    to->tensor = grown(o->a, to->tensor, to->num_tensors, &o->room[1],
                       sizeof *to->tensor);
    ExportTensor *made = &to->tensor[to->num_tensors++];
    *made = (ExportTensor){
        .name = name, .type = (ElementType)type, .rank = rank, .count = count};
    for (int i = 0; i < rank; i++)
        made->dim[i] = dim[i];
    void *own = arena_alloc(o->a, count + 1);
    memcpy(own, bytes, count);
    made->bytes = own;
    return name;
}

static const char *ints_of(Builder *o, NodeId n, const int64_t *value,
                           int count) {
    int64_t dim = count;
    return initializer_add(o, name_new(o, n, "ints"), ELEMENT_I64, 1, &dim,
                           value, (size_t)count * sizeof *value);
}

static const char *number_of(Builder *o, NodeId n, float value) {
    return initializer_add(o, name_new(o, n, "number"), element_type(F32), 0,
                           NULL, &value, sizeof value);
}

// ---- layouts ----

static const char *transposed(Builder *o, NodeId n, const char *x, int rank,
                              const int64_t *order) {
    Attributes t = {0};
    ints_add(&t, "perm", order, rank);
    return node_add(o, n, "Transpose", NULL, &t, 1, (const char *[]){x});
}

static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};

// The elements of a constant or an index.  Where all along the batch are equal,
// there is one of them.
static const char *constant_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    Type t = *d->type;
    const Attr *values = node_attr(d, ATTR_values);
    int64_t axis = d->op == OP_iota ? node_int(d, ATTR_axis, 0) : -1;
    int64_t from = node_int(d, ATTR_from, 0), inner = 1;
    for (int i = 0; i < t.rank; i++) {
        bool differs = i == axis || (d->op == OP_constant && values->count > 1);
        if (batches(o, n, i) == 0)
            continue;
        if (differs)
            return fail(o, n, "it has a number for each sample of a batch");
        t.dim[i] = 1;
    }
    int64_t count = type_count(&t);
    for (int i = (int)axis + 1; axis >= 0 && i < t.rank; i++)
        inner *= t.dim[i];
    size_t bytes = t.dtype == BOOL || t.dtype == U8 ? 1 : 4;
    char *room = ARENA_ARRAY(o->a, (size_t)count * bytes + 1, char);
    for (int64_t i = 0; i < count; i++) {
        double v = axis >= 0 ? (double)(from + i / inner % t.dim[axis])
                             : values->floats[values->count > 1 ? i : 0];
        int32_t whole = t.dtype == F32 ? 0 : (int32_t)v;
        float real = (float)v;
        if (bytes == 1)
            room[i] = (char)whole;
        else
            memcpy(room + 4 * i, t.dtype == F32 ? (void *)&real : &whole, 4);
    }
    return initializer_add(o, name_new(o, n, "constant"), element_type(t.dtype),
                           t.rank, t.dim, room, (size_t)count * bytes);
}

// The name of a value in a layout; one of fewer axes has only the last.  A
// constant is added when it is read.
static const char *value(Builder *o, NodeId n, Layout layout) {
    if (graph_node(o->g, n)->type->rank != 4)
        layout = CHANNELS_LAST;
    if ((graph_node(o->g, n)->op == OP_constant ||
         graph_node(o->g, n)->op == OP_iota) &&
        o->name[n][CHANNELS_LAST] == NULL)
        o->name[n][CHANNELS_LAST] = constant_add(o, n);
    if (o->name[n][layout] == NULL && o->name[n][!layout] != NULL)
        o->name[n][layout] =
            transposed(o, n, o->name[n][!layout], 4,
                       layout == CHANNELS_FIRST ? to_first : to_last);
    return o->name[n][layout] != NULL ? o->name[n][layout] : "";
}

static const char *operand(Builder *o, NodeId n, int i) {
    return value(o, graph_node(o->g, n)->arg[i], CHANNELS_LAST);
}

static const char *reshaped(Builder *o, NodeId n, const char *x, int rank,
                            const int64_t *dim) {
    return binary(o, n, "Reshape", x, ints_of(o, n, dim, rank));
}

// An operand of a pointwise operation on [N,C,H,W].
static const char *aligned(Builder *o, NodeId n) {
    Type t = type_at(o, n);
    int64_t dim[4] = {1, 1, 1, 1};
    if (t.rank == 4)
        return value(o, n, CHANNELS_FIRST);
    const char *x = value(o, n, CHANNELS_LAST);
    if (t.rank == 0)
        return x;
    if (!is_static(o, n))
        return fail(o, n, "its batch is not the first axis");
    for (int i = 0; i < t.rank; i++)
        dim[4 - t.rank + i] = t.dim[i];
    if (t.rank == 1)
        return reshaped(o, n, x, 4, (int64_t[]){1, t.dim[0], 1, 1});
    return transposed(o, n, reshaped(o, n, x, 4, dim), 4, to_first);
}

static const char *cast_to(Builder *o, NodeId n, const char *x, DType from,
                           DType to) {
    if (element_type(from) == element_type(to))
        return x;
    Attributes t = {0};
    int_add(&t, "to", element_type(to));
    return node_add(o, n, "Cast", NULL, &t, 1, (const char *[]){x});
}

// ---- leaves ----

// "[8, 3, 3, 3]"
static const char *dims_text(Arena *a, const Type *t) {
    Text to = text_new(a);
    for (int i = 0; i < t->rank; i++)
        text_add(&to, "%s%lld", i > 0 ? ", " : "", (long long)t->dim[i]);
    return arena_format(a, "[%s]", text_string(&to));
}

static const char *tensor_add(Builder *o, NodeId n, const char *name) {
    Type t = type_at(o, n);
    size_t suffix = strlen(".average"), length = strlen(name);
    const float *numbers = rt_tensors_find(o->x->weights, name, t.rank, t.dim);
    // Other programs' files have no averages.
    if (numbers == NULL && length > suffix &&
        strcmp(name + length - suffix, ".average") == 0)
        numbers = rt_tensors_find(o->x->weights,
                                  arena_string(o->a, name, length - suffix),
                                  t.rank, t.dim);
    if (numbers == NULL) {
        o->out->lacks_weights = true;
        o->why = arena_format(o->a, "it has no tensor %s of shape %s", name,
                              dims_text(o->a, &t));
        return "";
    }
    return initializer_add(o, name, element_type(F32), t.rank, t.dim, numbers,
                           (size_t)type_count(&t) * sizeof *numbers);
}

// The name of an input: that of the model's parameter.
static const char *input_name(Builder *o, NodeId n, const char *name) {
    static const char more[] = "input.";
    if (strncmp(name, more, strlen(more)) == 0)
        return name + strlen(more);
    if (strcmp(name, "image") == 0)
        return o->x->program->recipe.input_name;
    return fail(o, n, "an export has the inputs of the model only");
}

static const char *leaf_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    const char *name = node_text(d, ATTR_name);
    switch (d->op) {
    case OP_input:
        return input_name(o, n, name);
    case OP_param:
    case OP_state:
        return d->type->dtype == F32
                   ? tensor_add(o, n, name)
                   : fail(o, n, "it depends on the state of the run");
    default:
        return fail(o, n, "ONNX has no such value");
    }
}

// ---- pointwise operations ----

static bool keeps_first(const Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    for (int i = 0; i < d->num_args; i++)
        if (o->name[d->arg[i]][CHANNELS_FIRST] != NULL)
            return d->type->rank == 4;
    return false;
}

static bool is_compare(Op op) {
    return op == OP_lt || op == OP_le || op == OP_eq;
}

// The type to which operands are promoted.
static DType joined(const Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    if (!is_compare(d->op))
        return d->type->dtype;
    bool real = false;
    for (int i = 0; i < d->num_args; i++)
        real |= dtype_float(type_at(o, d->arg[i]).dtype);
    return real ? F32 : type_at(o, d->arg[0]).dtype;
}

static const char *pointwise_name(Op op) {
    static const char *const name[NUM_OPS] = {[OP_neg] = "Neg",
                                              [OP_abs] = "Abs",
                                              [OP_exp] = "Exp",
                                              [OP_log] = "Log",
                                              [OP_sqrt] = "Sqrt",
                                              [OP_cos] = "Cos",
                                              [OP_sin] = "Sin",
                                              [OP_tanh] = "Tanh",
                                              [OP_sigmoid] = "Sigmoid",
                                              [OP_floor] = "Floor",
                                              [OP_relu] = "Relu",
                                              [OP_not] = "Not",
                                              [OP_add] = "Add",
                                              [OP_sub] = "Sub",
                                              [OP_mul] = "Mul",
                                              [OP_div] = "Div",
                                              [OP_maximum] = "Max",
                                              [OP_minimum] = "Min",
                                              [OP_lt] = "Less",
                                              [OP_le] = "LessOrEqual",
                                              [OP_eq] = "Equal",
                                              [OP_and] = "And",
                                              [OP_or] = "Or",
                                              [OP_select] = "Where",
                                              [OP_stop_gradient] = "Identity"};
    return name[op];
}

// (1 + erf(x / sqrt(2))) / 2
static const char *cdf_add(Builder *o, NodeId n, const char *x) {
    const char *scaled =
        binary(o, n, "Mul", x, number_of(o, n, (float)sqrt(0.5)));
    const char *sum =
        binary(o, n, "Add", unary(o, n, "Erf", scaled), number_of(o, n, 1));
    return binary(o, n, "Mul", sum, number_of(o, n, 0.5f));
}

static const char *modulo_add(Builder *o, NodeId n, const char *const *x) {
    Attributes t = {0};
    int_add(&t, "fmod", 1); // the sign is the dividend's
    return node_add(o, n, "Mod", NULL, &t, 2, x);
}

static void pointwise_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    Layout layout = keeps_first(o, n) ? CHANNELS_FIRST : CHANNELS_LAST;
    const char *x[3], *made;
    DType own = joined(o, n);
    for (int i = 0; i < d->num_args; i++) {
        DType from = type_at(o, d->arg[i]).dtype;
        bool condition = d->op == OP_select && i == 0;
        x[i] =
            layout == CHANNELS_FIRST ? aligned(o, d->arg[i]) : operand(o, n, i);
        if (d->op != OP_cast && !condition)
            x[i] = cast_to(o, n, x[i], from, own);
    }
    if (d->op == OP_cast)
        made = cast_to(o, n, x[0], type_at(o, d->arg[0]).dtype, own);
    else if (d->op == OP_rsqrt)
        made = unary(o, n, "Reciprocal", unary(o, n, "Sqrt", x[0]));
    else if (d->op == OP_cdf)
        made = cdf_add(o, n, x[0]);
    else if (d->op == OP_mod)
        made = modulo_add(o, n, x);
    else if (pointwise_name(d->op) != NULL)
        made =
            node_add(o, n, pointwise_name(d->op), NULL, NULL, d->num_args, x);
    else
        made = fail(o, n, "ONNX has no such operation");
    o->name[n][layout] = made;
}

// ---- shapes ----

// The dimensions of n for a Reshape: the one with the batch is inferred.
static const char *reshaped_as(Builder *o, NodeId n, const char *x) {
    Type t = type_at(o, n);
    int64_t dim[RT_MAX_RANK];
    int inferred = 0;
    for (int i = 0; i < t.rank; i++) {
        dim[i] = batches(o, n, i) == 0 ? t.dim[i] : -1;
        inferred += dim[i] < 0;
    }
    if (inferred > 1)
        return fail(o, n, "two of its axes have the batch");
    return reshaped(o, n, x, t.rank, dim);
}

static const char *slice_add(Builder *o, NodeId n, const char *x,
                             const int64_t *low, const int64_t *high,
                             int rank) {
    int64_t to[RT_MAX_RANK], axis[RT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        to[i] = high[i] > 0 ? -high[i] : INT64_MAX;
        axis[i] = i;
    }
    return node_add(o, n, "Slice", NULL, NULL, 4,
                    (const char *[]){x, ints_of(o, n, low, rank),
                                     ints_of(o, n, to, rank),
                                     ints_of(o, n, axis, rank)});
}

static const char *pad_add(Builder *o, NodeId n, const char *x,
                           const char *mode, const int64_t *low,
                           const int64_t *high, int rank) {
    int64_t pad[2 * RT_MAX_RANK];
    Attributes t = {0};
    memcpy(pad, low, (size_t)rank * sizeof *pad);
    memcpy(pad + rank, high, (size_t)rank * sizeof *pad);
    text_attribute_add(&t, "mode", mode);
    return node_add(o, n, "Pad", NULL, &t, 2,
                    (const char *[]){x, ints_of(o, n, pad, 2 * rank)});
}

static void bounds_of(const Node *d, int rank, int64_t *low, int64_t *high) {
    for (int i = 0; i < rank; i++) {
        low[i] = node_ints(d, ATTR_low, i, 0);
        high[i] = node_ints(d, ATTR_high, i, 0);
    }
}

// A constant of one number, as the views of an evaluation have it.
static bool fixed_number(const Builder *o, NodeId n, double *number) {
    NodeId base = node_base(o->g, n);
    const Attr *values = node_attr(graph_node(o->g, base), ATTR_values);
    if (graph_node(o->g, base)->op != OP_constant || values->count != 1)
        return false;
    *number = values->floats[0];
    return true;
}

// Pads on one side and slices on the other.
static const char *shift_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    const char *mode = node_text(d, ATTR_mode);
    double by[2];
    if (!fixed_number(o, d->arg[1], &by[0]) ||
        !fixed_number(o, d->arg[2], &by[1]))
        return fail(o, n, "it differs between the samples of a batch");
    int64_t left[4] = {0}, right[4] = {0};
    for (int i = 0; i < 2; i++) {
        left[1 + i] = by[i] < 0 ? (int64_t)-by[i] : 0;
        right[1 + i] = by[i] > 0 ? (int64_t)by[i] : 0;
    }
    // Row h of the result is row h + by.
    const char *padded =
        pad_add(o, n, operand(o, n, 0),
                mode == NULL || strcmp(mode, "zero") == 0 ? "constant" : mode,
                left, right, 4);
    return slice_add(o, n, padded, right, left, 4);
}

static const char *flip_add(Builder *o, NodeId n) {
    double flips;
    const char *x = operand(o, n, 0);
    if (!fixed_number(o, graph_node(o->g, n)->arg[1], &flips))
        return fail(o, n, "it differs between the samples of a batch");
    if (flips == 0)
        return x;
    static const int64_t from = -1, to = INT64_MIN, axis = 2, step = -1;
    return node_add(
        o, n, "Slice", NULL, NULL, 5,
        (const char *[]){x, ints_of(o, n, &from, 1), ints_of(o, n, &to, 1),
                         ints_of(o, n, &axis, 1), ints_of(o, n, &step, 1)});
}

static const char *transpose_add(Builder *o, NodeId n) {
    int rank = graph_node(o->g, n)->type->rank;
    int64_t order[RT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = node_ints(graph_node(o->g, n), ATTR_order, i, i);
    return transposed(o, n, operand(o, n, 0), rank, order);
}

static const char *gather_add(Builder *o, NodeId n) {
    Attributes t = {0};
    int_add(&t, "axis", 0);
    return node_add(o, n, "Gather", NULL, &t, 2,
                    (const char *[]){operand(o, n, 0), operand(o, n, 1)});
}

// Operands of equal sizes, as stack of the language has them.
static const char *stack_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    int64_t rows = d->type->dim[1], columns = d->type->dim[2];
    const char **part = ARENA_ARRAY(o->a, (size_t)d->num_args, const char *);
    Attributes t = {0};
    for (int i = 0; i < d->num_args; i++) {
        Type own = type_at(o, d->arg[i]);
        if (own.dim[0] != rows || type_count(&own) != rows * columns)
            return fail(o, n, "its operands have different sizes");
        int64_t dim[] = {1, batches(o, d->arg[i], 0) == 0 ? rows : -1, columns};
        part[i] = reshaped(o, n, operand(o, n, i), 3, dim);
    }
    int_add(&t, "axis", 0);
    return node_add(o, n, "Concat", NULL, &t, d->num_args, part);
}

static const char *broadcast_add(Builder *o, NodeId n) {
    Type t = type_at(o, n), from = type_at(o, graph_node(o->g, n)->arg[0]);
    int64_t dim[RT_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        int own = i - (t.rank - from.rank);
        bool same = own >= 0 && from.dim[own] == t.dim[i];
        if (!same && batches(o, n, i) != 0)
            return fail(o, n, "it makes a batch of one sample");
        dim[i] = same ? 1 : t.dim[i];
    }
    return binary(o, n, "Expand", operand(o, n, 0), ints_of(o, n, dim, t.rank));
}

// ---- reductions ----

static const char *reduced(Builder *o, NodeId n, const char *op,
                           const char *x) {
    const Attr *axes = node_attr(graph_node(o->g, n), ATTR_axes);
    return binary(o, n, op, x, ints_of(o, n, axes->ints, axes->count));
}

static const char *reduce_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    Type from = type_at(o, d->arg[0]);
    const char *x = cast_to(o, n, operand(o, n, 0), from.dtype, d->type->dtype);
    const char *made;
    if (d->op == OP_var) {
        const char *centred =
            binary(o, n, "Sub", x, reduced(o, n, "ReduceMean", x));
        made =
            reduced(o, n, "ReduceMean", binary(o, n, "Mul", centred, centred));
    } else {
        made = reduced(o, n, d->op == OP_sum ? "ReduceSum" : "ReduceMax", x);
    }
    return d->type->rank == from.rank ? made : reshaped_as(o, n, made);
}

static const char *argmax_add(Builder *o, NodeId n) {
    Attributes t = {0}, to = {0};
    int_add(&t, "axis", -1);
    const char *index = node_add(o, n, "ArgMax", NULL, &t, 1,
                                 (const char *[]){operand(o, n, 0)});
    int_add(&to, "to", element_type(I32));
    return node_add(o, n, "Cast", NULL, &to, 1, (const char *[]){index});
}

static const char *softmax_add(Builder *o, NodeId n) {
    Attributes t = {0};
    int_add(&t, "axis", -1);
    return node_add(
        o, n, graph_node(o->g, n)->op == OP_softmax ? "Softmax" : "LogSoftmax",
        NULL, &t, 1, (const char *[]){operand(o, n, 0)});
}

// ---- windows, convolutions, products ----

static void pair_add(Attributes *t, const char *name, const Node *d,
                     AttrKey key) {
    int64_t pair[] = {node_ints(d, key, 0, 1), node_ints(d, key, 1, 1)};
    ints_add(t, name, pair, 2);
}

// Ours are top, bottom, left, right.
static void pads_add(Attributes *t, const Node *d) {
    int64_t pad[4];
    for (int i = 0; i < 4; i++)
        pad[i] = node_ints(d, ATTR_pad, i, 0);
    ints_add(t, "pads", (int64_t[]){pad[0], pad[2], pad[1], pad[3]}, 4);
}

static const char *pool_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    bool average = d->op == OP_avg_pool;
    Attributes t = {0};
    pair_add(&t, "kernel_shape", d, ATTR_window);
    pair_add(&t, "strides", d, ATTR_stride);
    pads_add(&t, d);
    if (average)
        int_add(&t, "count_include_pad", 1);
    return node_add(o, n, average ? "AveragePool" : "MaxPool", NULL, &t, 1,
                    (const char *[]){value(o, d->arg[0], CHANNELS_FIRST)});
}

// A weight [K,R,S,C] as [K,C,R,S]; a parameter is stored so.
static const char *filters(Builder *o, NodeId n) {
    Type t = type_at(o, n);
    const char *name = node_text(graph_node(o->g, n), ATTR_name);
    if (graph_node(o->g, n)->op != OP_param ||
        o->name[n][CHANNELS_FIRST] != NULL)
        return value(o, n, CHANNELS_FIRST);
    const float *from = rt_tensors_find(o->x->weights, name, t.rank, t.dim);
    if (from == NULL)
        return value(o, n, CHANNELS_FIRST);
    int64_t k = t.dim[0], r = t.dim[1] * t.dim[2], c = t.dim[3];
    float *to = ARENA_ARRAY(o->a, (size_t)(k * r * c) + 1, float);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < r; j++)
            for (int64_t m = 0; m < c; m++)
                to[(i * c + m) * r + j] = from[(i * r + j) * c + m];
    o->name[n][CHANNELS_FIRST] = initializer_add(
        o, arena_format(o->a, "%s.oihw", name), element_type(F32), 4,
        (int64_t[]){k, c, t.dim[1], t.dim[2]}, to,
        (size_t)(k * r * c) * sizeof *to);
    return o->name[n][CHANNELS_FIRST];
}

// The rows and columns that a transposed convolution has at the end beyond
// those of its windows.
static void output_padding_add(Attributes *t, const Builder *o, const Node *d) {
    const Type *x = graph_node(o->g, d->arg[0])->type,
               *w = graph_node(o->g, d->arg[1])->type;
    int64_t pair[2];
    for (int i = 0; i < 2; i++)
        pair[i] = d->type->dim[1 + i] -
                  (x->dim[1 + i] - 1) * node_ints(d, ATTR_stride, i, 1) -
                  node_ints(d, ATTR_dilation, i, 1) * (w->dim[1 + i] - 1) - 1 +
                  node_ints(d, ATTR_pad, 2 * i, 0) +
                  node_ints(d, ATTR_pad, 2 * i + 1, 0);
    ints_add(t, "output_padding", pair, 2);
}

static const char *conv_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    const Type *w = graph_node(o->g, d->arg[1])->type;
    bool transposed = d->op == OP_conv_grad_input;
    Attributes t = {0};
    ints_add(&t, "kernel_shape", &w->dim[1], 2);
    pair_add(&t, "strides", d, ATTR_stride);
    pair_add(&t, "dilations", d, ATTR_dilation);
    pads_add(&t, d);
    int_add(&t, "group", node_int(d, ATTR_groups, 1));
    if (transposed)
        output_padding_add(&t, o, d);
    return node_add(o, n, transposed ? "ConvTranspose" : "Conv", NULL, &t, 2,
                    (const char *[]){value(o, d->arg[0], CHANNELS_FIRST),
                                     filters(o, d->arg[1])});
}

static const char *resize_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    const Type *from = graph_node(o->g, d->arg[0])->type, *to = d->type;
    bool nearest = strcmp(node_text(d, ATTR_mode), "nearest") == 0;
    float scale[] = {1, 1, (float)to->dim[1] / (float)from->dim[1],
                     (float)to->dim[2] / (float)from->dim[2]};
    int64_t four = 4;
    Attributes t = {0};
    text_attribute_add(&t, "mode", nearest ? "nearest" : "linear");
    text_attribute_add(&t, "coordinate_transformation_mode",
                       nearest ? "asymmetric" : "half_pixel");
    if (nearest)
        text_attribute_add(&t, "nearest_mode", "floor");
    const char *scales =
        initializer_add(o, name_new(o, n, "scales"), element_type(F32), 1,
                        &four, scale, sizeof scale);
    return node_add(
        o, n, "Resize", NULL, &t, 3,
        (const char *[]){value(o, d->arg[0], CHANNELS_FIRST), "", scales});
}

static const char *last_swapped(Builder *o, NodeId n, NodeId x) {
    int rank = graph_node(o->g, x)->type->rank;
    int64_t order[RT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[rank - 1] = rank - 2;
    order[rank - 2] = rank - 1;
    return transposed(o, n, value(o, x, CHANNELS_LAST), rank, order);
}

// A product of two matrices is a Gemm, as other programs write a linear layer.
static const char *matmul_add(Builder *o, NodeId n) {
    const Node *d = graph_node(o->g, n);
    bool ta = node_int(d, ATTR_ta, 0) != 0, tb = node_int(d, ATTR_tb, 0) != 0;
    bool flat = graph_node(o->g, d->arg[0])->type->rank == 2 &&
                graph_node(o->g, d->arg[1])->type->rank == 2;
    const char *x[2];
    for (int i = 0; i < 2; i++)
        x[i] = (i == 0 ? ta : tb) && !flat ? last_swapped(o, n, d->arg[i])
                                           : operand(o, n, i);
    Attributes t = {0};
    if (flat) {
        int_add(&t, "transA", ta);
        int_add(&t, "transB", tb);
    }
    return node_add(o, n, flat ? "Gemm" : "MatMul", NULL, &t, 2, x);
}

// ---- batch_norm ----

// The other operand of a sum or product of which one is x.
static NodeId other_of(const Builder *o, NodeId n, Op op, NodeId x) {
    const Node *d = graph_node(o->g, n);
    if (d->op != op)
        return NO_NODE;
    return d->arg[0] == x ? d->arg[1] : d->arg[1] == x ? d->arg[0] : NO_NODE;
}

typedef struct {
    NodeId x, scale, bias, mean, var;
    double eps;
} BatchNorm;

// Whether n is rsqrt(var + eps).
static bool is_deviation(const Builder *o, NodeId n, BatchNorm *m) {
    if (graph_node(o->g, n)->op != OP_rsqrt ||
        graph_node(o->g, graph_node(o->g, n)->arg[0])->op != OP_add)
        return false;
    const Node *sum = graph_node(o->g, graph_node(o->g, n)->arg[0]);
    for (int i = 0; i < 2; i++)
        if (node_number(graph_node(o->g, sum->arg[i]), &m->eps)) {
            m->var = sum->arg[1 - i];
            return graph_node(o->g, m->var)->op == OP_state;
        }
    return false;
}

// Whether n is (x - mean) * (scale * deviation) + bias, with numbers for each
// channel.
static bool find_norm(const Builder *o, NodeId n, BatchNorm *m) {
    const Node *d = graph_node(o->g, n);
    if (d->op != OP_add || d->type->rank != 4)
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *product = graph_node(o->g, d->arg[i]);
        m->bias = d->arg[1 - i];
        if (product->op != OP_mul || graph_node(o->g, m->bias)->type->rank != 1)
            continue;
        for (int j = 0; j < 2; j++) {
            const Node *centred = graph_node(o->g, product->arg[j]);
            NodeId factor = product->arg[1 - j];
            if (centred->op != OP_sub ||
                graph_node(o->g, factor)->op != OP_mul ||
                graph_node(o->g, centred->arg[1])->op != OP_state)
                continue;
            m->x = centred->arg[0];
            m->mean = centred->arg[1];
            for (int k = 0; k < 2; k++) {
                NodeId deviation = graph_node(o->g, factor)->arg[k];
                m->scale = other_of(o, factor, OP_mul, deviation);
                if (is_deviation(o, deviation, m) && m->scale != NO_NODE &&
                    graph_node(o->g, m->scale)->type->rank == 1)
                    return true;
            }
        }
    }
    return false;
}

static const char *norm_add(Builder *o, NodeId n, const BatchNorm *m) {
    Attributes t = {0};
    float_add(&t, "epsilon", m->eps);
    return node_add(o, n, "BatchNormalization", NULL, &t, 5,
                    (const char *[]){value(o, m->x, CHANNELS_FIRST),
                                     value(o, m->scale, CHANNELS_LAST),
                                     value(o, m->bias, CHANNELS_LAST),
                                     value(o, m->mean, CHANNELS_LAST),
                                     value(o, m->var, CHANNELS_LAST)});
}

// ---- the graph ----

static const char *last_add(Builder *o, NodeId n) {
    switch (graph_node(o->g, n)->op) {
    case OP_sum:
    case OP_max:
    case OP_var:
        return reduce_add(o, n);
    case OP_argmax:
        return argmax_add(o, n);
    case OP_reshape:
        return reshaped_as(o, n, operand(o, n, 0));
    case OP_transpose:
        return transpose_add(o, n);
    case OP_broadcast:
        return broadcast_add(o, n);
    case OP_shift:
        return shift_add(o, n);
    case OP_flip:
        return flip_add(o, n);
    case OP_gather:
        return gather_add(o, n);
    case OP_stack:
        return stack_add(o, n);
    case OP_matmul:
        return matmul_add(o, n);
    case OP_softmax:
    case OP_log_softmax:
        return softmax_add(o, n);
    case OP_pad:
    case OP_slice: {
        int64_t low[RT_MAX_RANK], high[RT_MAX_RANK];
        int rank = graph_node(o->g, n)->type->rank;
        bounds_of(graph_node(o->g, n), rank, low, high);
        return graph_node(o->g, n)->op == OP_pad
                   ? pad_add(o, n, operand(o, n, 0), "constant", low, high,
                             rank)
                   : slice_add(o, n, operand(o, n, 0), low, high, rank);
    }
    default:
        return fail(o, n, "ONNX has no such operation");
    }
}

static void operation_add(Builder *o, NodeId n) {
    BatchNorm norm;
    unsigned traits = op_info[graph_node(o->g, n)->op].traits;
    if (find_norm(o, n, &norm)) {
        o->name[n][CHANNELS_FIRST] = norm_add(o, n, &norm);
        return;
    }
    switch (graph_node(o->g, n)->op) {
    case OP_conv:
    case OP_conv_grad_input:
        o->name[n][CHANNELS_FIRST] = conv_add(o, n);
        return;
    case OP_max_pool:
    case OP_avg_pool:
        o->name[n][CHANNELS_FIRST] = pool_add(o, n);
        return;
    case OP_resize:
        o->name[n][CHANNELS_FIRST] = resize_add(o, n);
        return;
    default:
        break;
    }
    if ((traits & POINTWISE && graph_node(o->g, n)->op != OP_broadcast) ||
        graph_node(o->g, n)->op == OP_stop_gradient)
        pointwise_add(o, n);
    else
        o->name[n][CHANNELS_LAST] = last_add(o, n);
}

// Marks nodes that the file needs: not those inside of a batch_norm.
static void need(const Builder *o, NodeId n, bool *needed) {
    BatchNorm m;
    if (needed[n])
        return;
    needed[n] = true;
    if (find_norm(o, n, &m)) {
        need(o, m.x, needed);
        need(o, m.scale, needed);
        need(o, m.bias, needed);
        need(o, m.mean, needed);
        need(o, m.var, needed);
        return;
    }
    for (int i = 0; i < graph_node(o->g, n)->num_args; i++)
        need(o, graph_node(o->g, n)->arg[i], needed);
}

// Whether n is read as the filters of convolutions alone.
static bool *find_filters(const Builder *o, const bool *needed) {
    bool *only = ARENA_ARRAY(o->a, o->g->count, bool);
    for (NodeId n = 0; n < o->g->count; n++)
        only[n] = graph_node(o->g, n)->op == OP_param &&
                  graph_node(o->g, n)->type->rank == 4;
    for (NodeId n = 0; n < o->g->count; n++) {
        Op op = graph_node(o->g, n)->op;
        bool conv = op == OP_conv || op == OP_conv_grad_input;
        for (int i = 0; needed[n] && i < graph_node(o->g, n)->num_args; i++)
            only[graph_node(o->g, n)->arg[i]] &= conv && i == 1;
    }
    return only;
}

// An input or an output, with the batch in each of its dimensions.
static Interface interface_of(Builder *o, NodeId n, const char *name) {
    Type t = type_at(o, n);
    Interface to = {
        .name = name, .type = element_type(t.dtype), .rank = t.rank};
    for (int i = 0; i < t.rank; i++) {
        to.dim[i] = t.dim[i];
        to.batches[i] = batches(o, n, i);
    }
    return to;
}

static bool is_input(const Builder *o, const char *name) {
    for (int i = 0; i < o->out->num_inputs; i++)
        if (strcmp(o->out->input[i].name, name) == 0)
            return true;
    return false;
}

// prediction, or NAME of prediction.NAME; an input's name is taken.
static const char *output_name(const Builder *o, NodeId n) {
    const char *name = node_text(graph_node(o->g, n), ATTR_name);
    const char *dot = strchr(name, '.');
    const char *own = dot == NULL ? name : dot + 1;
    return is_input(o, own) ? arena_format(o->a, "output.%s", own) : own;
}

static void output_add(Builder *o, NodeId n) {
    Operators *to = o->out;
    const char *name = output_name(o, n);
    node_add(o, n, "Identity", name, NULL, 1,
             (const char *[]){operand(o, n, 0)});
    ARENA_APPEND(o->a, to->output, to->num_outputs, interface_of(o, n, name));
}

static void input_add(Builder *o, NodeId n) {
    Operators *to = o->out;
    const char *name = o->name[n][CHANNELS_LAST];
    if (name != NULL)
        ARENA_APPEND(o->a, to->input, to->num_inputs, interface_of(o, n, name));
}

static void graph_convert(Builder *o) {
    bool *needed = ARENA_ARRAY(o->a, o->g->count, bool);
    for (NodeId n = 0; n < o->g->count; n++)
        if (graph_node(o->g, n)->op == OP_output)
            need(o, n, needed);
    const bool *only = find_filters(o, needed);
    for (NodeId n = 0; n < o->g->count && o->why == NULL; n++) {
        const Node *d = graph_node(o->g, n);
        if (!needed[n] || only[n] || d->op == OP_constant || d->op == OP_iota)
            continue;
        if (d->op == OP_output) {
            output_add(o, n);
        } else if (op_info[d->op].traits & LEAF) {
            o->name[n][CHANNELS_LAST] = leaf_add(o, n);
            if (d->op == OP_input)
                input_add(o, n);
        } else {
            operation_add(o, n);
        }
    }
}

const char *operators_of(Arena *a, Operators *to, const Export *x) {
    Builder o = {.a = a, .x = x, .g = x->graph, .out = to};
    *to = (Operators){0};
    o.name = ARENA_ARRAY(a, (size_t)o.g->count + 1, Names);
    graph_convert(&o);
    return o.why;
}
