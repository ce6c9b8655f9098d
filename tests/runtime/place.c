// Place: see place.h.
#define _XOPEN_SOURCE 700

#include "tests/runtime/place.h"

#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char all[256], own[300]; // folders

void place_open(void) {
    const char *tmp = getenv("TMPDIR");
    snprintf(all, sizeof all, "%s/sinter-runtime-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(all) == NULL) {
        perror(all);
        exit(EXIT_FAILURE);
    }
}

void place_enter(void) {
    snprintf(own, sizeof own, "%s/XXXXXX", all);
    ck_assert_ptr_nonnull(mkdtemp(own));
    ck_assert_int_eq(chdir(own), 0);
}

static int remove_one(const char *name, const struct stat *s, int kind,
                      struct FTW *where) {
    (void)s, (void)kind, (void)where;
    return remove(name);
}

static void remove_all(const char *folder) {
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void place_leave(void) {
    ck_assert_int_eq(chdir("/"), 0);
    remove_all(own);
}

void place_close(void) {
    remove_all(all);
}

void place_forget(const char *name) {
    remove_all(name);
}

void place_folder(const char *name) {
    ck_assert_int_eq(mkdir(name, 0777), 0);
}

void place_write(const char *name, const void *bytes, size_t length) {
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
}

uint8_t *place_read(const char *name, size_t *length) {
    FILE *f = fopen(name, "rb");
    ck_assert_msg(f != NULL, "no file %s", name);
    fseek(f, 0, SEEK_END);
    *length = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*length + 1);
    ck_assert_uint_eq(fread(bytes, 1, *length, f), *length);
    bytes[*length] = 0;
    fclose(f);
    return bytes;
}

void place_clear(const char *name) {
    char file[512];
    DIR *folder = opendir(name);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *f; (f = readdir(folder)) != NULL;) {
        if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", name, f->d_name);
        remove(file);
    }
    closedir(folder);
}

int place_count(const char *name, const char *part) {
    int count = 0;
    DIR *folder = opendir(name);
    for (struct dirent *f; folder != NULL && (f = readdir(folder)) != NULL;)
        count += strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0 &&
                 strstr(f->d_name, part) != NULL;
    if (folder != NULL)
        closedir(folder);
    return count;
}
