// Plan: arithmetic of data-parallel training on many devices.
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include "tools/device.h"

// ---- collectives.c ----

// Ranks on equal machines, and their links.  Rates are bytes per second in one
// direction, latencies the seconds of a message.
typedef struct {
    int ranks, local; // in all, on each machine
    bool host;        // ranks are processes that compute on processors
    bool fast;        // sums in the library's own order, see --reduce
    double within, within_latency;   // from a rank to others of its machine
    double between, between_latency; // from a machine to others
    double call;                     // seconds to start a collective call
    double memory;                   // rate of a rank's own memory
} World;

typedef struct {
    double within, between; // bytes that a rank sends to others of its machine,
                            // and a machine to others
    double seconds;
    double busy; // of them, those in which a rank copies and adds itself
} Sum;

Sum sum_add(Sum a, Sum b);

// The sum of so many bytes over all ranks, which leaves it on each.
Sum sum_over(const World *w, double bytes);

// Sends a part of so many bytes from each rank to all, about equal parts.
Sum share_over(const World *w, double bytes);

// ---- overlap.c ----

// A bucket of a shard's terms, see passes/buckets.c.
typedef struct {
    double bytes;
    double ready; // seconds from the begin of the last shard
    double end;   // ... at which its sum is finished
} BucketTime;

typedef struct {
    BucketTime *bucket;
    int count;
    double bytes;
    int runs;     // of each shard for an update
    double shard; // seconds of one: forward and backward pass
    double apply; // ... of the update, but for that of optimizer shards
    // Seconds of the update of each optimizer shard, and the bytes of the
    // parameters that ranks then send.
    double *optimize;
    int num_optimizer_shards;
    double params;
} Timeline;

// The step of a program with shards whose launches take so many seconds, see
// launch_seconds.
Timeline timeline_of(Arena *a, const Program *p, const Plan *plan,
                     double *const *seconds);

// The optimizer shards of a rank, as runtime/distributed/owners.c deals them:
// from *first on, before *end.
void shards_of_rank(int shards, int ranks, int rank, int *first, int *end);

// The seconds of an update by so many ranks, of the slowest.
double update_seconds(const Timeline *t, int ranks);

typedef struct {
    Sum sum;        // of all buckets
    Sum share;      // of parameters, with optimizer shards
    double exposed; // seconds of both that the backward pass does not hide
} Exchange;

// Sums the buckets one after another, each once it is ready, and sets their
// ends.
Exchange exchange_of(const Timeline *t, const World *w);

// ---- print.c ----

// A step of all ranks.
typedef struct {
    int ranks;
    int shards;      // of each rank
    int64_t batch;   // of a shard; 0: the ranks do not divide the batch
    int64_t samples; // of all ranks
    double seconds, exposed;
    double efficiency; // the samples per second of a rank as a part of those
                       // of one alone
} Row;

enum { MAX_ROWS = 12 };

typedef struct {
    Row row[MAX_ROWS];
    int count;
} Scaling;

// The results of the command.
typedef struct {
    const Program *p;
    const Plan *plan;
    Device device; // of a rank
    World world;
    Timeline timeline;
    Exchange exchange;
    Row row;
    Row largest; // with the largest batch that fits; batch 0: none does
    Scaling weak, strong;
} Forecast;

void forecast_print(Text *t, const Forecast *f);
void forecast_json(Text *t, const Forecast *f);
void forecast_draw(Arena *a, Text *t, const Forecast *f);

#endif
