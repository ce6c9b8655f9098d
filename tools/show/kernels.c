// Kernels as text: CUDA text, with the costs of each launch above it.
#include "tools/show/inspect.h"

#include <inttypes.h>
#include <string.h>

static void lines_add(Text *t, const Inspected *l) {
    for (int i = 0; i < l->num_lines; i++)
        if (i > 0 && strcmp(l->line[i].file, l->line[i - 1].file) == 0)
            text_add(t, ", %d", l->line[i].line);
        else
            text_add(t, " %s:%d", l->line[i].file, l->line[i].line);
}

// Adds a word, on a new line of the comment if the line is full.
static void word_add(Text *t, size_t *start, const char *word) {
    enum { PAGE = 79 };
    if (t->length - *start + strlen(word) + 1 > PAGE) {
        *start = t->length + 1;
        text_add(t, "\n//           ");
    }
    text_add(t, " %s", word);
}

static void operations_add(Text *t, const Inspected *l) {
    size_t start = t->length;
    text_add(t, "// operations");
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;)
        word_add(t, &start, op_info[l->step->graph->node[n].op].name);
    text_add(t, "\n");
}

static void time_add(Text *t, const Inspected *l, const Device *d) {
    double us = 1e6 * l->seconds;
    text_add(t, us < 0.1 ? "// roofline   %.3g us" : "// roofline   %.2f us",
             us);
    text_add(t, " on %s, by %s\n", d->name, bound_name[l->bound]);
}

static void launch_add(Text *t, const Inspected *l) {
    if (!launch_text(l))
        return;
    int blocks = launch_blocks(l);
    int phases = l->merged ? l->count : l->group->phases;
    text_add(t, "// launch     %d block%s of %d threads", blocks,
             blocks == 1 ? "" : "s", BLOCK_THREADS);
    if (phases > 1)
        text_add(t, ", %d phases", phases);
    text_add(t, "\n");
}

static void resources_add(Text *t, const Inspection *in, const Inspected *l) {
    for (int i = 0; l->resources && i < in->num_archs; i++) {
        const Resources *r = &l->resources[i];
        text_add(t, "// sm_%-3d     %d registers, ", in->arch[i], r->registers);
        if (r->spills)
            text_add(t, "%d bytes spilled", r->spills);
        else
            text_add(t, "no spills");
        text_add(t, ", %d bytes shared\n", r->shared);
    }
}

// Adds the cost model's estimate of a kernel, a line each for the launch, a
// thread, a multiprocessor and the time.
static void estimate_add(Text *t, const Inspected *l, const Device *d) {
    if (!launch_text(l))
        return;
    double all = 0;
    for (int i = 0; i < NUM_ISSUES; i++)
        all += launch_instructions(l, (Issue)i);
    text_add(t, "// issue      %.3g warp instructions\n", all);
    text_add(t, "// thread     about %d registers", l->cost.registers);
    if (l->elements > 0)
        text_add(t, ", %.3g instructions per element",
                 32 * all / (double)l->elements);
    int resident = resident_blocks(&l->cost, launch_blocks(l), d);
    text_add(t,
             "\n// occupancy  %d resident block%s per multiprocessor, %" PRId64
             " bytes in flight\n",
             resident, resident == 1 ? "" : "s",
             bytes_in_flight(&l->cost, launch_blocks(l), d));
    text_add(t, "// estimate   %.2f us", 1e6 * l->estimate);
    if (l->cost.waits > 0)
        text_add(t, ", %.2f us of it for the last block",
                 1e6 * tail_seconds(&l->cost));
    text_add(t, "\n");
}

// Adds the tile kernel that can do its work, with other launches'.
static void tile_add(Text *t, const Inspected *l) {
    for (const TileKernel *k = l->tile; k != NULL; k = k->second) {
        double seconds;
        const TileConfig *c = tile_candidate(k, 0, &seconds);
        text_add(t, "// tile       %s: %s, %.2f us\n", k->name,
                 tile_config_text(c, t->arena), 1e6 * seconds);
    }
    if (l->tile != NULL)
        text_add(t, "//            estimated at %.2f us in place of %.2f\n",
                 1e6 * l->tile_time.tile, 1e6 * l->tile_time.library);
}

// Adds the kernels of a merged launch, each in a line.
static void parts_add(Text *t, const Inspected *l) {
    for (int i = 0; l->merged && i < l->count; i++)
        text_add(t, "%s%s\n", i ? "//            then " : "// merges     ",
                 l->kernel[i].name);
}

static void fusion_add(Text *t, const Inspected *l, const Device *d) {
    if (l->fused_into)
        text_add(t, "// on %s fused as %s into %s\n", d->name, l->fusion,
                 l->fused_into);
    if (l->merged_as)
        text_add(t, "// merged as  %s\n", l->merged_as);
    if (l->merged && !l->taken)
        text_add(t, "// not used on %s\n", d->name);
}

// Adds the launch whose node numbers a shared text has, and its layer.
static void whose_add(Text *t, const Inspection *in, const Kernel *first) {
    for (int s = 0; s < in->plan->num_steps; s++) {
        const Launches *launches = &in->launches[s];
        const Step *step = &in->plan->step[s];
        const char *layer = NULL;
        if (first < launches->kernel ||
            first >= launches->kernel + launches->count)
            continue;
        for (NodeId n = first->group->first; n <= first->group->last; n++)
            if (layer == NULL && step->graph->node[n].group >= 0)
                layer = step->graph->node[n].from.path;
        text_add(t, "launch %d of %s%s%s", (int)(first - launches->kernel),
                 step->name, layer ? ", " : "", layer ? layer : "");
    }
}

// A shared text has the node numbers of its first launch.  Adds those of the
// other launch.
static void numbers_add(Text *t, const Inspection *in, const Inspected *l) {
    for (int i = 0; launch_text(l) && i < l->count; i++) {
        const Kernel *k = &l->kernel[i], *first = k->first;
        bool begun = false;
        for (int j = 0; j < k->numbers.count; j++) {
            long of = first->numbers.number[j], own = k->numbers.number[j];
            if (of == own)
                continue;
            if (!begun) {
                text_add(t, "// nodes      numbered as in ");
                whose_add(t, in, first);
                text_add(t, "; here\n");
            }
            begun = true;
            text_add(t, "//            %ld is ", of);
            value_add(t, l->step->graph, (NodeId)own);
            text_add(t, "\n");
        }
    }
}

// The text without its first comment.
static const char *text_behind_comment(const char *text) {
    while (strncmp(text, "//", 2) == 0)
        text += strcspn(text, "\n") + 1;
    return text;
}

static void kernel_print(Text *t, const Inspection *in, const Inspected *l) {
    const char *text = launch_new_text(in, l);
    text_add(t, "\n// %s\n", launch_name(l));
    parts_add(t, l);
    text_add(t, "// lines     ");
    lines_add(t, l);
    text_add(t, "\n");
    operations_add(t, l);
    text_add(t, "// bytes      %" PRId64 "\n", l->bytes);
    text_add(t, "// flops      %" PRId64 "\n", l->flops);
    launch_add(t, l);
    resources_add(t, in, l);
    estimate_add(t, l, in->device);
    time_add(t, l, in->device);
    fusion_add(t, l, in->device);
    tile_add(t, l);
    numbers_add(t, in, l);
    if (!launch_text(l))
        text_add(t, "// library call\n");
    else if (!text)
        text_add(t, "// source: see above\n");
    else
        text_add(t, "%s", text_behind_comment(text));
}

// Prints a selected launch, and selected merged launches that end with it.
static void launch_print(Text *t, const Inspection *in, const Inspected *l) {
    if (l->chosen)
        kernel_print(t, in, l);
    for (int i = 0; i < in->num_merged; i++) {
        const Inspected *j = &in->merged[i];
        if (j->chosen && j->step == l->step &&
            j->index + j->count - 1 == l->index)
            kernel_print(t, in, j);
    }
}

void kernels_print(Arena *a, Text *t, const Inspection *in) {
    text_add(t, "%s", in->header);
    if (in->why)
        text_add(t, "\n// Registers and spills are unknown: %s.\n", in->why);
    const Step *step = NULL;
    for (int i = 0; i < in->count; i++) {
        Text own = text_new(a);
        const Inspected *l = &in->launch[i];
        launch_print(&own, in, l);
        if (own.length == 0)
            continue;
        if (l->step != step)
            text_add(t, "\n// ---- %s ----\n", l->step->name);
        step = l->step;
        text_add(t, "%s", text_string(&own));
    }
}
