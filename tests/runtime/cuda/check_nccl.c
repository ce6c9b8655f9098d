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
enum { COUNT = (1 << 18) + 1021, MOST_RANKS = 5 };

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

// Sums of three ranges of the arena are a part of the next run, which is
// recorded; no kernel uses this part of the arena.
static bool runs_begin_with_sums(RtCollectives *c, RtDevice *d, int rank,
                                 int ranks) {
    enum { AT = 32772, FLOATS = 2000, RUNS = 4 };
    static const int range[] = {0, 1000, 1003, FLOATS};
    static float own[COUNT], want[COUNT], got[FLOATS];
    bool good = true;
    sum_as_tree(ranks, want);
    fill(own, rank);
    for (int run = 0; run < RUNS; run++) {
        int flag = 0;
        d->write(d, AT, own, sizeof got);
        for (int i = 0; i < 3; i++) {
            flag = run == 1 && rank == 1 ? 15 : 0;
            size_t bytes = (size_t)range[i] * sizeof *own;
            c->start_sum(c, &(RtBuffer){.device = d, .offset = AT + bytes},
                         (size_t)(range[i + 1] - range[i]), &flag, false);
            c->finish(c);
        }
        d->run(d, counter.plan->step);
        d->read(d, got, AT, sizeof got);
        good &= memcmp(got, want, sizeof got) == 0;
        good &= flag == (run == 1 ? 15 : 0);
    }
    return good;
}

// A rank without data: no run begins with the sum.
static bool sum_is_dropped(RtCollectives *c, RtDevice *d, int rank) {
    int flag = rank == 1 ? FLAG : 0;
    c->start_sum(c, &(RtBuffer){.device = d}, 100, &flag, false);
    c->finish(c);
    return flag == FLAG && !rt_cuda_is_preceded(rt_cuda_of(d));
}

static bool rank_runs(const char *id, int rank, int ranks) {
    RtError e = {0};
    RtRankInfo info = {.rank = rank, .size = ranks};
    RtDevice *d = rt_cuda_open(&counter, counter.plan, rank, NULL, NULL, &e);
    RtCollectives *c = d != NULL ? rt_nccl.open(&info, id, d, true, &e) : NULL;
    if (c == NULL) {
        fprintf(stderr, "%s\n", e.text);
        return false;
    }
    d->reserve(d);
    bool good =
        sums_are_right(c, rank, ranks) && broadcasts_are_right(c, rank) &&
        runs_begin_with_sums(c, d, rank, ranks) && sum_is_dropped(c, d, rank);
    c->barrier(c);
    c->close(c, good);
    d->close(d);
    return good;
}

START_TEST(sums_are_the_tree_over_ranks) {
    char id[RT_UNIQUE_ID_BYTES];
    pid_t process[MOST_RANKS];
    RtError e;
    setenv("SINTER_DOUBLE_DEVICES", "5", 1);
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

Suite *nccl_suite(void) {
    Suite *s = suite_create("nccl");
    TCase *c = tcase_create("nccl");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, sums_are_the_tree_over_ranks, 2, MOST_RANKS + 1);
    suite_add_tcase(s, c);
    return s;
}
