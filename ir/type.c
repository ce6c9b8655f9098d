// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types: element types, shapes, and how shapes broadcast.

#include "ir/ir.h"

#include <assert.h>
#include <string.h>

static const char *const dtype_names[NUM_DTYPES] = {
    [F32] = "f32", [F16] = "f16", [BF16] = "bf16", [ACT] = "act",
    [I32] = "i32", [U8] = "u8",   [BOOL] = "bool",
};

const char *dtype_name(DType d) {
    return dtype_names[d];
}

bool dtype_find(const char *name, size_t length, DType *found) {
    for (int d = 0; d < NUM_DTYPES; d++)
        if (strlen(dtype_names[d]) == length &&
            memcmp(dtype_names[d], name, length) == 0) {
            *found = (DType)d;
            return true;
        }
    return false;
}

bool dtype_float(DType d) {
    return d == F32 || d == F16 || d == BF16 || d == ACT;
}

Type type_scalar(DType dtype) {
    return (Type){.dtype = dtype};
}

Type type_of(DType dtype, int rank, const int64_t *dim) {
    assert(rank >= 0 && rank <= MAX_RANK);
    Type t = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return t;
}

// An empty dimension counts as 1 here, so that the product of any dimensions
// of a valid type, as in a stride, cannot overflow either.
bool type_valid(const Type *t) {
    const int64_t most = INT64_C(1) << 46, widest = 4;
    if ((unsigned)t->dtype >= NUM_DTYPES || t->rank < 0 || t->rank > MAX_RANK)
        return false;
    int64_t bytes = t->dtype == U8 || t->dtype == BOOL ? 1 : widest;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || t->dim[i] > INT32_MAX)
            return false;
        if (__builtin_mul_overflow(bytes, t->dim[i] ? t->dim[i] : 1, &bytes) ||
            bytes >= most)
            return false;
    }
    return true;
}

int64_t type_count(const Type *t) {
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return 0;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

bool type_broadcast(const Type *a, const Type *b, Type *out) {
    Type t = {.dtype = out->dtype,
              .rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= t.rank; i++) {
        int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        t.dim[t.rank - i] = x == 1 ? y : x;
    }
    *out = t;
    return true;
}

void type_print(Text *t, const Type *type) {
    text_add(t, "%s[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        text_add(t, "%s%lld", i ? "," : "", (long long)type->dim[i]);
    text_add(t, "]");
}
