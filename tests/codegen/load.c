// Load: see load.h.
#include "tests/codegen/load.h"

#include "base/source.h"
#include "tests/codegen/library.h"

#include <string.h>

static Program *load_graph(Arena *a, const char *path, DType precision,
                           Text *report) {
    enum { MAX_BYTES = 1 << 20 };
    const char *why = NULL;
    Source *s = source_read(a, path, MAX_BYTES, &why);
    Graph *train = s ? graph_read(a, s->text, s->length, &why) : NULL;
    if (train == NULL || (why = graph_verify(train, a)) != NULL) {
        text_add(report, "%s: %s\n", path, why);
        return NULL;
    }
    return library_program(a, train, precision);
}

Program *load_program(Arena *a, const char *model, const Setting *setting,
                      int num_settings, DType precision, Text *report) {
    const char *path = library_source(a, model);
    if (strstr(model, ".ir") != NULL)
        return load_graph(a, path, precision, report);
    Diagnostics diags = diag_new(a);
    Program *p = frontend_load(a, path, setting, num_settings, &diags);
    if (p == NULL)
        diag_print(report, &diags);
    return p;
}

void load_plans(const Program *p, int level, const Plan *plan[NUM_PLANS]) {
    static const char *const device[NUM_PLANS] = {
        [HOST_PLAN] = "host", [GPU_PLAN] = "cuda"};
    for (int i = 0; i < NUM_PLANS; i++) {
        PassOptions o = pass_options(&p->recipe, device[i]);
        o.level = level;
        plan[i] = program_plan(p, &o);
    }
}
