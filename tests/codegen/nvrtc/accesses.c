// Accesses: how wide kernels load and store, from their PTX.  An address is
// followed back to the parameter that it was computed from.  The text of a loop
// may read a register before it writes it, so a kernel is read twice.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Kernel *kernel;
    int *parameter; // of a 64-bit register, plus 1, or a table
    int count;
} Origins;

enum { TABLE = -1 }; // of a kernel, or of a function of CUDA's such as cosf

static const char entry[] = ".visible .entry ";

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
    if (from < 1 || o->kernel == NULL || from > o->kernel->num_parameters)
        return;
    Widths *w = &o->kernel->widths[from - 1];
    *(store ? &w->written : &w->read) |= access_width(line);
}

// Whether an access is of a parameter with RESTRICT, or a table.
static bool is_restricted(Origins *o, const char *line) {
    const char *address = strchr(line, '[');
    int number = register_read(address ? address + 1 : NULL);
    int from = number > 0 ? *origin_of(o, number) : 0;
    return from == TABLE || (from > 0 && from <= o->kernel->num_parameters &&
                             o->kernel->restricted[from - 1]);
}

static void value_follow(Origins *o, const char *line) {
    const char *s = strstr(line, "%rd");
    const char *comma = strchr(line, ',');
    if (s == NULL || comma == NULL || s > comma)
        return;
    int result = register_read(s);
    for (s = comma; (s = strstr(s, "%rd")) != NULL; s++) {
        int from = *origin_of(o, register_read(s));
        if (from != 0) {
            *origin_of(o, result) = from;
            return;
        }
    }
}

static void access_read(Origins *o, const char *line) {
    if (strncmp(line, "ld.global", 9) == 0) {
        if (o->kernel != NULL && strncmp(line, "ld.global.nc", 12) == 0 &&
            !is_restricted(o, line))
            o->kernel->stale = true;
        access_add(o, line, false);
    } else if (strncmp(line, "st.global", 9) == 0) {
        access_add(o, line, true);
    }
}

static void origin_read(Origins *o, const char *line) {
    const char *parameter = strstr(line, "_param_");
    int number = register_read(strstr(line, "%rd"));
    if (strncmp(line, "ld.param.", 9) == 0 && parameter != NULL) {
        if (number > 0)
            *origin_of(o, number) = atoi(parameter + 7) + 1;
    } else if (number > 0 && strncmp(line, "mov.u64", 7) == 0 &&
               (strstr(line, ", __cudart_") || strstr(line, "_table"))) {
        *origin_of(o, number) = TABLE;
    } else if (strncmp(line, "ld.", 3) != 0 &&
               strncmp(line, "st.global", 9) != 0) {
        value_follow(o, line);
    }
}

// Calls read with each line of a kernel, without its predicate; returns the
// text of the next one, or NULL.
static const char *kernel_read(Origins *o, const char *text,
                               void (*read)(Origins *o, const char *line)) {
    char line[1024];
    const char *at = strchr(text, '\n');
    for (; at != NULL; at = strchr(at, '\n')) {
        at += strspn(at, " \t\n");
        if (strncmp(at, entry, strlen(entry)) == 0)
            return at;
        if (*at == '@')
            at += strcspn(at, " \t"), at += strspn(at, " \t");
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        read(o, line);
    }
    return NULL;
}

void accesses_read(const Kernels *kernels, const Model *model,
                   const char *ptx) {
    for (const char *text = strstr(ptx, entry); text != NULL;) {
        char name[LONGEST_NAME + 1];
        Origins o = {0};
        if (sscanf(text + strlen(entry), "%255[A-Za-z0-9_]", name) == 1)
            o.kernel = kernel_find(kernels, model, name);
        kernel_read(&o, text, origin_read);
        text = kernel_read(&o, text, access_read);
        free(o.parameter);
    }
}

// ---- what may be narrower than 16 bytes ----

// How many neighbours a thread of the kernel has at once; 0 where its text does
// not say.
static int lanes_of(const Kernel *k) {
    int columns = 0;
    const char *lanes = strstr(k->text, "VW = "), *c = strstr(k->text, " C = ");
    if (lanes == NULL)
        return 0;
    bool own = strncmp(lanes, "VW = LANES(C)", 13) == 0;
    if (sscanf(lanes, "VW = LANES(%d", &columns) != 1 &&
        (!own || c == NULL || sscanf(c, " C = %d", &columns) != 1))
        return 1;
    return columns % 8 == 0 ? 8 : columns % 4 == 0 ? 4 : 1;
}

// Whether the text accesses a tensor with one of the words.
static bool has_access(const Kernel *k, const char *name,
                       const char *const *word) {
    for (; *word != NULL; word++) {
        char call[LONGEST_NAME + 16];
        size_t length =
            (size_t)snprintf(call, sizeof call, "%s%s", *word, name);
        for (const char *s = k->text; (s = strstr(s, call)) != NULL; s++)
            if (s[length] == ' ' || s[length] == ')' || s[length] == ',')
                return true;
    }
    return false;
}

// Single elements, as where one is the same for all lanes.
static bool has_single(const Kernel *k, const char *name) {
    static const char *const word[] = {"get_act(", "get_f32(", "get_i32(",
                                       "put_act(", "put_f32(", "put_i32(",
                                       NULL};
    return has_access(k, name, word);
}

// Neighbours: what a vector is loaded to comes before the tensor.
static bool has_vector(const Kernel *k, const char *name) {
    static const char *const load[] = {", ", NULL};
    static const char *const store[] = {"store_act(", "store_f32(",
                                        "store_i32(", "place_act(",
                                        "place_f32(", NULL};
    return has_access(k, name, load) || has_access(k, name, store);
}

// The reasons for less than 16 bytes: there are no 16 bytes of eight lanes of
// bytes or bits; no vector of 16 bytes divides the columns, or the distances
// from which neighbouring columns are read; it is one element for a whole row
// or for all lanes; or the compiler reads some lanes apart, beside others of 16
// bytes.
static bool is_excused(const Kernel *k, int parameter) {
    const char *type = k->type[parameter], *name = k->name_of[parameter];
    int width = strcmp(type, "act") == 0 ? 2 : 4, lanes = lanes_of(k);
    int widths = k->widths[parameter].read | k->widths[parameter].written;
    int narrow = widths & 15;
    if (widths & 16 && k->widths[parameter].written == 0 && lanes * width > 16)
        return true;
    if (narrow == 0 || strcmp(type, "u8") == 0)
        return true;
    if (lanes > 0 && lanes * width < 16 && has_vector(k, name))
        return true;
    return narrow == width && has_single(k, name);
}

int accesses_narrow(Kernels *kernels) {
    int count = 0;
    for (int i = 0; i < kernels->num_kernels; i++) {
        Kernel *k = &kernels->kernel[i];
        for (int j = 0; j < k->num_parameters && is_meant(kernels, k); j++) {
            if (!k->bulk[j] || is_excused(k, j))
                continue;
            k->faulty = true;
            fprintf(stderr, "%s: %s accesses %s by less than 16 bytes\n",
                    k->model->name, k->name, k->name_of[j]);
            count++;
        }
    }
    return count;
}
