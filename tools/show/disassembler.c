// Disassembler: runs nvdisasm of the CUDA toolkit, if it is installed.  NVIDIA
// has no library for it.
#define _POSIX_C_SOURCE 200809L // strerror
#include "base/exits.h"
#include "base/source.h"
#include "tools/process.h"
#include "tools/scratch.h"
#include "tools/show/inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// All kernels of a model, four megabytes, take it a second or two.
enum { MAX_BYTES = 1 << 30, LEAST_SECONDS = 15, BYTES_IN_A_SECOND = 1 << 16 };

static bool is_program(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
           access(path, X_OK) == 0;
}

const char *disassembler_find(Arena *a, const Arguments *arguments) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        const char *file = arena_format(a, "%.*s/nvdisasm", (int)length, path);
        if (length > 0 && is_program(file))
            return file;
        path += length + (path[length] == ':');
    }
    complain(arguments, "SASS needs nvdisasm of the CUDA toolkit: install it "
                        "and have its folder on PATH");
    return NULL;
}

// The first line of a program's log; NULL if it is empty.
static const char *words_of(Arena *a, const char *log) {
    const char *why;
    const Source *said = source_read(a, log, MAX_BYTES, &why);
    const char *start = said ? said->text + strspn(said->text, " \t\n") : "";
    size_t length = strcspn(start, "\n");
    return length > 0 ? arena_string(a, start, length) : NULL;
}

static bool is_in_time(void *left) {
    return --*(int *)left > 0;
}

// Runs it on the code; false, after a message, if it fails.
static bool disassembler_try(Arena *a, const Arguments *arguments,
                             const char *program, const Code *code,
                             const char *from, const char *to,
                             const char *log) {
    Words w = {.a = a};
    words_add(&w, program);
    words_add(&w, "--print-code");
    words_add(&w, "--print-line-info-inline");
    words_add(&w, from);
    int seconds = LEAST_SECONDS + (int)(code->length / BYTES_IN_A_SECOND);
    int left = seconds * POLLS_A_SECOND;
    int status = program_run_while(&w, ".", to, log, is_in_time, &left);
    if (status == NOT_STARTED)
        complain(arguments, "%s: %s", program, strerror(errno));
    else if (status == ENDED)
        complain(arguments, "%s was stopped after %d seconds", program,
                 seconds);
    else if (status != 0) {
        const char *words = words_of(a, log);
        complain(arguments, "%s cannot read code of %s: %s", program,
                 code->origin, words ? words : "it gives no reason");
    }
    return status == 0;
}

static const char *folder_disassemble(Arena *a, const Arguments *arguments,
                                      const char *folder, const char *program,
                                      const Code *code, int *status) {
    const char *from = arena_format(a, "%s/kernels.cubin", folder);
    const char *to = arena_format(a, "%s/kernels.sass", folder);
    const char *log = arena_format(a, "%s/log", folder), *why;
    *status = EXIT_IO;
    if (!file_write(from, code->bytes, code->length)) {
        io_failed(arguments, from);
        return NULL;
    }
    *status = EXIT_DEVICE;
    if (!disassembler_try(a, arguments, program, code, from, to, log))
        return NULL;
    const Source *s = source_read(a, to, MAX_BYTES, &why);
    if (!s)
        complain(arguments, "%s: %s", to, why);
    return s ? s->text : NULL;
}

const char *disassembler_run(Arena *a, const Arguments *arguments,
                             const char *program, const Code *code,
                             int *status) {
    Scratch scratch;
    *status = EXIT_IO;
    if (!scratch_open(a, arguments, &scratch))
        return NULL;
    const char *text =
        folder_disassemble(a, arguments, scratch.path, program, code, status);
    scratch_close(&scratch);
    return text;
}
