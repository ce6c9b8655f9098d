// Accesses: how wide kernels load and store, from their PTX.  An address is
// followed back to the parameter that it was computed from; in PTX a register
// is written before it is read in the order of the text, loops included.
#include "tests/nvrtc/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Kernel *kernel;
    int *parameter; // of a 64-bit register, plus 1
    int count;
} Origins;

static int register_read(const char *s) {
    int number = 0;
    return s != NULL && sscanf(s, "%%rd%d", &number) == 1 ? number : 0;
}

static int *origin_of(Origins *o, int number) {
    if (number >= o->count) {
        int count = 2 * number + 64;
        o->parameter = realloc(o->parameter, (size_t)count * sizeof(int));
        if (o->parameter == NULL)
            abort();
        memset(o->parameter + o->count, 0,
               (size_t)(count - o->count) * sizeof(int));
        o->count = count;
    }
    return &o->parameter[number];
}

// The bytes that an instruction such as ld.global.nc.v4.f32 moves.
static int access_width(const char *op) {
    int lanes = 1, bits = 0;
    for (const char *s = op; *s == '.' || (*s > ' ' && *s != '['); s++) {
        if (s[0] == '.' && s[1] == 'v')
            lanes = atoi(s + 2);
        else if (s[0] == '.' && strchr("bfsu", s[1]) != NULL && atoi(s + 2) > 0)
            bits = atoi(s + 2);
    }
    return lanes * bits / 8;
}

static void access_add(Origins *o, const char *line, bool store) {
    const char *address = strchr(line, '[');
    int number = register_read(address ? address + 1 : NULL);
    int from = number > 0 ? *origin_of(o, number) : 0;
    if (from == 0 || o->kernel == NULL || from > o->kernel->num_parameters)
        return;
    Widths *w = &o->kernel->widths[from - 1];
    *(store ? &w->written : &w->read) |= access_width(line);
}

static void value_follow(Origins *o, const char *line) {
    const char *s = strstr(line, "%rd");
    const char *comma = strchr(line, ',');
    if (s == NULL || comma == NULL || s > comma)
        return;
    int result = register_read(s);
    for (s = comma; (s = strstr(s, "%rd")) != NULL; s++) {
        int from = *origin_of(o, register_read(s));
        if (from > 0) {
            *origin_of(o, result) = from;
            return;
        }
    }
}

static void line_read(Origins *o, const char *line) {
    line += strspn(line, " \t");
    if (*line == '@')
        line += strcspn(line, " \t"), line += strspn(line, " \t");
    const char *parameter = strstr(line, "_param_");
    if (strncmp(line, "ld.param.", 9) == 0 && parameter != NULL) {
        int number = register_read(strstr(line, "%rd"));
        if (number > 0)
            *origin_of(o, number) = atoi(parameter + 7) + 1;
    } else if (strncmp(line, "ld.global", 9) == 0) {
        if (o->kernel != NULL && strncmp(line, "ld.global.nc", 12) == 0)
            o->kernel->stale = true;
        access_add(o, line, false);
    } else if (strncmp(line, "st.global", 9) == 0) {
        access_add(o, line, true);
    } else if (strncmp(line, "ld.", 3) != 0) {
        value_follow(o, line);
    }
}

void accesses_read(const Kernels *kernels, const Model *model, char *ptx) {
    Origins o = {0};
    char *rest = NULL;
    for (char *line = strtok_r(ptx, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char name[LONGEST_NAME + 1];
        const char *entry = strstr(line, ".entry ");
        if (entry && sscanf(entry, ".entry %255[A-Za-z0-9_]", name) == 1) {
            free(o.parameter);
            o = (Origins){.kernel = kernel_find(kernels, model, name)};
        }
        line_read(&o, line);
    }
    free(o.parameter);
}
