// Image folder: train/CLASS/*.jpg and *.png, and test/CLASS/... or
// val/CLASS/... A class's number is its place among the names of train's
// folders, in the order of their bytes.  Images stay in their files: the
// loader's threads decode them and fit them to a square each time a sample is
// wanted.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct {
    char **name;
    int64_t count, room;
} Names;

typedef struct {
    const RtFiles *files;
    int size;
    Names image; // paths
    RtJpeg *jpeg;
    RtPng *png;
} Source;

// ---- names ----

static void names_free(Names *n) {
    for (int64_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    *n = (Names){0};
}

// Takes the name over.
static bool names_add(Names *n, char *name, RtError *e) {
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

static bool is_image(const char *name) {
    static const char *const ending[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < 3; i++)
        if (strcasecmp(dot, ending[i]) == 0)
            return true;
    return false;
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// Whether an entry of a folder counts: a folder in it, or an image.
static bool counts(const char *folder, const char *name, bool folders) {
    if (name[0] == '.')
        return false;
    if (!folders)
        return is_image(name);
    char *path = rt_path("%s/%s", folder, name);
    bool good = path != NULL && is_folder(path);
    free(path);
    return good;
}

// What a folder holds, in order: names of folders, or of images.
static bool list(const char *folder, bool folders, Names *n, RtError *e) {
    DIR *d = opendir(folder);
    if (d == NULL)
        return rt_fail(e, EXIT_DATA, "cannot open %s: %s", folder,
                       strerror(errno));
    bool good = true;
    const struct dirent *entry;
    while (good && (entry = readdir(d)) != NULL)
        if (counts(folder, entry->d_name, folders))
            good = names_add(n, rt_path("%s", entry->d_name), e);
    closedir(d);
    if (good && n->count > 0)
        qsort(n->name, (size_t)n->count, sizeof *n->name, by_bytes);
    return good;
}

// ---- samples ----

static bool read_whole(const RtFiles *files, const char *path, uint8_t **bytes,
                       size_t *length, RtError *e) {
    int fd = rt_open_sized(files, path, length, e);
    if (fd < 0)
        return false;
    *bytes = malloc(*length + 1);
    bool good = *bytes != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !rt_read(files, fd, *bytes, *length)) {
        good = rt_fail(e, EXIT_DATA, "cannot read %s: %s", path,
                       errno ? strerror(errno) : "the file ends early");
        free(*bytes);
    }
    files->close(fd);
    return good;
}

static bool is_png(const uint8_t *bytes, size_t length) {
    return length >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

// What a file is, its first bytes say, not its name.
static bool decode(const Source *s, const uint8_t *bytes, size_t length,
                   RtImage *to, RtError *e) {
    bool png = is_png(bytes, length);
    if (!png && (length < 2 || bytes[0] != 0xff || bytes[1] != 0xd8))
        return rt_fail(e, EXIT_DATA, "it is neither a JPEG nor a PNG file");
    if (png ? s->png == NULL : s->jpeg == NULL)
        return rt_fail(e, EXIT_DATA,
                       "it is a %s file under another name, and "
                       "the library for those is not installed",
                       png ? "PNG" : "JPEG");
    return png ? rt_png_decode(s->png, bytes, length, to, e)
               : rt_jpeg_decode(s->jpeg, bytes, length, s->size, to, e);
}

static bool fetch(const RtSplit *split, int64_t sample, uint8_t *to,
                  RtError *e) {
    const Source *s = split->source;
    const char *path = s->image.name[sample];
    uint8_t *bytes;
    size_t length;
    RtImage image = {0};
    RtError why = {0};
    if (!read_whole(s->files, path, &bytes, &length, e))
        return false;
    bool good = decode(s, bytes, length, &image, &why) &&
                rt_image_fit(&image, s->size, to, &why);
    free(bytes);
    free(image.pixel);
    return good ||
           rt_fail(e, why.status, "cannot decode %s: %s", path, why.text);
}

// ---- splits ----

static void release(void *source) {
    Source *s = source;
    names_free(&s->image);
    rt_jpeg_close(s->jpeg);
    rt_png_close(s->png);
    free(s);
}

// Adds the images of one class; their number is in *found.
static bool add_class(Source *s, const char *folder, const char *class,
                      int64_t *found, RtError *e) {
    Names file = {0};
    char *path = rt_path("%s/%s", folder, class);
    bool good = path != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && list(path, false, &file, e);
    if (good && file.count == 0)
        good =
            rt_fail(e, EXIT_DATA, "%s holds no .jpg, .jpeg or .png file", path);
    for (int64_t i = 0; good && i < file.count; i++)
        good = names_add(&s->image, rt_path("%s/%s", path, file.name[i]), e);
    *found = file.count;
    names_free(&file);
    free(path);
    return good;
}

static int64_t class_number(const Names *class, const char *name) {
    char **found = bsearch(&name, class->name, (size_t) class->count,
                           sizeof *class->name, by_bytes);
    return found == NULL ? -1 : found - class->name;
}

static bool set_labels(RtSplit *s, int64_t count, int32_t label, RtError *e) {
    size_t bytes = (size_t)(s->count + count) * sizeof label;
    uint8_t *more = realloc(s->label.bytes, bytes);
    if (more == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    s->label.bytes = more;
    for (int64_t i = 0; i < count; i++, s->count++)
        memcpy(more + (size_t)s->count * sizeof label, &label, sizeof label);
    return true;
}

static bool add_classes(RtSplit *split, Source *s, const char *folder,
                        const Names *class, RtError *e) {
    Names here = {0};
    bool good = list(folder, true, &here, e);
    for (int64_t i = 0; good && i < here.count; i++) {
        int64_t number = class_number(class, here.name[i]), found;
        good = number >= 0 ? add_class(s, folder, here.name[i], &found, e) &&
                                 set_labels(split, found, (int32_t)number, e)
                           : rt_fail(e, EXIT_DATA,
                                     "%s/%s is a class that train does not "
                                     "have",
                                     folder, here.name[i]);
    }
    names_free(&here);
    return good &&
           (split->count > 0 ||
            rt_fail(e, EXIT_DATA, "%s holds no folders of classes", folder));
}

// A library must be there if a name asks for it; the other one is welcome.
static bool open_libraries(Source *s, RtError *e) {
    bool jpeg = false, png = false;
    RtError ignored;
    for (int64_t i = 0; i < s->image.count; i++) {
        const char *dot = strrchr(s->image.name[i], '.');
        png = png || strcasecmp(dot, ".png") == 0;
        jpeg = jpeg || strcasecmp(dot, ".png") != 0;
    }
    s->jpeg = rt_jpeg_open(jpeg ? e : &ignored);
    s->png = rt_png_open(png ? e : &ignored);
    return (s->jpeg != NULL || !jpeg) && (s->png != NULL || !png);
}

static bool read_split(RtSplit *split, const char *folder, const Names *class,
                       int size, const RtFiles *files, uint64_t *hash,
                       RtError *e) {
    Source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    *s = (Source){.files = files, .size = size};
    *split = (RtSplit){.fetch = fetch,
                       .source = s,
                       .release = release,
                       .image = {.values = (size_t)size * (size_t)size * 3},
                       .label = {RT_KEPT_I32, 1, 1, NULL, false}};
    if (!add_classes(split, s, folder, class, e))
        return false;
    for (int64_t i = 0; i < s->image.count; i++)
        *hash = XXH3_64bits_withSeed(s->image.name[i], strlen(s->image.name[i]),
                                     *hash);
    return open_libraries(s, e);
}

// The folder of evaluation; NULL with *e filled.
static char *find_test(const char *path, RtError *e) {
    static const char *const name[] = {"test", "val"};
    for (int i = 0; i < 2; i++) {
        char *folder = rt_path("%s/%s", path, name[i]);
        if (folder == NULL || is_folder(folder))
            return folder;
        free(folder);
    }
    rt_fail(e, EXIT_DATA, "there is no folder test or val in %s", path);
    return NULL;
}

static bool read_both(RtData *d, const char *train, const char *test,
                      const RtSample *sample, const RtFiles *files,
                      RtError *e) {
    int size = (int)rt_setting(sample, "size", 1);
    Names class = {0};
    bool good = list(train, true, &class, e);
    if (good && class.count > sample->classes)
        good = rt_fail(e, EXIT_DATA,
                       "%s holds folders of %lld classes, the trainer takes "
                       "%d",
                       train, (long long)class.count, sample->classes);
    good = good &&
           read_split(&d->train, train, &class, size, files, &d->hash, e) &&
           read_split(&d->test, test, &class, size, files, &d->hash, e);
    names_free(&class);
    return good;
}

bool rt_image_folder_read(RtData *d, const char *path, const RtSample *sample,
                          const RtFiles *files, RtError *e) {
    rt_fail(e, EXIT_MEMORY, "out of memory");
    char *train = rt_path("%s/train", path);
    char *test = train == NULL ? NULL : find_test(path, e);
    bool good = test != NULL && read_both(d, train, test, sample, files, e);
    free(train);
    free(test);
    return good;
}
