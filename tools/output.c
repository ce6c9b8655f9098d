// Output: files that a command writes.  They must not replace a file that it
// has read, by any name, nor anything that is not a regular file.
#define _POSIX_C_SOURCE 200809L

#include "base/exits.h"
#include "base/terminal.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool same_file(const char *path, const char *other) {
    struct stat there, read;
    return path != NULL && other != NULL && stat(path, &there) == 0 &&
           stat(other, &read) == 0 && there.st_dev == read.st_dev &&
           there.st_ino == read.st_ino;
}

bool output_is_input(const Arguments *arguments, const Program *p,
                     const char *out) {
    bool read = same_file(out, arguments->operand[0]) ||
                same_file(out, arguments->device_file);
    for (int i = 0; p != NULL && i < p->num_imported; i++)
        read |= same_file(out, p->imported[i].path);
    if (read)
        complain(arguments,
                 "%s would be overwritten; choose another file with --out",
                 out);
    return read;
}

bool output_check(const Arguments *arguments, const Program *p, const char *out,
                  int *status) {
    struct stat there;
    *status = EXIT_USAGE;
    if (output_is_input(arguments, p, out))
        return false;
    if (stat(out, &there) != 0 || S_ISREG(there.st_mode))
        return true;
    *status = EXIT_IO;
    if (S_ISDIR(there.st_mode))
        complain(arguments, "%s is a folder; name a file with --out=PATH", out);
    else
        complain(arguments, "%s is not a regular file and is not replaced",
                 out);
    return false;
}

int io_failed(const Arguments *arguments, const char *path) {
    complain(arguments, "%s: %s", path, strerror(errno));
    return EXIT_IO;
}

const char *text_escaped(Arena *a, const char *s) {
    enum { MOST = TERMINAL_ROOM - 1 }; // bytes of one escaped byte
    size_t room = strlen(s) * MOST + 1;
    char *shown = arena_alloc(a, room);
    terminal_text(shown, room, s);
    return shown;
}

void lines_print(const Text *t) {
    const char *s = text_string(t), *end = s + t->length;
    char shown[TERMINAL_ROOM];
    while (s < end) {
        const char *plain = s;
        while (s < end &&
               ((*s >= 0x20 && *s < 0x7f) || *s == '\n' || *s == '\t'))
            s++;
        fwrite(plain, 1, (size_t)(s - plain), stdout);
        if (s < end) {
            s += terminal_character(shown, s, (size_t)(end - s));
            fputs(shown, stdout);
        }
    }
}

bool file_write(const char *path, const void *bytes, size_t length) {
    FILE *f = fopen(path, "wb");
    bool good = f != NULL && fwrite(bytes, 1, length, f) == length;
    return f != NULL && fclose(f) == 0 && good;
}

int text_write(const Arguments *arguments, const char *path, const Text *text) {
    return file_write(path, text_string(text), text->length)
               ? EXIT_GOOD
               : io_failed(arguments, path);
}

void wrote_print(const Arguments *arguments, const char *path,
                 const char *format, ...) {
    Arena *a = arena_new();
    struct stat s;
    va_list list;
    if (!wants_json(arguments) && stat(path, &s) == 0) {
        Scaled size = bytes_scaled(s.st_size);
        Text t = text_new(a);
        va_start(list, format);
        text_addv(&t, format, list);
        va_end(list);
        fprintf(stderr, "sinter: wrote %s, %.1f %s; %s\n",
                text_escaped(a, path), size.count, size.unit,
                text_escaped(a, text_string(&t)));
    }
    arena_free(a);
}

int folder_make(const Arguments *arguments, const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? EXIT_GOOD
               : io_failed(arguments, path);
}
