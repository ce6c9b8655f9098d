// Types: checks tensors against the declared types of parameters and results.

#include "frontend/expand/interpreter.h"

static bool is_dimension_name(const Expr *x) {
    return x->kind == EXPR_NAME && x->text[0] >= 'A' && x->text[0] <= 'Z';
}

// Reports a size of type t that uses a parameter after the tensor, even if the
// file has another value of that name.
static bool report_later(Expansion *e, const Function *f, const TypeExpr *t,
                         const Expr *x) {
    bool later = false;
    if (x == NULL)
        return false;
    e->work += f->num_params;
    for (int i = 0; x->kind == EXPR_NAME && i < f->num_params; i++) {
        later |= f->param[i].type == t;
        if (!later || f->param[i].name != x->text)
            continue;
        Diagnostic *d = report(e->diags, D_used_before_definition, x->at,
                               "`%s` is used before its definition", x->text);
        diag_secondary(d, f->param[i].at, "it is defined here");
        diag_note(d, "parameters are read in order; write a size before the "
                     "tensor that uses it");
        return true;
    }
    for (int i = 0; i < expr_num_parts(x); i++)
        if (report_later(e, f, t, expr_part(x, i)))
            return true;
    return false;
}

// The size of a dimension of a type.  A new name is bound to the found size; -1
// after a report.
static int64_t expand_dimension(Expansion *e, const Function *f,
                                const TypeExpr *t, const Expr *x,
                                int64_t found) {
    if (report_later(e, f, t, x))
        return -1;
    if (x->kind == EXPR_NAME && name_unknown(e, x) && !is_dimension_name(x)) {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "`%s` is not defined", x->text);
        diag_note(d, "a dimension's name begins with an upper-case letter, as "
                     "`N`");
        return -1;
    }
    if (is_dimension_name(x) && scope_find(e, x->text, NULL) == NULL) {
        if (found < 1) {
            Diagnostic *d = report(e->diags, D_data, x->at,
                                   "the size of `%s` is unknown", x->text);
            diag_note(d, "write a number in its place, or the data's `shape`, "
                         "as in: npy(\"data\", shape=[64, 3])");
            return -1;
        }
        Value size = value_number((double)found, x->at);
        size.follows_batch = x == t->dim[0] && found == e->recipe.batch;
        scope_bind(e, x->text, size);
        return found;
    }
    Value v = expand(e, x);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number >= 1 &&
        v.number <= INT32_MAX && v.number == (double)(int64_t)v.number)
        return (int64_t)v.number;
    if (v.kind != VALUE_POISON)
        report(e->diags, D_out_of_range, x->at,
               "a dimension must be a whole number from 1");
    return -1;
}

bool type_expand(Expansion *e, const Function *f, const TypeExpr *t, Type found,
                 Type *out) {
    *out = (Type){.dtype = t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) {
        out->dim[i] = expand_dimension(e, f, t, t->dim[i],
                                       i < found.rank ? found.dim[i] : 1);
        if (out->dim[i] < 0)
            return false;
    }
    return true;
}

// A tensor of pixels may be declared u8 after conversion to numbers.
static bool dtype_fits(DType declared, DType found) {
    return declared == found || (declared == U8 && found == F32) ||
           (declared == F32 && found == U8);
}

// The declared type, with N for a first size that equals the batch's.
static const char *declared_text(Expansion *e, const TypeExpr *t, Type type) {
    bool named = t->rank > 0 && t->dim[0]->kind == EXPR_NAME;
    return named ? samples_text(e, type) : type_text(e, type);
}

bool type_check(Expansion *e, const Function *f, const TypeExpr *t, Value v,
                Span at, const char *subject) {
    if (t == NULL || v.kind == VALUE_POISON)
        return true;
    const char *advice =
        v.kind == VALUE_LIST ? "`concat` joins several tensors into one" : NULL;
    if (!advise_kind(e, v, VALUE_TENSOR, at, subject, advice))
        return false;
    Type found = *node_type(e, v.node), declared;
    if (!type_expand(e, f, t, found, &declared))
        return false;
    if (type_has_shape(&found, &declared) &&
        dtype_fits(declared.dtype, found.dtype))
        return true;
    Diagnostic *d = report(e->diags, D_annotation, at,
                           "%s does not match its type", subject);
    diag_label(d, "this is %s", tensor_text(e, v.node));
    diag_secondary(d, t->at, "the type is %s", declared_text(e, t, declared));
    if (declared.rank > 0 && declared.dim[0] == e->recipe.batch &&
        (found.rank == 0 || found.dim[0] != e->recipe.batch))
        diag_note(d,
                  "the batch must stay the first axis; axes count from 0, the "
                  "batch, and maximum(a, b) is the larger of two tensors");
    if (v.at.start != at.start || v.at.source != at.source)
        diag_secondary(d, v.at, "it comes from here");
    return false;
}
