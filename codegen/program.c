// Program: the two files of a trainer.
//
// NAME.cu holds the kernels.  NAME.c includes it as C, so that they run on the
// host, and carries its text for a device that compiles it when the trainer
// starts.  It holds the steps as lists of launches, the tables of states,
// inputs and library calls, and for each device where every tensor lives.

#include "codegen/emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A step of both plans, which differ in addresses alone.
typedef struct {
    const Step *step;
    const char *name;
    const Graph *host, *device;
    Kernel *kernel;
    int count;
    const Launches *launches;
} Twin;

// How many kernels are written: those that are only launched alone, those that
// may be joined, and joined ones.
typedef struct {
    int alone, split, joined;
} Written;

typedef struct {
    const Program *program;
    const Plan *host, *device;
    const CodegenOptions *options;
    Arena *a;
    Twin *step;
    int num_steps;
    RideTables rides;
    Written written;
    bool joins, stored; // there are some
} Writer;

// Whether a launch's kernel is a text of its own step.
static bool is_written(const Kernel *k) {
    return k->text != NULL && k->first == k;
}

static void count_written(Writer *w) {
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        for (int k = 0; k < s->count; k++)
            if (is_written(&s->kernel[k]))
                *(s->kernel[k].is_split ? &w->written.split
                                        : &w->written.alone) += 1;
        for (int k = 0; k < s->launches->joins.count; k++)
            w->written.joined += s->launches->joined[k].text != NULL;
    }
}

static void find_steps(Writer *w) {
    Launches *launches = codegen_launches(w->host, w->device, w->a);
    w->num_steps = w->host->num_steps;
    w->step = ARENA_ARRAY(w->a, (size_t)w->num_steps, Twin);
    for (int i = 0; i < w->num_steps; i++) {
        const Step *h = &w->host->step[i], *d = &w->device->step[i];
        w->step[i] = (Twin){h,
                            h->name,
                            h->graph,
                            d->graph,
                            launches[i].kernel,
                            launches[i].count,
                            &launches[i]};
    }
    count_written(w);
}

// ---- small pieces ----

static const char *layer_of(const Node *d) {
    const char *name = node_text(d, ATTR_name);
    return name != NULL           ? name
           : d->from.path != NULL ? d->from.path
                                  : op_info[d->op].name;
}

static const char *type_text(Arena *a, Type type) {
    Text t = text_new(a);
    type_print(&t, type);
    return text_string(&t);
}

const char *rt_type_text(DType d, DType act) {
    switch (d == ACT ? act : d) {
    case F16:
        return "RT_F16";
    case BF16:
        return "RT_BF16";
    case I32:
        return "RT_I32";
    case U8:
        return "RT_U8";
    case BOOL:
        return "RT_BOOL";
    default:
        return "RT_F32";
    }
}

static const char *rt_kind(const Node *d) {
    static const char *const kinds[][2] = {
        {STATE_STATISTIC, "RT_STATISTIC"},
        {STATE_OPTIMIZER, "RT_OPTIMIZER"},
        {STATE_AVERAGE, "RT_AVERAGED"},
        {STATE_GRADIENT, "RT_GRADIENT"},
        {STATE_RUN, "RT_RUN"},
        {STATE_METRIC, "RT_METRIC"},
        {STATE_DERIVED, "RT_DERIVED"},
        {STATE_START, "RT_DERIVED"},
    };
    const char *kind = node_text(d, ATTR_kind);
    int count = sizeof kinds / sizeof kinds[0];
    for (int i = 0; kind != NULL && i < count; i++)
        if (strcmp(kind, kinds[i][0]) == 0)
            return kinds[i][1];
    return "RT_PARAM";
}

static const char *dims_text(Arena *a, Type type) {
    Text t = text_new(a);
    text_add(&t, "%d, {", type.rank);
    for (int i = 0; i < type.rank; i++)
        text_add(&t, "%s%lld", i ? ", " : "", (long long)type.dim[i]);
    text_add(&t, type.rank ? "}" : "0}");
    return text_string(&t);
}

static void add_quoted(Text *t, const char *s) {
    text_add(t, "\"");
    for (; *s != '\0'; s++)
        if (*s == '"' || *s == '\\' || *s == '?') // no trigraphs
            text_add(t, "\\%c", *s);
        else if ((unsigned char)*s < 32 || (unsigned char)*s > 126)
            text_add(t, "\\%03o", (unsigned char)*s);
        else
            text_bytes(t, s, 1);
    text_add(t, "\"");
}

// How the prelude is told what activations are.
static int act_bits(DType act) {
    return act == F16 ? 16 : act == BF16 ? 1 : 32;
}

static int64_t count_parameters(const Graph *g) {
    int64_t count = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_param)
            count += type_count(g->node[n].type);
    return count;
}

// How many statistics a library may take over, in all steps.
static int count_statistics(const Writer *w) {
    int count = 0;
    for (int i = 0; i < w->num_steps; i++)
        for (NodeId n = 0; n < w->step[i].host->count; n++) {
            const Node *d = &w->step[i].host->node[n];
            int number = (int)node_int(d, ATTR_number, -1);
            count = number >= count ? number + 1 : count;
        }
    return count;
}

// ---- NAME.cu ----

// A device may compile the text in parts, side by side, and leave out those of
// which it launches nothing: kernels that may be joined are apart from the
// others, and each joined launch has a part of its own.
enum { PART_KERNELS = 4 };

static int parts_for(int kernels) {
    return (kernels + PART_KERNELS - 1) / PART_KERNELS;
}

// The part of the next kernel that is written, after those that were counted.
static int kernel_part(const Writer *w, Written *before, const Kernel *k) {
    if (!k->is_split)
        return before->alone++ / PART_KERNELS;
    return parts_for(w->written.alone) + before->split++ / PART_KERNELS;
}

static int join_part(const Writer *w, Written *before) {
    return parts_for(w->written.alone) + parts_for(w->written.split) +
           before->joined++;
}

// Only the kernel itself is left out of other parts: what it calls and reads
// may be for others too.
static void write_in_part(Text *t, const char *text, int part) {
    static const char *const entry[] = {"\nKERNEL(", "\nPHASED(",
                                        "\n#ifdef SINTER_JOINED"};
    const char *start = NULL;
    for (int i = 0; i < 3 && start == NULL; i++)
        start = strstr(text, entry[i]);
    text_add(t, "\n");
    text_bytes(t, text, (size_t)(start + 1 - text));
    text_add(t, "#if IN_PART(%d)\n%s#endif\n", part, start + 1);
}

static void write_kernels(const Writer *w, Text *t) {
    const Program *p = w->program;
    text_add(t, "// Kernels of %s, from %s.\n//\n", p->name,
             file_text(w->a, p->file));
    text_add(t, "// One text for CUDA and for C: the prelude says what its "
                "words mean.  v12 is\n// %%12 of the graph that `sinter show "
                "plan` prints, p12 its address.\n\n");
    text_add(t,
             "#ifndef SINTER_ACT\n"
             "#define SINTER_ACT %d // of activations on CUDA\n"
             "#endif\n",
             act_bits(w->device->act));
    if (count_statistics(w) > 0)
        text_add(t, "#define SINTER_STATISTICS %d // that a library may take\n",
                 count_statistics(w));
    text_add(t, "#include \"runtime/prelude/prelude.h\"\n");
    Written before = {0};
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        text_add(t, "\n// ---- %s ----\n", s->name);
        for (int k = 0; k < s->count; k++)
            if (is_written(&s->kernel[k]))
                write_in_part(t, s->kernel[k].text,
                              kernel_part(w, &before, &s->kernel[k]));
        for (int k = 0; k < s->launches->joins.count; k++)
            if (s->launches->joined[k].text != NULL)
                write_in_part(t, s->launches->joined[k].text,
                              join_part(w, &before));
    }
}

// ---- NAME.c: kernels ----

// Appends words set apart by commas, with a new line where one would be longer
// than a page is wide.
typedef struct {
    Text *t;
    int column, indent, written;
} Wrap;

static void wrap_add(Wrap *w, const char *word) {
    enum { PAGE = 79 };
    int length = (int)strlen(word);
    if (w->written++ > 0) {
        text_add(w->t, ",");
        if (w->column + length + 3 > PAGE) {
            text_add(w->t, "\n%*s", w->indent, "");
            w->column = w->indent;
        } else {
            text_add(w->t, " ");
            w->column += 2;
        }
    }
    text_add(w->t, "%s", word);
    w->column += length;
}

static void write_entry(const Writer *w, Text *t, const Kernel *k) {
    text_add(t, "HOST_KERNEL(%s,\n            ", k->name);
    Wrap wrap = {t, 12, 12, 0};
    for (int j = 0; j < k->num_args; j++) {
        const char *type = k->c_type[j], *end = strstr(type, " *");
        wrap_add(&wrap, k->arg[j] == NO_NODE
                            ? "arena"
                            : arena_format(w->a, "ARG(%.*s *, %d)",
                                           (int)(end - type), type, j));
    }
    text_add(t, ")\n");
}

// Joined launches that are written, in order; texts of equal ones are one.
static const Joined **written_joins(const Writer *w, int *count) {
    size_t most = 0;
    for (int i = 0; i < w->num_steps; i++)
        most += (size_t)w->step[i].launches->joins.count;
    const Joined **list = ARENA_ARRAY(w->a, most + 1, const Joined *);
    *count = 0;
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].launches->joins.count; k++)
            if (w->step[i].launches->joined[k].text != NULL)
                list[(*count)++] = &w->step[i].launches->joined[k];
    return list;
}

static void write_joined_entry(const Writer *w, Text *t, const Joined *j) {
    text_add(t, "JOINED_KERNEL(%s,\n              ", j->name);
    Wrap wrap = {t, 14, 14, 0};
    for (int i = 0; i < j->num_args; i++)
        wrap_add(&wrap, arena_format(w->a, "ARG(%.*s *, %d)",
                                     (int)(strstr(j->arg[i], " *") - j->arg[i]),
                                     j->arg[i], i));
    text_add(t, ")\n");
}

static void write_grids(const Writer *w, Text *t) {
    text_add(t, "// Blocks of each launch, on the host and on CUDA.\n");
    text_add(t, "static const int blocks[2][NUM_KERNELS] = {\n");
    for (int d = 0; d < 2; d++) {
        text_add(t, "    {");
        Wrap wrap = {t, 5, 5, 0};
        for (int i = 0; i < w->num_steps; i++)
            for (int k = 0; k < w->step[i].count; k++)
                if (is_written(&w->step[i].kernel[k]))
                    wrap_add(&wrap, arena_format(w->a, "%d",
                                                 w->step[i].kernel[k].grid[d]));
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}

// The kernels that are written, in order.
static const Kernel **written_kernels(const Writer *w, int *count) {
    size_t most = 0;
    for (int i = 0; i < w->num_steps; i++)
        most += (size_t)w->step[i].count;
    const Kernel **list = ARENA_ARRAY(w->a, most + 1, const Kernel *);
    *count = 0;
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            if (is_written(&w->step[i].kernel[k]))
                list[(*count)++] = &w->step[i].kernel[k];
    return list;
}

// The entries, of kernels that differ on the host, in pieces that can be
// compiled side by side.
static void write_pieces(const Writer *w, Text *t, const Kernel **all,
                         int num_all) {
    enum { PIECES = 8 };
    const Kernel **kernel =
        ARENA_ARRAY(w->a, (size_t)num_all + 1, const Kernel *);
    int count = 0;
    for (int k = 0; k < num_all; k++)
        if (strcmp(all[k]->name, all[k]->on_host) == 0)
            kernel[count++] = all[k];
    text_add(t, "// Compiled as a whole, or in SINTER_UNITS pieces, of which "
                "this is SINTER_UNIT.\n"
                "#ifdef SINTER_UNITS\n"
                "#define IN_UNIT(piece) "
                "((piece) %% SINTER_UNITS == SINTER_UNIT)\n"
                "#else\n"
                "#define IN_UNIT(piece) 1\n"
                "#endif\n");
    for (int p = 0; p < PIECES; p++) {
        int first = (int)((int64_t)count * p / PIECES);
        int last = (int)((int64_t)count * (p + 1) / PIECES);
        if (first == last)
            continue;
        text_add(t, "\n#if IN_UNIT(%d)\n", p);
        for (int k = first; k < last; k++)
            write_entry(w, t, kernel[k]);
        text_add(t, "#else\n");
        for (int k = first; k < last; k++)
            text_add(t, "HOST_ENTRY(%s);\n", kernel[k]->name);
        text_add(t, "#endif\n");
    }
    text_add(t, "\n// ---- the first piece has the rest ----\n\n"
                "#if IN_UNIT(0)\n");
}

static void write_entries(const Writer *w, Text *t) {
    int count, joins;
    Written before = {0};
    const Kernel **kernel = written_kernels(w, &count);
    const Joined **joined = written_joins(w, &joins);
    text_add(t, "// ---- kernels, as the host calls them ----\n\n");
    write_pieces(w, t, kernel, count);
    for (int k = 0; k < joins; k++)
        write_joined_entry(w, t, joined[k]);
    text_add(t, "\nenum {\n");
    for (int k = 0; k < count; k++)
        text_add(t, "    %s_id,\n", kernel[k]->name);
    for (int k = 0; k < joins; k++)
        text_add(t, "    %s_id,\n", joined[k]->name);
    text_add(t, "    NUM_KERNELS\n};\n"
                "\nstatic const RtKernel kernels[] = {\n");
    for (int k = 0; k < count; k++)
        text_add(t, "    {\"%s\", %s_host, %d, %d, %d, %d},\n", kernel[k]->name,
                 kernel[k]->on_host, kernel[k]->group->phases, BLOCK_THREADS,
                 kernel[k]->num_args, kernel_part(w, &before, kernel[k]));
    for (int k = 0; k < joins; k++)
        text_add(t, "    {\"%s\", JOINED_HOST(%s), %d, %d, %d, %d},\n",
                 joined[k]->name, joined[k]->name, joined[k]->join.count,
                 BLOCK_THREADS, joined[k]->num_args, join_part(w, &before));
    text_add(t, "};\n\n");
    write_grids(w, t);
    text_add(t, "\n#define RUN(kernel, ...) \\\n"
                "    LAUNCH(d, kernel##_id, grid[kernel##_id], __VA_ARGS__)\n");
}

// ---- NAME.c: library calls ----

static void write_conv(Text *t, const Node *d, const char *kind, Type x,
                       Type weight, Type y) {
    text_add(t, "%s, .n = %lld, .h = %lld, .w = %lld, .c = %lld,", kind,
             (long long)x.dim[0], (long long)x.dim[1], (long long)x.dim[2],
             (long long)x.dim[3]);
    text_add(
        t, "\n     .k = %lld, .r = %lld, .s = %lld, .oh = %lld, .ow = %lld,",
        (long long)weight.dim[0], (long long)weight.dim[1],
        (long long)weight.dim[2], (long long)y.dim[1], (long long)y.dim[2]);
    text_add(t, "\n     .stride = {%lld, %lld}, .dilation = {%lld, %lld},",
             (long long)node_ints(d, ATTR_stride, 0, 1),
             (long long)node_ints(d, ATTR_stride, 1, 1),
             (long long)node_ints(d, ATTR_dilation, 0, 1),
             (long long)node_ints(d, ATTR_dilation, 1, 1));
    text_add(t, " .pad = {%lld, %lld, %lld, %lld}, .groups = %lld",
             (long long)node_ints(d, ATTR_pad, 0, 0),
             (long long)node_ints(d, ATTR_pad, 1, 0),
             (long long)node_ints(d, ATTR_pad, 2, 0),
             (long long)node_ints(d, ATTR_pad, 3, 0),
             (long long)node_int(d, ATTR_groups, 1));
}

static void write_matmul(Text *t, const Node *d, Type a) {
    bool ta = node_int(d, ATTR_ta, 0), tb = node_int(d, ATTR_tb, 0);
    int rows = d->type.rank - 2;
    int64_t batch = 1;
    for (int i = 0; i < rows; i++)
        batch *= d->type.dim[i];
    text_add(t, "RT_MATMUL, .batch = %lld, .n = %lld, .k = %lld, .c = %lld,",
             (long long)batch, (long long)d->type.dim[rows],
             (long long)d->type.dim[rows + 1],
             (long long)a.dim[ta ? rows : rows + 1]);
    text_add(t, "\n     .ta = %s, .tb = %s", ta ? "true" : "false",
             tb ? "true" : "false");
}

static void write_factor(Text *t, const Node *d, Type a) {
    text_add(t, "%s, .n = %lld, .k = %lld",
             d->op == OP_eigh ? "RT_EIGH" : "RT_ORTHOGONAL",
             (long long)a.dim[0], (long long)a.dim[1]);
}

// The operand of a call that has but one is given twice.
static NodeId call_operand(const Node *d, int i) {
    return d->arg[i < d->num_args ? i : 0];
}

static void write_call(Text *t, const Graph *g, const Node *d) {
    Type a = g->node[d->arg[0]].type;
    Type b = g->node[call_operand(d, 1)].type;
    switch (d->op) {
    case OP_conv:
        write_conv(t, d, "RT_CONV", a, b, d->type);
        break;
    case OP_conv_grad_input:
        write_conv(t, d, "RT_CONV_GRAD_INPUT", d->type, b, a);
        break;
    case OP_conv_grad_weight:
        write_conv(t, d, "RT_CONV_GRAD_WEIGHT", b, d->type, a);
        break;
    case OP_matmul:
        write_matmul(t, d, a);
        break;
    default:
        write_factor(t, d, a);
    }
}

static const Node *call_node(const Graph *g, const Kernel *k) {
    NodeId n = k->group->first;
    while (!(op_info[g->node[n].op].facts & CALLS))
        n++;
    return &g->node[n];
}

static bool any_calls(const Writer *w) {
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            if (w->step[i].kernel[k].text == NULL)
                return true;
    return false;
}

// The layer that a call is of, as people know it.
static const char *call_layer(const Writer *w, const Node *d,
                              const Kernel *kernel) {
    const Origin *from = &d->from;
    return from->path == NULL ? kernel->name
           : from->file == NULL
               ? from->path
               : arena_format(w->a, "%s, %s:%d", from->path,
                              file_text(w->a, from->file), from->line);
}

static void write_call_table(const Writer *w, Text *t, const char *device,
                             DType act) {
    text_add(t, "\nstatic const RtCall calls_%s[] = {\n", device);
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++) {
            const Kernel *kernel = &w->step[i].kernel[k];
            if (kernel->text != NULL)
                continue;
            const Node *d = call_node(w->step[i].host, kernel);
            text_add(t, "    {.layer = \"%s\",\n     ",
                     call_layer(w, d, kernel));
            text_add(t, ".type = %s, .accumulate = %s, .kind = ",
                     rt_type_text(d->type.dtype, act),
                     node_int(d, ATTR_accumulate, 0) ? "true" : "false");
            write_call(t, w->step[i].host, d);
            text_add(t, "}, // %s\n", kernel->name);
        }
    text_add(t, "};\n");
}

static void write_calls(const Writer *w, Text *t) {
    if (!any_calls(w))
        return;
    text_add(t, "\n// ---- library calls ----\n\nenum {\n");
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            if (w->step[i].kernel[k].text == NULL)
                text_add(t, "    %s,\n", w->step[i].kernel[k].name);
    text_add(t, "};\n");
    write_call_table(w, t, "host", w->host->act);
    write_call_table(w, t, "cuda", w->device->act);
}

static void write_rides(Writer *w, Text *t) {
    w->rides = (RideTables){.norms = text_new(w->a), .fusions = text_new(w->a)};
    for (int i = 0; i < w->num_steps; i++)
        rides_emit(&w->rides, w->step[i].device, w->step[i].launches, i);
    if (w->rides.num_fusions > 0)
        text_add(t,
                 "\n// Kernels that a library call can save on CUDA.\n"
                 "static const RtNorm norms[] = {\n%s};\n\n"
                 "static const RtFusion fusions[] = {\n%s};\n",
                 text_string(&w->rides.norms), text_string(&w->rides.fusions));
}

static void write_joins(Writer *w, Text *t) {
    Text rows = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++)
        joins_emit(&rows, w->step[i].device, w->step[i].launches, i);
    w->joins = rows.length > 0;
    if (w->joins)
        text_add(t,
                 "\n// Kernels that may be one cooperative launch on CUDA.\n"
                 "static const RtJoin joins[] = {\n%s};\n",
                 text_string(&rows));
}

// ---- NAME.c: steps ----

static int phase_of(const Graph *g, const Group *group) {
    if (group_has_parts(group->kind))
        return 2;
    return group_backward(g, group);
}

static void write_launch(const Writer *w, Text *t, const Twin *s,
                         const Kernel *k) {
    if (k->text == NULL) {
        const Node *d = call_node(s->host, k);
        text_add(t, "    rt_contract(d, %s, t->v%u, t->v%u, t->v%u);\n",
                 k->name, node_base(s->host, d->arg[0]),
                 node_base(s->host, call_operand(d, 1)),
                 (unsigned)(d - s->host->node));
        return;
    }
    text_add(t, "    RUN(%s,\n        ", k->name);
    Wrap wrap = {t, 8, 8, 0};
    for (int j = 0; j < k->num_args; j++)
        wrap_add(&wrap, k->arg[j] == NO_NODE ? "0"
                        : k->plus[j]         ? arena_format(w->a, "t->v%u + %d",
                                                            k->arg[j], k->plus[j])
                                     : arena_format(w->a, "t->v%u", k->arg[j]));
    text_add(t, ");\n");
}

// A comment where the layer changes, with the model's line.
static void write_layer(Text *t, const Twin *s, const Kernel *k,
                        const char **layer) {
    const Graph *g = s->host;
    Origin from = {0};
    for (NodeId n = k->group->first; n <= k->group->last; n++)
        if (g->node[n].from.path != NULL) {
            from = g->node[n].from;
            break;
        }
    if (from.path == NULL)
        return;
    const char *dot = strrchr(from.path, '.');
    size_t length = dot ? (size_t)(dot - from.path) : strlen(from.path);
    if (*layer != NULL && strlen(*layer) == length &&
        strncmp(*layer, from.path, length) == 0)
        return;
    *layer = arena_string(t->arena, from.path, length);
    text_add(t, "\n    // %s%s, %s:%d\n", *layer,
             from.backward ? ", backward" : "",
             from.file ? file_text(t->arena, from.file) : "", from.line);
}

// The tensors of a step, and where each lives on the two devices.
static void write_tensors(const Writer *w, Text *t, const Twin *s,
                          const bool *stored) {
    text_add(t, "\n// ---- %s ----\n\n", s->name);
    text_add(t, "// Where its tensors live, in bytes from the start of the "
                "arena.\n");
    text_add(t, "typedef struct {\n    size_t\n");
    const char *separator = "";
    for (NodeId n = 0; n < s->host->count; n++)
        if (stored[n]) {
            const Node *d = &s->host->node[n];
            text_add(t, "%s        v%u", separator, n);
            separator = arena_format(w->a, ", // %s %s\n",
                                     type_text(w->a, d->type), layer_of(d));
        }
    bool none = *separator == '\0'; // but C wants a member
    text_add(t, "%s;\n} %s_tensors;\n\n", none ? "        none" : "", s->name);
    text_add(t, "static const %s_tensors %s_on[2] = {\n", s->name, s->name);
    for (int i = 0; i < 2; i++) {
        const Graph *g = i == 0 ? s->host : s->device;
        text_add(t, "    {");
        Wrap wrap = {t, 5, 5, 0};
        if (none)
            wrap_add(&wrap, ".none = 0");
        for (NodeId n = 0; n < g->count; n++)
            if (stored[n])
                wrap_add(&wrap, arena_format(w->a, ".v%u = %lld", n,
                                             (long long)g->node[n].offset));
        text_add(t, "}, // %s\n", i == 0 ? "host" : "cuda");
    }
    text_add(t, "};\n");
}

static void write_step(const Writer *w, Text *t, const Twin *s) {
    static const char *const phase_name[] = {"RT_FORWARD", "RT_BACKWARD",
                                             "RT_UPDATE"};
    write_tensors(w, t, s, graph_stored(s->host, w->a));
    text_add(t,
             "\nstatic void %s_step(RtDevice *d, const %s_tensors *t, "
             "const int *grid)\n{\n",
             s->name, s->name);
    int phase = -1;
    const char *layer = NULL;
    bool trains = s->step->kind == STEP_TRAIN || s->step->kind == STEP_GATHER;
    for (int k = 0; k < s->count; k++) {
        int now = phase_of(s->host, s->kernel[k].group);
        if (trains && now != phase)
            text_add(t, "%s    rt_phase(d, %s);\n", k ? "\n" : "",
                     phase_name[now]);
        phase = now;
        write_layer(t, s, &s->kernel[k], &layer);
        write_launch(w, t, s, &s->kernel[k]);
    }
    if (trains)
        text_add(t, "\n    rt_phase(d, RT_OTHER);\n");
    text_add(t, "}\n");
    launches_write(t, s->name, s->host, s->device, s->kernel, s->count);
}

static void write_wrappers(const Writer *w, Text *t) {
    static const char *const device[] = {"host", "cuda"};
    text_add(t, "\n// ---- the steps on each device ----\n");
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < w->num_steps; i++) {
            const char *name = w->step[i].name;
            text_add(t,
                     "\nstatic void %s_on_%s(RtDevice *d)\n{\n"
                     "    %s_step(d, &%s_on[%d], blocks[%d]);\n}\n",
                     name, device[d], name, name, d, d);
        }
}

// ---- NAME.c: states and inputs ----

static void write_states(const Writer *w, Text *t, int which) {
    static const char *const device[] = {"host", "cuda"};
    text_add(t, "\nstatic const RtState states_%s[] = {\n", device[which]);
    for (int i = 0; i < w->num_steps; i++) {
        const Graph *g = which ? w->step[i].device : w->step[i].host;
        for (NodeId n = 0; n < g->count; n++) {
            const Node *d = &g->node[n];
            bool seen = false;
            if (d->op != OP_param && d->op != OP_state)
                continue;
            const char *name = node_text(d, ATTR_name);
            for (int j = 0; j < i && !seen; j++)
                seen = graph_find(which ? w->step[j].device : w->step[j].host,
                                  name) != NO_NODE;
            if (seen)
                continue;
            text_add(t, "    {\"%s\", %s, %s, %s, %lld, ", name, rt_kind(d),
                     rt_type_text(d->type.dtype, g->act),
                     dims_text(w->a, d->type), (long long)d->offset);
            text_double(t, node_float(d, ATTR_init, 0.0));
            text_add(t, "},\n");
        }
    }
    text_add(t, "};\n");
}

static void write_inputs(const Writer *w, Text *t, int which) {
    static const char *const device[] = {"host", "cuda"};
    for (int i = 0; i < w->num_steps; i++) {
        const Graph *g = which ? w->step[i].device : w->step[i].host;
        bool any = false;
        for (NodeId n = 0; n < g->count; n++) {
            const Node *d = &g->node[n];
            if (d->op != OP_input)
                continue;
            if (!any)
                text_add(t, "\nstatic const RtInput %s_inputs_%s[] = {\n",
                         w->step[i].name, device[which]);
            any = true;
            text_add(t, "    {\"%s\", %s, %s, %lld},\n",
                     node_text(d, ATTR_name),
                     rt_type_text(d->type.dtype, g->act),
                     dims_text(w->a, d->type), (long long)d->offset);
        }
        if (any)
            text_add(t, "};\n");
    }
}

static bool has_inputs(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_input)
            return true;
    return false;
}

// Derived state is made again after a step that changes what it comes from
// without knowing of it.
static bool leaves_derived(const Twin *s) {
    if (s->step->kind != STEP_INIT && s->step->kind != STEP_AVERAGE)
        return false;
    for (NodeId n = 0; n < s->host->count; n++) {
        const Node *d = &s->host->node[n];
        if (d->op == OP_assign && s->host->node[d->arg[0]].op == OP_param)
            return true;
    }
    return false;
}

static void write_stored(Writer *w, Text *t, int which) {
    static const char *const device[] = {"host", "cuda"};
    Text rows = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        stored_emit(&rows, w->a, which ? s->device : s->host, s->launches, i);
    }
    w->stored = rows.length > 0;
    if (w->stored)
        text_add(t,
                 "\n// What launches leave in memory, for who looks at it.\n"
                 "static const RtStored stored_%s[] = {\n%s};\n",
                 device[which], text_string(&rows));
}

static void write_step_table(const Writer *w, Text *t, int which) {
    static const char *const device[] = {"host", "cuda"};
    static const char *const kind[] = {
        [STEP_COLLECT] = "RT_COLLECT", [STEP_INIT] = "RT_INIT",
        [STEP_DERIVE] = "RT_DERIVE",   [STEP_TRAIN] = "RT_TRAIN",
        [STEP_GATHER] = "RT_GATHER",   [STEP_AVERAGE] = "RT_AVERAGE",
        [STEP_PREPARE] = "RT_PREPARE", [STEP_EVAL] = "RT_EVAL"};
    const char *on = device[which];
    text_add(t, "\nstatic const RtStep steps_%s[] = {\n", on);
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        text_add(t,
                 "    {.name = \"%s\", .kind = %s, .stage = %d,\n"
                 "     .run = %s_on_%s",
                 s->name, kind[s->step->kind], s->step->stage, s->name, on);
        if (s->count > 0)
            text_add(t,
                     ",\n     .launch = %s_launches, .num_launches = %d, "
                     ".bytes = %s_bytes[%d]",
                     s->name, s->count, s->name, which);
        if (leaves_derived(s))
            text_add(t, ", .then_derive = true");
        if (has_inputs(s->host))
            text_add(t,
                     ",\n     .input = %s_inputs_%s, .num_inputs = "
                     "COUNT(%s_inputs_%s)",
                     s->name, on, s->name, on);
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}

static void write_plan(const Writer *w, Text *t, int which) {
    static const char *const device[] = {"host", "cuda"};
    const char *on = device[which];
    const Plan *plan = which ? w->device : w->host;
    text_add(t, "    {\n");
    text_add(t, "        .device = \"%s\",\n", on);
    text_add(t, "        .arena_bytes = %lld,\n", (long long)plan->arena_bytes);
    text_add(t, "        .state = states_%s,\n", on);
    text_add(t, "        .num_states = COUNT(states_%s),\n", on);
    text_add(t, "        .kernel = kernels,\n");
    text_add(t, "        .num_kernels = NUM_KERNELS,\n");
    if (any_calls(w)) {
        text_add(t, "        .call = calls_%s,\n", on);
        text_add(t, "        .num_calls = COUNT(calls_%s),\n", on);
    }
    text_add(t, "        .step = steps_%s,\n", on);
    text_add(t, "        .num_steps = COUNT(steps_%s),\n", on);
    if (which && w->rides.num_fusions > 0)
        text_add(t, "        .norm = norms,\n        .fusion = fusions,\n"
                    "        .num_fusions = COUNT(fusions),\n"
                    "        .num_norms = COUNT(norms),\n");
    if (which && w->joins)
        text_add(t, "        .join = joins,\n"
                    "        .num_joins = COUNT(joins),\n");
    if (w->stored)
        text_add(t,
                 "        .stored = stored_%s,\n"
                 "        .num_stored = COUNT(stored_%s),\n",
                 on, on);
    text_add(t, "    },\n");
}

// ---- NAME.c: the trainer ----

static const Graph *graph_with(const Program *p, const char *input) {
    return graph_find(p->eval, input) != NO_NODE ? p->eval : p->stage[0].train;
}

// What one sample has in an input: rank -1 where no graph uses it.
static void write_shape(const Program *p, Text *t, const char *input) {
    const Graph *g = graph_with(p, input);
    NodeId n = graph_find(g, input);
    Type type = n == NO_NODE ? type_scalar(I32) : g->node[n].type;
    text_add(t, "    .%s = {%s, %d, {", input, rt_type_text(type.dtype, F32),
             type.rank - 1);
    for (int i = 1; i < type.rank; i++)
        text_add(t, "%s%lld", i > 1 ? ", " : "", (long long)type.dim[i]);
    text_add(t, "}},\n");
}

static void write_settings(const Recipe *r, Text *t) {
    if (r->num_data_settings == 0)
        return;
    text_add(t, "    .data_setting = (const RtSetting[]){\n");
    for (int i = 0; i < r->num_data_settings; i++)
        text_add(t, "        {\"%s\", %lld},\n", r->data_setting[i].name,
                 (long long)r->data_setting[i].value);
    text_add(t, "    },\n    .num_data_settings = %d,\n", r->num_data_settings);
}

static void add_time(Text *t, Time time) {
    static const char *const unit[] = {[IN_EPOCHS] = "RT_EPOCHS",
                                       [IN_STEPS] = "RT_STEPS",
                                       [IN_SHARES] = "RT_SHARES"};
    text_add(t, "{");
    text_double(t, time.count);
    text_add(t, ", %s},\n", unit[time.unit]);
}

static void write_time(Text *t, const char *name, Time time) {
    text_add(t, "    .%s = ", name);
    add_time(t, time);
}

static void write_stages(const Program *p, Text *t) {
    text_add(t, "\n// When each stage of the run begins.\n"
                "static const RtTime stages[] = {\n");
    for (int i = 0; i < p->num_stages; i++) {
        text_add(t, "    ");
        add_time(t, p->stage[i].from);
    }
    text_add(t, "};\n");
}

static void write_stop(const Recipe *r, Text *t) {
    if (r->stop.metric == NULL)
        return;
    text_add(t, "    .stop = {\"%s\", %s, ", r->stop.metric,
             r->stop.above ? "true" : "false");
    text_double(t, r->stop.value);
    text_add(t, "},\n");
}

static void write_trainer(const Writer *w, Text *t) {
    const Program *p = w->program;
    const Recipe *r = &p->recipe;
    write_stages(p, t);
    text_add(t, "\nstatic const RtPlan plans[] = {\n");
    write_plan(w, t, 0);
    write_plan(w, t, 1);
    text_add(t, "};\n\nRT_EMBED(kernels_text, \"%s.cu\");\n\n",
             w->options->base);
    if (w->options->embeds)
        text_add(t, "RT_EMBED(kernels_code, \"%s.bin\");\n\n",
                 w->options->base);
    text_add(t, "const RtTrainer sinter_trainer = {\n");
    text_add(t, "    .model = \"%s\",\n", p->name);
    text_add(t, "    .file = ");
    add_quoted(t, p->file);
    text_add(t, ",\n    .version = \"%s\",\n", w->options->version);
    text_add(t, "    .fingerprint = 0x%016llxu,\n",
             (unsigned long long)w->options->fingerprint);
    text_add(t, "    .data_format = \"%s\",\n", r->data_format);
    text_add(t, "    .data_path = ");
    add_quoted(t, r->data_path != NULL ? r->data_path : "");
    text_add(t, ",\n");
    write_settings(r, t);
    write_shape(p, t, "image");
    write_shape(p, t, "label");
    text_add(t, "    .classes = %d,\n", r->classes);
    text_add(t, "    .batch = %lld,\n", (long long)r->batch);
    text_add(t, "    .drop_last = %s,\n", r->drop_last ? "true" : "false");
    write_time(t, "length", r->length);
    text_add(t, "    .seed = %lld,\n", (long long)r->seed);
    text_add(t, "    .accumulate = %d,\n", r->accumulate);
    text_add(t, "    .stage_from = stages,\n");
    text_add(t, "    .num_stages = COUNT(stages),\n");
    write_time(t, "average_every", p->average_every);
    write_time(t, "average_from", p->average_from);
    text_add(t, "    .collect_samples = %lld,\n",
             (long long)r->collect_samples);
    write_time(t, "eval_every", r->eval_every);
    write_time(t, "checkpoint_every", r->checkpoint_every);
    text_add(t, "    .eval_train = %s,\n", r->eval_train ? "true" : "false");
    text_add(t, "    .top5 = %s,\n", r->top5 ? "true" : "false");
    text_add(t, "    .perplexity = %s,\n", r->perplexity ? "true" : "false");
    text_add(t, "    .checkpoint_keep = %d,\n", r->checkpoint_keep);
    write_stop(r, t);
    text_add(t, "    .plan = plans,\n");
    text_add(t, "    .num_plans = COUNT(plans),\n");
    text_add(t, "    .kernels = kernels_text,\n");
    text_add(t, "    .kernels_end = kernels_text_end,\n");
    text_add(t, "    .kernel_parts = %d,\n",
             join_part(w, &(Written){.joined = w->written.joined}));
    if (w->options->lines)
        text_add(t, "    .kernel_lines = true,\n");
    if (w->options->embeds)
        text_add(t, "    .code = kernels_code,\n"
                    "    .code_end = kernels_code_end,\n");
    text_add(t, "};\n\n");
    text_add(t, "int main(int argc, char **argv)\n{\n"
                "    return rt_main(argc, argv, &sinter_trainer);\n}\n\n"
                "#endif\n");
}

static const Twin *train_step(const Writer *w) {
    const Twin *s = w->step;
    while (s->step->kind != STEP_TRAIN)
        s++;
    return s;
}

static void write_header(const Writer *w, Text *t) {
    const Program *p = w->program;
    text_add(t, "// %s: a trainer, from %s.\n//\n", p->name,
             file_text(w->a, p->file));
    text_add(t, "//   batch %lld, %lld parameters\n",
             (long long)p->recipe.batch,
             (long long)count_parameters(p->stage[0].train));
    text_add(t, "//   arena: %lld bytes on the host, %lld on CUDA\n",
             (long long)w->host->arena_bytes,
             (long long)w->device->arena_bytes);
    text_add(t, "//   a step: %d launches, ", train_step(w)->count);
    text_add(t, "%d fewer where CUDA joins them\n//\n",
             joins_saving(&train_step(w)->launches->joins,
                          &train_step(w)->launches->rides, 0));
    text_add(t, "// Tensor v12 of a step is %%12 of the graph that "
                "`sinter show plan` prints.\n\n");
    text_add(t, "#include \"runtime/rt.h\"\n\n");
    text_add(t, "#define SINTER_ACT %d // of activations on the host\n",
             act_bits(w->host->act));
    text_add(t, "#include \"%s.cu\"\n\n", w->options->base);
    text_add(t, "#define COUNT(table) ((int)(sizeof(table) / "
                "sizeof *(table)))\n\n");
}

void codegen_program(const Program *p, const Plan *host, const Plan *device,
                     const CodegenOptions *o, Text *c, Text *cu) {
    Writer w = {.program = p,
                .host = host,
                .device = device,
                .options = o,
                .a = c->arena};
    find_steps(&w);
    write_kernels(&w, cu);
    write_header(&w, c);
    write_entries(&w, c);
    write_calls(&w, c);
    write_rides(&w, c);
    write_joins(&w, c);
    for (int i = 0; i < w.num_steps; i++)
        write_step(&w, c, &w.step[i]);
    write_wrappers(&w, c);
    text_add(c, "\n// ---- states and inputs ----\n");
    for (int which = 0; which < 2; which++) {
        write_states(&w, c, which);
        write_inputs(&w, c, which);
        write_step_table(&w, c, which);
        write_stored(&w, c, which);
    }
    write_trainer(&w, c);
}
