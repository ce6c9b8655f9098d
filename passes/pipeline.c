// Pipeline: the passes in order, and the checks between them.
//
// The verifier runs after every pass that changes a graph, in release builds
// too: it is linear and a graph is small.  A graph that a pass returns
// unchanged was verified before.  With deep_verify a graph
// is also printed, read back and compared.  A fault is ours and ends the
// program with a report.
#include "passes/passes.h"
#include "passes/plan/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Pass standard_passes[] = {
    // Before autodiff: the bias that it drops needs no gradient.
    {"canonicalize", pass_canonicalize, 0, 0, false,
     "canonicalization before autodiff: pool before relu and batch_norm, no "
     "bias before batch_norm",
     NULL},
    {"fold_batch_norm", pass_fold_batch_norm, 0, 0, false,
     "fold batch_norm into the convolution, for evaluation", NULL},
    // Composite operations have gradients of their own, so that expand follows.
    {"autodiff", pass_autodiff, 0, BACKWARD, true, "append the backward graph",
     NULL},
    // While the terms are as autodiff leaves them: without casts and checks.
    {"stack_sums", pass_stack_sums, BACKWARD, 0, true,
     "one operation on stacked operands for a sum of many equal terms", NULL},
    {"shards", pass_shards, BACKWARD, 0, true,
     "divide a step into the part of a shard and the update", steps_buckets},
    {"optimizer", pass_optimizer, BACKWARD, UPDATES, true,
     "lower optimizers to assignments", NULL},
    {"expand", pass_expand, 0, PRIMITIVE, false,
     "lower composite operations to primitive ones", NULL},
    // After autodiff, which decides the nodes that have a gradient.
    {"direct_conv", pass_direct_conv, PRIMITIVE, 0, false,
     "direct (im2col-free) computation of small convolutions inside their "
     "consumers",
     NULL},
    {"direct_matmul", pass_direct_matmul, PRIMITIVE, 0, false,
     "direct computation of small matrix products by kernels of a described "
     "GPU",
     NULL},
    {"conv_reductions", pass_conv_reductions, PRIMITIVE, 0, false,
     "conv-backward reductions: bias gradients from the weight gradient's "
     "call",
     NULL},
    // The finite check covers the values of assignments.
    {"precision", pass_precision, PRIMITIVE, TYPED, false,
     "insert casts and the dynamic loss scale", steps_average},
    // After the finite check and the norms, which need all gradients.
    {"optimizer_shards", pass_optimizer_shards, TYPED, 0, false,
     "divide the update into those of optimizer shards and the rest", NULL},
    {"layout", pass_layout, TYPED, 0, false,
     "pad channels for tensor cores, fold transposes into products", NULL},
    // Casts and pads of weights exist only now.
    {"derive", pass_derive, TYPED, 0, false,
     "move computations on weights alone out of the step into derived states",
     steps_derive},
    {"prepare", pass_prepare, TYPED, 0, false,
     "hoist computations that all batches of an evaluation share", NULL},
    {"simplify", pass_simplify, 0, 0, false,
     "algebraic simplification, constant folding", NULL},
    {"dce", pass_dce, 0, 0, false, "dead code elimination", NULL},
    {"statistics", pass_statistics, PRIMITIVE | TYPED, 0, false,
     "let a library call compute sums of squares for a variance", NULL},
    {"fuse", pass_fuse, PRIMITIVE | TYPED, GROUPED, false,
     "fuse nodes into kernels", NULL},
    // After fuse, which decides the kernels that read a tensor.
    {"inplace", pass_inplace, GROUPED, 0, false,
     "accumulate in place: a library call adds to its output buffer", NULL},
    {"bit_packing", pass_bit_packing, GROUPED, 0, false,
     "bit-packed masks and indices", NULL},
    {"schedule", pass_schedule, GROUPED, 0, false, "order the launches",
     steps_measure},
    // After schedule, which decides live ranges.
    {"rematerialize", pass_rematerialize, GROUPED, 0, false,
     "rematerialization below a memory limit", steps_assign},
    {"memory", pass_memory, GROUPED, PLANNED, false,
     "liveness of buffers and offset assignment", NULL},
    {NULL, NULL, 0, 0, false, NULL, NULL},
};

PassOptions pass_options(const Recipe *recipe, const char *device) {
    bool cuda = strcmp(device, "cuda") == 0;
    DType storage = cuda ? recipe->precision : F32;
    return (PassOptions){.device = device,
                         .act = recipe->precision,
                         .storage = storage,
                         .rematerialize = recipe->recompute == RECOMPUTE_AUTO,
                         .measured = storage,
                         .level = 1,
                         .reuse = true};
}

const Pass *pass_find(const char *name) {
    for (const Pass *p = standard_passes; p->name != NULL; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

bool rewrite_allowed(Graph *g, const PassOptions *o) {
    return g->rewrites++ < (o->rewrite_limit ? *o->rewrite_limit : INT32_MAX);
}

static _Noreturn void fault(const Pass *pass, const char *what) {
    fprintf(stderr, "sinter: internal error: after pass %s: %s\n", pass->name,
            what);
    abort();
}

// Rebuilding a graph in later stages would lose its groups, and passes that
// give a fact are not run twice.
static bool is_done(const Graph *g, const Pass *pass) {
    if (pass->gives != 0)
        return (g->facts & pass->gives) == pass->gives;
    return (g->facts & GROUPED) != 0 && (pass->needs & GROUPED) == 0;
}

static bool is_left_out(const PassOptions *o, const Pass *pass) {
    return pass->gives == 0 && o->left_out != 0 &&
           o->left_out >> (pass - standard_passes) & 1;
}

static bool has_training(const Graph *g) {
    bool loss = false, optimizer = false;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        optimizer |= (op_info[node->op].traits & OPTIMIZES) != 0;
        // The update of shards has the gradients of a loss.
        loss |= node->op == OP_gradient ||
                (node->op == OP_output &&
                 strcmp(node_text(node, ATTR_name), "loss") == 0);
    }
    return loss && optimizer;
}

static const char *printed(const Graph *g, Arena *scratch) {
    Text text = text_new(scratch);
    graph_print(&text, g);
    return text_string(&text);
}

// NULL, or how the graph's text differs from the graph.
static const char *reread(const Graph *g, Arena *scratch) {
    const char *before = printed(g, scratch);
    const char *error = NULL;
    Graph *again = graph_read(scratch, before, strlen(before), &error);
    if (again == NULL)
        return arena_format(
            scratch, "the printed graph cannot be read back: line %s", error);
    if (strcmp(before, printed(again, scratch)) != 0)
        return "the printed graph reads back as a different graph";
    return NULL;
}

static void check(const Graph *g, const PassOptions *o, const Pass *pass,
                  Arena *scratch) {
    const char *what = graph_verify(g, scratch);
    if (what == NULL)
        what = groups_verify(g, scratch);
    if (what == NULL && o->deep_verify)
        what = reread(g, scratch);
    if (what != NULL)
        fault(pass, what);
}

Graph *pass_run(Graph *g, const PassOptions *o, const Pass *pass) {
    if ((g->facts & pass->needs) != pass->needs)
        fault(pass, "the graph lacks a fact that the pass needs");
    if (is_left_out(o, pass))
        return g;
    Arena *scratch = arena_new();
    Graph *out = pass->run(g, scratch, o);
    out->facts |= pass->gives;
    out->origin = (Origin){0};
    if (out != g || pass->gives != 0 || o->deep_verify)
        check(out, o, pass, scratch);
    arena_free(scratch);
    return out;
}

// The same, and gives back the memory of g where the pass leaves another graph
// and g is not the one to be kept.
static Graph *pass_follow(Graph *g, const PassOptions *o, const Pass *pass,
                          const Graph *keep) {
    Graph *out = pass_run(g, o, pass);
    if (out != g && g != keep)
        graph_free(g);
    return out;
}

// Runs the passes from p on that apply.
static Graph *run_from(const Pass *p, Graph *g, const PassOptions *o,
                       const char *last, const Graph *keep, PassHook *hook,
                       void *context) {
    for (; p->name != NULL; p++) {
        if (!is_done(g, p) && (!p->training || has_training(g))) {
            g = pass_follow(g, o, p, keep);
            if (hook != NULL)
                hook(context, p, g);
        }
        if (last != NULL && strcmp(p->name, last) == 0)
            break;
    }
    return g;
}

Graph *passes_run(Graph *g, const PassOptions *o, const char *last,
                  PassHook *hook, void *context) {
    return run_from(standard_passes, g, o, last, g, hook, context);
}

Graph *passes_after(Graph *g, const PassOptions *o, const char *after,
                    const char *last) {
    return run_from(pass_find(after) + 1, g, o, last, NULL, NULL, NULL);
}
