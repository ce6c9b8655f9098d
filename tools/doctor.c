// sinter doctor: lists the libraries, GPUs and compilers of this machine,
// opened as a trainer opens them, and the packages to install.
#define _GNU_SOURCE
#include "base/exits.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/kernels/kernels.h"
#include "runtime/cuda/libraries/libraries.h"
#include "runtime/library.h"
#include "runtime/report/nvtx.h"
#include "tools/compiler.h"
#include "tools/scratch.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEVICES = 64, MOST_FINDINGS = MOST_DEVICES + 10 };

typedef struct {
    const char *name;
    const char *version; // or a device's properties; NULL: it cannot be used
    const char *path;    // may be NULL
    const char *missing; // the reason and the remedy
    bool needed;         // to build any trainer
} Finding;

typedef struct {
    Arena *a;
    Finding finding[MOST_FINDINGS];
    int count, devices;
    int generation[MOST_DEVICES]; // of each GPU
    int driver; // largest CUDA version of the driver, times 1000; 0: no driver
} Doctor;

static Finding *finding_add(Doctor *d, const char *name) {
    Finding *f = &d->finding[d->count++];
    *f = (Finding){.name = name};
    return f;
}

// The file that a function was loaded from.
static const char *path_of(Arena *a, const void *function) {
    Dl_info info;
    if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    return arena_string(a, info.dli_fname, strlen(info.dli_fname));
}

// A pointer to a function, kept in `at`, as dladdr takes it.
static const void *address_in(const void *at) {
    const void *address;
    memcpy(&address, at, sizeof address);
    return address;
}

static void finding_miss(Doctor *d, Finding *f, const RtError *e) {
    f->missing = arena_string(d->a, e->text, strlen(e->text));
}

// ---- the driver and its GPUs ----

static void device_find(Doctor *d, const RtDriver *cu, int ordinal,
                        RtError *e) {
    CUdevice device;
    char name[96];
    int major, minor, processors;
    size_t memory;
    Finding *f = finding_add(d, arena_format(d->a, "cuda:%d", ordinal));
    if (rt_driver_good(cu, cu->device_get(&device, ordinal), e, "find GPU %d",
                       ordinal) &&
        rt_driver_good(cu, cu->device_name(name, (int)sizeof name, device), e,
                       "read the name of GPU %d", ordinal) &&
        rt_driver_good(cu, cu->device_memory(&memory, device), e,
                       "read the memory size of GPU %d", ordinal) &&
        rt_driver_good(
            cu,
            cu->device_attribute(
                &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
            e, "read the properties of GPU %d", ordinal) &&
        rt_driver_good(
            cu,
            cu->device_attribute(
                &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
            e, "read the properties of GPU %d", ordinal) &&
        rt_driver_good(
            cu,
            cu->device_attribute(
                &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
            e, "read the properties of GPU %d", ordinal)) {
        f->version = arena_format(
            d->a, "%s, compute capability %d.%d, %d multiprocessors, %zu MiB",
            name, major, minor, processors, memory >> 20);
        d->generation[d->devices++] = 10 * major + minor;
        return;
    }
    finding_miss(d, f, e);
}

static void driver_find(Doctor *d) {
    RtDriver cu;
    RtError e;
    int count = 0;
    Finding *f = finding_add(d, "driver");
    if (!rt_driver_open(&cu, &e) ||
        !rt_driver_good(&cu, cu.driver_version(&d->driver), &e,
                        "read the driver's version")) {
        finding_miss(d, f, &e);
        return;
    }
    f->version = arena_format(d->a, "for CUDA %d.%d", d->driver / 1000,
                              d->driver % 1000 / 10);
    f->path = path_of(d->a, address_in(&cu.driver_version));
    if (!rt_driver_good(&cu, cu.device_count(&count), &e, "count the GPUs"))
        finding_miss(d, finding_add(d, "cuda"), &e);
    for (int i = 0; i < count && i < MOST_DEVICES; i++)
        device_find(d, &cu, i, &e);
}

// ---- libraries ----

// The driver limits the version of CUDA; without one any version will do.
static int driver_of(const Doctor *d) {
    return d->driver ? d->driver : 13000;
}

// Finds libraries that depend on CUDA's version, for the first GPU of each
// version; gpu 0 stands for any if there is none.
static void each_cuda_find(Doctor *d, void (*find)(Doctor *d, int gpu)) {
    bool found[2] = {false}; // 12, 13
    for (int i = 0; i == 0 || i < d->devices; i++) {
        int gpu = d->devices > 0 ? d->generation[i] : 0;
        int cuda = rt_capability_cuda(gpu, driver_of(d));
        if (!found[cuda - 12])
            find(d, gpu);
        found[cuda - 12] = true;
    }
}

// NVRTC opens a further library at the first compilation.
static bool nvrtc_compiles(const RtNvrtc *n, RtError *e) {
    RtSource nothing = {.text = ""};
    RtCode remarks = {0};
    bool good = rt_nvrtc_log(n, &nothing, &remarks, e);
    free(remarks.bytes);
    return good;
}

static void nvrtc_find(Doctor *d, int gpu) {
    RtNvrtc n;
    RtError e;
    Finding *f = finding_add(d, "NVRTC");
    if (!rt_nvrtc_open(&n, gpu, driver_of(d), &e)) {
        finding_miss(d, f, &e);
        return;
    }
    f->path = path_of(d->a, address_in(&n.version));
    if (nvrtc_compiles(&n, &e))
        f->version = arena_format(d->a, "%d.%d", n.major, n.minor);
    else
        finding_miss(d, f, &e);
    rt_nvrtc_close(&n);
}

static void cudnn_find(Doctor *d, int gpu) {
    RtCudnn c;
    RtError e;
    Finding *f = finding_add(d, "cuDNN");
    if (!rt_cudnn_open(&c, &e)) {
        finding_miss(d, f, &e);
        return;
    }
    size_t version = c.version();
    f->path = path_of(d->a, address_in(&c.version));
    if (rt_cudnn_compatible(&c, gpu, driver_of(d), &e))
        f->version =
            arena_format(d->a, "%zu.%zu.%zu for CUDA %zu", version / 10000,
                         version % 10000 / 100, version % 100, c.cuda() / 1000);
    else
        finding_miss(d, f, &e);
    rt_cudnn_close(&c);
}

static void cublaslt_find(Doctor *d, int gpu) {
    RtError e;
    size_t (*version)(void);
    Finding *f = finding_add(d, "cuBLASLt");
    void *library = rt_matmuls_library(gpu, driver_of(d), &version, &e);
    if (library == NULL) {
        finding_miss(d, f, &e);
        return;
    }
    size_t is = version();
    f->version = arena_format(d->a, "%zu.%zu.%zu", is / 10000, is % 10000 / 100,
                              is % 100);
    f->path = path_of(d->a, address_in(&version));
    rt_library_close(library);
}

// NVTX is optional.
static void nvtx_find(Doctor *d) {
    RtNvtx n;
    RtError ignored;
    Finding *f = finding_add(d, "NVTX");
    f->version = "absent: profilers show no ranges for steps and launches";
    if (!rt_nvtx_open(&n, true, &ignored))
        return;
    f->version = "profilers show ranges for steps and launches";
    f->path = path_of(d->a, address_in(&n.push));
    rt_nvtx_close(&n);
}

// The first members of oneDNN's dnnl_version_t.
typedef struct {
    int major, minor, patch;
} OneDnnVersion;

static void onednn_find(Doctor *d) {
    const OneDnnVersion *(*version)(void);
    static const char *const files[] = {"libdnnl.so", NULL};
    static const RtSymbol symbols[] = {{"dnnl_version", 0}};
    const RtLibrary wanted = {.needed = "every trainer is linked with",
                              .files = files,
                              .remedy = "install oneDNN 2 or 3 (libdnnl-dev)",
                              .status = EXIT_DEVICE,
                              .symbol = symbols,
                              .num_symbols = 1};
    RtError e;
    Finding *f = finding_add(d, "oneDNN");
    void *library = rt_library_open(&wanted, &version, &e);
    f->needed = true;
    if (library == NULL) {
        finding_miss(d, f, &e);
        return;
    }
    const OneDnnVersion *is = version();
    f->version =
        arena_format(d->a, "%d.%d.%d", is->major, is->minor, is->patch);
    f->path = path_of(d->a, address_in(&version));
    rt_library_close(library);
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
    driver_find(&d);
    each_cuda_find(&d, nvrtc_find);
    each_cuda_find(&d, cudnn_find);
    each_cuda_find(&d, cublaslt_find);
    nvtx_find(&d);
    compiler_find(&d, arguments);
    onednn_find(&d);
    if (arguments->json)
        json_print(&d);
    else
        text_print(&d);
    return all_there(&d, true) ? EXIT_GOOD : EXIT_DEVICE;
}
