// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared libraries: dlopen, and the addresses of a table of functions.
//
// A library stays in memory once it was opened: threads, the driver and exit
// handlers may call functions of a GPU's libraries.
#define _GNU_SOURCE // dladdr

#include "runtime/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// dlopen's message begins with the file.  The first name is the preferred one,
// so its message is reported.
static void *open_first(const RtLibrary *l, const char **file, RtError *e) {
    char why[300] = "";
    for (const char *const *name = l->files; *name != NULL; name++) {
        void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        *file = *name;
        if (library != NULL)
            return library;
        if (name == l->files)
            snprintf(why, sizeof why, "%s", dlerror());
    }
    rt_fail(e, l->status, "%s %s, which cannot be opened (%s): %s", l->needed,
            l->files[0], why, l->remedy);
    return NULL;
}

static bool find(void *library, const RtSymbol *s, void *functions) {
    void *address = dlsym(library, s->name);
    memcpy((char *)functions + s->at, &address, sizeof address);
    return address != NULL;
}

void *rt_library_open(const RtLibrary *l, void *functions, RtError *e) {
    const char *file = NULL;
    void *library = open_first(l, &file, e);
    for (size_t i = 0; library != NULL && i < l->num_symbols; i++)
        if (!find(library, &l->symbol[i], functions)) {
            rt_fail(e, l->status,
                    "%s the function %s, which %s does not have: %s", l->needed,
                    l->symbol[i].name, file, l->remedy);
            rt_library_close(library);
            return NULL;
        }
    return library;
}

void rt_library_close(void *library) {
    if (library != NULL)
        dlclose(library);
}

const char *rt_library_path(const void *function) {
    const void *address;
    Dl_info info;
    memcpy(&address, function, sizeof address);
    return dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}
