// Inputs: checks the device and the data of a trainer before it is compiled,
// with the runtime's own functions, so the messages are the same.
#define _POSIX_C_SOURCE 200809L // access
#include "base/exits.h"
#include "runtime/machine.h"
#include "tools/trainer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// A sample of an input, as codegen/trainer.c writes it; rank -1: no graph has
// the input.
static RtShape shape_of(const Program *p, const char *input) {
    const Graph *g = p->eval;
    NodeId n = graph_find(g, input);
    if (n == NO_NODE) {
        g = p->stage[0].train;
        n = graph_find(g, input);
    }
    RtShape s = {.rank = -1};
    if (n == NO_NODE)
        return s;
    const Type *type = g->node[n].type;
    s.type = type->dtype == U8 ? RT_U8 : type->dtype == I32 ? RT_I32 : RT_F32;
    s.rank = type->rank - 1;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = type->dim[i + 1];
    return s;
}

static bool is_generated(const Recipe *r, const RtOptions *o) {
    static const char word[] = "synthetic";
    return strncmp(o->data ? o->data : r->data_format, word, sizeof word - 1) ==
           0;
}

void data_describe(const Program *p, DataDescription *d) {
    const Recipe *r = &p->recipe;
    d->trainer = (RtTrainer){.model = p->name,
                             .data_format = r->data_format,
                             .data_path = r->data_path ? r->data_path : "",
                             .data_setting = d->setting,
                             .image = shape_of(p, "image"),
                             .label = shape_of(p, "label"),
                             .image_name = r->image_name,
                             .array = d->array,
                             .num_arrays = r->num_arrays,
                             .classes = r->classes,
                             .sets_classes = r->sets_classes,
                             .ignored = r->ignored};
    for (int i = 0; i < r->num_data_settings && i < MAX_SETTINGS; i++)
        d->setting[d->trainer.num_data_settings++] =
            (RtSetting){r->data_setting[i].name, r->data_setting[i].value,
                        r->data_setting[i].text};
    for (int i = 0; i < r->num_arrays; i++)
        d->array[i] = (RtArray){r->array[i].name,
                                r->array[i].input,
                                shape_of(p, r->array[i].input),
                                r->array[i].classes,
                                r->array[i].ignored,
                                r->array[i].weighs};
}

static bool data_found(const Program *p, const RtOptions *o, RtError *e) {
    DataDescription d;
    data_describe(p, &d);
    return rt_data_check(&d.trainer, o, e);
}

int inputs_files_check(const Arguments *arguments, const RtOptions *o) {
    const char *const file[] = {o->init, o->weights, o->map};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        if (file[i] != NULL && access(file[i], F_OK) != 0) {
            complain(arguments, "cannot open %s: %s", file[i], strerror(errno));
            return EXIT_DATA;
        }
    return EXIT_GOOD;
}

int inputs_check(const Arguments *arguments, const Program *p,
                 const RtOptions *o) {
    RtError e;
    if ((o->load_only || rt_device_found(o->device, &e)) &&
        (is_generated(&p->recipe, o) || data_found(p, o, &e)))
        return EXIT_GOOD;
    complain(arguments, "%s", e.text);
    return e.status;
}

// Parses the options as the trainer does.
int inputs_named_check(Arena *a, const Arguments *arguments, const Program *p,
                       const char *device, const char *data,
                       const char *validation) {
    enum { MAX_WORDS = 4 };
    char *word[MAX_WORDS] = {arena_string(a, "trainer", strlen("trainer")),
                             arena_format(a, "--device=%s", device)};
    int count = 2;
    RtOptions o;
    RtError e;
    if (data != NULL)
        word[count++] = arena_format(a, "--data=%s", data);
    if (validation != NULL)
        word[count++] = arena_format(a, "--validation=%s", validation);
    if (rt_options_parse(&o, count, word, NULL, &e))
        return inputs_check(arguments, p, &o);
    complain(arguments, "%s", e.text);
    return e.status;
}
