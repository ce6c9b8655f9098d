// Parts: NAME.cu, the text of all kernels.

#include "codegen/program.h"

#include <string.h>

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

// A device may compile the text in parts, side by side, and leave out those of
// which it launches nothing: kernels that may be joined are apart from the
// others, and each joined launch has a part of its own.
enum { PART_KERNELS = 4 };

static int parts_for(int kernels) {
    return (kernels + PART_KERNELS - 1) / PART_KERNELS;
}

int kernel_part(const Writer *w, Written *before, const Kernel *k) {
    if (!k->is_split)
        return before->alone++ / PART_KERNELS;
    return parts_for(w->written.alone) + before->split++ / PART_KERNELS;
}

int join_part(const Writer *w, Written *before) {
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
    Written before = {0};
    for (int i = 0; i < w->num_steps; i++) {
        const Twin *s = &w->step[i];
        text_add(t, "\n// ---- %s ----\n", s->name);
        for (int k = 0; k < s->count; k++)
            if (kernel_is_written(&s->kernel[k]))
                write_in_part(t, s->kernel[k].text,
                              kernel_part(w, &before, &s->kernel[k]));
        for (int k = 0; k < s->launches->joins.count; k++)
            if (s->launches->joined[k].text != NULL)
                write_in_part(t, s->launches->joined[k].text,
                              join_part(w, &before));
    }
}
