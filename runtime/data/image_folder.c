// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Image folder: train/CLASS/*.jpg, *.png and *.webp, and test/CLASS/... or
// val/CLASS/... The index of a class is its position among the folders of train
// in byte order.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// Adds the images of one class.
static bool add_class(RtSplit *s, const char *folder, const char *class,
                      int32_t label, RtIgnored *ignored, RtError *e) {
    RtNames file = {0};
    char *path = rt_path("%s/%s", folder, class);
    bool good = path != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && rt_names_list(path, rt_image_suffix, ignored, &file, e);
    if (good && file.count == 0)
        good = rt_fail(e, EXIT_DATA,
                       "%s has no .jpg, .jpeg, .png or .webp file", path);
    for (int64_t i = 0; good && i < file.count; i++)
        good = rt_images_add(s, rt_path("%s/%s", path, file.name[i]), NULL,
                             label, e);
    rt_names_free(&file);
    free(path);
    return good;
}

static bool add_classes(RtSplit *s, const char *folder, const RtNames *class,
                        RtIgnored *ignored, RtError *e) {
    RtNames here = {0};
    bool good = rt_names_list(folder, NULL, NULL, &here, e);
    for (int64_t i = 0; good && i < here.count; i++) {
        int64_t number = rt_names_find(class, here.name[i]);
        good = number >= 0 ? add_class(s, folder, here.name[i],
                                       (int32_t)number, ignored, e)
                           : rt_fail(e, EXIT_DATA,
                                     "%s/%s is a class that is not in train",
                                     folder, here.name[i]);
    }
    rt_names_free(&here);
    return good &&
           (s->count > 0 ||
            rt_fail(e, EXIT_DATA, "%s has no class folders", folder));
}

static bool read_split(RtData *d, RtSplit *split, const char *root,
                       const char *folder, const RtNames *class,
                       const RtDataSpec *spec, const RtFiles *files,
                       RtIgnored *ignored, RtError *e) {
    RtImages *s = rt_images_open(d, split, spec, files, e);
    if (s == NULL || !add_classes(split, folder, class, ignored, e))
        return false;
    for (int64_t i = 0; i < s->name.count; i++) {
        const char *within = s->name.name[i] + strlen(root);
        d->hash = XXH3_64bits_withSeed(within, strlen(within), d->hash);
    }
    return rt_images_complete(split, spec, e);
}

static const char *const test_name[] = {"test", "val", NULL};

// The folder of the test set; NULL with *e filled.
static char *find_test(const char *path, RtError *e) {
    for (const char *const *name = test_name; *name != NULL; name++) {
        char *folder = rt_path("%s/%s", path, *name);
        if (folder == NULL || is_folder(folder))
            return folder;
        free(folder);
    }
    rt_fail(e, EXIT_DATA,
            "%s has no folder test or val: make one, or hold images out with "
            "--validation=10%%",
            path);
    return NULL;
}

// The folder of the training set.  A common mistake is to omit it.
static char *find_train(const char *path, RtError *e) {
    char *folder = rt_path("%s/train", path);
    if (folder == NULL || is_folder(folder) || !is_folder(path))
        return folder;
    free(folder);
    rt_fail(e, EXIT_DATA,
            "%s has no folder train: move or link the folders of the classes "
            "into %s/train",
            path, path);
    return NULL;
}

// test: NULL without a test set.
static bool read_both(RtData *d, const char *root, const char *train,
                      const char *test, const RtDataSpec *spec,
                      const RtFiles *files, RtError *e) {
    RtNames class = {0};
    RtIgnored ignored = {.suffixes = 0};
    bool good = rt_names_list(train, NULL, NULL, &class, e);
    if (good && class.count > spec->classes)
        good = rt_fail_classes(
            e, spec, class.count,
            "%s has folders of %lld classes, but the trainer takes %d", train,
            (long long)class.count, spec->classes);
    good = good &&
           read_split(d, &d->train, root, train, &class, spec, files, &ignored,
                      e) &&
           (test == NULL || read_split(d, &d->test, root, test, &class, spec,
                                       files, &ignored, e));
    d->classes = rt_names_text(&class);
    rt_ignored_text(d->ignored, &ignored, root, ".jpg, .jpeg, .png or .webp");
    rt_names_free(&class);
    return good;
}

bool rt_image_folder_read(RtData *d, const char *path, const RtDataSpec *spec,
                          const RtFiles *files, RtError *e) {
    rt_fail(e, EXIT_MEMORY, "out of memory");
    char *train = find_train(path, e);
    char *test = NULL;
    bool good = train != NULL &&
                (rt_lacks_test(spec, path, test_name) ||
                 (test = find_test(path, e)) != NULL) &&
                read_both(d, path, train, test, spec, files, e);
    free(train);
    free(test);
    return good;
}
