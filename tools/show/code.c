// Code: what NVIDIA's compiler makes of chosen kernels, as text.
#include "base/exits.h"
#include "tools/show/inspect.h"
#include "tools/show/lineinfo.h"

#include <string.h>

// Where machine code is said to be from: nowhere, lines of the kernels' text,
// or lines of the model file.
typedef enum { PLACES_NONE, PLACES_TEXT, PLACES_MODEL } Places;

static bool kernel_is_chosen(const Inspection *in, const Kernel *k) {
    for (int i = 0; i < in->count; i++)
        if (in->launch[i].chosen && in->launch[i].kernel->first == k)
            return true;
    return false;
}

// The kernels that are chosen, each once.  A text that steps share may be that
// of a step that is not shown.
static void kernels_choose(Show *s, const Inspection *in, Code *out) {
    int most = 0;
    for (int i = 0; i < in->plan->num_steps; i++)
        most += in->launches[i].count;
    out->kernel = ARENA_ARRAY(s->a, (size_t)most, const Kernel *);
    out->step = ARENA_ARRAY(s->a, (size_t)most, const char *);
    for (int i = 0; i < in->plan->num_steps; i++)
        for (int j = 0; j < in->launches[i].count; j++) {
            const Kernel *k = &in->launches[i].kernel[j];
            if (!k->text || k->first != k || !kernel_is_chosen(in, k))
                continue;
            out->step[out->count] = in->plan->step[i].name;
            out->kernel[out->count++] = k;
        }
}

static const char *cu_name(Show *s) {
    return arena_format(s->a, "%s.cu", show_trainer(s)->name);
}

// The kernel's text with the numbers of its lines in the file of all, where a
// line more says which it is.
static void numbered_add(Show *s, Text *t, const Kernel *k) {
    static const char more[] = "#if IS_WANTED(";
    const char *cu = text_string(&show_trainer(s)->cu_file);
    const char *begin =
        arena_format(s->a, "\n%.*s\n", (int)strcspn(k->text, "\n"), k->text);
    const char *at = strstr(cu, begin) + 1;
    int line = 1;
    for (const char *c = cu; c < at; c++)
        line += *c == '\n';
    text_add(t, "#line %d \"%s\"\n", line, cu_name(s));
    for (const char *own = k->text; *own; line++) {
        size_t length = strcspn(own, "\n") + 1;
        if (strncmp(at, more, sizeof more - 1) == 0) {
            at += strcspn(at, "\n") + 1;
            text_add(t, "#line %d \"%s\"\n", ++line, cu_name(s));
        }
        text_bytes(t, own, length);
        own += length;
        at += length;
    }
}

static Text chosen_text(Show *s, const Inspection *in, const Code *code,
                        Places places) {
    Text t = text_new(s->a);
    const char *step = NULL;
    text_add(&t, "%s", in->header);
    for (int i = 0; i < code->count; i++) {
        const Kernel *k = code->kernel[i];
        if (step != code->step[i])
            text_add(&t, "\n// ---- %s ----\n", code->step[i]);
        step = code->step[i];
        text_add(&t, "\n");
        if (places == PLACES_TEXT)
            numbered_add(s, &t, k);
        else
            text_add(&t, "%s", k->text);
    }
    return places == PLACES_MODEL ? lineinfo_add(s->a, in->plan, cu_name(s), &t)
                                  : t;
}

static bool say(const Show *s, const char *why) {
    complain(s->arguments, "%s", why);
    return false;
}

// Compiles what is chosen.  False, and an exit status, after a message.
static bool code_make(Show *s, MachineForm form, Places places, Code *out,
                      int *status) {
    Device device;
    Inspection in;
    const char *why = NULL;
    *out = (Code){.count = 0};
    if (!device_find(s->a, s->arguments, &device, status) ||
        !inspect(s, &device, &in, status))
        return false;
    kernels_choose(s, &in, out);
    *status = EXIT_USAGE;
    if (out->count == 0)
        return say(s, "what is chosen are calls of a library, which brings "
                      "their code; see sinter show launches");
    Text t = chosen_text(s, &in, out, places);
    Machine *m = machine_open(s->a, &why);
    if (m) {
        int sm = in.num_archs ? in.arch[0] : device.sm;
        out->bytes = machine_code(m, text_string(&t), sm, places != PLACES_NONE,
                                  form, &out->length, &why);
        out->origin = arena_format(s->a, "sm_%d by %s", sm, machine_version(m));
        machine_close(m);
    }
    *status = EXIT_DEVICE;
    return out->bytes || say(s, why);
}

int ptx_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Code code;
    int status;
    Places places = s->arguments->lineinfo ? PLACES_MODEL : PLACES_NONE;
    if (!code_make(s, PTX, places, &code, &status))
        return status;
    text_add(out, "%s", code.bytes);
    return EXIT_GOOD;
}

static int code_list(Show *s, const Code *code, const char *disassembler,
                     Text *out) {
    int status;
    const char *error;
    const char *said =
        disassembler_run(s->a, s->arguments, disassembler, code, &status);
    if (!said)
        return status;
    const Text *cu = &show_trainer(s)->cu_file;
    const Source *const source[] = {
        source_new(s->a, cu_name(s), text_string(cu), cu->length),
        source_read(s->a, s->file, MODEL_BYTES, &error)};
    text_add(out, "// %s\n", code->origin);
    const char *missing =
        listing_add(s->a, out, said, code, source, source[1] ? 2 : 1);
    if (!missing)
        return EXIT_GOOD;
    complain(s->arguments, "%s does not print all code of %s", disassembler,
             missing);
    return EXIT_DEVICE;
}

int sass_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Code code;
    int status;
    Places places = s->arguments->lineinfo ? PLACES_MODEL : PLACES_TEXT;
    const char *disassembler = disassembler_find(s->a, s->arguments);
    if (!disassembler)
        return EXIT_DEVICE;
    if (!code_make(s, CUBIN, places, &code, &status))
        return status;
    return code_list(s, &code, disassembler, out);
}

int lines_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Code code;
    int status;
    if (!code_make(s, PTX, PLACES_MODEL, &code, &status))
        return status;
    linetable_print(s->a, out, code.bytes);
    return EXIT_GOOD;
}
