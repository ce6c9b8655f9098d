// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names: lists of paths, and the entries of a folder.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

void rt_names_free(RtNames *n) {
    for (int64_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    *n = (RtNames){0};
}

bool rt_names_add(RtNames *n, char *name, RtError *e) {
    if (name != NULL && n->count == n->room) {
        int64_t room = n->room > 0 ? 2 * n->room : 64;
        char **more = realloc(n->name, (size_t)room * sizeof *more);
        if (more != NULL) {
            n->name = more;
            n->room = room;
        }
    }
    if (name == NULL || n->count == n->room) {
        free(name);
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    n->name[n->count++] = name;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void rt_names_sort(RtNames *n) {
    if (n->count > 0)
        qsort(n->name, (size_t)n->count, sizeof *n->name, by_bytes);
}

const char *rt_names_suffix(const char *name, const char *const *suffix) {
    const char *dot = strrchr(name, '.');
    while (dot != NULL && *suffix != NULL && strcasecmp(dot, *suffix) != 0)
        suffix++;
    return dot != NULL ? *suffix : NULL;
}

// A dangling link may have been meant as a class, so it is an error.
static bool stat_entry(const char *folder, const char *name, bool *is_folder,
                       RtError *e) {
    struct stat s;
    char *path = rt_path("%s/%s", folder, name);
    bool good = path == NULL ? rt_fail(e, EXIT_MEMORY, "out of memory")
                             : stat(path, &s) == 0 || rt_fail_open(e, path);
    *is_folder = good && S_ISDIR(s.st_mode);
    free(path);
    return good;
}

bool rt_names_list(const char *folder, const char *const *suffix,
                   RtIgnored *ignored, RtNames *n, RtError *e) {
    DIR *d = opendir(folder);
    if (d == NULL)
        return rt_fail_open(e, folder);
    bool good = true;
    const struct dirent *entry;
    while (good && (errno = 0, entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        bool listed = suffix != NULL && rt_names_suffix(entry->d_name, suffix);
        if (suffix == NULL)
            good = stat_entry(folder, entry->d_name, &listed, e);
        if (good && listed)
            good = rt_names_add(n, rt_path("%s", entry->d_name), e);
        else if (good && suffix != NULL)
            rt_ignored_add(ignored, entry->d_name);
    }
    good = good && (errno == 0 || rt_fail_read(e, folder));
    closedir(d);
    if (good)
        rt_names_sort(n);
    return good;
}

int64_t rt_names_find(const RtNames *n, const char *name) {
    char **found =
        bsearch(&name, n->name, (size_t)n->count, sizeof *n->name, by_bytes);
    return found == NULL ? -1 : found - n->name;
}

char *rt_names_text(const RtNames *n) {
    size_t bytes = 1, at = 0;
    for (int64_t i = 0; i < n->count; i++)
        bytes += strlen(n->name[i]) + 1;
    char *text = calloc(bytes, 1);
    for (int64_t i = 0; text != NULL && i < n->count; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s\n", n->name[i]);
    return text;
}
