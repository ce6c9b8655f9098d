// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel replay: finds the first operation of a kernel whose result is not
// finite.
//
// The step runs again up to that launch.  The kernel's inputs are then in
// memory, and its operations are evaluated from them one by one
// (runtime/replay/replay.h).
#include "runtime/watch/watch.h"

#include "runtime/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ReplayMemory memory;
    const RtKernelReplay *replay;
} Memory;

// The location of a tensor.
typedef struct {
    size_t offset;
    RtType type;
    int64_t count;
} TensorMemory;

static bool overlap(const RtStored *a, const RtStored *b) {
    return a->offset < b->offset + (size_t)b->count * rt_type_bytes(b->type) &&
           b->offset < a->offset + (size_t)a->count * rt_type_bytes(a->type);
}

// Memory is reused: a stored tensor is there until another overlaps it.
static bool stored_find(const RtKernelReplay *r, uint32_t node,
                        TensorMemory *at) {
    const RtStored *t = r->plan->stored;
    int found = -1;
    for (int i = 0; i < r->plan->num_stored; i++) {
        if (!r->written[i])
            continue;
        if (t[i].node == (int)node)
            found = i;
        else if (found >= 0 && overlap(&t[i], &t[found]))
            found = -1;
    }
    if (found >= 0)
        *at = (TensorMemory){t[found].offset, t[found].type, t[found].count};
    return found >= 0;
}

static bool named_find(const RtKernelReplay *r, const char *name,
                       TensorMemory *at) {
    const RtState *s = rt_state_find(r->plan, name);
    const RtStep *step = &r->plan->step[r->anomaly->step];
    if (s != NULL) {
        *at = (TensorMemory){
            s->offset, s->type,
            (int64_t)(rt_state_bytes(s) / rt_type_bytes(s->type))};
        return true;
    }
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        if (strcmp(in->name, name) != 0)
            continue;
        *at = (TensorMemory){
            in->offset, in->type,
            (int64_t)(rt_input_bytes(in) / rt_type_bytes(in->type))};
        return true;
    }
    return false;
}

static bool tensor_read(RtDevice *d, const TensorMemory *at, double *to) {
    size_t bytes = (size_t)at->count * rt_type_bytes(at->type);
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return false;
    d->read(d, copy, at->offset, bytes);
    for (int64_t i = 0; i < at->count; i++)
        to[i] = rt_number(copy, at->type, i);
    free(copy);
    return true;
}

static bool memory_read(const ReplayMemory *memory, uint32_t node,
                        const char *name, int64_t count, double *to) {
    const RtKernelReplay *r = ((const Memory *)(const void *)memory)->replay;
    TensorMemory at;
    bool there =
        name != NULL ? named_find(r, name, &at) : stored_find(r, node, &at);
    return there && at.count == count &&
           (to == NULL || tensor_read(r->device, &at, to));
}

// ---- the launch ----

static const char *kernel_name(const RtKernelReplay *r) {
    const RtLaunch *launch =
        rt_launch_of(&r->plan->step[r->anomaly->step], r->target);
    return launch != NULL && launch->kernel >= 0
               ? r->plan->kernel[launch->kernel].name
               : NULL;
}

static void replay_kernel(RtKernelReplay *r) {
    const Memory memory = {{memory_read}, r};
    const RtStored *stored = r->anomaly->stored;
    ReplayQuery query = {
        .node = r->node,
        .max = rt_type_max(stored != NULL ? stored->type : RT_F32),
        .room = rt_memory_available() / 2};
    const char *kernel = kernel_name(r);
    if (kernel == NULL) // a library call is one operation
        return;
    r->device->sync(r->device);
    int length = snprintf(r->text, sizeof r->text, "in %.200s, ", kernel);
    if (stored == NULL) // the update assigns all states
        length += snprintf(r->text + length, sizeof r->text - (size_t)length,
                           "for %.200s, ", r->anomaly->state->name);
    r->found =
        replay_explain(r->replay, &query, &memory.memory, r->text + length,
                       sizeof r->text - (size_t)length);
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    (void)kernel, (void)arg;
    RtKernelReplay *r = (RtKernelReplay *)(void *)w; // watch is its first field
    const RtStored *t = r->plan->stored;
    for (int i = 0; i < r->plan->num_stored && !w->absent; i++)
        r->written[i] |= t[i].step == r->anomaly->step && t[i].launch == r->launch;
    r->launch++;
    if (r->run == r->anomaly->run && r->launch == r->target)
        replay_kernel(r);
}

void rt_kernel_replay_begin(RtKernelReplay *r, const RtStep *step) {
    r->run++;
    r->launch = 0;
    r->device->watch = NULL;
    if (r->run != r->anomaly->run || step != &r->plan->step[r->anomaly->step])
        return;
    r->device->watch = &r->watch;
    if (r->target == 0)
        replay_kernel(r);
}

bool rt_kernel_replay_open(RtKernelReplay *r, const RtTrainer *t,
                           const RtPlan *plan, RtDevice *d,
                           const RtAnomaly *anomaly) {
    const RtStored *stored = anomaly->stored;
    *r = (RtKernelReplay){.watch.launched = launched,
                          .plan = plan,
                          .device = d,
                          .anomaly = anomaly};
    if (t->graphs == NULL || (stored == NULL && anomaly->state == NULL))
        return false;
    r->replay = replay_open(t->graphs, (size_t)(t->graphs_end - t->graphs),
                            plan->step[anomaly->step].name);
    r->written = calloc((size_t)plan->num_stored + 1, sizeof *r->written);
    if (stored != NULL) {
        r->node = (uint32_t)stored->node;
        r->target = stored->launch;
    }
    return r->replay != NULL && r->written != NULL &&
           (stored != NULL || replay_assignment(r->replay, anomaly->state->name,
                                                &r->node, &r->target));
}

void rt_kernel_replay_close(RtKernelReplay *r) {
    r->device->watch = NULL;
    replay_close(r->replay);
    free(r->written);
}
