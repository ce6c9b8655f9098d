// Views: what an evaluation shows of each test image.  The model is expanded
// once for each view, with the same parameters, and the outputs are averaged by
// the weights.
//
// A view is a chain of fixed changes of the image.  `flip_lr` is the language's
// own here: it mirrors every image, whereas in the input it is a matter of
// chance.

#include "frontend/train/train.h"

#include <math.h>
#include <string.h>

enum { MOST_VIEWS = 64 };

// ---- the list ----

// The weight of an item, which is 1 / count where none is written; negative
// after a report.
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
    diag_note(d, "without weights all views count alike");
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
                               "either all views have a weight, or none has");
        diag_place(d, first->at, "as here");
        return false;
    }
    if (list->count <= MOST_VIEWS)
        return true;
    report(e->diags, D_too_much, list->at, "there are at most %d views",
           MOST_VIEWS);
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

// ---- the functions ----

Value lower_identity(Expansion *e, const Call *c) {
    (void)e;
    return *call_arg(c, P_identity_x);
}

static Value mirror(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_flip_lr_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type each = type_of(BOOL, 1, &e->recipe.batch);
    NodeId always = graph_constant(e->graph, each, 1);
    return value_tensor(graph_op2(e->graph, OP_flip, x->node, always), c->at);
}

// How far to move along an axis, if that is a whole number and, where images
// are mirrored at their edge, less than their size.
static bool read_distance(Expansion *e, const Call *c, ParamId p, int64_t size,
                          int64_t *out) {
    const Value *v = call_arg(c, p);
    bool reflect = strcmp(call_arg(c, P_shift_mode)->text, "reflect") == 0;
    int64_t most = reflect ? size - 1 : INT32_MAX;
    if (v->kind == VALUE_NOTHING)
        return true;
    if (v->number == floor(v->number) && fabs(v->number) <= (double)most) {
        *out = (int64_t)v->number;
        return true;
    }
    report(e->diags, D_range, v->at, "shift needs a whole number of pixels%s",
           reflect ? ", less than the image has" : "");
    return false;
}

// The image moved down and to the right.
Value lower_shift(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_shift_x);
    int64_t dy = 0;
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!read_distance(e, c, P_shift_dy, t.dim[1], &dy))
        return value_poison();
    int64_t dx = dy;
    if (!read_distance(e, c, P_shift_dx, t.dim[2], &dx))
        return value_poison();
    Type each = type_of(I32, 1, &t.dim[0]);
    NodeId arg[] = {x->node, graph_constant(e->graph, each, (double)-dy),
                    graph_constant(e->graph, each, (double)-dx)};
    Attr mode = attr_text(ATTR_mode, call_arg(c, P_shift_mode)->text);
    return value_tensor(graph_add(e->graph, (Node){.op = OP_shift,
                                                   .num_args = 3,
                                                   .arg = arg,
                                                   .num_attrs = 1,
                                                   .attr = &mode,
                                                   .group = -1}),
                        c->at);
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
        report(e->diags, D_surplus, x->at,
               "as a view flip_lr mirrors each image, and takes no argument");
        return value_poison();
    }
    Given *given = ARENA_ARRAY(e->arena, (size_t)count + 1, Given);
    given[0] = (Given){.at = x->at, .value = &image};
    for (int i = 0; i < count; i++)
        given[1 + i] = argument_given(&x->argument[i]);
    Call *c = ARENA_NEW(e->arena, Call);
    *c = (Call){.builtin = b, .by = x, .at = x->at};
    if (!bind_builtin(e, c, given, 1 + count))
        return value_poison();
    origin_set(e, x->at, NULL);
    return builtin_id(b) == B_flip_lr ? mirror(e, c) : b->lower(e, c);
}

Value view_apply(Expansion *e, const View *view, Value image) {
    const Expr *x = view->chain;
    bool chain = x->kind == EXPR_PIPE;
    Value v = apply(e, chain ? x->left : x, image);
    for (int i = 0; chain && i < x->count && v.kind != VALUE_POISON; i++)
        v = apply(e, x->stage[i].call, v);
    return v;
}
