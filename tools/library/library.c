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
            if ((op_info[op].facts & CALLS) == 0)
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

// Appends the template with its words replaced, and its functions of texts,
// which are between two lines TEXTS, if the model generates.
static void template_add(Text *t, const Replacement *list, size_t count,
                         bool generates) {
    static const char texts[] = "TEXTS\n";
    for (const char *at = library_model_h; *at;) {
        size_t i = 0;
        while (i < count &&
               strncmp(at, list[i].word, strlen(list[i].word)) != 0)
            i++;
        if (i < count) {
            text_add(t, "%s", list[i].by);
            at += strlen(list[i].word);
        } else if (strncmp(at, texts, strlen(texts)) == 0) {
            at += strlen(texts);
            if (!generates)
                at = strstr(at, texts) + strlen(texts);
        } else {
            text_add(t, "%c", *at++);
        }
    }
}

Text library_header(Arena *a, const Program *p, const Plan *plan,
                    const char *name) {
    const Graph *g = p->predict;
    const Node *out = g != NULL ? &g->node[graph_find(g, "prediction")] : NULL;
    const Node *sample = input_of(p, "image"), *label = input_of(p, "label");
    int64_t numbers = 1;
    for (int i = 1; out != NULL && i < out->type->rank; i++)
        numbers *= out->type->dim[i];
    const Replacement list[] = {
        {"SAMPLE_TYPE", c_type(sample)},
        {"LABEL_TYPE", c_type(label)},
        {"SAMPLE", shape_text(a, sample)},
        {"LABEL", shape_text(a, label)},
        {"OUTPUT", arena_format(a, "%s, %s", shape_text(a, out),
                                output_kinds[p->recipe.output])},
        {"NUMBERS", arena_format(a, "%" PRId64, numbers)},
        {"UPDATE",
         arena_format(a, "%" PRId64, p->recipe.batch * p->recipe.accumulate)},
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
    template_add(&t, list, COUNT, plan_step(plan, "decode") != NULL);
    return t;
}
