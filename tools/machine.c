// Machine code: NVRTC as trainers call it, and its cache.
#include "tools/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Machine {
    Arena *arena;
    RtOffline *compiler;
};

static const char *reason(Machine *m, const RtError *e) {
    return arena_string(m->arena, e->text, strlen(e->text));
}

Machine *machine_open(Arena *a, int sm, const char **why) {
    Machine *m = ARENA_NEW(a, Machine);
    RtError e;
    *m = (Machine){a, rt_offline_open(sm, &e)};
    if (m->compiler != NULL)
        return m;
    *why = reason(m, &e);
    return NULL;
}

void machine_close(Machine *m) {
    rt_offline_close(m->compiler);
}

const char *machine_version(const Machine *m) {
    int major, minor;
    rt_offline_version(m->compiler, &major, &minor);
    return arena_format(m->arena, "NVRTC %d.%d", major, minor);
}

static const char *code_take(Machine *m, RtCode *code, size_t *length) {
    const char *bytes = arena_string(m->arena, code->bytes, code->length);
    *length = code->length;
    free(code->bytes);
    return bytes;
}

const char *machine_code(Machine *m, const char *text, int sm, bool lines,
                         RtCodeForm form, size_t *length, const char **why) {
    RtCode code;
    RtError e;
    if (rt_offline_compile(m->compiler, text, sm, form,
                           lines ? "-lineinfo" : NULL, &code, &e))
        return code_take(m, &code, length);
    *why = reason(m, &e);
    return NULL;
}

// ---- the assembler's log ----

// The number before or after some words of a line; 0 if it does not have them.
static int number_before(const char *line, const char *end, const char *words) {
    const char *s = strstr(line, words);
    if (!s || s >= end)
        return 0;
    while (s > line && s[-1] == ' ')
        s--;
    while (s > line && s[-1] >= '0' && s[-1] <= '9')
        s--;
    return atoi(s);
}

static int number_after(const char *line, const char *end, const char *words) {
    const char *s = strstr(line, words);
    return s && s < end ? atoi(s + strlen(words)) : 0;
}

static void line_take(Resources *r, const char *line, const char *end) {
    int used = number_after(line, end, "Used ");
    r->registers = used ? used : r->registers;
    r->spills += number_before(line, end, "bytes spill stores") +
                 number_before(line, end, "bytes spill loads");
    r->stack += number_before(line, end, "bytes stack frame");
    r->shared += number_before(line, end, "bytes smem");
}

// The kernel that a line of the log begins; `now` for other lines.
static int kernel_begun(const char *line, const char *end, int count,
                        const char *const *name, int now) {
    static const char words[] = "Compiling entry function '";
    const char *s = strstr(line, words);
    if (!s || s >= end)
        return now;
    s += sizeof words - 1;
    for (int i = 0; i < count; i++)
        if (strncmp(s, name[i], strlen(name[i])) == 0 &&
            s[strlen(name[i])] == '\'')
            return i;
    return -1;
}

bool machine_resources(Machine *m, const char *text, int sm, int count,
                       const char *const *name, Resources *out,
                       const char **why) {
    RtCode log;
    RtError e;
    size_t length;
    memset(out, 0, (size_t)count * sizeof *out);
    if (!rt_offline_log(m->compiler, text, sm, "--ptxas-options=-v", &log,
                        &e)) {
        *why = reason(m, &e);
        return false;
    }
    const char *line = code_take(m, &log, &length);
    for (int now = -1; *line;) {
        const char *end = line + strcspn(line, "\n");
        now = kernel_begun(line, end, count, name, now);
        if (now >= 0)
            line_take(&out[now], line, end);
        line = end + (*end == '\n');
    }
    return true;
}
