// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rendezvous: ranks meet at rank 0, and show that they run the same trainer.
//
// Every other rank connects and sends its hello.  Rank 0 answers all of them
// once the last has come, or as soon as one differs: that they may begin,
// or with the sentence that every rank then ends with.  A connection that sends
// anything else, or nothing for some seconds, is of no rank and is dropped.
#define _GNU_SOURCE

#include "runtime/distributed/distributed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    PROTOCOL = 2,
    RENDEZVOUS_SECONDS = 45, // in which all ranks come
    HELLO_SECONDS = 5,       // to send a hello
    RETURN_SECONDS = 20,     // of rank 0 after it has closed a connection
    POLL_MS = 100,
    MAX_CONNECTIONS = 64,
    // Descriptors of rank 0 beside its connections: files, a GPU's, MPI's.
    OTHER_DESCRIPTORS = 512
};

// The messages of a connection; all ranks run the same kind of machine.  Fields
// before the hello are those of all versions.
typedef struct {
    char magic[8];
    int32_t protocol, bytes;
    uint64_t job; // tells runs apart; 0: not known
    RtHandshake hello;
} Hello;

typedef struct {
    char magic[8];
    int32_t status; // EXIT_GOOD: begin
    int32_t same_machine, near, memory, memory_pid, gpus;
    char unique_id[RT_UNIQUE_ID_BYTES];
    char sentence[RT_MESSAGE_BYTES];
} Answer;

static const char magic[8] = "sinter\n";

// ---- sockets ----

typedef union {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} Address;

// An address on this machine is a name in the abstract namespace of sockets.
static bool find_address(const RtRankInfo *p, Address *to, socklen_t *length,
                         RtError *e) {
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found;
    char port[16];
    memset(to, 0, sizeof *to);
    if (p->local) {
        size_t name = strlen(p->address);
        to->local.sun_family = AF_UNIX;
        if (name + 1 >= sizeof to->local.sun_path)
            return rt_fail(e, EXIT_USAGE, "the name of the run is too long");
        memcpy(to->local.sun_path + 1, p->address, name);
        *length =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name);
        return true;
    }
    snprintf(port, sizeof port, "%d", p->port);
    int why = getaddrinfo(p->address, port, &hint, &found);
    if (why != 0)
        return rt_fail(e, EXIT_USAGE, "MASTER_ADDR: %s: %s", p->address,
                       gai_strerror(why));
    memcpy(to, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static const char *where(const RtRankInfo *p, char *to, size_t room) {
    if (p->local)
        snprintf(to, room, "this machine's socket @%s", p->address);
    else
        snprintf(to, room, "%s, port %d", p->address, p->port);
    return to;
}

// Debian gives a machine's own name the address 127.0.1.1, which others cannot
// reach.
static void widen_address(Address *a) {
    if (a->any.sa_family == AF_INET &&
        a->in.sin_addr.s_addr == htonl(0x7f000101))
        a->in.sin_addr.s_addr = htonl(INADDR_ANY);
}

static int listen_at(const RtRankInfo *p, RtError *e) {
    Address address;
    socklen_t length;
    char at[RT_ADDRESS_BYTES + 40];
    int on = 1;
    if (!find_address(p, &address, &length, e))
        return -1;
    widen_address(&address);
    int fd = socket(address.any.sa_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !p->local)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && bind(fd, &address.any, length) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    rt_fail(
        e, EXIT_DEVICE, "rank 0 cannot wait for the other ranks at %s: %s%s",
        where(p, at, sizeof at), strerror(errno),
        errno == EADDRINUSE && !p->local ? "; set MASTER_PORT to another port"
                                         : "");
    if (fd >= 0)
        close(fd);
    return -1;
}

// The numbers of the ranks that have not come, as text.
static void list_missing(const RtRendezvous *m, int size, char *to,
                         size_t room) {
    size_t length = 0;
    int shown = 0, missing = 0;
    *to = '\0';
    for (int i = 1; i < size; i++) {
        missing += m->fd[i] < 0;
        if (m->fd[i] < 0 && shown < 8) {
            int n = snprintf(to + length, room - length, "%s%d",
                             shown ? ", " : "", i);
            length += n > 0 ? (size_t)n : 0;
            shown++;
        }
    }
    if (missing > shown)
        snprintf(to + length, room - length, " and %d more", missing - shown);
}

// ---- rank 0 ----

// A connection whose hello is not complete.
typedef struct {
    int fd;
    double since;
    size_t got;
    Hello hello;
} Connection;

typedef struct {
    const RtRankInfo *info;
    const RtHandshake *own;
    RtRendezvous *rendezvous;
    int listener, came, num_connections;
    Connection connection[MAX_CONNECTIONS];
    uint64_t machine[RT_MAX_RANKS]; // of each rank, a hash of its name
    int num_machines;
    RtMachine at[RT_MAX_RANKS];
} Host;

// ---- machines ----

int rt_machine_processors(const RtMachine *m) {
    int count = 0;
    for (int i = 0; i < RT_PROCESSORS; i++)
        count += m->processor[i / 64] >> i % 64 & 1;
    return count;
}

static void add_rank(Host *h, const RtHandshake *rank) {
    uint64_t name = rt_hash_text(RT_HASH_START, rank->machine);
    int i = 0;
    while (i < h->num_machines && h->at[i].name != name)
        i++;
    h->num_machines += i == h->num_machines;
    RtMachine *m = &h->at[i];
    h->machine[rank->rank] = m->name = name;
    m->ranks++;
    m->threads += rank->threads;
    m->cores += rank->cores;
    for (int k = 0; k < RT_PROCESSORS / 64; k++)
        m->processor[k] |= rank->processor[k];
}

static double threads_each(const RtMachine *m) {
    return (double)m->threads / (rt_machine_processors(m) + 1e-9);
}

static RtMachine find_crowded(const Host *h) {
    const RtMachine *most = &h->at[0];
    for (int i = 1; i < h->num_machines; i++)
        if (threads_each(&h->at[i]) > threads_each(most))
            most = &h->at[i];
    return *most;
}

static bool differs(RtError *e, const RtHandshake *a, const RtHandshake *b,
                    const char *what, const char *x, const char *y) {
    if (strncmp(x, y, 64) == 0)
        return false;
    rt_fail(e, EXIT_USAGE, "rank %d has %s %.60s, rank %d %.60s", b->rank, what,
            y, a->rank, x);
    return true;
}

static bool numbers_differ(RtError *e, const RtHandshake *a,
                           const RtHandshake *b, const char *what, int x,
                           int y) {
    if (x == y)
        return false;
    rt_fail(e, EXIT_USAGE, "rank %d has %s%d, rank %d %d", b->rank, what, y,
            a->rank, x);
    return true;
}

static bool same_calls(const RtHandshake *a, const RtHandshake *b) {
    return a->steps == b->steps && a->verify_every == b->verify_every &&
           a->epochs == b->epochs && a->eval_only == b->eval_only &&
           a->init_only == b->init_only && a->predicts == b->predicts &&
           a->repeats == b->repeats && a->tunes == b->tunes;
}

// Whether a rank runs another trainer than rank 0.
static bool hello_differs(const RtHandshake *a, const RtHandshake *b,
                          RtError *e) {
    if (differs(e, a, b, "the model", a->model, b->model) ||
        differs(e, a, b, "a trainer of sinter", a->version, b->version) ||
        differs(e, a, b, "the device", a->device, b->device) ||
        differs(e, a, b, "--collectives", a->collectives, b->collectives) ||
        differs(e, a, b, "--reduce", a->reduce, b->reduce) ||
        numbers_differ(e, a, b, "WORLD_SIZE=", a->size, b->size) ||
        numbers_differ(e, a, b, "--threads=", a->threads, b->threads))
        return true;
    if (a->fingerprint != b->fingerprint)
        return !rt_fail(e, EXIT_USAGE,
                        "rank %d has another model or recipe than rank %d: "
                        "build one trainer for all ranks",
                        b->rank, a->rank);
    return !same_calls(a, b) &&
           !rt_fail(e, EXIT_USAGE,
                    "rank %d has other options than rank %d: --steps, "
                    "--epochs, --verify-every, --eval-only, --init-only, "
                    "--predict, --repeat-batch and --tune are for all ranks",
                    b->rank, a->rank);
}

static void drop(Connection *g) {
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
}

// e: the error that ends the rank; NULL: it may begin.
static void answer(int fd, const Host *h, const RtError *e) {
    Answer a = {.status = e != NULL ? e->status : EXIT_GOOD,
                .same_machine = h->rendezvous->same_machine,
                .near = h->rendezvous->near,
                .memory = h->rendezvous->memory,
                .memory_pid = h->rendezvous->memory_pid,
                .gpus = h->rendezvous->gpus};
    memcpy(a.magic, magic, sizeof magic);
    memcpy(a.unique_id, h->rendezvous->unique_id, sizeof a.unique_id);
    snprintf(a.sentence, sizeof a.sentence, "%s", e != NULL ? e->text : "");
    send(fd, &a, sizeof a, MSG_NOSIGNAL);
}

// A rank of an earlier run may still seek its rank 0.
static bool is_of_another_job(const Host *h, const Hello *got) {
    return h->info->job != 0 && got->job != 0 && got->job != h->info->job;
}

static void terminate(RtHandshake *h) {
    h->version[sizeof h->version - 1] = '\0';
    h->model[sizeof h->model - 1] = '\0';
    h->device[sizeof h->device - 1] = '\0';
    h->collectives[sizeof h->collectives - 1] = '\0';
    h->machine[sizeof h->machine - 1] = '\0';
    h->reduce[sizeof h->reduce - 1] = '\0';
}

static bool take_hello(Host *h, Connection *g, RtError *e) {
    const RtHandshake *got = &g->hello.hello;
    terminate(&g->hello.hello);
    if (hello_differs(h->own, got, e))
        return false;
    if (got->rank <= 0 || got->rank >= h->info->size)
        return rt_fail(e, EXIT_USAGE,
                       "a rank says that its number is %d, in a "
                       "world of %d",
                       got->rank, h->info->size);
    if (h->rendezvous->fd[got->rank] >= 0)
        return rt_fail(e, EXIT_USAGE, "two processes say that they are rank %d",
                       got->rank);
    h->rendezvous->fd[got->rank] = g->fd;
    h->rendezvous->oversubscribed += got->threads > got->cores;
    h->rendezvous->same_machine &=
        strncmp(got->machine, h->own->machine, sizeof got->machine) == 0;
    add_rank(h, got);
    h->came++;
    g->fd = -1;
    return true;
}

static bool is_hello(const Hello *h, size_t got) {
    size_t known = got < sizeof h->magic ? got : sizeof h->magic;
    return memcmp(h->magic, magic, known) == 0;
}

// Reads what has come.  False: a rank differs.
static bool read_connection(Host *h, Connection *g, RtError *e) {
    ssize_t n = recv(g->fd, (char *)&g->hello + g->got,
                     sizeof g->hello - g->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    g->got += n > 0 ? (size_t)n : 0;
    if (n <= 0 || !is_hello(&g->hello, g->got)) {
        drop(g);
        return true;
    }
    if (g->got < offsetof(Hello, hello))
        return true;
    bool versioned =
        g->hello.protocol == PROTOCOL && g->hello.bytes == (int)sizeof g->hello;
    if (versioned && g->got < sizeof g->hello)
        return true;
    if (is_of_another_job(h, &g->hello)) {
        RtError other;
        rt_fail(&other, EXIT_USAGE, "rank 0 at this address is of another run");
        answer(g->fd, h, &other);
        drop(g);
        return true;
    }
    return versioned
               ? take_hello(h, g, e)
               : rt_fail(e, EXIT_USAGE,
                         "a rank has a trainer of another version of sinter");
}

static bool accept_connection(Host *h, RtError *e) {
    int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return (errno != EMFILE && errno != ENFILE) ||
               rt_fail(e, EXIT_DEVICE,
                       "rank 0 has no descriptors for connections to %d ranks: "
                       "%s; raise its limit with ulimit -n",
                       h->info->size, strerror(errno));
    if (h->num_connections == MAX_CONNECTIONS) {
        close(fd);
        return true;
    }
    h->connection[h->num_connections++] =
        (Connection){.fd = fd, .since = rt_seconds()};
    return true;
}

// The usual limit of a process is 1,024 descriptors.
static void raise_descriptors(int ranks) {
    struct rlimit limit;
    rlim_t need = (rlim_t)ranks + OTHER_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void drop_slow(Host *h) {
    int kept = 0;
    for (int i = 0; i < h->num_connections; i++) {
        Connection *g = &h->connection[i];
        if (g->fd >= 0 && rt_seconds() > g->since + HELLO_SECONDS)
            drop(g);
        if (g->fd >= 0)
            h->connection[kept++] = *g;
    }
    h->num_connections = kept;
}

// A rank that has come sends nothing more: it has ended.
static bool all_stay(const Host *h, RtError *e) {
    char ignored;
    for (int i = 1; i < h->info->size; i++) {
        int fd = h->rendezvous->fd[i];
        if (fd >= 0 && recv(fd, &ignored, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
            return rt_fail(e, EXIT_DEVICE, "rank %d ended before the run began",
                           i);
    }
    return true;
}

static bool receive(Host *h, RtError *e) {
    struct pollfd set[MAX_CONNECTIONS + 1];
    int count = h->num_connections;
    set[0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    for (int i = 0; i < count; i++)
        set[i + 1] =
            (struct pollfd){.fd = h->connection[i].fd, .events = POLLIN};
    poll(set, (nfds_t)count + 1, POLL_MS);
    for (int i = 0; i < count; i++)
        if (set[i + 1].revents != 0 &&
            !read_connection(h, &h->connection[i], e))
            return false;
    if (set[0].revents != 0 && !accept_connection(h, e))
        return false;
    drop_slow(h);
    return true;
}

static bool wait_for_all(Host *h, RtError *e) {
    double until = rt_seconds() + RENDEZVOUS_SECONDS;
    char missing[80];
    while (h->came + 1 < h->info->size) {
        if (rt_seconds() > until) {
            list_missing(h->rendezvous, h->info->size, missing, sizeof missing);
            return rt_fail(
                e, EXIT_DEVICE, "%d of %d ranks came within %d s; missing: %s",
                h->came + 1, h->info->size, RENDEZVOUS_SECONDS, missing);
        }
        if (!receive(h, e) || !all_stay(h, e))
            return false;
    }
    return true;
}

static int find_near(const Host *h) {
    int size = h->info->size, near = 1;
    while (near < size && h->machine[near] == h->machine[0])
        near++;
    if ((near & (near - 1)) != 0 || size % near != 0)
        return 1;
    for (int i = 0; i < size; i++)
        if (h->machine[i] != h->machine[i / near * near])
            return 1;
    return near;
}

static void answer_all(Host *h, const RtError *e) {
    for (int i = 1; i < h->info->size; i++)
        if (h->rendezvous->fd[i] >= 0)
            answer(h->rendezvous->fd[i], h, e);
    for (int i = 0; i < h->num_connections; i++) {
        Connection *g = &h->connection[i];
        if (g->fd >= 0 && g->got == sizeof(Hello))
            answer(g->fd, h, e);
        drop(g);
    }
}

static bool receive_ranks(RtRendezvous *m, const RtRankInfo *p,
                          const RtHandshake *own, const RtError *ends,
                          RtError *e) {
    Host h = {.info = p, .own = own, .rendezvous = m};
    add_rank(&h, own);
    raise_descriptors(p->size);
    h.listener = listen_at(p, e);
    if (h.listener < 0)
        return false;
    m->same_machine = true;
    m->oversubscribed = own->threads > own->cores;
    bool good = wait_for_all(&h, e);
    if (good && ends != NULL) {
        *e = *ends;
        good = false;
    }
    // MPI connects ranks of several machines.
    if (good && m->memory >= 0 && m->same_machine)
        good = rt_shared_allocate(m->memory, p->size, e);
    m->near = good ? find_near(&h) : 1;
    m->crowded = find_crowded(&h);
    answer_all(&h, good ? NULL : e);
    close(h.listener);
    return good;
}

// ---- another rank ----

static int connect_once(const RtRankInfo *p, RtError *e) {
    Address address;
    socklen_t length;
    if (!find_address(p, &address, &length, e))
        return -1;
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A machine that is cut off does not answer for minutes.
    const struct timeval most = {.tv_sec = HELLO_SECONDS};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (fd >= 0 && connect(fd, &address.any, length) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool transfer(int fd, void *data, size_t bytes, bool sends,
                     double until) {
    char *at = data;
    while (bytes > 0) {
        struct pollfd set = {.fd = fd, .events = sends ? POLLOUT : POLLIN};
        double left = until - rt_seconds();
        if (left <= 0)
            return false;
        poll(&set, 1, POLL_MS);
        ssize_t n = set.revents == 0 ? 0
                    : sends ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, at, bytes, MSG_DONTWAIT);
        if (set.revents != 0 &&
            (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
            return false;
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

// A rank may start before rank 0; another program may answer there.
static bool join(RtRendezvous *m, const RtRankInfo *p, const RtHandshake *own,
                 RtError *e) {
    double until = rt_seconds() + RENDEZVOUS_SECONDS + 2 * HELLO_SECONDS;
    char at[RT_ADDRESS_BYTES + 40];
    Hello hello = {.protocol = PROTOCOL,
                   .bytes = sizeof hello,
                   .job = p->job,
                   .hello = *own};
    Answer answer;
    memcpy(hello.magic, magic, sizeof magic);
    *e = (RtError){0};
    while (rt_seconds() < until) {
        int fd = connect_once(p, e);
        if (fd < 0 && *e->text != '\0')
            return false;
        if (fd >= 0 && transfer(fd, &hello, sizeof hello, true, until) &&
            transfer(fd, &answer, sizeof answer, false, until) &&
            memcmp(answer.magic, magic, sizeof magic) == 0) {
            answer.sentence[sizeof answer.sentence - 1] = '\0';
            m->fd[0] = fd;
            m->memory = answer.memory;
            m->memory_pid = answer.memory_pid;
            m->same_machine = answer.same_machine;
            m->near = answer.near;
            m->gpus = answer.gpus;
            memcpy(m->unique_id, answer.unique_id, sizeof m->unique_id);
            return answer.status == EXIT_GOOD ||
                   rt_fail(e, answer.status, "%s", answer.sentence);
        }
        if (fd >= 0) {
            close(fd);
            if (rt_seconds() + RETURN_SECONDS < until)
                until = rt_seconds() + RETURN_SECONDS;
        }
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
    }
    return rt_fail(e, EXIT_DEVICE, "rank %d does not find rank 0 at %s",
                   p->rank, where(p, at, sizeof at));
}

void rt_rendezvous_clear(RtRendezvous *m) {
    *m = (RtRendezvous){.memory = -1};
    for (int i = 0; i < RT_MAX_RANKS; i++)
        m->fd[i] = -1;
}

bool rt_rendezvous(RtRendezvous *m, const RtRankInfo *p, const RtHandshake *own,
                   int memory, const RtError *ends, RtError *e) {
    m->memory = memory;
    m->memory_pid = (int)getpid();
    return p->rank == 0 ? receive_ranks(m, p, own, ends, e)
                        : join(m, p, own, e);
}

void rt_rendezvous_close(RtRendezvous *m) {
    for (int i = 0; i < RT_MAX_RANKS; i++)
        if (m->fd[i] >= 0)
            close(m->fd[i]);
}
