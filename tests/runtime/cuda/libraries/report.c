// The plans of cuDNN for each call of a trainer on described devices: a line
// for each distinct plan, as in tests/golden/cudnn.
//
// usage: TRAINER DESCRIPTION.json...   The trainer is linked with this rt_main
// in place of the runtime's.  Status 77: there is no library; 1: a call has no
// plan.
#include "runtime/cuda/libraries/libraries.h"
#include "tests/runtime/cuda/libraries/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *device_name(const char *path) {
    const char *name = strrchr(path, '/');
    return name != NULL ? name + 1 : path;
}

static void call_print(const RtCall *c, unsigned with) {
    static const char *const kind[] = {"forward", "images", "weight"};
    static const char *const type[] = {"f32", "f16", "bf16"};
    static const char *const ride[] = {" statistics", " prologue",
                                       " prologue_weight", " backward"};
    printf("%s %s %dx%dx%dx%d by %dx%dx%dx%d", type[c->type], kind[c->kind],
           c->n, c->h, c->w, c->c, c->k, c->r, c->s, c->c / c->groups);
    if (c->stride[0] != 1 || c->stride[1] != 1)
        printf(" stride %d,%d", c->stride[0], c->stride[1]);
    if (c->accumulate)
        printf(" add");
    for (int i = 0; i < 4; i++)
        if (with >> i & 1)
            printf("%s", ride[i]);
}

static void plans_print(const RtConvolutions *v) {
    RtPlanned p;
    for (int i = 0; rt_convolutions_plan_at(v, i, &p); i++) {
        printf("  ");
        call_print(p.call, p.with);
        if (p.plan == NULL)
            printf(": none\n");
        else
            printf(": %d calls, engine %" PRId64 ", workspace %" PRId64
                   "%s%s\n",
                   p.calls, p.plan->engine, p.plan->workspace,
                   p.plan->nondeterministic ? ", varies" : "",
                   p.plan->runtime_compiled ? ", compiled" : "");
    }
}

static int device_report(RtCudnn *c, const RtPlan *plan, const char *path) {
    RtError e;
    char *json = file_read(path);
    bool good = rt_cudnn_describe(c, json, &e);
    RtConvolutions *v = good ? rt_convolutions_new(c, plan, NULL, &e) : NULL;
    free(json);
    printf("%s\n", device_name(path));
    if (v == NULL) {
        printf("  %s\n", e.text);
        return 1;
    }
    RtWorkspaceSize size = {0};
    bool *forked = calloc((size_t)plan->num_calls + 1, sizeof *forked);
    rt_convolutions_size(v, forked, &size);
    free(forked);
    printf("  workspace %zu of own, %zu shared\n", size.own,
           size.shared[RT_MAIN_STREAM]);
    plans_print(v);
    rt_convolutions_free(v);
    return 0;
}

int rt_main(int argc, char **argv, const RtTrainer *trainer) {
    RtCudnn c;
    RtError e;
    int status = 0;
    const RtPlan *plan = trainer->plan;
    while (strcmp(plan->device, "cuda") != 0)
        plan++;
    if (!rt_cudnn_open(&c, &e)) {
        printf("%s\n", e.text);
        return 77;
    }
    printf("cuDNN %zu\n", c.version());
    for (int i = 1; i < argc; i++)
        status |= device_report(&c, plan, argv[i]);
    rt_cudnn_close(&c);
    return status;
}
