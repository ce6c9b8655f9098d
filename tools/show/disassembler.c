// Disassembler: nvdisasm of the CUDA toolkit, where it is installed.  NVIDIA
// offers no library that does so.
#define _GNU_SOURCE
#include "base/source.h"
#include "tools/machine.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 30 };

extern char **environ;

static const char absent[] =
    "SASS needs nvdisasm of the CUDA toolkit: install it and have its folder "
    "on PATH";

bool machine_can_disassemble(Arena *a, const char **why) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        const char *file = arena_format(a, "%.*s/nvdisasm", (int)length, path);
        if (length > 0 && access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    *why = absent;
    return false;
}

// Runs nvdisasm on a file, its output into another; its exit status, -1 when it
// has not run.
static int disassembler_run(const char *from, const char *to) {
    const char *const word[] = {"nvdisasm", "-c", from, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, to,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int error = posix_spawnp(&child, word[0], &actions, NULL,
                             (char *const *)word, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static bool file_write(const char *path, const char *bytes, size_t length) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, length, f) == length;
    return f && fclose(f) == 0 && good;
}

static const char *folder_disassemble(Arena *a, const char *folder,
                                      const char *code, size_t length,
                                      const char **why) {
    const char *from = arena_format(a, "%s/kernels.cubin", folder);
    const char *to = arena_format(a, "%s/kernels.sass", folder);
    const char *error = "cannot be written", *text = NULL;
    if (!file_write(from, code, length)) {
        *why = arena_format(a, "%s %s", from, error);
    } else if (disassembler_run(from, to) != 0) {
        *why = absent;
    } else {
        Source *s = source_read(a, to, MOST_BYTES, &error);
        text = s ? s->text : NULL;
        *why = error;
    }
    unlink(from);
    unlink(to);
    return text;
}

const char *machine_disassemble(Arena *a, const char *code, size_t length,
                                const char **why) {
    const char *temporary = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        *why = arena_format(a, "%s cannot be made", folder);
        return NULL;
    }
    const char *text = folder_disassemble(a, folder, code, length, why);
    rmdir(folder);
    return text;
}
