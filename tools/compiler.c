// Compiler: turns an emitted C file into a program, without a shell.
#define _GNU_SOURCE
#include "tools/compiler.h"
#include "base/exits.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 64, PATH_BYTES = 4096 };

extern char **environ;

// Sums are in the order in which they are written and products are not merged
// with them, so that every compiler gives the same bits; errno and the flags of
// floating point are nobody's business.
// clang-format off
static const char *const compile_flags[] = {
    "-std=c11", "-O3", "-march=native", "-fopenmp-simd", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math",
#ifdef __x86_64__
    "-mprefer-vector-width=512",
#endif
    NULL,
};
static const char *const link_flags[] = {
    "-fopenmp", "-Wl,--as-needed", "-ldnnl",
#ifdef __x86_64__
    "-lmvec",
#endif
    "-lm", "-lpthread", "-ldl", NULL,
};
// clang-format on

typedef struct {
    const char *word[MAX_WORDS + 1]; // ends with NULL
    int count;
} Words;

static void words_add(Words *w, const char *word) {
    if (w->count < MAX_WORDS)
        w->word[w->count++] = word;
}

static void words_add_all(Words *w, const char *const *list) {
    for (; *list; list++)
        words_add(w, *list);
}

// The words of text, which spaces set apart.
static void words_split(Arena *a, Words *w, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, " ");
        if (length > 0)
            words_add(w, arena_string(a, text, length));
        text += length + (text[length] == ' ');
    }
}

static bool is_there(const char *path) {
    if (access(path, R_OK) == 0)
        return true;
    fprintf(stderr, "sinter: %s: %s\n", path, strerror(errno));
    return false;
}

bool installation_find(Arena *a, Installation *out) {
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) {
        perror("sinter: /proc/self/exe");
        return false;
    }
    // Twice the name after the last slash: the program, then its folder.
    path[length] = 0;
    for (int i = 0; i < 2; i++)
        if (strrchr(path, '/'))
            *strrchr(path, '/') = 0;
    out->library = arena_format(a, "%s/lib/sinter/libsinter_rt.a", path);
    out->include = arena_format(a, "%s/include/sinter", path);
    return is_there(out->library) && is_there(out->include);
}

// Starts a program in a folder and waits.  -1 when there is no such program,
// else its exit status.
static int program_run(const Words *words, const char *folder) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    int error = posix_spawnp(&child, words->word[0], &actions, NULL,
                             (char *const *)words->word, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_IO;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAULT;
}

static void command_make(Arena *a, Words *w, const char *compiler,
                         const Installation *where, const char *source,
                         const char *out) {
    words_split(a, w, compiler);
    words_add_all(w, compile_flags);
    words_split(a, w, getenv("CFLAGS"));
    words_add(w, arena_format(a, "-I%s", where->include));
    words_add(w, "-o");
    words_add(w, out);
    words_add(w, source);
    words_add(w, where->library);
    words_add_all(w, link_flags);
}

int compiler_run(Arena *a, const Installation *where, const char *folder,
                 const char *source, const char *out) {
    const char *candidate[] = {getenv("CC"), "cc", "gcc", "clang"};
    for (size_t i = 0; i < sizeof candidate / sizeof candidate[0]; i++) {
        if (!candidate[i] || !*candidate[i])
            continue;
        Words words = {0};
        command_make(a, &words, candidate[i], where, source, out);
        int status = program_run(&words, folder);
        if (status == 0)
            return EXIT_GOOD;
        if (status > 0) {
            fprintf(stderr, "sinter: %s cannot compile %s/%s\n", candidate[i],
                    folder, source);
            return EXIT_FAULT;
        }
    }
    fputs("sinter: building a trainer needs a C compiler: gcc, or clang, or "
          "what CC names\n",
          stderr);
    return EXIT_DEVICE;
}
