// Metric names: metrics of the list of eval and of clauses, and the outputs
// that they are of.

#include "frontend/foreign.h"
#include "frontend/functions/functions.h"

#include <string.h>

// ---- reading ----

// The metric that an expression names; -1: none.
static int metric_of(const Expr *x) {
    return x->kind == EXPR_NAME ? metric_find(x->text) : -1;
}

static void report_metric(Expansion *e, const Expr *x) {
    Text all = text_new(e->arena);
    for (int i = 0; i < NUM_METRICS; i++)
        text_add(&all, "%s%s",
                 i == 0                ? ""
                 : i + 1 < NUM_METRICS ? ", "
                                       : " or ",
                 metric_info[i].name);
    Diagnostic *d = report(e->diags, D_key_value, x->at, "a metric is %s",
                           text_string(&all));
    if (x->kind == EXPR_NAME && foreign_note(FOREIGN_WORD, x->text, d))
        return;
    Nearest near = nearest_to(x->kind == EXPR_NAME ? x->text : "");
    for (int i = 0; i < NUM_METRICS; i++)
        nearest_offer(&near, metric_info[i].name);
    nearest_note(&near, d);
}

// METRIC(OUTPUT)
static bool read_output(Expansion *e, const Expr *call, int id, Atom *output) {
    const Expr *x = call->count == 1 ? call->argument[0].value : call;
    int k = 0;
    while (k < e->model->num_outputs && e->model->output[k].name != x->text)
        k++;
    if (x->kind != EXPR_NAME || k == e->model->num_outputs ||
        metric_info[id].sums == SUMS_LOSS) {
        Diagnostic *d =
            metric_info[id].sums == SUMS_LOSS
                ? report(e->diags, D_key_value, x->at,
                         "%s is of all outputs together", metric_info[id].name)
                : report(e->diags, D_key_value, x->at,
                         "the output of a metric must be one that the model "
                         "names");
        Nearest near = nearest_to(x->kind == EXPR_NAME ? x->text : "");
        for (k = 0; k < e->model->num_outputs; k++)
            nearest_offer(&near, e->model->output[k].name);
        nearest_note(&near, d);
        return false;
    }
    *output = x->text;
    return true;
}

int metric_read(Expansion *e, const Expr *x, Atom *output) {
    bool call = x->kind == EXPR_CALL;
    int id = metric_of(call ? x->left : x);
    *output = NULL;
    if (id < 0)
        report_metric(e, x);
    return call && id >= 0 && !read_output(e, x, id, output) ? -1 : id;
}

// ---- naming ----

static bool is_listed(const Expansion *e, MetricId id, Atom output) {
    for (int i = 0; i < e->num_listed; i++)
        if (e->listed[i].id == id && e->listed[i].output == output)
            return true;
    return false;
}

// The output that the list names first for a metric; NULL: it names none.
static Atom first_of_metric(const Expansion *e, MetricId id) {
    for (int i = 0; i < e->num_listed; i++)
        if (e->listed[i].id == id && e->listed[i].output != NULL)
            return e->listed[i].output;
    return NULL;
}

Atom listed_output(const Expansion *e, MetricSums sums) {
    for (int i = 0; i < e->num_listed; i++)
        if (metric_info[e->listed[i].id].sums == sums &&
            e->listed[i].output != NULL)
            return e->listed[i].output;
    return NULL;
}

const char *metric_name_of(Expansion *e, MetricId id, Atom output) {
    const char *metric = metric_info[id].name;
    Atom first = first_of_metric(e, id);
    return output == NULL || output == first
               ? metric
               : arena_format(e->arena, "%s.%s", output, metric);
}

// loss and accuracy are measured where the model has them.
const char *metric_name(Expansion *e, MetricId id, Atom output, Span at) {
    const char *metric = metric_info[id].name;
    if (metric_info[id].unit == METRIC_TABLE) {
        report(e->diags, D_key_value, at, "%s is not one number", metric);
        return NULL;
    }
    bool measured = output != NULL
                        ? is_listed(e, id, output)
                        : id == METRIC_loss || id == METRIC_accuracy ||
                              e->recipe.metrics >> id & 1;
    if (measured)
        return metric_name_of(e, id, output);
    if (output != NULL)
        metric = arena_format(e->arena, "%s(%s)", metric, output);
    Diagnostic *d = report(e->diags, D_metric_not_measured, at,
                           "`%s` is not among the metrics of eval", metric);
    diag_note(d, "as in: eval every 1 epoch { metrics = [accuracy, %s] }",
              metric);
    return NULL;
}

const char *metric_measured(Expansion *e, const Expr *x) {
    Atom output;
    int id = metric_read(e, x, &output);
    return id >= 0 ? metric_name(e, (MetricId)id, output, x->at) : NULL;
}
