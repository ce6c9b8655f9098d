// Trainer: plans a program for the host and for CUDA, and emits both.
#include "tools/trainer.h"
#include "base/exits.h"
#include "base/source.h"
#include "codegen/codegen.h"
#include "tools/lineinfo.h"
#include "tools/tile.h"
#include "tools/tools.h"

#include <string.h>

// ---- fingerprint ----

uint64_t hash_bytes(uint64_t hash, const char *s, size_t length) {
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)s[i]) * 0x100000001b3u;
    return hash;
}

// Hashes nodes without origins: a comment in the model file changes lines, but
// not the checkpoints that fit.
static uint64_t hash_graph(Arena *a, uint64_t hash, const Graph *g) {
    Text t = text_new(a);
    for (NodeId n = 0; n < g->count; n++) {
        t.length = 0;
        node_print(&t, g, n);
        const char *text = text_string(&t), *origin = strstr(text, "  # ");
        hash =
            hash_bytes(hash, text, origin ? (size_t)(origin - text) : t.length);
    }
    return hash;
}

static uint64_t fingerprint(const Program *p) {
    Arena *scratch = arena_new();
    uint64_t hash = HASH_OF_NOTHING;
    hash = hash_bytes(hash, p->recipe.drop_last ? "d" : "a", 1);
    // The type of activations and the order of steps are not in the graphs.
    if (p->recipe.precision != F32) {
        const char *precision = dtype_name(p->recipe.precision);
        hash = hash_bytes(hash, precision, strlen(precision));
    }
    Text times = text_new(scratch);
    text_add(&times, "%d %g %d %g %d", recipe_update_batches(&p->recipe),
             p->average_every.count, p->average_every.unit,
             p->average_from.count, p->average_from.unit);
    for (int i = 0; i < p->num_stages; i++)
        text_add(&times, " %g %d", p->stage[i].from.count,
                 p->stage[i].from.unit);
    hash = hash_bytes(hash, text_string(&times), times.length);
    int count;
    const Step *step = program_steps(p, scratch, &count);
    for (int i = 0; i < count; i++)
        if (step[i].kind > STEP_DERIVE && step[i].kind != STEP_PREDICT)
            hash = hash_graph(scratch, hash, step[i].graph);
    arena_free(scratch);
    return hash;
}

// ---- names ----

// The file's name for a C program: characters other than letters, digits, _ and
// - become _, and so does a first -, which would make it an option.
static const char *name_of(Arena *a, const Program *p) {
    char *name = stem_of(a, p->file);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz"
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
                    *c))
            *c = '_';
    if (*name == '-')
        *name = '_';
    return name;
}

// ---- sources and settings ----

static void source_add(Arena *a, CodegenOptions *o, NamedText *to,
                       const char *path, const char *name) {
    const char *why;
    const Source *s = source_read(a, path, UINT32_MAX - 1, &why);
    if (s != NULL) // the file was removed meanwhile
        to[o->num_sources++] = (NamedText){name, s->text};
}

// The list has the files in reverse order of their imports.
static void origin_set(Arena *a, CodegenOptions *o, const Program *p,
                       const Arguments *arguments) {
    NamedText *source = ARENA_ARRAY(a, (size_t)p->num_imported + 1, NamedText);
    NamedText *set =
        ARENA_ARRAY(a, (size_t)arguments->num_settings + 1, NamedText);
    o->source = source;
    o->set = set;
    source_add(a, o, source, arguments->operand[0], p->file);
    for (int i = p->num_imported; i-- > 0;)
        source_add(a, o, source, p->imported[i].path, p->imported[i].below);
    for (int i = 0; i < arguments->num_settings; i++)
        set[o->num_sets++] =
            (NamedText){arguments->set[i].key, arguments->set[i].value};
}

TrainerText trainer_text(Arena *a, const Program *p,
                         const Arguments *arguments) {
    TrainerText t = {.name = name_of(a, p),
                     .c_file = text_new(a),
                     .cu_file = text_new(a),
                     .code = text_new(a),
                     .graphs = text_new(a),
                     .tiles = {.arena = a},
                     .tile_file = text_new(a),
                     .fingerprint = fingerprint(p)};
    PassOptions host = plan_options(p, arguments, "host");
    PassOptions cuda = plan_options(p, arguments, "cuda");
    bool host_tiles = tiles_on_host(arguments);
    if (arguments->act || host_tiles) // the one choice of act is recipe
        host.storage = cuda.storage;
    CodegenOptions o = {.version = SINTER_VERSION,
                        .base = t.name,
                        .fingerprint = t.fingerprint,
                        .lines = arguments->lineinfo != NULL,
                        .embeds = arguments->embed != NULL,
                        .graphs = true,
                        .host_tiles = host_tiles};
    origin_set(a, &o, p, arguments);
    Program steps = *p;
    steps.predicts_only = arguments->inference;
    steps.has_gradients = arguments->gradients;
    o.graphs = !arguments->inference;
    t.plan = program_plan(&steps, &cuda);
    t.host = plan_elsewhere(t.plan, &host);
    const TileModels tiles = tiles_take(a, arguments, t.plan, t.host);
    o.tiles = &tiles;
    codegen_program(&steps, (const Plan *[]){t.host, t.plan}, &o, &t.c_file,
                    &t.cu_file, &t.tiles);
    if (host_tiles && t.tiles.count > 0)
        codegen_host_tiles(&t.tiles, t.host->act, &t.tile_file);
    if (o.graphs)
        codegen_graphs(t.host, &t.graphs);
    if (arguments->lineinfo)
        t.cu_file = lineinfo_add(a, t.plan, arena_format(a, "%s.cu", t.name),
                                 &t.cu_file);
    return t;
}

const Program *trainer_load(Arena *a, const Arguments *arguments,
                            TrainerText *out, int *status) {
    Diagnostics diags = diag_new(a);
    const Program *p = model_load(a, arguments, &diags, status);
    if (!p)
        return NULL;
    *out = trainer_text(a, p, arguments);
    *status = EXIT_MEMORY;
    return plan_fits(a, arguments, p, out->plan) ? p : NULL;
}
