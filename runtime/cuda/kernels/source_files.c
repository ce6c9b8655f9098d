// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source files: kernels as a folder for people to read, compile and edit.
#define _POSIX_C_SOURCE 200809L

#include "runtime/cuda/kernels/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char kernels_name[] = "kernels.cu";

static bool no_memory(RtError *e) {
    return rt_fail(e, EXIT_MEMORY, "out of memory");
}

// ---- writing ----

static bool file_write(const char *path, const char *text, const RtFiles *files,
                       RtError *e) {
    int fd = files->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bool good = fd >= 0 && rt_write(files, fd, text, strlen(text));
    int error = errno;
    if (fd >= 0 && files->close(fd) != 0 && good) {
        error = errno;
        good = false;
    }
    return good ||
           rt_fail(e, EXIT_IO, "cannot write %s: %s", path, strerror(error));
}

static bool text_write(const char *folder, const char *name, const char *text,
                       const RtFiles *files, RtError *e) {
    char *path = rt_path("%s/%s", folder, name);
    bool good = path != NULL ? file_write(path, text, files, e) : no_memory(e);
    free(path);
    return good;
}

// Makes the folder that the prelude's names begin with.
static bool prelude_folder(const char *folder, RtError *e) {
    const char *name = rt_prelude_name[0];
    char *path =
        rt_path("%s/%.*s", folder, (int)(strrchr(name, '/') - name), name);
    bool good = path != NULL ? rt_make_folder(path, 0777, e) : no_memory(e);
    free(path);
    return good;
}

bool rt_source_files_write(const RtTrainer *t, const char *folder,
                           const RtFiles *files, RtError *e) {
    bool good = prelude_folder(folder, e) &&
                text_write(folder, kernels_name, t->kernels, files, e);
    for (int i = 0; good && i < RT_PRELUDE_FILES; i++)
        good = text_write(folder, rt_prelude_name[i], rt_prelude_text[i], files,
                          e);
    return good;
}

// ---- reading ----

static char *file_read(const char *path, const RtFiles *files, RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return NULL;
    char *text = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    bool good = text != NULL;
    if (!good)
        no_memory(e);
    else if (!(good = rt_read(files, fd, text, bytes)))
        rt_fail(e, EXIT_IO, "cannot read %s: %s", path,
                errno != 0 ? strerror(errno) : "it is truncated");
    files->close(fd);
    if (good) {
        text[bytes] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static char *text_read(const char *folder, const char *name,
                       const RtFiles *files, RtError *e) {
    char *path = rt_path("%s/%s", folder, name), *text = NULL;
    if (path != NULL)
        text = file_read(path, files, e);
    else
        no_memory(e);
    free(path);
    return text;
}

bool rt_source_files_read(RtSourceFiles *text, const RtTrainer *t,
                          const char *folder, const RtFiles *files,
                          RtError *e) {
    *text = (RtSourceFiles){.trainer = *t};
    bool good =
        (text->kernels = text_read(folder, kernels_name, files, e)) != NULL;
    for (int i = 0; good && i < RT_PRELUDE_FILES; i++)
        good = (text->prelude[i] =
                    text_read(folder, rt_prelude_name[i], files, e)) != NULL;
    text->trainer.kernels = text->kernels;
    if (good)
        text->trainer.kernels_end = text->kernels + strlen(text->kernels);
    text->trainer.prelude = text->prelude;
    return good;
}
