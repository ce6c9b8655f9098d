// Trainer: its one object, and its main.

#include "codegen/program.h"

#include <string.h>

static const Graph *graph_with(const Program *p, const char *input) {
    return graph_find(p->eval, input) != NO_NODE ? p->eval : p->stage[0].train;
}

// One sample's shape in an input; rank -1 if no graph uses it.
static void add_shape(const Program *p, Text *t, const char *input) {
    const Graph *g = graph_with(p, input);
    NodeId n = graph_find(g, input);
    Type type = n == NO_NODE ? type_scalar(I32) : *g->node[n].type;
    text_add(t, "{%s, %d, {", rt_type_text(type.dtype, F32), type.rank - 1);
    for (int i = 1; i < type.rank; i++)
        text_add(t, "%s%lld", i > 1 ? ", " : "", (long long)type.dim[i]);
    text_add(t, "}}");
}

static void write_shape(const Program *p, Text *t, const char *input) {
    text_add(t, "    .%s = ", input);
    add_shape(p, t, input);
    text_add(t, ",\n");
}

static void write_arrays(const Program *p, Text *t) {
    const Recipe *r = &p->recipe;
    if (r->num_arrays == 0)
        return;
    text_add(t, "    .array = (const RtArray[]){\n");
    for (int i = 0; i < r->num_arrays; i++) {
        const DataArray *a = &r->array[i];
        text_add(t, "        {\"%s\", \"%s\", ", a->name, a->input);
        add_shape(p, t, a->input);
        text_add(t, ", %d, %d, %s},\n", a->classes, a->ignored,
                 a->weighs ? "true" : "false");
    }
    text_add(t, "    },\n    .num_arrays = %d,\n", r->num_arrays);
}

static const char *const output_kind[] = {[OUTPUT_VALUES] = "RT_VALUES",
                                          [OUTPUT_CLASSES] = "RT_CLASSES",
                                          [OUTPUT_LABELS] = "RT_LABELS"};

static void write_output_metrics(const Recipe *r, Text *t) {
    if (r->num_output_metrics == 0)
        return;
    text_add(t, "    .output_metric = (const RtOutputMetric[]){\n");
    for (int i = 0; i < r->num_output_metrics; i++)
        text_add(t, "        {\"%s\", %d, \"%s\"},\n", r->output_metric[i].name,
                 r->output_metric[i].metric, r->output_metric[i].output);
    text_add(t, "    },\n    .num_output_metrics = %d,\n",
             r->num_output_metrics);
}

static void write_output_names(const Recipe *r, Text *t) {
    if (r->num_output_names == 0)
        return;
    text_add(t, "    .output_name = (const RtOutputName[]){\n");
    for (int i = 0; i < r->num_output_names; i++)
        text_add(t, "        {\"%s\", %s},\n", r->output_name[i].name,
                 output_kind[r->output_name[i].kind]);
    text_add(t, "    },\n    .num_output_names = %d,\n", r->num_output_names);
}

static void add_setting(Text *t, const DataSetting *s) {
    text_add(t, "        {\"%s\", %lld, ", s->name, (long long)s->value);
    if (s->text != NULL)
        quoted_add(t, s->text);
    else
        text_add(t, "NULL");
    text_add(t, "},\n");
}

static void write_settings(const Recipe *r, Text *t) {
    if (r->num_data_settings == 0)
        return;
    text_add(t, "    .data_setting = (const RtSetting[]){\n");
    for (int i = 0; i < r->num_data_settings; i++)
        add_setting(t, &r->data_setting[i]);
    text_add(t, "    },\n    .num_data_settings = %d,\n", r->num_data_settings);
}

static void add_time(Text *t, Time time) {
    static const char *const unit[] = {[IN_EPOCHS] = "RT_EPOCHS",
                                       [IN_STEPS] = "RT_STEPS",
                                       [IN_SHARES] = "RT_SHARES"};
    text_add(t, "{");
    text_double(t, time.count);
    text_add(t, ", %s}", unit[time.unit]);
}

static void write_time(Text *t, const char *name, Time time) {
    text_add(t, "    .%s = ", name);
    add_time(t, time);
    text_add(t, ",\n");
}

static void write_stages(const Program *p, Text *t) {
    text_add(t, "\n// Start times of the stages of the run.\n"
                "static const RtTime stages[] = {\n");
    for (int i = 0; i < p->num_stages; i++) {
        text_add(t, "    ");
        add_time(t, p->stage[i].from);
        text_add(t, ",\n");
    }
    text_add(t, "};\n");
}

static void write_text(Text *t, const char *name, const char *text) {
    if (text == NULL)
        return;
    text_add(t, "    .%s = ", name);
    quoted_add(t, text);
    text_add(t, ",\n");
}

static void write_stop(const Recipe *r, Text *t) {
    if (r->stop.metric == NULL)
        return;
    text_add(t, "    .stop = {\"%s\", %s, ", r->stop.metric,
             r->stop.above ? "true" : "false");
    text_double(t, r->stop.value);
    text_add(t, ", ");
    add_time(t, r->stop.patience);
    text_add(t, "},\n");
}

static void write_best(const Recipe *r, Text *t) {
    if (r->best == NULL)
        return;
    write_text(t, "best", r->best);
    text_add(t, "    .best_keep = %d,\n", r->best_keep);
}

// The table of plateaus, before the trainer that names it.
static void write_plateaus(const Recipe *r, Text *t) {
    if (r->num_plateaus == 0)
        return;
    text_add(t, "\nstatic const RtPlateau plateaus[] = {\n");
    for (int i = 0; i < r->num_plateaus; i++) {
        const Plateau *p = &r->plateau[i];
        text_add(t, "    {\"%s\", \"%s\", ", p->state, p->metric);
        text_double(t, p->factor);
        text_add(t, ", ");
        add_time(t, p->patience);
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}

// Whether the gradients of an update's batches are added, as those of sums are.
static bool adds_batches(const Graph *train) {
    for (NodeId n = 0; n < train->count; n++)
        if (train->node[n].op == OP_accumulated)
            return train->node[train->node[n].arg[0]].op == OP_constant;
    return false;
}

// The run's settings from the model file.
static void write_recipe(const Program *p, Text *t) {
    const Recipe *r = &p->recipe;
    text_add(t, "    .data_format = \"%s\",\n", r->data_format);
    write_text(t, "data_path", r->data_path != NULL ? r->data_path : "");
    write_settings(r, t);
    write_shape(p, t, "image");
    write_shape(p, t, "label");
    write_text(t, "image_name", r->image_name);
    write_arrays(p, t);
    write_output_names(r, t);
    text_add(t, "    .classes = %d,\n", r->classes);
    if (r->sets_classes)
        text_add(t, "    .sets_classes = true,\n");
    if (r->ignored != 0)
        text_add(t, "    .ignored = %d,\n", r->ignored);
    text_add(t, "    .output = %s,\n", output_kind[r->output]);
    text_add(t, "    .batch = %lld,\n", (long long)r->batch);
    text_add(t, "    .precision = \"%s\",\n", dtype_name(r->precision));
    text_add(t, "    .drop_last = %s,\n", r->drop_last ? "true" : "false");
    write_text(t, "whole_train", r->whole_train);
    write_text(t, "whole_eval", r->whole_eval);
    write_text(t, "whole_collect", r->whole_collect);
    write_text(t, "statistics", r->statistics);
    write_text(t, "frozen_random", r->frozen_random);
    if (r->num_frozen_random > 0)
        text_add(t, "    .num_frozen_random = %d,\n", r->num_frozen_random);
    write_time(t, "length", r->length);
    text_add(t, "    .seed = %lld,\n", (long long)r->seed);
    text_add(t, "    .accumulate = %d,\n", recipe_update_batches(r));
    if (r->shards > 0)
        text_add(t, "    .shards = %d,\n", r->shards);
    if (adds_batches(p->stage[0].train))
        text_add(t, "    .adds_batches = true,\n");
    text_add(t, "    .stage_from = stages,\n");
    text_add(t, "    .num_stages = COUNT(stages),\n");
    write_time(t, "average_every", p->average_every);
    write_time(t, "average_from", p->average_from);
    text_add(t, "    .averages_each_step = %s,\n",
             program_averages_each_step(p) ? "true" : "false");
    text_add(t, "    .collect_samples = %lld,\n",
             (long long)r->collect_samples);
    write_time(t, "eval_every", r->eval_every);
    write_time(t, "checkpoint_every", r->checkpoint_every);
    text_add(t, "    .eval_train = %s,\n", r->eval_train ? "true" : "false");
    text_add(t, "    .metrics = 0x%x,\n", r->metrics);
    write_output_metrics(r, t);
    text_add(t, "    .checkpoint_keep = %d,\n", r->checkpoint_keep);
    write_stop(r, t);
    write_best(r, t);
    if (r->num_plateaus > 0)
        text_add(t, "    .plateau = plateaus,\n"
                    "    .num_plateaus = COUNT(plateaus),\n");
}

// One string for each line, for readability.
static void write_lines(Text *t, const char *text) {
    do {
        size_t length = strcspn(text, "\n");
        length += text[length] == '\n';
        text_add(t, "\n        ");
        quoted_add(t, arena_format(t->arena, "%.*s", (int)length, text));
        text += length;
    } while (*text != '\0');
}

// The source files of the trainer.
static void write_named(Text *t, const char *table, const NamedText *n,
                        int count) {
    if (count == 0)
        return;
    text_add(t, "static const RtNamed %s[] = {\n", table);
    for (int i = 0; i < count; i++) {
        text_add(t, "    {");
        quoted_add(t, n[i].name);
        text_add(t, ",");
        write_lines(t, n[i].text);
        text_add(t, "},\n");
    }
    text_add(t, "};\n\n");
}

static void write_origin(const CodegenOptions *o, Text *t) {
    if (o->num_sources > 0)
        text_add(t, "    .source = sources,\n"
                    "    .num_sources = COUNT(sources),\n");
    if (o->num_sets > 0)
        text_add(t, "    .set = settings,\n"
                    "    .num_sets = COUNT(settings),\n");
}

void trainer_write(const Writer *w, Text *t) {
    const Program *p = w->program;
    write_stages(p, t);
    write_plateaus(&p->recipe, t);
    text_add(t, "\nstatic const RtPlan plans[] = {\n");
    for (int i = 0; i < NUM_PLANS; i++)
        plan_write(w, t, i);
    text_add(t, "};\n\nRT_EMBED(kernels_text, \"%s.cu\");\n\n",
             w->options->base);
    if (w->options->embeds)
        text_add(t, "RT_EMBED(kernels_code, \"%s.bin\");\n\n",
                 w->options->base);
    if (w->options->graphs)
        text_add(t, "RT_EMBED(graphs_text, \"%s.ir\");\n\n", w->options->base);
    write_named(t, "sources", w->options->source, w->options->num_sources);
    write_named(t, "settings", w->options->set, w->options->num_sets);
    text_add(t, "const RtTrainer sinter_trainer = {\n");
    text_add(t, "    .model = \"%s\",\n", p->name);
    write_text(t, "file", p->file);
    text_add(t, "    .version = \"%s\",\n", w->options->version);
    text_add(t, "    .fingerprint = 0x%016llxu,\n",
             (unsigned long long)w->options->fingerprint);
    write_origin(w->options, t);
    write_recipe(p, t);
    write_text(t, "not_decoded", w->plan[HOST_PLAN]->not_decoded);
    text_add(t, "    .plan = plans,\n");
    text_add(t, "    .num_plans = COUNT(plans),\n");
    text_add(t, "    .kernels = kernels_text,\n");
    text_add(t, "    .kernels_end = kernels_text_end,\n");
    if (w->options->lines)
        text_add(t, "    .kernel_lines = true,\n");
    if (w->options->embeds)
        text_add(t, "    .code = kernels_code,\n"
                    "    .code_end = kernels_code_end,\n");
    if (w->options->graphs)
        text_add(t, "    .graphs = graphs_text,\n"
                    "    .graphs_end = graphs_text_end,\n");
    text_add(t, "};\n\n");
    text_add(t, "#ifdef SINTER_LIBRARY\n"
                "#include \"runtime/instance/instance.h\"\n");
    functions_write(p, t);
    if (plan_step(w->plan[HOST_PLAN], "decode") != NULL)
        text_add(t, "RT_LIBRARY_TEXTS(SINTER_LIBRARY)\n");
    text_add(t, "#else\n"
                "int main(int argc, char **argv)\n{\n"
                "    return rt_main(argc, argv, &sinter_trainer);\n}\n"
                "#endif\n\n"
                "#endif\n");
}
