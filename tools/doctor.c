// sinter doctor: lists the libraries, GPUs and compilers of this machine,
// opened as a trainer opens them, and the packages to install.
#include "base/exits.h"
#include "runtime/machine.h"
#include "tools/compiler.h"
#include "tools/scratch.h"
#include "tools/tile.h"

#include <string.h>

enum { MAX_FINDINGS = RT_MAX_GPUS + 13 };

typedef struct {
    const char *name;
    const char *version; // or a device's properties; NULL: it cannot be used
    const char *path;    // may be NULL
    const char *missing; // the reason and the remedy
    bool needed;         // to build any trainer
} Finding;

typedef struct {
    Arena *a;
    Finding finding[MAX_FINDINGS];
    int count, devices;
    int driver; // largest CUDA version of the driver, times 1000; 0: no driver
} Doctor;

static Finding *finding_add(Doctor *d, const char *name) {
    Finding *f = &d->finding[d->count++];
    *f = (Finding){.name = name};
    return f;
}

static const char *copied(const Doctor *d, const char *text) {
    return text ? arena_string(d->a, text, strlen(text)) : NULL;
}

static void component_add(void *context, const RtComponent *component) {
    Doctor *d = context;
    Finding *f = finding_add(d, copied(d, component->name));
    f->version = copied(d, component->version);
    f->path = copied(d, component->path);
    f->missing = copied(d, component->missing);
}

// ---- the C compiler ----

static void compiler_find(Doctor *d, const Arguments *arguments) {
    Finding *f = finding_add(d, "C compiler");
    Scratch scratch;
    f->needed = true;
    if (!scratch_open(d->a, arguments, &scratch)) {
        f->missing = "compiling a trainer needs a writable temporary folder: "
                     "name one in TMPDIR";
        return;
    }
    for (size_t i = 0; i < COMPILER_CANDIDATES && !f->version; i++) {
        const char *program = compiler_candidate(i);
        f->version =
            program ? compiler_version(d->a, scratch.path, program) : NULL;
        f->path = f->version ? program : NULL;
    }
    if (!f->version)
        f->missing = "building a trainer needs a C compiler: install gcc or "
                     "clang, or name one in CC";
    scratch_close(&scratch);
}

// ---- tile kernels ----

// Their compilers are optional.
static void tiles_find(Doctor *d, const Arguments *arguments) {
    Finding *f = finding_add(d, "Tile IR");
    Scratch scratch;
    TileToolchain t;
    const char *why = "there is no temporary folder";
    if (scratch_open(d->a, arguments, &scratch)) {
        if (tile_toolchain(d->a, scratch.path, &t, &why)) {
            f->version = arena_format(
                d->a, "%s: build --target compiles tile kernels", t.version);
            f->path = t.tileiras;
            rt_tile_close(t.nvrtc);
        }
        scratch_close(&scratch);
    }
    if (!f->version)
        f->version = arena_format(
            d->a, "absent: all contractions are library calls; %s", why);
}

// ---- report ----

static bool all_there(const Doctor *d, bool needed) {
    for (int i = 0; i < d->count; i++)
        if (!d->finding[i].version && (!needed || d->finding[i].needed))
            return false;
    return true;
}

static const char *verdict(const Doctor *d) {
    if (!all_there(d, true))
        return "no trainer can be built here until this is installed";
    if (d->devices > 0 && all_there(d, false))
        return "complete: trainers run on a GPU and on the host";
    if (d->driver != 0 && d->devices == 0 && all_there(d, false))
        return "NVIDIA's driver finds no GPU; trainers run on the host";
    return "trainers run on the host; a GPU needs this, too";
}

static void text_print(const Doctor *d) {
    for (int i = 0; i < d->count; i++) {
        const Finding *f = &d->finding[i];
        printf("%-11s %s", f->name, f->version ? f->version : "-");
        printf(f->path ? "  %s\n" : "\n",
               f->path ? text_escaped(d->a, f->path) : NULL);
    }
    printf("\n%s%s\n", verdict(d), all_there(d, false) ? "" : ":");
    for (int i = 0; i < d->count; i++)
        if (d->finding[i].missing)
            printf("  %s: %s\n", d->finding[i].name,
                   text_escaped(d->a, d->finding[i].missing));
}

static void member_add(Text *t, const char *key, const char *value) {
    if (value)
        json_text(t, key, value);
}

static void json_print(const Doctor *d) {
    Text t = text_new(d->a);
    text_add(&t, "{\"schema\": 1, \"verdict\": ");
    json_string(&t, verdict(d));
    text_add(&t, ", \"devices\": %d, \"found\": [", d->devices);
    for (int i = 0; i < d->count; i++) {
        const Finding *f = &d->finding[i];
        text_add(&t, "%s\n  {\"name\": ", i ? "," : "");
        json_string(&t, f->name);
        member_add(&t, "version", f->version);
        member_add(&t, "path", f->path);
        member_add(&t, "missing", f->missing);
        text_add(&t, "}");
    }
    text_add(&t, "\n]}\n");
    fputs(text_string(&t), stdout);
}

int doctor_command(Arena *a, const Arguments *arguments) {
    Doctor d = {.a = a};
    d.devices = rt_cuda_components(component_add, &d, &d.driver);
    tiles_find(&d, arguments);
    compiler_find(&d, arguments);
    rt_host_components(component_add, &d);
    d.finding[d.count - 1].needed = true;
    rt_duckdb_component(component_add, &d);
    if (arguments->json)
        json_print(&d);
    else
        text_print(&d);
    return all_there(&d, true) ? EXIT_GOOD : EXIT_DEVICE;
}
