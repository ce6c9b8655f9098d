// Plans of cuDNN for every convolution of a trainer and its library fusions, on
// described devices.
//
// usage: TRAINER DESCRIPTION.json...   The trainer is linked with this rt_main
// in place of the runtime's.  The support in passes/plan/library.def must be
// that of the library.  Status 77: there is no library.
#include "runtime/cuda/libraries/libraries.h"
#include "tests/runtime/cuda/libraries/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { NO, READY, COMPILED, VARIES } Support;

enum { STATISTICS, PROLOGUE, BOTH, PROLOGUE_WEIGHT, BACKWARD, NUM_FUSIONS };

static const struct {
    const char *name;
    Support support[4];
} fusion[NUM_FUSIONS] = {
#define FUSION(name, sm_80, sm_90, sm_100, sm_120, result)                     \
    {#name, {sm_80, sm_90, sm_100, sm_120}},
#include "passes/plan/library.def"
};

// The fusions of the library that each of the table is.
static const unsigned parts[NUM_FUSIONS] = {
    [STATISTICS] = 1u << RT_FUSED_STATISTICS,
    [PROLOGUE] = 1u << RT_FUSED_PROLOGUE,
    [BOTH] = 1u << RT_FUSED_PROLOGUE | 1u << RT_FUSED_STATISTICS,
    [PROLOGUE_WEIGHT] = 1u << RT_FUSED_PROLOGUE_WEIGHT,
    [BACKWARD] = 1u << RT_FUSED_BACKWARD,
};

// Questions so far: layers are often alike.
enum { MAX_ASKED = 1000 };
typedef struct {
    RtCall call;
    unsigned with;
} Question;

typedef struct {
    RtCudnn c;
    const RtPlan *plan;
    int column; // of the table; -1: before sm_80
    Question asked[MAX_ASKED];
    int num_asked, num_plans, num_refused, failures;
    int64_t workspace;
} Test;

static bool is_new(Test *t, const RtCall *call, unsigned with) {
    for (int i = 0; i < t->num_asked; i++)
        if (t->asked[i].with == with && rt_call_same(&t->asked[i].call, call))
            return false;
    if (t->num_asked < MAX_ASKED)
        t->asked[t->num_asked++] = (Question){*call, with};
    return true;
}

static void fail(Test *t, const RtCall *c, const char *what, const char *why) {
    t->failures++;
    printf("FAILED %s kind %d n=%d h=%d w=%d c=%d k=%d r=%d: %s\n", what,
           (int)c->kind, c->n, c->h, c->w, c->c, c->k, c->r, why);
}

// Whether the library has a plan for a call, and one whose sums are always in
// the same order, is as expected.
static void ask(Test *t, const RtCall *call, unsigned with, const char *what,
                Support expected) {
    RtCudnnPlan plan;
    RtError e;
    if (expected == COMPILED || !is_new(t, call, with))
        return;
    bool steady =
        rt_cudnn_plan(&t->c, call, with, (RtCudnnCriteria){0}, &plan, &e);
    if (steady) {
        t->num_plans++;
        t->workspace =
            plan.workspace > t->workspace ? plan.workspace : t->workspace;
        rt_cudnn_plan_free(&plan);
    } else {
        t->num_refused++;
    }
    if (steady != (expected == READY))
        fail(t, call, what, steady ? "there is a plan" : e.text);
    if (expected != VARIES)
        return;
    if (!rt_cudnn_plan(&t->c, call, with,
                       (RtCudnnCriteria){.allow_nondeterministic = true}, &plan,
                       &e))
        fail(t, call, what, e.text);
    else if (!plan.nondeterministic)
        fail(t, call, what, "sums in one order");
    rt_cudnn_plan_free(&plan);
}

static void ask_fusion(Test *t, const RtCall *call, int f) {
    Support s = t->column < 0 ? NO : fusion[f].support[t->column];
    ask(t, call, parts[f], fusion[f].name, s);
}

static bool has_statistics(const Test *t, int call) {
    for (int i = 0; i < t->plan->num_fusions; i++)
        if (t->plan->fusion[i].kind == RT_FUSED_STATISTICS &&
            t->plan->fusion[i].call == call)
            return true;
    return false;
}

static void ask_bn_params(Test *t, const RtNorm *norm) {
    RtCudnnPlan plan;
    RtError e;
    if (rt_cudnn_finalize_plan(&t->c, (int)norm->channels, &plan, &e)) {
        rt_cudnn_plan_free(&plan);
        return;
    }
    t->failures++;
    printf("FAILED the parameters of a batch_norm: %s\n", e.text);
}

static void ask_all(Test *t) {
    for (int i = 0; i < t->plan->num_calls; i++)
        if (t->plan->call[i].kind <= RT_CONV_GRAD_WEIGHT)
            ask(t, &t->plan->call[i], 0, "convolution", READY);
    for (int i = 0; i < t->plan->num_fusions; i++) {
        const RtFusion *f = &t->plan->fusion[i];
        const RtCall *call = &t->plan->call[f->call];
        static const int table[] = {
            [RT_FUSED_STATISTICS] = STATISTICS,
            [RT_FUSED_PROLOGUE] = PROLOGUE,
            [RT_FUSED_PROLOGUE_WEIGHT] = PROLOGUE_WEIGHT,
            [RT_FUSED_BACKWARD] = BACKWARD,
        };
        ask_fusion(t, call, table[f->kind]);
        if (f->kind == RT_FUSED_PROLOGUE && has_statistics(t, f->call))
            ask_fusion(t, call, BOTH);
        if (f->kind == RT_FUSED_BACKWARD && t->column >= 0)
            ask_bn_params(t, &t->plan->norm[f->norm]);
    }
}

static int column_of(const char *json) {
    const char *version = strstr(json, "\"deviceVer\":");
    int sm = version ? atoi(version + strlen("\"deviceVer\":")) / 10 : 0;
    return sm >= 120 ? 3 : sm >= 100 ? 2 : sm >= 90 ? 1 : sm >= 80 ? 0 : -1;
}

static int test_device(RtCudnn *c, const RtPlan *plan, const char *path) {
    RtError e;
    Test *t = calloc(1, sizeof *t);
    char *json = file_read(path);
    if (t == NULL || !rt_cudnn_describe(c, json, &e)) {
        printf("FAILED %s: %s\n", path, t ? e.text : "no memory");
        return 1;
    }
    t->c = *c;
    t->plan = plan;
    t->column = column_of(json);
    double start = rt_seconds();
    ask_all(t);
    printf("%s: %d plans, %d refused, workspace %" PRId64 " bytes, %.1f s\n",
           strrchr(path, '/') ? strrchr(path, '/') + 1 : path, t->num_plans,
           t->num_refused, t->workspace, rt_seconds() - start);
    int failures = t->failures;
    free(json);
    free(t);
    return failures;
}

int rt_main(int argc, char **argv, const RtTrainer *trainer) {
    RtCudnn c;
    RtError e;
    int failures = 0;
    const RtPlan *plan = trainer->plan;
    while (strcmp(plan->device, "cuda") != 0)
        plan++;
    if (!rt_cudnn_open(&c, &e)) {
        printf("%s\n", e.text);
        return 77;
    }
    printf("%s: %d calls, %d fusions\n", trainer->model, plan->num_calls,
           plan->num_fusions);
    for (int i = 1; i < argc; i++)
        failures += test_device(&c, plan, argv[i]);
    rt_cudnn_close(&c);
    return failures > 0;
}
