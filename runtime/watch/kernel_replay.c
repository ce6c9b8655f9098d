// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Members: which operation of a kernel is the first whose result is not finite.
//
// The step that is to blame is run once more, up to the launch that is.  What
// that is about to read is in memory then, and its operations are evaluated
// from it one by one (runtime/replay/replay.h).
#include "runtime/watch/watch.h"

#include "runtime/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what is in memory ----

typedef struct {
    ReplayMemory memory;
    const RtKernelReplay *replay;
} Memory;

// Where a tensor is.
typedef struct {
    size_t offset;
    RtType type;
    int64_t count;
} Place;

static bool overlap(const RtStored *a, const RtStored *b) {
    return a->offset < b->offset + (size_t)b->count * rt_type_bytes(b->type) &&
           b->offset < a->offset + (size_t)a->count * rt_type_bytes(a->type);
}

// Memory is used again: nothing must have been left there since.
static bool stored_find(const RtKernelReplay *m, uint32_t node, Place *at) {
    const RtStored *t = m->plan->stored;
    int found = -1;
    for (int i = 0; i < m->plan->num_stored; i++) {
        if (!m->left[i])
            continue;
        if (t[i].node == (int)node)
            found = i;
        else if (found >= 0 && overlap(&t[i], &t[found]))
            found = -1;
    }
    if (found >= 0)
        *at = (Place){t[found].offset, t[found].type, t[found].count};
    return found >= 0;
}

static bool named_find(const RtKernelReplay *m, const char *name, Place *at) {
    const RtState *s = rt_state_find(m->plan, name);
    const RtStep *step = &m->plan->step[m->anomaly->step];
    if (s != NULL) {
        *at = (Place){s->offset, s->type,
                      (int64_t)(rt_state_bytes(s) / rt_type_bytes(s->type))};
        return true;
    }
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        if (strcmp(in->name, name) != 0)
            continue;
        *at = (Place){in->offset, in->type,
                      (int64_t)(rt_input_bytes(in) / rt_type_bytes(in->type))};
        return true;
    }
    return false;
}

static bool place_read(RtDevice *d, const Place *at, double *to) {
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
    const RtKernelReplay *m = ((const Memory *)(const void *)memory)->replay;
    Place at;
    bool there =
        name != NULL ? named_find(m, name, &at) : stored_find(m, node, &at);
    return there && at.count == count &&
           (to == NULL || place_read(m->device, &at, to));
}

// ---- the launch ----

static const char *kernel_name(const RtKernelReplay *m) {
    const RtLaunch *launch =
        rt_launch_of(&m->plan->step[m->anomaly->step], m->target);
    return launch != NULL && launch->kernel >= 0
               ? m->plan->kernel[launch->kernel].name
               : NULL;
}

static void replay_kernel(RtKernelReplay *m) {
    const Memory memory = {{memory_read}, m};
    const RtStored *stored = m->anomaly->stored;
    ReplayQuery query = {
        .node = m->node,
        .max = rt_type_max(stored != NULL ? stored->type : RT_F32),
        .room = rt_memory_available() / 2};
    const char *kernel = kernel_name(m);
    if (kernel == NULL) // what a library computes is one operation
        return;
    m->device->sync(m->device);
    int length = snprintf(m->text, sizeof m->text, "in %.200s, ", kernel);
    if (stored == NULL) // of all that the update assigns
        length += snprintf(m->text + length, sizeof m->text - (size_t)length,
                           "for %.200s, ", m->anomaly->state->name);
    m->found =
        replay_explain(m->replay, &query, &memory.memory, m->text + length,
                       sizeof m->text - (size_t)length);
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    (void)kernel, (void)arg;
    RtKernelReplay *m = (RtKernelReplay *)(void *)w; // watch is its first field
    const RtStored *t = m->plan->stored;
    for (int i = 0; i < m->plan->num_stored && !w->absent; i++)
        m->left[i] |= t[i].step == m->anomaly->step && t[i].launch == m->launch;
    m->launch++;
    if (m->run == m->anomaly->run && m->launch == m->target)
        replay_kernel(m);
}

void rt_kernel_replay_begin(RtKernelReplay *m, const RtStep *step) {
    m->run++;
    m->launch = 0;
    m->device->watch = NULL;
    if (m->run != m->anomaly->run || step != &m->plan->step[m->anomaly->step])
        return;
    m->device->watch = &m->watch;
    if (m->target == 0)
        replay_kernel(m);
}

bool rt_kernel_replay_open(RtKernelReplay *m, const RtTrainer *t,
                           const RtPlan *plan, RtDevice *d,
                           const RtAnomaly *anomaly) {
    const RtStored *stored = anomaly->stored;
    *m = (RtKernelReplay){.watch.launched = launched,
                          .plan = plan,
                          .device = d,
                          .anomaly = anomaly};
    if (t->graphs == NULL || (stored == NULL && anomaly->state == NULL))
        return false;
    m->replay = replay_open(t->graphs, (size_t)(t->graphs_end - t->graphs),
                            plan->step[anomaly->step].name);
    m->left = calloc((size_t)plan->num_stored + 1, sizeof *m->left);
    if (stored != NULL) {
        m->node = (uint32_t)stored->node;
        m->target = stored->launch;
    }
    return m->replay != NULL && m->left != NULL &&
           (stored != NULL || replay_assignment(m->replay, anomaly->state->name,
                                                &m->node, &m->target));
}

void rt_kernel_replay_close(RtKernelReplay *m) {
    m->device->watch = NULL;
    replay_close(m->replay);
    free(m->left);
}
