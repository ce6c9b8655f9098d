// Collectives of NCCL between processes, on the doubles of the driver and the
// library.
#define _XOPEN_SOURCE 700

#include "runtime/cuda/launch/launch.h"
#include "runtime/cuda/nccl.h"
#include "tests/runtime/cuda/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Memory of the host goes through the GPU in pieces of 2^18 floats.
enum { COUNT = (1 << 18) + 1021, MAX_RANKS = 6 };

// A flag that no float holds.
enum { FLAG = RT_NO_DATA + 15 };

// A rank's terms, whose sum depends on the order.
static void fill(float *to, int rank) {
    unsigned state = 977u * (unsigned)rank + 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = ldexpf((float)(state >> 8) - 8e6f, (int)(state % 12));
    }
}

static void sum_as_tree(int ranks, float *to) {
    float *all = calloc((size_t)ranks * COUNT, sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (int r = 0; r < ranks; r++)
        fill(all + (size_t)r * COUNT, r);
    rt_ranks_sum(all, COUNT, ranks, COUNT, to);
    free(all);
}

// ---- a rank ----

static int sum(RtCollectives *c, float *memory, size_t count, int flag,
               bool fast) {
    c->start_sum(c, &(RtBuffer){.memory = memory}, count, &flag, fast);
    c->finish(c);
    return flag;
}

// Returns the difference of two arrays, relative to the largest value.
static double distance(const float *a, const float *b) {
    double most = 0, largest = 0;
    for (int i = 0; i < COUNT; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

static bool sums_are_right(RtCollectives *c, int rank, int ranks) {
    static float own[COUNT], want[COUNT];
    sum_as_tree(ranks, want);
    fill(own, rank);
    int flag = rank == 1 ? FLAG : rank;
    if (sum(c, own, COUNT, flag, false) != FLAG ||
        memcmp(own, want, sizeof own) != 0)
        return false;
    fill(own, rank);
    sum(c, own, 3, 0, false);
    if (memcmp(own, want, 3 * sizeof *own) != 0)
        return false;
    fill(own, rank);
    sum(c, own, COUNT, 0, true);
    double far = distance(own, want);
    return far < 1e-5 && (far > 0 || ranks < 3);
}

static bool broadcasts_are_right(RtCollectives *c, int rank) {
    static float own[COUNT], want[COUNT];
    bool good = true;
    for (int from = 0; from < 2; from++) {
        fill(own, rank);
        fill(want, from);
        c->broadcast(c, from, &(RtBuffer){.memory = own}, sizeof own - 1);
        memcpy((char *)want + sizeof want - 1, (char *)own + sizeof own - 1, 1);
        good = good && memcmp(own, want, sizeof own) == 0;
    }
    // Others than rank 0 drop the bytes.
    c->broadcast(c, 1, &(RtBuffer){.memory = rank < 2 ? own : NULL},
                 sizeof own);
    return good && (rank > 1 || memcmp(own, want, sizeof own - 1) == 0);
}

// ---- hooks of a step ----

// Ranges of a part of the arena that no kernel uses, and the totals, which the
// second launch stores.
enum { AT = 32772, FLOATS = 2000, LAUNCHES = 2, RUNS = 6 };

typedef struct {
    RtStepHooks hooks; // is the first field
    RtCollectives *collectives;
    RtDevice *device;
    int launches;
} Hooks;

static void begin(RtStepHooks *h) {
    Hooks *own = (Hooks *)(void *)h;
    own->launches = 0;
    own->collectives->queue_flags(own->collectives);
}

static void queue_sum(const Hooks *h, size_t at, size_t count) {
    h->collectives->queue_sum(h->collectives,
                              &(RtBuffer){.device = h->device, .offset = at},
                              count, false);
}

static void launched(RtStepHooks *h) {
    static const size_t range[] = {0, 1000, 1003, FLOATS};
    Hooks *own = (Hooks *)(void *)h;
    own->launches++;
    for (int i = 0; i < 3 && own->launches == 1; i++)
        queue_sum(own, AT + range[i] * sizeof(float), range[i + 1] - range[i]);
    if (own->launches < LAUNCHES)
        return;
    queue_sum(own, TOTALS_AT, SUMS);
    own->collectives->queue_join(own->collectives);
}

static bool totals_are(RtDevice *d, int run, int ranks) {
    float got[SUMS],
        want = 3000.0f * (float)(run + 1) * (float)(ranks * (ranks + 1) / 2);
    d->read(d, got, TOTALS_AT, sizeof got);
    for (int i = 0; i < SUMS; i++)
        if (got[i] != want)
            return false;
    return true;
}

// Sums that a step's hooks queue: the first run is not recorded, the second one
// is, and later ones replay it.  No flag stops them.
static bool sums_are_recorded(RtCollectives *c, RtDevice *d, int rank,
                              int ranks) {
    static float own[COUNT], want[COUNT], got[FLOATS];
    Hooks h = {.hooks = {.begin = begin, .launched = launched},
               .collectives = c,
               .device = d};
    float input = (float)(rank + 1);
    bool good = true;
    sum_as_tree(ranks, want);
    fill(own, rank);
    d->write(d, INPUT_AT, &input, sizeof input);
    for (int run = 0; run < RUNS; run++) {
        int flag = rank == 1 ? run == 1 ? 15 : run == 4 ? FLAG : 0 : 0;
        d->write(d, AT, own, sizeof got);
        c->set_flag(c, -1); // which is replaced
        c->set_flag(c, flag);
        d->hooks = &h.hooks;
        d->run(d, counter.plan->step);
        d->hooks = NULL;
        good &= c->await_flag(c) == (run == 1 ? 15 : run == 4 ? FLAG : 0);
        d->read(d, got, AT, sizeof got);
        good &= memcmp(got, want, sizeof got) == 0;
        good &= totals_are(d, run, ranks) && h.hooks.replayed == (run > 0);
    }
    return good;
}

// Ranks share parts of the arena, each longer than the one before; the first is
// empty.
static bool parts_are_shared(RtCollectives *c, RtDevice *d, int rank,
                             int ranks) {
    enum { STEP = 100 };
    static float own[COUNT], got[COUNT], want[COUNT];
    RtRange part[MAX_RANKS];
    size_t end = AT;
    for (int i = 0; i < ranks; i++) {
        size_t count = (size_t)i * STEP, from = (end - AT) / sizeof *own;
        part[i] = (RtRange){end, end + count * sizeof *own};
        end = part[i].end;
        fill(own, i);
        memcpy(want + from, own + from, count * sizeof *own);
    }
    fill(own, rank);
    d->write(d, AT, own, end - AT);
    c->share(c, d, part);
    d->read(d, got, AT, end - AT);
    return memcmp(got, want, end - AT) == 0;
}

// A sum in the arena without hooks.
static bool arena_is_summed(RtCollectives *c, RtDevice *d, int rank,
                            int ranks) {
    static float own[COUNT], want[COUNT], got[FLOATS];
    int flag = rank;
    sum_as_tree(ranks, want);
    fill(own, rank);
    d->write(d, AT, own, sizeof got);
    c->start_sum(c, &(RtBuffer){.device = d, .offset = AT}, FLOATS, &flag,
                 false);
    c->finish(c);
    d->read(d, got, AT, sizeof got);
    return flag == ranks - 1 && memcmp(got, want, sizeof got) == 0;
}

static bool rank_runs(const char *id, int rank, int ranks) {
    RtError e = {0};
    // Four ranks are on two machines, and six on three.
    RtRankInfo info = {
        .rank = rank, .size = ranks, .near = ranks == 4 || ranks == 6 ? 2 : 1};
    RtDevice *d = rt_cuda_open(&counter, counter.plan, rank, NULL, NULL, &e);
    RtCollectives *c = d != NULL ? rt_nccl.open(&info, id, d, true, &e) : NULL;
    if (c == NULL) {
        fprintf(stderr, "%s\n", e.text);
        return false;
    }
    d->reserve(d);
    bool good = sums_are_right(c, rank, ranks) &&
                broadcasts_are_right(c, rank) &&
                parts_are_shared(c, d, rank, ranks) &&
                sums_are_recorded(c, d, rank, ranks) &&
                arena_is_summed(c, d, rank, ranks);
    c->barrier(c);
    c->close(c, good);
    d->close(d);
    return good;
}

START_TEST(sums_are_the_tree_over_ranks) {
    char id[RT_UNIQUE_ID_BYTES];
    pid_t process[MAX_RANKS];
    RtError e;
    setenv("SINTER_DOUBLE_DEVICES", "6", 1);
    ck_assert_msg(rt_nccl.unique_id(id, &e), "%s", e.text);
    for (int r = 0; r < _i; r++) {
        process[r] = fork();
        if (process[r] == 0)
            _exit(rank_runs(id, r, _i) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    for (int r = 0; r < _i; r++) {
        int status;
        waitpid(process[r], &status, 0);
        ck_assert_msg(status == 0, "rank %d of %d", r, _i);
    }
}
END_TEST

// Launch 1 is done by the call of launch 3, and the others by themselves.
START_TEST(work_of_later_launches_is_not_queued) {
    static const RtLaunch launch[] = {
        {0, -1, "", "", false}, {1, -1, "", "", false}, {2, -1, "", "", false},
        {-1, 0, "", "", false}, {3, -1, "", "", false}};
    static const RtStep step = {.launch = launch, .num_launches = 5};
    static const RtFusion fusion = {.launch = 1, .call = 0};
    RtPlan p = {.step = &step, .num_steps = 1, .fusion = &fusion};
    RtCuda c = {.plan = &p, .is_guessing = true, .gpu = {.major = 9}};
    for (int seen = 0; seen <= 5; seen++) {
        c.merging.launch = seen;
        p.num_fusions = 0;
        ck_assert_int_eq(rt_cuda_queued_launches(&c.device), seen);
        p.num_fusions = 1;
        int want = seen == 2 || seen == 3 ? 1 : seen;
        ck_assert_int_eq(rt_cuda_queued_launches(&c.device), want);
    }
    // Launches 0 and 1 wait for launch 2, with which they are merged.
    c.merging.launch = 2;
    c.merging.num_args = 3;
    c.first = 0;
    p.num_fusions = 0;
    ck_assert_int_eq(rt_cuda_queued_launches(&c.device), 0);
}
END_TEST

Suite *nccl_suite(void) {
    Suite *s = suite_create("nccl");
    TCase *c = tcase_create("nccl");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, sums_are_the_tree_over_ranks, 2, MAX_RANKS + 1);
    tcase_add_test(c, work_of_later_launches_is_not_queued);
    suite_add_tcase(s, c);
    return s;
}
