// Kernels: a group becomes the text of one kernel, in the common subset of C
// and CUDA C that the preludes in runtime/prelude define.
//
// v12 in a kernel is %12 in the dump of the graph, and p12 is its address.
// Names come from the model only through kernel_name, which leaves letters,
// digits and underscores.

#include "codegen/emit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parameter(Arena *a, Kernel *k, NodeId node, int plus,
                      const char *type, const Expr *name) {
    k->tree->param[k->num_args] = name;
    k->tree->type[k->num_args] = type;
    k->tree->num_params++;
    k->arg[k->num_args++] =
        (Parameter){node, NO_NODE, plus, type, expr_print(a, name, "")};
}

int64_t parameter_address(const Graph *g, const Parameter *p) {
    return p->node == NO_NODE    ? 0
           : p->slice != NO_NODE ? slice_address(g, p->slice)
                                 : g->node[p->node].offset + p->plus;
}

// The parameter by which a kernel reads tensor n, or the only slice of it.
static void input_parameter(Emit *e, Arena *a, Kernel *k, NodeId n) {
    DType d = e->g->node[n].type->dtype;
    NodeId slice = slice_pointed(e->g, e->group, n);
    const Expr *name =
        slice == NO_NODE ? pointer_name(e, n) : x_of_node(e->a, "s", slice);
    parameter(a, k, n, 0, arena_format(a, "const %s", memory_type(d)), name);
    k->arg[k->num_args - 1].slice = slice;
}

// Finds the parameters, in arena a, which outlives the kernel's tree.
static void find_parameters(Emit *e, Arena *a, Kernel *k) {
    const Group *group = e->group;
    size_t most = (size_t)(group->num_inputs + group->num_outputs) + 4;
    k->arg = ARENA_ARRAY(a, most, Parameter);
    k->tree->param = ARENA_ARRAY(e->a, most, const Expr *);
    k->tree->type = ARENA_ARRAY(e->a, most, const char *);
    bool whole = group_is_multi_tensor(group->kind);
    if (whole)
        parameter(a, k, NO_NODE, 0, "char", x_name(e->a, "arena"));
    NodeId terms = whole ? shard_terms(e->g) : NO_NODE;
    if (terms != NO_NODE)
        parameter(a, k, terms, 0, "char", x_name(e->a, "terms"));
    for (int i = 0; i < group->num_inputs && !whole; i++)
        input_parameter(e, a, k, group->input[i]);
    for (int i = 0; i < group->num_outputs && group->kind != GROUP_UPDATE;
         i++) {
        NodeId n = group->output[i];
        parameter(a, k, n, 0, memory_type(e->g->node[n].type->dtype),
                  pointer_name(e, n));
    }
    if (group->workspace != NO_NODE)
        parameter(a, k, group->workspace, 0, "float", x_name(e->a, "partials"));
    if (group->counter >= 0)
        parameter(a, k, graph_counters(e->g), 4 * group->counter, "int",
                  x_name(e->a, "counter"));
}

// ---- the comment above a kernel ----

static const char *comment_of(Emit *e, const Group *gpu, const char *name) {
    const Group *group = e->group;
    const char *lines = group_lines(e->g, e->a, group, ", ", INT_MAX);
    Text t = text_new(e->a);
    text_add(&t, "// %s:%s%s", name, *lines != '\0' ? " " : "", lines);
    text_add(&t, "\n// %%%u..%%%u:", group->first, group->last);
    int length = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const char *op = op_info[e->g->node[n].op].name;
        if (e->g->node[n].op == OP_workspace)
            continue;
        if (length > 60) {
            text_add(&t, " ...");
            break;
        }
        length += (int)strlen(op) + 1;
        text_add(&t, " %s", op);
    }
    text_add(&t, "\n// %lld bytes read and written (host: %lld)\n",
             (long long)gpu->bytes, (long long)group->bytes);
    return text_string(&t);
}

// ---- a kernel's tree ----

static void build_body(Emit *e, Stmts *body) {
    static void (*const emit[])(Emit *, Stmts *) = {
#define KERNEL_KIND(KIND, kind, operations, blocks, result, operand, emit)     \
    emit_##emit,
#include "passes/plan/kernel_kinds.def"
#undef KERNEL_KIND
    };
    *body = e->tables = (Stmts){NULL, NULL};
    emit[e->group->kind](e, body);
}

// Builds a kernel for the widest vectors, and once more if its accesses do not
// allow them.
static void build_widest(const GraphPlan *host, const GraphPlan *gpu, Emit *e,
                         Kernel *k, int *names, bool narrow) {
    const Group *group = k->group;
    Arena *own = k->tree->arena;
    int64_t step, next = group->columns;
    do {
        step = next;
        emit_init(e, host->graph, gpu->graph, own, group, host->stored, names);
        e->step = step;
        e->narrow = narrow && step == group->columns;
        build_body(e, &k->tree->body);
        names_clear(e);
        next = stmts_width(own, &k->tree->body, e->step);
    } while (!group_is_multi_tensor(group->kind) && next < step);
}

// Builds the tree of kernel k up to its occupancy, in an arena of its own, as
// most kernels are equal to an earlier one and freed.  Returns its bytes in
// flight.
static int build_tree(const GraphPlan *host, const GraphPlan *gpu, Arena *a,
                      Emit *e, Kernel *k, const bool *exact, int *names,
                      bool narrow) {
    Arena *own = arena_child(a);
    int bytes = IN_FLIGHT;
    k->tree = ARENA_NEW(own, Tree);
    *k->tree = (Tree){.arena = own, .name = k->name};
    build_widest(host, gpu, e, k, names, narrow);
    find_parameters(e, a, k);
    stmts_fma(own, &k->tree->body, exact);
    stmts_hoist(own, &k->tree->body);
    bool few =
        k->group->kind == GROUP_GRID && stmts_interchange(own, &k->tree->body);
    stmts_dce(own, &k->tree->body);
    k->tree->tables = e->tables;
    memcpy(k->grid, e->grid, sizeof e->grid);
    k->tree->phased = k->group->phases > 1;
    if (few)
        e->min_blocks = 2;
    else if (k->group->kind == GROUP_GRID || k->group->kind == GROUP_ROWS)
        bytes = choose_occupancy(e, k->tree);
    return bytes;
}

// Whether half a vector is not whole: it has 3 of 8 channels, or 4 of the 8
// bits of a byte.
static bool needs_vector(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    bool bits = (d->op == OP_pack || d->op == OP_unpack) &&
                node_int(d, ATTR_bits, 1) == 1;
    return bits || pad_widens(e, d);
}

// Whether the registers of kernel k may hold more vectors if they are narrower.
static bool tries_narrow(const Emit *e, const Kernel *k) {
    return k->group->kind == GROUP_GRID && e->gpu->act != F32 &&
           e->step == k->group->columns && e->step % 8 == 0 &&
           !group_any(e, needs_vector);
}

// Builds kernel k of launch i.
static void build_kernel(const GraphPlan *host, const GraphPlan *gpu, int i,
                         Arena *a, Kernel *k, const bool *exact, int *names) {
    Emit e;
    Kernel other = *k;
    int bytes = build_tree(host, gpu, a, &e, k, exact, names, false);
    if (bytes < IN_FLIGHT && tries_narrow(&e, k)) {
        Emit narrow;
        if (build_tree(host, gpu, a, &narrow, &other, exact, names, true) >
            bytes) {
            kernel_free(k);
            *k = other;
            e = narrow;
        } else {
            kernel_free(&other);
        }
    }
    Arena *own = k->tree->arena;
    if (k->group->kind == GROUP_GRID)
        stmts_promote(own, &k->tree->body);
    k->tree->min_blocks = e.min_blocks;
    tree_insert_wait(own, k->tree);
    k->cost = tree_cost(k->tree, k->grid[GPU_PLAN], gpu->graph->act);
    KernelCost one = tree_cost(k->tree, 1, gpu->graph->act);
    for (int issue = 0; issue < NUM_ISSUES; issue++)
        k->row_instructions += one.issue[issue];
    k->heading = comment_of(&e, &gpu->group[i], k->name);
    const char *why = tree_verify(own, k->tree);
    if (why == NULL)
        why = tree_verify_wait(own, k->tree);
    if (why != NULL) {
        fprintf(stderr, "sinter: kernel %s: %s\n", k->name, why);
        abort();
    }
}

void kernel_free(Kernel *k) {
    if (k->tree != NULL)
        arena_free(k->tree->arena);
    k->tree = NULL;
}

Kernel *kernels_build(const GraphPlan *host, const GraphPlan *gpu, Arena *a,
                      int *number, KernelVisit *visit, void *context) {
    const Graph *g = host->graph;
    Kernel *kernel = ARENA_ARRAY(a, (size_t)host->num_groups + 1, Kernel);
    const bool *exact = fma_exact(a, g);
    int *names = ARENA_ARRAY(a, g->count, int);
    for (int i = 0; i < host->num_groups; i++) {
        const Group *group = kernel[i].group = &host->group[i];
        kernel[i].name = kernel_name(g, a, group, (*number)++);
        if (group->kind == GROUP_CALL)
            continue;
        build_kernel(host, gpu, i, a, &kernel[i], exact, names);
        visit(context, &kernel[i]);
    }
    return kernel;
}

static void print(void *a, Kernel *k) {
    kernel_print(a, k);
}

Kernel *codegen_kernels(const GraphPlan *host, const GraphPlan *gpu, Arena *a,
                        int *number) {
    return kernels_build(host, gpu, a, number, print, a);
}

void codegen_kernel_ir(Text *t, const GraphPlan *host, const GraphPlan *gpu,
                       int launch, const char *name) {
    Arena *a = arena_new();
    Kernel k = {.group = &host->group[launch], .name = name};
    build_kernel(host, gpu, launch, a, &k, fma_exact(a, host->graph),
                 ARENA_ARRAY(a, host->graph->count, int));
    tree_print(t, k.tree);
    arena_free(a);
}

// ---- its text ----

static void print_arguments(Text *t, const Kernel *k, const char *restricted) {
    for (int i = 0; i < k->num_args; i++)
        text_add(t, "%s\n    %s *%s%s", i ? "," : "", k->arg[i].type,
                 k->arg[i].node == NO_NODE ? "" : restricted, k->arg[i].name);
}

void kernel_print(Arena *a, Kernel *k) {
    const Tree *tree = k->tree;
    Text t = text_new(tree->arena);
    text_add(&t, "%s", k->heading);
    k->comment = t.length;
    stmts_print(&t, &tree->tables, k->name);
    t.indent = 1;
    k->code = k->entry = t.length;
    text_add(&t, "%s(%d", tree->phased ? "PHASED" : "KERNEL", BLOCK_THREADS);
    if (tree->min_blocks > 1)
        text_add(&t, ", %d", tree->min_blocks);
    text_add(&t, ") %s(", k->name);
    print_arguments(&t, k, "RESTRICT ");
    text_add(&t, ")\n{\n    DECLARE_BLOCK;\n");
    k->body = t.length;
    stmts_print(&t, &tree->body, k->name);
    text_add(&t, "}\n");
    k->text = arena_string(a, text_string(&t), t.length);
    kernel_free(k);
}

// The kernel's text as a function, and a kernel that calls it.  A kernel of
// dead code has no parameters.  The function's parameters lack RESTRICT.  A
// merged launch writes tensors that its later kernels read; with RESTRICT the
// compiler could use the non-coherent cache. The merged launch has RESTRICT for
// the tensors that no phase writes.
void kernel_split(Arena *a, Kernel *k) {
    Text t = text_new(a);
    if (k->is_split)
        return;
    text_bytes(&t, k->text, k->entry);
    text_add(&t, "BODY %s_body(", k->name);
    print_arguments(&t, k, "");
    text_add(&t, "%s\n    const int block, const int blocks)\n{\n%s",
             k->num_args > 0 ? "," : "", k->text + k->body);
    size_t entry = t.length;
    text_bytes(&t, k->text + k->entry, k->body - k->entry);
    text_add(&t, "    %s_body(", k->name);
    for (int i = 0; i < k->num_args; i++)
        text_add(&t, "%s, ", k->arg[i].name);
    text_add(&t, "block, blocks);\n}\n");
    k->text = text_string(&t);
    k->entry = entry;
    k->is_split = true;
}
