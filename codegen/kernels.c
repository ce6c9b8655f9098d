// Kernels: NAME.cu, the text of all.

#include "codegen/program.h"

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

// A device may compile each kernel for itself, side by side, and leave out
// those that it does not launch.  What a kernel calls and reads may be for
// others too, and stays.
static void write_kernel(Text *t, const char *text, size_t entry, int number) {
    text_add(t, "\n");
    text_bytes(t, text, entry);
    text_add(t, "#if IS_WANTED(%d)\n%s#endif\n", number, text + entry);
}

void kernels_write(const Writer *w, Text *t) {
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
    int number = 0, joined = w->num_written;
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        text_add(t, "\n// ---- %s ----\n", s->name);
        for (int k = 0; k < s->count; k++)
            if (kernel_is_written(&s->kernel[k]))
                write_kernel(t, s->kernel[k].text, s->kernel[k].entry,
                             number++);
        const Joined *j = s->launches->joined;
        for (int k = 0; k < s->launches->joins.count; k++)
            if (j[k].text != NULL)
                write_kernel(t, j[k].text, j[k].entry, joined++);
    }
}
