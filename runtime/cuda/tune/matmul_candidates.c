// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matmul candidates: in each run all products use their next algorithm.

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>

// A product of the step; equal ones share it.
typedef struct {
    int call, candidate, group;
    double best;
} Product;

typedef struct {
    const RtTuner *t;
    Product *product;
    int count;
    double *seconds; // of each launch, as measured last
} Tune;

static Product *product_of(const Tune *u, int call) {
    const RtCall *calls = u->t->plan->call;
    for (int i = 0; i < u->count; i++)
        if (rt_call_same(&calls[u->product[i].call], &calls[call]))
            return &u->product[i];
    return NULL;
}

static void find_products(Tune *u) {
    for (int i = 0; i < u->t->launches; i++) {
        int call = u->t->call[i];
        if (call >= 0 && rt_matmuls_candidates(u->t->matmuls, call) > 0 &&
            product_of(u, call) == NULL)
            u->product[u->count++] = (Product){.call = call, .group = -1};
    }
}

static double mean_of(const Tune *u, const Product *product) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < u->t->launches; i++)
        if (u->t->call[i] >= 0 && product_of(u, u->t->call[i]) == product) {
            sum += u->seconds[i];
            count++;
        }
    return sum / count;
}

static bool learn(const Tune *u, Product *product, int candidate, RtError *e) {
    const RtCall *c = &u->t->plan->call[product->call];
    RtTuningResults *results = u->t->results;
    double seconds = mean_of(u, product);
    if (product->group < 0)
        product->group = results->count;
    char way[48];
    snprintf(way, sizeof way, "algorithm %d", candidate);
    RtTuningResult *row =
        rt_tuning_results_add(results, product->group, way, seconds, e);
    if (row == NULL)
        return false;
    rt_tuning_result_call(row, c, 0);
    row->number = candidate;
    if (candidate == 0 || rt_clearly_less(seconds, product->best)) {
        product->best = seconds;
        product->candidate = candidate;
    }
    return true;
}

static bool measure_round(const Tune *u, int candidate, bool *any, RtError *e) {
    *any = false;
    for (int i = 0; i < u->count; i++)
        if (candidate <
            rt_matmuls_candidates(u->t->matmuls, u->product[i].call)) {
            rt_matmuls_choose(u->t->matmuls, u->product[i].call, candidate);
            *any = true;
        }
    if (!*any)
        return true;
    if (!u->t->measure(u->t->arg, &(RtCandidate){0}, u->seconds, e))
        return false;
    for (int i = 0; i < u->count; i++)
        if (candidate <
                rt_matmuls_candidates(u->t->matmuls, u->product[i].call) &&
            !learn(u, &u->product[i], candidate, e))
            return false;
    return true;
}

static void choose(const Tune *u, RtChosen *out) {
    for (int i = 0; i < u->count; i++) {
        const Product *p = &u->product[i];
        rt_matmuls_choose(u->t->matmuls, p->call, p->candidate);
        out->algorithm[out->num_algorithms++] = (RtChosenAlgorithm){
            p->call, p->candidate,
            rt_matmuls_digest(u->t->matmuls, p->call, p->candidate)};
        for (int k = 0; k < u->t->results->count; k++) {
            RtTuningResult *row = &u->t->results->row[k];
            row->chosen |=
                row->group == p->group && row->number == p->candidate;
        }
    }
}

bool rt_tune_matmuls(const RtTuner *t, RtChosen *out, RtError *e) {
    size_t launches = (size_t)t->launches + 1;
    Tune u = {.t = t,
              .product = calloc(launches, sizeof *u.product),
              .seconds = calloc(launches, sizeof *u.seconds)};
    bool any = true;
    bool good = (u.product != NULL && u.seconds != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    if (good)
        find_products(&u);
    for (int i = 0; good && any; i++)
        good = measure_round(&u, i, &any, e);
    if (good)
        choose(&u, out);
    free(u.product);
    free(u.seconds);
    return good;
}
