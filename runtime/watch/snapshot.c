// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Snapshot: writes all tensors of a step to a file.
//
// Memory is reused within a step, so each result is copied right after its
// launch.  The step's launches and addresses are those of any run.
#define _POSIX_C_SOURCE 200809L

#include "runtime/watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20, BEFORE = -1, AFTER = -2 }; // PIECE: bytes of one copy

typedef struct {
    RtWatch watch;
    const char *path;
    const RtFiles *files;
    const RtPlan *plan;
    RtDevice *device;
    char *piece;
    int fd, step, launch, next; // next: index in the plan's stored tensors
    int reason;                 // errno of the first failure; 0: none
} Snapshot;

static void put(Snapshot *s, const void *from, size_t bytes) {
    errno = 0;
    if (s->reason == 0 && !rt_write(s->files, s->fd, from, bytes))
        s->reason = errno != 0 ? errno : EIO;
}

static void put_tensor(Snapshot *s, int when, size_t offset, size_t bytes) {
    int32_t head[2] = {when, 0};
    uint64_t where[2] = {offset, bytes};
    put(s, head, sizeof head);
    put(s, where, sizeof where);
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t some = bytes - at < PIECE ? bytes - at : PIECE;
        s->device->read(s->device, s->piece, offset + at, some);
        put(s, s->piece, some);
    }
}

static void put_states(Snapshot *s, int when) {
    for (int i = 0; i < s->plan->num_states; i++)
        if (rt_device_holds(s->device, s->plan->state[i].offset))
            put_tensor(s, when, s->plan->state[i].offset,
                       rt_state_bytes(&s->plan->state[i]));
}

static void put_inputs(Snapshot *s, const RtStep *step) {
    for (int i = 0; i < step->num_inputs; i++)
        put_tensor(s, BEFORE, step->input[i].offset,
                   rt_input_bytes(&step->input[i]));
}

static bool is_fused(const RtPlan *p, const RtTile *tile, int launch) {
    for (int i = 0; i < p->num_fused; i++)
        if (p->fused[i].call == tile->call &&
            p->fused[i].launch == launch)
            return true;
    return false;
}

// The results of other launches whose work a tile kernel has done, whether it
// has stored them or not: its call, prologues and the launch that pools.
static void put_others(Snapshot *s, const RtTile *tile) {
    const RtStep *step = &s->plan->step[s->step];
    for (int i = 0; i < s->plan->num_stored; i++) {
        const RtStored *t = &s->plan->stored[i];
        const RtLaunch *launch = rt_launch_of(step, t->launch);
        if (t->step == s->step && t->launch != s->launch &&
            ((launch != NULL && launch->call == tile->call) ||
             is_fused(s->plan, tile, t->launch)))
            put_tensor(s, t->launch, t->offset,
                       (size_t)t->count * rt_type_bytes(t->type));
    }
}

// Writes the results of one launch.
static void launched(RtWatch *w, int kernel, const size_t *arg) {
    (void)kernel, (void)arg;
    Snapshot *s = (Snapshot *)(void *)w; // watch is its first field
    s->device->sync(s->device);
    if (w->tile != NULL)
        put_others(s, w->tile);
    for (; s->next < s->plan->num_stored; s->next++) {
        const RtStored *t = &s->plan->stored[s->next];
        if (t->step > s->step || (t->step == s->step && t->launch > s->launch))
            break;
        if (t->step == s->step && !w->absent)
            put_tensor(s, t->launch, t->offset,
                       (size_t)t->count * rt_type_bytes(t->type));
    }
    s->launch++;
}

static void run_watched(Snapshot *s, const RtStep *step) {
    int32_t head[2] = {s->step, 0};
    put(s, "sinter 1\n", 9);
    put(s, head, sizeof head);
    s->device->sync(s->device);
    put_inputs(s, step);
    put_states(s, BEFORE);
    s->device->watch = &s->watch;
    s->device->run(s->device, step);
    s->device->watch = NULL;
    s->device->sync(s->device);
    put_states(s, AFTER);
}

bool rt_snapshot_run(const char *path, const RtFiles *files, const RtPlan *plan,
                     RtDevice *d, const RtStep *step, RtError *e) {
    Snapshot s = {.watch.launched = launched,
                  .path = path,
                  .files = files,
                  .plan = plan,
                  .device = d,
                  .step = (int)(step - plan->step)};
    s.piece = malloc(PIECE);
    if (s.piece == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    s.fd = files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (s.fd < 0)
        s.reason = errno;
    run_watched(&s, step);
    if (s.fd >= 0 && files->close(s.fd) != 0 && s.reason == 0)
        s.reason = errno;
    free(s.piece);
    return s.reason == 0 ||
           rt_fail(e, EXIT_IO, "%s: %s", path, strerror(s.reason));
}
