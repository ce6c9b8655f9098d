// Overlap: when sums over ranks begin and end beside the backward pass.
#include "tools/plan/plan.h"

#include "base/round_up.h"

#include <math.h>

// Seconds from the begin of a step to the end of so many launches.
static double end_of(const double *seconds, int launches) {
    double end = 0;
    for (int i = 0; i < launches; i++)
        end += seconds[i];
    return end;
}

static void buckets_fill(Arena *a, Timeline *t, const Step *s,
                         const double *seconds) {
    t->count = s->num_buckets;
    t->bucket = ARENA_ARRAY(a, (size_t)t->count + 1, BucketTime);
    for (int i = 0; i < t->count; i++) {
        const Bucket *b = &s->bucket[i];
        t->bucket[i] = (BucketTime){.bytes = (double)b->bytes,
                                    .ready = end_of(seconds, b->ready + 1)};
        t->bytes += (double)b->bytes;
    }
}

// ---- optimizer shards ----

static void optimizer_fill(Arena *a, Timeline *t, const Plan *plan) {
    t->num_optimizer_shards = plan->num_optimizer_shards;
    t->optimize = ARENA_ARRAY(a, (size_t)t->num_optimizer_shards + 1, double);
    for (int i = 0; i < t->num_optimizer_shards; i++)
        t->params += (double)plan->optimizer_shard[i].param_bytes;
}

void shards_of_rank(int shards, int ranks, int rank, int *first, int *end) {
    *first = (int)(divide_up((int64_t)rank * shards, ranks));
    *end = (int)(divide_up((int64_t)(rank + 1) * shards, ranks));
}

double update_seconds(const Timeline *t, int ranks) {
    double most = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int first, end;
        double own = 0;
        shards_of_rank(t->num_optimizer_shards, ranks, rank, &first, &end);
        for (int i = first; i < end; i++)
            own += t->optimize[i];
        most = fmax(most, own);
    }
    return t->apply + most;
}

// ---- the step ----

Timeline timeline_of(Arena *a, const Program *p, const Plan *plan,
                     double *const *seconds) {
    Timeline t = {0};
    optimizer_fill(a, &t, plan);
    for (int i = 0; i < plan->num_steps; i++) {
        const Step *s = &plan->step[i];
        int runs = step_runs(&p->recipe, s);
        double all = end_of(seconds[i], s->plan->num_groups);
        if (runs == 0)
            continue;
        if (s->kind == STEP_TRAIN) {
            t.runs = runs / p->recipe.shards;
            t.shard = all;
            buckets_fill(a, &t, s, seconds[i]);
        } else if (s->kind == STEP_OPTIMIZE) {
            t.optimize[s->shard] = all;
        } else {
            t.apply += all;
        }
    }
    return t;
}

Exchange exchange_of(const Timeline *t, const World *w) {
    Exchange e = {.sum = {0}};
    double end = 0;
    for (int i = 0; i < t->count; i++) {
        BucketTime *b = &t->bucket[i];
        Sum s = sum_over(w, b->bytes);
        end = fmax(end, b->ready) + s.seconds;
        b->end = end;
        e.sum = sum_add(e.sum, s);
    }
    e.share = share_over(w, t->params);
    e.exposed =
        fmax(end - t->shard, w->host ? e.sum.busy : 0) + e.share.seconds;
    return e;
}
