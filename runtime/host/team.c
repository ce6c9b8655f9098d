// Team: the threads that compute.
//
// oneDNN's threads are those of libgomp, and a second team beside them would
// fight for the same cores.  So the entry that gcc's `#pragma omp parallel`
// compiles to is called by its name (it is in the libgomp manual): with it a
// build by clang, whose own pragma means another library, has the same team.

#include "runtime/runtime.h"

void GOMP_parallel(void (*work)(void *), void *arg, unsigned threads,
                   unsigned flags);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
void omp_set_num_threads(int threads);

// ThreadSanitizer does not know libgomp's barriers: it is told what they order.
#ifdef __SANITIZE_THREAD__ // gcc
#define WATCHED
#elif defined __has_feature // clang
#if __has_feature(thread_sanitizer)
#define WATCHED
#endif
#endif
#ifdef WATCHED
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

static void join(void *arg) {
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
    GOMP_parallel(join, &job, (unsigned)threads, 0);
    __tsan_acquire(&job);
}

int rt_team_largest(void) {
    return omp_get_num_procs();
}

void rt_team_size(int threads) {
    omp_set_num_threads(threads);
}
