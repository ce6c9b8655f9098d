// Compiles emitted kernels to machine code for GPU generations with NVRTC.  It
// needs no GPU.  An error, a warning or a register that spills is a failure.
//
//   nvrtc INCLUDE_FOLDER ARCHITECTURE[,ARCHITECTURE...] FILE.cu...
#include <nvrtc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What ptxas said about one file.
typedef struct {
    int kernels, registers; // registers: the most that one kernel uses
    int faults;             // lines that are printed and fail the test
    char kernel[128];       // the one that the lines are about
} Findings;

static void *memory_get(size_t bytes) {
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p)
        abort();
    return p;
}

static char *file_read(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    long length = ftell(f);
    char *text = memory_get((size_t)length + 1);
    rewind(f);
    if (fread(text, 1, (size_t)length, f) != (size_t)length) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(f);
    return text;
}

static void check(nvrtcResult result, const char *what) {
    if (result == NVRTC_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, nvrtcGetErrorString(result));
    exit(EXIT_FAILURE);
}

// One line of the log, of which ptxas writes the greater part.
static void line_read(Findings *f, const char *line, const char *name) {
    int stores = 0, loads = 0, registers = 0;
    const char *spill = strstr(line, "bytes stack frame");
    const char *entry = strstr(line, "entry function '");
    if (entry)
        sscanf(entry, "entry function '%127[^']'", f->kernel);
    const char *used = strstr(line, "Used ");
    if (used && sscanf(used, "Used %d registers", &registers) == 1) {
        f->kernels++;
        if (registers > f->registers)
            f->registers = registers;
    }
    bool spills = spill &&
                  sscanf(spill,
                         "bytes stack frame, %d bytes spill stores, %d bytes "
                         "spill loads",
                         &stores, &loads) == 2 &&
                  (stores > 0 || loads > 0);
    if (spills || strstr(line, "warning") || strstr(line, "error")) {
        f->faults++;
        fprintf(stderr, "%s: %s: %s\n", name, f->kernel, line);
    }
}

static Findings log_read(nvrtcProgram program, const char *name) {
    Findings f = {0};
    size_t size;
    check(nvrtcGetProgramLogSize(program, &size), "size of the log");
    char *log = memory_get(size);
    check(nvrtcGetProgramLog(program, log), "log");
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
        line_read(&f, line, name);
    free(log);
    return f;
}

// Compiles one text for one architecture; false when that is not clean.
static bool text_compile(const char *include, const char *path,
                         const char *text, int length, const char *arch) {
    char option[64], folder[4096], name[512];
    snprintf(option, sizeof option, "--gpu-architecture=%.*s", length, arch);
    snprintf(folder, sizeof folder, "--include-path=%s", include);
    snprintf(name, sizeof name, "%s for %.*s", path, length, arch);
    const char *options[] = {option, folder, "--std=c++17",
                             "--ptxas-options=-v"};
    nvrtcProgram program;
    check(nvrtcCreateProgram(&program, text, path, 0, NULL, NULL), path);
    nvrtcResult result = nvrtcCompileProgram(program, 4, options);
    Findings f = log_read(program, name);
    if (result != NVRTC_SUCCESS)
        fprintf(stderr, "%s: %s\n", name, nvrtcGetErrorString(result));
    else
        printf("%s: %d kernels, at most %d registers\n", name, f.kernels,
               f.registers);
    check(nvrtcDestroyProgram(&program), path);
    return result == NVRTC_SUCCESS && f.faults == 0 && f.kernels > 0;
}

// Compiles one file for each architecture of a list; how many are not clean.
static int file_compile(const char *include, const char *architectures,
                        const char *path) {
    char *text = file_read(path);
    int failed = 0;
    for (const char *arch = architectures; *arch;) {
        size_t length = strcspn(arch, ",");
        failed += !text_compile(include, path, text, (int)length, arch);
        arch += length + (arch[length] == ',');
    }
    free(text);
    return failed;
}

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 3; i < argc; i++)
        failed += file_compile(argv[1], argv[2], argv[i]);
    if (argc < 4)
        fputs("usage: nvrtc INCLUDE_FOLDER ARCHITECTURES FILE.cu...\n", stderr);
    return failed || argc < 4 ? EXIT_FAILURE : EXIT_SUCCESS;
}
