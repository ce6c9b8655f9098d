// Values of the language during expansion.

#include "frontend/value/value.h"

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
