// Line tables: counts the instructions of each line in PTX.
//
// In PTX, .file names the files, and .loc the line of all instructions up to
// the next one.  Inlined code also has the line of its call; the model's line
// is the innermost one that is not in a header.
#include "tools/show/linetable.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 256, MAX_NAME = 255 };

typedef struct {
    int file, line, count;
} Row;

typedef struct {
    const char *file[MAX_FILES];
    Row *row; // of the current kernel
    int count;
    Row *now; // of the next instructions
} Table;

static const char *skip_blanks(const char *s) {
    return s + strspn(s, " \t");
}

// Whether a path ends with a name, which may have folders of its own.
static bool is_called(const char *path, const char *name) {
    size_t length = strlen(path), tail = strlen(name);
    return tail <= length && strcmp(path + length - tail, name) == 0 &&
           (tail == length || path[length - tail - 1] == '/');
}

// Selects the longest name with which the path ends.
const char *place_file(const Source *const *source, const char *path) {
    const char *slash = strrchr(path, '/'), *best = slash ? slash + 1 : path;
    for (; *source != NULL; source++)
        if (is_called(path, (*source)->name) &&
            strlen((*source)->name) > strlen(best))
            best = (*source)->name;
    return best;
}

// `.file 2 "/home/me/lenet.net"` follows all kernels.
static void files_read(Arena *a, Table *t, const char *ptx,
                       const Source *const *source) {
    for (const char *s = ptx; (s = strstr(s, "\n\t.file\t")) != NULL; s++) {
        int number = atoi(s + 8);
        const char *quote = strchr(s, '"');
        const char *end = quote ? strchr(quote + 1, '"') : NULL;
        if (!end || number < 1 || number >= MAX_FILES)
            continue;
        const char *path =
            arena_string(a, quote + 1, (size_t)(end - quote - 1));
        t->file[number] = place_file(source, path);
    }
}

static Row *row_at(Arena *a, Table *t, int file, int line) {
    for (int i = 0; i < t->count; i++)
        if (t->row[i].file == file && t->row[i].line == line)
            return &t->row[i];
    ARENA_APPEND(a, t->row, t->count, (Row){file, line, 0});
    return &t->row[t->count - 1];
}

bool file_is_header(const char *path) {
    size_t length = strlen(path);
    return length > 1 && strcmp(path + length - 2, ".h") == 0;
}

// ".loc 3 40 5, function_name $L__info_string2, inlined_at 2 12 9".  A place in
// a header that was inlined into another is in what the .loc before is from.
static void place_read(Arena *a, Table *t, const char *s, size_t length) {
    static const char words[] = "inlined_at ";
    const char *text = arena_string(a, s, length);
    const char *at = text + strlen(".loc");
    int file, line;
    while (at && sscanf(at, "%d %d", &file, &line) == 2 && file > 0 &&
           file < MAX_FILES && t->file[file]) {
        if (!file_is_header(t->file[file])) {
            t->now = row_at(a, t, file, line);
            return;
        }
        at = strstr(at, words);
        at += at ? sizeof words - 1 : 0;
    }
}

static int by_place(const void *a, const void *b) {
    const Row *x = a, *y = b;
    return x->file != y->file ? (x->file > y->file) - (x->file < y->file)
                              : (x->line > y->line) - (x->line < y->line);
}

static void kernel_print(Text *out, Table *t) {
    qsort(t->row, (size_t)t->count, sizeof *t->row, by_place);
    for (int i = 0; i < t->count; i++)
        if (t->row[i].count > 0 && t->row[i].line > 0 &&
            t->file[t->row[i].file])
            text_add(out, "%8d  %s:%d\n", t->row[i].count,
                     t->file[t->row[i].file], t->row[i].line);
    t->count = 0;
    t->now = NULL;
}

static void line_read(Arena *a, Text *out, Table *t, const char *line,
                      size_t length) {
    char name[MAX_NAME + 1];
    const char *s = skip_blanks(line);
    const char *entry = strstr(line, ".entry ");
    if (entry && entry < line + length &&
        sscanf(entry, ".entry %255[A-Za-z0-9_]", name) == 1)
        text_add(out, "%s\n", name);
    else if (strncmp(s, ".loc", 4) == 0)
        place_read(a, t, s, length - (size_t)(s - line));
    else if (*line == '}')
        kernel_print(out, t);
    else if (t->now && (isalpha((unsigned char)*s) || *s == '@'))
        t->now->count++;
}

void linetable_print(Arena *a, Text *out, const char *ptx,
                     const Source *const *source) {
    Table t = {.row = NULL};
    files_read(a, &t, ptx, source);
    for (const char *s = ptx; *s;) {
        size_t length = strcspn(s, "\n");
        line_read(a, out, &t, s, length);
        s += length + (s[length] == '\n');
    }
}
