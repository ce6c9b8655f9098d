// Kernel file: NAME.cu, the text of all kernels.

#include "codegen/program.h"

// Upper bound of the statistics that a library may compute, over all steps.
static int count_statistics(const Writer *w) {
    int count = 0;
    for (int i = 0; i < w->num_steps; i++)
        for (NodeId n = 0; n < w->step[i].graph->count; n++) {
            const Node *d = &w->step[i].graph->node[n];
            int number = (int)node_int(d, ATTR_number, -1);
            count = number >= count ? number + 1 : count;
        }
    return count;
}

// ---- conditional compilation ----

static bool calls(const MergedKernel *m, const Kernel *k) {
    for (int i = 0; i < m->launch.count; i++)
        if (m->kernel[i].first == k)
            return true;
    return false;
}

// Numbers of the users of a text: its kernel, and the merged launches that call
// the kernel's function.
typedef struct {
    int own, *caller, callers;
} Needed;

static void find_callers(const Writer *w, Needed *needed) {
    needed->callers = 0;
    for (int i = 0; i < w->num_merged; i++)
        if (calls(w->merged[i], w->kernel[needed->own]))
            needed->caller[needed->callers++] = w->num_kernels + i;
}

static void write_shared(Text *t, const char *text, size_t length,
                         const Needed *needed) {
    enum { OF_LINE = 3 };
    text_add(t, "#if IS_NEEDED(%d)", needed->own);
    for (int i = 0; i < needed->callers; i++)
        text_add(t, "%sIS_NEEDED(%d)",
                 i % OF_LINE == OF_LINE - 1 ? " || \\\n    " : " || ",
                 needed->caller[i]);
    text_add(t, "\n");
    text_bytes(t, text, length);
    text_add(t, "#endif\n");
}

// A device may compile kernels separately and in parallel, and skip unused
// ones.  Its compiler reads the whole text each time, so shared helpers are
// conditional too.
static void write_kernel(Text *t, const Kernel *k, const Needed *needed) {
    text_add(t, "\n");
    text_bytes(t, k->text, k->comment);
    if (k->comment < k->entry)
        write_shared(t, k->text + k->comment, k->entry - k->comment, needed);
    text_add(t, "#if IS_NEEDED(%d)\n%s#endif\n", needed->own,
             k->text + k->entry);
}

static void write_kernels(const Writer *w, Text *t, const PlannedStep *s,
                          Needed *needed) {
    for (int k = 0; k < s->count; k++)
        if (needed->own < w->num_kernels &&
            w->kernel[needed->own] == &s->kernel[k]) {
            find_callers(w, needed);
            write_kernel(t, &s->kernel[k], needed);
            needed->own++;
        }
}

static void write_merged(Text *t, const PlannedStep *s, int *merged) {
    const MergedKernel *m = s->launches->merged;
    for (int k = 0; k < s->launches->plan->merged.count; k++) {
        if (m[k].text == NULL)
            continue;
        text_add(t, "\n");
        text_bytes(t, m[k].text, m[k].entry);
        text_add(t, "#if IS_NEEDED(%d)\n%s#endif\n", (*merged)++,
                 m[k].text + m[k].entry);
    }
}

static bool any_slice(const Writer *w) {
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            for (int j = 0; j < w->step[i].kernel[k].num_args; j++)
                if (w->step[i].kernel[k].arg[j].slice != NO_NODE)
                    return true;
    return false;
}

void kernels_write(const Writer *w, Text *t) {
    const Program *p = w->program;
    text_add(t, "// Kernels of %s, from %s.\n" EMITTED_LICENCE, p->name,
             file_text(w->a, p->file));
    text_add(t,
             "// One source for CUDA and C: the prelude defines its words "
             "for both.  Below\n"
             "// \"---- train ----\", v12 is %%12 of the graph that `sinter "
             "show plan\n"
             "// --graph=train` prints, and p12 its address; likewise below "
             "the other steps.\n"
             "// In kernels over many tensors, v_1, v_2 are those of an entry "
             "of the table.\n"
             "// Section 9 of sinter's docs/ir.md explains the words in "
             "capitals.\n");
    if (any_slice(w))
        text_add(t, "// s12 is the address of slice %%12 in its operand.\n");
    text_add(t, "\n");
    text_add(t,
             "#ifndef SINTER_ACT\n"
             "#define SINTER_ACT %d // bits of an activation on CUDA\n"
             "#endif\n",
             act_bits(w->plan[GPU_PLAN]->act));
    if (count_statistics(w) > 0)
        text_add(t,
                 "#define SINTER_STATISTICS %d // batch_norms whose sums a "
                 "call may compute\n",
                 count_statistics(w));
    text_add(t, "#include \"runtime/prelude/prelude.h\"\n");
    Needed needed = {.caller =
                         ARENA_ARRAY(w->a, (size_t)w->num_merged + 1, int)};
    int merged = w->num_kernels;
    for (int i = 0; i < w->num_steps; i++) {
        text_add(t, "\n// ---- %s ----\n", w->step[i].name);
        write_kernels(w, t, &w->step[i], &needed);
        write_merged(t, &w->step[i], &merged);
    }
}
