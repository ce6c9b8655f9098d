// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Move: operations that move elements without arithmetic.
#include "ir/eval/rule.h"

#include <string.h>

void eval_copy(const Eval *e) {
    size_t count = (size_t)type_count(e->n->type);
    if (count)
        memcpy(e->out, arg(e, e->n->num_args - 1), count * sizeof *e->out);
}

// Where row `rest` of the result, all axes but its last, is in x: the first
// element of that row, or -1 outside.
static int64_t moved_row(const Eval *e, int sign, int64_t rest) {
    const Type *t = e->n->type, *x = arg_type(e, 0);
    int64_t at = 0, stride = x->dim[x->rank - 1];
    for (int k = t->rank - 2; k >= 0; k--) {
        int64_t from =
            rest % t->dim[k] + sign * node_ints(e->n, ATTR_low, k, 0);
        if (from < 0 || from >= x->dim[k])
            return -1;
        at += from * stride;
        stride *= x->dim[k];
        rest /= t->dim[k];
    }
    return at;
}

// out[i] = x[i + sign * low], 0 outside x.
static void moved(const Eval *e, int sign) {
    const Type *t = e->n->type, *x = arg_type(e, 0);
    int last = t->rank - 1;
    if (last < 0) {
        eval_copy(e);
        return;
    }
    int64_t size = t->dim[last], own = x->dim[last];
    int64_t low = sign * node_ints(e->n, ATTR_low, last, 0);
    int64_t first = low < 0 ? -low : 0;
    int64_t end = own - low < size ? own - low : size;
    for (int64_t row = 0; row < type_count(t) / (size ? size : 1); row++) {
        int64_t from = moved_row(e, sign, row);
        for (int64_t i = first; from >= 0 && i < end; i++)
            e->out[row * size + i] = arg(e, 0)[from + i + low];
    }
}

void eval_pad(const Eval *e) {
    moved(e, -1);
}

void eval_slice(const Eval *e) {
    moved(e, 1);
}

void eval_stack(const Eval *e) {
    int64_t rows = e->n->type->dim[1], columns = e->n->type->dim[2];
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = 0;
    for (int k = 0; k < e->n->num_args; k++) {
        Type t = *arg_type(e, k);
        int64_t own = type_count(&t) / t.dim[0];
        for (int64_t i = 0; i < type_count(&t); i++)
            e->out[(k * rows + i / own) * columns + i % own] = arg(e, k)[i];
    }
}

// Where a shifted image reads row or column i of `size`: -1 for nowhere.
// `reflect` mirrors once, without repeating the edge, then clamps.
static int64_t shifted(int64_t i, int64_t size, const char *mode) {
    if (i >= 0 && i < size)
        return i;
    if (strcmp(mode, "zero") == 0)
        return -1;
    if (strcmp(mode, "reflect") == 0)
        i = i < 0 ? -i : 2 * (size - 1) - i;
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

void eval_shift(const Eval *e) {
    Type t = *e->n->type;
    const char *mode = node_text(e->n, ATTR_mode);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t y = shifted(h + (int64_t)arg(e, 1)[n], t.dim[1], mode);
        int64_t x = shifted(w + (int64_t)arg(e, 2)[n], t.dim[2], mode);
        e->out[i] = y < 0 || x < 0 ? 0 : arg(e, 0)[pixel(t, n, y, x, c)];
    }
}

void eval_flip(const Eval *e) {
    Type t = *e->n->type;
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t x = arg(e, 1)[n] != 0 ? t.dim[2] - 1 - w : w;
        e->out[i] = arg(e, 0)[pixel(t, n, h, x, c)];
    }
}

void eval_pack(const Eval *e) {
    int bits = (int)node_int(e->n, ATTR_bits, 1), each = 8 / bits;
    for (int64_t i = 0; i < type_count(e->n->type); i++) {
        int byte = 0;
        for (int j = 0; j < each; j++)
            byte |= ((int)arg(e, 0)[i * each + j] & ((1 << bits) - 1))
                    << (j * bits);
        e->out[i] = byte;
    }
}

void eval_unpack(const Eval *e) {
    int bits = (int)node_int(e->n, ATTR_bits, 1), each = 8 / bits;
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] =
            ((int)arg(e, 0)[i / each] >> (i % each * bits)) & ((1 << bits) - 1);
}

void eval_transpose(const Eval *e) {
    Type t = *e->n->type, x = *arg_type(e, 0);
    const Attr *order = node_attr(e->n, ATTR_order);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t index[MAX_RANK] = {0}, rest = i, at = 0;
        for (int k = t.rank - 1; k >= 0; k--) {
            index[order->ints[k]] = rest % t.dim[k];
            rest /= t.dim[k];
        }
        for (int k = 0; k < x.rank; k++)
            at = at * x.dim[k] + index[k];
        e->out[i] = arg(e, 0)[at];
    }
}

static int64_t nearest_inside(double i, int64_t size) {
    return i < 0 ? 0 : i >= (double)size ? size - 1 : (int64_t)i;
}

void eval_gather(const Eval *e) {
    Type table = *arg_type(e, 0);
    int64_t row = type_count(&table) / table.dim[0];
    for (int64_t i = 0; i < type_count(e->n->type); i++) {
        int64_t from = nearest_inside(arg(e, 1)[i / row], table.dim[0]);
        e->out[i] = arg(e, 0)[from * row + i % row];
    }
}

void eval_gather_grad(const Eval *e) {
    Type table = *e->n->type;
    int64_t row = type_count(&table) / table.dim[0];
    for (int64_t i = 0; i < type_count(arg_type(e, 0)); i++) {
        int64_t to = nearest_inside(arg(e, 1)[i / row], table.dim[0]);
        e->out[to * row + i % row] += arg(e, 0)[i];
    }
}

void eval_take(const Eval *e) {
    Type t = *e->n->type, x = *arg_type(e, 0);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t at = i / t.dim[3];
        bool pixels = arg_type(e, 1)->rank == 3;
        int64_t row =
            nearest_inside(arg(e, 1)[pixels ? at : n * t.dim[1] + h], x.dim[1]);
        int64_t column =
            nearest_inside(arg(e, 2)[pixels ? at : n * t.dim[2] + w], x.dim[2]);
        e->out[i] = arg(e, 0)[pixel(x, n, row, column, c)];
    }
}
