// fail: reports a mistake in the call of the function that it is in.

#include "frontend/functions/functions.h"

// The call of the innermost function, or the one outside the modules of std/
// that led to it; fail itself if there is none.
static Span failed_call(const Expansion *e, const Call *c) {
    const struct CallFrame *a = e->call_stack;
    while (a != NULL && a->outer != NULL && a->outer->is_std)
        a = a->outer;
    return a != NULL && a->at.source != NULL ? a->at : c->at;
}

// Adds a string or a number; false after a report.
static bool add_item(Expansion *e, Text *t, const Value *v) {
    bool number = v->kind == VALUE_NUMBER && v->unit == UNIT_NONE;
    if (v->kind == VALUE_STRING)
        text_add(t, "%s", v->text);
    else if (number)
        text_add(t, "%.9g", v->number);
    else
        report(e->diags, D_wrong_kind, v->at,
               "the sentence of fail is a list of strings and numbers, but "
               "this is %s",
               value_described(*v));
    return v->kind == VALUE_STRING || number;
}

Value lower_fail(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_fail_sentence);
    Text t = text_new(e->arena);
    for (int i = 0; i < list->list.count; i++)
        if (!add_item(e, &t, &list->list.item[i]))
            return value_poison();
    report(e->diags, D_out_of_range, failed_call(e, c), "%s", text_string(&t));
    return value_poison();
}
