// Values of the language during expansion.

#include "frontend/expand/interpreter.h"
#include "frontend/foreign.h"

#include <float.h>
#include <math.h>

Value value_poison(void) {
    return (Value){.kind = VALUE_POISON};
}

Value value_number(double number, Span at) {
    return (Value){.kind = VALUE_NUMBER, .number = number, .at = at};
}

bool number_fits(double number) {
    return fabs(number) <= FLT_MAX;
}

Value value_tensor(NodeId node, Span at) {
    if (node == NO_NODE)
        return value_poison();
    return (Value){.kind = VALUE_TENSOR, .node = node, .at = at};
}

const char *value_kind_name(ValueKind k) {
    switch (k) {
    case VALUE_POISON:
    case VALUE_LAZY:
    case VALUE_NONE:
        return "nothing";
    case VALUE_NUMBER:
        return "a number";
    case VALUE_BOOL:
        return "true or false";
    case VALUE_STRING:
        return "a string";
    case VALUE_WORD:
        return "a word";
    case VALUE_LIST:
        return "a list";
    case VALUE_KNOT:
        return "a knot";
    case VALUE_FUNCTION:
    case VALUE_BUILTIN:
        return "a function";
    case VALUE_TENSOR:
        return "a tensor";
    case VALUE_CALL:
        return "a part of the train block";
    }
    return "nothing";
}

// The initialiser that a value is, called or by its name alone; NULL: none.
static const Builtin *initialiser(Value v) {
    const Builtin *b = v.kind == VALUE_CALL      ? v.call->builtin
                       : v.kind == VALUE_BUILTIN ? v.builtin
                                                 : NULL;
    return b != NULL && b->class == INITIAL ? b : NULL;
}

const char *value_described(Value v) {
    if (initialiser(v) != NULL)
        return class_name(INITIAL);
    return v.kind == VALUE_CALL ? class_name(v.call->builtin->class)
                                : value_kind_name(v.kind);
}

void note_initialiser(Value v, Diagnostic *d) {
    const Builtin *b = initialiser(v);
    if (b != NULL && !foreign_note(FOREIGN_SURPLUS, b->name, d))
        diag_note(d,
                  "an initializer sets a parameter's start value, as in: "
                  "parameter([1, 8], init=%s); noise(x) draws new numbers in "
                  "each step",
                  b->name);
}

bool advise_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject, const char *advice) {
    if (v.kind == kind)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, at, "%s must be %s, but this is %s",
               subject, value_kind_name(kind), value_described(v));
    if (advice != NULL)
        diag_note(d, "%s", advice);
    if (kind == VALUE_TENSOR)
        note_initialiser(v, d);
    return false;
}

bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject) {
    return advise_kind(e, v, kind, at, subject, NULL);
}
