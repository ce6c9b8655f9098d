// Tuning: a file of it is a JSON object of numbers,
//
//   {"tuning": 1, "plans": [[call, with, candidate, engine], ...],
//    "fusions": [1, 0, ...]}
//
// It appears under its name whole, by a rename.
#define _POSIX_C_SOURCE 200809L

#include "runtime/cuda/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FORMAT = 1, FUSION_SETS = 1 << (RT_FUSED_BACKWARD + 1) };

// There are as many plans as calls with each set of fusions at most.
size_t rt_tuning_room(const RtPlan *plan) {
    return (size_t)plan->num_calls * FUSION_SETS + 1;
}

bool rt_tuning_new(RtTuning *t, const RtPlan *plan, RtError *e) {
    *t = (RtTuning){0};
    t->tuned = calloc(rt_tuning_room(plan), sizeof *t->tuned);
    t->wanted = calloc((size_t)plan->num_fusions + 1, sizeof *t->wanted);
    if (t->tuned != NULL && t->wanted != NULL)
        return true;
    rt_tuning_free(t);
    return rt_fail(e, EXIT_MEMORY, "no memory for a tuning");
}

void rt_tuning_free(RtTuning *t) {
    free(t->tuned);
    free(t->wanted);
    *t = (RtTuning){0};
}

// ---- where ----

static void add_text(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

// Numbers as text: structs may have bytes that mean nothing.
static void add_call(XXH3_state_t *state, const RtCall *c) {
    char text[400];
    snprintf(text, sizeof text,
             "%d %d %d %d %d %d %d %d %d %d %d %d %d,%d %d,%d %d,%d,%d,%d %d "
             "%d %d %" PRId64,
             (int)c->kind, (int)c->type, c->accumulate, c->n, c->h, c->w, c->c,
             c->k, c->r, c->s, c->oh, c->ow, c->stride[0], c->stride[1],
             c->dilation[0], c->dilation[1], c->pad[0], c->pad[1], c->pad[2],
             c->pad[3], c->groups, c->ta, c->tb, c->batch);
    add_text(state, text);
}

static void add_fusion(XXH3_state_t *state, const RtFusion *f) {
    char text[120];
    snprintf(text, sizeof text, "%d %d %d %d %d %d", (int)f->kind, f->step,
             f->call, f->launch, f->norm, f->together);
    add_text(state, text);
}

char *rt_tuning_path(const char *folder, const RtTuningKey *key) {
    XXH3_state_t state;
    char text[120];
    snprintf(text, sizeof text, "%d %d %d %d %zu", FORMAT, key->capability,
             key->processors, key->driver, key->cudnn);
    XXH3_128bits_reset(&state);
    add_text(&state, text);
    add_text(&state, key->gpu);
    for (int i = 0; i < key->plan->num_calls; i++)
        add_call(&state, &key->plan->call[i]);
    for (int i = 0; i < key->plan->num_fusions; i++)
        add_fusion(&state, &key->plan->fusion[i]);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return rt_path("%s/%016" PRIx64 "%016" PRIx64 ".tuning", folder,
                   hash.high64, hash.low64);
}

// ---- reading ----

static bool key_take(RtJson *j, const char *key) {
    char found[16];
    return rt_json_string(j, found, sizeof found) && strcmp(found, key) == 0 &&
           rt_json_take(j, ':');
}

static bool below(RtJson *j, uint64_t limit, uint64_t *value) {
    return rt_json_count(j, value) && *value < limit;
}

static bool tuned_take(RtJson *j, const RtPlan *plan, RtTuned *t) {
    uint64_t call, with, candidate, engine;
    if (!rt_json_take(j, '[') || !below(j, (uint64_t)plan->num_calls, &call) ||
        !rt_json_take(j, ',') || !below(j, FUSION_SETS, &with) ||
        !rt_json_take(j, ',') || !below(j, INT32_MAX, &candidate) ||
        !rt_json_take(j, ',') || !below(j, INT64_MAX, &engine) ||
        !rt_json_take(j, ']'))
        return false;
    *t = (RtTuned){(int)call, (unsigned)with, (int)candidate, (int64_t)engine};
    return true;
}

static bool all_tuned_take(RtJson *j, const RtPlan *plan, RtTuning *t) {
    if (!rt_json_take(j, '['))
        return false;
    while (!rt_json_accept(j, ']')) {
        if ((size_t)t->num_tuned == rt_tuning_room(plan) ||
            (t->num_tuned > 0 && !rt_json_take(j, ',')) ||
            !tuned_take(j, plan, &t->tuned[t->num_tuned]))
            return false;
        t->num_tuned++;
    }
    return true;
}

static bool wanted_take(RtJson *j, const RtPlan *plan, RtTuning *t) {
    uint64_t value;
    bool good = rt_json_take(j, '[');
    for (int i = 0; good && i < plan->num_fusions; i++) {
        good = (i == 0 || rt_json_take(j, ',')) && below(j, 2, &value);
        t->wanted[i] = good && value == 1;
    }
    return good && rt_json_take(j, ']');
}

static bool tuning_parse(RtTuning *t, RtJson *j, const RtPlan *plan) {
    uint64_t format;
    return rt_json_take(j, '{') && key_take(j, "tuning") &&
           rt_json_count(j, &format) && format == FORMAT &&
           rt_json_take(j, ',') && key_take(j, "plans") &&
           all_tuned_take(j, plan, t) && rt_json_take(j, ',') &&
           key_take(j, "fusions") && wanted_take(j, plan, t) &&
           rt_json_take(j, '}') && rt_json_end(j);
}

bool rt_tuning_read(RtTuning *t, const char *path, const RtPlan *plan,
                    const RtFiles *files) {
    enum { MOST_BYTES = 1 << 24 };
    RtError ignored;
    size_t bytes = 0;
    int fd = rt_open_sized(files, path, &bytes, &ignored);
    if (fd < 0)
        return false;
    char *text = bytes <= MOST_BYTES ? malloc(bytes + 1) : NULL;
    bool good = text != NULL && rt_read(files, fd, text, bytes) &&
                rt_tuning_new(t, plan, &ignored);
    files->close(fd);
    if (good) {
        RtJson j = {.at = text, .end = text + bytes};
        good = tuning_parse(t, &j, plan);
        if (!good)
            rt_tuning_free(t);
    }
    free(text);
    return good;
}

// ---- writing ----

static char *tuning_text(const RtTuning *t, const RtPlan *plan,
                         size_t *length) {
    char *text = NULL;
    FILE *f = open_memstream(&text, length);
    if (f == NULL)
        return NULL;
    fprintf(f, "{\"tuning\": %d, \"plans\": [", FORMAT);
    for (int i = 0; i < t->num_tuned; i++)
        fprintf(f, "%s[%d, %u, %d, %" PRId64 "]", i > 0 ? ", " : "",
                t->tuned[i].call, t->tuned[i].with, t->tuned[i].candidate,
                t->tuned[i].engine);
    fputs("], \"fusions\": [", f);
    for (int i = 0; i < plan->num_fusions; i++)
        fprintf(f, "%s%d", i > 0 ? ", " : "", t->wanted[i]);
    fputs("]}\n", f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static bool write_file(const char *path, const char *text, size_t length,
                       const RtFiles *files) {
    int fd = files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return false;
    bool good = rt_write(files, fd, text, length);
    return files->close(fd) == 0 && good;
}

bool rt_tuning_write(const RtTuning *t, const char *path, const RtPlan *plan,
                     const RtFiles *files, RtError *e) {
    size_t length = 0;
    char *text = tuning_text(t, plan, &length);
    char *part = rt_path("%s.%ld", path, (long)getpid());
    bool good = text != NULL && part != NULL;
    if (!good)
        rt_fail(e, EXIT_MEMORY, "no memory for a tuning");
    else if (!write_file(part, text, length, files) ||
             files->rename(part, path) != 0) {
        good = rt_fail(e, EXIT_IO, "%.300s: %s", path, strerror(errno));
        files->unlink(part);
    }
    free(text);
    free(part);
    return good;
}
