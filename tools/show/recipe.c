// Recipe: evaluates the numbers of an optimizer at an update.
//
// The schedules are part of the graph.  A copy with only the nodes that the
// numbers depend on is evaluated in double, as a step of the whole model would
// take long.
#include "tools/show/recipe.h"
#include "base/exits.h"
#include "tools/device.h"
#include "tools/show/inspect.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ASSUMED_UPDATES = 100 };
static const double MAX_UPDATES = 0x1p53; // distinct rows

// ---- the run ----

static void run_find(Recipes *out, const Recipe *r,
                     const Arguments *arguments) {
    out->samples =
        arguments->samples.given ? arguments->samples.value : epoch_samples(r);
    out->known = out->samples > 0;
    out->epoch_updates = recipe_epoch_updates(r, out->samples);
    if (out->epoch_updates < 1)
        out->epoch_updates = out->known ? 1 : ASSUMED_UPDATES;
    double length = r->length.unit == IN_EPOCHS
                        ? r->length.count * (double)out->epoch_updates
                        : r->length.count;
    out->updates =
        length < MAX_UPDATES ? (int64_t)ceil(length) : (int64_t)MAX_UPDATES;
}

// ---- rows ----

static RecipeRow *row_add(Arena *a, Recipes *r, const char *name,
                          const Node *from, NodeId node) {
    ARENA_APPEND(a, r->row, r->count,
                 ((RecipeRow){.name = name,
                              .node = node,
                              .file = from->from.file,
                              .line = from->from.line}));
    return &r->row[r->count - 1];
}

// The first node of an earlier optimizer with the same numbers, or NULL.
static const Node *same_before(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    for (NodeId i = 0; i < n; i++) {
        const Node *other = &g->node[i];
        if (other->op == d->op &&
            memcmp(other->arg + 1, d->arg + 1,
                   (size_t)(d->num_args - 1) * sizeof *d->arg) == 0)
            return other;
    }
    return NULL;
}

static void optimizer_rows(Arena *a, Recipes *r, const Graph *g, NodeId n) {
    const Node *d = &g->node[n], *first = same_before(g, n);
    int scalars = first ? 0 : optimizer_num_scalars(d->op);
    for (int i = 1; i <= scalars; i++) {
        const char *name = arena_format(a, "%s %s", op_info[d->op].name,
                                        optimizer_scalar(d->op, i));
        // A constant may have several uses; the rate's line is that of its
        // argument.
        RecipeRow *row = row_add(a, r, name, &g->node[d->arg[1]], d->arg[i]);
        row->first = d;
        row->of = node_text(&g->node[d->arg[0]], ATTR_name);
    }
    for (int i = 0; i < r->count; i++)
        r->row[i].num_parameters += r->row[i].first == (first ? first : d);
}

static void rows_find(Arena *a, Recipes *r, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_assign) {
            const char *name = node_text(&g->node[d->arg[0]], ATTR_name);
            if (strcmp(name, "metric.lr") == 0)
                row_add(a, r, "lr", d, d->arg[1]);
        } else if (d->op == OP_clip) {
            row_add(a, r, arena_format(a, "clip %s", node_text(d, ATTR_mode)),
                    d, d->arg[0]);
        } else if (op_info[d->op].traits & OPTIMIZES) {
            optimizer_rows(a, r, g, n);
        }
    }
}

// Copies the nodes on which the rows depend into a graph of its own.
static void graph_find_rows(Arena *a, Recipes *r, const Graph *g) {
    bool *needed = ARENA_ARRAY(a, g->count, bool);
    NodeId *now = ARENA_ARRAY(a, g->count, NodeId);
    for (int i = 0; i < r->count; i++)
        needed[r->row[i].node] = true;
    for (NodeId n = g->count; n-- > 0;)
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    r->graph = graph_like(g);
    for (NodeId n = 0; n < g->count; n++)
        now[n] = needed[n] ? graph_copy(r->graph, g, n, now) : NO_NODE;
    for (int i = 0; i < r->count; i++)
        r->row[i].node = now[r->row[i].node];
}

Recipes recipe_find(Arena *a, const Program *p, const Plan *plan,
                    const Arguments *arguments) {
    Recipes r = {0};
    const Graph *train = plan_graph(plan, p->stage[0].train->name);
    NodeId scale = train ? graph_find(train, "run.loss_scale") : NO_NODE;
    if (scale != NO_NODE)
        r.loss_scale = node_float(&train->node[scale], ATTR_init, 0);
    run_find(&r, &p->recipe, arguments);
    rows_find(a, &r, p->stage[0].train);
    graph_find_rows(a, &r, p->stage[0].train);
    return r;
}

// ---- numbers ----

// The numbers of all rows at an update, in a.
static double *recipe_at(Arena *a, const Recipes *r, int64_t update) {
    Arena *scratch = arena_new();
    double **leaf = ARENA_ARRAY(scratch, r->graph->count, double *);
    const struct {
        const char *name;
        int64_t value;
    } run[] = {{"run.step", update},
               {"run.updates", update},
               {"run.steps", r->updates},
               {"run.epoch_steps", r->epoch_updates}};
    for (size_t i = 0; i < sizeof run / sizeof run[0]; i++) {
        NodeId n = graph_find(r->graph, run[i].name);
        if (n == NO_NODE)
            continue;
        leaf[n] = ARENA_NEW(scratch, double);
        leaf[n][0] = (double)run[i].value;
    }
    double **value = graph_eval(r->graph, scratch, leaf, false);
    double *out = ARENA_ARRAY(a, (size_t)r->count + 1, double);
    for (int i = 0; i < r->count; i++)
        out[i] = value[r->row[i].node][0];
    arena_free(scratch);
    return out;
}

// ---- the stage ----

enum { MAX_COLUMNS = 64, DEFAULT_COLUMNS = 9 };

// Updates evenly over the run.
static int updates_even(const Recipes *r, int64_t *at) {
    int count =
        r->updates < DEFAULT_COLUMNS ? (int)r->updates : DEFAULT_COLUMNS;
    for (int i = 0; i < count; i++)
        at[i] = count > 1 ? (r->updates - 1) * i / (count - 1) : 0;
    return count;
}

// Reads an update of the list; false after a message.  The last valid one is
// the end of the run.
static bool update_parse(const Show *s, const Recipes *r, const char **list,
                         int64_t *at) {
    char *end;
    long long n = strtoll(*list, &end, 10);
    if (end == *list || n < 0 || (*end && *end != ',')) {
        complain(s->arguments, "--at needs numbers such as 0,10,100, not '%s'",
                 s->arguments->at);
        return false;
    }
    if (n > r->updates) {
        complain(
            s->arguments,
            "--at: %lld is past the end of the run, %" PRId64 " update%s%s", n,
            r->updates, r->updates == 1 ? "" : "s",
            r->known ? "" : "; give the number of samples with --samples=N");
        return false;
    }
    *at = n;
    *list = end + (*end == ',');
    return true;
}

// The updates of --at, or some over the run; -1 after a message.
static int updates_wanted(const Show *s, const Recipes *r, int64_t *at) {
    const char *list = s->arguments->at;
    int count = 0;
    if (!list)
        return updates_even(r, at);
    do {
        if (count == MAX_COLUMNS) {
            complain(s->arguments, "--at: more than %d updates", MAX_COLUMNS);
            return -1;
        }
        if (!update_parse(s, r, &list, &at[count++]))
            return -1;
    } while (*list);
    return count;
}

static void run_print(Text *t, const Program *p, const Recipes *r) {
    int64_t samples = recipe_update_samples(&p->recipe);
    text_add(t,
             "%s: %" PRId64 " update%s of %" PRId64 " sample%s, %" PRId64
             " in an epoch%s\n",
             p->name, r->updates, r->updates == 1 ? "" : "s", samples,
             samples == 1 ? "" : "s", r->epoch_updates,
             r->known
                 ? ""
                 : " (assumed; give the number of samples with --samples=N)");
    if (r->loss_scale > 0)
        text_add(t,
                 "the loss scale starts at %g and is halved when a gradient is "
                 "not finite\n",
                 r->loss_scale);
}

static void rows_print(Text *t, const Recipes *r, const int64_t *at, int count,
                       double *const *value) {
    text_add(t, "\n%-20s", "update");
    for (int i = 0; i < count; i++)
        text_add(t, " %10" PRId64, at[i]);
    text_add(t, "\n%-20s", "epoch");
    for (int i = 0; i < count; i++)
        text_add(t, " %10.4g", (double)at[i] / (double)r->epoch_updates);
    text_add(t, "\n");
    for (int k = 0; k < r->count; k++) {
        const RecipeRow *row = &r->row[k];
        text_add(t, "%-20s", row->name);
        for (int i = 0; i < count; i++)
            text_add(t, " %10.6g", value[i][k]);
        if (row->file)
            text_add(t, "  %s:%d", row->file, row->line);
        if (row->num_parameters > 1)
            text_add(t, " %s and %d more", row->of, row->num_parameters - 1);
        else if (row->of)
            text_add(t, " %s", row->of);
        text_add(t, "\n");
    }
}

void recipe_json(Arena *a, Text *t, const Recipes *r) {
    enum { POINTS = 200 };
    int points = r->updates < POINTS ? (int)r->updates : POINTS;
    double **value = ARENA_ARRAY(a, (size_t)points + 1, double *);
    text_add(t,
             "{\"updates\": %" PRId64 ", \"epoch_updates\": %" PRId64
             ", \"known\": %s, \"loss_scale\": %.17g, \"at\": [",
             r->updates, r->epoch_updates, r->known ? "true" : "false",
             r->loss_scale);
    for (int i = 0; i < points; i++) {
        int64_t at = points > 1 ? (r->updates - 1) * i / (points - 1) : 0;
        value[i] = recipe_at(a, r, at);
        text_add(t, "%s%" PRId64, i ? ", " : "", at);
    }
    text_add(t, "], \"rows\": [");
    for (int k = 0; k < r->count; k++) {
        const RecipeRow *row = &r->row[k];
        text_add(t, "%s{\"name\": \"%s\", \"of\": ", k ? ", " : "", row->name);
        json_string(t, row->of ? row->of : "");
        text_add(t, ", \"count\": %d, \"line\": %d, \"file\": ",
                 row->num_parameters, row->line);
        json_string(t, row->file ? row->file : "");
        text_add(t, ", \"values\": [");
        for (int i = 0; i < points; i++)
            text_add(t, isfinite(value[i][k]) ? "%s%.9g" : "%s0", i ? ", " : "",
                     value[i][k]);
        text_add(t, "]}");
    }
    text_add(t, "]}");
}

int recipe_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    int64_t at[MAX_COLUMNS];
    double *value[MAX_COLUMNS];
    Recipes r = recipe_find(s->a, s->p, show_plan(s), s->arguments);
    int count = updates_wanted(s, &r, at);
    if (count < 0)
        return EXIT_USAGE;
    for (int i = 0; i < count; i++)
        value[i] = recipe_at(s->a, &r, at[i]);
    run_print(out, s->p, &r);
    rows_print(out, &r, at, count, value);
    return EXIT_GOOD;
}
