// Compiles emitted kernels to machine code for a GPU architecture with NVRTC,
// each text once and some at a time.  It needs no GPU.  An error, a warning or
// a register that spills is a failure.
//
//   nvrtc INCLUDE_FOLDER ARCHITECTURE [--merged] [--known=FILE] FILE.cu...
//
// It prints its version and a line for each kernel: model, name, registers,
// bytes of shared memory, instructions with the padding to 128 bytes, bytes
// that a thread loads before it waits.  With --merged it takes the merged
// kernels, else the others.  With --known it does not compile kernels that the
// file knows, and adds the others.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <elf.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 20, THREADS = 2 };

// Kernels of one model that are compiled as one text.
typedef struct {
    const Model *model;
    int kernel[UNIT], count;
} Unit;

typedef struct {
    const char *include, *arch;
    Kernels *kernels;
    Unit *unit;
    int num_units;
    pthread_mutex_t lock;
    int next, faults;
} Work;

static void check(nvrtcResult result, const char *what) {
    if (result == NVRTC_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, nvrtcGetErrorString(result));
    exit(EXIT_FAILURE);
}

// One line of the log, of which ptxas writes the greater part; whether it is a
// fault.  kernel is the one that it is about.
static bool line_read(const Work *w, const Model *m, const char *line,
                      Kernel **kernel) {
    char name[LONGEST_NAME + 1];
    int registers = 0, stores = 0, loads = 0;
    const char *entry = strstr(line, "entry function '");
    if (entry && sscanf(entry, "entry function '%255[^']'", name) == 1)
        *kernel = kernel_find(w->kernels, m, name);
    const char *used = strstr(line, "Used ");
    if (used && *kernel && sscanf(used, "Used %d registers", &registers) == 1) {
        const char *shared = strstr(used, " bytes smem");
        while (shared && shared[-1] >= '0' && shared[-1] <= '9')
            shared--;
        (*kernel)->registers = registers;
        (*kernel)->shared = shared ? atoi(shared) : 0;
    }
    const char *spill = strstr(line, "bytes stack frame, ");
    if (spill)
        sscanf(spill, "bytes stack frame, %d bytes spill stores, %d", &stores,
               &loads);
    return stores + loads > 0 || strstr(line, "warning") ||
           strstr(line, "error");
}

static int log_read(const Work *w, const Model *m, nvrtcProgram program) {
    size_t size;
    int faults = 0;
    Kernel *kernel = NULL;
    check(nvrtcGetProgramLogSize(program, &size), "size of the log");
    char *log = memory_get(size), *rest = NULL;
    check(nvrtcGetProgramLog(program, log), "log");
    for (char *line = strtok_r(log, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        if (line_read(w, m, line, &kernel)) {
            faults++;
            fprintf(stderr, "%s for %s: %s: %s\n", m->name, w->arch,
                    kernel ? kernel->name : "", line);
        }
    free(log);
    return faults;
}

static void ptx_read(const Work *w, const Model *m, nvrtcProgram program) {
    size_t size;
    check(nvrtcGetPTXSize(program, &size), "size of the PTX");
    char *ptx = memory_get(size);
    check(nvrtcGetPTX(program, ptx), "PTX");
    accesses_read(w->kernels, m, ptx);
    free(ptx);
}

// The machine code of each kernel is a section; an instruction is 16 bytes.
static void code_read(const Work *w, const Model *m, const char *cubin) {
    static const char text[] = ".text.";
    const Elf64_Ehdr *file = (const Elf64_Ehdr *)cubin;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(cubin + file->e_shoff);
    const char *names = cubin + section[file->e_shstrndx].sh_offset;
    for (int i = 0; i < file->e_shnum; i++) {
        const char *name = names + section[i].sh_name;
        Kernel *k = strncmp(name, text, strlen(text)) == 0
                        ? kernel_find(w->kernels, m, name + strlen(text))
                        : NULL;
        if (k == NULL)
            continue;
        k->instructions = (int)(section[i].sh_size / 16);
        k->in_flight = bytes_in_flight(
            cubin + section[i].sh_offset, k->instructions,
            atoi(w->arch + strlen("sm_")), strstr(k->text, "PHASED(") != NULL);
    }
}

static void cubin_read(const Work *w, const Model *m, nvrtcProgram program) {
    size_t size;
    check(nvrtcGetCUBINSize(program, &size), "size of the machine code");
    char *cubin = memory_get(size);
    check(nvrtcGetCUBIN(program, cubin), "machine code");
    code_read(w, m, cubin);
    free(cubin);
}

// Writes the text of a kernel after those that it merges, of which only the
// functions are needed.
static void kernel_write(FILE *f, const Kernels *kernels, bool *written,
                         const Kernel *k) {
    for (int i = 0; i < k->num_members; i++) {
        const Kernel *member = &kernels->kernel[k->member[i]];
        if (!written[k->member[i]])
            fwrite(member->text, 1, kernel_body(member), f);
        written[k->member[i]] = true;
    }
    fputs(k->text, f);
    written[k - kernels->kernel] = true;
}

static char *unit_text(const Kernels *kernels, const Unit *u) {
    bool *written = memory_get((size_t)kernels->num_kernels * sizeof *written);
    char *text = NULL;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        abort();
    fputs(u->model->head, f);
    for (int i = 0; i < u->count; i++)
        kernel_write(f, kernels, written, &kernels->kernel[u->kernel[i]]);
    fclose(f);
    free(written);
    return text;
}

static void unit_blame(const Kernels *all, const Unit *u) {
    for (int i = 0; i < u->count; i++)
        all->kernel[u->kernel[i]].faulty = true;
}

// The number of faults in the text of a unit.
static int unit_compile(const Work *w, const Unit *u) {
    char option[64], folder[4096];
    snprintf(option, sizeof option, "--gpu-architecture=%s", w->arch);
    snprintf(folder, sizeof folder, "--include-path=%s", w->include);
    const char *options[] = {
        option,
        folder,
        "--ptxas-options=-v",
#define OPTION(text) text,
#include "runtime/cuda/kernels/nvrtc.def"
    };
    const int count = sizeof options / sizeof options[0];
    char *text = unit_text(w->kernels, u);
    nvrtcProgram program;
    check(nvrtcCreateProgram(&program, text, u->model->name, 0, NULL, NULL),
          u->model->name);
    nvrtcResult result = nvrtcCompileProgram(program, count, options);
    int faults = log_read(w, u->model, program);
    if (result == NVRTC_SUCCESS) {
        ptx_read(w, u->model, program);
        cubin_read(w, u->model, program);
    } else {
        faults++;
        fprintf(stderr, "%s for %s: %s\n", u->model->name, w->arch,
                nvrtcGetErrorString(result));
    }
    check(nvrtcDestroyProgram(&program), u->model->name);
    free(text);
    if (faults > 0)
        unit_blame(w->kernels, u);
    return faults;
}

static void *units_compile(void *argument) {
    Work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->next < w->num_units) {
        const Unit *u = &w->unit[w->next++];
        pthread_mutex_unlock(&w->lock);
        int faults = unit_compile(w, u);
        pthread_mutex_lock(&w->lock);
        w->faults += faults;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void units_make(Work *w) {
    const Kernels *all = w->kernels;
    w->unit = memory_get((size_t)all->num_kernels * sizeof *w->unit);
    Unit *u = NULL;
    for (int i = 0; i < all->num_kernels; i++) {
        const Kernel *k = &all->kernel[i];
        if (k->known || !is_first(all, i))
            continue;
        if (u == NULL || u->model != k->model || u->count == UNIT) {
            u = &w->unit[w->num_units++];
            u->model = k->model;
        }
        u->kernel[u->count++] = i;
    }
}

// Kernels with one text share the facts of the first.
static void twins_fill(const Kernels *all) {
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        const Kernel *twin = &all->kernel[k->twin];
        k->registers = twin->registers;
        k->shared = twin->shared;
        k->instructions = twin->instructions;
        k->in_flight = twin->in_flight;
        memcpy(k->widths, twin->widths, sizeof k->widths);
    }
}

// A kernel of a merged launch reads what those before it wrote.
static int stale_count(Kernels *all) {
    int count = 0;
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        if (!k->stale || k->num_members == 0)
            continue;
        k->faulty = true;
        fprintf(stderr, "%s: %s loads by ld.global.nc\n", k->model->name,
                k->name);
        count++;
    }
    return count;
}

static int all_compile(Work *w) {
    pthread_t thread[THREADS];
    pthread_mutex_init(&w->lock, NULL);
    units_make(w);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, units_compile, w) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&w->lock);
    free(w->unit);
    twins_fill(w->kernels);
    for (int i = 0; i < w->kernels->num_kernels; i++)
        w->faults += is_meant(w->kernels, &w->kernels->kernel[i]) &&
                     w->kernels->kernel[i].registers == 0;
    return w->faults + stale_count(w->kernels) + accesses_narrow(w->kernels);
}

// Whether the argument is NAME=VALUE, and the value.
static bool option_read(const char *argument, const char *name,
                        const char **value) {
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0)
        return false;
    *value = argument + length;
    return true;
}

static void kernels_print(const Kernels *all) {
    int major = 0, minor = 0;
    check(nvrtcVersion(&major, &minor), "version");
    printf("# NVRTC %d.%d\n", major, minor);
    for (int i = 0; i < all->num_kernels; i++) {
        const Kernel *k = &all->kernel[i];
        if (is_meant(all, k))
            printf("%s %s %d %d %d %d\n", k->model->name, k->name, k->registers,
                   k->shared, k->instructions, k->in_flight);
    }
}

int main(int argc, char **argv) {
    const char *known = NULL;
    int first = 3;
    bool merged = argc > first && strcmp(argv[first], "--merged") == 0;
    first += merged;
    first += argc > first && option_read(argv[first], "--known=", &known);
    if (argc <= first) {
        fputs("usage: nvrtc INCLUDE_FOLDER ARCHITECTURE [--merged] "
              "[--known=FILE] FILE.cu...\n",
              stderr);
        return EXIT_FAILURE;
    }
    Kernels kernels = kernels_cut(argc - first, argv + first);
    kernels.merged = merged;
    if (known != NULL)
        known_read(&kernels, argv[1], argv[2], known);
    Work work = {argv[1], argv[2], .kernels = &kernels};
    int failed = all_compile(&work);
    if (known != NULL)
        known_add(&kernels, known);
    kernels_print(&kernels);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
