// FusingDevice: see fusing_device.h.
//
// A kernel that rides is not launched.  In its place the call leaves, for each
// channel of its result, the sum and that of squares, as NVIDIA's library does,
// and what reads the variance makes it of both.
//
// Kernels of the host that are equal but for the numbers of their variances are
// one function, which asks by the numbers of the first.  So each launch finds
// the same answer at all numbers, and where a kernel reads variances of both
// kinds none of them rides.
#include "tests/random/fusing_device.h"

#include "runtime/cuda/libraries/libraries.h"
#include "tests/codegen/tensors.h"

#include <string.h>

static FusingDevice *fusing_of(RtDevice *d) {
    return (FusingDevice *)(void *)d; // device is its first field
}

static bool can_ride(void *arg, int call, unsigned with) {
    (void)arg, (void)call;
    return with == 1u << RT_FUSED_STATISTICS;
}

static bool can_form(void *arg, int norm) {
    (void)arg, (void)norm;
    return false;
}

// ---- what a kernel is told ----

static int number_of(const FusingDevice *d, int fusion) {
    return d->plan->norm[d->plan->fusion[fusion].norm].number;
}

static bool rides(const FusingDevice *d, int64_t number) {
    for (int i = 0; i < d->plan->num_fusions; i++)
        if (d->taken[i] && number_of(d, i) == number)
            return true;
    return false;
}

enum { VARIANCE = 1, SQUARES = 2 };

// What is left for the variances that a launch reads: one, the other, or both.
static int left_for(const FusingDevice *d, const Group *group) {
    int left = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *node = &d->graph->node[n];
        if (node->op == OP_var_finalize)
            left |=
                rides(d, node_int(node, ATTR_number, 0)) ? SQUARES : VARIANCE;
    }
    return left;
}

static void tell_all(const FusingDevice *d, bool squares) {
    for (int i = 0; i < d->plan->num_norms; i++)
        d->squares[d->plan->norm[i].number] = squares;
}

static void leave_number(FusingDevice *d, int64_t number) {
    for (int i = 0; i < d->plan->num_fusions; i++)
        if (number_of(d, i) == number)
            d->taken[i] = false;
}

// Whether a launch read variances of both kinds, of which it now reads one.
static bool leave_both(FusingDevice *d, const Group *group) {
    if (left_for(d, group) != (VARIANCE | SQUARES))
        return false;
    for (NodeId n = group->first; n <= group->last; n++)
        if (d->graph->node[n].op == OP_var_finalize)
            leave_number(d, node_int(&d->graph->node[n], ATTR_number, 0));
    return true;
}

static void leave_mixed(FusingDevice *d, int launches) {
    bool again = true;
    while (again) {
        again = false;
        for (int k = 0; k < launches; k++)
            again |= leave_both(d, &d->group[k]);
    }
}

// ---- the device ----

static void launch(RtDevice *device, int kernel, int grid, const size_t *arg) {
    FusingDevice *d = fusing_of(device);
    int now = d->launch++;
    for (int i = 0; i < d->plan->num_fusions; i++)
        if (d->taken[i] && d->plan->fusion[i].step == d->step &&
            d->plan->fusion[i].launch == now)
            return;
    tell_all(d, left_for(d, &d->group[now]) == SQUARES);
    d->host->launch(d->host, kernel, grid, arg);
}

// The convolution whose result is there, of so many numbers.
static NodeId find_result(const Graph *g, size_t at, int64_t count) {
    NodeId n = 0;
    while (g->node[n].op != OP_conv || (size_t)g->node[n].offset != at ||
           type_count(g->node[n].type) != count)
        n++;
    return n;
}

static void leave_sums(FusingDevice *d, const RtNorm *norm) {
    size_t channels = (size_t)norm->channels;
    NodeId n = find_result(d->graph, norm->x, norm->channels * norm->count);
    double *x = tensor_read(d->host, d->a, d->graph, n);
    float *sum = ARENA_ARRAY(d->a, channels, float);
    float *squares = ARENA_ARRAY(d->a, channels, float);
    for (size_t c = 0; c < channels; c++) {
        double all = 0, of_squares = 0;
        for (int64_t i = 0; i < norm->count; i++) {
            double one = x[(size_t)i * channels + c];
            all += one;
            of_squares += one * one;
        }
        sum[c] = (float)all;
        squares[c] = (float)of_squares;
    }
    d->host->write(d->host, norm->sum, sum, channels * sizeof *sum);
    d->host->write(d->host, norm->var, squares, channels * sizeof *squares);
}

static void contract(RtDevice *device, int call, size_t a, size_t b,
                     size_t out) {
    FusingDevice *d = fusing_of(device);
    d->launch++;
    d->host->library_call(d->host, call, a, b, out);
    for (int i = 0; i < d->plan->num_fusions; i++) {
        const RtFusion *f = &d->plan->fusion[i];
        if (d->taken[i] && f->step == d->step && f->call == call)
            leave_sums(d, &d->plan->norm[f->norm]);
    }
}

static void begin_phase(RtDevice *device, RtPhase phase) {
    RtDevice *host = fusing_of(device)->host;
    host->phase(host, phase);
}

bool fusing_device(FusingDevice *d, Arena *a, RtDevice *host,
                   const RtPlan *plan, unsigned char *squares, const Graph *g,
                   int step) {
    int launches;
    bool any = false;
    *d = (FusingDevice){
        .device = {.name = "fusing",
                   .launch = launch,
                   .library_call = contract,
                   .phase = begin_phase},
        .host = host,
        .a = a,
        .plan = plan,
        .graph = g,
        .group = graph_groups(g, a, &launches),
        .step = step,
        .squares = squares,
        .taken = ARENA_ARRAY(a, (size_t)plan->num_fusions + 1, bool)};
    rt_fusions_choose(plan, NULL, can_ride, can_form, NULL, d->taken);
    leave_mixed(d, launches);
    for (int i = 0; i < plan->num_fusions; i++)
        any |= d->taken[i];
    return any;
}

void fusing_run(FusingDevice *d) {
    d->launch = 0;
    d->plan->step[d->step].run(&d->device);
    d->host->sync(d->host);
    tell_all(d, false);
}
