// cuDNN: the library's functions and its descriptors.

#include "runtime/cudnn.h"

#include "base/exits.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcudnn.so.9"

static bool find(RtCudnn *c, void *to, const char *name, RtError *e) {
    *(void **)to = dlsym(c->library, name);
    if (*(void **)to != NULL)
        return true;
    return rt_fail(e, EXIT_DEVICE, LIBRARY " has no function %s", name);
}

static bool find_all(RtCudnn *c, RtError *e) {
    return find(c, &c->version, "cudnnGetVersion", e) &&
           find(c, &c->create, "cudnnBackendCreateDescriptor", e) &&
           find(c, &c->destroy, "cudnnBackendDestroyDescriptor", e) &&
           find(c, &c->finalize, "cudnnBackendFinalize", e) &&
           find(c, &c->set, "cudnnBackendSetAttribute", e) &&
           find(c, &c->get, "cudnnBackendGetAttribute", e) &&
           find(c, &c->last_error, "cudnnGetLastErrorString", e);
}

bool rt_cudnn_open(RtCudnn *c, RtError *e) {
    *c = (RtCudnn){.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    if (c->library == NULL)
        return rt_fail(e, EXIT_DEVICE, "no " LIBRARY ": %s", dlerror());
    if (find_all(c, e))
        return true;
    rt_cudnn_close(c);
    return false;
}

void rt_cudnn_close(RtCudnn *c) {
    if (c->device != NULL)
        c->destroy(c->device);
    if (c->library != NULL)
        dlclose(c->library);
    *c = (RtCudnn){0};
}

// The first failure counts: what follows it comes from it.
static bool good(RtDescriptors *d, int status, const char *what) {
    char why[512] = "";
    if (status == 0)
        return true;
    d->c->last_error(why, sizeof why);
    if (!d->failed)
        rt_fail(d->error, EXIT_DEVICE, "cuDNN refuses %s: %.200s", what, why);
    d->failed = true;
    return false;
}

bool rt_cudnn_describe(RtCudnn *c, const char *json, RtError *e) {
    RtDescriptors d = {.c = c, .error = e};
    void *device = rt_descriptor(&d, DNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    rt_descriptor_set(&d, device, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                      DNN_TYPE_CHAR, (int64_t)strlen(json), json);
    rt_descriptor_finalize(&d, device, "the description of a device");
    if (d.failed) {
        rt_descriptors_free(&d);
        return false;
    }
    if (c->device != NULL)
        c->destroy(c->device);
    c->device = device;
    return true;
}

void *rt_descriptor(RtDescriptors *d, int kind) {
    void *made = NULL;
    if (d->failed || d->count == RT_CUDNN_MADE) {
        if (!d->failed)
            rt_fail(d->error, EXIT_FAULT, "a graph of too many descriptors");
        d->failed = true;
        return NULL;
    }
    if (good(d, d->c->create(kind, &made), "a descriptor"))
        d->made[d->count++] = made;
    return made;
}

void rt_descriptor_set(RtDescriptors *d, void *of, int name, int type,
                       int64_t count, const void *value) {
    if (!d->failed)
        good(d, d->c->set(of, name, type, count, value), "an attribute");
}

void rt_descriptor_int(RtDescriptors *d, void *of, int name, int64_t value) {
    rt_descriptor_set(d, of, name, DNN_TYPE_INT64, 1, &value);
}

void rt_descriptor_enum(RtDescriptors *d, void *of, int name, int type,
                        int value) {
    rt_descriptor_set(d, of, name, type, 1, &value);
}

void rt_descriptor_link(RtDescriptors *d, void *of, int name, void *other) {
    rt_descriptor_set(d, of, name, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void rt_descriptor_finalize(RtDescriptors *d, void *of, const char *what) {
    if (!d->failed)
        good(d, d->c->finalize(of), what);
}

void rt_descriptors_free(RtDescriptors *d) {
    while (d->count > 0)
        d->c->destroy(d->made[--d->count]);
}
