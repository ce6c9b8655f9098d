// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Team: the threads that compute.
//
// oneDNN's threads are those of libgomp, and a second team would compete for
// the cores.  So the entry point of gcc's `#pragma omp parallel` is called by
// its name, from the libgomp manual: a build by clang, whose pragma uses
// another library, then has the same team.

#define _GNU_SOURCE // sched_getaffinity

#include "runtime/host/host.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void GOMP_parallel(void (*work)(void *), void *arg, unsigned threads,
                   unsigned flags);
int omp_get_max_active_levels(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_limit(void);
int omp_get_thread_num(void);
void omp_set_dynamic(int dynamic);
void omp_set_num_threads(int threads);

// ThreadSanitizer does not know libgomp's barriers; these calls declare them.
#ifdef __SANITIZE_THREAD__ // gcc
#define HAS_TSAN
#elif defined __has_feature // clang
#if __has_feature(thread_sanitizer)
#define HAS_TSAN
#endif
#endif
#ifdef HAS_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#else
#define __tsan_acquire(address) ((void)(address))
#define __tsan_release(address) ((void)(address))
#endif

typedef struct {
    void (*work)(void *arg, int me, int members);
    void *arg;
} Job;

static void run_member(void *arg) {
    const Job *job = arg;
    __tsan_acquire(arg);
    job->work(job->arg, omp_get_thread_num(), omp_get_num_threads());
    __tsan_release(arg);
}

void rt_team_run(int threads, void (*work)(void *arg, int me, int members),
                 void *arg) {
    Job job = {.work = work, .arg = arg};
    if (threads == 1) {
        work(arg, 0, 1);
        return;
    }
    __tsan_release(&job);
    GOMP_parallel(run_member, &job, (unsigned)threads, 0);
    __tsan_acquire(&job);
}

void rt_team_share(size_t count, int me, int members, size_t *first,
                   size_t *last) {
    *first = count * (size_t)me / (size_t)members;
    *last = count * ((size_t)me + 1) / (size_t)members;
}

int rt_team_largest(void) {
    return omp_get_num_procs();
}

void rt_team_processors(uint64_t set[RT_PROCESSORS / 64]) {
    cpu_set_t own;
    memset(set, 0, RT_PROCESSORS / 8);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        return;
    for (int i = 0; i < RT_PROCESSORS && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &own))
            set[i / 64] |= UINT64_C(1) << i % 64;
}

void rt_team_use(int threads) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
}

int rt_team_used(void) {
    return omp_get_max_threads();
}

// ---- the start ----

// libgomp's default of 300,000 rounds takes some 10 ms, in which a spinning
// member can block the core of the member it waits for.  1,000 rounds take
// about as long as sleeping and waking.
void rt_team_spin_briefly(char **argv) {
    char program[PATH_MAX];
    struct stat called, run;
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL)
        return;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || setenv("GOMP_SPINCOUNT", "1000", 0) != 0)
        return;
    program[length] = '\0';
    // The program was started by a loader as its argument.
    if (stat(argv[0], &called) == 0 && stat(program, &run) == 0 &&
        (called.st_ino != run.st_ino || called.st_dev != run.st_dev))
        return;
    execv(program,
          argv); // returns only after a failure: then members spin longer
}

static void *wait_at(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

// How many of `threads` threads the system allows at once.
static int threads_created(int threads) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = calloc((size_t)threads, sizeof *thread);
    int created = 0;
    pthread_mutex_lock(&gate);
    while (thread != NULL && created < threads &&
           pthread_create(&thread[created], NULL, wait_at, &gate) == 0)
        created++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < created; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return created;
}

static void count_members(void *arg, int me, int members) {
    if (me == 0)
        *(int *)arg = members;
}

// How many of `threads` threads OpenMP's limits allow.
static int threads_allowed(int threads) {
    int limit = omp_get_thread_limit();
    if (omp_get_max_active_levels() < 1)
        return 1;
    return threads < limit ? threads : limit;
}

static void warn_fewer_threads(int requested, int members) {
    char why[48] = "libgomp creates no more";
    if (omp_get_max_active_levels() < 1)
        snprintf(why, sizeof why, "OMP_MAX_ACTIVE_LEVELS is 0");
    else if (omp_get_thread_limit() == members)
        snprintf(why, sizeof why, "OMP_THREAD_LIMIT is %d", members);
    rt_warn("%d of %d threads compute%s: %s", members, requested,
            members == 1 ? "s" : "", why);
}

static void warn_more_threads(int requested, int processors) {
    rt_warn("%d threads on %d processor%s: they wait for each other, and take "
            "many times as long as %d",
            requested, processors, processors == 1 ? "" : "s", processors);
}

// oneDNN divides its work by omp_get_max_threads() and waits for that many
// members, for ever if the team has fewer, so both must be equal.  A dynamic
// team size depends on the load of the machine, and with it results.  If the
// system lacks a thread, libgomp ends the program with a misleading status, so
// threads are tested first.
int rt_team_start(int requested) {
    int threads =
        threads_allowed(requested > 0 ? requested : rt_team_largest());
    int created = 1 + (threads > 1 ? threads_created(threads - 1) : 0);
    int members = 0;
    if (created < threads)
        rt_end(EXIT_MEMORY, "the system allows %d of %d threads: start fewer",
               created, threads);
    omp_set_dynamic(0);
    rt_team_run(threads, count_members, &members);
    rt_team_use(members);
    if (members < requested)
        warn_fewer_threads(requested, members);
    else if (requested > rt_team_largest() && !rt_warns_as_rank())
        warn_more_threads(requested, rt_team_largest());
    return members;
}
