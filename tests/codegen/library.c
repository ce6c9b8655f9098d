// Library: see library.h.
//
// Each program is compiled by itself, since emitted names are alike.
#define _GNU_SOURCE
#include "tests/codegen/library.h"

#include "codegen/codegen.h"
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *library_source(Arena *a, const char *file) {
    const char *root = getenv("SINTER_SOURCE");
    return arena_format(a, "%s/%s", root ? root : ".", file);
}

const char *library_folder(Arena *a) {
    const char *tmp = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder);
}

Program *library_program(Arena *a, Graph *train, DType precision) {
    enum { CLASSES = 5 };
    static const char nothing[] =
        "graph eval (primitive, typed; act = f32) {\n"
        "%0 = state {init = 0.0, kind = \"run\", name = \"finite\"} : f32[]\n"
        "%1 = assign %0, %0 : f32[]\n"
        "}\n";
    const char *error;
    Program *p = ARENA_NEW(a, Program);
    p->name = p->file = "graph";
    p->recipe = (Recipe){.data_format = "synthetic",
                         .batch = 1,
                         .classes = CLASSES,
                         .precision = precision};
    Stage *stage = ARENA_NEW(a, Stage);
    stage->train = train;
    p->stage = stage;
    p->num_stages = 1;
    p->eval = graph_read(a, nothing, sizeof nothing - 1, &error);
    p->init = graph_read(a, nothing, sizeof nothing - 1, &error);
    p->init->name = "init";
    return p;
}

static void write_file(const char *path, const Text *text) {
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fwrite(text_string(text), 1, text->length, f);
    fclose(f);
}

// An order of configurations that depends on nothing but their sizes and the
// variable TILE_CANDIDATE, so that kernels have tiles of all kinds, with the
// reduced axis in parts, and with blocks in either order.
static double drawn_seconds(const Launches *l, const TileKernel *k,
                            const TileConfig *c, const struct Device *d) {
    const char *number = getenv("TILE_CANDIDATE");
    const int size[] = {c->rows,  c->columns, c->depth,
                        c->warps, c->parts,   c->swizzle};
    uint32_t hash = number != NULL ? (uint32_t)atoi(number) : 0;
    (void)l, (void)d;
    for (const char *s = k->name; *s != '\0'; s++)
        hash = hash * 31 + (unsigned char)*s;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        hash = (hash ^ (uint32_t)size[i]) * 0x9e3779b1u;
    return 1 + (hash >> 16);
}

static const TileModel drawn = {
    .capability = 90, .processors = 16, .seconds = drawn_seconds};

// The tile kernels of a program in one file.
static void write_tiles(Arena *a, const char *folder, const char *name,
                        const Plan *plan, const TileTexts *tiles) {
    Text t = text_new(a);
    codegen_host_tiles(tiles, plan->act, &t);
    write_file(arena_format(a, "%s/%s.tile.cc", folder, name), &t);
}

void library_write(Arena *a, const char *folder, const char *name,
                   const Program *p, const Plan *plan) {
    Text c = text_new(a), cu = text_new(a), unit = text_new(a);
    const TileModels models = {&drawn, 1};
    CodegenOptions options = {.version = "test",
                              .base = name,
                              .fingerprint = 1,
                              .host_tiles = true,
                              .tiles = &models};
    TileTexts tiles = {.arena = a};
    codegen_program(p, (const Plan *[]){plan, plan}, &options, &c, &cu, &tiles);
    if (tiles.count > 0)
        write_tiles(a, folder, name, plan, &tiles);
    text_add(&unit,
             "#define sinter_trainer %s_trainer\n#define main %s_main\n"
             "#define sinter_tiles %s_tiles\n"
             "#ifndef SINTER_SIMT // which watches all memory of kernels\n"
             "#define sinter_squares %s_squares\n"
             "#define DECLARE_FLAGS(name, count) unsigned char name[count];\n"
             "#endif\n"
             "#include \"%s.c\"\n",
             name, name, name, name, name);
    write_file(arena_format(a, "%s/%s.c", folder, name), &c);
    write_file(arena_format(a, "%s/%s.cu", folder, name), &cu);
    write_file(arena_format(a, "%s/%s.unit.c", folder, name), &unit);
}

static const char *compiler(void) {
    const char *cc = getenv("CC");
    return cc ? cc : "cc";
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), most = strlen(end);
    return length >= most && strcmp(text + length - most, end) == 0;
}

bool library_tiny(void) {
    return ends_with(compiler(), "tcc");
}

// NULL: a whole compiler is needed, as the race checker's flag does.
static const char *tiny_compiler(const char *flags) {
    if (strstr(flags, "-fsanitize=") != NULL)
        return NULL;
    if (library_tiny())
        return compiler();
    return strstr(flags, LIBRARY_TINY) != NULL ? getenv("TCC") : NULL;
}

// The tiny compiler has no type of 16 bits, which faithful mode needs not.
const char *library_gpu_flags(void) {
    return getenv("TCC") != NULL ? LIBRARY_TINY " " LIBRARY_EMBEDS
                                                " -DSINTER_SIMT"
                                 : "-O0 -w";
}

static const char *tiny_command(Arena *a, const char *tcc, const char *include,
                                const char *units, const char *objects,
                                const char *flags) {
    const char *own = library_source(a, "tests/random/tcc");
    const char *each = units;
    if (strstr(flags, LIBRARY_EMBEDS) != NULL) {
        tcc = arena_format(a, "for unit in%s; do %s/cc", units, own);
        // All texts have one name, which is hidden.
        each = " $unit && objcopy --localize-hidden ${unit%c}o || exit; done";
    }
    return arena_format(
        a,
        "%s -w %s -include %s/prepare.h -I%s -I%s -c%s && "
        "cc -shared -Wl,-z,noexecstack -o model.so %s/shared.s%s -lm",
        tcc, flags, own, own, include, each, own, objects);
}

static const char *command_of(Arena *a, const char *units, const char *objects,
                              const char *flags) {
    const char *include = getenv("SINTER_INCLUDE");
    const char *tcc = tiny_compiler(flags);
    if (include == NULL)
        include = library_source(a, ".");
    if (tcc != NULL)
        return tiny_command(a, tcc, include, units, objects, flags);
    const char *cc = library_tiny() ? "cc" : compiler();
    return arena_format(a,
                        "%s -std=gnu11 -fPIC -march=native -fopenmp-simd "
                        "-ffp-contract=off %s -I%s -c%s && "
                        "%s -shared%s -o model.so -lm",
                        cc, flags, include, units, cc, objects);
}

// Adds the command that compiles a program's tile kernels, if it has some, and
// their object.
static void add_tiles(Arena *a, const char *folder, const char *name,
                      Text *commands, Text *objects) {
    const char *cxx = getenv("CXX");
    if (access(arena_format(a, "%s/%s.tile.cc", folder, name), R_OK) != 0)
        return;
    text_add(commands,
             " && %s -std=c++20 -O0 -march=native -fPIC -Wall -Wextra -Werror "
             "-Wno-attributes -Wno-unused-parameter -Wno-unused-variable -I%s "
             "-I%s -Dsinter_tiles=%s_tiles -c %s.tile.cc",
             cxx != NULL ? cxx : "c++",
             library_source(a, "runtime/prelude/tile"), library_source(a, "."),
             name, name);
    text_add(objects, " %s.tile.o", name);
}

const char *library_compile(Arena *a, const char *folder, int count,
                            const char *const *name, const char *flags) {
    Text units = text_new(a), objects = text_new(a), tiles = text_new(a);
    for (int i = 0; i < count; i++) {
        text_add(&units, " %s.unit.c", name[i]);
        text_add(&objects, " %s.unit.o", name[i]);
        add_tiles(a, folder, name[i], &tiles, &objects);
    }
    const char *command = arena_format(
        a, "cd %s%s && %s", folder, text_string(&tiles),
        command_of(a, text_string(&units), text_string(&objects), flags));
    return system(command) == 0
               ? NULL
               : arena_format(a, "did not compile: %s", command);
}

void *library_open(Arena *a, const char *folder, const char **why) {
    void *library =
        dlopen(arena_format(a, "%s/model.so", folder), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        *why = dlerror();
    return library;
}

const RtPlan *library_plan(Arena *a, void *library, const char *name) {
    const RtTrainer *trainer =
        dlsym(library, arena_format(a, "%s_trainer", name));
    return trainer ? &trainer->plan[0] : NULL;
}

const char *library_kernels(Arena *a, void *library, const char *name) {
    const RtTrainer *trainer =
        dlsym(library, arena_format(a, "%s_trainer", name));
    return trainer->kernels;
}

unsigned char *library_squares(Arena *a, void *library, const char *name) {
    return dlsym(library, arena_format(a, "%s_squares", name));
}

RtDevice *library_gpu(Arena *a, void *library, const char *name,
                      const RtPlan **plan, const char **why) {
    const RtTrainer *trainer =
        dlsym(library, arena_format(a, "%s_trainer", name));
    RtPlan *own = ARENA_NEW(a, RtPlan);
    RtError *e = ARENA_NEW(a, RtError);
    *own = trainer->plan[1];
    own->num_fusions = 0;
    *plan = own;
    RtDevice *device = rt_cuda_open(trainer, own, 0, NULL, NULL, e);
    if (device == NULL)
        *why = e->text;
    return device;
}

void library_remove(Arena *a, const char *folder, int count,
                    const char *const *name) {
    static const char *const end[] = {"c",      "cu",      "unit.c",
                                      "unit.o", "tile.cc", "tile.o"};
    enum { FILES = sizeof end / sizeof *end };
    for (int i = 0; i < count; i++)
        for (int k = 0; k < FILES; k++)
            unlink(arena_format(a, "%s/%s.%s", folder, name[i], end[k]));
    unlink(arena_format(a, "%s/model.so", folder));
    rmdir(folder);
}
