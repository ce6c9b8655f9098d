// Clauses of the train block: eval, checkpoint and stop.

#include "base/metrics.h"
#include "frontend/foreign.h"
#include "frontend/train/train.h"

#include <string.h>

// ---- times ----

// `every epoch`, for `every 1 epoch`.
static bool is_unit_alone(const Expr *x) {
    return x->kind == EXPR_NAME &&
           (strcmp(x->text, "epoch") == 0 || strcmp(x->text, "step") == 0);
}

bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *subject,
               Time *out) {
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = is_unit_alone(x) ? value_number(0, x->at) : expand(e, x);
    if (v.kind == VALUE_POISON)
        return false;
    if (time_of_value(v, out) && out->count > 0)
        return true;
    Diagnostic *d = report(e->diags, D_key_value, x->at,
                           "%s needs a time with its unit", subject);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number >= 1)
        diag_note(d, "write `%g epoch` or `%g step`", v.number, v.number);
    else
        diag_note(d, "as in: 1 epoch, 500 step, or 10%% of the run");
    return false;
}

// ---- eval ----

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

// METRIC(OUTPUT): metrics of the same sums are of one output.
static bool read_output(Expansion *e, const Expr *call, int id) {
    const Expr *x = call->count == 1 ? call->argument[0].value : call;
    Atom *output = &e->metric_output[metric_info[id].sums];
    int k = 0;
    while (k < e->model->num_outputs && e->model->output[k].name != x->text)
        k++;
    if (x->kind != EXPR_NAME || k == e->model->num_outputs ||
        metric_info[id].sums == SUMS_LOSS) {
        Diagnostic *d =
            metric_info[id].sums == SUMS_LOSS
                ? report(e->diags, D_key_value, x->at,
                         "%s is of all outputs together", metric_info[id].name)
                : key_report(e, x->at, "the output of a metric",
                             "one that the model names");
        Nearest near = nearest_to(x->kind == EXPR_NAME ? x->text : "");
        for (k = 0; k < e->model->num_outputs; k++)
            nearest_offer(&near, e->model->output[k].name);
        nearest_note(&near, d);
        return false;
    }
    if (*output == NULL || *output == x->text) {
        *output = x->text;
        return true;
    }
    report(e->diags, D_not_implemented, x->at,
           "%s is already measured of `%s`: metrics of the same sums are of "
           "one output",
           metric_info[id].name, *output);
    return false;
}

// A metric, or one of a named output.
static int read_metric(Expansion *e, const Expr *x) {
    bool call = x->kind == EXPR_CALL;
    int id = metric_of(call ? x->left : x);
    if (id < 0)
        report_metric(e, x);
    return call && id >= 0 && !read_output(e, x, id) ? -1 : id;
}

static bool read_metrics(Expansion *e, const Entry *k) {
    bool list = k->value->kind == EXPR_LIST, good = list;
    if (!list)
        key_report(e, k->value->at, "`metrics`", "a list, as [accuracy, loss]");
    for (int i = 0; list && i < k->value->count; i++) {
        int id = read_metric(e, k->value->item[i]);
        good &= id >= 0;
        if (id >= 0)
            e->recipe.metrics |= 1u << id;
    }
    return good;
}

// averaged or raw: keywords, not names.
static bool read_weights(Expansion *e, const Entry *k) {
    const Expr *x = k->value;
    e->raw_weights = x->kind == EXPR_NAME && strcmp(x->text, "raw") == 0;
    if (e->raw_weights ||
        (x->kind == EXPR_NAME && strcmp(x->text, "averaged") == 0))
        return true;
    key_report(e, x->at, "`weights`", "averaged or raw");
    return false;
}

static bool read_eval_key(Expansion *e, TrainBlock *t, const Entry *k) {
    if (strcmp(k->name, "metrics") == 0)
        return read_metrics(e, k);
    if (strcmp(k->name, "weights") == 0)
        return read_weights(e, k);
    if (strcmp(k->name, "views") == 0)
        return views_read(e, t, k->value);
    Diagnostic *d =
        report(e->diags, D_unknown_key, k->at, "eval has no key `%s`", k->name);
    Nearest near = nearest_to(k->name);
    nearest_offer(&near, "metrics");
    nearest_offer(&near, "views");
    nearest_offer(&near, "weights");
    nearest_note(&near, d);
    return false;
}

static bool read_eval_keys(Expansion *e, TrainBlock *t, const Entry *eval) {
    bool good = keys_check(e, eval->at, eval->key, eval->num_keys) &&
                keys_check_bare(e, eval->key, eval->num_keys);
    for (int i = 0; i < eval->num_keys; i++)
        good &= read_eval_key(e, t, &eval->key[i]);
    return good;
}

// data.test or data.train
static bool read_on(Expansion *e, const Expr *on) {
    bool data =
        on == NULL || (on->kind == EXPR_MEMBER && on->left->kind == EXPR_NAME &&
                       strcmp(on->left->text, "data") == 0);
    e->recipe.eval_train = on != NULL && data && strcmp(on->text, "train") == 0;
    if (on == NULL || e->recipe.eval_train ||
        (data && strcmp(on->text, "test") == 0))
        return true;
    Diagnostic *d =
        key_report(e, on->at, "the data of eval", "data.test or data.train");
    if (data && strncmp(on->text, "val", 3) == 0)
        diag_note(d, "training samples are held out and evaluated by an option "
                     "of the trainer: --validation=5000, or 10%%");
    return false;
}

static bool read_eval(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "eval");
    e->recipe.eval_every = (Time){1, IN_EPOCHS};
    if (i < 0)
        return true;
    const Entry *eval = &t->entry[i];
    bool good = read_on(e, eval->on);
    good &= read_eval_keys(e, t, eval);
    if (eval->every == NULL) {
        e->recipe.eval_every.count = 0;
        return good;
    }
    return time_read(e, t, eval->every, "eval", &e->recipe.eval_every) && good;
}

// ---- checkpoint ----

static bool read_keep(Expansion *e, TrainBlock *t, const Expr *x, int *keep) {
    int64_t count = 1;
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    if (x != NULL &&
        !key_integer(e, expand(e, x), x->at, "keep", 1, &count))
        return false;
    *keep = (int)count;
    return true;
}

static bool check_metric(Expansion *e, const Expr *x) {
    if (metric_of(x) >= 0)
        return metric_expect(e, x->text, x->at);
    report_metric(e, x);
    return false;
}

// One clause has a time, another a metric.
static bool read_checkpoints(Expansion *e, TrainBlock *t) {
    Recipe *r = &e->recipe;
    bool good = true;
    r->checkpoint_keep = r->best_keep = 1;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *c = &t->entry[i];
        if (c->every != NULL && strcmp(c->name, "checkpoint") == 0)
            good &= time_read(e, t, c->every, "checkpoint",
                              &r->checkpoint_every) &&
                    read_keep(e, t, c->keep, &r->checkpoint_keep);
        if (c->best == NULL)
            continue;
        good &= check_metric(e, c->best) &&
                read_keep(e, t, c->keep, &r->best_keep);
        r->best = c->best->text;
    }
    return good;
}

// ---- stop ----

// Accuracies are fractions.
static bool check_level(Expansion *e, const Expr *x, const char *metric,
                        Value v) {
    bool number = v.kind == VALUE_NUMBER && v.unit == UNIT_NONE;
    bool is_fraction =
        metric_info[metric_find(metric)].unit == METRIC_SHARE;
    if (v.kind == VALUE_POISON)
        return false;
    if (number && (!is_fraction || (v.number >= 0 && v.number <= 1)))
        return true;
    Diagnostic *d =
        report(e->diags, D_key_value, x->at, "%s is compared with %s", metric,
               is_fraction ? "a share, 0 to 100%" : "a number");
    if (number && v.number > 1 && v.number <= 100)
        diag_note(d, "write `%g%%`", v.number);
    return false;
}

// stop when no improvement of METRIC for TIME
static bool read_patience(Expansion *e, TrainBlock *t, const Entry *stop) {
    Time patience;
    if (!check_metric(e, stop->when) ||
        !time_read(e, t, stop->patience, "the patience of stop", &patience))
        return false;
    e->recipe.stop =
        (Stop){.metric = stop->when->text, .patience = patience};
    return true;
}

static bool read_stop(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "stop");
    if (i < 0)
        return true;
    if (t->entry[i].patience != NULL)
        return read_patience(e, t, &t->entry[i]);
    const Expr *x = t->entry[i].when;
    if (x->kind != EXPR_BINARY ||
        (x->op != TOKEN_AT_LEAST && x->op != TOKEN_AT_MOST)) {
        Diagnostic *d = report(e->diags, D_key_value, x->at,
                               "stop needs a metric, `>=` or `<=`, and a "
                               "number");
        diag_note(d, "as in: stop when accuracy >= 94%%, or stop when no "
                     "improvement of loss for 5 epoch");
        return false;
    }
    if (!check_metric(e, x->left))
        return false;
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = expand(e, x->right);
    e->recipe.stop = (Stop){.metric = x->left->text,
                            .above = x->op == TOKEN_AT_LEAST,
                            .value = v.number};
    return check_level(e, x->right, x->left->text, v);
}

bool clauses_read(Expansion *e, TrainBlock *t) {
    bool good = read_eval(e, t);
    good &= read_checkpoints(e, t);
    return good && read_stop(e, t);
}
