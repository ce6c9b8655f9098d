// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distributed: several processes, the ranks of a world, train one model.
//
// A launcher starts the ranks and gives each its number.  They meet at rank 0
// (rendezvous), which checks that all run the same trainer, and then keep that
// connection: a rank that dies or hangs ends the others.  A rank computes some
// of the shards of an update; the sums over shards are a fixed binary tree, so
// weights do not depend on the number of ranks.
#ifndef RUNTIME_DISTRIBUTED_H
#define RUNTIME_DISTRIBUTED_H

#include "runtime/host/host.h"
#include "runtime/runtime.h"

// ---- launcher.c ----

enum { RT_MAX_RANKS = 1024, RT_ADDRESS_BYTES = 256 };

// This process among the ranks, from variables that its launcher sets.
typedef struct {
    const char *launcher; // "torchrun", "mpirun", "srun", ...; NULL: none
    int rank, size;       // of the world; 0 and 1 without a launcher
    int local_size;       // ranks of this machine; 0: not known
    int local_rank;       // among them; `rank` if that is not known
    // After the rendezvous: the ranks of each machine, if they follow one
    // another and are a power of two, so that each machine has a subtree of the
    // binary tree over ranks; else 1.
    int near;
    uint64_t job;         // tells runs apart; 0: not known
    // Where rank 0 listens: a name on this machine, or host and port.
    bool local;
    char address[RT_ADDRESS_BYTES];
    int port;
} RtRankInfo;

// Reads the variables of torchrun, OpenMPI, MPICH and Slurm.  False: they
// contradict themselves, EXIT_USAGE.
bool rt_rank_info_read(RtRankInfo *p, RtError *e);

// A hash of a text behind others, the first with RT_HASH_START.
#define RT_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t rt_hash_text(uint64_t h, const char *text);

// ---- rendezvous.c ----

// The first message of a rank to rank 0, which compares the fields that must be
// equal.
typedef struct {
    uint64_t fingerprint; // of model and recipe
    int32_t rank, size, threads;
    int32_t cores; // that it may use
    uint64_t processor[RT_PROCESSORS / 64]; // these, as bits
    // Options that decide which collectives a rank calls.
    int64_t steps, verify_every;
    double epochs;
    int32_t eval_only, init_only, predicts, repeats, tunes;
    char version[32], model[64], device[16], collectives[16], machine[96];
    char reduce[8];
} RtHandshake;

// A machine with the ranks and threads on it, and the processors that these may
// use.
typedef struct {
    uint64_t name; // a hash
    int ranks, threads;
    int cores; // a sum over the ranks, which may share them
    uint64_t processor[RT_PROCESSORS / 64];
} RtMachine;
int rt_machine_processors(const RtMachine *m);

enum { RT_UNIQUE_ID_BYTES = 128 };

// The connections of a rank: of rank 0 to each other one, of another one to
// rank 0.
typedef struct {
    int fd[RT_MAX_RANKS];  // by rank; -1: none
    bool same_machine;     // all are on one
    int near;              // as in RtRankInfo
    int oversubscribed;    // ranks with more threads than cores, on rank 0
    RtMachine crowded;     // the one with most threads per processor, on rank 0
    // The descriptor of rank 0's memory to share, and its process.
    int memory, memory_pid;
    // Rank 0 has chosen collectives of GPUs, and names the communicator.
    bool gpus;
    char unique_id[RT_UNIQUE_ID_BYTES];
} RtRendezvous;

// Waits for all ranks, for 45 seconds.  memory: the descriptor of rank 0's
// memory to share, which is allocated once all are known to be on its machine;
// -1: none.  The caller has called rt_rendezvous_clear, and rank 0 has set
// `gpus` and `unique_id`.  False: a rank is missing or differs, or rank 0 has
// an error (`ends`, else NULL); all connected ranks receive the error.
bool rt_rendezvous(RtRendezvous *m, const RtRankInfo *p, const RtHandshake *own,
                   int memory, const RtError *ends, RtError *e);
// Sets the descriptors to -1, so that there is no connection to close.
void rt_rendezvous_clear(RtRendezvous *m);
void rt_rendezvous_close(RtRendezvous *m);

// ---- collectives.c ----

// The operand of a collective: memory, or, with a device, the bytes of its
// arena from an offset on.  With neither, bytes that are written are dropped.
typedef struct {
    RtDevice *device;
    size_t offset;
    void *memory;
} RtBuffer;

// Copies bytes between memory and b, from offset `at` of b on.
void rt_buffer_read(const RtBuffer *b, size_t at, void *to, size_t bytes);
void rt_buffer_write(const RtBuffer *b, size_t at, const void *from,
                     size_t bytes);
// The bytes of the longest range of so many ranks.
size_t rt_longest(const RtRange *part, int ranks);
// A piece of a range, from byte `at` of it on: at most `most` bytes.
RtRange rt_range_piece(const RtRange *part, size_t at, size_t most);
// Adds the `count` terms of each rank, that of rank i at i * stride, as a
// binary tree over ranks: ((0 + 1) + (2 + 3)) + ...
void rt_ranks_sum(const float *term, size_t stride, int ranks, size_t count,
                  float *to);

// Each rank adds a flag to a sum, and all get the largest: 0, the number of a
// signal that it has caught, a wish for a checkpoint (world.c), or, from here
// on, that it has no data, and why.  Nobody reads the sum then.
enum { RT_NO_DATA = 1 << 24 };

// A back end of collectives.  All ranks call the same functions in the same
// order, each from one thread at a time.  A call that fails prints a message
// and ends the program with EXIT_DEVICE.
typedef struct RtCollectives RtCollectives;
struct RtCollectives {
    const char *name; // "shared memory", "MPI", "NCCL"
    // Starts to replace `count` f32 of each rank by their sum over ranks: that
    // of rt_ranks_sum, or, with `fast`, one in the back end's own order.
    // The buffer and *flag are not the caller's before the sum is finished;
    // then *flag is the largest of all ranks' flags.  One sum at a time.
    void (*start_sum)(RtCollectives *c, const RtBuffer *b, size_t count,
                      int *flag, bool fast);
    // Goes on with the sum, without waiting.  True: it is finished.
    bool (*progress)(RtCollectives *c);
    // Waits for the sum.
    void (*finish)(RtCollectives *c);
    // Sends bytes of one rank to all.
    void (*broadcast)(RtCollectives *c, int from, const RtBuffer *b,
                      size_t bytes);
    // Sends a range of the device's arena from each rank to all: part[i] of
    // rank i, which may be empty.
    void (*share)(RtCollectives *c, RtDevice *d, const RtRange *part);
    // Waits for all ranks.
    void (*barrier)(RtCollectives *c);
    // Collectives that are work of the device, which records them with a step;
    // NULL: this back end has none.  Sets the flag of the next exchange, before
    // the step runs.
    void (*set_flag)(RtCollectives *c, int flag);
    // Each queues work behind that of the device so far, in their order: an
    // exchange of flags, and a sum in the arena, beside later work of the
    // device.  Work of the device after a join waits for them.
    void (*queue_flags)(RtCollectives *c);
    void (*queue_sum)(RtCollectives *c, const RtBuffer *b, size_t count,
                      bool fast);
    void (*queue_join)(RtCollectives *c);
    // Waits for the largest of all ranks' flags.
    int (*await_flag)(RtCollectives *c);
    // Ends work that waits for another rank; from any thread.  NULL: a rank
    // that exits leaves none.
    void (*abort)(RtCollectives *c);
    // good: all ranks close; otherwise work of others is not waited for.
    void (*close)(RtCollectives *c, bool good);
};

// ---- shared_memory.c ----

// Opens what all ranks of one machine share, on rank 0; a descriptor, -1 with
// *e filled.  Then allocates it.
int rt_shared_memory(RtError *e);
bool rt_shared_allocate(int fd, int size, RtError *e);
// NULL: *e is filled.
RtCollectives *rt_shared_open(const RtRankInfo *p, const RtRendezvous *m,
                              RtError *e);

// ---- mpi.c ----

// Ranks that mpirun, mpiexec or srun started.  NULL: *e is filled.
RtCollectives *rt_mpi_open(const RtRankInfo *p, RtError *e);

// ---- sums.c ----

// A thread that runs sums over ranks, one after another, beside computation.
typedef struct RtSums RtSums;

// Ends the program if the system has no thread for it.
RtSums *rt_sums_new(RtCollectives *c, bool fast);
void rt_sums_begin(RtSums *s, const RtBuffer *b, size_t count, int flag);
// Waits for all of them.  *flag: of the last one, if there was any, the largest
// of all ranks' flags.
void rt_sums_finish(RtSums *s, int *flag);
// Whether none is in flight.
bool rt_sums_idle(RtSums *s);
// False: one is in flight, which other ranks may never finish.  It is left, and
// uses the back end.
bool rt_sums_free(RtSums *s);

// ---- ranks with a GPU each ----

typedef struct {
    const char *name; // the word of --collectives
    // Opens the library and names a communicator, which rank 0 sends to all.
    bool (*unique_id)(char id[RT_UNIQUE_ID_BYTES], RtError *e);
    // fast: sums will be, too.  NULL: *e is filled.
    RtCollectives *(*open)(const RtRankInfo *p, const char *id, RtDevice *gpu,
                           bool fast, RtError *e);
} RtGpuCollectives;

// Finds them for the device that a trainer will open.  NULL: it is no GPU.
typedef const RtGpuCollectives *RtGpusOf(const RtTrainer *t,
                                         const RtOptions *o);

// ---- watchdog.c ----

// A thread that tells the others that this rank lives, and ends the program
// with EXIT_DEVICE if a rank ends or is not heard of.
typedef struct RtWatchdog RtWatchdog;

RtWatchdog *rt_watchdog_start(const RtRendezvous *m, const RtRankInfo *p,
                              RtError *e);
// The step that this rank has finished.
void rt_watchdog_step(RtWatchdog *w, int64_t step);
// Collectives to abort before it ends the program; NULL: none from now on.
void rt_watchdog_aborts(RtWatchdog *w, RtCollectives *c);
// Ends the thread.  good: the run is over, and so may be those of others.
void rt_watchdog_stop(RtWatchdog *w, bool good);

// ---- world.c ----

typedef struct RtWorld RtWorld;

// Meets the other ranks.  *to is NULL for a process without a launcher, or with
// one rank.
bool rt_world_open(RtWorld **to, const RtTrainer *t, const RtOptions *o,
                   RtGpusOf *gpus_of, RtError *e);
// Connects the GPUs of all ranks, if rank 0 has chosen so; and leaves them,
// before the device is closed.  good: this rank's run is.  False: a sum that
// other ranks may never finish still uses the device.
bool rt_world_join(RtWorld *w, RtDevice *d, RtError *e);
bool rt_world_leave(RtWorld *w, bool good);
// The number among the ranks of this machine.
int rt_world_local_rank(const RtWorld *w);
// Rank and number of ranks; 0 and 1 for NULL.
int rt_world_rank(const RtWorld *w);
int rt_world_size(const RtWorld *w);
const char *rt_world_back_end(const RtWorld *w); // not for NULL
// Ends the world with this rank's run; a failed one ends the others, unless all
// know of it from a sum.
void rt_world_close(RtWorld *w, bool good);
// Collectives of all ranks; nothing for NULL.
void rt_world_sum(RtWorld *w, const RtBuffer *b, size_t count);
void rt_world_broadcast(RtWorld *w, int from, const RtBuffer *b, size_t bytes);
void rt_world_share(RtWorld *w, RtDevice *d, const RtRange *part);
// A sum between two segments of a step: work of the device if sums are, without
// flags; those of the step's last sum count.
void rt_world_sum_within(RtWorld *w, const RtBuffer *b, size_t count);
// Begins a sum that goes on while this thread computes, after those begun
// before it; not for NULL.  Until they are finished, no other collective is
// called.
void rt_world_begin_sum(RtWorld *w, const RtBuffer *b, size_t count);
void rt_world_finish_sums(RtWorld *w);
// Whether sums in the arena are work of the device.  Then for each update: the
// start, before the step runs, and again if this rank has no data; flags, sums
// of all buckets and a join, which may be recorded with the step; and the
// finish.
bool rt_world_queues(const RtWorld *w);
void rt_world_queue_start(RtWorld *w);
void rt_world_queue_flags(RtWorld *w);
void rt_world_queue_sum(RtWorld *w, const RtBuffer *b, size_t count);
void rt_world_queue_join(RtWorld *w);
void rt_world_queue_finish(RtWorld *w);
// Tells the others that this rank has finished a step, and adopts signals.
void rt_world_step(RtWorld *w, int64_t step);
// Adopts the signal that a rank had caught before the last sum.
void rt_world_agree(const RtWorld *w);
// Whether a rank, which tells all with the next sum, wants a checkpoint after
// the step; after that sum, whether one does: not for NULL.
void rt_world_want_save(RtWorld *w, bool wants);
bool rt_world_saves(const RtWorld *w);
// Tells all ranks with the next sum that this rank has no data: an error of
// that exit status, or a signal (0: none).
void rt_world_fail(RtWorld *w, int status, int signal);
// After a sum: the rank that had no data, -1 if each had, and the status.
int rt_world_failed(const RtWorld *w, int *status);

// ---- owners.c ----

// Ranks that each hold the optimizer states of some optimizer shards.
typedef struct RtOwners RtOwners;

// Tells the device which states other ranks hold, before a call of its
// `needed`. *to is NULL for one process, or if the optimizer is not divided:
// each rank then has all states, and the functions do nothing.
bool rt_owners_open(RtOwners **to, RtWorld *w, const RtPlan *p, RtDevice *d,
                    RtError *e);
void rt_owners_close(RtOwners *o);
// The optimizer shards of this rank; not for NULL.
void rt_owners_shards(const RtOwners *o, int *first, int *count);
// A collective: sends the parameters of each rank's shards to all.
void rt_owners_share(const RtOwners *o);
// While rank 0 reads and writes states by rt_device_read and rt_device_write,
// the others serve, until it ends that.
void rt_owners_serve(const RtOwners *o);
void rt_owners_end(const RtOwners *o);

#endif
