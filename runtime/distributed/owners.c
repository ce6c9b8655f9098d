// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owners: ranks that each hold the optimizer states of some optimizer shards.
//
// Shards are dealt in order, so that the states of a rank are one range of the
// arena, and so are its parameters.  After an update each rank sends the
// parameters of its shards to all.
//
// A checkpoint has the states of all ranks.  Rank 0 reads and writes it, and
// tells the others to send or to receive pieces of states meanwhile.

#include "runtime/distributed/distributed.h"

#include "base/round_up.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 };

typedef enum { END, READ, WRITE } Word;

typedef struct {
    uint64_t word, offset, bytes;
} Order;

struct RtOwners {
    RtElsewhere elsewhere;
    RtWorld *world;
    const RtPlan *plan;
    RtDevice *device;
    char *piece;
};

// ---- ranges of ranks ----

// The first shard of a rank.  Rank r of n has the shards k with
// r = floor(k n / shards).
static int first_shard(const RtOwners *o, int rank) {
    int shards = o->plan->num_optimizer_shards, size = rt_world_size(o->world);
    return (int)divide_up((int64_t)rank * shards, size);
}

void rt_owners_shards(const RtOwners *o, int *first, int *count) {
    int rank = rt_world_rank(o->world);
    *first = first_shard(o, rank);
    *count = first_shard(o, rank + 1) - *first;
}

// The bytes of shards first .. last - 1; an empty shard has no place.
static RtRange states_of(const RtPlan *p, int first, int last, bool params) {
    RtRange r = {0, 0};
    for (int i = first; i < last; i++) {
        const RtOptimizerShard *s = &p->optimizer_shard[i];
        size_t begin = params ? s->params : s->states;
        size_t bytes = params ? s->param_bytes : s->state_bytes;
        if (bytes == 0)
            continue;
        if (r.end == 0)
            r.begin = begin;
        r.end = begin + bytes;
    }
    return r;
}

static RtRange range_of(const RtOwners *o, int rank, bool params) {
    return states_of(o->plan, first_shard(o, rank), first_shard(o, rank + 1),
                     params);
}

static int owner_of(const RtOwners *o, size_t offset, size_t *end) {
    int rank = 0;
    RtRange r;
    do
        r = range_of(o, rank++, false);
    while (offset < r.begin || offset >= r.end);
    *end = r.end;
    return rank - 1;
}

// ---- pieces of states ----

static void broadcast(const RtOwners *o, void *memory, size_t bytes, int root) {
    rt_world_broadcast(o->world, root, &(RtBuffer){.memory = memory}, bytes);
}

// A piece of one rank's states, from or to rank 0.
static void move(const RtOwners *o, const Order *order, char *piece) {
    size_t end;
    int owner = owner_of(o, order->offset, &end);
    bool owns = owner == rt_world_rank(o->world);
    RtDevice *d = o->device;
    if (owns && order->word == READ)
        d->read(d, piece, order->offset, order->bytes);
    broadcast(o, piece, order->bytes, order->word == READ ? owner : 0);
    if (owns && order->word == WRITE)
        d->write(d, order->offset, piece, order->bytes);
}

static void move_all(RtElsewhere *e, Word word, char *memory, size_t offset,
                     size_t bytes) {
    RtOwners *o = (RtOwners *)(void *)e; // elsewhere is its first field
    while (bytes > 0) {
        size_t end, some = bytes < PIECE ? bytes : PIECE;
        owner_of(o, offset, &end);
        some = some < end - offset ? some : end - offset;
        Order order = {word, offset, some};
        broadcast(o, &order, sizeof order, 0);
        move(o, &order, memory);
        memory += some;
        offset += some;
        bytes -= some;
    }
}

static void read_elsewhere(RtElsewhere *e, void *to, size_t from,
                           size_t bytes) {
    move_all(e, READ, to, from, bytes);
}

static void write_elsewhere(RtElsewhere *e, size_t to, const void *from,
                            size_t bytes) {
    RtOwners *o = (RtOwners *)(void *)e;
    for (size_t at = 0, some; at < bytes; at += some) {
        some = bytes - at < PIECE ? bytes - at : PIECE;
        memcpy(o->piece, (const char *)from + at, some);
        move_all(e, WRITE, o->piece, to + at, some);
    }
}

void rt_owners_serve(const RtOwners *o) {
    Order order;
    if (o == NULL)
        return;
    for (;;) {
        broadcast(o, &order, sizeof order, 0);
        if (order.word == END)
            return;
        move(o, &order, o->piece);
    }
}

void rt_owners_end(const RtOwners *o) {
    if (o != NULL)
        broadcast(o, &(Order){.word = END}, sizeof(Order), 0);
}

// ---- parameters ----

void rt_owners_share(const RtOwners *o) {
    RtRange params[RT_MAX_RANKS];
    if (o == NULL)
        return;
    for (int i = 0; i < rt_world_size(o->world); i++)
        params[i] = range_of(o, i, true);
    rt_world_share(o->world, o->device, params);
}

// ---- opening ----

bool rt_owners_open(RtOwners **to, RtWorld *w, const RtPlan *p, RtDevice *d,
                    RtError *e) {
    *to = NULL;
    if (w == NULL || p->num_optimizer_shards == 0)
        return true;
    RtOwners *o = calloc(1, sizeof *o);
    char *piece = malloc(PIECE);
    if (o == NULL || piece == NULL) {
        free(o);
        free(piece);
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    *o = (RtOwners){.world = w, .plan = p, .device = d, .piece = piece};
    RtRange all = states_of(p, 0, p->num_optimizer_shards, false);
    RtRange own = range_of(o, rt_world_rank(w), false);
    o->elsewhere = (RtElsewhere){.begin = all.begin,
                                 .own_begin = own.end > 0 ? own.begin : all.end,
                                 .own_end = own.end > 0 ? own.end : all.end,
                                 .end = all.end,
                                 .read = read_elsewhere,
                                 .write = write_elsewhere};
    d->elsewhere = &o->elsewhere;
    *to = o;
    return true;
}

void rt_owners_close(RtOwners *o) {
    if (o == NULL)
        return;
    o->device->elsewhere = NULL;
    free(o->piece);
    free(o);
}
