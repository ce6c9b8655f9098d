// PyTorch: operators as a Python file with an nn.Module, and its state_dict as
// safetensors (huggingface.co/docs/safetensors).
//
// A convolution, batch_norm, product or gather that reads weights by a layer's
// name is the layer of torch.nn with that name, with the bias that is added to
// it.  All other operators are expressions.  A value that is read once, in its
// own layer, is written where it is read.
#include "tools/export/operators.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INLINE_BYTES = 44 }; // of an expression that is written where it is read

// The value of a sum with a bias that its layer has added.
static const char ADDED[] = "";

typedef struct {
    const char *name; // of the operators' input or output
    const char *text; // in Python; NULL: not written yet
    int uses;
    const Operator *by;         // NULL: a tensor or the image
    const ExportTensor *tensor; // NULL: computed
} Value;

// An entry of the state_dict.
typedef struct {
    const char *name;
    const ExportTensor *tensor; // NULL: a counter
} Entry;

typedef struct {
    Arena *a;
    const Export *x;
    const Operators *from;
    Value *value; // sorted by name
    int num_values;
    Entry *entry;
    int num_entries;
    const char **declared; // modules
    int num_declared, num_constants;
    const char **variable; // names in forward
    int num_variables;
    Text init, forward;
    const char *line; // of the model: the last comment
    const char *why;
} Writer;

// ---- values ----

static int by_name(const void *a, const void *b) {
    return strcmp(((const Value *)a)->name, ((const Value *)b)->name);
}

static Value *value_of(const Writer *w, const char *name) {
    Value key = {.name = name};
    return bsearch(&key, w->value, (size_t)w->num_values, sizeof key, by_name);
}

static void values_find(Writer *w) {
    const Operators *o = w->from;
    w->value = ARENA_ARRAY(
        w->a, (size_t)(o->num_operators + o->num_tensors + o->num_inputs),
        Value);
    for (int i = 0; i < o->num_inputs; i++)
        w->value[w->num_values++] =
            (Value){.name = o->input[i].name, .text = o->input[i].name};
    for (int i = 0; i < o->num_tensors; i++)
        w->value[w->num_values++] =
            (Value){.name = o->tensor[i].name, .tensor = &o->tensor[i]};
    for (int i = 0; i < o->num_operators; i++)
        w->value[w->num_values++] =
            (Value){.name = o->made[i].out, .by = &o->made[i]};
    qsort(w->value, (size_t)w->num_values, sizeof *w->value, by_name);
    for (int i = 0; i < o->num_operators; i++)
        for (int k = 0; k < o->made[i].num_inputs; k++)
            if (*o->made[i].input[k] != '\0')
                value_of(w, o->made[i].input[k])->uses++;
}

static const Operator *maker_of(const Writer *w, const char *name) {
    return value_of(w, name)->by;
}

static const ExportTensor *tensor_of(const Writer *w, const char *name) {
    return value_of(w, name)->tensor;
}

static const int64_t *ints_at(const Writer *w, const char *name, int *count) {
    const ExportTensor *t = tensor_of(w, name);
    *count = (int)t->dim[0];
    return t->bytes;
}

static const Attribute *attribute_of(const Operator *o, const char *name) {
    for (int i = 0; i < o->attributes.count; i++)
        if (strcmp(o->attributes.list[i].name, name) == 0)
            return &o->attributes.list[i];
    return NULL;
}

static int64_t int_of(const Operator *o, const char *name, int i) {
    const Attribute *t = attribute_of(o, name);
    return t != NULL ? t->ints[i] : 0;
}

static const Node *node_of(const Writer *w, const Operator *o) {
    return &w->x->graph->node[o->from];
}

static bool is_op(const Operator *o, const char *name) {
    return o != NULL && strcmp(o->op, name) == 0;
}

// ---- names ----

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), own = strlen(end);
    return length > own && strcmp(name + length - own, end) == 0;
}

static const char *without_end(Arena *a, const char *name, const char *end) {
    return ends_with(name, end)
               ? arena_string(a, name, strlen(name) - strlen(end))
               : name;
}

// The model's name of a weight.
static const char *weight_name(const Writer *w, const ExportTensor *t) {
    return without_end(w->a, without_end(w->a, t->name, ".oihw"), ".average");
}

// Whether a tensor is a weight of that kind; its layer.
static const char *layer_of(const Writer *w, const char *tensor,
                            const char *kind) {
    const ExportTensor *t = tensor_of(w, tensor);
    const char *name = t != NULL ? weight_name(w, t) : "";
    return ends_with(name, kind) ? without_end(w->a, name, kind) : NULL;
}

static bool is_declared(const Writer *w, const char *name) {
    for (int i = 0; i < w->num_declared; i++)
        if (strcmp(w->declared[i], name) == 0)
            return true;
    return false;
}

// Words that Python reserves, or nn.Module or the file uses.
static const char reserved[] =
    " and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise "
    "return try while with yield False None True nn F torch math os json load "
    "self add_module apply bfloat16 buffers children compile cpu cuda double "
    "eval "
    "extra_repr float forward half load_state_dict modules named_buffers "
    "named_children named_modules named_parameters parameters register_buffer "
    "register_module register_parameter requires_grad_ state_dict to to_empty "
    "train training type xpu zero_grad ";

static void check_name(Writer *w, const char *word) {
    if (w->why == NULL && strstr(reserved, arena_format(w->a, " %s ", word)))
        w->why = arena_format(
            w->a, "PyTorch has another meaning for the name %s", word);
}

static void declare(Writer *w, const char *name, const char *text) {
    if (is_declared(w, name))
        return;
    const char *last = strrchr(name, '.');
    check_name(w, last != NULL ? last + 1 : name);
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
        declare(w, arena_string(w->a, name, (size_t)(dot - name)),
                "nn.Module()");
    w->declared[w->num_declared++] = name;
    text_add(&w->init, "        self.%s = %s\n", name, text);
}

static void entry_add(Writer *w, const char *name, const ExportTensor *t) {
    for (int i = 0; i < w->num_entries; i++)
        if (strcmp(w->entry[i].name, name) == 0)
            return;
    w->entry[w->num_entries++] = (Entry){name, t};
}

// A variable for an operator's value: its layer's name, and a number unless it
// is the first.
static const char *variable_new(Writer *w, const Operator *o) {
    const char *path = node_of(w, o)->from.path;
    char *base = arena_format(w->a, "%s", path != NULL && *path ? path : "x");
    for (char *c = base; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    const char *name = base;
    for (int number = 2, taken = 1; taken; number++) {
        taken = 0;
        for (int i = 0; i < w->num_variables; i++)
            taken |= strcmp(w->variable[i], name) == 0;
        if (taken)
            name = arena_format(w->a, "%s_%d", base, number);
    }
    w->variable[w->num_variables++] = name;
    return name;
}

// ---- tensors ----

static const char *torch_type(ElementType type) {
    return type == ELEMENT_F32   ? "torch.float32"
           : type == ELEMENT_U8  ? "torch.uint8"
           : type == ELEMENT_I32 ? "torch.int32"
           : type == ELEMENT_I64 ? "torch.int64"
                                 : "torch.bool";
}

static const char *ints_text(Arena *a, const int64_t *value, int count) {
    Text t = text_new(a);
    for (int i = 0; i < count; i++)
        text_add(&t, "%s%lld", i > 0 ? ", " : "", (long long)value[i]);
    return text_string(&t);
}

static double number_at(const ExportTensor *t, int64_t i) {
    const unsigned char *byte = t->bytes;
    float real;
    int32_t whole;
    if (t->type == ELEMENT_BOOL || t->type == ELEMENT_U8)
        return byte[i];
    memcpy(&real, byte + 4 * i, sizeof real);
    memcpy(&whole, byte + 4 * i, sizeof whole);
    return t->type == ELEMENT_I32 ? (double)whole : (double)real;
}

static const char *number_text(Arena *a, const ExportTensor *t, int64_t i) {
    double v = number_at(t, i);
    if (t->type == ELEMENT_BOOL)
        return v != 0 ? "True" : "False";
    if (t->type != ELEMENT_F32)
        return arena_format(a, "%d", (int)v);
    if (!isfinite(v))
        return arena_format(a, "float(\"%f\")", v);
    const char *text = arena_format(a, "%.9g", v);
    return strpbrk(text, ".e") != NULL ? text : arena_format(a, "%s.0", text);
}

// The only axis along which numbers differ, with the elements from one to the
// next; -1: they differ along several.
static int only_axis(const ExportTensor *t, int64_t *apart) {
    int64_t count = 1, inner = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    for (int axis = t->rank - 1; axis >= 0; inner *= t->dim[axis--]) {
        bool only = true;
        for (int64_t i = 0; i < count && only; i++)
            only = number_at(t, i) ==
                   number_at(t, i / inner % t->dim[axis] * inner);
        *apart = inner;
        if (only)
            return axis;
    }
    return -1;
}

// A constant as Python; NULL: it has too many numbers.
static const char *constant_text(Writer *w, const ExportTensor *t) {
    enum { MAX_NUMBERS = 64 };
    int64_t apart, dim[RT_MAX_RANK], counts = 1, equal = 1;
    int axis = only_axis(t, &apart);
    if (t->rank == 0 || axis < 0 || t->dim[axis] < 1)
        return NULL;
    for (int64_t i = 1; i < t->dim[axis]; i++) {
        double by = number_at(t, i * apart) - number_at(t, (i - 1) * apart);
        counts &= by == 1;
        equal &= by == 0;
    }
    if (equal)
        return arena_format(w->a, "torch.full((%s,), %s, dtype=%s)",
                            ints_text(w->a, t->dim, t->rank),
                            number_text(w->a, t, 0), torch_type(t->type));
    Text to = text_new(w->a);
    if (counts && t->type == ELEMENT_I32) {
        int64_t from = (int64_t)number_at(t, 0);
        text_add(&to, "torch.arange(%lld, %lld, dtype=torch.int32)",
                 (long long)from, (long long)(from + t->dim[axis]));
    } else if (t->dim[axis] > MAX_NUMBERS) {
        return NULL;
    } else {
        text_add(&to, "torch.tensor([");
        for (int64_t i = 0; i < t->dim[axis]; i++)
            text_add(&to, "%s%s", i > 0 ? ", " : "",
                     number_text(w->a, t, i * apart));
        text_add(&to, "], dtype=%s)", torch_type(t->type));
    }
    for (int i = 0; i < t->rank; i++)
        dim[i] = i == axis ? t->dim[i] : 1;
    if (t->rank > 1)
        text_add(&to, ".reshape(%s).expand(%s)", ints_text(w->a, dim, t->rank),
                 ints_text(w->a, t->dim, t->rank));
    return text_string(&to);
}

// A weight by its name, a single number, or a constant that is kept as a
// buffer, with the weights if it is large.
static const char *tensor_text(Writer *w, const ExportTensor *t) {
    const char *name = weight_name(w, t), *dot = strrchr(name, '.');
    const char *shape = ints_text(w->a, t->dim, t->rank);
    if (dot != NULL && strchr(name, '/') == NULL) {
        bool trained = !ends_with(name, ".running_mean") &&
                       !ends_with(name, ".running_var");
        if (ends_with(name, ".scale"))
            name = arena_format(w->a, "%s.weight",
                                without_end(w->a, name, ".scale"));
        entry_add(w, name, t);
        declare(w, name,
                arena_format(w->a, "nn.Parameter(torch.empty(%s)%s)", shape,
                             trained ? "" : ", requires_grad=False"));
        return arena_format(w->a, "self.%s", name);
    }
    if (t->rank == 0)
        return number_text(w->a, t, 0);
    const char *text = constant_text(w, t);
    name = arena_format(w->a, "constant_%d", ++w->num_constants);
    if (text != NULL) {
        text_add(&w->init,
                 "        self.register_buffer(\"%s\", %s, persistent=False)\n",
                 name, text);
    } else {
        entry_add(w, name, t);
        text_add(&w->init,
                 "        self.register_buffer(\"%s\", torch.empty((%s,), "
                 "dtype=%s))\n",
                 name, shape, torch_type(t->type));
    }
    return arena_format(w->a, "self.%s", name);
}

static const char *text_of(Writer *w, const char *name) {
    Value *v = value_of(w, name);
    if (v->text == NULL && v->tensor != NULL)
        v->text = tensor_text(w, v->tensor);
    return v->text;
}

// ---- layers ----

static const char *pair_text(Writer *w, const Operator *o, const char *name) {
    int64_t a = int_of(o, name, 0), b = int_of(o, name, 1);
    return a == b
               ? arena_format(w->a, "%lld", (long long)a)
               : arena_format(w->a, "(%lld, %lld)", (long long)a, (long long)b);
}

static bool pads_equal(const Operator *o) {
    return int_of(o, "pads", 0) == int_of(o, "pads", 2) &&
           int_of(o, "pads", 1) == int_of(o, "pads", 3);
}

static const char *padded_text(Writer *w, const Operator *o, const char *x,
                               const char *value) {
    return arena_format(w->a, "F.pad(%s, (%lld, %lld, %lld, %lld)%s)", x,
                        (long long)int_of(o, "pads", 1),
                        (long long)int_of(o, "pads", 3),
                        (long long)int_of(o, "pads", 0),
                        (long long)int_of(o, "pads", 2), value);
}

static const Operator *reader_of(const Writer *w, const Operator *o) {
    for (const Operator *r = o + 1; r < w->from->made + w->from->num_operators;
         r++)
        for (int i = 0; i < r->num_inputs; i++)
            if (strcmp(r->input[i], o->out) == 0)
                return r;
    return NULL;
}

// The tensor of an operand, also of one that is reshaped; NULL: it is computed.
static const char *operand_tensor(const Writer *w, const char *name) {
    const Operator *by = maker_of(w, name);
    name = is_op(by, "Reshape") ? by->input[0] : name;
    return tensor_of(w, name) != NULL ? name : NULL;
}

// The bias of the layer that the only reader of a value adds to it, and that
// reader.  Rows of a product may take another shape before.
static const char *bias_of(const Writer *w, const Operator *o,
                           const char *layer, const Operator **reader) {
    const Operator *r = value_of(w, o->out)->uses == 1 ? reader_of(w, o) : NULL;
    if (is_op(r, "Reshape") && value_of(w, r->out)->uses == 1) {
        o = r;
        r = reader_of(w, r);
    }
    *reader = r;
    for (int i = 0; is_op(r, "Add") && i < 2; i++) {
        const char *bias = operand_tensor(w, r->input[i]);
        const char *of = bias != NULL ? layer_of(w, bias, ".bias") : NULL;
        if (of != NULL && strcmp(of, layer) == 0 &&
            tensor_of(w, bias)->rank == 1)
            return bias;
    }
    return NULL;
}

static bool has_bias(const Writer *w, const char *layer) {
    for (int i = 0; i < w->from->num_tensors; i++) {
        const char *of = layer_of(w, w->from->tensor[i].name, ".bias");
        if (of != NULL && strcmp(of, layer) == 0)
            return true;
    }
    return false;
}

// Calls a layer with its bias, which the reader then has already.  NULL: its
// bias is used otherwise.
static const char *layer_call(Writer *w, const Operator *o, const char *layer,
                              const char *make, const char *weight,
                              const char *x) {
    const Operator *reader = NULL;
    const char *bias = bias_of(w, o, layer, &reader);
    int open = (int)strlen(make) - 1; // up to the closing bracket
    if (bias == NULL && has_bias(w, layer))
        return NULL;
    declare(w, layer,
            bias != NULL ? make
                         : arena_format(w->a, "%.*s, bias=False)", open, make));
    entry_add(w, arena_format(w->a, "%s.weight", layer), tensor_of(w, weight));
    if (bias != NULL) {
        entry_add(w, arena_format(w->a, "%s.bias", layer), tensor_of(w, bias));
        value_of(w, reader->out)->text = ADDED;
    }
    return arena_format(w->a, "self.%s(%s)", layer, x);
}

static const char *conv_options(Writer *w, const Operator *o) {
    int64_t groups = int_of(o, "group", 0);
    Text t = text_new(w->a);
    bool pads = pads_equal(o);
    if (int_of(o, "strides", 0) != 1 || int_of(o, "strides", 1) != 1)
        text_add(&t, ", stride=%s", pair_text(w, o, "strides"));
    if (pads && (int_of(o, "pads", 0) != 0 || int_of(o, "pads", 1) != 0))
        text_add(&t, ", padding=%s", pair_text(w, o, "pads"));
    if (pads && (int_of(o, "output_padding", 0) != 0 ||
                 int_of(o, "output_padding", 1) != 0))
        text_add(&t, ", output_padding=%s", pair_text(w, o, "output_padding"));
    if (int_of(o, "dilations", 0) != 1 || int_of(o, "dilations", 1) != 1)
        text_add(&t, ", dilation=%s", pair_text(w, o, "dilations"));
    if (groups != 1)
        text_add(&t, ", groups=%lld", (long long)groups);
    return text_string(&t);
}

// Calls nn.Conv2d or nn.ConvTranspose2d.  NULL: the weight is no layer's, or
// its bias is used otherwise.
static const char *conv_layer(Writer *w, const Operator *o, const char *x) {
    const char *layer = layer_of(w, o->input[1], ".weight");
    const ExportTensor *f = tensor_of(w, o->input[1]);
    bool transposed = is_op(o, "ConvTranspose");
    if (layer == NULL)
        return NULL;
    int64_t inner = f->dim[1] * int_of(o, "group", 0);
    return layer_call(w, o, layer,
                      arena_format(w->a, "nn.Conv%s2d(%lld, %lld, %s%s)",
                                   transposed ? "Transpose" : "",
                                   (long long)(transposed ? f->dim[0] : inner),
                                   (long long)(transposed ? inner : f->dim[0]),
                                   pair_text(w, o, "kernel_shape"),
                                   conv_options(w, o)),
                      o->input[1], x);
}

static const char *conv_text(Writer *w, const Operator *o) {
    const char *x = text_of(w, o->input[0]);
    if (!pads_equal(o))
        x = padded_text(w, o, x, "");
    const char *call = conv_layer(w, o, x);
    return call != NULL ? call
                        : arena_format(w->a, "F.conv2d(%s, %s%s)", x,
                                       text_of(w, o->input[1]),
                                       conv_options(w, o));
}

// PyTorch cuts the same from both ends; other ends are cut behind it.
static const char *conv_transpose_text(Writer *w, const Operator *o) {
    const char *x = text_of(w, o->input[0]);
    const char *call = pads_equal(o) ? conv_layer(w, o, x) : NULL;
    if (call != NULL)
        return call;
    call = arena_format(w->a, "F.conv_transpose2d(%s, %s%s)", x,
                        text_of(w, o->input[1]), conv_options(w, o));
    if (pads_equal(o))
        return call;
    int64_t end[2];
    for (int i = 0; i < 2; i++)
        end[i] = int_of(o, "output_padding", i) - int_of(o, "pads", 2 + i);
    return arena_format(w->a, "F.pad(%s, (%lld, %lld, %lld, %lld))", call,
                        (long long)-int_of(o, "pads", 1), (long long)end[1],
                        (long long)-int_of(o, "pads", 0), (long long)end[0]);
}

static const char *norm_text(Writer *w, const Operator *o) {
    static const char *const own[] = {".scale", ".bias", ".running_mean",
                                      ".running_var"},
                             *const torch[] = {"weight", "bias", "running_mean",
                                               "running_var"};
    const char *layer = layer_of(w, o->input[1], own[0]);
    double eps = attribute_of(o, "epsilon")->real;
    for (int i = 1; i < 4 && layer != NULL; i++) {
        const char *same = layer_of(w, o->input[1 + i], own[i]);
        if (same == NULL || strcmp(same, layer) != 0)
            layer = NULL;
    }
    if (layer == NULL)
        return arena_format(w->a, "F.batch_norm(%s, %s, %s, %s, %s, eps=%.9g)",
                            text_of(w, o->input[0]), text_of(w, o->input[3]),
                            text_of(w, o->input[4]), text_of(w, o->input[1]),
                            text_of(w, o->input[2]), eps);
    declare(w, layer,
            arena_format(w->a, "nn.BatchNorm2d(%lld, eps=%.9g)",
                         (long long)tensor_of(w, o->input[1])->dim[0], eps));
    for (int i = 0; i < 4; i++)
        entry_add(w, arena_format(w->a, "%s.%s", layer, torch[i]),
                  tensor_of(w, o->input[1 + i]));
    entry_add(w, arena_format(w->a, "%s.num_batches_tracked", layer), NULL);
    return arena_format(w->a, "self.%s(%s)", layer, text_of(w, o->input[0]));
}

// A product with the rows of a layer's weight.
static const char *product_text(Writer *w, const Operator *o) {
    bool gemm = is_op(o, "Gemm");
    const Operator *turned = maker_of(w, o->input[1]);
    const char *weight = gemm && int_of(o, "transB", 0) != 0 ? o->input[1]
                         : !gemm && is_op(turned, "Transpose")
                             ? turned->input[0]
                             : NULL;
    const ExportTensor *t = weight != NULL ? tensor_of(w, weight) : NULL;
    const char *layer =
        t != NULL && t->rank == 2 && (!gemm || int_of(o, "transA", 0) == 0)
            ? layer_of(w, weight, ".weight")
            : NULL;
    const char *call =
        layer == NULL ? NULL
                      : layer_call(w, o, layer,
                                   arena_format(w->a, "nn.Linear(%lld, %lld)",
                                                (long long)t->dim[1],
                                                (long long)t->dim[0]),
                                   weight, text_of(w, o->input[0]));
    if (call != NULL)
        return call;
    if (layer != NULL)
        return arena_format(w->a, "F.linear(%s, %s)", text_of(w, o->input[0]),
                            text_of(w, weight));
    const char *side[2];
    for (int i = 0; i < 2; i++)
        side[i] = arena_format(
            w->a, "%s%s", text_of(w, o->input[i]),
            gemm && int_of(o, i == 0 ? "transA" : "transB", 0) ? ".t()" : "");
    return arena_format(w->a, "(%s @ %s)", side[0], side[1]);
}

static const char *gather_text(Writer *w, const Operator *o) {
    const char *layer = layer_of(w, o->input[0], ".weight");
    const ExportTensor *t = tensor_of(w, o->input[0]);
    if (layer == NULL || t->rank != 2)
        return arena_format(w->a, "%s[%s.long()]", text_of(w, o->input[0]),
                            text_of(w, o->input[1]));
    declare(w, layer,
            arena_format(w->a, "nn.Embedding(%lld, %lld)", (long long)t->dim[0],
                         (long long)t->dim[1]));
    entry_add(w, arena_format(w->a, "%s.weight", layer), t);
    return arena_format(w->a, "self.%s(%s)", layer, text_of(w, o->input[1]));
}

// ---- other operators ----

// Operators that are a Python expression of their inputs.
static const struct {
    const char *op, *text; // $0, $1, $2
} expressions[] = {
    {"Neg", "-$0"},
    {"Abs", "$0.abs()"},
    {"Exp", "$0.exp()"},
    {"Log", "$0.log()"},
    {"Sqrt", "$0.sqrt()"},
    {"Cos", "$0.cos()"},
    {"Sin", "$0.sin()"},
    {"Tanh", "$0.tanh()"},
    {"Sigmoid", "$0.sigmoid()"},
    {"Floor", "$0.floor()"},
    {"Relu", "F.relu($0)"},
    {"Not", "~$0"},
    {"Add", "($0 + $1)"},
    {"Sub", "($0 - $1)"},
    {"Mul", "($0 * $1)"},
    {"Div", "($0 / $1)"},
    {"Max", "torch.maximum($0, $1)"},
    {"Min", "torch.minimum($0, $1)"},
    {"Less", "($0 < $1)"},
    {"LessOrEqual", "($0 <= $1)"},
    {"Equal", "($0 == $1)"},
    {"And", "($0 & $1)"},
    {"Or", "($0 | $1)"},
    {"Where", "torch.where($0, $1, $2)"},
    {"Identity", "$0"},
    {"Erf", "torch.erf($0)"},
    {"Reciprocal", "$0.reciprocal()"},
    {"Mod", "torch.fmod($0, $1)"},
    {"ArgMax", "$0.argmax(-1, keepdim=True)"},
    {"Softmax", "$0.softmax(-1)"},
    {"LogSoftmax", "$0.log_softmax(-1)"},
};

// torch.maximum takes tensors alone.
static const char *operand_text(Writer *w, const Operator *o, int i) {
    const char *text = text_of(w, o->input[i]);
    const ExportTensor *t = tensor_of(w, o->input[i]);
    bool picks = is_op(o, "Max") || is_op(o, "Min");
    return picks && t != NULL && t->rank == 0
               ? arena_format(w->a, "torch.tensor(%s)", text)
               : text;
}

static const char *expression_text(Writer *w, const Operator *o) {
    const char *from = NULL;
    Text t = text_new(w->a);
    bool whole = is_op(o, "Div") && !dtype_float(node_of(w, o)->type->dtype);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++)
        if (strcmp(expressions[i].op, o->op) == 0)
            from = expressions[i].text;
    if (from == NULL)
        return NULL;
    if (whole)
        from = "torch.div($0, $1, rounding_mode=\"trunc\")";
    for (; *from != '\0'; from++)
        if (*from == '$')
            text_add(&t, "%s", operand_text(w, o, *++from - '0'));
        else
            text_add(&t, "%c", *from);
    return text_string(&t);
}

static const char *cast_text(Writer *w, const Operator *o) {
    const char *x = text_of(w, o->input[0]);
    ElementType to = (ElementType)int_of(o, "to", 0);
    return to == ELEMENT_F32
               ? arena_format(w->a, "%s.float()", x)
               : arena_format(w->a, "%s.to(%s)", x, torch_type(to));
}

static const char *pool_text(Writer *w, const Operator *o) {
    bool average = is_op(o, "AveragePool");
    const char *x = text_of(w, o->input[0]), *pads = "";
    if (!pads_equal(o))
        x = padded_text(w, o, x, average ? "" : ", value=-math.inf");
    else if (int_of(o, "pads", 0) != 0 || int_of(o, "pads", 1) != 0)
        pads = arena_format(w->a, ", padding=%s", pair_text(w, o, "pads"));
    return arena_format(
        w->a, "F.%s_pool2d(%s, %s, stride=%s%s)", average ? "avg" : "max", x,
        pair_text(w, o, "kernel_shape"), pair_text(w, o, "strides"), pads);
}

static const char *slice_text(Writer *w, const Operator *o) {
    int rank;
    const int64_t *low = ints_at(w, o->input[1], &rank),
                  *high = ints_at(w, o->input[2], &rank);
    Text t = text_new(w->a);
    text_add(&t, "%s", text_of(w, o->input[0]));
    if (o->num_inputs > 4) { // one axis, backwards
        const int64_t *axis = ints_at(w, o->input[3], &rank);
        text_add(&t, ".flip(%lld)", (long long)axis[0]);
        return text_string(&t);
    }
    text_add(&t, "[");
    for (int i = 0; i < rank; i++) {
        text_add(&t, "%s", i > 0 ? ", " : "");
        if (low[i] != 0)
            text_add(&t, "%lld", (long long)low[i]);
        text_add(&t, ":");
        if (high[i] != INT64_MAX)
            text_add(&t, "%lld", (long long)high[i]);
    }
    text_add(&t, "]");
    return text_string(&t);
}

// torch pads from the last axis on, and mirrors the last two of four alone.
static const char *pad_text(Writer *w, const Operator *o) {
    int count;
    const int64_t *pad = ints_at(w, o->input[1], &count);
    const char *mode = attribute_of(o, "mode")->text;
    const char *x = text_of(w, o->input[0]);
    int rank = count / 2;
    int64_t list[2 * RT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        list[2 * i] = pad[rank - 1 - i];
        list[2 * i + 1] = pad[count - 1 - i];
    }
    if (strcmp(mode, "constant") == 0)
        return arena_format(w->a, "F.pad(%s, (%s))", x,
                            ints_text(w->a, list, count));
    bool real = dtype_float(node_of(w, o)->type->dtype);
    return arena_format(w->a,
                        "F.pad(%s%s.permute(0, 3, 1, 2), (%s), mode=\"%s\")"
                        ".permute(0, 2, 3, 1)%s",
                        x, real ? "" : ".float()", ints_text(w->a, list + 2, 4),
                        strcmp(mode, "edge") == 0 ? "replicate" : mode,
                        real ? "" : arena_format(w->a, ".to(%s.dtype)", x));
}

static const char *reduce_text(Writer *w, const Operator *o) {
    const char *name = is_op(o, "ReduceSum")   ? "sum"
                       : is_op(o, "ReduceMax") ? "amax"
                                               : "mean";
    int count;
    const int64_t *axes = ints_at(w, o->input[1], &count);
    return arena_format(w->a, "%s.%s((%s,), keepdim=True)",
                        text_of(w, o->input[0]), name,
                        ints_text(w->a, axes, count));
}

static const char *shape_text(Writer *w, const Operator *o) {
    const char *x = text_of(w, o->input[0]);
    int count;
    if (is_op(o, "Transpose")) {
        const Attribute *order = attribute_of(o, "perm");
        return arena_format(w->a, "%s.permute(%s)", x,
                            ints_text(w->a, order->ints, order->count));
    }
    const int64_t *dim = ints_at(w, o->input[1], &count);
    if (is_op(o, "Reshape"))
        return arena_format(w->a, "%s.reshape(%s)", x,
                            count > 0 ? ints_text(w->a, dim, count) : "()");
    int64_t to[RT_MAX_RANK];
    const Node *d = node_of(w, o);
    int own = w->x->graph->node[d->arg[0]].type->rank;
    for (int i = 0; i < count; i++)
        to[i] = dim[i] == 1 && i >= count - own ? -1 : dim[i];
    return arena_format(w->a, "%s.expand(%s)", x, ints_text(w->a, to, count));
}

static const char *concat_text(Writer *w, const Operator *o) {
    Text t = text_new(w->a);
    text_add(&t, "torch.cat((");
    for (int i = 0; i < o->num_inputs; i++)
        text_add(&t, "%s, ", text_of(w, o->input[i]));
    text_add(&t, "))");
    return text_string(&t);
}

static const char *resize_text(Writer *w, const Operator *o) {
    const Node *d = node_of(w, o);
    bool nearest = strcmp(attribute_of(o, "mode")->text, "nearest") == 0;
    return arena_format(w->a, "F.interpolate(%s, size=(%lld, %lld), mode=%s)",
                        text_of(w, o->input[0]), (long long)d->type->dim[1],
                        (long long)d->type->dim[2],
                        nearest ? "\"nearest\""
                                : "\"bilinear\", align_corners=False");
}

static const struct {
    const char *op;
    const char *(*text)(Writer *w, const Operator *o);
} others[] = {
    {"ConvTranspose", conv_transpose_text},
    {"Conv", conv_text},         {"BatchNormalization", norm_text},
    {"Gemm", product_text},      {"MatMul", product_text},
    {"Gather", gather_text},     {"Cast", cast_text},
    {"AveragePool", pool_text},  {"MaxPool", pool_text},
    {"Slice", slice_text},       {"Pad", pad_text},
    {"ReduceSum", reduce_text},  {"ReduceMax", reduce_text},
    {"ReduceMean", reduce_text}, {"Transpose", shape_text},
    {"Reshape", shape_text},     {"Expand", shape_text},
    {"Resize", resize_text},     {"Concat", concat_text},
};

static const char *operator_text(Writer *w, const Operator *o) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].op, o->op) == 0)
            return others[i].text(w, o);
    const char *text = expression_text(w, o);
    if (text == NULL && w->why == NULL)
        w->why = arena_format(w->a, "PyTorch has no %s", o->op);
    return text != NULL ? text : "";
}

// ---- the file ----

static void line_comment(Writer *w, const Operator *o) {
    const Node *d = node_of(w, o);
    const char *line =
        d->from.file != NULL
            ? arena_format(w->a, "%s:%d", d->from.file, d->from.line)
            : "";
    if (*line != '\0' && (w->line == NULL || strcmp(line, w->line) != 0))
        text_add(&w->forward, "        # %s\n", line);
    w->line = line;
}

static bool same_layer(const Writer *w, const Operator *o,
                       const Operator *reader) {
    const char *a = node_of(w, o)->from.path;
    const char *b = node_of(w, reader)->from.path;
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

// Whether a layer reads this value as a weight in PyTorch's order.
static bool is_absorbed(const Writer *w, const Operator *o) {
    const Operator *r = reader_of(w, o);
    if (value_of(w, o->out)->uses != 1 || r == NULL || o->num_inputs < 1 ||
        tensor_of(w, o->input[0]) == NULL)
        return false;
    return (is_op(o, "Transpose") && is_op(r, "MatMul") &&
            strcmp(r->input[1], o->out) == 0 &&
            layer_of(w, o->input[0], ".weight") != NULL) ||
           (is_op(o, "Reshape") && value_of(w, r->out)->text == ADDED);
}

static void operator_add(Writer *w, const Operator *o) {
    Value *v = value_of(w, o->out);
    if (is_absorbed(w, o))
        return;
    if (v->text == ADDED) {
        int bias = operand_tensor(w, o->input[0]) != NULL ? 0 : 1;
        const char *sum = text_of(w, o->input[1 - bias]);
        v->text = v->uses > 1 && strchr(sum, '(') ? variable_new(w, o) : sum;
        if (v->text != sum)
            text_add(&w->forward, "        %s = %s\n", v->text, sum);
        return;
    }
    const char *text = operator_text(w, o);
    const Operator *reader = reader_of(w, o);
    bool here = v->uses == 1 && reader != NULL && strlen(text) < INLINE_BYTES &&
                same_layer(w, o, reader);
    if (here || reader == NULL) {
        v->text = text;
        return;
    }
    size_t length = strlen(text);
    bool bracketed = text[0] == '(' && text[length - 1] == ')' &&
                     strchr(text + 1, '(') == NULL;
    v->text = variable_new(w, o);
    line_comment(w, o);
    text_add(&w->forward, "        %s = %.*s\n", v->text,
             (int)(length - 2 * bracketed), text + bracketed);
}

static const char *interface_text(Arena *a, const Interface *t) {
    Text to = text_new(a);
    text_add(&to, "%s [", torch_type(t->type) + strlen("torch."));
    for (int i = 0; i < t->rank; i++) {
        text_add(&to, "%s", i > 0 ? ", " : "");
        if (t->batches[i] == 0)
            text_add(&to, "%lld", (long long)t->dim[i]);
        else if (t->batches[i] == 1)
            text_add(&to, "N");
        else
            text_add(&to, "%lld * N", (long long)t->batches[i]);
    }
    text_add(&to, "]");
    return text_string(&to);
}

static const char loader[] =
    "def load(path=os.path.splitext(os.path.abspath(__file__))[0] + "
    "\".safetensors\"):\n"
    "    \"\"\"The model with the weights of a file, for evaluation.\"\"\"\n"
    "    types = {\"F32\": torch.float32, \"I32\": torch.int32, "
    "\"I64\": torch.int64,\n"
    "             \"U8\": torch.uint8, \"BOOL\": torch.bool}\n"
    "    with open(path, \"rb\") as file:\n"
    "        header = json.loads(file.read("
    "int.from_bytes(file.read(8), \"little\")))\n"
    "        data = bytearray(file.read())\n"
    "    header.pop(\"__metadata__\", None)\n"
    "    state = {}\n"
    "    for name, entry in header.items():\n"
    "        begin, end = entry[\"data_offsets\"]\n"
    "        state[name] = torch.frombuffer(\n"
    "            data[begin:end], dtype=types[entry[\"dtype\"]]"
    ").reshape(entry[\"shape\"])\n"
    "    model = %s()\n"
    "    model.load_state_dict(state)\n"
    "    return model.eval()\n";

// The output, as its type or its value, or a dict of several by name.
static void outputs_write(const Writer *w, Text *t, bool types) {
    const Operators *o = w->from;
    bool named = w->x->program->recipe.num_output_names > 0;
    text_add(t, named ? "{" : "");
    for (int i = 0; i < o->num_outputs; i++) {
        const Interface *out = &o->output[i];
        const char *text = types ? interface_text(w->a, out)
                                 : value_of(w, out->name)->text;
        if (named)
            text_add(t, "%s\"%s\": ", i > 0 ? ", " : "",
                     w->x->program->recipe.output_name[i].name);
        text_add(t, "%s", text);
    }
    text_add(t, named ? "}" : "");
}

static void module_write(const Writer *w, Text *t) {
    const Program *p = w->x->program;
    text_add(t, "\"\"\"%s of %s, written by sinter %s.\"\"\"\n", p->name,
             p->file, w->x->version);
    text_add(t, "import json\nimport math\nimport os\n\nimport torch\n"
                "from torch import nn\nfrom torch.nn import functional as F\n"
                "\n\n");
    text_add(t, "class %s(nn.Module):\n    def __init__(self):\n", p->name);
    text_add(t, "        super().__init__()\n");
    text_bytes(t, text_string(&w->init), w->init.length);
    text_add(t, "\n    def forward(self");
    for (int i = 0; i < w->from->num_inputs; i++)
        text_add(t, ", %s", w->from->input[i].name);
    text_add(t, "):\n        \"\"\"");
    for (int i = 0; i < w->from->num_inputs; i++)
        text_add(t, "%s%s: %s", i > 0 ? ", " : "", w->from->input[i].name,
                 interface_text(w->a, &w->from->input[i]));
    text_add(t, ".  Returns ");
    outputs_write(w, t, true);
    text_add(t, ".\"\"\"\n");
    text_bytes(t, text_string(&w->forward), w->forward.length);
    text_add(t, "        return ");
    outputs_write(w, t, false);
    text_add(t, "\n\n\n");
    text_add(t, loader, p->name);
}

static const char *safetensors_type(ElementType type) {
    return type == ELEMENT_F32   ? "F32"
           : type == ELEMENT_U8  ? "U8"
           : type == ELEMENT_I32 ? "I32"
           : type == ELEMENT_I64 ? "I64"
                                 : "BOOL";
}

static void weights_write(const Writer *w, Text *t) {
    static const int64_t zero = 0;
    Text header = text_new(w->a);
    size_t at = 0;
    text_add(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < w->num_entries; i++) {
        const ExportTensor *from = w->entry[i].tensor;
        size_t bytes = from != NULL ? from->count : sizeof zero;
        text_add(&header,
                 ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                 "\"data_offsets\":[%zu,%zu]}",
                 w->entry[i].name,
                 from != NULL ? safetensors_type(from->type) : "I64",
                 from != NULL ? ints_text(w->a, from->dim, from->rank) : "", at,
                 at + bytes);
        at += bytes;
    }
    text_add(&header, "}");
    while (header.length % 8 != 0)
        text_add(&header, " ");
    for (int i = 0; i < 8; i++)
        text_bytes(t, &(char){(char)(header.length >> 8 * i)}, 1);
    text_bytes(t, text_string(&header), header.length);
    for (int i = 0; i < w->num_entries; i++) {
        const ExportTensor *from = w->entry[i].tensor;
        text_bytes(t, from != NULL ? from->bytes : (const char *)&zero,
                   from != NULL ? from->count : sizeof zero);
    }
}

const char *pytorch_write(Arena *a, Text *module, Text *weights,
                          const Export *x, const Operators *from) {
    size_t most = (size_t)(from->num_operators + from->num_tensors) * 8 +
                  (size_t)from->num_inputs;
    Writer w = {.a = a,
                .x = x,
                .from = from,
                .entry = ARENA_ARRAY(a, most, Entry),
                .declared = ARENA_ARRAY(a, most, const char *),
                .variable = ARENA_ARRAY(a, most, const char *),
                .init = text_new(a),
                .forward = text_new(a)};
    for (int i = 0; i < from->num_inputs; i++) {
        w.variable[w.num_variables++] = from->input[i].name;
        check_name(&w, from->input[i].name);
    }
    check_name(&w, x->program->name);
    values_find(&w);
    for (int i = 0; i < from->num_operators && w.why == NULL; i++)
        operator_add(&w, &from->made[i]);
    if (w.why != NULL)
        return w.why;
    module_write(&w, module);
    weights_write(&w, weights);
    return NULL;
}
