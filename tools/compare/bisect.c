// sinter bisect: finds the first rewrite that makes a comparison fail, by
// halving the number of rewrites, which have a fixed order.  b is built and run
// once.
#include "base/exits.h"
#include "tools/compare/compare.h"
#include "tools/compare/repro.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    Arena *a;
    const Arguments *arguments;
    const char *options; // of a
    const char *start;
    int64_t last; // limit of the last comparison
    Comparison c; // its result
} Bisection;

// The largest number of rewrites of any graph.
static int64_t rewrites_of(const Plan *plan) {
    int64_t most = 0;
    for (int i = 0; i < plan->num_steps; i++)
        if (plan->step[i].graph->rewrites > most)
            most = plan->step[i].graph->rewrites;
    return most;
}

// Compares with so many rewrites; *wrong is the number of wrong tensors.
static int probe(Bisection *b, int64_t limit, int *wrong) {
    Comparison *c = &b->c;
    c->a =
        (Variant){.name = "a",
                  .options = arena_format(b->a, "%s --rewrite-limit=%" PRId64,
                                          b->options, limit)};
    int status = variant_build(b->a, &c->a, b->arguments, &c->runs);
    if (status == EXIT_GOOD)
        status = variant_look(b->a, &c->a, &c->runs, b->start, NULL);
    if (status != EXIT_GOOD)
        return status;
    c->rows = rows_compare(b->a, &c->a, &c->b,
                           is_judged(b->arguments, &c->a.snapshot));
    *wrong = c->rows.wrong;
    b->last = limit;
    if (limit == INT32_MAX)
        fprintf(stderr, "all");
    else
        fprintf(stderr, "%" PRId64, limit);
    fprintf(stderr, " rewrite%s: %d of %d tensors wrong\n",
            limit == 1 ? "" : "s", *wrong, c->rows.count);
    return EXIT_GOOD;
}

// `good` rewrites give no wrong tensor, *bad rewrites some.
static int halve(Bisection *b, int64_t good, int64_t *bad) {
    int status = EXIT_GOOD, wrong = 0;
    while (*bad - good > 1 && status == EXIT_GOOD) {
        int64_t middle = good + (*bad - good) / 2;
        status = probe(b, middle, &wrong);
        if (wrong)
            *bad = middle;
        else
            good = middle;
    }
    return status;
}

static const char *folder_of(const Bisection *b) {
    const Arguments *own = b->arguments;
    return own->out ? own->out
                    : arena_format(b->a, "%s.kernel",
                                   stem_of(b->a, own->operand[0]));
}

static int tell(Bisection *b, int64_t bad, int64_t all) {
    Text t = text_new(b->a);
    const char *folder = folder_of(b);
    const Row *row = row_first_wrong(&b->c.rows);
    if (bad == 0)
        text_add(&t, "the result is wrong without any rewrite");
    else
        text_add(&t,
                 "rewrite %" PRId64 " of %" PRId64
                 " is the first that breaks the result",
                 bad, all);
    first_print(&t, &b->c);
    int status = repro_write(b->a, b->arguments, &b->c.a, row->node, folder);
    if (status == EXIT_GOOD)
        text_add(&t, "  %s/kernel.c has that kernel and its inputs\n", folder);
    lines_print(&t);
    return status == EXIT_GOOD ? EXIT_COMPARE : status;
}

static int search(Bisection *b) {
    int wrong = 0, status;
    int64_t all = INT32_MAX, bad;
    status = probe(b, all, &wrong);
    if (status != EXIT_GOOD)
        return status;
    if (wrong == 0) {
        puts("the result is right with all rewrites");
        return EXIT_GOOD;
    }
    bad = all = rewrites_of(b->c.a.text.host);
    status = probe(b, 0, &wrong);
    if (status == EXIT_GOOD && wrong)
        return tell(b, 0, all);
    if (status == EXIT_GOOD)
        status = halve(b, 0, &bad);
    if (status == EXIT_GOOD && b->last != bad)
        status = probe(b, bad, &wrong);
    return status == EXIT_GOOD ? tell(b, bad, all) : status;
}

int bisect_command(Arena *a, const Arguments *arguments) {
    Size size;
    Bisection b = {
        .a = a,
        .arguments = arguments,
        .options = arguments->a ? arguments->a : "-O1",
        .c = {.b = {.name = "b",
                    .options = arguments->b ? arguments->b : "-O0"}}};
    Comparison *c = &b.c;
    int status = model_size(arguments, &size);
    if (status != EXIT_GOOD)
        return status;
    if (!runs_open(a, arguments, comparison_batch(arguments, &size), &c->runs))
        return EXIT_IO;
    status = variant_build(a, &c->b, arguments, &c->runs);
    if (status == EXIT_GOOD)
        status = variant_start(a, &c->b, &c->runs, &b.start);
    if (status == EXIT_GOOD)
        status = variant_look(a, &c->b, &c->runs, b.start, NULL);
    if (status == EXIT_GOOD)
        status = search(&b);
    runs_close(&c->runs);
    return status;
}
