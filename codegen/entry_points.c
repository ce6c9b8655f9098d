// Entry points: the kernels as the host calls them, their table and their
// grids.

#include "codegen/kernel/parametrize.h"
#include "codegen/program.h"

#include <string.h>

// Starts a line below the first argument of a macro of that name.
static void write_arguments(const Writer *w, Text *t, const char *macro,
                            const Kernel *k) {
    int margin = (int)strlen(macro) + 1;
    Wrap wrap = {t, margin, margin, 0};
    text_add(t, "%*s", margin, "");
    for (int j = 0; j < k->num_args; j++)
        wrap_add(&wrap,
                 k->arg[j].node == NO_NODE
                     ? "arena"
                     : arena_format(w->a, "ARG(%s *, %d)", k->arg[j].type, j));
    text_add(t, ")\n");
}

// {.integer = 64}, {.real = 0.5f}
static const char *values_text(Arena *a, const Expr *values) {
    Text t = text_new(a);
    for (int i = 0; i < values->count; i++)
        text_add(&t, "%s{.%s = %s}", i > 0 ? ", " : "",
                 values->arg[i]->kind == X_CONSTANT ? "real" : "integer",
                 expr_print(a, values->arg[i], ""));
    return text_string(&t);
}

// Kernels of a family call one function with their values.  They have the same
// arguments.
static void write_entry(const Writer *w, Text *t, const Kernel *k) {
    const char *kind = kernel_in_family(k) ? "HOST_FAMILY" : "HOST_KERNEL";
    text_add(t, "%s(%s,\n", kind, k->name);
    write_arguments(w, t, kind, k);
    for (const FamilyKernel *s = k->member; s && s->values; s = s->next) {
        text_add(t, "HOST_LIKE(%s, %s,\n          SPEC_VALUES(%s),\n", s->name,
                 k->name, values_text(w->a, s->values));
        write_arguments(w, t, "HOST_LIKE", k);
    }
}

static void write_declarations(Text *t, const Kernel *k) {
    text_add(t, "HOST_ENTRY(%s);\n", k->name);
    for (const FamilyKernel *s = k->member; s && s->next; s = s->next)
        text_add(t, "HOST_ENTRY(%s);\n", s->next->name);
}

static void write_merged_entry(const Writer *w, Text *t,
                               const MergedKernel *m) {
    text_add(t, "MERGED_KERNEL(%s,\n              ", m->name);
    Wrap wrap = {t, 14, 14, 0};
    for (int i = 0; i < m->num_args; i++)
        wrap_add(&wrap, arena_format(w->a, "ARG(%s *, %d)", m->type[i], i));
    text_add(t, ")\n");
}

static void write_grids(const Writer *w, Text *t) {
    text_add(t, "// Blocks of each launch, on the host and on CUDA.\n");
    text_add(t, "static const int blocks[%d][NUM_KERNELS] = {\n", NUM_PLANS);
    for (int d = 0; d < NUM_PLANS; d++) {
        text_add(t, "    {");
        Wrap wrap = {t, 5, 5, 0};
        for (int k = 0; k < w->num_kernels; k++)
            wrap_add(&wrap, arena_format(w->a, "%d", w->kernel[k]->grid[d]));
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}

// The functions on the host: one for each family.
static const Kernel **host_kernels(const Writer *w, int *count) {
    const Kernel **list =
        ARENA_ARRAY(w->a, (size_t)w->num_kernels + 1, const Kernel *);
    *count = 0;
    for (int k = 0; k < w->num_kernels; k++)
        if (w->kernel[k]->member == NULL ||
            w->kernel[k]->member->first == w->kernel[k]->member)
            list[(*count)++] = w->kernel[k];
    return list;
}

enum { PIECES = 8 };

// Bytes of a kernel's statements.  Its tables take no time to compile.
static size_t code_bytes(const Kernel *k) {
    return strlen(k->text + k->code);
}

// The first kernel of each piece.  Pieces take equal time to compile.  A launch
// in a step's function takes as long as 128 bytes of kernel text, by
// measurement; the first piece has all steps.
static void pieces_begin(const Writer *w, const Kernel **kernel, int count,
                         int first[PIECES + 1]) {
    enum { LAUNCH_BYTES = 128 };
    size_t before = 0, total = 0;
    for (int i = 0; i < w->num_steps; i++)
        before +=
            (size_t)count_emitted_launches(&w->step[i], w->a) * LAUNCH_BYTES;
    for (int k = 0; k < count; k++)
        total += code_bytes(kernel[k]);
    total += before;
    int piece = 0;
    for (int k = 0; k < count; k++) {
        while (piece == 0 ||
               (piece < PIECES && before >= total / PIECES * (size_t)piece))
            first[piece++] = k;
        before += code_bytes(kernel[k]);
    }
    while (piece <= PIECES)
        first[piece++] = count;
}

// The entry points in pieces, for compilation in parallel.
static void write_pieces(const Writer *w, Text *t) {
    int count, begin[PIECES + 1];
    const Kernel **kernel = host_kernels(w, &count);
    pieces_begin(w, kernel, count, begin);
    text_add(t,
             "// With SINTER_UNITS, the file is compiled in that many units: "
             "this is\n"
             "// number SINTER_UNIT.\n"
             "#ifdef SINTER_UNITS\n"
             "#define IN_UNIT(piece) ((piece) %% SINTER_UNITS == SINTER_UNIT)\n"
             "#else\n"
             "#define IN_UNIT(piece) 1\n"
             "#endif\n");
    for (int p = 0; p < PIECES; p++) {
        int first = begin[p], last = begin[p + 1];
        if (first == last)
            continue;
        text_add(t, "\n#if IN_UNIT(%d)\n", p);
        for (int k = first; k < last; k++)
            write_entry(w, t, kernel[k]);
        text_add(t, "#else\n");
        for (int k = first; k < last; k++)
            write_declarations(t, kernel[k]);
        text_add(t, "#endif\n");
    }
    text_add(t, "\n// ---- tables and steps, in unit 0 ----\n\n"
                "#if IN_UNIT(0)\n");
}

static void write_table(const Writer *w, Text *t) {
    text_add(t, "\nstatic const RtKernel kernels[] = {\n");
    for (int i = 0; i < w->num_kernels; i++) {
        const Kernel *k = w->kernel[i];
        text_add(t, "    {\"%s\", %s_host, %d, %d, %d, %d},\n", k->name,
                 k->member ? k->member->equal->name : k->name, k->group->phases,
                 BLOCK_THREADS, k->num_args, k->group->counter < 0);
    }
    for (int i = 0; i < w->num_merged; i++) {
        const MergedKernel *m = w->merged[i];
        text_add(t, "    {\"%s\", MERGED_HOST(%s), %d, %d, %d, 1},\n", m->name,
                 m->name, m->launch.count, BLOCK_THREADS, m->num_args);
    }
    text_add(t, "};\n\n");
}

void entries_write(const Writer *w, Text *t) {
    text_add(t, "// ---- kernels: entry points for the host ----\n\n");
    write_pieces(w, t);
    for (int k = 0; k < w->num_merged; k++)
        write_merged_entry(w, t, w->merged[k]);
    text_add(t, "\nenum {\n");
    for (int k = 0; k < w->num_kernels; k++)
        text_add(t, "    %s_id,\n", w->kernel[k]->name);
    for (int k = 0; k < w->num_merged; k++)
        text_add(t, "    %s_id,\n", w->merged[k]->name);
    text_add(t, "    NUM_KERNELS\n};\n");
    write_table(w, t);
    write_grids(w, t);
    text_add(t, "\n#define RUN(kernel, ...) \\\n"
                "    LAUNCH(d, kernel##_id, grid[kernel##_id], __VA_ARGS__)\n");
}
