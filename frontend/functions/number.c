// Functions of numbers and lists that need no graph.

#include "frontend/functions/functions.h"

#include <math.h>

Value number_checked(Expansion *e, double number, Span at) {
    if (number_fits(number))
        return value_number(number, at);
    report(e->diags, D_out_of_range, at, "the result is not finite in f32");
    return value_poison();
}

static Value number_of(const Call *c, double number, bool follows_batch) {
    Value v = value_number(number, c->at);
    v.follows_batch = follows_batch;
    return v;
}

// Numbers: the items of a list, or one number.
typedef struct {
    const Value *item;
    int count;
} Numbers;

static Numbers numbers_of(const Value *v) {
    bool list = v->kind == VALUE_LIST;
    return (Numbers){list ? v->list.item : v, list ? v->list.count : 1};
}

static bool follow_batch(Numbers n) {
    bool some = false;
    for (int i = 0; i < n.count; i++)
        some |= n.item[i].follows_batch;
    return some;
}

static Value fold(const Call *c, Numbers n, double first,
                  double with(double, double)) {
    double number = first;
    for (int i = 0; i < n.count; i++)
        number = with(number, n.item[i].number);
    return number_of(c, number, follow_batch(n));
}

// The largest or smallest of two numbers, or of a list.
static Value extreme(Expansion *e, const Call *c, double with(double, double)) {
    bool list = c->arg[0].kind == VALUE_LIST;
    bool two = c->arg[1].kind == VALUE_NUMBER;
    Numbers n = two ? (Numbers){c->arg, 2} : numbers_of(c->arg);
    if (list != two && n.count > 0)
        return fold(c, n, n.item->number, with);
    Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                           "%s takes two numbers, a list of them, or a tensor "
                           "and its axes",
                           c->builtin->name);
    diag_note(d, "as in: %s(a, b), or %s([a, b, c])", c->builtin->name,
              c->builtin->name);
    return value_poison();
}

static double add(double a, double b) {
    return a + b;
}

static Value sum(Expansion *e, const Call *c) {
    Value v = fold(c, numbers_of(c->arg), 0, add);
    if (c->arg[1].kind == VALUE_NONE)
        return number_fits(v.number) ? v : number_checked(e, v.number, c->at);
    report(e->diags, D_wrong_kind, c->at, "numbers have no axes");
    return value_poison();
}

bool number_function(Expansion *e, const Call *c, Value *v) {
    const Value *x = c->arg;
    switch (builtin_id(c->builtin)) {
    case B_floor:
        *v = number_of(c, floor(x->number), x->follows_batch);
        return true;
    case B_ceil:
        *v = number_of(c, ceil(x->number), x->follows_batch);
        return true;
    case B_max:
    case B_maximum:
        *v = extreme(e, c, fmax);
        return true;
    case B_min:
    case B_minimum:
        *v = extreme(e, c, fmin);
        return true;
    case B_sum:
        *v = sum(e, c);
        return true;
    default:
        return false;
    }
}

// To the nearest whole number, halves to the even one.
Value lower_round(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_round_x);
    (void)e;
    return number_of(c, nearbyint(x->number), x->follows_batch);
}

Value lower_len(Expansion *e, const Call *c) {
    (void)e;
    return value_number(call_arg(c, P_len_list)->list.count, c->at);
}
