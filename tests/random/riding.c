// Riding: see riding.h.
//
// A kernel that rides is not launched.  In its place the call leaves, for each
// channel of its result, the sum and that of squares, as NVIDIA's library does,
// and what reads the variance makes it of both.
#include "tests/random/riding.h"

#include "runtime/cuda/convolution.h"
#include "tests/codegen/tensors.h"

#include <string.h>

static RidingDevice *riding_of(RtDevice *d) {
    return (RidingDevice *)(void *)d; // device is its first field
}

static bool can_ride(void *arg, int call, unsigned with) {
    (void)arg, (void)call;
    return with == 1u << RT_FUSED_STATISTICS;
}

static bool can_form(void *arg, int norm) {
    (void)arg, (void)norm;
    return false;
}

static void launch(RtDevice *device, int kernel, int grid, const size_t *arg) {
    RidingDevice *d = riding_of(device);
    int now = d->launch++;
    for (int i = 0; i < d->plan->num_fusions; i++)
        if (d->taken[i] && d->plan->fusion[i].step == d->step &&
            d->plan->fusion[i].launch == now)
            return;
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

// Whether most digits of a variance are lost in the sum of squares.
static bool is_lost(double sum, double squares, double count) {
    enum { MOST = 64 };
    double mean = sum / count;
    return squares / count > MOST * (squares / count - mean * mean);
}

static void leave_sums(RidingDevice *d, const RtNorm *norm) {
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
        d->loses |= is_lost(all, of_squares, (double)norm->count);
        sum[c] = (float)all;
        squares[c] = (float)of_squares;
    }
    d->host->write(d->host, norm->sum, sum, channels * sizeof *sum);
    d->host->write(d->host, norm->var, squares, channels * sizeof *squares);
}

static void contract(RtDevice *device, int call, size_t a, size_t b,
                     size_t out) {
    RidingDevice *d = riding_of(device);
    d->launch++;
    d->host->contract(d->host, call, a, b, out);
    for (int i = 0; i < d->plan->num_fusions; i++) {
        const RtFusion *f = &d->plan->fusion[i];
        if (d->taken[i] && f->step == d->step && f->call == call)
            leave_sums(d, &d->plan->norm[f->norm]);
    }
}

static void begin_phase(RtDevice *device, RtPhase phase) {
    RtDevice *host = riding_of(device)->host;
    host->phase(host, phase);
}

bool riding_device(RidingDevice *d, Arena *a, RtDevice *host,
                   const RtPlan *plan, unsigned char *squares) {
    bool any = false;
    *d = (RidingDevice){
        .device = {.name = "riding",
                   .launch = launch,
                   .contract = contract,
                   .phase = begin_phase},
        .host = host,
        .a = a,
        .plan = plan,
        .squares = squares,
        .taken = ARENA_ARRAY(a, (size_t)plan->num_fusions + 1, bool)};
    rt_rides_choose(plan, NULL, can_ride, can_form, NULL, d->taken);
    for (int i = 0; i < plan->num_fusions; i++)
        any |= d->taken[i];
    return any;
}

static void set_squares(const RidingDevice *d, bool on) {
    for (int i = 0; i < d->plan->num_fusions; i++)
        if (d->taken[i])
            d->squares[d->plan->norm[d->plan->fusion[i].norm].number] = on;
}

void riding_run(RidingDevice *d, const Graph *g, int step) {
    d->graph = g;
    d->step = step;
    d->launch = 0;
    set_squares(d, true);
    d->plan->step[step].run(&d->device);
    d->host->sync(d->host);
    set_squares(d, false);
}
