// Resources: registers and spills of kernels, from NVRTC where it is installed.
#include "tools/show/inspect.h"

#include <stdlib.h>
#include <string.h>

// Selected kernels are compiled for the described device.  All kernels of a
// program are compiled only for --arch, as each takes a tenth of a second.
bool archs_parse(const Arguments *arguments, const Device *device,
                 Inspection *out) {
    bool chosen =
        arguments->kernel || arguments->line.number.given || arguments->op;
    const char *list = arguments->arch;
    if (!list && chosen)
        out->arch[out->num_archs++] = device->sm;
    while (list && *list) {
        char *end;
        long sm = strncmp(list, "sm_", 3) == 0 ? strtol(list + 3, &end, 10) : 0;
        if (sm < 10 || sm > 999 || (*end && *end != ',') ||
            out->num_archs == MAX_ARCHS) {
            complain(arguments,
                     "--arch needs a list such as sm_80,sm_90, not '%s'",
                     arguments->arch);
            return false;
        }
        out->arch[out->num_archs++] = (int)sm;
        list = end + (*end == ',');
    }
    return true;
}

// Adds the functions that a merged launch calls, each text once.
static void functions_add(Text *t, const Inspected *l) {
    for (int i = 0; i < l->count; i++) {
        const Kernel *k = l->kernel[i].first;
        int before = 0;
        while (l->kernel[before].first != k)
            before++;
        if (before == i)
            text_bytes(t, k->text, k->entry);
    }
}

// Compiles a text once for all launches that share it.
static bool launch_compile(Arena *a, Machine *m, Inspection *in, Inspected *l) {
    const char *name = launch_name(l);
    Text t = text_new(a);
    text_add(&t, "%s\n", in->header);
    if (l->merged)
        functions_add(&t, l);
    text_add(&t, "%s", launch_text(l));
    l->resources = ARENA_ARRAY(a, (size_t)in->num_archs, Resources);
    for (int i = 0; i < in->num_archs; i++)
        if (!machine_resources(m, text_string(&t), in->arch[i], 1, &name,
                               &l->resources[i], &in->why))
            return false;
    return true;
}

static const Inspected *compiled_before(const Inspected *list, int at) {
    const char *text = launch_text(&list[at]);
    for (int i = 0; i < at; i++)
        if (list[i].resources && launch_text(&list[i]) == text)
            return &list[i];
    return NULL;
}

static void list_compile(Arena *a, Machine *m, Inspection *in, Inspected *list,
                         int count) {
    for (int i = 0; i < count && !in->why; i++) {
        Inspected *l = &list[i];
        const Inspected *before = compiled_before(list, i);
        if (before)
            l->resources = before->resources;
        else if (l->chosen && launch_text(l) && !launch_compile(a, m, in, l))
            l->resources = NULL;
    }
}

void resources_find(Arena *a, Inspection *in) {
    Machine *m = in->num_archs ? machine_open(a, in->arch[0], &in->why) : NULL;
    if (!m)
        return;
    in->compiler = machine_version(m);
    list_compile(a, m, in, in->launch, in->count);
    list_compile(a, m, in, in->merged, in->num_merged);
    machine_close(m);
}
