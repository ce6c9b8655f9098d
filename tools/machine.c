// Machine code: NVRTC as trainers call it, and its cache.
#include "tools/machine.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST_DRIVER = 13000 };

struct Machine {
    Arena *arena;
    RtNvrtc nvrtc;
    int cuda; // the newest supported version
    RtCache cache;
};

// Opens an NVRTC that supports a generation, in the place of one that does not.
static bool compiler_open(Machine *m, int sm, const char **why) {
    RtError e;
    int cuda = rt_capability_cuda(sm, NEWEST_DRIVER);
    if (cuda == m->cuda)
        return true;
    rt_nvrtc_close(&m->nvrtc);
    m->cuda = 0;
    if (!rt_nvrtc_open(&m->nvrtc, sm, NEWEST_DRIVER, &e)) {
        *why = arena_string(m->arena, e.text, strlen(e.text));
        return false;
    }
    m->cuda = cuda;
    return true;
}

Machine *machine_open(Arena *a, int sm, const char **why) {
    Machine *m = ARENA_NEW(a, Machine);
    m->arena = a;
    if (!compiler_open(m, sm, why))
        return NULL;
    rt_cache_open(&m->cache, &rt_private_files);
    return m;
}

void machine_close(Machine *m) {
    rt_cache_close(&m->cache);
    rt_nvrtc_close(&m->nvrtc);
}

const char *machine_version(const Machine *m) {
    return arena_format(m->arena, "NVRTC %d.%d", m->nvrtc.major,
                        m->nvrtc.minor);
}

typedef bool Compile(const RtNvrtc *n, const RtSource *s, RtCode *out,
                     RtError *e);

// The last option requests a listing beside the code.
static const char *compile(Machine *m, Compile *run, const char *text, int sm,
                           MachineForm form, const char *option, size_t *length,
                           const char **why) {
    const char *target = arena_format(m->arena, "--gpu-architecture=%s_%d",
                                      form == PTX ? "compute" : "sm", sm);
    const char *options[RT_NVRTC_MAX_EXTRA] = {target, option};
    RtSource s = {.text = text,
                  .num_headers = RT_PRELUDE_FILES,
                  .header = rt_prelude_text,
                  .include = rt_prelude_name,
                  .num_options = option ? 2 : 1,
                  .option = options};
    RtCode code;
    RtError e;
    if (!compiler_open(m, sm, why))
        return NULL;
    RtCacheKey key = rt_cache_key(&m->nvrtc, &s);
    if (!rt_cache_read(&m->cache, key, &code)) {
        if (!run(&m->nvrtc, &s, &code, &e)) {
            *why = arena_string(m->arena, e.text, strlen(e.text));
            return NULL;
        }
        rt_cache_write(&m->cache, key, &code);
    }
    const char *kept = arena_string(m->arena, code.bytes, code.length);
    *length = code.length;
    free(code.bytes);
    return kept;
}

const char *machine_code(Machine *m, const char *text, int sm, bool lines,
                         MachineForm form, size_t *length, const char **why) {
    return compile(m, rt_nvrtc_compile, text, sm, form,
                   lines ? "-lineinfo" : NULL, length, why);
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
    size_t length;
    const char *line = compile(m, rt_nvrtc_log, text, sm, CUBIN,
                               "--ptxas-options=-v", &length, why);
    memset(out, 0, (size_t)count * sizeof *out);
    if (!line)
        return false;
    for (int now = -1; *line;) {
        const char *end = line + strcspn(line, "\n");
        now = kernel_begun(line, end, count, name, now);
        if (now >= 0)
            line_take(&out[now], line, end);
        line = end + (*end == '\n');
    }
    return true;
}
