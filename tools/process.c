// Process: programs that are run, without a shell.
#define _GNU_SOURCE
#include "tools/process.h"
#include "base/exits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void words_add(Words *w, const char *word) {
    ARENA_APPEND(w->a, w->word, w->count, word);
    ARENA_APPEND(w->a, w->word, w->count, NULL);
    w->count--;
}

void words_add_all(Words *w, const char *const *list) {
    for (; *list; list++)
        words_add(w, *list);
}

void words_split(Words *w, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, " ");
        if (length > 0)
            words_add(w, arena_string(w->a, text, length));
        text += length + (text[length] == ' ');
    }
}

static void open_at(posix_spawn_file_actions_t *actions, int descriptor,
                    const char *path) {
    if (path != NULL)
        posix_spawn_file_actions_addopen(actions, descriptor, path,
                                         O_WRONLY | O_CREAT | O_TRUNC, 0666);
}

pid_t program_start(const Words *words, const char *folder, const char *out,
                    const char *log) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    open_at(&actions, STDOUT_FILENO, out);
    if (out != NULL && log != NULL && strcmp(out, log) == 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO,
                                         STDERR_FILENO);
    else
        open_at(&actions, STDERR_FILENO, log);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    int error = posix_spawnp(&child, words->word[0], &actions, NULL,
                             (char *const *)words->word, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return error ? -1 : child;
}

static int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAULT;
}

int program_wait(pid_t child) {
    int status;
    if (child < 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_IO;
    return status_of(status);
}

static volatile sig_atomic_t waited_for, interrupted;

// A terminal has told the program itself, which takes a second signal to mean
// that it is to end at once.
static void pass_on(int number, siginfo_t *about, void *context) {
    (void)context;
    interrupted = number;
    if (about->si_code == SI_USER)
        kill(waited_for, number);
}

// What is ignored, as in a job in the background, stays so.
int program_wait_long(pid_t child) {
    enum { NUMBERS = 3 };
    static const int numbers[NUMBERS] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction before[NUMBERS];
    struct sigaction now = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
    if (child < 0)
        return -1;
    waited_for = child;
    sigemptyset(&now.sa_mask);
    for (int i = 0; i < NUMBERS; i++) {
        sigaction(numbers[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(numbers[i], &now, NULL);
    }
    int status = program_wait(child);
    for (int i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &before[i], NULL);
    if (interrupted)
        raise(interrupted);
    return status;
}

int program_wait_most(pid_t child, int seconds) {
    enum { LOOKS = 100 }; // in a second
    const struct timespec pause = {.tv_nsec = 1000000000 / LOOKS};
    for (int left = seconds * LOOKS; left > 0; left--) {
        int status;
        if (waitpid(child, &status, WNOHANG) == child)
            return status_of(status);
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    program_wait(child);
    return LATE;
}
