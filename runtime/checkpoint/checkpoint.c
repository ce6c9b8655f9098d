// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checkpoint: writes the states of a run to a file.  States are read from the
// device in pieces, and twice, as the header before them has their hashes.
#define _POSIX_C_SOURCE 200809L

#include "base/json.h"
#include "runtime/checkpoint/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

bool rt_state_saved(const RtState *s) {
    return s->kind != RT_DERIVED && s->kind != RT_GRADIENT &&
           s->kind != RT_PARTIAL;
}

static void add(Header *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(Header *h, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t left = h->length < h->room ? h->room - h->length : 0;
    int n =
        vsnprintf(left > 0 ? h->data + h->length : NULL, left, format, list);
    va_end(list);
    h->length += n > 0 ? (size_t)n : 0;
}

// At most 256 bytes of the value.
static void add_string(Header *h, const char *key, const char *value) {
    char text[6 * 256 + 8];
    json_escape(text, sizeof text, value, strnlen(value, 256));
    add(h, "\"%s\":\"%s\",", key, text);
}

// Adds names, one in a line, as PREFIX.0, PREFIX.1 and so on.
static void add_names(Header *h, const char *prefix, const char *names) {
    char name[256], key[32];
    for (int i = 0; names != NULL && *names != '\0'; i++) {
        size_t length = strcspn(names, "\r\n");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        snprintf(key, sizeof key, "%s.%d", prefix, i);
        if (length > 0)
            add_string(h, key, name);
        names += length;
        names += *names == '\r';
        names += *names == '\n';
    }
}

void rt_recipe_settings(RtRecipeSetting to[NUM_RECIPE_SETTINGS],
                        const RtTrainer *t) {
    to[0].key = "precision";
    snprintf(to[0].value, sizeof to[0].value, "%s",
             t->precision != NULL ? t->precision : "f32");
    to[1].key = "batch";
    snprintf(to[1].value, sizeof to[1].value, "%d", t->batch);
    to[2].key = "accumulate";
    snprintf(to[2].value, sizeof to[2].value, "%d", t->accumulate);
}

static void add_metadata(RtCheckpoint *c, const RtProgress *p) {
    Header *h = &c->header;
    RtRecipeSetting setting[NUM_RECIPE_SETTINGS];
    add_string(h, "producer", "sinter");
    add_string(h, "version", c->trainer->version);
    add_string(h, "model", c->trainer->model);
    rt_recipe_settings(setting, c->trainer);
    for (int i = 0; i < NUM_RECIPE_SETTINGS; i++)
        add_string(h, setting[i].key, setting[i].value);
    add_names(h, "class", c->classes);
    add_names(h, "column", c->columns);
    add(h, "\"fingerprint\":\"%016" PRIx64 "\",", c->trainer->fingerprint);
    add(h, "\"step\":\"%" PRId64 "\",\"steps\":\"%" PRId64 "\",", p->step,
        p->steps);
    add(h, "\"epoch_steps\":\"%" PRId64 "\",", p->epoch_steps);
    add(h, "\"epoch\":\"%.9g\",", (double)p->step / (double)p->epoch_steps);
    add(h, "\"seed\":\"%" PRId64 "\",\"data\":\"%016" PRIx64 "\"", p->seed,
        p->data_hash);
    for (int i = 0; i < c->plan->num_states; i++)
        if (rt_state_saved(&c->plan->state[i]))
            add(h, ",\"xxh3.%s\":\"%016" PRIx64 "\"", c->plan->state[i].name,
                c->hash[i]);
}

static void add_tensor(Header *h, const RtState *s, size_t begin) {
    add(h, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", s->name,
        rt_type_name(s->type));
    for (int i = 0; i < s->rank; i++)
        add(h, "%s%" PRId64, i > 0 ? "," : "", s->dim[i]);
    add(h, "],\"data_offsets\":[%zu,%zu]}", begin, begin + rt_state_bytes(s));
}

// Writes the header with zeroes as its own hash; returns the offset of that.
// Padding with spaces lets the data begin at a multiple of 64 bytes.
static size_t build_header(RtCheckpoint *c, const RtProgress *p) {
    Header *h = &c->header;
    h->length = 8;
    add(h, "{\"__metadata__\":{\"header\":\"");
    size_t own_hash = h->length;
    add(h, "%0*d\",", DIGITS, 0);
    add_metadata(c, p);
    add(h, "}");
    size_t at = 0;
    for (int i = 0; i < c->plan->num_states; i++) {
        const RtState *s = &c->plan->state[i];
        if (!rt_state_saved(s))
            continue;
        add_tensor(h, s, at);
        at += rt_state_bytes(s);
    }
    add(h, "}");
    add(h, "%*s", (int)(63 - (h->length + 63) % 64), "");
    return own_hash;
}

void rt_length_put(char to[8], uint64_t length) {
    for (int i = 0; i < 8; i++)
        to[i] = (char)(length >> 8 * i);
}

// The header with its length and its hash in place.
static void seal_header(RtCheckpoint *c, const RtProgress *p) {
    size_t own_hash = build_header(c, p);
    char digits[DIGITS + 1];
    rt_length_put(c->header.data, c->header.length - 8);
    snprintf(digits, sizeof digits, "%016" PRIx64,
             (uint64_t)XXH3_64bits(c->header.data, c->header.length));
    memcpy(c->header.data + own_hash, digits, DIGITS);
}

// ---- writing ----

bool rt_bits_finite(const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t bits;
        memcpy(&bits, from + at, sizeof bits);
        if ((bits & 0x7f800000) == 0x7f800000)
            return false;
    }
    return true;
}

// Hashes one state.  False if a parameter is not finite: such a checkpoint is
// useless.
static bool hash_state(RtCheckpoint *c, int number) {
    const RtState *s = &c->plan->state[number];
    bool checked = s->kind == RT_PARAM && s->type == RT_F32;
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    for (size_t at = 0, some, bytes = rt_state_bytes(s); at < bytes;
         at += some) {
        some = bytes - at < PIECE ? bytes - at : PIECE;
        rt_device_read(c->device, c->piece, s->offset + at, some);
        XXH3_64bits_update(&hash, c->piece, some);
        if (checked && !rt_bits_finite(c->piece, some))
            return false;
    }
    c->hash[number] = XXH3_64bits_digest(&hash);
    return true;
}

static bool write_state(RtCheckpoint *c, const RtState *s, int fd) {
    for (size_t at = 0, some, bytes = rt_state_bytes(s); at < bytes;
         at += some) {
        some = bytes - at < PIECE ? bytes - at : PIECE;
        rt_device_read(c->device, c->piece, s->offset + at, some);
        if (!rt_write(c->files, fd, c->piece, some))
            return false;
    }
    return true;
}

static bool write_all(RtCheckpoint *c, int fd) {
    if (!rt_write(c->files, fd, c->header.data, c->header.length))
        return false;
    for (int i = 0; i < c->plan->num_states; i++)
        if (rt_state_saved(&c->plan->state[i]) &&
            !write_state(c, &c->plan->state[i], fd))
            return false;
    return c->files->sync(fd) == 0;
}

bool rt_checkpoint_write(RtCheckpoint *c, const char *path, const RtProgress *p,
                         RtError *e) {
    for (int i = 0; i < c->plan->num_states; i++)
        if (rt_state_saved(&c->plan->state[i]) && !hash_state(c, i))
            return rt_fail(e, EXIT_DIVERGED,
                           "%s is no longer finite after step %" PRId64,
                           c->plan->state[i].name, p->step);
    seal_header(c, p);
    int fd = c->files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return rt_fail(e, EXIT_IO, "cannot make %s: %s", path, strerror(errno));
    bool good = write_all(c, fd);
    int reason = errno;
    if (c->files->close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good)
        return true;
    c->files->unlink(path);
    return rt_fail(e, EXIT_IO, "cannot write %s: %s", path, strerror(reason));
}

// ---- buffers ----

void rt_checkpoint_free(RtCheckpoint *c) {
    if (c == NULL)
        return;
    free(c->header.data);
    free(c->piece);
    free(c->hash);
    for (int64_t i = 0; i < c->num_read; i++)
        free(c->read_class[i]);
    free(c->read_class);
    free(c->read_columns);
    free(c);
}

// The header's length varies, so it is measured with the longest numbers.
static bool reserve_header(RtCheckpoint *c) {
    enum { SLACK = 128 };
    RtProgress longest = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 0};
    free(c->header.data);
    c->header = (Header){0};
    build_header(c, &longest);
    c->header.room = c->header.length + SLACK;
    c->header.data = malloc(c->header.room);
    return c->header.data != NULL;
}

static bool reserve(RtCheckpoint *c) {
    size_t states = (size_t)c->plan->num_states;
    c->hash = calloc(states > 0 ? states : 1, sizeof *c->hash);
    c->piece = malloc(PIECE);
    return c->hash != NULL && c->piece != NULL && reserve_header(c);
}

bool rt_checkpoint_keep_names(RtCheckpoint *c, const char *classes,
                              const char *columns, RtError *e) {
    c->classes = classes;
    c->columns = columns;
    return reserve_header(c) || rt_fail(e, EXIT_MEMORY, "out of memory");
}

const char *rt_checkpoint_class(const RtCheckpoint *c, int64_t number) {
    return number < c->num_read ? c->read_class[number] : NULL;
}

const char *rt_checkpoint_columns(const RtCheckpoint *c) {
    return c->read_columns;
}

RtCheckpoint *rt_checkpoint_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, const RtFiles *files, RtError *e) {
    RtCheckpoint *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->trainer = t;
        c->plan = plan;
        c->device = d;
        c->files = files;
        if (reserve(c))
            return c;
    }
    rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_checkpoint_free(c);
    return NULL;
}
