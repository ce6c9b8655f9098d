// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// List: prints a plan without a device.  A device that prints records the
// launches of the steps.

#include "runtime/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A device that prints its calls.
typedef struct {
    RtDevice device;
    const RtPlan *plan;
    const RtStep *step; // the step to list
    int launch;         // the next launch
    bool whole;         // print the whole plan
    int64_t bytes;      // of the launches so far
} Lister;

static Lister *lister_of(RtDevice *d) {
    return (Lister *)(void *)d; // device is its first field
}

static const char *const type_name[] = {
    [RT_F32] = "f32", [RT_F16] = "f16", [RT_BF16] = "bf16",
    [RT_I32] = "i32", [RT_U8] = "u8",   [RT_BOOL] = "bool"};

static void print_type(RtType type, int rank, const int64_t *dim) {
    printf("%s[", type_name[type]);
    for (int i = 0; i < rank; i++)
        printf("%s%lld", i ? "," : "", (long long)dim[i]);
    printf("]");
}

// Lines and layer of the next launch.
static void print_origin(Lister *l) {
    const RtStep *s = l->step;
    int number = l->launch++;
    if (number >= s->num_launches)
        return;
    const RtLaunch *is = &s->launch[number];
    l->bytes += s->bytes[number];
    printf("%12lld  %s%s%s", (long long)s->bytes[number], is->lines,
           *is->path != '\0' ? "  " : "", is->path);
}

static void launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    Lister *l = lister_of(d);
    const RtKernel *k = &l->plan->kernel[kernel];
    printf("%5d  %-52s %6d x %-4d", l->launch, k->name, grid, k->threads);
    print_origin(l);
    if (k->phases > 1)
        printf("  %d phases", k->phases);
    printf("\n");
    if (!l->whole)
        return;
    printf("      ");
    for (int i = 0; i < k->args; i++)
        printf(" @%zu", arg[i]);
    printf("\n");
}

static void print_call(const RtCall *c) {
    const char *kind = rt_call_name(c->kind);
    char shape[80];
    if (c->kind == RT_MATMUL)
        snprintf(shape, sizeof shape, "%s %lld of %dx%dx%d", kind,
                 (long long)c->batch, c->n, c->c, c->k);
    else if (c->kind > RT_MATMUL)
        snprintf(shape, sizeof shape, "%s %dx%d", kind, c->n, c->k);
    else
        snprintf(shape, sizeof shape, "%s %dx%dx%dx%d by %dx%dx%d", kind, c->n,
                 c->h, c->w, c->c, c->k, c->r, c->s);
    printf("%-52s %13s", shape, "library");
}

static void contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    Lister *l = lister_of(d);
    printf("%5d  ", l->launch);
    print_call(&l->plan->call[call]);
    print_origin(l);
    printf("\n");
    if (l->whole)
        printf("       @%zu @%zu -> @%zu\n", a, b, out);
}

static void begin_phase(RtDevice *d, RtPhase phase) {
    static const char *const name[] = {[RT_FORWARD] = "forward",
                                       [RT_BACKWARD] = "backward",
                                       [RT_UPDATE] = "update"};
    (void)d;
    if (phase != RT_OTHER)
        printf("  %s\n", name[phase]);
}

static void print_step(Lister *l, const RtStep *s) {
    l->step = s;
    l->launch = 0;
    l->bytes = 0;
    printf("\nstep %s\n", s->name);
    for (int i = 0; l->whole && i < s->num_inputs; i++) {
        printf("  input %s ", s->input[i].name);
        print_type(s->input[i].type, s->input[i].rank, s->input[i].dim);
        printf(" @%zu\n", s->input[i].offset);
    }
    s->run(&l->device);
    printf("%5d  %s %lld bytes\n", l->launch,
           l->launch == 1 ? "launch reads and writes"
                          : "launches read and write",
           (long long)l->bytes);
}

static void print_merged(const RtPlan *p) {
    printf("\nmerged cooperative launches that CUDA can choose, longest runs "
           "and parts of them: %d\n",
           p->num_merged);
    for (int i = 0; i < p->num_merged; i++)
        printf("  step %s, launches %d to %d: %s\n",
               p->step[p->merged[i].step].name, p->merged[i].launch,
               p->merged[i].launch + p->merged[i].count - 1,
               p->kernel[p->merged[i].kernel].name);
}

static void print_fusions(const RtPlan *p) {
    static const char *const kind[] = {
        [RT_FUSED_STATISTICS] = "statistics",
        [RT_FUSED_PROLOGUE] = "prologue",
        [RT_FUSED_PROLOGUE_WEIGHT] = "prologue of the weight gradient",
        [RT_FUSED_BACKWARD] = "backward",
    };
    printf("\nlibrary fusions, prologues and epilogues: %d\n", p->num_fusions);
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *f = &p->fusion[i];
        printf("  step %s, %s by %s", p->step[f->step].name, kind[f->kind],
               p->call[f->call].layer);
        if (f->launch >= 0)
            printf(", replaces launch %d", f->launch);
        printf("\n");
    }
}

static void print_states(const RtPlan *p) {
    static const char *const kind[] = {
        [RT_PARAM] = "param",         [RT_STATISTIC] = "statistic",
        [RT_OPTIMIZER] = "optimizer", [RT_AVERAGED] = "averaged",
        [RT_GRADIENT] = "gradient",   [RT_RUN] = "run",
        [RT_PARTIAL] = "partial",     [RT_METRIC] = "metric",
        [RT_DERIVED] = "derived",
    };
    printf("\nstates\n");
    for (int i = 0; i < p->num_states; i++) {
        const RtState *s = &p->state[i];
        printf("  %s %s ", kind[s->kind], s->name);
        print_type(s->type, s->rank, s->dim);
        printf(" @%zu\n", s->offset);
    }
}

// Bytes that a GPU copies for a batch; whether images are resident depends on
// the data and the free memory.
static void print_images(const RtPlan *p, const char *resident) {
    const RtInput *in = rt_images_of(p);
    if (in == NULL || strcmp(p->device, "cuda") != 0)
        return;
    size_t streamed = rt_input_bytes(in);
    size_t numbers = (size_t)in->dim[0] * sizeof(int32_t);
    printf("\nimages ");
    print_type(in->type, in->rank, in->dim);
    if (strcmp(resident, "no") == 0)
        printf(" are streamed: a batch is %zu bytes\n", streamed);
    else if (strcmp(resident, "yes") == 0)
        printf(" stay on the GPU: a batch is %zu bytes of indices\n", numbers);
    else
        printf(
            " stay on the GPU if all fit beside the arena with a tenth of free "
            "memory to spare and are in memory in the model's type: a batch is "
            "then %zu bytes of indices, and %zu if they are streamed\n",
            numbers, streamed);
}

static bool list(const RtPlan *plan, const char *resident, bool whole) {
    Lister l = {
        .device = {.launch = launch,
                   .library_call = contract,
                   .phase = begin_phase},
        .plan = plan,
        .whole = whole,
    };
    printf("plan for %s: an arena of %zu bytes, @N is its byte N\n",
           plan->device, plan->arena_bytes);
    if (whole)
        print_states(plan);
    if (whole)
        print_images(plan, resident);
    printf("\nlaunch  kernel, or call%36sblocks x threads       bytes  lines, "
           "layer\n",
           "");
    for (int i = 0; i < plan->num_steps; i++)
        print_step(&l, &plan->step[i]);
    if (whole && plan->num_merged > 0)
        print_merged(plan);
    if (whole && plan->num_fusions > 0)
        print_fusions(plan);
    return fflush(stdout) == 0 && !ferror(stdout);
}

bool rt_list_kernels(const RtPlan *plan) {
    return list(plan, "auto", false);
}

bool rt_list_plan(const RtPlan *plan, const char *resident) {
    return list(plan, resident, true);
}
