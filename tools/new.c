// sinter new: makes a folder to start from, with a model file and a README, for
// images, a table or a text.
#define _POSIX_C_SOURCE 200809L // strerror
#include "base/exits.h"
#include "tools/tools.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

extern const unsigned char new_images_net[], new_images_md[], new_table_net[],
    new_table_md[], new_table_py[], new_text_net[], new_text_md[];

enum { MAX_FILES = 3 };

typedef struct {
    const char *trains_on;
    struct {
        const char *name;
        const unsigned char *text; // NULL: no more
    } file[MAX_FILES];
} Start;

static const Start images = {
    "images", {{"model.net", new_images_net}, {"README.md", new_images_md}}};
static const Start table = {"a table",
                            {{"model.net", new_table_net},
                             {"README.md", new_table_md},
                             {"from-csv.py", new_table_py}}};
static const Start text = {
    "a text", {{"model.net", new_text_net}, {"README.md", new_text_md}}};

// The chosen start; NULL, after a message, if there are several.
static const Start *start_of(const Arguments *arguments) {
    if (arguments->images + arguments->table + arguments->text > 1) {
        complain(arguments,
                 "--images, --table and --text exclude each other: give one");
        return NULL;
    }
    return arguments->table ? &table : arguments->text ? &text : &images;
}

// Whether the path is free or an empty folder; a message if not.
static bool folder_free(const Arguments *arguments, const char *path,
                        int *status) {
    DIR *d = opendir(path);
    int error = errno;
    if (d == NULL && error != ENOENT) {
        complain(arguments, "%s: %s; name a new folder", path, strerror(error));
        *status = error == ENOTDIR ? EXIT_USAGE : EXIT_IO;
    }
    if (d == NULL)
        return error == ENOENT;
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d)) != NULL;)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(d);
    if (!empty) {
        complain(arguments, "%s is not empty; name a new folder", path);
        *status = EXIT_USAGE;
    }
    return empty;
}

static int files_write(Arena *a, const Arguments *arguments, const Start *s,
                       const char *folder) {
    int status = folder_make(arguments, folder);
    for (int i = 0; i < MAX_FILES && status == EXIT_GOOD; i++) {
        if (s->file[i].text == NULL)
            break;
        Text t = text_new(a);
        text_add(&t, "%s", (const char *)s->file[i].text);
        status = text_write(
            arguments, arena_format(a, "%s/%s", folder, s->file[i].name), &t);
    }
    return status;
}

// Quotes a word for a shell.
static const char *shell_word(Arena *a, const char *s) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,@%=:-";
    Text t = text_new(a);
    if (s[strspn(s, plain)] == '\0')
        return s;
    text_add(&t, "'");
    for (; *s; s++) {
        if (*s == '\'') // outside of the quotes
            text_add(&t, "'\\'");
        text_bytes(&t, s, 1);
    }
    text_add(&t, "'");
    return text_string(&t);
}

int new_command(Arena *a, const Arguments *arguments) {
    const char *folder = arguments->operand[0];
    const Start *s = start_of(arguments);
    int status = EXIT_USAGE;
    if (s == NULL || !folder_free(arguments, folder, &status))
        return status;
    status = files_write(a, arguments, s, folder);
    if (status != EXIT_GOOD)
        return status;
    const char *shown = text_escaped(a, folder);
    printf("%s/model.net trains on %s; %s/README.md says where your files go. "
           "Start with:\n\n"
           "    cd %s\n"
           "    sinter train model.net --data synthetic:640 --epochs=1\n",
           shown, s->trains_on, shown, text_escaped(a, shell_word(a, folder)));
    return EXIT_GOOD;
}
