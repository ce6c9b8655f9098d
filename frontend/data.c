// Data sets: what the train block names, and what is known of them here.

#include "frontend/expand.h"

// A data set is kept as its call.
Value lower_data(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c};
}

DataSet data_set(const Call *c) {
    DataSet d = {.format = c->builtin->name, .path = ""};
    BuiltinId id = builtin_id(c->builtin);
    if (id != B_synthetic)
        d.path = c->arg[0].text;
    if (id == B_cifar10)
        d = (DataSet){d.format, d.path, true, {32, 32, 3}, 10, 50000};
    return d;
}
