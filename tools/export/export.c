// sinter export: writes a trained model for other programs.
#include "base/exits.h"
#include "passes/passes.h"
#include "tools/export/operators.h"
#include "tools/runs/runs.h"

#include <inttypes.h>
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
        "batch", arena_format(a, "%" PRId64, 2 * recipe_batch(&p->recipe))};
    Diagnostics diags = diag_new(a);
    const Program *twice =
        frontend_load(a, arguments->operand[0], set, count, &diags);
    const Graph *g = twice != NULL ? twice->predict : NULL;
    return g != NULL && g->count == p->predict->count
               ? graph_expand_attention(g, a)
               : NULL;
}

// The path of --out, or the model file's name with an extension.
static const char *out_path(Arena *a, const Arguments *arguments,
                            const Export *x, const char *extension) {
    return arguments->out != NULL
               ? arguments->out
               : arena_format(a, "%s.%s", stem_of(a, x->program->file),
                              extension);
}

// "inputs image, meta"
static const char *names(Arena *a, const char *what, const Interface *list,
                         int count) {
    Text t = text_new(a);
    for (int i = 0; i < count; i++)
        text_add(&t, "%s%s", i > 0 ? ", " : "", list[i].name);
    return arena_format(a, "%s%s %s", what, count > 1 ? "s" : "",
                        text_string(&t));
}

static int onnx_export(Arena *a, const Arguments *arguments, const Export *x,
                       const Operators *all) {
    const char *out = out_path(a, arguments, x, "onnx");
    if (output_is_input(arguments, x->program, out))
        return EXIT_USAGE;
    Text t = text_new(a);
    onnx_write(a, &t, x, all);
    if (t.length > INT32_MAX) {
        complain(arguments, "an ONNX file holds at most 2 GiB");
        return EXIT_MODEL;
    }
    int status = text_write(arguments, out, &t);
    if (status == EXIT_GOOD)
        wrote_print(arguments, out, "ONNX opset 18, with %s and %s",
                    names(a, "input", all->input, all->num_inputs),
                    names(a, "output", all->output, all->num_outputs));
    return status;
}

// --pytorch writes PATH and the weights beside it, --safetensors the weights.
static int pytorch_export(Arena *a, const Arguments *arguments, const Export *x,
                          const Operators *all) {
    const char *out =
        out_path(a, arguments, x, arguments->pytorch ? "py" : "safetensors");
    const char *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
    int stem = dot != NULL && (slash == NULL || dot > slash) ? (int)(dot - out)
                                                             : (int)strlen(out);
    const char *beside = arguments->pytorch
                             ? arena_format(a, "%.*s.safetensors", stem, out)
                             : out;
    if (output_is_input(arguments, x->program, out) ||
        output_is_input(arguments, x->program, beside))
        return EXIT_USAGE;
    Text module = text_new(a), weights = text_new(a);
    const char *why = pytorch_write(a, &module, &weights, x, all);
    if (why != NULL) {
        complain(arguments, "%s", why);
        return EXIT_MODEL;
    }
    int status = text_write(arguments, beside, &weights);
    if (status == EXIT_GOOD && arguments->pytorch)
        status = text_write(arguments, out, &module);
    if (status == EXIT_GOOD)
        wrote_print(arguments, out,
                    arguments->pytorch
                        ? "an nn.Module; its load() reads the weights beside it"
                        : "a state_dict of PyTorch");
    return status;
}

// Adds the pairs of strings of an object, as settings.json has them.
static bool pairs_add(Arena *a, const char *object, Arguments *to) {
    const char *s = object + 1;
    bool good = *object == '{';
    while (good && *s == '"') {
        const char *key = json_string_read(a, s), *end = json_string_end(s);
        const char *value =
            strncmp(end, ": ", 2) == 0 ? json_string_read(a, end + 2) : NULL;
        good = value != NULL && setting_add(to, (Setting){key, value});
        s = good ? json_string_end(end + 2) : s;
        s += strncmp(s, ", ", 2) == 0 ? 2 : 0;
    }
    return good && strcmp(s, "}") == 0;
}

// Adds the settings of the run of this model that a file or folder belongs to,
// if the command line has none.
static bool settings_take(Arena *a, const char *weights, Arguments *to) {
    const char *slash = strrchr(weights, '/');
    const char *folder =
        slash == NULL ? "."
                      : arena_string(a, weights, (size_t)(slash - weights));
    RunRecord run;
    if (to->num_settings > 0 || (!run_read(a, weights, weights, &run) &&
                                 !run_read(a, folder, folder, &run)))
        return true;
    const char *set = record_value(a, run.text, "set");
    const char *file = record_value(a, run.text, "file");
    file = file != NULL ? json_string_read(a, file) : NULL;
    if (file == NULL ||
        strcmp(stem_of(a, file), stem_of(a, to->operand[0])) != 0 ||
        set == NULL || pairs_add(a, set, to))
        return true;
    complain(to, "%s: the settings of its run cannot be read: give --set",
             weights);
    return false;
}

int export_command(Arena *a, const Arguments *given) {
    Diagnostics diags = diag_new(a);
    Arguments with_run = *given, *arguments = &with_run;
    int status;
    RtError e;
    int formats =
        arguments->onnx + arguments->pytorch + (arguments->safetensors != NULL);
    if (formats != 1 || arguments->weights == NULL) {
        complain(arguments, "export needs %s",
                 formats == 1
                     ? "--weights=PATH, a checkpoint or the folder of a run"
                 : formats > 1
                     ? "one of --onnx, --pytorch and --safetensors=pytorch"
                     : "a format: --onnx, --pytorch or --safetensors=pytorch");
        return EXIT_USAGE;
    }
    if (!settings_take(a, arguments->weights, arguments))
        return EXIT_USAGE;
    Program *p = model_load(a, arguments, &diags, &status);
    if (p == NULL)
        return status;
    RtTensors *weights = rt_tensors_read(arguments->weights, &e);
    if (weights == NULL) {
        complain(arguments, "%s", e.text);
        return e.status;
    }
    Export x = {.program = p,
                .graph = graph_expand_attention(p->predict, a),
                .doubled = double_load(a, arguments, p),
                .weights = weights,
                .version = SINTER_VERSION};
    Operators all;
    const char *why = operators_of(a, &all, &x);
    if (why != NULL && all.lacks_weights)
        complain(
            arguments,
            "%s: %s: give all --set of its trainer; a trainer's --init=FILE "
            "--map=MAP --init-only --out=RUN gives another program's "
            "weights the model's names",
            arguments->weights, why);
    else if (why != NULL)
        complain(arguments, "%s", why);
    status = why != NULL       ? all.lacks_weights ? EXIT_DATA : EXIT_MODEL
             : arguments->onnx ? onnx_export(a, arguments, &x, &all)
                               : pytorch_export(a, arguments, &x, &all);
    rt_tensors_free(weights);
    return status;
}
