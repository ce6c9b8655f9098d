#define _POSIX_C_SOURCE 200809L

#include "tests/runtime/runs.h"
#include "runtime/runtime.h"
#include "tests/runtime/place.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16 };

static void redirect(int fd, const char *name) {
    int to = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(to, fd);
    close(to);
}

// The parent, such as nohup, may have ignored signals.
static void heed_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_DFL);
}

pid_t run_start(const RtTrainer *t, char *const *arguments) {
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    char *argv[MOST] = {(char[]){"tiny"}};
    int argc = 1;
    for (; arguments[argc - 1] != NULL; argc++)
        argv[argc] = arguments[argc - 1];
    redirect(STDOUT_FILENO, "out");
    redirect(STDERR_FILENO, "err");
    heed_signals();
    exit(rt_main(argc, argv, t));
}

int run_finish(pid_t child) {
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_whole(const RtTrainer *t, char *const *arguments) {
    return run_finish(run_start(t, arguments));
}

bool run_says(const char *file, const char *text) {
    size_t length;
    uint8_t *bytes = place_read(file, &length);
    bool found = strstr((char *)bytes, text) != NULL;
    if (!found)
        fprintf(stderr, "%s:\n%s\n", file, (char *)bytes);
    free(bytes);
    return found;
}

int run_times(const char *file, const char *text) {
    size_t length;
    uint8_t *bytes = place_read(file, &length);
    int count = 0;
    for (char *at = (char *)bytes; (at = strstr(at, text)) != NULL; at++)
        count++;
    free(bytes);
    return count;
}

bool files_same(const char *a, const char *b) {
    size_t length, other;
    uint8_t *first = place_read(a, &length), *second = place_read(b, &other);
    bool same = length == other && memcmp(first, second, length) == 0;
    free(first);
    free(second);
    return same;
}

void run_rows(const char *name, char *to, size_t room) {
    size_t length;
    char *bytes = (char *)place_read(name, &length), *at = bytes;
    *to = '\0';
    for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char *rate = strstr(at, ",\"samples_per_second\"");
        ck_assert(rate != NULL && rate < end);
        *rate = '\0';
        strncat(to, at, room - strlen(to) - 1);
        strncat(to, "\n", room - strlen(to) - 1);
    }
    free(bytes);
}

RtPlan plan_with(const RtPlan *plan, RtStep *steps, RtStepKind kind,
                 void (*run)(RtDevice *d)) {
    RtPlan with = *plan;
    for (int i = 0; i < plan->num_steps; i++) {
        steps[i] = plan->step[i];
        if (steps[i].kind == kind)
            steps[i].run = run;
    }
    with.step = steps;
    return with;
}

int32_t run_state(const RtPlan *plan, RtDevice *d, const char *name) {
    int32_t value;
    d->read(d, &value, rt_state_find(plan, name)->offset, sizeof value);
    return value;
}
