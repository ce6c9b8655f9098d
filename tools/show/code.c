// Code: what NVIDIA's compiler makes of chosen kernels, as text.
#include "base/exits.h"
#include "tools/show/inspect.h"
#include "tools/show/lineinfo.h"

#include <string.h>

// The kernels that are chosen, each once, as one text.
static Text chosen_text(Show *s, const Inspection *in) {
    Text t = text_new(s->a);
    const Step *step = NULL;
    text_add(&t, "%s", in->header);
    for (int i = 0; i < in->count; i++) {
        const Inspected *l = &in->launch[i];
        const Kernel *k = l->kernel;
        bool chosen = false;
        for (int j = 0; j < in->count; j++)
            chosen |=
                in->launch[j].chosen &&
                (in->launch[j].kernel == k || in->launch[j].kernel->first == k);
        if (!chosen || !k->text || (k->first && k->first != k))
            continue;
        if (l->step != step)
            text_add(&t, "\n// ---- %s ----\n", l->step->name);
        step = l->step;
        text_add(&t, "\n%s", k->text);
    }
    return t;
}

static int say(const Show *s, const char *why) {
    complain(s->arguments, "%s", why);
    return EXIT_DEVICE;
}

const char *show_code(Show *s, MachineForm form, bool lines, size_t *length,
                      int *status) {
    Device device;
    Inspection in;
    const char *why = NULL, *code = NULL;
    if (!device_find(s->a, s->arguments, &device, status) ||
        !inspect(s, &device, &in, status))
        return NULL;
    Text t = chosen_text(s, &in);
    if (lines)
        t = lineinfo_add(s->a, in.plan,
                         arena_format(s->a, "%s.cu", show_trainer(s)->name),
                         &t);
    Machine *m = machine_open(s->a, &why);
    if (m) {
        int sm = in.num_archs ? in.arch[0] : device.sm;
        code = machine_code(m, text_string(&t), sm, lines, form, length, &why);
        machine_close(m);
    }
    if (!code)
        *status = say(s, why);
    return code;
}

int ptx_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    size_t length;
    int status;
    const char *code =
        show_code(s, PTX, s->arguments->lineinfo != NULL, &length, &status);
    if (!code)
        return status;
    text_add(out, "%s", code);
    return EXIT_GOOD;
}

int sass_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    size_t length;
    int status;
    const char *why = NULL;
    if (!machine_can_disassemble(s->a, &why))
        return say(s, why);
    const char *code =
        show_code(s, CUBIN, s->arguments->lineinfo != NULL, &length, &status);
    if (!code)
        return status;
    const char *text = machine_disassemble(s->a, code, length, &why);
    if (!text)
        return say(s, why);
    text_add(out, "%s", text);
    return EXIT_GOOD;
}

int lines_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    size_t length;
    int status;
    const char *code = show_code(s, PTX, true, &length, &status);
    if (!code)
        return status;
    linetable_print(s->a, out, code);
    return EXIT_GOOD;
}
