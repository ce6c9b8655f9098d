// Convolutions: a plan of cuDNN for each call and what rides on it, and the
// addresses that it runs at.

#include "runtime/cuda/convolution.h"

#include "runtime/cuda/matmul.h"

#include <stdlib.h>

// What is planned once for all calls that are alike.
typedef struct {
    RtCall call;
    unsigned with;
    RtTuned asked; // what a tuning named; its call is -1: nothing
    bool compiles; // what must be compiled would have done
    bool strayed;  // it is not what was asked for
    bool good;     // there is a plan
    RtCudnnPlan plan;
} Planned;

// A plan at addresses.
typedef struct Pack {
    struct Pack *next;
    size_t a, b, out;
    void *pack;
} Pack;

enum { NUM_KINDS = RT_FUSED_BACKWARD + 1, LITTLE_ROOM = 512 << 20 };

typedef struct {
    bool mine;
    RtCall as;
    const RtFusion *ride[NUM_KINDS];
    int planned;
    int forms; // the norm whose forms follow it; -1: none
    Pack *pack;
} Call;

struct RtConvolutions {
    const RtCudnn *c;
    const RtPlan *plan;
    const RtTuning *tuning;        // while they are planned
    bool strayed;                  // from it
    struct RtConvolutions *before; // whose plans may be taken meanwhile
    Planned *planned;
    int num_planned, room;
    Call *call;     // of each of the plan's calls
    bool *taken;    // for each of its fusions
    RtForms *forms; // of its norms
    uint64_t arena, workspace;
    int64_t room_bytes; // of the workspace
};

// ---- plans ----

static const RtTuned *tuned_for(const RtConvolutions *v, const RtCall *call,
                                unsigned with) {
    const RtTuning *t = v->tuning;
    for (int i = 0; t != NULL && i < t->num_tuned; i++)
        if (t->tuned[i].with == with &&
            rt_call_same(&v->call[t->tuned[i].call].as, call))
            return &t->tuned[i];
    return NULL;
}

// The plan that was measured, if it is what it was.
static bool plan_tuned(const RtCudnn *c, Planned *p, const RtTuned *t,
                       RtError *e) {
    const RtCudnnWish wish = {.within = LITTLE_ROOM, .first = t->candidate};
    if (!rt_cudnn_plan(c, &p->call, p->with, wish, &p->plan, e))
        return false;
    if (t->engine < 0 ||
        (p->plan.candidate == t->candidate && p->plan.engine == t->engine))
        return true;
    rt_cudnn_plan_free(&p->plan);
    return false;
}

// A plan that is ready and works in little room is wanted before one that must
// be compiled: a trainer should start at once, and which is faster is for
// measuring to say.  What can be done without a fusion does not wait for it.
static bool plan_call(const RtCudnn *c, Planned *p, bool compiles, RtError *e) {
    const RtCudnnWish wish[] = {
        {.only_ready = true, .within = LITTLE_ROOM},
        {.within = LITTLE_ROOM},
        {0},
    };
    const size_t wishes = p->with == 0 ? 3 : compiles ? 2 : 1;
    for (size_t i = 0; i < wishes; i++)
        if (rt_cudnn_plan(c, &p->call, p->with, wish[i], &p->plan, e))
            return true;
    return false;
}

static bool asked_same(const Planned *p, const Planned *q) {
    return p->asked.call == q->asked.call &&
           p->asked.candidate == q->asked.candidate &&
           p->asked.engine == q->asked.engine &&
           (p->with == 0 || p->compiles == q->compiles);
}

static void plan_new(const RtConvolutions *v, Planned *p, RtError *e) {
    const bool named = p->asked.call >= 0;
    p->good = named && plan_tuned(v->c, p, &p->asked, e);
    p->strayed = named && !p->good;
    p->good = p->good || plan_call(v->c, p, p->compiles, e);
}

static int planned_of(const RtConvolutions *v, const RtCall *call,
                      unsigned with) {
    for (int i = 0; i < v->num_planned; i++)
        if (v->planned[i].with == with &&
            rt_call_same(&v->planned[i].call, call))
            return i;
    return -1;
}

// Takes over what was planned before, also that there is no plan.
static bool plan_before(const RtConvolutions *v, Planned *p) {
    int known =
        v->before == NULL ? -1 : planned_of(v->before, &p->call, p->with);
    if (known < 0 || !asked_same(&v->before->planned[known], p))
        return false;
    Planned *old = &v->before->planned[known];
    p->good = old->good;
    p->strayed = old->strayed;
    p->plan = old->plan;
    old->plan = (RtCudnnPlan){0};
    return true;
}

static bool planned_grow(RtConvolutions *v) {
    int room = v->room > 0 ? 2 * v->room : 64;
    if (v->num_planned < v->room)
        return true;
    Planned *more = realloc(v->planned, (size_t)room * sizeof *more);
    if (more == NULL)
        return false;
    v->planned = more;
    v->room = room;
    return true;
}

// The number of the plan for a call, made when it is first asked for; -1 where
// there is none.
static int plan_for(RtConvolutions *v, const RtCall *call, unsigned with,
                    RtError *e) {
    int known = planned_of(v, call, with);
    if (known < 0 && !planned_grow(v)) {
        rt_fail(e, EXIT_MEMORY, "no memory for plans of convolutions");
        return -1;
    }
    if (known < 0) {
        known = v->num_planned++;
        Planned *p = &v->planned[known];
        const RtTuned *t = tuned_for(v, call, with);
        *p = (Planned){.call = *call,
                       .with = with,
                       .asked = t != NULL ? *t : (RtTuned){.call = -1},
                       .compiles = v->tuning != NULL && v->tuning->compiles};
        if (!plan_before(v, p))
            plan_new(v, p, e);
        v->strayed |= p->strayed;
    }
    return v->planned[known].good ? known : -1;
}

static bool can_ride(void *arg, int call, unsigned with) {
    RtConvolutions *v = arg;
    RtError ignored;
    return v->call[call].mine &&
           plan_for(v, &v->call[call].as, with, &ignored) >= 0;
}

static bool can_form(void *arg, int norm) {
    RtConvolutions *v = arg;
    return rt_forms_can(v->forms, norm);
}

// ---- what each call does ----

static bool complain(const RtCall *call, RtError *e) {
    char text[256];
    RtError why = *e;
    return rt_fail(e, why.status, "%s: %.250s",
                   rt_call_text(text, sizeof text, call), why.text);
}

static void take_rides(RtConvolutions *v) {
    for (int i = 0; i < v->plan->num_calls; i++)
        v->call[i].forms = -1;
    for (int i = 0; i < v->plan->num_fusions; i++)
        if (v->taken[i]) {
            const RtFusion *f = &v->plan->fusion[i];
            v->call[f->call].ride[f->kind] = f;
        }
    // Forms are made after the statistics, if anything reads them.
    for (int i = 0; i < v->plan->num_fusions; i++)
        for (int j = 0; j < v->plan->num_fusions; j++) {
            const RtFusion *f = &v->plan->fusion[i], *s = &v->plan->fusion[j];
            if (v->taken[i] && v->taken[j] && f->norm == s->norm &&
                f->kind != RT_FUSED_STATISTICS &&
                s->kind == RT_FUSED_STATISTICS)
                v->call[s->call].forms = f->norm;
        }
}

static bool plan_calls(RtConvolutions *v, RtError *e) {
    for (int i = 0; i < v->plan->num_calls; i++) {
        Call *call = &v->call[i];
        unsigned with = 0;
        if (!call->mine)
            continue;
        for (int k = 0; k < NUM_KINDS; k++)
            if (call->ride[k] != NULL)
                with |= 1u << k;
        call->planned = plan_for(v, &call->as, with, e);
        if (call->planned < 0)
            return complain(&v->plan->call[i], e);
    }
    return true;
}

static bool memory_take(RtConvolutions *v, RtError *e) {
    v->call = calloc((size_t)v->plan->num_calls + 1, sizeof *v->call);
    v->taken = calloc((size_t)v->plan->num_fusions + 1, sizeof *v->taken);
    if (v->call == NULL || v->taken == NULL)
        return rt_fail(e, EXIT_MEMORY, "no memory for plans of convolutions");
    v->forms = rt_forms_new(v->c, v->plan, e);
    return v->forms != NULL;
}

static bool is_mine(const RtPlan *plan, int call, RtCall *as) {
    return rt_convolution_of(&plan->call[call], as) &&
           (plan->call[call].kind != RT_MATMUL || !rt_matmuls_needed(plan));
}

bool rt_convolutions_needed(const RtPlan *plan) {
    RtCall as;
    for (int i = 0; i < plan->num_calls; i++)
        if (is_mine(plan, i, &as))
            return true;
    return false;
}

static bool plan_all(RtConvolutions *v, RtError *e) {
    for (int i = 0; i < v->plan->num_calls; i++)
        v->call[i].mine = is_mine(v->plan, i, &v->call[i].as);
    rt_rides_choose(v->plan, v->tuning != NULL ? v->tuning->wanted : NULL,
                    can_ride, can_form, v, v->taken);
    take_rides(v);
    return plan_calls(v, e);
}

RtConvolutions *rt_convolutions_next(RtConvolutions *before, const RtCudnn *c,
                                     const RtPlan *plan, const RtTuning *tuning,
                                     RtError *e) {
    RtConvolutions *v = calloc(1, sizeof *v);
    bool good = v != NULL ||
                rt_fail(e, EXIT_MEMORY, "no memory for plans of convolutions");
    if (good) {
        *v = (RtConvolutions){
            .c = c, .plan = plan, .tuning = tuning, .before = before};
        good = memory_take(v, e) && plan_all(v, e);
        v->tuning = NULL;
        v->before = NULL;
    }
    rt_convolutions_free(before);
    if (good)
        return v;
    rt_convolutions_free(v);
    return NULL;
}

RtConvolutions *rt_convolutions_new(const RtCudnn *c, const RtPlan *plan,
                                    const RtTuning *tuning, RtError *e) {
    return rt_convolutions_next(NULL, c, plan, tuning, e);
}

bool rt_convolutions_follow(const RtConvolutions *v) {
    return !v->strayed;
}

static void packs_free(const RtCudnn *c, Pack *p) {
    while (p != NULL) {
        Pack *next = p->next;
        if (p->pack != NULL)
            c->destroy(p->pack);
        free(p);
        p = next;
    }
}

void rt_convolutions_free(RtConvolutions *v) {
    if (v == NULL)
        return;
    for (int i = 0; v->call != NULL && i < v->plan->num_calls; i++)
        packs_free(v->c, v->call[i].pack);
    for (int i = 0; i < v->num_planned; i++)
        rt_cudnn_plan_free(&v->planned[i].plan);
    rt_forms_free(v->forms);
    free(v->planned);
    free(v->call);
    free(v->taken);
    free(v);
}

// ---- what the device asks ----

bool rt_convolutions_have(const RtConvolutions *v, int call) {
    return v->call[call].mine;
}

size_t rt_convolutions_workspace(const RtConvolutions *v) {
    int64_t most = rt_forms_workspace(v->forms);
    for (int i = 0; i < v->plan->num_calls; i++)
        if (v->call[i].mine &&
            v->planned[v->call[i].planned].plan.workspace > most)
            most = v->planned[v->call[i].planned].plan.workspace;
    return (size_t)most;
}

// What was made for other addresses is of no more use.
static void move(RtConvolutions *v) {
    for (int i = 0; i < v->plan->num_calls; i++) {
        packs_free(v->c, v->call[i].pack);
        v->call[i].pack = NULL;
    }
    rt_forms_move(v->forms);
}

void rt_convolutions_place(RtConvolutions *v, uint64_t arena,
                           uint64_t workspace) {
    if (v->arena != arena || v->workspace != workspace)
        move(v);
    v->arena = arena;
    v->workspace = workspace;
    v->room_bytes = (int64_t)rt_convolutions_workspace(v);
}

const bool *rt_convolutions_taken(const RtConvolutions *v) {
    return v->taken;
}

bool rt_convolutions_save(const RtConvolutions *v, int step, int launch) {
    for (int i = 0; i < v->plan->num_fusions; i++)
        if (v->taken[i] && v->plan->fusion[i].step == step &&
            v->plan->fusion[i].launch == launch)
            return true;
    return false;
}

void rt_convolutions_squares(const RtConvolutions *v, uint8_t *squares,
                             size_t count) {
    for (size_t i = 0; i < count; i++)
        squares[i] = 0;
    for (int i = 0; i < v->plan->num_fusions; i++) {
        const RtFusion *f = &v->plan->fusion[i];
        int number = v->plan->norm[f->norm].number;
        if (v->taken[i] && f->kind == RT_FUSED_STATISTICS && number >= 0 &&
            (size_t)number < count)
            squares[number] = 1;
    }
}

// ---- running ----

// Where the tensors of a call are that are in one place for all kinds of it.
static void address_operands(const RtConvolutions *v, const Call *call,
                             size_t a, size_t b, size_t out,
                             uint64_t address[RT_NUM_ROLES]) {
    static const RtRole roles[][3] = {
        [RT_CONV] = {RT_ROLE_X, RT_ROLE_WEIGHT, RT_ROLE_Y},
        [RT_CONV_GRAD_INPUT] = {RT_ROLE_Y, RT_ROLE_WEIGHT, RT_ROLE_X},
        [RT_CONV_GRAD_WEIGHT] = {RT_ROLE_Y, RT_ROLE_X, RT_ROLE_WEIGHT},
    };
    address[roles[call->as.kind][0]] = v->arena + a;
    address[roles[call->as.kind][1]] = v->arena + b;
    address[roles[call->as.kind][2]] = v->arena + out;
}

static const RtNorm *norm_of(const RtConvolutions *v, const RtFusion *f) {
    return &v->plan->norm[f->norm];
}

static void address_statistics(const RtConvolutions *v, const RtFusion *f,
                               uint64_t address[RT_NUM_ROLES]) {
    address[RT_ROLE_SUM] = v->arena + norm_of(v, f)->sum;
    address[RT_ROLE_SQUARES] = v->arena + norm_of(v, f)->var;
}

// What batch_norm reads stands in for what it computes.
static void address_prologue(const RtConvolutions *v, const RtFusion *f,
                             uint64_t address[RT_NUM_ROLES]) {
    const RtNorm *n = norm_of(v, f);
    address[RT_ROLE_X] = v->arena + n->x;
    address[RT_ROLE_SCALE] = v->arena + rt_form_at(n, RT_FORM_SCALE);
    address[RT_ROLE_BIAS] = v->arena + rt_form_at(n, RT_FORM_BIAS);
}

static void address_backward(const RtConvolutions *v, const RtFusion *f,
                             uint64_t address[RT_NUM_ROLES]) {
    const RtNorm *n = norm_of(v, f);
    address[RT_ROLE_NORM] = v->arena + n->x;
    address[RT_ROLE_MEAN] = v->arena + rt_form_at(n, RT_FORM_MEAN);
    address[RT_ROLE_DEVIATION] = v->arena + rt_form_at(n, RT_FORM_DEVIATION);
    address[RT_ROLE_SCALE] = v->arena + n->scale;
    address[RT_ROLE_BIAS] = v->arena + n->bias;
    address[RT_ROLE_D_SCALE] = v->arena + f->d_scale;
    address[RT_ROLE_D_BIAS] = v->arena + f->d_bias;
    for (int i = 0; i < 3; i++)
        address[RT_ROLE_UNUSED + i] =
            v->arena + rt_form_at(n, RT_FORM_UNUSED + i);
}

static void *pack_make(const RtConvolutions *v, const Call *call, size_t a,
                       size_t b, size_t out, RtError *e) {
    static void (*const rides[NUM_KINDS])(
        const RtConvolutions *v, const RtFusion *f, uint64_t *address) = {
        [RT_FUSED_STATISTICS] = address_statistics,
        [RT_FUSED_PROLOGUE] = address_prologue,
        [RT_FUSED_PROLOGUE_WEIGHT] = address_prologue,
        [RT_FUSED_BACKWARD] = address_backward,
    };
    uint64_t address[RT_NUM_ROLES] = {0};
    address_operands(v, call, a, b, out, address);
    for (int k = 0; k < NUM_KINDS; k++)
        if (call->ride[k] != NULL)
            rides[k](v, call->ride[k], address);
    return rt_cudnn_pack(&v->planned[call->planned].plan, address, v->workspace,
                         e);
}

static Pack *pack_at(const RtConvolutions *v, Call *call, size_t a, size_t b,
                     size_t out, RtError *e) {
    for (Pack *p = call->pack; p != NULL; p = p->next)
        if (p->a == a && p->b == b && p->out == out)
            return p;
    Pack *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rt_fail(e, EXIT_MEMORY, "no memory for the addresses of a convolution");
        return NULL;
    }
    *p = (Pack){.a = a, .b = b, .out = out, .next = call->pack};
    p->pack = pack_make(v, call, a, b, out, e);
    if (p->pack == NULL) {
        free(p);
        return NULL;
    }
    return call->pack = p;
}

bool rt_convolutions_run(RtConvolutions *v, int number, size_t a, size_t b,
                         size_t out, RtError *e) {
    Call *call = &v->call[number];
    Pack *pack = pack_at(v, call, a, b, out, e);
    if (pack != NULL &&
        rt_cudnn_run(&v->planned[call->planned].plan, pack->pack, e) &&
        (call->forms < 0 ||
         rt_forms_run(v->forms, call->forms, v->arena, v->workspace, e)))
        return true;
    return complain(&v->plan->call[number], e);
}

// Packs are of a graph's tensors, whatever plan runs it.  The plan before
// stays: a step that was recorded may run its code.
bool rt_convolutions_other(RtConvolutions *v, int call) {
    const int before = v->call[call].planned;
    if (!planned_grow(v))
        return false;
    Planned *p = &v->planned[v->num_planned];
    RtError ignored;
    *p = v->planned[before];
    const RtCudnnWish wish = {.within = v->room_bytes > 0 ? v->room_bytes : 1,
                              .first = p->plan.candidate + 1};
    if (!rt_cudnn_plan(v->c, &p->call, p->with, wish, &p->plan, &ignored))
        return false;
    for (int i = 0; i < v->plan->num_calls; i++)
        if (v->call[i].mine && v->call[i].planned == before)
            v->call[i].planned = v->num_planned;
    v->num_planned++;
    return true;
}

int rt_convolutions_of(const RtConvolutions *v, int call) {
    return v->call[call].mine ? v->call[call].planned : -1;
}

bool rt_convolutions_forms(const RtConvolutions *v, int call) {
    return v->call[call].forms >= 0;
}

bool rt_convolutions_planned(const RtConvolutions *v, int i, RtPlanned *out) {
    if (i >= v->num_planned)
        return false;
    const Planned *p = &v->planned[i];
    *out = (RtPlanned){.call = &p->call,
                       .with = p->with,
                       .plan = p->good ? &p->plan : NULL,
                       .first = -1};
    for (int k = v->plan->num_calls - 1; k >= 0; k--)
        if (rt_convolutions_of(v, k) == i) {
            out->calls++;
            out->first = k;
        }
    return true;
}
