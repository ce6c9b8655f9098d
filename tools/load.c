// Load: processor time from getrusage, of this program, and from /proc/stat, of
// the whole machine.
#define _POSIX_C_SOURCE 200809L

#include "tools/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const double NOISE = 0.1;

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double used_by(int who) {
    struct rusage r;
    getrusage(who, &r);
    return seconds_of(r.ru_utime) + seconds_of(r.ru_stime);
}

// /proc/stat, proc(5): user, nice, system, idle, iowait, irq, softirq, steal in
// ticks.  0: it cannot be read.
static double used_by_all(void) {
    uint64_t t[8];
    FILE *f = fopen("/proc/stat", "r");
    int count =
        f == NULL
            ? 0
            : fscanf(f,
                     "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                     " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                     &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    if (f != NULL)
        fclose(f);
    if (count != 8)
        return 0;
    uint64_t ticks = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

Load load_begin(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (Load){(double)now.tv_sec + 1e-9 * (double)now.tv_nsec,
                  used_by_all(),
                  used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN)};
}

void load_report(const Load *begin, double differ) {
    Load end = load_begin();
    double seconds = end.moment - begin->moment;
    double others = end.machine - begin->machine - (end.own - begin->own);
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    fflush(stdout); // so that the note follows the results in one file, too
    if (others > NOISE * cores * seconds)
        fprintf(stderr,
                "note: the times are noise: other programs used %.1f of %.0f "
                "cores; repeat it on an idle machine\n",
                others / seconds, cores);
    else if (differ > NOISE)
        fprintf(stderr,
                "note: the times are noise: they differ by %.0f %% between "
                "runs; repeat it with more --runs or --steps\n",
                100 * differ);
}
