// Report: a line for each kernel of a model.  Registers are those of one
// version of NVRTC; a golden report made with another one is not compared.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void widths_print(FILE *f, char mark, int widths) {
    for (int width = 1; width <= 32; width *= 2)
        if (widths & width) {
            fprintf(f, "%c%d", mark, width);
            mark = ',';
        }
}

static void kernel_print(FILE *f, const Kernel *k) {
    fprintf(f, "%s: %d, %d, %d", k->name, k->registers, k->shared,
            k->instructions);
    const char *comma = ";";
    for (int i = 0; i < k->num_parameters; i++)
        if (k->bulk[i]) {
            fprintf(f, "%s %s", comma, k->type[i]);
            widths_print(f, '<', k->widths[i].read);
            widths_print(f, '>', k->widths[i].written);
            const char *why = access_reason(k, i);
            if (why != NULL && *why != '\0')
                fprintf(f, " %s", why);
            comma = ",";
        }
    fputc('\n', f);
}

static void version_write(char *version, size_t size) {
    int major = 0, minor = 0;
    nvrtcVersion(&major, &minor);
    snprintf(version, size, "NVRTC %d.%d", major, minor);
}

void report_head(FILE *f) {
    char version[64];
    version_write(version, sizeof version);
    fprintf(f, "# %s\n", version);
}

static void report_print(FILE *f, const Kernels *kernels, const Model *m,
                         const char *arch) {
    report_head(f);
    fprintf(f,
            "# %s: registers, bytes of shared memory, instructions with what "
            "fills 128\n# bytes; tensors with rows, <read and >written how "
            "many bytes wide, and why where\n# that is less than 16.  Nothing "
            "spills.\n",
            arch);
    accesses_explain(f);
    for (int i = m->first; i < m->end; i++)
        if (is_meant(kernels, &kernels->kernel[i]))
            kernel_print(f, &kernels->kernel[i]);
}

// The first line says what a report was made with.
bool report_fits(const char *path) {
    char line[64] = "", version[64];
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return true;
    if (fgets(line, sizeof line, f) == NULL)
        line[0] = '\0';
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    version_write(version, sizeof version);
    return strlen(line) > 2 && strcmp(line + 2, version) == 0;
}

static bool file_differs(const char *path, const char *text) {
    char command[2 * 4096];
    snprintf(command, sizeof command, "diff -u '%s' -", path);
    fflush(stdout);
    FILE *diff = popen(command, "w");
    if (diff == NULL)
        abort();
    fputs(text, diff);
    return pclose(diff) != 0;
}

bool report_differs(const char *path, const char *text) {
    if (getenv("BLESS") != NULL) {
        FILE *f = fopen(path, "w");
        if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) {
            perror(path);
            exit(EXIT_FAILURE);
        }
        return false;
    }
    if (!report_fits(path)) {
        printf("%s is of another version of NVRTC, and not compared\n", path);
        return false;
    }
    if (!file_differs(path, text))
        return false;
    puts("when that is right: BLESS=1 ctest -L nvrtc");
    return true;
}

int reports_compare(const Kernels *kernels, const char *arch,
                    const char *folder) {
    int differ = 0;
    for (int i = 0; i < kernels->num_models; i++) {
        char path[4096], *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        if (f == NULL)
            abort();
        report_print(f, kernels, &kernels->model[i], arch);
        fclose(f);
        snprintf(path, sizeof path, "%s/%s.%s%s", folder,
                 kernels->model[i].name, kernels->joined ? "joined." : "",
                 arch);
        differ += report_differs(path, text);
        free(text);
    }
    return differ;
}
