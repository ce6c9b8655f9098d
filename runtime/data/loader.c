// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loader: threads that gather batches ahead of the step that uses them.
//
// Batches rotate through a ring of SLOTS. A batch is divided into parts.  A
// thread takes the next part of the oldest batch with room, so several threads
// fill one batch and none waits for another.  Batches are numbered over all
// epochs, and the samples of batch b are a function of b; a short last batch is
// padded with the first samples of its epoch.  A rank loads its shards of each
// update: its own batches are numbered without those of others.  So the ring
// crosses epochs, a resumed run starts at any number, and the number of threads
// changes nothing. A part that fails stops the workers, and the next
// rt_loader_next returns the error.  A part that hangs in a file cannot be
// stopped: the loader is then stalled and left as it is.
#define _POSIX_C_SOURCE 200809L

#include "base/round_up.h"
#include "runtime/data/data.h"
#include "runtime/report/trace.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 4, MAX_PARTS = 16, ALIGN = 64, WARN_SECONDS = 60 };

// A wait polls every POLL_SECONDS. After a signal, a run waits GRACE_SECONDS
// for a batch, and for threads to return from their files.  A batch that an
// update needs is waited for without limit, as the run cannot be saved within
// an update.
static const double POLL_SECONDS = 0.1, GRACE_SECONDS = 2;

typedef struct {
    RtBatch *batch;
    int done; // filled parts
} Slot;

typedef struct {
    RtLoader *loader;
    int number;
} Worker;

struct RtLoader {
    RtLoaderConfig plan;
    RtSplit split;                   // a copy; the plan points to it
    int parts;                       // of a batch
    size_t image_bytes, label_bytes; // of a sample, as delivered
    size_t array_bytes[RT_MAX_ARRAYS];
    Slot slot[SLOTS];

    pthread_mutex_t lock; // guards the following, and each slot's `done`
    pthread_cond_t room, ready;
    int64_t batch, part; // next to be filled
    int64_t next;        // next to be delivered
    int64_t released;    // earlier batches have left their slots
    bool stop, failed;
    bool stalled; // threads hang and are not waited for
    int working;  // number of threads
    RtError error;
    double busy; // seconds of all threads together

    int threads;
    pthread_t thread[RT_MAX_LOADERS];
    Worker worker[RT_MAX_LOADERS];
};

// The first batch of an epoch is the first of an update.
static int32_t shard_of(const RtLoaderConfig *p, int64_t batch) {
    return p->shards > 0 ? (int32_t)(batch % p->epoch_batches % p->shards) : 0;
}

// Batches of this rank among the first `before` of an epoch.
static int64_t own_of_epoch(const RtLoaderConfig *p, int64_t before) {
    int64_t rest = before % p->shards - p->first_shard;
    rest = rest < 0 ? 0 : rest > p->own_shards ? p->own_shards : rest;
    return before / p->shards * p->own_shards + rest;
}

// Batches of this rank among the first `before` of the run.
static int64_t own_before(const RtLoaderConfig *p, int64_t before) {
    if (p->shards == 0 || p->own_shards == p->shards)
        return before;
    return before / p->epoch_batches * own_of_epoch(p, p->epoch_batches) +
           own_of_epoch(p, before % p->epoch_batches);
}

// Batch i of `count` that this rank has of an update, in the order of lockstep:
// the first batch of each shard, then the second ones.
static int64_t in_lockstep(const RtLoaderConfig *p, int64_t i, int64_t count) {
    int64_t round = 0, shards;
    for (;; round++, i -= shards) {
        shards = divide_up(count - round, p->rounds);
        if (i < shards)
            return i * p->rounds + round;
    }
}

// Batch number `own` of this rank.
static int64_t batch_of(const RtLoaderConfig *p, int64_t own) {
    if (p->shards == 0 || (p->own_shards == p->shards && p->rounds <= 1))
        return own;
    int64_t each = own_of_epoch(p, p->epoch_batches);
    int64_t epoch = own / each, at = own % each;
    int64_t full = p->epoch_batches / p->shards * p->own_shards;
    int64_t update =
        at < full ? at / p->own_shards : p->epoch_batches / p->shards;
    int64_t first = update * p->shards + p->first_shard;
    int64_t left = p->epoch_batches - first, i = at - update * p->own_shards;
    if (p->rounds > 1)
        i = in_lockstep(p, i, left < p->own_shards ? left : p->own_shards);
    return epoch * p->epoch_batches + first + i;
}

static int32_t valid_of(const RtLoaderConfig *p, int64_t batch) {
    int64_t left = p->split->count - batch % p->epoch_batches * p->batch;
    return (int32_t)(left < p->batch ? left : p->batch);
}

static void fill_row(uint8_t *to, const RtColumn *c, int64_t sample,
                     RtType type) {
    if (c->values == 0) // an array that a prediction does not read
        return;
    memcpy(to, rt_column_at(c, sample),
           c->values * rt_file_type_bytes(c->type));
    rt_file_type_widen(to, c->values, c->type, type);
}

static bool fill_sample(const RtLoader *l, RtBatch *b, int64_t batch, int64_t i,
                        RtError *e) {
    const RtLoaderConfig *p = &l->plan;
    int64_t epoch = batch / p->epoch_batches;
    const RtSplit *split = p->split;
    int64_t position = (batch % p->epoch_batches * p->batch + i) % split->count;
    int64_t shuffled = p->shuffle
                           ? rt_shuffled(p->seed, epoch, position, split->count)
                           : position;
    int64_t sample = rt_split_sample(split, shuffled);
    uint8_t *image = (uint8_t *)b->image + (size_t)i * l->image_bytes;
    uint8_t *label = (uint8_t *)b->label + (size_t)i * l->label_bytes;
    b->index[i] = (int32_t)sample;
    if (!p->no_images) {
        if (!split->fetch(split, sample, image, e))
            return false;
        rt_file_type_widen(image, split->image.values, split->image.type,
                           p->image);
    }
    fill_row(label, &split->label, sample, p->label);
    for (int k = 0; k < p->num_arrays; k++)
        fill_row((uint8_t *)b->array[k] + (size_t)i * l->array_bytes[k],
                 &split->array[k], sample, p->array[k].shape.type);
    return true;
}

static bool fill_part(const RtLoader *l, RtBatch *b, int64_t batch,
                      int64_t part, RtError *e) {
    int64_t first = l->plan.batch * part / l->parts;
    int64_t last = l->plan.batch * (part + 1) / l->parts;
    for (int64_t i = first; i < last; i++)
        if (!fill_sample(l, b, batch, i, e))
            return false;
    return true;
}

static bool may_go_on(const RtLoader *l) {
    return l->batch < l->released + SLOTS && l->batch < l->plan.last;
}

// The next part, when there is room; false at the end.
static bool next_part(RtLoader *l, int64_t *batch, int64_t *part) {
    while (!l->stop && !may_go_on(l))
        pthread_cond_wait(&l->room, &l->lock);
    if (l->stop)
        return false;
    *batch = l->batch;
    *part = l->part++;
    if (*part == 0) {
        RtBatch *b = l->slot[*batch % SLOTS].batch;
        b->valid = valid_of(&l->plan, batch_of(&l->plan, *batch));
        b->shard = shard_of(&l->plan, batch_of(&l->plan, *batch));
    }
    if (l->part == l->parts) {
        l->part = 0;
        l->batch++;
    }
    return true;
}

static void finish_part(RtLoader *l, Slot *s, bool good, const RtError *e) {
    if (!good && !l->failed) {
        l->failed = l->stop = true;
        l->error = *e;
        pthread_cond_broadcast(&l->room);
    }
    if (++s->done == l->parts || !good)
        pthread_cond_signal(&l->ready);
}

static void trace_part(const Worker *w, int64_t batch, double begin,
                       double end) {
    RtTrace *trace = w->loader->plan.trace;
    if (trace != NULL)
        rt_trace_add(trace, &(RtSpan){.track = RT_TRACK_LOADERS + w->number,
                                      .name = "load part of batch",
                                      .begin = begin,
                                      .end = end,
                                      .number = batch});
}

static void *work(void *arg) {
    const Worker *w = arg;
    RtLoader *l = w->loader;
    int64_t batch, part;
    RtError e;
    pthread_mutex_lock(&l->lock);
    while (next_part(l, &batch, &part)) {
        Slot *s = &l->slot[batch % SLOTS];
        pthread_mutex_unlock(&l->lock);
        double begin = rt_seconds();
        bool good = fill_part(l, s->batch, batch_of(&l->plan, batch), part, &e);
        double end = rt_seconds();
        trace_part(w, batch, begin, end);
        pthread_mutex_lock(&l->lock);
        l->busy += end - begin;
        finish_part(l, s, good, &e);
    }
    l->working--;
    pthread_cond_signal(&l->ready);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static struct timespec later(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double whole = floor(seconds);
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((seconds - whole) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool is_awaited(const RtLoader *l, const Slot *s) {
    return s->done < l->parts && !l->failed;
}

// A wait for a batch, in seconds.
typedef struct {
    double now, warned; // warned: time of the last warning
    double signal;      // time of the first signal; 0: none
    bool needed;        // an update that has begun needs the batch
    bool warned_signal; // a warning about the signal was printed
} Wait;

static void warn(const RtLoader *l, const Slot *s, Wait *w) {
    const double period =
        l->plan.warn_after > 0 ? l->plan.warn_after : WARN_SECONDS;
    if (w->now < w->warned + period)
        return;
    w->warned += period;
    rt_warn_own("waiting for data for %g s: %d of %d parts of batch %lld are "
                "loaded; check the file system of its files",
                w->warned, s->done, l->parts, (long long)l->next);
}

static bool gives_up(const RtLoader *l, const Slot *s, Wait *w, RtError *e) {
    double most = l->plan.longest_wait;
    if (most > 0 && w->now >= most) {
        rt_fail(e, EXIT_IO,
                "no batch for %g s: %d of %d parts of batch %lld are loaded; "
                "check the file system of its files",
                most, s->done, l->parts, (long long)l->next);
        return true;
    }
    if (rt_signals_pending() == 0)
        return false;
    if (w->signal == 0)
        w->signal = w->now;
    if (w->now < w->signal + GRACE_SECONDS)
        return false;
    rt_fail(e, EXIT_IO, "a signal arrived while the loader was stalled");
    if (w->needed && !w->warned_signal)
        rt_warn_own("a signal arrived within an update: waiting for data to "
                    "finish it; another signal ends the run at once");
    w->warned_signal = true;
    return !w->needed;
}

// Waits for a batch.  Without a warning, a hanging network file would look like
// a slow step.
static bool await(RtLoader *l, const Slot *s, bool needed, RtError *e) {
    const double began = rt_seconds();
    Wait w = {.needed = needed};
    while (is_awaited(l, s)) {
        struct timespec until = later(POLL_SECONDS);
        pthread_cond_timedwait(&l->ready, &l->lock, &until);
        w.now = rt_seconds() - began;
        if (!is_awaited(l, s)) // it came within the timeout
            break;
        warn(l, s, &w);
        l->stalled = gives_up(l, s, &w, e);
        if (l->stalled)
            return false;
    }
    if (l->failed)
        *e = l->error;
    return !l->failed;
}

const RtBatch *rt_loader_next(RtLoader *l, bool needed, double *waited,
                              RtError *e) {
    Slot *s = &l->slot[l->next % SLOTS];
    double since = rt_seconds();
    pthread_mutex_lock(&l->lock);
    bool good = await(l, s, needed, e);
    pthread_mutex_unlock(&l->lock);
    *waited += rt_seconds() - since;
    if (good)
        l->next++;
    return good ? s->batch : NULL;
}

bool rt_loader_stop(RtLoader *l) {
    if (l == NULL)
        return true;
    const double until = rt_seconds() + GRACE_SECONDS;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->room);
    while (l->working > 0 && !l->stalled) {
        struct timespec next_poll = later(POLL_SECONDS);
        pthread_cond_timedwait(&l->ready, &l->lock, &next_poll);
        l->stalled = l->working > 0 && rt_seconds() >= until;
    }
    bool ended = l->working == 0;
    pthread_mutex_unlock(&l->lock);
    return ended;
}

bool rt_loader_stalled(const RtLoader *l) {
    return l->stalled;
}

void rt_loader_release(RtLoader *l) {
    pthread_mutex_lock(&l->lock);
    l->slot[l->released++ % SLOTS].done = 0;
    pthread_cond_broadcast(&l->room);
    pthread_mutex_unlock(&l->lock);
}

double rt_loader_busy(RtLoader *l) {
    pthread_mutex_lock(&l->lock);
    double busy = l->busy;
    pthread_mutex_unlock(&l->lock);
    return busy;
}

int rt_loader_threads(const RtLoader *l) {
    return l->threads;
}

static bool has_staging(const RtDevice *d) {
    return d != NULL && d->acquire_staging != NULL;
}

static void *slot_alloc(RtDevice *d, size_t bytes) {
    return has_staging(d) ? d->acquire_staging(d, bytes)
                          : aligned_alloc(ALIGN, bytes);
}

static void slot_free(RtDevice *d, void *block) {
    if (has_staging(d) && block != NULL)
        d->release_staging(d, block);
    else
        free(block);
}

bool rt_loader_close(RtLoader *l) {
    if (l == NULL)
        return true;
    bool ended = rt_loader_stop(l);
    for (int i = 0; i < l->threads; i++)
        if (ended)
            pthread_join(l->thread[i], NULL);
        else
            pthread_detach(l->thread[i]);
    if (!ended)
        return false;
    for (int i = 0; i < SLOTS; i++)
        slot_free(l->plan.device, l->slot[i].batch);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->room);
    pthread_cond_destroy(&l->ready);
    free(l);
    return true;
}

// The bytes of a sample in an array, as delivered.
static size_t array_bytes(const RtLoaderConfig *p, int i) {
    return p->split->array[i].values * rt_type_bytes(p->array[i].shape.type);
}

size_t rt_loader_bytes(const RtLoaderConfig *p) {
    size_t bytes = p->split->label.values * rt_type_bytes(p->label) +
                   sizeof *((RtBatch *)NULL)->index;
    if (!p->no_images)
        bytes += p->split->image.values * rt_type_bytes(p->image);
    for (int i = 0; i < p->num_arrays; i++)
        bytes += array_bytes(p, i);
    if (__builtin_mul_overflow(bytes, (size_t)p->batch, &bytes) ||
        __builtin_add_overflow(
            bytes, sizeof(RtBatch) + (size_t)(4 + p->num_arrays) * ALIGN,
            &bytes) ||
        __builtin_mul_overflow(bytes, SLOTS, &bytes))
        return SIZE_MAX;
    return bytes;
}

// Adds room for `batch` samples to a block; false on overflow.
static bool room_add(size_t *bytes, size_t batch, size_t sample_bytes) {
    size_t room;
    if (__builtin_mul_overflow(batch, sample_bytes, &room) ||
        __builtin_add_overflow(room, ALIGN - 1, &room))
        return false;
    return !__builtin_add_overflow(*bytes, room / ALIGN * ALIGN, bytes);
}

// Allocates a batch and all that it points to as one block.
static bool reserve_slot(const RtLoader *l, Slot *s) {
    size_t batch = (size_t)l->plan.batch, image = 0, label, index, end;
    size_t array[RT_MAX_ARRAYS];
    if (!room_add(&image, 1, sizeof *s->batch))
        return false;
    label = image;
    if (!room_add(&label, batch, l->image_bytes))
        return false;
    index = label;
    if (!room_add(&index, batch, l->label_bytes))
        return false;
    end = index;
    if (!room_add(&end, batch, sizeof *s->batch->index))
        return false;
    for (int i = 0; i < l->plan.num_arrays; i++) {
        array[i] = end;
        if (!room_add(&end, batch, l->array_bytes[i]))
            return false;
    }
    char *block = slot_alloc(l->plan.device, end);
    if (block == NULL)
        return false;
    s->batch = (RtBatch *)(void *)block;
    *s->batch = (RtBatch){.image = block + image,
                          .label = block + label,
                          .named = l->plan.array,
                          .num_arrays = l->plan.num_arrays,
                          .index = (int32_t *)(void *)(block + index)};
    for (int i = 0; i < l->plan.num_arrays; i++)
        s->batch->array[i] = block + array[i];
    return true;
}

static bool start_threads(RtLoader *l, int threads) {
    pthread_mutex_lock(&l->lock); // none starts before all are counted
    while (l->threads < threads && l->threads < RT_MAX_LOADERS) {
        Worker *w = &l->worker[l->threads];
        *w = (Worker){l, l->threads};
        if (pthread_create(&l->thread[l->threads], NULL, work, w) != 0)
            break;
        l->threads++;
    }
    l->working = l->threads;
    pthread_mutex_unlock(&l->lock);
    return l->threads > 0;
}

RtLoader *rt_loader_open(const RtLoaderConfig *plan, RtError *e) {
    RtLoader *l = calloc(1, sizeof *l);
    if (l == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    l->plan = *plan;
    l->plan.first = own_before(plan, plan->first);
    l->plan.last = own_before(plan, plan->last);
    l->split = *plan->split;
    l->plan.split = &l->split;
    l->parts = plan->batch < MAX_PARTS ? (int)plan->batch : MAX_PARTS;
    l->image_bytes = plan->no_images ? 0
                                     : plan->split->image.values *
                                           rt_type_bytes(plan->image);
    l->label_bytes = plan->split->label.values * rt_type_bytes(plan->label);
    for (int i = 0; i < plan->num_arrays; i++)
        l->array_bytes[i] = array_bytes(plan, i);
    l->batch = l->next = l->released = l->plan.first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&l->ready, &clock);
    pthread_condattr_destroy(&clock);
    bool good = true;
    for (int i = 0; i < SLOTS; i++)
        good = good && reserve_slot(l, &l->slot[i]);
    if (!good)
        rt_fail(e, EXIT_MEMORY, "out of memory for batches of %lld samples",
                (long long)plan->batch);
    else if (!(good = start_threads(l, plan->threads)))
        rt_fail(e, EXIT_MEMORY, "cannot start a thread that loads data");
    if (good)
        return l;
    rt_loader_close(l);
    return NULL;
}
