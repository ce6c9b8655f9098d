// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: the files of a data set in many files, by folder or by name.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

// The training set, then the names of a test set, the preferred one first.
static const char *const set_name[] = {"train", "test", "val", "validation",
                                       NULL};

// The set that a word of a shard's name, a run of letters, stands for; the
// training set if none does.  *at: the position of that word, or the end.
static int set_of(const char *name, size_t *at) {
    for (*at = 0; name[*at] != '\0';) {
        size_t length = 0;
        while (isalpha((unsigned char)name[*at + length]))
            length++;
        for (int i = 0; set_name[i] != NULL; i++)
            if (strlen(set_name[i]) == length &&
                strncasecmp(name + *at, set_name[i], length) == 0)
                return i;
        *at += length > 0 ? length : 1;
    }
    return 0;
}

size_t rt_shards_word(const char *name) {
    size_t at;
    set_of(name, &at);
    return at;
}

// Adds the shards of a folder: all to one set, or each to that of its name.
static bool add_shards(RtShards *to, const char *folder,
                       const char *const *suffix, RtNames *all, RtError *e) {
    RtNames here = {0};
    bool good = rt_names_list(folder, suffix, &to->ignored, &here, e);
    size_t at;
    int test = 0;
    for (int64_t i = 0; i < here.count; i++) {
        int set = set_of(here.name[i], &at);
        test = test == 0 || (set > 0 && set < test) ? set : test;
    }
    for (int64_t i = 0; good && i < here.count; i++) {
        int set = all != NULL ? 0 : set_of(here.name[i], &at);
        RtNames *names = all != NULL ? all : set == 0 ? &to->train : &to->test;
        if (set == 0 || set == test)
            good =
                rt_names_add(names, rt_path("%s/%s", folder, here.name[i]), e);
    }
    rt_names_free(&here);
    return good;
}

// Whether folder/name is a folder: *path is it then.  False: no memory.
static bool find_folder(const char *folder, const char *name, char **path,
                        RtError *e) {
    struct stat s;
    *path = rt_path("%s/%s", folder, name);
    if (*path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (stat(*path, &s) != 0 || !S_ISDIR(s.st_mode)) {
        free(*path);
        *path = NULL;
    }
    return true;
}

bool rt_shards_find(RtShards *to, const char *folder, const char *const *suffix,
                    RtError *e) {
    char *train, *test = NULL;
    if (!find_folder(folder, set_name[0], &train, e))
        return false;
    if (train == NULL)
        return add_shards(to, folder, suffix, NULL, e);
    bool good = add_shards(to, train, suffix, &to->train, e);
    for (int i = 1; good && test == NULL && set_name[i] != NULL; i++)
        good = find_folder(folder, set_name[i], &test, e);
    good = good && (test == NULL || add_shards(to, test, suffix, &to->test, e));
    free(train);
    free(test);
    return good;
}

void rt_shards_free(RtShards *s) {
    rt_names_free(&s->train);
    rt_names_free(&s->test);
}
