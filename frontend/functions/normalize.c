// normalize: mean and deviation of each channel.

#include "frontend/functions/functions.h"

// A number for each channel, or one for all; `invert` takes the reciprocal.
// NO_NODE after a report.
static NodeId channel_numbers(Expansion *e, const Call *c, const Value *v,
                              int64_t channels, bool invert) {
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    if (v->kind == VALUE_LIST && count != channels) {
        Diagnostic *d =
            report(e->diags, D_wrong_length, v->at,
                   "this list has %d number%s and the image %lld channel%s",
                   count, count == 1 ? "" : "s", (long long)channels,
                   channels == 1 ? "" : "s");
        if (count == 1)
            diag_note(d, "a number without brackets is for all channels");
        return NO_NODE;
    }
    double *number = ARENA_ARRAY(e->arena, (size_t)count, double);
    for (int i = 0; i < count; i++) {
        number[i] = v->kind == VALUE_LIST ? v->list.item[i].number : v->number;
        if (invert && number[i] <= 0) {
            report(e->diags, D_out_of_range, v->at.source ? v->at : c->at,
                   "a standard deviation must be above 0");
            return NO_NODE;
        }
        if (invert)
            number[i] = 1 / number[i];
    }
    return v->kind == VALUE_LIST ? graph_vector(e->graph, number, count)
                                 : number_node(e, number[0]);
}

static double max_value(const Value *v) {
    double most = v->kind == VALUE_LIST ? 0 : v->number;
    for (int i = 0; v->kind == VALUE_LIST && i < v->list.count; i++)
        if (v->list.item[i].number > most)
            most = v->list.item[i].number;
    return most;
}

// The numbers of an argument, for pixels up to 255.
static const char *scaled_to_bytes(Expansion *e, const Value *v) {
    if (v->kind != VALUE_LIST)
        return arena_format(e->arena, "%.6g", 255 * v->number);
    Text text = text_new(e->arena);
    for (int i = 0; i < v->list.count; i++)
        text_add(&text, "%s%.6g", i ? ", " : "[", 255 * v->list.item[i].number);
    text_add(&text, "]");
    return text_string(&text);
}

// Published statistics are for pixels from 0 to 1, not from 0 to 255.
static void warn_range(Expansion *e, const Call *c, Type t) {
    const Value *mean = call_arg(c, P_normalize_mean);
    const Value *std = call_arg(c, P_normalize_std);
    if (t.dtype != U8 || max_value(mean) > 1 || max_value(std) >= 1)
        return;
    Diagnostic *d = report(e->diags, D_pixel_range, c->at,
                           "pixels are from 0 to 255, and these are numbers "
                           "for 0 to 1");
    diag_note(d, "as in: normalize(mean=%s, std=%s)", scaled_to_bytes(e, mean),
              scaled_to_bytes(e, std));
}

// (x - mean) / std for each channel, as x / std - mean / std, which is one
// multiply-add.
Value lower_normalize(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_normalize_x);
    Type t = *node_type(e, x->node);
    if (t.rank == 0) {
        report(e->diags, D_wrong_rank, c->at,
               "there are no channels to normalize");
        return value_poison();
    }
    int64_t channels = t.dim[t.rank - 1];
    NodeId mean =
        channel_numbers(e, c, call_arg(c, P_normalize_mean), channels, false);
    NodeId std =
        channel_numbers(e, c, call_arg(c, P_normalize_std), channels, true);
    if (std != NO_NODE)
        warn_range(e, c, t);
    if (mean == NO_NODE || std == NO_NODE)
        return value_poison();
    NodeId y = graph_op2(e->graph, OP_mul, as_float(e, x->node), std);
    NodeId shift = graph_op2(e->graph, OP_mul, mean, std);
    return value_tensor(graph_op2(e->graph, OP_sub, y, shift), c->at);
}
