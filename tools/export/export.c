// sinter export: writes a trained model for other programs.
#include "tools/export/export.h"
#include "base/exits.h"

#include <string.h>

// The graph for twice the batch, which shows the dimensions that grow with it.
static const Graph *double_load(Arena *a, const Arguments *arguments,
                                const Program *p) {
    Setting *set = ARENA_ARRAY(a, MAX_SETTINGS + 1, Setting);
    int count = 0;
    for (int i = 0; i < arguments->num_settings; i++)
        if (strcmp(arguments->set[i].key, "batch") != 0)
            set[count++] = arguments->set[i];
    set[count++] = (Setting){
        "batch", arena_format(a, "%lld", (long long)p->recipe.batch * 2)};
    Diagnostics diags = diag_new(a);
    const Program *twice =
        frontend_load(a, arguments->operand[0], set, count, &diags);
    const Graph *g = twice != NULL ? twice->predict : NULL;
    return g != NULL && g->count == p->predict->count ? g : NULL;
}

static int onnx_export(Arena *a, const Arguments *arguments, const Export *x) {
    const Program *p = x->program;
    const char *out = arguments->out != NULL
                          ? arguments->out
                          : arena_format(a, "%s.onnx", stem_of(a, p->file));
    if (output_is_input(arguments, p, out))
        return EXIT_USAGE;
    Text t = text_new(a);
    const char *why = onnx_write(a, &t, x);
    if (why == NULL && t.length > INT32_MAX)
        why = "an ONNX file holds at most 2 GiB";
    if (why != NULL) {
        complain(arguments, "%s", why);
        return EXIT_MODEL;
    }
    int status = text_write(arguments, out, &t);
    if (status == EXIT_GOOD)
        wrote_print(arguments, out,
                    "ONNX opset 18, with input image and output prediction");
    return status;
}

int export_command(Arena *a, const Arguments *arguments) {
    Diagnostics diags = diag_new(a);
    int status;
    RtError e;
    if (!arguments->onnx || arguments->weights == NULL) {
        complain(arguments, "export needs %s",
                 arguments->onnx
                     ? "--weights=PATH, a checkpoint or the folder of a run"
                     : "a format: --onnx");
        return EXIT_USAGE;
    }
    Program *p = model_load(a, arguments, &diags, &status);
    if (p == NULL)
        return status;
    RtTensors *weights = rt_tensors_read(arguments->weights, &e);
    if (weights == NULL) {
        complain(arguments, "%s", e.text);
        return e.status;
    }
    Export x = {.program = p,
                .graph = p->predict,
                .doubled = double_load(a, arguments, p),
                .weights = weights,
                .version = SINTER_VERSION};
    status = onnx_export(a, arguments, &x);
    rt_tensors_free(weights);
    return status;
}
