// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors: reads a safetensors file into memory, for tools that have no device.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/format.h"
#include "runtime/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct RtTensors {
    RtWeightsFile file;
    float **numbers; // of each tensor; NULL: integers
};

static size_t tensor_count(const RtTensor *t) {
    size_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= (size_t)t->dim[i];
    return count;
}

static bool is_float(const RtTensor *t) {
    return t->other == NULL &&
           (t->type == RT_F32 || t->type == RT_F16 || t->type == RT_BF16);
}

static float *widened(const char *bytes, const RtTensor *t) {
    size_t count = tensor_count(t);
    float *to = malloc(count * sizeof *to + 1);
    for (size_t i = 0; to != NULL && i < count; i++)
        to[i] = (float)rt_number(bytes, t->type, (int64_t)i);
    return to;
}

static bool tensor_read(RtTensors *t, size_t number, RtError *e) {
    const RtTensor *tensor = &t->file.header.tensor[number];
    size_t bytes = (size_t)(tensor->end - tensor->begin);
    char key[RT_MAX_KEY + 8], *own = malloc(bytes + 1);
    uint64_t expected = 0;
    snprintf(key, sizeof key, "xxh3.%s", tensor->name);
    bool good = own != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !rt_read(&rt_system_files, t->file.fd, own, bytes))
        good = rt_fail_read(e, tensor->name);
    if (good && t->file.by_sinter &&
        !(rt_metadata_hash(&t->file.header, key, &expected) &&
          expected == XXH3_64bits(own, bytes)))
        good = rt_fail(e, EXIT_DATA, "%s is damaged", tensor->name);
    if (good && is_float(tensor)) {
        t->numbers[number] = widened(own, tensor);
        good = t->numbers[number] != NULL ||
               rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    free(own);
    return good;
}

static bool all_read(RtTensors *t, RtError *e) {
    size_t count = t->file.header.num_tensors;
    t->numbers = calloc(count + 1, sizeof *t->numbers);
    bool good = t->numbers != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    for (size_t i = 0; good && i < count; i++)
        good = tensor_read(t, i, e);
    return good;
}

static bool file_read(RtTensors *t, const char *path, RtError *e) {
    if (!rt_weights_open(&rt_system_files, &t->file, path, e)) {
        free(t);
        return false;
    }
    if (all_read(t, e))
        return true;
    RtError inner = *e;
    rt_fail(e, inner.status, "%s: %s", path, inner.text);
    rt_tensors_free(t);
    return false;
}

RtTensors *rt_tensors_read(const char *path, RtError *e) {
    char *file = rt_weights_path(path, e);
    if (file == NULL)
        return NULL;
    RtTensors *t = calloc(1, sizeof *t);
    if (t == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    else if (!file_read(t, file, e))
        t = NULL;
    free(file);
    return t;
}

void rt_tensors_free(RtTensors *t) {
    if (t == NULL)
        return;
    for (size_t i = 0; t->numbers != NULL && i < t->file.header.num_tensors;
         i++)
        free(t->numbers[i]);
    free(t->numbers);
    rt_weights_close(&rt_system_files, &t->file);
    free(t);
}

const float *rt_tensors_find(const RtTensors *t, const char *name, int rank,
                             const int64_t *dim) {
    const RtTensor *found = rt_header_tensor(&t->file.header, name);
    if (found == NULL || found->rank != rank ||
        memcmp(found->dim, dim, (size_t)rank * sizeof *dim) != 0)
        return NULL;
    return t->numbers[found - t->file.header.tensor];
}

const char *rt_tensors_metadata(const RtTensors *t, const char *key) {
    const RtMetadata *found = rt_header_metadata(&t->file.header, key);
    return found != NULL ? found->value : NULL;
}
