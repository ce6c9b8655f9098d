// Data sets of the train block, and the facts known before reading files.

#include "frontend/functions/functions.h"

#include <math.h>
#include <string.h>

static Type samples(DType d, int rank, int64_t a, int64_t b, int64_t c) {
    return (Type){.dtype = d, .rank = rank, .dim = {0, a, b, c}};
}

static const Type bytes = {.dtype = U8}, whole = {.dtype = I32},
                  whole_each = {.dtype = I32, .rank = 1},
                  targets = {.dtype = F32};

// ---- settings for the trainer ----

static void add_setting(Expansion *e, DataSet *d, DataSetting s) {
    DataSetting *more =
        ARENA_ARRAY(e->arena, (size_t)d->num_settings + 1, DataSetting);
    for (int i = 0; i < d->num_settings; i++)
        more[i] = d->setting[i];
    more[d->num_settings++] = s;
    d->setting = more;
}

// A string, or the strings of a list.
static const Value *call_strings(const Call *c, ParamId p, int *count) {
    const Value *v = call_arg(c, p);
    bool list = v->kind == VALUE_LIST;
    *count = list ? v->list.count : v->kind == VALUE_STRING;
    return list ? v->list.item : v;
}

static void add_strings(Expansion *e, DataSet *d, const Call *c, ParamId p) {
    int count;
    const Value *item = call_strings(c, p, &count);
    Text t = text_new(e->arena);
    for (int i = 0; i < count; i++)
        text_add(&t, "%s%s", i > 0 ? "\n" : "", item[i].text);
    if (count > 0)
        add_setting(e, d,
                    (DataSetting){param_info[p].name, 0, text_string(&t)});
}

static void add_count(Expansion *e, DataSet *d, const Call *c, ParamId p) {
    if (call_arg(c, p)->kind == VALUE_NUMBER)
        add_setting(e, d,
                    (DataSetting){param_info[p].name, call_count(c, p), NULL});
}

// ---- arguments ----

// The dimensions of a sample, if given.  False after a report.
static bool read_shape(Expansion *e, DataSet *d, const Call *c, ParamId p) {
    const Value *v = call_arg(c, p);
    if (v->kind == VALUE_NONE)
        return true;
    Value one = *v;
    const Value *item = v->kind == VALUE_LIST ? v->list.item : &one;
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    bool good = count < MAX_RANK;
    d->batch.rank = 1 + count;
    for (int i = 0; good && i < count; i++) {
        double size = item[i].number;
        good = size >= 1 && size <= INT32_MAX && size == floor(size);
        d->batch.dim[1 + i] = good ? (int64_t)size : 1;
    }
    if (!good)
        report(e->diags, D_out_of_range, v->at,
               "`shape` of %s must be up to %d whole numbers from 1",
               c->builtin->name, MAX_RANK - 1);
    return good;
}

// A flag for the only label, or the names of labels.
static void set_labels(DataSet *d, const Call *c, ParamId p) {
    const Value *v = call_arg(c, p);
    bool list = v->kind == VALUE_LIST;
    d->label = v->kind == VALUE_BOOL && v->boolean ? targets : whole;
    d->named = true;
    if (v->kind == VALUE_BOOL)
        return;
    d->target = list ? v->list.item : v;
    d->num_targets = list ? v->list.count : 1;
}

// ---- the data sets ----

static void cifar100(Expansion *e, DataSet *d, const Call *c) {
    bool coarse = call_flag(c, P_cifar100_coarse);
    d->classes = coarse ? 20 : 100;
    add_setting(e, d, (DataSetting){"coarse", coarse, NULL});
}

static void images(DataSet *d, const Call *c, ParamId p) {
    int64_t size[2];
    call_pair(c, p, size);
    d->batch = samples(U8, 4, size[0], size[1], 3);
}

static void tokens(Expansion *e, DataSet *d, const Call *c) {
    d->batch = samples(I32, 2, call_count(c, P_tokens_length), 0, 0);
    d->label = d->batch;
    d->classes = call_count(c, P_tokens_vocabulary);
    add_count(e, d, c, P_tokens_length);
    add_count(e, d, c, P_tokens_vocabulary);
}

static bool check_vocabulary(Expansion *e, const Call *c) {
    enum { MAX_WORDS = 65536 };
    if (call_count(c, P_tokens_vocabulary) <= MAX_WORDS)
        return true;
    report(e->diags, D_out_of_range, call_arg(c, P_tokens_vocabulary)->at,
           "`vocabulary` of tokens is at most %d, as a token has 16 bits",
           MAX_WORDS);
    return false;
}

// An input that has the label would give it away.
static bool check_columns(Expansion *e, const Call *c) {
    int labels, columns;
    const Value *label = call_strings(c, P_table_label, &labels);
    const Value *column = call_strings(c, P_table_columns, &columns);
    for (int i = 0; i < columns; i++)
        for (int k = 0; k < labels; k++) {
            if (strcmp(column[i].text, label[k].text) != 0)
                continue;
            report(e->diags, D_out_of_range, column[i].at,
                   "\"%s\" is the label and one of `columns`", label[k].text);
            return false;
        }
    return true;
}

static bool table(Expansion *e, DataSet *d, const Call *c) {
    d->typed = false;
    d->unlabelled = call_arg(c, P_table_label)->kind == VALUE_NONE;
    set_labels(d, c, P_table_targets);
    add_strings(e, d, c, P_table_label);
    add_strings(e, d, c, P_table_columns);
    return check_columns(e, c);
}

static bool synthetic(Expansion *e, DataSet *d, const Call *c) {
    d->typed = false;
    set_labels(d, c, P_synthetic_targets);
    add_count(e, d, c, P_synthetic_samples);
    add_count(e, d, c, P_synthetic_test);
    add_count(e, d, c, P_synthetic_vocabulary);
    return read_shape(e, d, c, P_synthetic_shape);
}

bool data_set(Expansion *e, const Call *c, DataSet *d) {
    *d = (DataSet){.at = c->at,
                   .format = c->builtin->name,
                   .path = "",
                   .batch = bytes,
                   .typed = true,
                   .label = whole_each};
    if (builtin_id(c->builtin) != B_synthetic)
        d->path = c->arg[0].text;
    switch (builtin_id(c->builtin)) {
    case B_cifar10:
        d->classes = 10;
        d->samples = 50000;
        d->tests = 10000;
        d->batch = samples(U8, 4, 32, 32, 3);
        return true;
    case B_cifar100:
        cifar100(e, d, c);
        d->samples = 50000;
        d->tests = 10000;
        d->batch = samples(U8, 4, 32, 32, 3);
        return true;
    case B_idx:
        return read_shape(e, d, c, P_idx_shape);
    case B_image_folder:
        images(d, c, P_image_folder_size);
        return true;
    case B_webdataset:
        images(d, c, P_webdataset_size);
        return true;
    case B_lmdb:
        images(d, c, P_lmdb_size);
        add_setting(e, d, (DataSetting){"rgb", call_flag(c, P_lmdb_rgb), NULL});
        return true;
    case B_image_table:
        images(d, c, P_image_table_size);
        set_labels(d, c, P_image_table_targets);
        return true;
    case B_npy:
        d->typed = false;
        set_labels(d, c, P_npy_targets);
        return read_shape(e, d, c, P_npy_shape);
    case B_table:
        return table(e, d, c);
    case B_tokens:
        tokens(e, d, c);
        return check_vocabulary(e, c);
    default:
        return synthetic(e, d, c);
    }
}
