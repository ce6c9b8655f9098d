// Library: the functions of a library whose arguments depend on the model.
// tools/library declares them in its header.

#include "codegen/program.h"

#include <string.h>

static bool is_input(const DataArray *a) {
    return strncmp(a->input, "input.", strlen("input.")) == 0;
}

// A C name: input_meta, label_box.
static const char *array_name(const Text *t, const DataArray *a) {
    return arena_format(t->arena, "%s_%s", is_input(a) ? "input" : "label",
                        a->name);
}

static const char *image_name(const Text *t, const Recipe *r) {
    return r->image_name == NULL
               ? "samples"
               : arena_format(t->arena, "input_%s", r->image_name);
}

static bool has_label(const Program *p) {
    return graph_find(p->eval, "label") != NO_NODE ||
           graph_find(p->stage[0].train, "label") != NO_NODE;
}

// The parameters of the inputs, then of the labels.
static void write_parameters(const Program *p, Text *t, bool labels) {
    const Recipe *r = &p->recipe;
    text_add(t, "(RtInstance *m,\n        const void *%s", image_name(t, r));
    for (int i = 0; i < r->num_arrays; i++)
        if (is_input(&r->array[i]))
            text_add(t, ", const void *%s", array_name(t, &r->array[i]));
    if (labels && has_label(p))
        text_add(t, ", const void *label");
    for (int i = 0; labels && i < r->num_arrays; i++)
        if (!is_input(&r->array[i]))
            text_add(t, ", const void *%s", array_name(t, &r->array[i]));
    text_add(t, ",\n        int64_t count");
}

// The arrays in the order of rt_instance_predict_all.
static void write_data(const Program *p, Text *t, bool labels) {
    const Recipe *r = &p->recipe;
    text_add(t, "        (const void *[]){%s, %s", image_name(t, r),
             labels && has_label(p) ? "label" : "NULL");
    for (int i = 0; i < r->num_arrays; i++)
        text_add(t, ", %s",
                 labels || is_input(&r->array[i]) ? array_name(t, &r->array[i])
                                                  : "NULL");
    text_add(t, "}, count,\n");
}

static const char *output_name(const Text *t, const Recipe *r, int i) {
    return r->num_output_names == 0
               ? "output"
               : arena_format(t->arena, "output_%s", r->output_name[i].name);
}

static void write_outputs(const Recipe *r, Text *t, const char *before) {
    for (int i = 0; i == 0 || i < r->num_output_names; i++)
        text_add(t, "%s%s%s", i > 0 ? ", " : "", before, output_name(t, r, i));
}

void functions_write(const Program *p, Text *t) {
    const Recipe *r = &p->recipe;
    if (!recipe_has_several(r)) {
        text_add(t, "RT_LIBRARY(SINTER_LIBRARY)\n");
        return;
    }
    text_add(t, "RT_LIBRARY_SEVERAL(SINTER_LIBRARY)\n"
                "RT_PUBLIC int RT_FUNCTION(SINTER_LIBRARY, predict)");
    write_parameters(p, t, false);
    text_add(t, ", ");
    write_outputs(r, t, "float *");
    text_add(t, ")\n{\n    return rt_instance_predict_all(m,\n");
    write_data(p, t, false);
    text_add(t, "        (float *const[]){");
    write_outputs(r, t, "");
    text_add(t, "});\n}\n"
                "RT_PUBLIC int RT_FUNCTION(SINTER_LIBRARY, train)");
    write_parameters(p, t, true);
    text_add(t, ", float *loss)\n{\n    return rt_instance_train_all(m,\n");
    write_data(p, t, true);
    text_add(t, "        loss);\n}\n");
}
