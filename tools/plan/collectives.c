// Collectives: the time of a sum over ranks.
//
// A message takes the latency of its link and its bytes over the link's rate
// (Hockney, "The communication challenge for MPP: Intel Paragon and Meiko
// CS-2", Parallel Computing 20, 1994).  Pairwise exchange and ring, and their
// costs, are those of Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", 2005.  docs/scaling.md has the
// formulas.
#include "tools/plan/plan.h"

#include <math.h>

Sum sum_add(Sum a, Sum b) {
    return (Sum){a.within + b.within, a.between + b.between,
                 a.seconds + b.seconds, a.busy + b.busy};
}

// Whether the ranks of each machine add first, and one sum of each goes to the
// others: they have a subtree of the binary tree.
static bool has_levels(const World *w) {
    bool power = (w->local & (w->local - 1)) == 0;
    return !w->fast && power && w->local > 1 && w->local < w->ranks;
}

// Each rank sends a share of the machine's ranks to each of them, and of these
// one to each other machine.
static Sum exchange_levels(const World *w, double bytes) {
    int near = w->local - 1, far = w->ranks / w->local - 1;
    Sum s = {.within = bytes * near / w->local,
             .between = bytes * far / (far + 1)};
    double inside = w->call + near * w->within_latency + s.within / w->within;
    s.seconds =
        inside + w->call + far * w->between_latency + s.between / w->between;
    s.busy = inside;
    return s;
}

// Each rank sends a share to each other one.  A machine's network has the
// messages of all its ranks, and works beside the links within it.
static Sum exchange_shares(const World *w, double bytes) {
    if (has_levels(w))
        return exchange_levels(w, bytes);
    double share = bytes / w->ranks;
    int near = w->local - 1, far = w->ranks - w->local;
    Sum s = {.within = near * share, .between = w->local * far * share};
    double inside = near * w->within_latency + s.within / w->within;
    double outside = far * w->between_latency + s.between / w->between;
    s.seconds = w->call + fmax(inside, far > 0 ? outside : 0);
    s.busy = inside;
    return s;
}

// Each share passes all ranks in turn, and enters each other machine once.  The
// slowest link decides.
static Sum pass_shares(const World *w, double bytes) {
    if (has_levels(w) && w->host) // as runtime/distributed/mpi.c
        return exchange_levels(w, bytes);
    double sent = bytes * (w->ranks - 1) / w->ranks;
    int far = w->ranks / w->local - 1, near = w->ranks - 1 - far;
    Sum s = {.within = near > 0 ? sent : 0, .between = far > 0 ? sent : 0};
    double inside = near * w->within_latency + s.within / w->within;
    double slowest = near > 0 ? w->within : w->between;
    if (far > 0)
        slowest = fmin(slowest, w->between);
    s.seconds = w->call + near * w->within_latency + far * w->between_latency +
                sent / slowest;
    s.busy = inside;
    return s;
}

// A rank reads its share of each rank, and writes their sum; in two levels that
// of its machine, too, which it reads.
static Sum add_shares(const World *w, double bytes) {
    double levels = has_levels(w) ? 2.0 / w->local : 0;
    double seconds = bytes * (1 + levels + 1.0 / w->ranks) / w->memory;
    return (Sum){.seconds = seconds, .busy = seconds};
}

// runtime/distributed/shared_memory.c: pieces, each with two barriers, are
// copied into a slot, added, and copied from the result.
static Sum sum_in_shared_memory(const World *w, double bytes) {
    const double piece = 1 << 20;
    enum { BARRIERS = 2 };
    Sum s = add_shares(w, bytes);
    s.within = bytes * (w->ranks - 1) / w->ranks;
    s.seconds += 4 * bytes / w->memory +
                 BARRIERS * ceil(bytes / piece) * w->within_latency;
    s.busy = s.seconds;
    return s;
}

// The same file: each rank copies a piece into its slot, and those of others
// out of theirs.
static Sum share_in_shared_memory(const World *w, double bytes) {
    const double piece = 1 << 20;
    enum { BARRIERS = 2 };
    Sum s = {.within = bytes * (w->ranks - 1) / w->ranks};
    s.busy = s.seconds =
        2 * bytes / w->memory +
        BARRIERS * ceil(bytes / w->ranks / piece) * w->within_latency;
    return s;
}

static Sum sum_of_piece(const World *w, double bytes) {
    Sum passed = pass_shares(w, bytes);
    if (w->fast)
        return sum_add(passed, passed);
    return sum_add(sum_add(exchange_shares(w, bytes), add_shares(w, bytes)),
                   passed);
}

Sum sum_over(const World *w, double bytes) {
    const double piece = 4 << 20; // of MPI: runtime/distributed/mpi.c
    World each = *w;
    if (w->ranks == 1)
        return (Sum){0};
    if (!w->host)
        return sum_of_piece(w, bytes);
    if (w->local == w->ranks)
        return sum_in_shared_memory(w, bytes);
    each.within_latency *= ceil(bytes / piece);
    each.between_latency *= ceil(bytes / piece);
    return sum_of_piece(&each, bytes);
}

Sum share_over(const World *w, double bytes) {
    const double piece = 4 << 20; // of MPI: runtime/distributed/mpi.c
    World each = *w;
    if (w->ranks == 1 || bytes == 0)
        return (Sum){0};
    if (!w->host)
        return pass_shares(w, bytes);
    if (w->local == w->ranks)
        return share_in_shared_memory(w, bytes);
    each.within_latency *= ceil(bytes / piece);
    each.between_latency *= ceil(bytes / piece);
    return pass_shares(&each, bytes);
}
