// Schedules: against PyTorch's schedulers, stored in tests/golden/numbers, and
// exact at both ends.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A schedule as the learning rate of a run.
typedef struct {
    Loaded loaded;
    const Graph *graph;
    double steps, epoch_steps;
} Scheduled;

static Scheduled schedule_new(const char *text, double steps, double epoch) {
    Setting setting[] = {{"lr", text}, {"epochs", "30"}};
    Loaded l = load_with("image |> flatten |> linear(2)", "", setting, 2);
    ck_assert_msg(l.diags.count == 0, "%s: %s", text, codes_of(&l));
    return (Scheduled){l, l.program->stage[0].train, steps, epoch};
}

static void set(const Graph *g, double **leaf, const char *name,
                double *value) {
    NodeId n = graph_find(g, name);
    if (n != NO_NODE)
        leaf[n] = value;
}

// The learning rate of an update; with round, in f32.
static double rate_at(Scheduled *s, double step, bool round) {
    const Graph *g = s->graph;
    Arena *a = arena_new();
    double **leaf = ARENA_ARRAY(a, g->count, double *), rate = NAN;
    set(g, leaf, "run.step", &step);
    set(g, leaf, "run.steps", &s->steps);
    set(g, leaf, "run.epoch_steps", &s->epoch_steps);
    double **value = graph_eval(g, a, leaf, round);
    NodeId shown = graph_find(g, "metric.lr");
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == shown)
            rate = value[n][0];
    arena_free(a);
    return rate;
}

// ---- PyTorch ----

static char *read_numbers(Arena *a) {
    const char *source = getenv("SINTER_SOURCE");
    const char *path = arena_format(a, "%s/tests/golden/numbers/schedules.txt",
                                    source ? source : ".");
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot read %s", path);
    enum { MOST = 1 << 20 };
    char *text = ARENA_ARRAY(a, MOST, char);
    size_t length = fread(text, 1, MOST - 1, f);
    ck_assert(length > 0 && length < MOST - 1 && !ferror(f));
    fclose(f);
    return text;
}

// Errors of a schedule are relative to its largest value: near 0, f32 leaves no
// more digits of the cosine.
static void check_case(const char *head, char *numbers) {
    double steps, epoch, want[64], most = 0;
    int at = 0, count = 0;
    ck_assert_int_eq(
        sscanf(head, "steps = %lf, epoch = %lf, lr = %n", &steps, &epoch, &at),
        2);
    for (char *end; count < 64; numbers = end, count++) {
        want[count] = strtod(numbers, &end);
        if (end == numbers)
            break;
        most = fmax(most, fabs(want[count]));
    }
    ck_assert_double_eq(count, steps);
    Scheduled s = schedule_new(head + at, steps, epoch);
    for (int i = 0; i < count; i++) {
        double exact = rate_at(&s, i, false), single = rate_at(&s, i, true);
        ck_assert_msg(fabs(exact - want[i]) <= 1e-9 * most,
                      "%s: update %d has %.17g and not %.17g", head, i, exact,
                      want[i]);
        ck_assert_msg(fabs(single - want[i]) <= 1e-6 * most,
                      "%s: update %d has %.9g in f32 and not %.9g", head, i,
                      single, want[i]);
    }
    arena_free(s.loaded.arena);
}

START_TEST(schedules_are_pytorchs) {
    Arena *a = arena_new();
    int count = 0;
    char *line = strtok(read_numbers(a), "\n");
    for (; line != NULL; line = strtok(NULL, "\n")) {
        if (*line == '#')
            continue;
        char *numbers = strtok(NULL, "\n");
        ck_assert_ptr_nonnull(numbers);
        check_case(line, numbers);
        count++;
    }
    ck_assert_int_ge(count, 15);
    arena_free(a);
}
END_TEST

// ---- ends ----

// In f32, without any rounding, in a run of 2343 steps, 97 per epoch.
static const struct {
    const char *text;
    double step, value;
} exact[] = {
    {"cosine(0.4, to=0.001)", 0, 0.4},
    {"cosine(0.4, to=0.001, until=7 epoch)", 679, 0.001},
    {"cosine(0.4, to=0.001, until=7 epoch)", 2342, 0.001},
    {"cosine(0.4, to=0.001, since=7 epoch)", 679, 0.4},
    {"poly(0.3, to=0.07, power=0.7)", 0, 0.3},
    {"poly(0.3, to=0.07, power=0.7, until=679 step)", 679, 0.07},
    {"one_cycle(0.3, warmup=7 epoch, start=0.1, end=0.07)", 0, 0.1},
    {"one_cycle(0.3, warmup=7 epoch, start=0.1, end=0.07)", 678, 0.3},
    {"one_cycle(0.3, warmup=7 epoch, start=0.1, end=0.07)", 2342, 0.07},
    {"piecewise(0: 0.2, 7 epoch: 1, 1: 0.07)", 0, 0.2},
    {"piecewise(0: 0.2, 7 epoch: 0.7, 1: 0.07)", 679, 0.7},
    {"piecewise(0: 0.2, 7 epoch: 0.7, 2000 step: 0.07)", 2000, 0.07},
    {"piecewise(0: 0.2, 7 epoch: 0.7, 9 epoch: 0.7, 1: 0)", 777, 0.7},
    {"cyclic(0.1, 0.3, period=13 step)", 169, 0.1},
    {"cyclic(0.1, 0.3, period=14 step)", 77, 0.3},
    {"cyclic(0.1, 0.3, period=13 step, rise=1)", 169, 0.1},
    {"cyclic(0.1, 0.3, period=13 step, rise=0)", 169, 0.3},
    {"warmup(0.3, 7 epoch)", 0, 0},
    {"warmup(0.3, 7 epoch)", 679, 0.3},
    {"warmup(0.3, 0 step)", 0, 0.3},
    {"step(0.3, every=7 epoch)", 678, 0.3},
    {"exponential(0.3, 0.9)", 0, 0.3},
};

START_TEST(ends_are_exact) {
    Scheduled s = schedule_new(exact[_i].text, 2343, 97);
    ck_assert_double_eq(rate_at(&s, exact[_i].step, true),
                        dtype_round(F32, exact[_i].value));
    arena_free(s.loaded.arena);
}
END_TEST

// ---- arithmetic ----

// In a run of 100 steps, 50 per epoch.
static const struct {
    const char *text;
    double step, value;
} composed[] = {
    {"warmup(cosine(0.4), 10 step) / 2", 5, 0.1 * 0.9938441702975689},
    {"cosine(0.4) |> warmup(1 epoch)", 25, 0.2 * 0.8535533905932737},
    {"cyclic(0, cosine(1), period=1 epoch)", 75, 0.14644660940672627},
    // No evaluation has reduced it.
    {"plateau(cosine(0.4))", 25, 0.4 * 0.8535533905932737},
    {"piecewise(0: 1, 50%: exponential(1, 0.5), 1: 0)", 50, 0.5},
    {"step(0.1 * (1 - progress), every=50%) + step / 100", 50, 0.505},
    {"exponential(1, 0.25, every=50%)", 25, 0.5},
};

START_TEST(schedules_compose) {
    Scheduled s = schedule_new(composed[_i].text, 100, 50);
    ck_assert_double_eq_tol(rate_at(&s, composed[_i].step, false),
                            composed[_i].value, 1e-12);
    arena_free(s.loaded.arena);
}
END_TEST

// ---- the end of the run ----

// The warnings about times past a run of 3 epochs, or of 100 steps, for a
// schedule of the rate and for other keys.
static const struct {
    const char *lr, *keys;
    bool steps;
    int warnings;
} late[] = {
    {"cosine(0.1) |> warmup(4 epoch)", "", false, 1},
    {"cosine(0.1) |> warmup(3 epoch)", "", false, 0},
    {"cosine(0.1) |> warmup(99%)", "", false, 0},
    {"cosine(0.1, since=1 epoch, until=3.5 epoch)", "", false, 1},
    {"poly(0.1, since=4 epoch, until=5 epoch)", "", false, 2},
    {"one_cycle(0.1, warmup=4 epoch)", "", false, 1},
    {"piecewise(0: 0, 2 epoch: 1, 4 epoch: 0, 5 epoch: 1)", "", false, 2},
    {"piecewise(0: 0, 2 epoch: 1, 3 epoch: 0)", "", false, 0},
    {"step(0.1, milestones=[1 epoch, 4 epoch])", "", false, 1},
    {"step(0.1, every=4 epoch)", "", false, 0},
    {"exponential(0.1, 0.9, every=4 epoch)", "", false, 0},
    {"cyclic(0.1, 0.2, period=4 epoch)", "", false, 0},
    {"plateau(0.1, patience=4 epoch)", "", false, 0},
    {"warmup(0.1, 101 step)", "", true, 1},
    {"warmup(0.1, 100 step)", "", true, 0},
    // Here only the trainer knows the steps of an epoch.
    {"warmup(0.1, 900 step)", "", false, 0},
    {"warmup(0.1, 9 epoch)", "", true, 0},
    {"0.1", "average = ema(0.9, start=4 epoch)", false, 1},
    {"0.1", "average = ema(0.9, every=4 epoch)", false, 0},
    {"0.1", "freeze \"linear_1.bias\" after 4 epoch", false, 1},
    {"0.1", "freeze \"linear_1.bias\" after 3 epoch", false, 0},
};

START_TEST(times_after_the_end_are_reported) {
    Setting setting[] = {{"lr", late[_i].lr},
                         late[_i].steps ? (Setting){"steps", "100"}
                                        : (Setting){"epochs", "3"}};
    Loaded l =
        load_with("image |> flatten |> linear(2)", late[_i].keys, setting, 2);
    int warnings = 0;
    ck_assert_msg(l.program != NULL, "case %d: %s", _i, codes_of(&l));
    for (int i = 0; i < l.diags.count; i++)
        warnings += strcmp(l.diags.list[i]->code, "W0608") == 0;
    ck_assert_msg(warnings == late[_i].warnings, "%s %s: %d warnings, not %d",
                  late[_i].lr, late[_i].keys, warnings, late[_i].warnings);
    arena_free(l.arena);
}
END_TEST

Suite *schedule_suite(void) {
    Suite *s = suite_create("schedule");
    TCase *t = tcase_create("schedule");
    tcase_add_test(t, schedules_are_pytorchs);
    tcase_add_loop_test(t, ends_are_exact, 0, sizeof exact / sizeof exact[0]);
    tcase_add_loop_test(t, schedules_compose, 0,
                        sizeof composed / sizeof composed[0]);
    tcase_add_loop_test(t, times_after_the_end_are_reported, 0,
                        sizeof late / sizeof late[0]);
    suite_add_tcase(s, t);
    return s;
}
