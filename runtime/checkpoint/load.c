// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Load: reads checkpoints, to resume a run or to initialize weights from a file
// of any program.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_HEADER = 100000000 }; // the limit of other safetensors readers

typedef RtWeightsFile File;

static bool header_is_whole(char *text, size_t length, const RtHeader *h) {
    const RtMetadata *n = rt_header_metadata(h, "header");
    char digits[DIGITS + 1];
    if (n == NULL || strlen(n->value) != DIGITS ||
        n->value_at > length - DIGITS)
        return false;
    memset(text + n->value_at, '0', DIGITS);
    XXH3_state_t hash;
    char size[8];
    rt_length_put(size, length);
    XXH3_64bits_reset(&hash);
    XXH3_64bits_update(&hash, size, sizeof size);
    XXH3_64bits_update(&hash, text, length);
    snprintf(digits, sizeof digits, "%016" PRIx64,
             (uint64_t)XXH3_64bits_digest(&hash));
    return strcmp(digits, n->value) == 0;
}

static bool metadata_number(const RtHeader *h, const char *key,
                            int64_t *value) {
    const RtMetadata *n = rt_header_metadata(h, key);
    char *end;
    if (n == NULL)
        return false;
    errno = 0;
    *value = strtoll(n->value, &end, 10);
    return errno == 0 && end != n->value && *end == '\0';
}

bool rt_metadata_hash(const RtHeader *h, const char *key, uint64_t *value) {
    const RtMetadata *n = rt_header_metadata(h, key);
    char *end;
    if (n == NULL || strlen(n->value) != DIGITS)
        return false;
    *value = strtoull(n->value, &end, 16);
    return *end == '\0';
}

// Whether the position is possible: steps and seeds have 31 bits.
static bool is_position(const RtProgress *p) {
    return p->step >= 0 && p->step <= p->steps && p->steps <= INT32_MAX &&
           p->epoch_steps > 0 && p->epoch_steps <= INT32_MAX && p->seed >= 0 &&
           p->seed <= INT32_MAX;
}

static bool read_progress(const RtHeader *h, RtProgress *p, RtError *e) {
    if (metadata_number(h, "step", &p->step) &&
        metadata_number(h, "steps", &p->steps) &&
        metadata_number(h, "epoch_steps", &p->epoch_steps) &&
        metadata_number(h, "seed", &p->seed) &&
        rt_metadata_hash(h, "data", &p->data_hash) && is_position(p))
        return true;
    return rt_fail(e, EXIT_DATA, "it has no position of its run");
}

static bool same_shape(const RtState *s, const RtTensor *t) {
    if (t->other != NULL || s->type != t->type || s->rank != t->rank)
        return false;
    return memcmp(s->dim, t->dim, (size_t)s->rank * sizeof s->dim[0]) == 0;
}

static bool same_states(const RtPlan *plan, const RtHeader *h, RtError *e) {
    size_t saved = 0;
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        if (!rt_state_saved(s))
            continue;
        const RtTensor *t = rt_header_tensor(h, s->name);
        if (t == NULL)
            return rt_fail(e, EXIT_DATA, "it has no tensor %s", s->name);
        if (!same_shape(s, t))
            return rt_fail(e, EXIT_DATA,
                           "%s has a different type or shape in it", s->name);
        saved++;
    }
    return saved == h->num_tensors ||
           rt_fail(e, EXIT_DATA, "it has %zu tensors, but this trainer has %zu",
                   h->num_tensors, saved);
}

// Known differences.  With equal tensors, anything else in the graphs may
// differ, such as the loss or a schedule.
static void describe_difference(const RtCheckpoint *c, const RtHeader *h,
                                char *to, size_t room) {
    RtRecipeSetting setting[NUM_RECIPE_SETTINGS];
    RtError e;
    *to = '\0';
    rt_recipe_settings(setting, c->trainer);
    for (int i = 0; i < NUM_RECIPE_SETTINGS; i++) {
        const RtMetadata *n = rt_header_metadata(h, setting[i].key);
        size_t used = strlen(to);
        if (n != NULL && strcmp(n->value, setting[i].value) != 0)
            snprintf(to + used, room - used, ", %s %.20s, here %s",
                     setting[i].key, n->value, setting[i].value);
    }
    size_t used = strlen(to);
    if (!same_states(c->plan, h, &e))
        snprintf(to + used, room - used, ", %.200s", e.text);
}

static bool same_trainer(const RtCheckpoint *c, const RtHeader *h, RtError *e) {
    const RtTrainer *t = c->trainer;
    const RtMetadata *model = rt_header_metadata(h, "model");
    uint64_t fingerprint = 0;
    char differs[400];
    if (model == NULL || strcmp(model->value, t->model) != 0)
        return rt_fail(e, EXIT_DATA,
                       "it is for model %s, but this trainer is for %s",
                       model ? model->value : "(none)", t->model);
    if (rt_metadata_hash(h, "fingerprint", &fingerprint) &&
        fingerprint == t->fingerprint)
        return true;
    describe_difference(c, h, differs, sizeof differs);
    return rt_fail(e, EXIT_DATA,
                   "it is for a %s with a different model text or recipe%s "
                   "(fingerprint %016" PRIx64 ", here %016" PRIx64
                   "): build it with that run's settings, which sinter runs "
                   "lists, or start a new run with its weights by --init",
                   t->model, differs, fingerprint, t->fingerprint);
}

// Widens the halves in the second part of a piece to f32 at its start; writes
// stay behind reads.
static size_t widen(char *piece, RtType type, size_t bytes) {
    const char *from = piece + PIECE / 2;
    size_t count = bytes / rt_type_bytes(type);
    for (size_t i = 0; i < count; i++) {
        float f = (float)rt_number(from, type, (int64_t)i);
        memcpy(piece + i * sizeof f, &f, sizeof f);
    }
    return count * sizeof(float);
}

// Writes bytes of a tensor at offset `at` from the piece to a state.
static bool put_piece(RtCheckpoint *c, const File *f, const RtTensor *t,
                      const RtState *s, size_t at, size_t bytes, RtError *e) {
    if (t->type != s->type) {
        at *= rt_type_bytes(s->type) / rt_type_bytes(t->type);
        bytes = widen(c->piece, t->type, bytes);
    }
    if (f->fresh && s->type == RT_F32 && !rt_bits_finite(c->piece, bytes))
        return rt_fail(e, EXIT_DATA, "%s has numbers that are not finite",
                       t->name);
    rt_device_write(c->device, s->offset + at, c->piece, bytes);
    return true;
}

// Reads filters [K,C,R,S], in any float type, to a state [K,R,S,C].
static bool read_filters(RtCheckpoint *c, const RtWeightsFile *f,
                         const RtTensor *t, const RtState *s, RtError *e) {
    size_t k = (size_t)s->dim[0], spots = (size_t)(s->dim[1] * s->dim[2]);
    size_t channels = (size_t)s->dim[3], bytes = (size_t)(t->end - t->begin);
    char *from = malloc(bytes + 1);
    float *to = malloc(rt_state_bytes(s) + 1);
    bool good = (from != NULL && to != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !rt_read(c->files, f->fd, from, bytes))
        good = rt_fail_read(e, t->name);
    for (size_t i = 0; good && i < k * spots * channels; i++) {
        size_t filter = i / (spots * channels), spot = i / channels % spots;
        size_t at = (filter * channels + i % channels) * spots + spot;
        to[i] = (float)rt_number(from, t->type, (int64_t)at);
    }
    if (good && !rt_bits_finite((const char *)to, rt_state_bytes(s)))
        good = rt_fail(e, EXIT_DATA, "%s has numbers that are not finite",
                       t->name);
    if (good)
        c->device->write(c->device, s->offset, to, rt_state_bytes(s));
    free(from);
    free(to);
    return good;
}

// Reads a tensor to its state; with NULL only checks its hash.
static bool read_tensor(RtCheckpoint *c, const File *f, const RtTensor *t,
                        const RtState *s, RtError *e) {
    char key[RT_MAX_KEY + 8];
    uint64_t expected = 0;
    size_t room = s != NULL && s->type != t->type ? PIECE / 2 : PIECE;
    char *to = c->piece + (PIECE - room);
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    for (size_t at = 0, some, bytes = t->end - t->begin; at < bytes;
         at += some) {
        some = bytes - at < room ? bytes - at : room;
        if (!rt_read(c->files, f->fd, to, some))
            return rt_fail_read(e, t->name);
        XXH3_64bits_update(&hash, to, some);
        if (s != NULL && !put_piece(c, f, t, s, at, some, e))
            return false;
    }
    snprintf(key, sizeof key, "xxh3.%s", t->name);
    if (!f->by_sinter || (rt_metadata_hash(&f->header, key, &expected) &&
                          expected == XXH3_64bits_digest(&hash)))
        return true;
    return rt_fail(e, EXIT_DATA, "%s is damaged", t->name);
}

static uint64_t get_length(const uint8_t from[8]) {
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)from[i] << 8 * i;
    return length;
}

static bool read_header(const RtFiles *files, File *f, size_t bytes,
                        RtError *e) {
    uint8_t size[8];
    if (bytes < sizeof size)
        return rt_fail(e, EXIT_DATA, "it is too short");
    if (!rt_read(files, f->fd, size, sizeof size))
        return rt_fail_read(e, "its header");
    if (memcmp(size, "PK\3\4", 4) == 0)
        return rt_fail(e, EXIT_DATA,
                       "it is an archive, as torch.save writes one, and no "
                       "safetensors file: "
                       "safetensors.torch.save_file(net.state_dict(), FILE) "
                       "writes that");
    uint64_t n = get_length(size);
    if (n > MAX_HEADER || n > bytes - sizeof size || n < 2)
        return rt_fail(e, EXIT_DATA,
                       "it is not a safetensors file, or it is truncated");
    f->length = (size_t)n;
    f->text = malloc(f->length);
    if (f->text == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory for its header");
    if (!rt_read(files, f->fd, f->text, f->length))
        return rt_fail_read(e, "its header");
    return rt_header_parse(&f->header, f->text, f->length,
                           bytes - sizeof size - f->length, e);
}

// Either entry identifies the file even if a bit of the other has changed.
static bool is_sinter_file(const RtHeader *h) {
    const RtMetadata *producer = rt_header_metadata(h, "producer");
    return rt_header_metadata(h, "header") != NULL ||
           (producer != NULL && strcmp(producer->value, "sinter") == 0);
}

void rt_weights_close(const RtFiles *files, File *f) {
    rt_header_free(&f->header);
    free(f->text);
    files->close(f->fd);
}

static bool prefix_path(const char *path, RtError *e) {
    RtError inner = *e;
    return rt_fail(e, inner.status, "%s: %s", path, inner.text);
}

bool rt_weights_open(const RtFiles *files, File *f, const char *path,
                     RtError *e) {
    size_t bytes;
    *f = (File){.fd = rt_open_sized(files, path, &bytes, e)};
    if (f->fd < 0)
        return false;
    bool good = read_header(files, f, bytes, e);
    f->by_sinter = good && is_sinter_file(&f->header);
    if (f->by_sinter && !header_is_whole(f->text, f->length, &f->header))
        good = rt_fail(e, EXIT_DATA, "its header is damaged");
    if (good)
        return true;
    rt_weights_close(files, f);
    return prefix_path(path, e);
}

// Copies the names of classes.
static bool read_classes(RtCheckpoint *c, const RtHeader *h, RtError *e) {
    char key[32];
    int64_t most = c->trainer->classes;
    if (c->read_class == NULL && most > 0)
        c->read_class = calloc((size_t)most, sizeof *c->read_class);
    bool good = c->read_class != NULL || most == 0;
    for (int64_t i = 0; good && i < most; i++) {
        snprintf(key, sizeof key, "class.%" PRId64, i);
        const RtMetadata *name = rt_header_metadata(h, key);
        free(c->read_class[i]);
        c->read_class[i] = name != NULL ? strdup(name->value) : NULL;
        good = name == NULL || c->read_class[i] != NULL;
        c->num_read = i + 1;
    }
    return good || rt_fail(e, EXIT_MEMORY, "out of memory");
}

static const RtMetadata *find_column(const RtHeader *h, int64_t i) {
    char key[32];
    snprintf(key, sizeof key, "column.%" PRId64, i);
    return rt_header_metadata(h, key);
}

// Copies the names of a table's columns, one in a line.
static bool read_columns(RtCheckpoint *c, const RtHeader *h, RtError *e) {
    const RtMetadata *name;
    size_t bytes = 1, at = 0;
    for (int64_t i = 0; (name = find_column(h, i)) != NULL; i++)
        bytes += strlen(name->value) + 1;
    free(c->read_columns);
    c->read_columns = bytes > 1 ? malloc(bytes) : NULL;
    if (bytes > 1 && c->read_columns == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int64_t i = 0; at + 1 < bytes; i++)
        at += (size_t)snprintf(c->read_columns + at, bytes - at, "%s\n",
                               find_column(h, i)->value);
    return true;
}

static bool read_names(RtCheckpoint *c, const RtHeader *h, RtError *e) {
    return read_classes(c, h, e) && read_columns(c, h, e);
}

static RtLoad read_run(RtCheckpoint *c, const File *f, RtProgress *p,
                       RtError *e) {
    const RtHeader *h = &f->header;
    if (!f->by_sinter) {
        rt_fail(e, EXIT_DATA,
                "it is not a checkpoint; --init=FILE loads its weights");
        return RT_BROKEN;
    }
    if (!same_trainer(c, h, e) || !same_states(c->plan, h, e))
        return RT_OTHER_RUN;
    if (!read_progress(h, p, e))
        return RT_BROKEN;
    for (size_t i = 0; i < h->num_tensors; i++)
        if (!read_tensor(c, f, &h->tensor[i],
                         rt_state_find(c->plan, h->tensor[i].name), e))
            return RT_BROKEN;
    return read_names(c, h, e) ? RT_GOOD : RT_BROKEN;
}

RtLoad rt_checkpoint_read(RtCheckpoint *c, const char *path, RtProgress *p,
                          RtError *e) {
    File f;
    if (!rt_weights_open(c->files, &f, path, e))
        return RT_BROKEN;
    RtLoad load = read_run(c, &f, p, e);
    rt_weights_close(c->files, &f);
    if (load != RT_GOOD)
        prefix_path(path, e);
    return load;
}

// Checks all tensors of a checkpoint, also those that are not loaded.
static bool read_weights(RtCheckpoint *c, const File *f, const RtWeights *w,
                         RtError *e) {
    for (size_t i = 0; i < f->header.num_tensors; i++) {
        const RtTensor *t = &f->header.tensor[i];
        const RtState *s = w->state[i];
        bool turns = s != NULL && s->rank == 4 && w->channels_first;
        if (!(turns ? read_filters(c, f, t, s, e) : read_tensor(c, f, t, s, e)))
            return false;
    }
    return true;
}

bool rt_checkpoint_load_weights(RtCheckpoint *c, const char *path,
                                const RtWeightsOptions *o,
                                char message[RT_LOADED_BYTES], RtError *e) {
    File f;
    RtWeights w;
    if (!rt_weights_open(c->files, &f, path, e))
        return false;
    f.fresh = true;
    bool good =
        rt_weights_fit(&w, c->trainer, c->plan, &f.header, f.by_sinter, o, e);
    if (good) {
        good = read_weights(c, &f, &w, e);
        memcpy(message, w.message, sizeof w.message);
        rt_weights_free(&w);
    }
    good = good && read_names(c, &f.header, e);
    rt_weights_close(c->files, &f);
    return good || prefix_path(path, e);
}

char *rt_weights_path(const char *path, RtError *e) {
    struct stat is;
    bool folder = stat(path, &is) == 0 && S_ISDIR(is.st_mode);
    char *file = folder ? rt_retention_newest(path) : rt_path("%s", path);
    if (file == NULL && folder)
        rt_fail(e, EXIT_DATA, "%s has no checkpoint", path);
    else if (file == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    return file;
}

bool rt_checkpoint_load_any(RtCheckpoint *c, const char *path,
                            const RtWeightsOptions *o, RtProgress *p, bool *whole,
                            char message[RT_LOADED_BYTES], RtError *e) {
    RtProgress found;
    *whole = rt_step_find(c->plan, RT_TRAIN, 0) != NULL &&
             rt_checkpoint_read(c, path, &found, e) == RT_GOOD;
    if (*whole) {
        *p = found;
        return true;
    }
    rt_states_start(c->plan, c->device, p);
    if (!rt_checkpoint_load_weights(c, path, o, message, e))
        return false;
    rt_step_run(c->plan, c->device, RT_AVERAGE, 0);
    return true;
}
