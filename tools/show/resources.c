// Resources: registers and spills of kernels, from NVRTC where it is installed.
#include "tools/show/inspect.h"

#include <stdlib.h>
#include <string.h>

// Chosen kernels are compiled for the described device; all of a program only
// when a list of devices is given, as it takes a tenth of a second for each.
bool archs_parse(const Arguments *arguments, const Device *device,
                 Inspection *out) {
    bool chosen = arguments->kernel || arguments->line.given || arguments->op;
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

// The launch whose text the kernel shares.
static const Kernel *written_kernel(const Kernel *k) {
    return k->first ? k->first : k;
}

// Each text is compiled once, whoever shares it.
static bool kernel_compile(Arena *a, Machine *m, Inspection *in, Inspected *l) {
    const Kernel *k = written_kernel(l->kernel);
    const char *text = arena_format(a, "%s\n%s", in->header, k->text);
    l->resources = ARENA_ARRAY(a, (size_t)in->num_archs, Resources);
    for (int i = 0; i < in->num_archs; i++)
        if (!machine_resources(m, text, in->arch[i], 1, &k->name,
                               &l->resources[i], &in->why))
            return false;
    return true;
}

static const Inspected *compiled_before(const Inspection *in, int at) {
    const Kernel *k = written_kernel(in->launch[at].kernel);
    for (int i = 0; i < at; i++)
        if (in->launch[i].resources &&
            written_kernel(in->launch[i].kernel) == k)
            return &in->launch[i];
    return NULL;
}

void resources_find(Arena *a, Inspection *in) {
    Machine *m = in->num_archs ? machine_open(a, &in->why) : NULL;
    if (!m)
        return;
    in->compiler = machine_version(m);
    for (int i = 0; i < in->count && !in->why; i++) {
        Inspected *l = &in->launch[i];
        const Inspected *before = compiled_before(in, i);
        if (before)
            l->resources = before->resources;
        else if (l->chosen && l->kernel->text && !kernel_compile(a, m, in, l))
            l->resources = NULL;
    }
    machine_close(m);
}
