// Random programs: fused, unfused and evaluated, they must agree.
//
//   random [FLAGS] FIRST COUNT     the programs of some seeds
//   random [FLAGS] FILE.ir SEED    one graph, with a seed's setup and numbers
//   random --show SEED             prints a seed's graph
//   random --draws FIRST COUNT     how often programs have what
//
// Flags: --faithful runs every thread of the kernels under the race checker,
// --gpu runs them on a GPU, --tiled computes contractions by tile kernels with
// their meaning on the host, in 16 bits, --unfused compiles the unfused plans,
// and --terse counts failures alone.
//
// A program that fails is shrunk and printed, with the command that runs it
// again.  The last line counts what was done.
#define _GNU_SOURCE
#include "base/source.h"
#include "tests/random/draws.h"
#include "tests/random/shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/rt.h"

// What emitted libraries call is found in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

typedef struct {
    Mode mode;
    bool unfused, terse;
    Counts *counts; // of all processes
    int failures;
} Session;

static void print_graph(const Graph *g) {
    Text t = text_new(g->arena);
    graph_print(&t, g);
    fputs(text_string(&t), stdout);
}

static const char *const fate[] = {"agrees", "disagrees", "does not compile",
                                   "dies"};

static const char *const mode[] = {"", " --faithful", " --gpu", " --tiled"};

// Says how a program that fails can be run again, as small as it gets, which
// counts as no other.
static void report(Session *session, Graph *g, const Setup *s,
                   BatchResult result) {
    session->failures++;
    if (session->terse)
        return;
    Graph *least = shrink_graph(g->arena, g, s, session->mode, result);
    printf("seed %u %s; with this graph in a file,\n"
           "    random%s%s FILE.ir %u\n",
           s->seed, fate[result], mode[session->mode],
           s->level ? "" : " --unfused", s->seed);
    print_graph(least);
    Counts before = *session->counts;
    batch_graph(least, s, session->mode, session->counts, false);
    *session->counts = before;
}

// Fused, and unfused where the seed or the user wants it.
static void run_alone(Session *session, uint32_t seed) {
    Arena *a = arena_new();
    Setup s = setup_of(seed);
    Graph *g = setup_graph(a, &s);
    for (s.level = session->unfused || s.plain ? 0 : 1;
         s.level <= !session->unfused; s.level++) {
        BatchResult result =
            batch_graph(g, &s, session->mode, session->counts, session->terse);
        if (result != BATCH_GOOD)
            report(session, g, &s, result);
    }
    arena_free(a);
}

// Programs are compiled some at a time; of those that fail each is run again
// by itself.
static void run_seeds(Session *session, uint32_t first, uint32_t count) {
    enum { TOGETHER = 32 };
    for (uint32_t i = 0; i < count; i += TOGETHER) {
        int some = count - i < TOGETHER ? (int)(count - i) : TOGETHER;
        Counts before = *session->counts;
        BatchResult result = batch_seeds(first + i, some, session->mode,
                                         session->unfused, session->counts);
        if (result == BATCH_WRONG && session->terse)
            session->failures += (int)(session->counts->failed - before.failed);
        if (result == BATCH_GOOD || (result == BATCH_WRONG && session->terse))
            continue;
        *session->counts = before;
        for (int k = 0; k < some; k++)
            run_alone(session, first + i + (uint32_t)k);
    }
}

static int run_file(Session *session, const char *path, uint32_t seed) {
    enum { MAX_BYTES = 1 << 20 };
    Arena *a = arena_new();
    const char *why = NULL;
    Source *source = source_read(a, path, MAX_BYTES, &why);
    Graph *g =
        source ? graph_read(a, source->text, source->length, &why) : NULL;
    if (g == NULL || (why = graph_verify(g, a)) != NULL) {
        fprintf(stderr, "%s: %s\n", path, why);
        return EXIT_FAILURE;
    }
    Setup s = setup_of(seed);
    s.level = session->unfused ? 0 : 1;
    BatchResult result =
        batch_graph(g, &s, session->mode, session->counts, false);
    bool judged = session->counts->infinite == 0;
    printf("%s %s\n", path,
           judged ? fate[result] : "has no finite numbers to be judged by");
    arena_free(a);
    return judged && result == BATCH_GOOD ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int show(uint32_t seed) {
    Arena *a = arena_new();
    Setup s = setup_of(seed);
    printf("# activations %s, stored as %s\n", dtype_name(s.precision),
           dtype_name(s.storage));
    print_graph(setup_graph(a, &s));
    arena_free(a);
    return EXIT_SUCCESS;
}

static void print_counts(const Session *session) {
    const Counts *c = session->counts;
    printf("%ld programs and %ld unfused, of %ld nodes: %ld values, of which a "
           "rounding decides about %ld; %ld programs with statistics of a "
           "library; %ld steps in a row; %ld without finite numbers; "
           "%ld tile kernels, %ld programs without any; %d failed\n",
           c->graphs, c->unfused, c->nodes, c->results, c->unsure, c->fusing,
           c->row, c->infinite, c->tiled, c->untiled, session->failures);
}

static uint32_t number_of(const char *text) {
    return (uint32_t)strtoumax(text, NULL, 10);
}

int main(int argc, char **argv) {
    Session session = {0};
    int at = 1;
    session.counts = mmap(NULL, sizeof(Counts), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--show") == 0 && at + 1 < argc)
            return show(number_of(argv[at + 1]));
        if (strcmp(argv[at], "--draws") == 0 && at + 2 < argc)
            return draws_print(number_of(argv[at + 1]),
                               (int)number_of(argv[at + 2]))
                       ? EXIT_SUCCESS
                       : EXIT_FAILURE;
        if (strcmp(argv[at], "--faithful") == 0)
            session.mode = MODE_FAITHFUL;
        if (strcmp(argv[at], "--gpu") == 0)
            session.mode = MODE_GPU;
        if (strcmp(argv[at], "--tiled") == 0)
            session.mode = MODE_TILED;
        session.unfused |= strcmp(argv[at], "--unfused") == 0;
        session.terse |= strcmp(argv[at], "--terse") == 0;
    }
    if (argc - at != 2 || session.counts == MAP_FAILED) {
        fputs("usage: random [--faithful | --gpu | --tiled] [--unfused] FIRST "
              "COUNT\n",
              stderr);
        return EXIT_FAILURE;
    }
    if (strstr(argv[at], ".ir") != NULL)
        return run_file(&session, argv[at], number_of(argv[at + 1]));
    run_seeds(&session, number_of(argv[at]), number_of(argv[at + 1]));
    print_counts(&session);
    return session.failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
