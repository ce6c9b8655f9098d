// Views: test-time augmentation.  The model is expanded once for each view of a
// test image, with the same parameters, and the outputs are averaged by weight.
// A spatial output is first mapped back: then a pixel contributes to the mean
// if it is in the view.
//
// A view is a chain of fixed changes of the image.  `flip_lr` mirrors every
// image here, whereas in the input it is random.

#include "frontend/train/train.h"

#include <math.h>
#include <string.h>

enum { MAX_VIEWS = 64 };

// ---- the list ----

// The weight of an item, 1 / count by default; negative after a report.
static double read_weight(Expansion *e, const Expr *item, int count) {
    if (item->kind != EXPR_KNOT)
        return 1.0 / count;
    Value v = expand(e, item->left);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number > 0)
        return v.number;
    if (v.kind != VALUE_POISON)
        key_report(e, item->left->at, "the weight of a view",
                   "a number above 0");
    return -1;
}

static bool check_sum(Expansion *e, const Expr *list, const View *view) {
    double sum = 0;
    for (int i = 0; i < list->count; i++)
        sum += view[i].weight;
    if (fabs(sum - 1) < 1e-6)
        return true;
    Diagnostic *d = report(e->diags, D_key_value, list->at,
                           "the weights of the views must sum to 1");
    diag_label(d, "they sum to %.6g", sum);
    diag_note(d, "without weights all views count the same");
    return false;
}

static bool check_list(Expansion *e, const Expr *list) {
    if (list->kind != EXPR_LIST || list->count == 0) {
        key_report(e, list->at, "`views`",
                   "a list, as [0.5: identity, 0.5: flip_lr]");
        return false;
    }
    for (int i = 1; i < list->count; i++) {
        const Expr *first = list->item[0], *item = list->item[i];
        if ((item->kind == EXPR_KNOT) == (first->kind == EXPR_KNOT))
            continue;
        Diagnostic *d = report(e->diags, D_key_value, item->at,
                               "give all views a weight, or none");
        diag_secondary(d, first->at, "this is the first");
        return false;
    }
    if (list->count <= MAX_VIEWS)
        return true;
    report(e->diags, D_model_too_large, list->at, "there are at most %d views",
           MAX_VIEWS);
    return false;
}

bool views_read(Expansion *e, TrainBlock *t, const Expr *list) {
    if (!check_list(e, list))
        return false;
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    View *view = ARENA_ARRAY(e->arena, (size_t)list->count, View);
    for (int i = 0; i < list->count; i++) {
        const Expr *item = list->item[i];
        view[i].weight = read_weight(e, item, list->count);
        view[i].chain = item->kind == EXPR_KNOT ? item->right : item;
        if (view[i].weight < 0)
            return false;
    }
    e->view = view;
    e->num_views = list->count;
    return check_sum(e, list, view);
}

// ---- chains ----

static const Builtin *view_function(Expansion *e, const Expr *x) {
    static const BuiltinId known[] = {B_identity, B_flip_lr, B_shift};
    enum { NUM_KNOWN = sizeof known / sizeof known[0] };
    const Expr *name = x->kind == EXPR_CALL ? x->left : x;
    bool word = name->kind == EXPR_NAME;
    Nearest near = nearest_to(word ? name->text : "");
    for (int i = 0; i < NUM_KNOWN; i++) {
        if (word && strcmp(name->text, builtin_info[known[i]].name) == 0)
            return &builtin_info[known[i]];
        nearest_offer(&near, builtin_info[known[i]].name);
    }
    Diagnostic *d = report(e->diags, D_unknown_name, name->at,
                           "a view is identity, flip_lr, shift(...), or a "
                           "chain of them");
    nearest_note(&near, d);
    return NULL;
}

static Value apply(Expansion *e, const Expr *x, Value image) {
    const Builtin *b = view_function(e, x);
    int count = x->kind == EXPR_CALL ? x->count : 0;
    if (b == NULL)
        return value_poison();
    if (builtin_id(b) == B_flip_lr && count > 0) {
        report(e->diags, D_too_many_arguments, x->at,
               "as a view flip_lr mirrors every image and takes no argument");
        return value_poison();
    }
    ActualArg *given = ARENA_ARRAY(e->arena, (size_t)count + 1, ActualArg);
    given[0] = (ActualArg){.at = x->at, .value = &image};
    for (int i = 0; i < count; i++)
        given[1 + i] = actual_arg(&x->argument[i]);
    Call *c = ARENA_NEW(e->arena, Call);
    *c = (Call){.builtin = b, .by = x, .at = x->at};
    if (!bind_builtin(e, c, given, 1 + count))
        return value_poison();
    origin_set(e, x->at, NULL);
    return builtin_id(b) == B_flip_lr ? view_flip(e, c) : b->lower(e, c);
}

Value view_apply(Expansion *e, const View *view, Value image) {
    const Expr *x = view->chain;
    e->view_step = NULL;
    bool chain = x->kind == EXPR_PIPE;
    Value v = apply(e, chain ? x->left : x, image);
    for (int i = 0; chain && i < x->count && v.kind != VALUE_POISON; i++)
        v = apply(e, x->stage[i].call, v);
    return v;
}

// ---- the mean over the views ----

typedef struct {
    NodeId output; // f32[N,OH,OW,C], or f32[N,...] if not spatial
    NodeId valid;  // f32[N,OH,OW,1], 1 if the view has the pixel; NO_NODE: all
} ViewResult;

// Whether an output has the height and width of the model's images, and its
// elements per pixel.  False after a report.
static bool read_extent(Expansion *e, const View *view, Type output, bool *has,
                        int64_t *up) {
    Type image = *node_type(e, e->model_input);
    int64_t down = 1, pixels = image.dim[1] * image.dim[2];
    bool one = output.rank == 4 && output.dim[1] == 1 && output.dim[2] == 1;
    bool rows = output.rank == 2 && pixels > 1 &&
                output.dim[1] == pixels * image.dim[3];
    *has = output.rank == 4 && !one;
    bool match = output.rank > 2 && sizes_match(output, image, up, &down);
    bool moves = e->view_step->before != NULL || !e->view_step->mirrors;
    if (*has ? match && (down == 1 || !moves) : !rows && !match)
        return true;
    Diagnostic *d = report(e->diags, D_label_not_moved, view->chain->at,
                           "this view cannot be undone in the output");
    diag_secondary(d, e->model_input_at, "the images are %s",
                   samples_text(e, image));
    diag_note(d,
              "it is %s; a view can be undone in an output [N, height, width, "
              "channels] that has a whole number of elements for each pixel",
              samples_text(e, output));
    return false;
}

// Undoes the steps of the view, last first.
static bool invert_view(Expansion *e, const View *view, ViewResult *s) {
    bool has;
    int64_t up = 1;
    if (e->view_step == NULL)
        return true;
    Type t = *node_type(e, s->output);
    if (!read_extent(e, view, t, &has, &up))
        return false;
    for (const ViewStep *v = e->view_step; has && v != NULL; v = v->before) {
        int64_t back[] = {-v->by[0] * up, -v->by[1] * up};
        if (v->mirrors) {
            s->output = view_mirrored(e, s->output);
            if (s->valid != NO_NODE)
                s->valid = view_mirrored(e, s->valid);
            continue;
        }
        t.dim[3] = 1;
        if (s->valid == NO_NODE)
            s->valid = graph_constant(e->graph, t, 1);
        s->output = view_moved(e, s->output, back, "zero");
        s->valid = view_moved(e, s->valid, back, "zero");
    }
    return true;
}

// Adds a term to a sum, which is NO_NODE before the first.
static NodeId added(Expansion *e, NodeId sum, NodeId part) {
    return sum == NO_NODE ? part : graph_op2(e->graph, OP_add, sum, part);
}

static bool report_unseen(Expansion *e) {
    Diagnostic *d = report(e->diags, D_label_not_moved, e->view[0].chain->at,
                           "every view moves a part of the image out");
    diag_note(
        d,
        "an output for each pixel needs a view without `shift`, as identity");
    return false;
}

// The views of one output.
typedef struct {
    NodeId sum, weight[MAX_VIEWS];
    int count, whole; // whole: views with all of its pixels
} ViewSum;

static void view_add(Expansion *e, const View *view, ViewResult s,
                     ViewSum *of) {
    Graph *g = e->graph;
    origin_set(e, view->chain->at, NULL);
    NodeId weight = number_node(e, view->weight);
    of->whole += s.valid == NO_NODE;
    if (s.valid != NO_NODE)
        weight = graph_op2(g, OP_mul, s.valid, weight);
    of->sum = added(e, of->sum, graph_op2(g, OP_mul, s.output, weight));
    of->weight[of->count++] = weight;
}

static NodeId view_mean(Expansion *e, const ViewSum *of) {
    NodeId weights = NO_NODE;
    for (int i = 0; of->whole < of->count && i < of->count; i++)
        weights = added(e, weights, of->weight[i]);
    return weights == NO_NODE ? of->sum
                              : graph_op2(e->graph, OP_div, of->sum, weights);
}

Value views_mean(Expansion *e, ViewOutput *output_of, void *context,
                 Value image) {
    Value first = {.kind = VALUE_NONE}, *item;
    int count = 0;
    ViewSum *of = NULL;
    for (int i = 0; i < e->num_views; i++) {
        const View *view = &e->view[i];
        Value seen = view_apply(e, view, image);
        if (seen.kind != VALUE_POISON)
            seen = output_of(e, context, seen);
        if (seen.kind == VALUE_POISON)
            return seen;
        bool named = seen.kind == VALUE_LIST;
        if (i == 0) {
            first = seen;
            count = named ? seen.list.count : 1;
            of = ARENA_ARRAY(e->arena, (size_t)count, ViewSum);
        }
        for (int k = 0; k < count; k++) {
            NodeId own = named ? seen.list.item[k].node : seen.node;
            ViewResult s = {own, NO_NODE};
            of[k].sum = i == 0 ? NO_NODE : of[k].sum;
            if (!invert_view(e, view, &s))
                return value_poison();
            view_add(e, view, s, &of[k]);
        }
    }
    item = ARENA_ARRAY(e->arena, (size_t)count, Value);
    for (int k = 0; k < count; k++) {
        if (of[k].whole == 0 && !report_unseen(e))
            return value_poison();
        Span at = first.kind == VALUE_LIST ? first.list.item[k].at : image.at;
        item[k] = value_tensor(view_mean(e, &of[k]), at);
    }
    if (first.kind != VALUE_LIST)
        return item[0];
    first.list.item = item;
    return first;
}
