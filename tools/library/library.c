// Library: fills in tools/library/model.h.in for a model.
#include "tools/library/library.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

extern const char library_model_h[];

const char *library_name(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    if (strncmp(base, "lib", 3) == 0 && base[3] != '\0')
        base += 3;
    char *name =
        arena_format(a, "%s%s", isdigit((unsigned char)*base) ? "_" : "", base);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return name;
}

bool library_is_small(const Plan *plan) {
    const int64_t most = 100000000; // flops: some milliseconds
    int64_t flops = 0;
    for (int i = 0; i < plan->num_steps; i++) {
        const Graph *g = plan->step[i].graph;
        for (NodeId n = 0; n < g->count; n++) {
            Op op = g->node[n].op;
            if ((op_info[op].traits & CALLS) == 0)
                continue;
            if (op != OP_conv && op != OP_matmul)
                return false;
            if (plan->step[i].kind == STEP_PREDICT)
                flops += node_flops(g, n);
        }
    }
    return flops <= most;
}

// A word of the template that is replaced.
typedef struct {
    const char *word, *by;
} Replacement;

static const Node *input_of(const Program *p, const char *name) {
    const Graph *g = p->stage[0].train;
    NodeId n = graph_find(g, name);
    if (n == NO_NODE)
        n = graph_find(g = p->eval, name);
    return n == NO_NODE ? NULL : &g->node[n];
}

static const char *c_type(const Node *n) {
    return n == NULL               ? "void"
           : n->type->dtype == U8  ? "uint8_t"
           : n->type->dtype == I32 ? "int32_t"
                                   : "float";
}

static const char *shape_text(Arena *a, const Node *n) {
    Text t = text_new(a);
    if (n == NULL)
        return "none: pass NULL";
    text_add(&t, "%s[N", c_type(n));
    for (int i = 1; i < n->type->rank; i++)
        text_add(&t, ",%" PRId64, n->type->dim[i]);
    text_add(&t, "]");
    return text_string(&t);
}

static const char *const output_kinds[] = {
    [OUTPUT_VALUES] = "values",
    [OUTPUT_CLASSES] = "logits of the classes in the last axis",
    [OUTPUT_LABELS] = "a logit of each label"};

static int64_t output_dim(const Node *out, int axis) {
    return out != NULL && axis < out->type->rank ? out->type->dim[axis] : 0;
}

// ---- several inputs and outputs ----

static bool is_input(const DataArray *a) {
    return strncmp(a->input, "input.", strlen("input.")) == 0;
}

// A tensor of the header: a line about it, and an argument of the functions.
typedef struct {
    const char *role, *name; // "input", "meta"; name NULL: the only one
    const Node *node;
    const char *kind; // of an output
} Tensor;

typedef struct {
    Tensor *of;
    int count;
} Tensors;

static void tensor_add(Arena *a, Tensors *all, const char *role,
                       const char *name, const Node *node, const char *kind) {
    Tensor t = {role, name, node, kind};
    if (node != NULL)
        ARENA_APPEND(a, all->of, all->count, t);
}

static Tensors tensors_list(Arena *a, const Program *p) {
    const Recipe *r = &p->recipe;
    const Graph *g = p->predict;
    Tensors all = {0};
    tensor_add(a, &all, "input", r->image_name, input_of(p, "image"), NULL);
    for (int i = 0; i < r->num_arrays; i++)
        if (is_input(&r->array[i]))
            tensor_add(a, &all, "input", r->array[i].name,
                       input_of(p, r->array[i].input), NULL);
    tensor_add(a, &all, "label", NULL, input_of(p, "label"), NULL);
    for (int i = 0; i < r->num_arrays; i++)
        if (!is_input(&r->array[i]))
            tensor_add(a, &all, "label", r->array[i].name,
                       input_of(p, r->array[i].input), NULL);
    for (NodeId n = 0; g != NULL && n < g->count; n++)
        if (g->node[n].op == OP_output) {
            const char *dot = strchr(node_text(&g->node[n], ATTR_name), '.');
            int k = all.count;
            tensor_add(a, &all, "output", dot != NULL ? dot + 1 : NULL,
                       &g->node[n], output_kinds[r->output]);
            for (int i = 0; dot != NULL && i < r->num_output_names; i++)
                if (strcmp(r->output_name[i].name, dot + 1) == 0)
                    all.of[k].kind = output_kinds[r->output_name[i].kind];
        }
    return all;
}

// As codegen/library.c names it.
static const char *tensor_name(Arena *a, const Tensor *t) {
    bool samples = t->name == NULL && strcmp(t->role, "input") == 0;
    return samples           ? "samples"
           : t->name == NULL ? t->role
                             : arena_format(a, "%s_%s", t->role, t->name);
}

static const char *tensor_lines(Arena *a, const Tensors *all) {
    Text text = text_new(a);
    for (int i = 0; i < all->count; i++) {
        const Tensor *t = &all->of[i];
        text_add(&text, "%s//   %-8s %s%s%s", i > 0 ? "\n" : "",
                 tensor_name(a, t), shape_text(a, t->node),
                 t->kind != NULL ? ", " : "", t->kind != NULL ? t->kind : "");
    }
    return text_string(&text);
}

// The parameters of a role, each on its line after the first.
static const char *parameters(Arena *a, const Tensors *all, const char *role) {
    Text text = text_new(a);
    bool output = strcmp(role, "output") == 0;
    for (int i = 0; i < all->count; i++) {
        const Tensor *t = &all->of[i];
        if (strcmp(t->role, role) != 0)
            continue;
        text_add(&text, "%s%s%s *%s", text.length > 0 ? ", " : "",
                 output ? "" : "const ", output ? "float" : c_type(t->node),
                 tensor_name(a, t));
    }
    return text_string(&text);
}

static int64_t numbers_of(const Node *out) {
    int64_t numbers = 1;
    for (int i = 1; out != NULL && i < out->type->rank; i++)
        numbers *= out->type->dim[i];
    return numbers;
}

// ", NAME_class = 10": the enumerators of the outputs.
static const char *sizes(Arena *a, const Tensors *all, const char *name) {
    Text text = text_new(a);
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->of[i].role, "output") == 0)
            text_add(&text, ", %s_%s = %" PRId64, name,
                     tensor_name(a, &all->of[i]), numbers_of(all->of[i].node));
    return text_string(&text);
}

// A part of the template, between two lines of its word.
typedef struct {
    const char *word;
    bool stays;
} Section;

// Skips a line with the word of a section, or with it a section that is left
// out.  NULL: there is none.
static const char *section_skip(const char *at, const Section *list,
                                size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(list[i].word);
        if (strncmp(at, list[i].word, length) != 0)
            continue;
        at += length;
        return list[i].stays ? at : strstr(at, list[i].word) + length;
    }
    return NULL;
}

// Appends the template with its words replaced: functions of texts if the model
// generates, and those of one input and output, or of several.
static void template_add(Text *t, const Replacement *list, size_t count,
                         bool generates, bool several) {
    const Section section[] = {{"TEXTS\n", generates},
                               {"SINGLE\n", !several},
                               {"SEVERAL\n", several}};
    for (const char *at = library_model_h, *next; *at;) {
        size_t i = 0;
        while (i < count &&
               strncmp(at, list[i].word, strlen(list[i].word)) != 0)
            i++;
        if (i < count) {
            text_add(t, "%s", list[i].by);
            at += strlen(list[i].word);
        } else if ((next = section_skip(at, section, 3)) != NULL) {
            at = next;
        } else {
            text_add(t, "%c", *at++);
        }
    }
}

Text library_header(Arena *a, const Program *p, const Plan *plan,
                    const char *name) {
    const Graph *g = p->predict;
    NodeId found = g != NULL ? graph_find(g, "prediction") : NO_NODE;
    const Node *out = found != NO_NODE ? &g->node[found] : NULL;
    const Node *sample = input_of(p, "image"), *label = input_of(p, "label");
    Tensors all = tensors_list(a, p);
    const char *labels = parameters(a, &all, "label");
    int64_t numbers = numbers_of(out);
    const Replacement list[] = {
        {"ARRAYS", tensor_lines(a, &all)},
        {"INPUTS", parameters(a, &all, "input")},
        {"OUTPUTS", parameters(a, &all, "output")},
        {"LABELS", *labels ? arena_format(a, "%s, ", labels) : ""},
        {"BATCHSIZES", arena_format(a, "%" PRId64 "%s", p->recipe.batch,
                                    sizes(a, &all, name))},
        {"SAMPLE_TYPE", c_type(sample)},
        {"LABEL_TYPE", c_type(label)},
        {"SAMPLE", shape_text(a, sample)},
        {"LABEL", shape_text(a, label)},
        {"OUTPUT", arena_format(a, "%s, %s", shape_text(a, out),
                                output_kinds[p->recipe.output])},
        {"NUMBERS", arena_format(a, "%" PRId64, numbers)},
        {"UPDATE",
         arena_format(a, "%" PRId64, recipe_update_samples(&p->recipe))},
        {"TOKENS", arena_format(a, "%" PRId64, output_dim(out, 2))},
        {"POSITIONS", arena_format(a, "%" PRId64, output_dim(out, 1))},
        {"BATCH", arena_format(a, "%" PRId64, p->recipe.batch)},
        {"VERSION", SINTER_VERSION},
        {"MODEL", p->name},
        {"FILE", p->file},
        {"NAME", name},
    };
    enum { COUNT = sizeof list / sizeof *list };
    Text t = text_new(a);
    template_add(&t, list, COUNT, plan_step(plan, "decode") != NULL,
                 recipe_has_several(&p->recipe));
    return t;
}
