// Process: runs programs without a shell.
//
// Interrupting signals are blocked while they run, and the loop that waits for
// them receives the signals.  So no signal ends this program and leaves them
// running, and no handler is needed.
#define _GNU_SOURCE
#include "tools/process.h"
#include "base/exits.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

const char *ended_how(Arena *a, int status) {
    int number = status - BY_SIGNAL;
    if (number <= 0 || number >= NSIG)
        return arena_format(a, "exited with status %d", status);
    return arena_format(a, "was killed by signal %d, %s", number,
                        strsignal(number));
}

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

static bool process_start(Process *p, const sigset_t *mask) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    open_at(&actions, STDOUT_FILENO, p->out);
    if (p->out != NULL && p->log != NULL && strcmp(p->out, p->log) == 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO,
                                         STDERR_FILENO);
    else
        open_at(&actions, STDERR_FILENO, p->log);
    posix_spawn_file_actions_addchdir_np(&actions, p->folder);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawnp(&p->id, p->words.word[0], &actions, &attributes,
                             (char *const *)p->words.word, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0)
        return true;
    errno = error;
    p->id = 0;
    p->status = NOT_STARTED;
    return false;
}

static bool process_runs(Process *p) {
    int status;
    pid_t ended = p->id > 0 ? waitpid(p->id, &status, WNOHANG) : -1;
    if (p->id == 0 || ended == 0)
        return p->id > 0;
    if (p->status != ENDED)
        p->status = ended < 0           ? EXIT_IO
                    : WIFEXITED(status) ? WEXITSTATUS(status)
                                        : BY_SIGNAL + WTERMSIG(status);
    p->id = 0;
    return false;
}

// Processes, of which at most `limit` run at a time.
typedef struct {
    Process *process;
    int count, started, limit;
    sigset_t mask; // the signal mask of the processes
    int error;     // errno of the last one that did not start
} Batch;

// Starts processes while fewer than `limit` run.
static bool some_run(Batch *b) {
    int running = 0;
    for (int i = 0; i < b->started; i++)
        running += process_runs(&b->process[i]);
    while (running < b->limit && b->started < b->count)
        if (process_start(&b->process[b->started++], &b->mask))
            running++;
        else
            b->error = errno;
    return running > 0;
}

static void all_signal(const Batch *b, int number) {
    for (int i = 0; i < b->started; i++)
        if (b->process[i].id > 0)
            kill(b->process[i].id, number);
}

// Ignored signals, as in a job in the background, stay ignored.
static sigset_t interruptions(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            sigaddset(&set, numbers[i]);
    }
    return set;
}

// Returns the signal that has interrupted this program, or 0. A terminal sends
// its signals to the processes itself, and a second signal would end a trainer
// at once.
static int wait_for(Batch *b, const sigset_t *taken, Wanted *wanted,
                    void *whose) {
    const struct timespec pause = {.tv_nsec = 1000000000 / POLLS_A_SECOND};
    int interrupted = 0;
    siginfo_t about;
    while (some_run(b)) {
        int number = sigtimedwait(taken, &about, wanted ? &pause : NULL);
        if (number > 0 && number != SIGCHLD) {
            interrupted = number;
            b->count = b->started;
            if (about.si_code != SI_KERNEL)
                all_signal(b, number);
        } else if (number < 0 && errno == EAGAIN && !wanted(whose)) {
            all_signal(b, SIGKILL);
            b->process->status = ENDED;
        }
    }
    return interrupted;
}

static void run(Process *p, int count, int limit, Wanted *wanted, void *whose) {
    Batch b = {.process = p, .count = count, .limit = limit};
    sigset_t taken = interruptions();
    sigaddset(&taken, SIGCHLD);
    sigprocmask(SIG_BLOCK, &taken, &b.mask);
    int interrupted = wait_for(&b, &taken, wanted, whose);
    if (wanted != NULL)
        wanted(whose);
    sigprocmask(SIG_SETMASK, &b.mask, NULL);
    if (interrupted)
        raise(interrupted);
    errno = b.error;
}

void processes_run(Process *p, int count) {
    run(p, count, processors(), NULL, NULL);
}

int program_run_while(const Words *words, const char *folder, const char *out,
                      const char *log, Wanted *wanted, void *whose) {
    Process p = {.words = *words, .folder = folder, .out = out, .log = log};
    run(&p, 1, 1, wanted, whose);
    return p.status;
}

int program_run(const Words *words, const char *folder, const char *out,
                const char *log) {
    return program_run_while(words, folder, out, log, NULL, NULL);
}
