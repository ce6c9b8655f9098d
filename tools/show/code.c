// Code: PTX and machine code of selected kernels.
#include "base/exits.h"
#include "tools/lineinfo.h"
#include "tools/show/inspect.h"

#include <assert.h>
#include <string.h>

// Lines for machine code: none, those of the kernels' text, or those of the
// model.
typedef enum { LINES_NONE, LINES_TEXT, LINES_MODEL } LineInfo;

// Whether a selected launch has that text.
static bool is_chosen(const Inspected *list, int count, const char *text) {
    for (int i = 0; i < count; i++)
        if (list[i].chosen && launch_text(&list[i]) == text)
            return true;
    return false;
}

// Whether a selected merged launch calls the functions of a kernel.
static bool is_called(const Inspection *in, const Kernel *k) {
    for (int i = 0; i < in->num_merged; i++)
        for (int j = 0; in->merged[i].chosen && j < in->merged[i].count; j++)
            if (in->merged[i].kernel[j].first == k)
                return true;
    return false;
}

static void kernel_choose(Arena *a, const Inspection *in, const Kernel *k,
                          const char *step, Code *out) {
    if (is_chosen(in->launch, in->count, k->text))
        out->text[out->count++] = (CodeText){k->name, k->text, step};
    else if (is_called(in, k))
        out->text[out->count++] =
            (CodeText){NULL, arena_string(a, k->text, k->entry), step};
}

// Collects the texts of selected launches, each once.  A text that steps share
// may belong to a step that is not shown.
static void texts_choose(Show *s, const Inspection *in, Code *out) {
    int most = 0;
    for (int i = 0; i < in->plan->num_steps; i++)
        most += in->launches[i].count + in->launches[i].plan->merged.count;
    out->text = ARENA_ARRAY(s->a, (size_t)most, CodeText);
    for (int i = 0; i < in->plan->num_steps; i++) {
        const Launches *l = &in->launches[i];
        const char *step = in->plan->step[i].name;
        for (int k = 0; k < l->count; k++)
            if (l->kernel[k].text && l->kernel[k].first == &l->kernel[k])
                kernel_choose(s->a, in, &l->kernel[k], step, out);
        for (int j = 0; j < l->plan->merged.count; j++)
            if (is_chosen(in->merged, in->num_merged, l->merged[j].text))
                out->text[out->count++] =
                    (CodeText){l->merged[j].name, l->merged[j].text, step};
    }
}

static const char *cu_name(Show *s) {
    return arena_format(s->a, "%s.cu", show_trainer(s)->name);
}

// Skips lines of the file of all kernels that a text does not have: comments
// that name the kernel of each part.  Returns their number.
static int lines_skip(const char **at, const char *own, size_t length) {
    int count = 0;
    for (; strncmp(*at, own, length) != 0; count++) {
        assert(**at != '\0');
        *at += strcspn(*at, "\n") + 1;
    }
    return count;
}

// Adds a text with its line numbers in the file of all kernels.
static void numbered_add(Show *s, Text *t, const char *text) {
    const char *cu = text_string(&show_trainer(s)->cu_file);
    const char *begin =
        arena_format(s->a, "\n%.*s\n", (int)strcspn(text, "\n"), text);
    const char *at = strstr(cu, begin) + 1;
    int line = 1;
    for (const char *c = cu; c < at; c++)
        line += *c == '\n';
    text_add(t, "#line %d \"%s\"\n", line, cu_name(s));
    for (const char *own = text; *own; line++) {
        size_t length = strcspn(own, "\n") + 1;
        int skipped = lines_skip(&at, own, length);
        if (skipped > 0)
            text_add(t, "#line %d \"%s\"\n", line += skipped, cu_name(s));
        text_bytes(t, own, length);
        own += length;
        at += length;
    }
}

static Text chosen_text(Show *s, const Inspection *in, const Code *code,
                        LineInfo lines) {
    Text t = text_new(s->a);
    const char *step = NULL;
    text_add(&t, "%s", in->header);
    for (int i = 0; i < code->count; i++) {
        const CodeText *one = &code->text[i];
        if (step != one->step)
            text_add(&t, "\n// ---- %s ----\n", one->step);
        step = one->step;
        text_add(&t, "\n");
        if (lines == LINES_NONE)
            text_add(&t, "%s", one->text);
        else
            numbered_add(s, &t, one->text);
    }
    return lines == LINES_MODEL ? lineinfo_add(s->a, in->plan, cu_name(s), &t)
                                : t;
}

static bool say(const Show *s, const char *why) {
    complain(s->arguments, "%s", why);
    return false;
}

// Compiles the selected kernels.  False and an exit status, after a message, if
// that fails.
static bool code_make(Show *s, RtCodeForm form, LineInfo lines, Code *out,
                      int *status) {
    Device device;
    Inspection in;
    const char *why = NULL;
    *out = (Code){.count = 0};
    if (!device_find(s->a, s->arguments, &device, status) ||
        !inspect(s, &device, &in, status))
        return false;
    texts_choose(s, &in, out);
    *status = EXIT_USAGE;
    if (out->count == 0)
        return say(s, "the selected launches are library calls, whose code is "
                      "in the library; see sinter show launches");
    Text t = chosen_text(s, &in, out, lines);
    int sm = in.num_archs ? in.arch[0] : device.sm;
    Machine *m = machine_open(s->a, sm, &why);
    if (m) {
        out->bytes = machine_code(m, text_string(&t), sm, lines != LINES_NONE,
                                  form, &out->length, &why);
        out->origin = arena_format(s->a, "sm_%d by %s", sm, machine_version(m));
        machine_close(m);
    }
    *status = EXIT_DEVICE;
    return out->bytes || say(s, why);
}

typedef struct {
    const Source **source;
    int count;
} SourceList;

// Adds a source; one that was removed meanwhile is left out.
static void source_append(Arena *a, SourceList *list, const char *path,
                          const char *name) {
    const char *error;
    Source *s = source_read(a, path, MODEL_BYTES, &error);
    if (s == NULL)
        return;
    s->name = name;
    ARENA_APPEND(a, list->source, list->count, s);
}

// Sources of machine code: the kernels' text, the model file and its imports;
// ends with NULL.
static const Source *const *sources_of(Show *s) {
    const Text *cu = &show_trainer(s)->cu_file;
    SourceList list = {.count = 0};
    ARENA_APPEND(s->a, list.source, list.count,
                 source_new(s->a, cu_name(s), text_string(cu), cu->length));
    source_append(s->a, &list, s->file, s->p->file);
    for (int i = 0; i < s->p->num_imported; i++)
        source_append(s->a, &list, s->p->imported[i].path,
                      s->p->imported[i].name);
    ARENA_APPEND(s->a, list.source, list.count, NULL);
    return list.source;
}

int ptx_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Code code;
    int status;
    LineInfo lines = s->arguments->lineinfo ? LINES_MODEL : LINES_NONE;
    if (!code_make(s, RT_PTX, lines, &code, &status))
        return status;
    text_add(out, "%s", code.bytes);
    return EXIT_GOOD;
}

static int code_list(Show *s, const Code *code, const char *disassembler,
                     Text *out) {
    int status;
    const char *said =
        disassembler_run(s->a, s->arguments, disassembler, code, &status);
    if (!said)
        return status;
    text_add(out, "// %s\n", code->origin);
    const char *missing = listing_add(s->a, out, said, code, sources_of(s));
    if (!missing)
        return EXIT_GOOD;
    complain(s->arguments, "%s printed only a part of the code of %s",
             disassembler, missing);
    return EXIT_DEVICE;
}

int sass_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Code code;
    int status;
    LineInfo lines = s->arguments->lineinfo ? LINES_MODEL : LINES_TEXT;
    const char *disassembler = disassembler_find(s->a, s->arguments);
    if (!disassembler)
        return EXIT_DEVICE;
    if (!code_make(s, RT_CUBIN, lines, &code, &status))
        return status;
    return code_list(s, &code, disassembler, out);
}
