// sinter data stats and verify: the data set of a model file.
#include "runtime/stats.h"
#include "base/exits.h"
#include "runtime/rt.h"
#include "tools/data/data.h"

#include <string.h>

// The shape of one sample of an input of the training step, or of a label.
static RtShape shape_of(const Program *p, const char *input) {
    static const RtType type[] = {[F32] = RT_F32, [I32] = RT_I32, [U8] = RT_U8};
    const Graph *g = p->stage[0].train;
    NodeId n = graph_find(g, input);
    RtShape s = {.rank = -1};
    if (n == NO_NODE)
        return s;
    const Type *t = g->node[n].type;
    s = (RtShape){.type = type[t->dtype], .rank = t->rank - 1};
    for (int i = 1; i < t->rank; i++)
        s.dim[i - 1] = t->dim[i];
    return s;
}

int data_stats(Arena *a, const Arguments *arguments, bool verify) {
    Diagnostics diags = diag_new(a);
    int status;
    if (arguments->num_operands != 2) {
        complain(arguments, "data %s needs one model file",
                 arguments->operand[0]);
        return EXIT_USAGE;
    }
    const Program *p = model_load(a, arguments, &diags, &status);
    if (p == NULL)
        return status;
    const Recipe *r = &p->recipe;
    RtSetting *setting =
        ARENA_ARRAY(a, (size_t)r->num_data_settings + 1, RtSetting);
    for (int i = 0; i < r->num_data_settings; i++)
        setting[i] =
            (RtSetting){r->data_setting[i].name, r->data_setting[i].value};
    RtTrainer t = {.model = p->name,
                   .data_format = r->data_format,
                   .data_path = r->data_path ? r->data_path : "",
                   .data_setting = setting,
                   .num_data_settings = r->num_data_settings,
                   .image = shape_of(p, "image"),
                   .label = shape_of(p, "label"),
                   .classes = r->classes};
    return rt_data_stats(&t, arguments->data, verify);
}
