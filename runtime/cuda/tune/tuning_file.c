// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning file: a JSON object,
//
//   {"tuning": 4, "gpu": "NVIDIA H200", "capability": 90, "processors": 132,
//    "driver": 13000, "cudnn": 91900, "cublaslt": 0, "plan": "0123...",
//    "plans": [[call, with, candidate, engine], ...],
//    "products": [[call, candidate, digest], ...],
//    "fusions": [1, 0, ...], "unmerged": [0, 1, ...], "tiles": [2, 0, ...]}
//
// A rename makes it appear whole under its name.
#define _POSIX_C_SOURCE 200809L

#include "base/json.h"
#include "runtime/cuda/tune/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// ---- names ----

static void add_text(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

// Numbers as text: structs may have padding.
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
             f->call, f->launch, f->norm, f->paired);
    add_text(state, text);
}

static void add_merged_launch(XXH3_state_t *state, const RtMergedLaunch *join) {
    char text[80];
    snprintf(text, sizeof text, "%d %d %d %d", join->step, join->launch,
             join->count, join->blocks);
    add_text(state, text);
}

// With the configurations that the trainer has.
static void add_tile(XXH3_state_t *state, const RtTiles *k, int i) {
    const RtTile *tile = &k->tile[i];
    char text[80];
    snprintf(text, sizeof text, "%d %d %d %d", tile->code, tile->call,
             tile->step, tile->launch);
    add_text(state, text);
    for (int c = 0; c < tile->num_configs; c++)
        if (rt_tiles_carry(k, i, c))
            add_text(state, tile->config[c].name);
}

enum { DIGITS = 32 };

static void write_digest(const XXH3_state_t *state, char *to) {
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(to, DIGITS + 1, "%016" PRIx64 "%016" PRIx64, hash.high64,
             hash.low64);
}

// A hash of a plan's calls, fusions, merged launches and tile kernels.
static void digest_plan(const RtTuningKey *key, char to[DIGITS + 1]) {
    const RtPlan *plan = key->plan;
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (int i = 0; i < plan->num_calls; i++)
        add_call(&state, &plan->call[i]);
    for (int i = 0; i < plan->num_fusions; i++)
        add_fusion(&state, &plan->fusion[i]);
    for (int i = 0; i < plan->num_merged; i++)
        add_merged_launch(&state, &plan->merged[i]);
    for (int i = 0; key->tiles != NULL && i < key->tiles->count; i++)
        add_tile(&state, key->tiles, i);
    write_digest(&state, to);
}

char *rt_tuning_path(const char *folder, const RtTuningKey *key) {
    XXH3_state_t state;
    char text[120], digest[DIGITS + 1];
    snprintf(text, sizeof text, "%d %d %d %d", RT_TUNING_FORMAT,
             key->capability, key->processors, key->driver);
    digest_plan(key, digest);
    XXH3_128bits_reset(&state);
    add_text(&state, text);
    add_text(&state, key->gpu);
    add_text(&state, digest);
    write_digest(&state, digest);
    return rt_path("%s/%s.tuning", folder, digest);
}

// ---- validity ----

// A file that is being read.
typedef struct {
    RtJson json;
    const char *path;
    const RtTuningKey *key;
    RtChosen *t;
    RtError *error;
} Reader;

// The key in a file.
typedef struct {
    char gpu[96], plan[DIGITS + 1];
    uint64_t capability, processors, driver, cudnn, cublaslt;
} FileKey;

static bool parse_name(RtJson *j, const char *key) {
    char found[16];
    return rt_json_string(j, found, sizeof found) && strcmp(found, key) == 0 &&
           rt_json_take(j, ':');
}

static bool parse_number(RtJson *j, const char *key, uint64_t *value) {
    return parse_name(j, key) && rt_json_count(j, value) &&
           rt_json_take(j, ',');
}

static bool parse_text(RtJson *j, const char *key, char *to, size_t room) {
    return parse_name(j, key) && rt_json_string(j, to, room) &&
           rt_json_take(j, ',');
}

static bool parse_key(RtJson *j, FileKey *f) {
    uint64_t format;
    return rt_json_take(j, '{') && parse_number(j, "tuning", &format) &&
           format == RT_TUNING_FORMAT &&
           parse_text(j, "gpu", f->gpu, sizeof f->gpu) &&
           parse_number(j, "capability", &f->capability) &&
           parse_number(j, "processors", &f->processors) &&
           parse_number(j, "driver", &f->driver) &&
           parse_number(j, "cudnn", &f->cudnn) &&
           parse_number(j, "cublaslt", &f->cublaslt) &&
           parse_text(j, "plan", f->plan, sizeof f->plan);
}

static FileKey file_key_of(const RtTuningKey *key) {
    FileKey f = {.capability = (uint64_t)key->capability,
                 .processors = (uint64_t)key->processors,
                 .driver = (uint64_t)key->driver,
                 .cudnn = key->cudnn,
                 .cublaslt = key->cublaslt};
    snprintf(f.gpu, sizeof f.gpu, "%s", key->gpu);
    digest_plan(key, f.plan);
    return f;
}

static size_t add_version(char *to, size_t room, const char *name,
                          uint64_t version) {
    if (version == 0)
        return 0;
    return (size_t)snprintf(to, room, ", %s %" PRIu64 ".%" PRIu64 ".%" PRIu64,
                            name, version / 10000, version % 10000 / 100,
                            version % 100);
}

// "NVIDIA H200 (9.0, 132 multiprocessors), driver for CUDA 13.0, cuDNN 9.19.0"
static const char *machine_text(char *to, size_t room, const FileKey *f) {
    size_t at = (size_t)snprintf(
        to, room,
        "%s (%" PRIu64 ".%" PRIu64 ", %" PRIu64
        " multiprocessors), driver for CUDA %" PRIu64 ".%" PRIu64,
        f->gpu, f->capability / 10, f->capability % 10, f->processors,
        f->driver / 1000, f->driver % 1000 / 10);
    at = at < room ? at : room - 1;
    at += add_version(to + at, room - at, "cuDNN", f->cudnn);
    at = at < room ? at : room - 1;
    add_version(to + at, room - at, "cuBLASLt", f->cublaslt);
    return to;
}

static bool same_machine(const FileKey *found, const FileKey *own) {
    return strcmp(found->gpu, own->gpu) == 0 &&
           found->capability == own->capability &&
           found->processors == own->processors &&
           found->driver == own->driver &&
           (found->cudnn == own->cudnn || own->cudnn == 0) &&
           (found->cublaslt == own->cublaslt || own->cublaslt == 0);
}

static bool is_valid_for(const Reader *r, const FileKey *found) {
    char there[200], here[200];
    const FileKey own = file_key_of(r->key);
    if (!same_machine(found, &own))
        return rt_fail(
            r->error, EXIT_DEVICE,
            "%s was measured on %s, but this is %s: measure again with --tune",
            r->path, machine_text(there, sizeof there, found),
            machine_text(here, sizeof here, &own));
    return strcmp(found->plan, own.plan) == 0 ||
           rt_fail(r->error, EXIT_DATA,
                   "%s was measured for another model, batch, version of "
                   "sinter or --without: measure again with --tune",
                   r->path);
}

// ---- reading ----

static bool parse_below(RtJson *j, uint64_t limit, uint64_t *value) {
    return rt_json_count(j, value) && *value < limit;
}

static bool parse_plan(Reader *r) {
    RtJson *j = &r->json;
    const RtPlan *plan = r->key->plan;
    uint64_t call, with, candidate, engine;
    if ((size_t)r->t->num_plans == rt_chosen_room(plan) ||
        !rt_json_take(j, '[') ||
        !parse_below(j, (uint64_t)plan->num_calls, &call) ||
        !rt_json_take(j, ',') || !parse_below(j, RT_FUSION_SETS, &with) ||
        !rt_json_take(j, ',') || !parse_below(j, INT32_MAX, &candidate) ||
        !rt_json_take(j, ',') || !parse_below(j, INT64_MAX, &engine) ||
        !rt_json_take(j, ']'))
        return false;
    r->t->plan[r->t->num_plans++] = (RtChosenPlan){
        (int)call, (unsigned)with, (int)candidate, (int64_t)engine};
    return true;
}

static bool parse_algorithm(Reader *r) {
    RtJson *j = &r->json;
    const RtPlan *plan = r->key->plan;
    uint64_t call, candidate, digest;
    if (r->t->num_algorithms == plan->num_calls || !rt_json_take(j, '[') ||
        !parse_below(j, (uint64_t)plan->num_calls, &call) ||
        !rt_json_take(j, ',') || !parse_below(j, INT32_MAX, &candidate) ||
        !rt_json_take(j, ',') || !parse_below(j, INT64_MAX, &digest) ||
        !rt_json_take(j, ']'))
        return false;
    r->t->algorithm[r->t->num_algorithms++] =
        (RtChosenAlgorithm){(int)call, (int)candidate, digest};
    return true;
}

static bool parse_list(Reader *r, const char *key, bool (*take)(Reader *r)) {
    RtJson *j = &r->json;
    if (!parse_name(j, key) || !rt_json_take(j, '['))
        return false;
    for (bool first = true; !rt_json_accept(j, ']'); first = false)
        if ((!first && !rt_json_take(j, ',')) || !take(r))
            return false;
    return true;
}

static bool parse_flags(RtJson *j, const char *key, bool *bit, int count) {
    uint64_t value;
    bool good = parse_name(j, key) && rt_json_take(j, '[');
    for (int i = 0; good && i < count; i++) {
        good = (i == 0 || rt_json_take(j, ',')) && parse_below(j, 2, &value);
        bit[i] = good && value == 1;
    }
    return good && rt_json_take(j, ']');
}

static bool parse_tiles(Reader *r) {
    RtJson *j = &r->json;
    const RtTiles *k = r->key->tiles;
    int count = k != NULL ? k->count : 0;
    bool good = parse_name(j, "tiles") && rt_json_take(j, '[');
    for (int i = 0; good && i < count; i++) {
        uint64_t value = 0;
        good = (i == 0 || rt_json_take(j, ',')) &&
               parse_below(j, (uint64_t)k->tile[i].num_configs + 1, &value) &&
               (value == 0 || rt_tiles_carry(k, i, (int)value - 1));
        r->t->tile[i] = (int)value;
    }
    return good && rt_json_take(j, ']');
}

static bool parse_choices(Reader *r) {
    RtJson *j = &r->json;
    const RtPlan *plan = r->key->plan;
    return parse_list(r, "plans", parse_plan) && rt_json_take(j, ',') &&
           parse_list(r, "products", parse_algorithm) && rt_json_take(j, ',') &&
           parse_flags(j, "fusions", r->t->fused, plan->num_fusions) &&
           rt_json_take(j, ',') &&
           parse_flags(j, "unmerged", r->t->unmerged, plan->num_merged) &&
           rt_json_take(j, ',') && parse_tiles(r) && rt_json_take(j, '}') &&
           rt_json_end(j);
}

static bool parse_tuning(Reader *r) {
    FileKey found;
    if (!parse_key(&r->json, &found))
        return rt_fail(r->error, EXIT_DATA, "%s is not a tuning result",
                       r->path);
    if (!is_valid_for(r, &found) ||
        !rt_chosen_new(r->t, r->key->plan, r->error))
        return false;
    if (parse_choices(r))
        return true;
    rt_chosen_free(r->t);
    return rt_fail(r->error, EXIT_DATA,
                   "%s is damaged: measure again with --tune", r->path);
}

bool rt_tuning_read(RtChosen *t, const char *path, const RtTuningKey *key,
                    const RtFiles *files, RtError *e) {
    enum { MAX_BYTES = 1 << 24 };
    size_t bytes = 0;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    char *text = bytes <= MAX_BYTES ? malloc(bytes + 1) : NULL;
    bool good = text != NULL && rt_read(files, fd, text, bytes);
    files->close(fd);
    Reader r = {.path = path, .key = key, .t = t, .error = e};
    r.json = (RtJson){.at = text, .end = text != NULL ? text + bytes : NULL};
    good =
        good ? parse_tuning(&r) : rt_fail(e, EXIT_IO, "cannot read %s", path);
    free(text);
    return good;
}

// ---- writing ----

static void print_key(FILE *f, const RtTuningKey *key) {
    char gpu[200];
    const FileKey found = file_key_of(key);
    json_escape(gpu, sizeof gpu, key->gpu, strlen(key->gpu));
    fprintf(f,
            "{\"tuning\": %d, \"gpu\": \"%s\", \"capability\": %d, "
            "\"processors\": %d, \"driver\": %d, \"cudnn\": %zu, "
            "\"cublaslt\": %zu, \"plan\": \"%s\",\n",
            RT_TUNING_FORMAT, gpu, key->capability, key->processors,
            key->driver, key->cudnn, key->cublaslt, found.plan);
}

static void print_flags(FILE *f, const char *key, const bool *bit, int count) {
    fprintf(f, " \"%s\": [", key);
    for (int i = 0; i < count; i++)
        fprintf(f, "%s%d", i > 0 ? ", " : "", bit[i]);
    fputc(']', f);
}

static void print_choices(FILE *f, const RtChosen *t, const RtTuningKey *key) {
    const RtPlan *plan = key->plan;
    fputs(" \"plans\": [", f);
    for (int i = 0; i < t->num_plans; i++)
        fprintf(f, "%s[%d, %u, %d, %" PRId64 "]", i > 0 ? ", " : "",
                t->plan[i].call, t->plan[i].with, t->plan[i].candidate,
                t->plan[i].engine);
    fputs("],\n \"products\": [", f);
    for (int i = 0; i < t->num_algorithms; i++)
        fprintf(f, "%s[%d, %d, %" PRIu64 "]", i > 0 ? ", " : "",
                t->algorithm[i].call, t->algorithm[i].candidate,
                t->algorithm[i].digest);
    fputs("],\n", f);
    print_flags(f, "fusions", t->fused, plan->num_fusions);
    fputs(",\n", f);
    print_flags(f, "unmerged", t->unmerged, plan->num_merged);
    fputs(",\n \"tiles\": [", f);
    for (int i = 0; key->tiles != NULL && i < key->tiles->count; i++)
        fprintf(f, "%s%d", i > 0 ? ", " : "", t->tile[i]);
    fputs("]}\n", f);
}

static char *tuning_text(const RtChosen *t, const RtTuningKey *key,
                         size_t *length) {
    char *text = NULL;
    FILE *f = open_memstream(&text, length);
    if (f == NULL)
        return NULL;
    print_key(f, key);
    print_choices(f, t, key);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

uint64_t rt_tuning_hash(const RtChosen *t, const RtTuningKey *key) {
    size_t length = 0;
    char *text = tuning_text(t, key, &length);
    uint64_t hash = text != NULL ? XXH3_64bits(text, length) | 1 : 0;
    free(text);
    return hash;
}

static bool write_file(const char *path, const char *text, size_t length,
                       const RtFiles *files) {
    int fd = files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return false;
    bool good = rt_write(files, fd, text, length);
    return files->close(fd) == 0 && good;
}

bool rt_tuning_write(const RtChosen *t, const char *path,
                     const RtTuningKey *key, const RtFiles *files, RtError *e) {
    size_t length = 0;
    char *text = tuning_text(t, key, &length);
    char *part = rt_path("%s.%ld", path, (long)getpid());
    bool good = text != NULL && part != NULL;
    if (!good)
        rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    else if (!write_file(part, text, length, files) ||
             files->rename(part, path) != 0) {
        good = rt_fail(e, EXIT_IO, "%s: %s", path, strerror(errno));
        files->unlink(part);
    }
    free(text);
    free(part);
    return good;
}
