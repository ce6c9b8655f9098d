// Reads the folder of a run: settings.json, and the rows of metrics.jsonl.
#define _POSIX_C_SOURCE 200809L

#include "tools/runs/runs.h"

#include "base/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20, DEEPEST = 2 };

// ---- settings.json ----

const char *record_value(Arena *a, const char *text, const char *key) {
    const char *word = arena_format(a, "\n  \"%s\": ", key);
    const char *at = strstr(text, word);
    if (at == NULL)
        return NULL;
    at += strlen(word);
    size_t length = strcspn(at, "\n");
    return arena_string(a, at, length - (length > 0 && at[length - 1] == ','));
}

// A string in its JSON form, without quotes.
static const char *text_of(Arena *a, const char *text, const char *key) {
    const char *value = record_value(a, text, key);
    size_t length = value != NULL ? strlen(value) : 0;
    return length < 2 ? "" : arena_string(a, value + 1, length - 2);
}

static double number_of(Arena *a, const char *text, const char *key) {
    const char *value = record_value(a, text, key);
    return value != NULL ? strtod(value, NULL) : (double)NAN;
}

// Adds each string of an object or array after a space; the second of a pair
// after =.
static void strings_add(Text *t, const char *value, bool pairs) {
    int count = 0;
    for (const char *s = value, *end; s != NULL && (s = strchr(s, '"'));
         s = end, count++) {
        end = json_string_end(s);
        if (pairs && count % 2 == 1)
            text_add(t, "=");
        else if (t->length > 0)
            text_add(t, " ");
        if (end != NULL)
            text_bytes(t, s + 1, (size_t)(end - s - 2));
    }
}

// The settings of a run: --set, and the options of the trainer.
static const char *settings_of(Arena *a, const char *text) {
    Text t = text_new(a);
    strings_add(&t, record_value(a, text, "set"), true);
    strings_add(&t, record_value(a, text, "options"), false);
    return text_string(&t);
}

// A running trainer locks its folder; a killed one has left the state
// "running".
static bool is_locked(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool locked =
        fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return locked;
}

static const char *state_of(Arena *a, const RunRecord *r) {
    const char *state = text_of(a, r->text, "state");
    if (strcmp(state, "running") != 0)
        return state;
    return is_locked(r->path) ? "running" : "interrupted";
}

// ---- files ----

// Bytes of the files in a folder, without its folders.
static int64_t bytes_in(Arena *a, const char *folder) {
    struct stat s;
    int64_t bytes = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (lstat(arena_format(a, "%s/%s", folder, e->d_name), &s) == 0 &&
            S_ISREG(s.st_mode))
            bytes += (int64_t)s.st_size;
    if (d != NULL)
        closedir(d);
    return bytes;
}

const Source *run_rows(Arena *a, const RunRecord *r) {
    const char *why;
    return source_read(a, arena_format(a, "%s/metrics.jsonl", r->path),
                       MAX_METRICS, &why);
}

// A run that is running, was killed, or has not evaluated since it resumed has
// its numbers only in its rows.
static void rows_read(Arena *a, RunRecord *r) {
    const Source *s = run_rows(a, r);
    JsonRow row;
    for (int i = 1; s != NULL && i <= s->num_lines; i++) {
        if (row_parse(s, i, &row) != ROW_GOOD)
            continue;
        if (row_is(&row, "train")) {
            r->epochs_done = fmax(r->epochs_done, row_number(&row, "epoch"));
            r->elapsed = fmax(r->elapsed, row_number(&row, "elapsed"));
        } else if (row_is(&row, "test")) {
            r->loss = row_number(&row, "loss");
            r->accuracy = row_number(&row, "accuracy");
        }
    }
}

const char *run_path(Arena *a, const char *name) {
    struct stat s;
    const char *below = arena_format(a, "runs/%s", name);
    return stat(name, &s) != 0 && stat(below, &s) == 0 ? below : name;
}

bool run_read(Arena *a, const char *path, const char *name, RunRecord *r) {
    const char *why;
    const Source *s = source_read(a, arena_format(a, "%s/settings.json", path),
                                  MAX_BYTES, &why);
    if (s == NULL || !json_is_object(s->text))
        return false;
    *r = (RunRecord){.path = path,
                     .name = text_escaped(a, name),
                     .text = s->text,
                     .settings = settings_of(a, s->text),
                     .started = text_of(a, s->text, "started"),
                     .epochs = number_of(a, s->text, "epochs"),
                     .epochs_done = number_of(a, s->text, "epochs_done"),
                     .loss = number_of(a, s->text, "loss"),
                     .accuracy = number_of(a, s->text, "accuracy"),
                     .elapsed = number_of(a, s->text, "elapsed"),
                     .bytes = bytes_in(a, path)};
    r->state = state_of(a, r);
    if (strcmp(text_of(a, s->text, "state"), "running") == 0 || isnan(r->loss))
        rows_read(a, r);
    return true;
}

void runs_find(Arena *a, const char *path, const char *name, int depth,
               RunList *to) {
    RunRecord r;
    if (run_read(a, path, name, &r)) {
        ARENA_APPEND(a, to->run, to->count, r);
        return;
    }
    DIR *d = depth < DEEPEST ? opendir(path) : NULL;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            runs_find(a, arena_format(a, "%s/%s", path, e->d_name),
                      depth == 0 ? arena_format(a, "%s", e->d_name)
                                 : arena_format(a, "%s/%s", name, e->d_name),
                      depth + 1, to);
    if (d != NULL)
        closedir(d);
}
