// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN: the library's functions and its descriptors.

#include "runtime/cuda/libraries/cudnn.h"
#include "runtime/cuda/driver/driver.h"

#include "runtime/library.h"

#include <stddef.h>
#include <string.h>

bool rt_cudnn_open(RtCudnn *c, RtError *e) {
    static const char *const files[] = {"libcudnn.so.9", NULL};
    static const RtSymbol symbols[] = {
#define CUDNN(type, member, name, arguments) {name, offsetof(RtCudnn, member)},
#include "runtime/cuda/libraries/cudnn.def"
    };
    const RtLibrary library = {
        .needed = "convolutions on a GPU need",
        .files = files,
        .remedy = "install cuDNN 9 or the Python package nvidia-cudnn-cu13, "
                  "and put the folder of its libraries on LD_LIBRARY_PATH",
        .status = EXIT_DEVICE,
        .symbol = symbols,
        .num_symbols = sizeof symbols / sizeof *symbols};
    *c = (RtCudnn){0};
    c->library = rt_library_open(&library, c, e);
    return c->library != NULL;
}

// The builds for CUDA 12 and 13 have the same name, so the library itself tells
// its CUDA version.  A version later than 13 needs a driver as late.
bool rt_cudnn_compatible(const RtCudnn *c, int gpu, int driver, RtError *e) {
    int newest = rt_capability_cuda(gpu, driver), is = (int)c->cuda() / 1000;
    return is <= newest || (newest == 13 && is <= driver / 1000) ||
           rt_fail(e, EXIT_DEVICE,
                   "this cuDNN is for CUDA %d, but the GPU and its driver need "
                   "cuDNN for CUDA %d: install it or the Python package "
                   "nvidia-cudnn-cu%d, and put the folder of its libraries "
                   "first on LD_LIBRARY_PATH",
                   is, newest, newest);
}

void rt_cudnn_close(RtCudnn *c) {
    if (c->device != NULL)
        c->destroy(c->device);
    if (c->side_handle != NULL)
        c->close(c->side_handle);
    if (c->handle != NULL)
        c->close(c->handle);
    rt_library_close(c->library);
    *c = (RtCudnn){0};
}

// Keeps the first failure: later ones follow from it.
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

bool rt_cudnn_attach(RtCudnn *c, void *stream, void *side, RtError *e) {
    char why[512] = "";
    if (c->open(&c->handle) == 0 && c->set_stream(c->handle, stream) == 0 &&
        (side == NULL || (c->open(&c->side_handle) == 0 &&
                          c->set_stream(c->side_handle, side) == 0)))
        return true;
    c->last_error(why, sizeof why);
    return rt_fail(e, EXIT_DEVICE, "cuDNN %zu cannot use this GPU: %.200s",
                   c->version(), why);
}

void *rt_descriptor(RtDescriptors *d, int kind) {
    void *made = NULL;
    if (d->failed || d->count == RT_CUDNN_MAX_DESCRIPTORS) {
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

// The library loads its parts when the first descriptor is finalized and when
// the first heuristics descriptor is created.
void rt_cudnn_preload(const RtCudnn *c) {
    RtError ignored;
    RtDescriptors d = {.c = c, .error = &ignored};
    void *any = rt_descriptor(&d, DNN_BACKEND_POINTWISE_DESCRIPTOR);
    rt_descriptor_enum(&d, any, DNN_ATTR_POINTWISE_MODE,
                       DNN_TYPE_POINTWISE_MODE, DNN_POINTWISE_RELU_FWD);
    rt_descriptor_enum(&d, any, DNN_ATTR_POINTWISE_MATH_PREC,
                       DNN_TYPE_DATA_TYPE, DNN_DATA_FLOAT);
    rt_descriptor_finalize(&d, any, "a descriptor");
    rt_descriptor(&d, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    rt_descriptors_free(&d);
}
