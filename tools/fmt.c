// sinter fmt: formats model files.  A file that cannot be parsed stays as it
// is.  A changed file is written beside itself and renamed, so that it is
// always complete.
#define _XOPEN_SOURCE 700 // mkstemp, realpath

#include "base/exits.h"
#include "base/source.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20 };

static bool is_input(const char *path) {
    return strcmp(path, "-") == 0;
}

static const Source *file_read(Arena *a, const Arguments *arguments,
                               const char *path) {
    const char *why = NULL;
    const Source *s =
        source_read(a, is_input(path) ? "/dev/stdin" : path, MAX_FILE, &why);
    if (!s)
        file_report(a, arguments, path, why);
    return s;
}

static bool write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t done = write(fd, text, length);
        if (done < 0 && errno != EINTR)
            return false;
        text += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

// Writes beside `path`, with its permissions, and renames.
static bool file_replace(Arena *a, const char *path, const Text *t) {
    struct stat old;
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    char *beside = arena_format(a, "%s.XXXXXX", real);
    int fd = mkstemp(beside);
    bool good = fd >= 0 && stat(real, &old) == 0 &&
                fchmod(fd, old.st_mode & 07777) == 0 &&
                write_all(fd, text_string(t), t->length);
    if (fd >= 0)
        good = close(fd) == 0 && good;
    good = good && rename(beside, real) == 0;
    if (fd >= 0 && !good)
        unlink(beside);
    free(real);
    return good;
}

// Writes, prints or lists a file with the formatted text t.
static int file_settle(Arena *a, const Arguments *arguments, const Source *s,
                       const char *path, const Text *t) {
    bool same = t->length == s->length &&
                memcmp(text_string(t), s->text, s->length) == 0;
    if (arguments->check) {
        if (!same)
            puts(text_escaped(a, path));
        return same ? EXIT_GOOD : EXIT_MODEL;
    }
    if (is_input(path)) {
        fwrite(text_string(t), 1, t->length, stdout);
        return EXIT_GOOD;
    }
    if (same || file_replace(a, path, t))
        return EXIT_GOOD;
    complain(arguments, "%s: cannot be written (%s)", path, strerror(errno));
    return EXIT_IO;
}

static int file_format(const Arguments *arguments, const char *path) {
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Text t = text_new(a);
    int status = EXIT_IO;
    const Source *s = file_read(a, arguments, path);
    if (s) {
        bool good = frontend_format(a, path, s->text, s->length, &t, &diags);
        diagnostics_print(a, arguments, &diags);
        status = good ? file_settle(a, arguments, s, path, &t) : EXIT_MODEL;
    }
    arena_free(a);
    return status;
}

// Each file has an arena of its own, as there may be many.
int fmt_command(Arena *a, const Arguments *arguments) {
    (void)a;
    int status = EXIT_GOOD;
    for (int i = 0; i < arguments->num_operands; i++) {
        int one = file_format(arguments, arguments->operand[i]);
        if (status == EXIT_GOOD)
            status = one;
    }
    return status;
}
