// Loop rerolling: launches of a step that repeat, as those of a recurrence,
// become one loop.
//
// A step is a list of launches.  Launches that repeat and differ in addresses
// only are rerolled: the text has one loop and a table of the addresses.
// Compiling the whole list would take longer than compiling the kernels.

#include "codegen/program.h"

enum {
    LEAST_TRIPS = 16, // layers of a network repeat less often
    MAX_PERIOD = 64   // launches
};

// ---- arguments ----

int launch_arguments(const Kernel *k) {
    return k->text == NULL ? 3 : k->num_args;
}

Argument launch_argument(const Graph *g, const Kernel *k, int i) {
    if (k->text != NULL) {
        const Parameter *p = &k->arg[i];
        bool slice = p->slice != NO_NODE;
        return (Argument){slice ? p->slice : p->node, slice, p->plus};
    }
    const Node *d = called_node(g, k);
    NodeId n = i == 0   ? node_base(g, d->arg[0])
               : i == 1 ? node_base(g, called_second(d))
                        : (NodeId)(d - g->node);
    return (Argument){.node = n};
}

static bool is_equal(Argument a, Argument b) {
    return a.node == b.node && a.slice == b.slice && a.plus == b.plus;
}

// ---- which launches repeat ----

// Whether two launches differ in nothing but addresses.  Any two library calls
// do: a call is known by its number, and these are consecutive.
static bool is_alike(const Kernel *a, const Kernel *b) {
    return a->first == b->first && a->text == b->text &&
           a->num_args == b->num_args &&
           a->group->backward == b->group->backward;
}

// How often `period` launches from i on repeat, at least once.
static int count_trips(const PlannedStep *s, int i, int period) {
    int same = 0;
    for (int j = i; j + period < s->count; j++, same++)
        if (!is_alike(&s->kernel[j], &s->kernel[j + period]) ||
            s->kernel[j].group->backward != s->kernel[i].group->backward)
            break;
    return same / period + 1;
}

// The launches from i on that repeat; one, if there are none.
static LaunchLoop find_loop(const PlannedStep *s, int i) {
    LaunchLoop best = {.first = i, .period = 1, .trips = 1};
    for (int period = 1; period <= MAX_PERIOD; period++) {
        int trips = count_trips(s, i, period);
        if (trips >= LEAST_TRIPS && trips * period > best.trips * best.period)
            best = (LaunchLoop){.first = i, .period = period, .trips = trips};
    }
    return best;
}

// ---- columns ----

static bool argument_varies(const PlannedStep *s, const LaunchLoop *r,
                            int launch, int i) {
    Argument first =
        launch_argument(s->graph, &s->kernel[r->first + launch], i);
    for (int k = 1; k < r->trips; k++)
        if (!is_equal(first,
                      launch_argument(
                          s->graph,
                          &s->kernel[r->first + k * r->period + launch], i)))
            return true;
    return false;
}

// Arguments that differ from one iteration to another have a column.
static void find_columns(const PlannedStep *s, Arena *a, LaunchLoop *r) {
    for (int j = 0; j < r->period; j++) {
        const Kernel *k = &s->kernel[r->first + j];
        r->calls += k->text == NULL;
        for (int i = 0; i < launch_arguments(k); i++) {
            Column c = {j, i};
            if (argument_varies(s, r, j, i))
                ARENA_APPEND(a, r->column, r->columns, c);
        }
    }
}

LaunchLoop *reroll_launches(const PlannedStep *s, Arena *a, int *count) {
    LaunchLoop *list = NULL;
    *count = 0;
    for (int i = 0; i < s->count;
         i += list[*count - 1].period * list[*count - 1].trips) {
        LaunchLoop r = find_loop(s, i);
        if (r.trips > 1)
            find_columns(s, a, &r);
        ARENA_APPEND(a, list, *count, r);
    }
    return list;
}

int count_emitted_launches(const PlannedStep *s, Arena *a) {
    int count, written = 0;
    const LaunchLoop *list = reroll_launches(s, a, &count);
    for (int i = 0; i < count; i++)
        written += list[i].period;
    return written;
}

int loop_column(const LaunchLoop *r, int launch, int argument) {
    for (int i = 0; i < r->columns; i++)
        if (r->column[i].launch == launch && r->column[i].argument == argument)
            return i;
    return -1;
}

Argument loop_argument(const PlannedStep *s, const LaunchLoop *r, int number,
                       int column) {
    Column c = r->column[column];
    return launch_argument(s->graph,
                           &s->kernel[r->first + number * r->period + c.launch],
                           c.argument);
}
