// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launcher: the place of a process, from the variables of what started it.
//
// The variables of mpirun come before Slurm's: inside of an allocation, Slurm's
// describe the process that started mpirun's.  Only srun sets the variables of
// a step; a batch script has the others, too.
#define _POSIX_C_SOURCE 200809L

#include "runtime/distributed/distributed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Names of variables; NULL: the launcher has none.
typedef struct {
    const char *name;
    const char *rank, *size, *local_size, *local_rank;
    const char *job[2]; // that tell runs apart
} Launcher;

static const Launcher launchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     "LOCAL_RANK",
     {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     {"PMIX_NAMESPACE", NULL}},
    {"mpiexec",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID",
     {NULL, NULL}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     NULL,
     "SLURM_LOCALID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};
enum { NUM_LAUNCHERS = sizeof launchers / sizeof launchers[0] };

static bool read_count(const char *name, int least, int most, int *to,
                       RtError *e) {
    const char *text = getenv(name);
    char *end;
    long n = text != NULL ? strtol(text, &end, 10) : -1;
    if (text == NULL)
        return rt_fail(e, EXIT_USAGE, "%s is not set", name);
    if (end == text || *end != '\0' || n < least || n > most)
        return rt_fail(e, EXIT_USAGE, "%s=%s is not a number from %d to %d",
                       name, text, least, most);
    *to = (int)n;
    return true;
}

static const Launcher *find(void) {
    for (int i = 0; i < NUM_LAUNCHERS; i++)
        if (getenv(launchers[i].rank) != NULL &&
            getenv(launchers[i].size) != NULL)
            return &launchers[i];
    return NULL;
}

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
uint64_t rt_hash_text(uint64_t h, const char *text) {
    for (; text != NULL && *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}

// 0: the launcher tells nothing.
static uint64_t job_hash(const Launcher *l) {
    uint64_t h = RT_HASH_START;
    bool known = false;
    for (int i = 0; i < 2; i++) {
        const char *value = l->job[i] != NULL ? getenv(l->job[i]) : NULL;
        known |= value != NULL;
        h = rt_hash_text(h, value);
    }
    return known ? h : 0;
}

// Ranks of one machine have the same parent.
static uint64_t parent_hash(void) {
    char parent[32];
    snprintf(parent, sizeof parent, "%ld", (long)getppid());
    return rt_hash_text(RT_HASH_START, parent);
}

// The first host of "node[01-04,07],other": node01.
static void first_host(const char *list, char *to, size_t room) {
    size_t stem = strcspn(list, "[,");
    size_t digits =
        list[stem] == '[' ? strspn(list + stem + 1, "0123456789") : 0;
    snprintf(to, room, "%.*s%.*s", (int)stem, list, (int)digits,
             list + stem + (digits > 0));
}

// torchrun's own store listens on MASTER_PORT.
static bool port_is_taken(void) {
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    return agent != NULL && strcmp(agent, "True") == 0;
}

static bool find_address(RtRankInfo *p, RtError *e) {
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    const char *step = getenv("SLURM_STEP_NODELIST");
    const char *nodes = step != NULL ? step : getenv("SLURM_JOB_NODELIST");
    if (p->local) {
        snprintf(p->address, sizeof p->address, "sinter-%ld-%016llx",
                 (long)getuid(),
                 (unsigned long long)(p->job != 0 ? p->job : parent_hash()));
        return true;
    }
    if (host != NULL)
        snprintf(p->address, sizeof p->address, "%s", host);
    else if (nodes != NULL)
        first_host(nodes, p->address, sizeof p->address);
    else
        return rt_fail(e, EXIT_USAGE,
                       "%s starts ranks on several machines: set MASTER_ADDR "
                       "to the host of rank 0, and MASTER_PORT",
                       p->launcher);
    if (port != NULL && !read_count("MASTER_PORT", 1, 65534, &p->port, e))
        return false;
    if (port == NULL)
        p->port = 20000 + (int)(p->job % 12000);
    p->port += port != NULL && port_is_taken();
    return true;
}

bool rt_rank_info_read(RtRankInfo *p, RtError *e) {
    const Launcher *l = find();
    *p = (RtRankInfo){.size = 1};
    if (l == NULL)
        return true;
    p->launcher = l->name;
    if (!read_count(l->size, 1, RT_MAX_RANKS, &p->size, e) ||
        !read_count(l->rank, 0, p->size - 1, &p->rank, e))
        return false;
    if (l->local_size != NULL && getenv(l->local_size) != NULL &&
        !read_count(l->local_size, 1, p->size, &p->local_size, e))
        return false;
    p->local_rank = p->rank;
    if (getenv(l->local_rank) != NULL &&
        !read_count(l->local_rank, 0, p->size - 1, &p->local_rank, e))
        return false;
    const char *nodes = getenv("SLURM_STEP_NUM_NODES");
    if (p->local_size == 0 && l->local_size == NULL && nodes != NULL &&
        strcmp(nodes, "1") == 0)
        p->local_size = p->size;
    p->local = p->local_size == p->size;
    p->job = job_hash(l);
    return p->size == 1 || find_address(p, e);
}
