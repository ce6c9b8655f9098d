// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine: reports oneDNN, which the compiler opens, while a trainer is linked
// with it.

#include "runtime/machine.h"
#include "runtime/library.h"

// The first members of oneDNN's dnnl_version_t.
typedef struct {
    int major, minor, patch;
} OneDnnVersion;

void rt_host_components(RtComponentHook *report, void *context) {
    const OneDnnVersion *(*get)(void);
    static const char *const files[] = {"libdnnl.so", NULL};
    static const RtSymbol symbols[] = {{"dnnl_version", 0}};
    const RtLibrary wanted = {.needed = "every trainer is linked with",
                              .files = files,
                              .remedy = "install oneDNN 2 or 3 (libdnnl-dev)",
                              .status = EXIT_DEVICE,
                              .symbol = symbols,
                              .num_symbols = 1};
    RtComponent found = {.name = "oneDNN"};
    char text[64];
    RtError e;
    void *library = rt_library_open(&wanted, &get, &e);
    if (library == NULL) {
        found.missing = e.text;
    } else {
        const OneDnnVersion *version = get();
        snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor,
                 version->patch);
        found.version = text;
        found.path = rt_library_path(&get);
    }
    report(context, &found);
    rt_library_close(library);
}
