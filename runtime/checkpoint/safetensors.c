// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Safetensors: eight bytes with the length of a header, the header as JSON,
// then the tensors' bytes.  The header maps names to dtype, shape and
// data_offsets, and __metadata__ to strings.  The file is untrusted: every
// value is checked against the file's size.

#include "runtime/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    RtJson json;
    const char *text;
    RtHeader *header;
    size_t room_tensors, room_metadata;
    char string[RT_MAX_KEY];
    RtError *error;
} Reader;

static const char *const type_names[] = {
    [RT_F32] = "F32", [RT_F16] = "F16", [RT_BF16] = "BF16",
    [RT_I32] = "I32", [RT_U8] = "U8",   [RT_BOOL] = "BOOL",
};

// Types that other programs write and no state has, such as counters.
static const struct {
    const char *name;
    uint64_t bytes;
} other_types[] = {{"I64", 8}, {"F64", 8}, {"U64", 8}, {"U32", 4},
                   {"I16", 2}, {"U16", 2}, {"I8", 1}};
enum { NUM_OTHER_TYPES = sizeof other_types / sizeof *other_types };

static uint64_t element_bytes(const RtTensor *t) {
    for (int i = 0; i < NUM_OTHER_TYPES; i++)
        if (t->other == other_types[i].name)
            return other_types[i].bytes;
    return rt_type_bytes(t->type);
}

const char *rt_type_name(RtType t) {
    return type_names[t];
}

static bool wrong(Reader *r, const char *what) {
    r->json.failed = true;
    return rt_fail(r->error, EXIT_DATA, "its header is not valid: %s, byte %td",
                   what, r->json.at - r->text);
}

static bool expect(Reader *r, char c) {
    char what[] = "expected ' '";
    what[sizeof what - 3] = c;
    return rt_json_take(&r->json, c) || wrong(r, what);
}

static bool parse_string(Reader *r) {
    return rt_json_string(&r->json, r->string, sizeof r->string) ||
           wrong(r, "expected a string of less than 1024 bytes");
}

static char *copy(const char *s) {
    char *to = malloc(strlen(s) + 1);
    return to == NULL ? NULL : strcpy(to, s);
}

// Grows an array that doubles, for one more element.
static void *grown(void *array, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return array;
    *room = *room == 0 ? 64 : *room * 2;
    return realloc(array, *room * element);
}

static bool parse_metadata_entry(Reader *r) {
    RtHeader *h = r->header;
    RtMetadata *n =
        grown(h->metadata, h->num_metadata, &r->room_metadata, sizeof *n);
    if (n == NULL)
        return wrong(r, "out of memory");
    h->metadata = n;
    if (!parse_string(r))
        return false;
    n = &h->metadata[h->num_metadata];
    *n = (RtMetadata){.key = copy(r->string)};
    h->num_metadata++;
    if (!expect(r, ':') || !expect(r, '"'))
        return false;
    r->json.at--; // the string includes the quote that was checked
    n->value_at = (size_t)(r->json.at + 1 - r->text);
    if (!parse_string(r))
        return false;
    n->value = copy(r->string);
    return (n->key != NULL && n->value != NULL) || wrong(r, "out of memory");
}

static bool parse_metadata(Reader *r) {
    if (!expect(r, '{'))
        return false;
    if (rt_json_accept(&r->json, '}'))
        return true;
    do {
        if (r->header->num_metadata == RT_MAX_TENSORS)
            return wrong(r, "too many entries");
        if (!parse_metadata_entry(r))
            return false;
    } while (rt_json_accept(&r->json, ','));
    return expect(r, '}');
}

static bool parse_type(Reader *r, RtTensor *t) {
    if (!parse_string(r))
        return false;
    for (int i = RT_F32; i <= RT_BOOL; i++) {
        t->type = (RtType)i;
        if (strcmp(r->string, type_names[i]) == 0)
            return true;
    }
    for (int i = 0; i < NUM_OTHER_TYPES; i++) {
        t->other = other_types[i].name;
        if (strcmp(r->string, t->other) == 0)
            return true;
    }
    r->json.failed = true;
    return rt_fail(r->error, EXIT_DATA,
                   "%s has the unsupported type %s; write weights as F32",
                   t->name, r->string);
}

static bool parse_shape(Reader *r, RtTensor *t) {
    uint64_t size;
    if (!expect(r, '['))
        return false;
    if (rt_json_accept(&r->json, ']'))
        return true;
    do {
        if (t->rank == RT_MAX_RANK)
            return wrong(r, "too many dimensions");
        if (!rt_json_count(&r->json, &size))
            return wrong(r, "expected a size");
        t->dim[t->rank++] = (int64_t)size;
    } while (rt_json_accept(&r->json, ','));
    return expect(r, ']');
}

static bool parse_offsets(Reader *r, RtTensor *t) {
    return expect(r, '[') &&
           (rt_json_count(&r->json, &t->begin) ||
            wrong(r, "expected an offset")) &&
           expect(r, ',') &&
           (rt_json_count(&r->json, &t->end) ||
            wrong(r, "expected an offset")) &&
           expect(r, ']');
}

// Each of the three fields once, in any order.
static bool parse_fields(Reader *r, RtTensor *t) {
    static const char *const names[] = {"dtype", "shape", "data_offsets"};
    static bool (*const readers[])(Reader *, RtTensor *) = {
        parse_type, parse_shape, parse_offsets};
    bool seen[3] = {false};
    if (!expect(r, '{'))
        return false;
    for (int n = 0; n < 3; n++) {
        int field = 0;
        if ((n > 0 && !expect(r, ',')) || !parse_string(r))
            return false;
        while (field < 3 && strcmp(r->string, names[field]) != 0)
            field++;
        if (field == 3 || seen[field])
            return wrong(r, "a tensor has dtype, shape and data_offsets");
        seen[field] = true;
        if (!expect(r, ':') || !readers[field](r, t))
            return false;
    }
    return expect(r, '}');
}

static bool parse_tensor(Reader *r) {
    RtHeader *h = r->header;
    RtTensor *t = grown(h->tensor, h->num_tensors, &r->room_tensors, sizeof *t);
    if (t == NULL || h->num_tensors == RT_MAX_TENSORS)
        return wrong(r, "too many tensors");
    h->tensor = t;
    t += h->num_tensors++;
    *t = (RtTensor){.name = copy(r->string)};
    return t->name != NULL ? parse_fields(r, t) : wrong(r, "out of memory");
}

static bool parse_all(Reader *r) {
    bool seen = false;
    if (!expect(r, '{'))
        return false;
    if (rt_json_accept(&r->json, '}'))
        return rt_json_end(&r->json) || wrong(r, "text after the end");
    do {
        if (!parse_string(r) || !expect(r, ':'))
            return false;
        bool is_metadata = strcmp(r->string, "__metadata__") == 0;
        if (is_metadata && seen)
            return wrong(r, "__metadata__ twice");
        seen = seen || is_metadata;
        if (!(is_metadata ? parse_metadata(r) : parse_tensor(r)))
            return false;
    } while (rt_json_accept(&r->json, ','));
    return expect(r, '}') &&
           (rt_json_end(&r->json) || wrong(r, "text after the end"));
}

static int by_begin(const void *a, const void *b) {
    const RtTensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b) {
    const RtTensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_key(const void *a, const void *b) {
    const RtMetadata *x = a, *y = b;
    return strcmp(x->key, y->key);
}

// Sorts metadata by key; each key occurs once.
static bool order_metadata(const RtHeader *h, RtError *e) {
    if (h->num_metadata > 0)
        qsort(h->metadata, h->num_metadata, sizeof *h->metadata, by_key);
    for (size_t i = 1; i < h->num_metadata; i++)
        if (by_key(&h->metadata[i - 1], &h->metadata[i]) == 0)
            return rt_fail(e, EXIT_DATA, "its %s occurs twice",
                           h->metadata[i].key);
    return true;
}

// Sorts tensors by offset, and by name; each name occurs once.
static bool order_tensors(RtHeader *h, RtError *e) {
    size_t n = h->num_tensors;
    h->named = malloc((n + 1) * sizeof *h->named);
    if (h->named == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (n > 0)
        qsort(h->tensor, n, sizeof *h->tensor, by_begin);
    for (size_t i = 0; i < n; i++)
        h->named[i] = &h->tensor[i];
    qsort(h->named, n, sizeof *h->named, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&h->named[i - 1], &h->named[i]) == 0)
            return rt_fail(e, EXIT_DATA, "tensor %s occurs twice",
                           h->named[i]->name);
    return true;
}

static bool has_its_size(const RtTensor *t, RtError *e) {
    uint64_t bytes = element_bytes(t);
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)t->dim[i], &bytes))
            return rt_fail(e, EXIT_DATA, "the shape of %s overflows", t->name);
    return (t->begin <= t->end && t->end - t->begin == bytes) ||
           rt_fail(e, EXIT_DATA, "the offsets of %s do not fit its shape",
                   t->name);
}

// Every byte of the data belongs to exactly one tensor.
static bool covers(const RtHeader *h, uint64_t data_bytes, RtError *e) {
    uint64_t at = 0;
    for (size_t i = 0; i < h->num_tensors; i++) {
        const RtTensor *t = &h->tensor[i];
        if (!has_its_size(t, e))
            return false;
        if (t->begin != at)
            return rt_fail(e, EXIT_DATA, "%s before tensor %s",
                           t->begin < at ? "an overlap" : "a hole", t->name);
        at = t->end;
    }
    return at == data_bytes ||
           rt_fail(e, EXIT_DATA, "its tensors need %llu bytes, but it has %llu",
                   (unsigned long long)at, (unsigned long long)data_bytes);
}

void rt_header_free(RtHeader *h) {
    for (size_t i = 0; i < h->num_tensors; i++)
        free(h->tensor[i].name);
    for (size_t i = 0; i < h->num_metadata; i++) {
        free(h->metadata[i].key);
        free(h->metadata[i].value);
    }
    free(h->tensor);
    free(h->named);
    free(h->metadata);
    *h = (RtHeader){0};
}

const RtMetadata *rt_header_metadata(const RtHeader *h, const char *key) {
    const RtMetadata key_only = {.key = (char *)key};
    if (h->num_metadata == 0)
        return NULL;
    return bsearch(&key_only, h->metadata, h->num_metadata, sizeof key_only,
                   by_key);
}

const RtTensor *rt_header_tensor(const RtHeader *h, const char *name) {
    const RtTensor key_only = {.name = (char *)name}, *key = &key_only;
    const RtTensor **found =
        bsearch(&key, h->named, h->num_tensors, sizeof *h->named, by_name);
    return found == NULL ? NULL : *found;
}

bool rt_header_parse(RtHeader *h, const char *text, size_t length,
                     uint64_t data_bytes, RtError *e) {
    Reader r = {
        .json = {.at = text, .end = text + length},
        .text = text,
        .header = h,
        .error = e,
    };
    *h = (RtHeader){0};
    if (parse_all(&r) && order_metadata(h, e) && order_tensors(h, e) &&
        covers(h, data_bytes, e))
        return true;
    rt_header_free(h);
    return false;
}
