// Lazy values: names of the train block.  A key is computed at its first use,
// once for each graph.

#include "frontend/expand/expand.h"

#include <string.h>

static Value report_misplaced(const Lazy *lazy, Diagnostic *d) {
    if (lazy->shadowed)
        diag_note(d,
                  "in a train block `%s` is a value of the run; rename the "
                  "definition of this file to read it here",
                  lazy->variable);
    return value_poison();
}

// Variables of a sample, not of the run.
static bool is_of_samples(const char *variable) {
    return strcmp(variable, "output") == 0 || strcmp(variable, "label") == 0 ||
           strcmp(variable, "input") == 0;
}

static Value report_unlabelled(Expansion *e, Span at) {
    Diagnostic *d = report(e->diags, D_data, at, "the table has no label");
    diag_secondary(d, e->data.at, "the data set is from here");
    diag_note(d, "name its column, as in: table(\"data\", label=\"price\")");
    return value_poison();
}

static Value sample_variable(Expansion *e, const char *variable, Span at) {
    origin_set(e, at, NULL);
    if (e->num_named > 0 && strcmp(variable, "input") != 0) {
        report_unnamed(e, variable, at);
        return value_poison();
    }
    if (strcmp(variable, "output") == 0 || e->output.kind == VALUE_POISON)
        return e->output;
    bool label = strcmp(variable, "label") == 0;
    if (label && e->data.unlabelled)
        return report_unlabelled(e, at);
    NodeId n = label ? label_node(e) : input_node(e, INPUT_IMAGE);
    return n == NO_NODE ? value_poison() : value_tensor(n, at);
}

static Diagnostic *report_samples(Expansion *e, const char *name, Span at) {
    return report(e->diags, D_wrong_context, at, "`%s` exists only in the loss",
                  name);
}

bool lazy_has_members(const Lazy *lazy) {
    return is_of_samples(lazy->entry != NULL ? lazy->entry->name
                                             : lazy->variable);
}

Value lazy_member(Expansion *e, Lazy *lazy, Atom name, Span at) {
    const char *variable =
        lazy->entry != NULL ? lazy->entry->name : lazy->variable;
    if (e->phase == PHASE_LOSS)
        return named_value(e, variable, name, at);
    report_samples(e, variable, at);
    return value_poison();
}

static Value variable(Expansion *e, const Lazy *lazy, Span at) {
    if (is_of_samples(lazy->variable))
        return e->phase == PHASE_LOSS
                   ? sample_variable(e, lazy->variable, at)
                   : report_misplaced(lazy,
                                      report_samples(e, lazy->variable, at));
    if (e->graph == NULL) {
        return report_misplaced(
            lazy, report(e->diags, D_wrong_context, at,
                         "`%s` changes during the run and cannot be used here",
                         lazy->variable));
    }
    return schedule_variable(e, lazy->variable);
}

static Value force_entry(Expansion *e, Lazy *lazy) {
    Binding *scope = e->scope, *frame = e->frame;
    Phase phase = e->phase;
    Path *path = e->path;
    e->scope = e->frame = lazy->scope;
    e->phase = lazy->phase;
    e->path = NULL;
    if (lazy->phase == PHASE_INPUT)
        path_begin(e, "input.");
    lazy->progress = IN_PROGRESS;
    lazy->value = expand(e, lazy->entry->value);
    lazy->progress = DONE;
    e->scope = scope;
    e->frame = frame;
    e->phase = phase;
    e->path = path;
    return lazy->value;
}

Value lazy_force(Expansion *e, Lazy *lazy, Span at) {
    lazy->used = true;
    if (lazy->entry == NULL)
        return variable(e, lazy, at);
    if (lazy->progress == IN_PROGRESS) {
        Diagnostic *d = report(e->diags, D_key_cycle, at,
                               "`%s` depends on itself", lazy->entry->name);
        diag_secondary(d, lazy->entry->at, "it is given here");
        if (strcmp(lazy->entry->name, "data") == 0)
            diag_note(d, "a path stands between quotes: \"data/cifar10\"");
        return value_poison();
    }
    if (lazy->phase == PHASE_INPUT && e->phase == PHASE_KEYS) {
        report_samples(e, lazy->entry->name, at);
        return value_poison();
    }
    if (lazy->progress == DONE)
        return lazy->value;
    return force_entry(e, lazy);
}
