// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Log: printed lines also go to log.txt in the run's folder, without colours
// and progress bar.  Lines wait in memory until the folder is known.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 1 << 16 };

static struct {
    pthread_mutex_t lock;
    int fd;         // -1: not open
    int lost;       // errno of the first write that failed
    size_t pending; // bytes of text[] that wait for the file
    char text[ROOM];
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

// Whether the descriptor is a terminal with escape sequences.
static bool is_terminal(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

static bool is_coloured(FILE *to) {
    const char *no = getenv("NO_COLOR");
    return (no == NULL || *no == '\0') &&
           is_terminal(to == stdout ? STDOUT_FILENO : STDERR_FILENO);
}

const char *rt_colour(FILE *to, const char *code) {
    return is_coloured(to) ? code : "";
}

const char *rt_wiped(void) {
    return is_terminal(STDERR_FILENO) ? "\r\033[K" : "";
}

// ---- the file ----

// Bytes of the escape sequence or carriage return at s; 0: it is text.
static size_t escape_length(const char *s) {
    if (*s == '\r')
        return 1;
    if (s[0] != '\033' || s[1] != '[')
        return 0;
    size_t length = 2 + strspn(s + 2, "0123456789;");
    return s[length] != '\0' ? length + 1 : length;
}

static void put(const char *from, size_t bytes) {
    if (sink.fd >= 0) {
        if (!rt_write(&rt_system_files, sink.fd, from, bytes) && !sink.lost)
            sink.lost = errno;
    } else if (bytes <= ROOM - sink.pending) {
        memcpy(sink.text + sink.pending, from, bytes);
        sink.pending += bytes;
    }
}

static void put_plain(const char *s) {
    while (*s != '\0') {
        size_t plain = strcspn(s, "\r\033");
        put(s, plain);
        s += plain;
        size_t length = *s != '\0' ? escape_length(s) : 0;
        if (*s != '\0' && length == 0)
            put(s, length = 1);
        s += length;
    }
}

void rt_print(FILE *to, const char *text) {
    fputs(text, to);
    fflush(to); // so that stdout and stderr keep their order
    int reason = errno;
    pthread_mutex_lock(&sink.lock);
    put_plain(text);
    pthread_mutex_unlock(&sink.lock);
    errno = reason;
}

bool rt_log_open(const char *path) {
    struct stat s;
    // O_NONBLOCK: a pipe of that name would wait for its reader.
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC,
                  0666);
    if (fd < 0)
        return false;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        close(fd);
        errno = EINVAL;
        return false;
    }
    pthread_mutex_lock(&sink.lock);
    sink.fd = fd;
    put(sink.text, sink.pending);
    sink.pending = 0;
    pthread_mutex_unlock(&sink.lock);
    return true;
}

int rt_log_lost(void) {
    pthread_mutex_lock(&sink.lock);
    int reason = sink.lost;
    pthread_mutex_unlock(&sink.lock);
    return reason;
}
