// Preloaded: a file that does not answer.  It is the COUNTth that a program opens
// of those whose path has SPLIT (train/), and answers with an error: at once,
// with FAILS; after SECONDS_LATE; or when there is a file "answers".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int opened, standing;

__attribute__((destructor)) static void end(void) {
    static const char said[] = "it ends under a thread\n";
    if (standing > 0)
        (void)write(STDERR_FILENO, said, sizeof said - 1);
}

int open(const char *path, int flags, ...) {
    const char *count = getenv("COUNT"), *split = getenv("SPLIT");
    const char *seconds = getenv("SECONDS_LATE"), *fails = getenv("FAILS");
    if (strstr(path, split ? split : "train/") != NULL && count != NULL &&
        ++opened == atoi(count)) {
        standing++;
        if (seconds != NULL)
            sleep((unsigned)atoi(seconds));
        while (!seconds && !fails && access("answers", F_OK) != 0) {
            close(creat("stands", 0666));
            usleep(10000);
        }
        standing--;
        errno = EIO;
        if (fails)
            return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
}

int open64(const char *path, int flags, ...)
    __attribute__((alias("open")));
