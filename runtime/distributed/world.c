// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// World: opens what ranks share, and its collectives.
#define _POSIX_C_SOURCE 200809L

#include "runtime/distributed/distributed.h"
#include "runtime/host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct RtWorld {
    RtRankInfo info;
    RtRendezvous rendezvous;
    RtCollectives *collectives;
    const RtGpuCollectives *gpus; // NULL: this rank trains on the host
    RtWatchdog *watchdog;
    bool fast;    // sums are in the order of the back end
    bool saves;   // this rank wants a checkpoint after the step
    int failure;  // flag of this rank's sums if it has no data; else 0
    int flag;     // of the last sum, the largest of all ranks
    RtSums *sums; // NULL: none was begun yet
};

// The flag of a sum: the signal that a rank has caught and whether it wants a
// checkpoint, or RT_NO_DATA with the signal or error for which it has no data,
// and its number.
enum { RANK_BIT = 14, STATUS_BIT = 7, SAVES = 1 << 7, SEVEN_BITS = 127 };

static int own_flag(const RtWorld *w) {
    return w->failure != 0 ? w->failure
                           : rt_signals_pending() | (w->saves ? SAVES : 0);
}

int rt_world_rank(const RtWorld *w) {
    return w != NULL ? w->info.rank : 0;
}

int rt_world_local_rank(const RtWorld *w) {
    return w != NULL ? w->info.local_rank : 0;
}

int rt_world_size(const RtWorld *w) {
    return w != NULL ? w->info.size : 1;
}

const char *rt_world_back_end(const RtWorld *w) {
    return w->collectives->name;
}

// ---- opening ----

// The boot's number tells machines apart, and the namespace of processes
// containers of one.
static void machine_name(char *to, size_t room) {
    char boot[40] = "", namespace[40] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f != NULL) {
        if (fgets(boot, sizeof boot, f) == NULL)
            *boot = '\0';
        fclose(f);
    }
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t length =
        readlink("/proc/self/ns/pid", namespace, sizeof namespace - 1);
    namespace[length > 0 ? length : 0] = '\0';
    snprintf(to, room, "%s %s", boot, namespace);
}

static RtHandshake handshake_of(const RtRankInfo *p, const RtTrainer *t,
                                const RtOptions *o) {
    RtHandshake h;
    memset(&h, 0, sizeof h);
    h.fingerprint = t->fingerprint;
    h.rank = p->rank;
    h.size = p->size;
    h.cores = rt_team_largest();
    rt_team_processors(h.processor);
    // Results depend on it.
    h.threads = o->threads > 0 ? (int)o->threads : h.cores;
    h.steps = o->steps;
    h.verify_every = o->verify_every;
    h.epochs = o->epochs;
    h.eval_only = o->eval_only;
    h.init_only = o->init_only;
    h.predicts = o->predict != NULL;
    h.repeats = o->repeat_batch;
    h.tunes = o->tune;
    snprintf(h.version, sizeof h.version, "%s", t->version);
    snprintf(h.model, sizeof h.model, "%s", t->model);
    snprintf(h.device, sizeof h.device, "%s", o->device);
    snprintf(h.collectives, sizeof h.collectives, "%s", o->collectives);
    snprintf(h.reduce, sizeof h.reduce, "%s", o->reduce);
    machine_name(h.machine, sizeof h.machine);
    return h;
}

static bool check_shards(const RtRankInfo *p, const RtTrainer *t,
                         const RtOptions *o, RtError *e) {
    if (o->predict != NULL)
        return true;
    if (t->shards == 0)
        return rt_fail(e, EXIT_USAGE,
                       "%s starts %d ranks, but this trainer is for one "
                       "process: build it with --set shards=%d, or another "
                       "number that %d divides",
                       p->launcher, p->size, p->size, p->size);
    int own = t->shards / p->size;
    if (t->shards != 1 && t->shards % p->size != 0)
        return rt_fail(e, EXIT_USAGE, "%d ranks do not divide %d shards",
                       p->size, t->shards);
    return (own & (own - 1)) == 0 ||
           rt_fail(
               e, EXIT_USAGE,
               "%d ranks would have %d of %d shards each, which is no power "
               "of two: start %d ranks",
               p->size, own, t->shards, t->shards);
}

// Threads of a machine's ranks, for their processors.
static void warn_crowded(const RtMachine *m) {
    int processors = rt_machine_processors(m), each = processors / m->ranks;
    char advice[64];
    if (processors == 0 || m->threads <= processors)
        return;
    if (each > 0)
        snprintf(advice, sizeof advice, "start them with --threads=%d", each);
    else
        snprintf(advice, sizeof advice, "start at most %d, with --threads=1",
                 processors);
    rt_warn("%d ranks of one machine have %d threads for its %d processor%s, "
            "and wait for each other: %s",
            m->ranks, m->threads, processors, processors == 1 ? "" : "s",
            advice);
}

// Whether each rank may use all processors of several: none is bound to its
// own.
static bool shares_processors(const RtMachine *m) {
    return m->ranks > 1 && m->cores == m->ranks * rt_machine_processors(m);
}

static void warn_oversubscribed(const RtWorld *w, const RtHandshake *own) {
    const RtMachine *crowded = &w->rendezvous.crowded;
    if (w->info.rank == 0 && w->rendezvous.oversubscribed > 0 &&
        !shares_processors(crowded))
        rt_warn("%d of %d ranks are bound to fewer cores than the %d of "
                "--threads: start them with more cores, as with mpirun "
                "--bind-to none",
                w->rendezvous.oversubscribed, w->info.size, own->threads);
    else if (w->info.rank == 0 && w->gpus == NULL)
        warn_crowded(crowded);
}

// MPI's launchers tell a rank its place by PMI or PMIx.  Without, OpenMPI would
// end the process, or start a world of one.
static bool mpi_has_launcher(void) {
    for (char **v = environ; *v != NULL; v++)
        if (strncmp(*v, "PMI", 3) == 0)
            return true;
    return false;
}

// Rank 0 chooses collectives of GPUs if it trains on one and has the library.
static bool choose_gpus(RtWorld *w, const RtOptions *o, RtError *e) {
    bool any = strcmp(o->collectives, "auto") == 0;
    if (w->gpus == NULL || !(any || strcmp(o->collectives, w->gpus->name) == 0))
        return true;
    w->rendezvous.gpus = w->gpus->unique_id(w->rendezvous.unique_id, e);
    if (!w->rendezvous.gpus && any)
        rt_warn("%s; they go through the host's memory now, which is slower",
                e->text);
    return w->rendezvous.gpus || any;
}

static bool is_on_host(const RtWorld *w, RtError *e) {
    return rt_fail(e, EXIT_USAGE,
                   "rank %d trains on the host, and rank 0 on a GPU: "
                   "--device=host or --device=cuda is for all",
                   w->info.rank);
}

// GPUs are connected later, when the device is open.
static bool open_collectives(RtWorld *w, const RtOptions *o, RtError *e) {
    if (w->rendezvous.gpus)
        return w->gpus != NULL || is_on_host(w, e);
    if (strcmp(o->collectives, "nccl") == 0)
        return rt_fail(e, EXIT_USAGE,
                       "--collectives=nccl is for ranks with a GPU each, and "
                       "rank 0 trains on the host");
    bool here = w->rendezvous.same_machine;
    bool mpi = strcmp(o->collectives, "mpi") == 0 ||
               (!here && strcmp(o->collectives, "auto") == 0);
    if (!mpi && !here)
        return rt_fail(e, EXIT_USAGE,
                       "--collectives=shared is for ranks of one machine");
    if (mpi && !mpi_has_launcher())
        return rt_fail(e, EXIT_USAGE,
                       "MPI is to connect the ranks, but does not know those "
                       "that %s starts: start them with mpirun or with srun "
                       "--mpi=pmix, for MPICH --mpi=pmi2",
                       w->info.launcher);
    w->collectives = mpi ? rt_mpi_open(&w->info, e)
                         : rt_shared_open(&w->info, &w->rendezvous, e);
    return w->collectives != NULL;
}

static bool open_world(RtWorld *w, const RtTrainer *t, const RtOptions *o,
                       RtError *e) {
    RtHandshake own = handshake_of(&w->info, t, o);
    bool first = w->info.rank == 0;
    RtError why;
    int memory = -1;
    bool able = !first || choose_gpus(w, o, &why);
    if (able && first && !w->rendezvous.gpus &&
        strcmp(o->collectives, "mpi") != 0)
        able = (memory = rt_shared_memory(&why)) >= 0;
    if (!rt_rendezvous(&w->rendezvous, &w->info, &own, memory,
                       able ? NULL : &why, e) ||
        !check_shards(&w->info, t, o, e))
        return false;
    w->info.near = w->rendezvous.near;
    warn_oversubscribed(w, &own);
    w->watchdog = rt_watchdog_start(&w->rendezvous, &w->info, e);
    if (w->watchdog == NULL || !open_collectives(w, o, e))
        return false;
    if (w->collectives != NULL)
        w->collectives->barrier(w->collectives);
    if (memory >= 0)
        close(memory);
    rt_signals_together();
    return true;
}

bool rt_world_open(RtWorld **to, const RtTrainer *t, const RtOptions *o,
                   RtGpusOf *gpus_of, RtError *e) {
    RtRankInfo info;
    *to = NULL;
    if (!rt_rank_info_read(&info, e))
        return false;
    if (info.size == 1)
        return true;
    RtWorld *w = calloc(1, sizeof *w);
    if (w == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    w->info = info;
    w->fast = strcmp(o->reduce, "fast") == 0;
    w->gpus = gpus_of(t, o);
    rt_rendezvous_clear(&w->rendezvous);
    *to = w;
    return open_world(w, t, o, e);
}

bool rt_world_join(RtWorld *w, RtDevice *d, RtError *e) {
    if (w == NULL || !w->rendezvous.gpus)
        return true;
    if (strcmp(d->name, "host") == 0)
        return is_on_host(w, e);
    w->collectives =
        w->gpus->open(&w->info, w->rendezvous.unique_id, d, w->fast, e);
    if (w->collectives == NULL)
        return false;
    rt_watchdog_aborts(w->watchdog, w->collectives);
    return true;
}

// A run that fails since one rank has no data ends in order: all know of it.
static bool ends_together(const RtWorld *w, bool good) {
    int ignored;
    return good || rt_world_failed(w, &ignored) >= 0;
}

bool rt_world_leave(RtWorld *w, bool good) {
    if (w == NULL || !w->rendezvous.gpus || w->collectives == NULL)
        return w == NULL || w->sums == NULL || rt_sums_idle(w->sums);
    good = ends_together(w, good);
    if (good)
        w->collectives->barrier(w->collectives);
    rt_watchdog_aborts(w->watchdog, NULL);
    w->collectives->close(w->collectives, good);
    w->collectives = NULL;
    return true;
}

void rt_world_close(RtWorld *w, bool good) {
    if (w == NULL)
        return;
    rt_world_leave(w, good);
    good = ends_together(w, good);
    bool idle = w->sums == NULL || rt_sums_free(w->sums);
    if (w->collectives != NULL && good)
        w->collectives->barrier(w->collectives);
    if (w->collectives != NULL && idle)
        w->collectives->close(w->collectives, good);
    if (w->watchdog != NULL)
        rt_watchdog_stop(w->watchdog, good);
    rt_rendezvous_close(&w->rendezvous);
    free(w);
}

// ---- collectives ----

void rt_world_step(RtWorld *w, int64_t step) {
    if (w == NULL)
        return;
    rt_watchdog_step(w->watchdog, step);
    rt_world_agree(w);
}

void rt_world_agree(const RtWorld *w) {
    if (w != NULL)
        rt_signals_agree(w->flag & SEVEN_BITS);
}

void rt_world_sum(RtWorld *w, const RtBuffer *b, size_t count) {
    if (w == NULL)
        return;
    w->flag = own_flag(w);
    w->collectives->start_sum(w->collectives, b, count, &w->flag, w->fast);
    w->collectives->finish(w->collectives);
}

void rt_world_begin_sum(RtWorld *w, const RtBuffer *b, size_t count) {
    if (w->sums == NULL)
        w->sums = rt_sums_new(w->collectives, w->fast);
    rt_sums_begin(w->sums, b, count, own_flag(w));
}

void rt_world_finish_sums(RtWorld *w) {
    if (w != NULL && w->sums != NULL)
        rt_sums_finish(w->sums, &w->flag);
}

bool rt_world_queues(const RtWorld *w) {
    return w != NULL && w->collectives->queue_sum != NULL;
}

void rt_world_queue_start(RtWorld *w) {
    w->collectives->set_flag(w->collectives, own_flag(w));
}

void rt_world_queue_flags(RtWorld *w) {
    w->collectives->queue_flags(w->collectives);
}

void rt_world_queue_sum(RtWorld *w, const RtBuffer *b, size_t count) {
    w->collectives->queue_sum(w->collectives, b, count, w->fast);
}

void rt_world_queue_join(RtWorld *w) {
    w->collectives->queue_join(w->collectives);
}

void rt_world_queue_finish(RtWorld *w) {
    w->flag = w->collectives->await_flag(w->collectives);
}

void rt_world_sum_within(RtWorld *w, const RtBuffer *b, size_t count) {
    if (!rt_world_queues(w)) {
        rt_world_sum(w, b, count);
        return;
    }
    rt_world_queue_sum(w, b, count);
    rt_world_queue_join(w);
}

void rt_world_share(RtWorld *w, RtDevice *d, const RtRange *part) {
    w->collectives->share(w->collectives, d, part);
}

void rt_world_want_save(RtWorld *w, bool wants) {
    if (w != NULL)
        w->saves = wants;
}

bool rt_world_saves(const RtWorld *w) {
    return (w->flag & (RT_NO_DATA | SAVES)) == SAVES;
}

void rt_world_fail(RtWorld *w, int status, int signal) {
    w->failure =
        RT_NO_DATA | w->info.rank << RANK_BIT | status << STATUS_BIT | signal;
}

int rt_world_failed(const RtWorld *w, int *status) {
    if (w == NULL || (w->flag & RT_NO_DATA) == 0)
        return -1;
    *status = w->flag >> STATUS_BIT & SEVEN_BITS;
    return (w->flag ^ RT_NO_DATA) >> RANK_BIT;
}

void rt_world_broadcast(RtWorld *w, int from, const RtBuffer *b, size_t bytes) {
    if (w != NULL)
        w->collectives->broadcast(w->collectives, from, b, bytes);
}
