// sinter report: writes a page of HTML with a model's source, kernels and
// costs.
#include "base/exits.h"
#include "base/source.h"
#include "tools/plot/plot.h"
#include "tools/show/inspect.h"
#include "tools/show/memory.h"
#include "tools/show/recipe.h"

#include <string.h>

extern const unsigned char report_page_html[], report_page_css[],
    report_page_js[];

// Escapes JSON so that no text of the model ends its script element.
static void json_guarded(Text *t, const Text *json) {
    for (const char *s = text_string(json); *s;) {
        size_t length = strcspn(s, "<");
        text_bytes(t, s, length);
        s += length;
        if (*s)
            text_add(t, "\\u003c"), s++;
    }
}

static bool source_json(Show *s, Text *t, const char *path, const char *name) {
    const char *error = NULL;
    const Source *source = source_read(s->a, path, MODEL_BYTES, &error);
    if (!source) {
        file_report(s->a, s->arguments, path, error);
        return false;
    }
    text_add(t, "{\"file\": ");
    json_string(t, name);
    text_add(t, ", \"text\": ");
    json_bytes(t, source->text, source->length);
    text_add(t, "}");
    return true;
}

// Adds the model file, then its imports in the order in which they were read;
// the list has them in reverse order.
static bool sources_json(Show *s, Text *t) {
    const ImportedFile *imported = s->p->imported;
    text_add(t, "[");
    bool good = source_json(s, t, s->file, s->p->file);
    for (int i = s->p->num_imported; good && i-- > 0;) {
        text_add(t, ", ");
        good = source_json(s, t, imported[i].path, imported[i].name);
    }
    text_add(t, "]");
    return good;
}

// Adds the launches of each step, counted as in sinter check.
static void steps_json(Show *s, Text *t, const Inspection *in) {
    const Plan *plan = in->plan;
    text_add(t, ", \"steps\": [");
    for (int i = 0; i < plan->num_steps; i++) {
        Selected selected = step_select(s->a, plan, &plan->step[i], in->device);
        int64_t all = graph_cost(plan->step[i].plan).launches;
        text_add(t, "%s{\"name\": \"%s\"", i ? ", " : "", plan->step[i].name);
        json_count(t, "launches", all - selected.merged_alone);
        json_count(t, "launches_without_joins", all);
        text_add(t, "}");
    }
    text_add(t, "]");
}

static bool data_json(Show *s, const Inspection *in, Text *t) {
    const Plan *plan = show_trainer(s)->plan;
    const Step *step = plan_step(plan, s->p->stage[0].train->name);
    Recipes recipe = recipe_find(s->a, s->p, plan, s->arguments);
    text_add(t, "{\"schema\": 1, \"version\": \"%s\", \"sources\": ",
             SINTER_VERSION);
    if (!sources_json(s, t))
        return false;
    text_add(t, ", \"kernels\": ");
    kernels_json(s->a, t, in);
    steps_json(s, t, in);
    text_add(t, ", \"memory\": ");
    memory_json(s->a, t, s->p, plan, step);
    text_add(t, ", \"recipe\": ");
    recipe_json(s->a, t, &recipe);
    text_add(t, ", \"parameters\": ");
    params_json(s->a, t, s->p, plan, step);
    text_add(t, "}");
    return true;
}

// Replaces the placeholders of the page, words between two @.
static Text page_filled(Arena *a, const Text *data, const Text *curves) {
    Text t = text_new(a);
    for (const char *s = (const char *)report_page_html; *s;) {
        size_t length = strcspn(s, "@");
        text_bytes(&t, s, length);
        s += length;
        if (strncmp(s, "@STYLE@", 7) == 0)
            text_add(&t, "%s", (const char *)report_page_css);
        else if (strncmp(s, "@SCRIPT@", 8) == 0)
            text_add(&t, "%s", (const char *)report_page_js);
        else if (strncmp(s, "@DATA@", 6) == 0)
            json_guarded(&t, data);
        else if (strncmp(s, "@CURVES@", 8) == 0)
            text_add(&t, "%s", text_string(curves));
        s += *s ? strcspn(s + 1, "@") + 2 : 0;
    }
    return t;
}

static int page_write(const Show *s, const char *path, const Text *page) {
    if (strcmp(path, "-") == 0) {
        fwrite(text_string(page), 1, page->length, stdout);
        return EXIT_GOOD; // main prints an error
    }
    int status = text_write(s->arguments, path, page);
    if (status == EXIT_GOOD)
        wrote_print(s->arguments, path, "open it in a browser");
    return status;
}

int report_command(Arena *a, const Arguments *given) {
    Arguments copy = *given;
    const Arguments *arguments = &copy;
    Show s = {.a = a, .arguments = arguments, .file = arguments->operand[0]};
    Diagnostics diags = diag_new(a);
    Device device;
    Inspection in;
    int status;
    if (!device_find(a, arguments, &device, &status) ||
        !device_plan(a, &copy, &status))
        return status;
    s.p = model_load(a, arguments, &diags, &status);
    if (!s.p || !inspect(&s, &device, &in, &status))
        return status;
    Text curves = text_new(a);
    status = plot_add(a, arguments, &curves);
    if (status != EXIT_GOOD)
        return status;
    resources_find(a, &in);
    Text data = text_new(a);
    if (!data_json(&s, &in, &data))
        return EXIT_IO;
    Text page = page_filled(a, &data, &curves);
    const char *out = arguments->out
                          ? arguments->out
                          : arena_format(a, "%s.html", show_trainer(&s)->name);
    status = EXIT_USAGE;
    if (run_is_out(a, arguments, arguments->metrics, arguments->num_metrics,
                   out) ||
        (strcmp(out, "-") != 0 && !output_check(arguments, s.p, out, &status)))
        return status;
    if (in.why)
        fprintf(stderr, "sinter: no register counts: %s\n", in.why);
    return page_write(&s, out, &page);
}
