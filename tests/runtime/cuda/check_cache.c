// The cache of compiled kernels: a read returns the written code or nothing.
#define _XOPEN_SOURCE 700

#include "runtime/cuda/kernels/kernels.h"
#include "tests/runtime/cuda/suites.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char code_bytes[] = "not what a GPU would run, but bytes all the same";
static const RtCode code = {code_bytes, sizeof code_bytes};
static const RtCacheKey key = {123, 456};

// The only file of a cache.
static char *entry_of(const RtCache *c) {
    char *path = NULL;
    DIR *d = opendir(c->folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *f; (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.') {
            ck_assert_ptr_null(path);
            path = rt_path("%s/%s", c->folder, f->d_name);
        }
    closedir(d);
    return path;
}

static bool holds(const RtCache *c, RtCacheKey k) {
    RtCode out;
    if (!rt_cache_read(c, k, &out))
        return false;
    bool same = out.length == code.length &&
                memcmp(out.bytes, code.bytes, code.length) == 0;
    free(out.bytes);
    ck_assert(same);
    return true;
}

START_TEST(an_entry_is_read_as_written) {
    RtCache c;
    rt_cache_open(&c, &rt_private_files);
    ck_assert_ptr_nonnull(c.folder);
    ck_assert(!holds(&c, key));
    rt_cache_write(&c, key, &code);
    ck_assert(holds(&c, key));
    ck_assert(!holds(&c, (RtCacheKey){123, 457}));
    rt_cache_close(&c);
}
END_TEST

// Changes the byte at `at`, or cuts the file off there.
static void damage(const char *path, long at, bool cut) {
    if (cut) {
        ck_assert_int_eq(truncate(path, at), 0);
        return;
    }
    FILE *f = fopen(path, "r+b");
    ck_assert(f != NULL && fseek(f, at, SEEK_SET) == 0);
    int byte = fgetc(f);
    ck_assert(fseek(f, at, SEEK_SET) == 0 && fputc(byte ^ 1, f) != EOF);
    fclose(f);
}

START_TEST(a_broken_entry_is_none) {
    RtCache c;
    rt_cache_open(&c, &rt_private_files);
    rt_cache_write(&c, key, &code);
    char *path = entry_of(&c);
    long length = 40 + (long)sizeof code_bytes;
    for (long at = 0; at < length; at++) {
        damage(path, at, _i == 1);
        ck_assert_msg(!holds(&c, key), "byte %ld", at);
        rt_cache_write(&c, key, &code);
        ck_assert(holds(&c, key));
    }
    free(path);
    rt_cache_close(&c);
}
END_TEST

START_TEST(without_a_folder_nothing_is_kept) {
    RtCache c;
    setenv("XDG_CACHE_HOME", _i == 0 ? "/dev/null" : "relative", 1);
    setenv("HOME", "/dev/null", 1);
    rt_cache_open(&c, &rt_private_files);
    ck_assert_ptr_null(c.folder);
    rt_cache_write(&c, key, &code);
    ck_assert(!holds(&c, key));
    rt_cache_close(&c);
}
END_TEST

// ---- files of other users ----

typedef enum { GROUP_WRITES, OTHERS_WRITE, LINK, FOREIGN } Hazard;

// Makes a file or folder unsafe; false if this user cannot.
static bool expose(const char *path, Hazard hazard) {
    char *moved = rt_path("%s.moved", path);
    mode_t mode = hazard == GROUP_WRITES ? 0720 : 0702;
    int failed = hazard == LINK ? rename(path, moved) || symlink(moved, path)
                 : hazard == FOREIGN ? chown(path, 12345, (gid_t)-1)
                                     : chmod(path, mode);
    free(moved);
    ck_assert(failed == 0 || hazard == FOREIGN);
    return failed == 0;
}

START_TEST(a_cache_is_for_one_user) {
    RtCache c;
    struct stat folder, file;
    umask(0);
    rt_cache_open(&c, &rt_private_files);
    rt_cache_write(&c, key, &code);
    char *path = entry_of(&c);
    ck_assert(stat(c.folder, &folder) == 0 && stat(path, &file) == 0);
    ck_assert_int_eq(folder.st_mode & 0777, 0700);
    ck_assert_int_eq(file.st_mode & 0777, 0600);
    free(path);
    rt_cache_close(&c);
}
END_TEST

START_TEST(an_entry_that_others_may_have_written_is_none) {
    RtCache c;
    rt_cache_open(&c, &rt_private_files);
    rt_cache_write(&c, key, &code);
    char *path = entry_of(&c);
    if (expose(path, (Hazard)_i)) {
        ck_assert(!holds(&c, key));
        rt_cache_write(&c, key, &code);
        ck_assert(holds(&c, key));
    }
    free(path);
    rt_cache_close(&c);
}
END_TEST

START_TEST(a_folder_that_others_may_write_to_is_no_cache) {
    RtCache c, again;
    rt_cache_open(&c, &rt_private_files);
    rt_cache_write(&c, key, &code);
    if (expose(c.folder, (Hazard)_i)) {
        rt_cache_open(&again, &rt_private_files);
        ck_assert_ptr_null(again.folder);
        ck_assert(!holds(&again, key));
    }
    rt_cache_close(&c);
}
END_TEST

// As the file of a user who has become root.
START_TEST(the_home_of_another_user_is_left_alone) {
    RtCache c;
    char *place = strdup(getenv("XDG_CACHE_HOME")), home[300];
    struct stat s;
    snprintf(home, sizeof home, "%s/home", place);
    ck_assert_int_eq(mkdir(home, 0700), 0);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    bool foreign = expose(home, FOREIGN);
    rt_cache_open(&c, &rt_private_files);
    ck_assert(foreign == (c.folder == NULL));
    strcat(home, "/.cache");
    ck_assert(foreign == (stat(home, &s) != 0));
    rt_cache_close(&c);
    setenv("XDG_CACHE_HOME", place, 1);
    free(place);
}
END_TEST

// ---- a disk that fails ----

static int calls, fails_at;

static bool fails(void) {
    errno = EIO;
    return ++calls == fails_at;
}

static int failing_open(const char *path, int flags, mode_t mode) {
    return fails() ? -1 : rt_private_files.open(path, flags, mode);
}

static ssize_t failing_read(int fd, void *to, size_t bytes) {
    return fails() ? -1 : rt_private_files.read(fd, to, bytes);
}

static ssize_t failing_write(int fd, const void *from, size_t bytes) {
    return fails() ? -1 : rt_private_files.write(fd, from, bytes);
}

static int failing_close(int fd) {
    int result = rt_private_files.close(fd);
    return fails() ? -1 : result;
}

static int failing_rename(const char *from, const char *to) {
    return fails() ? -1 : rt_private_files.rename(from, to);
}

START_TEST(a_disk_that_fails_costs_no_more_than_time) {
    RtFiles failing = rt_private_files;
    RtCache c;
    failing.open = failing_open;
    failing.read = failing_read;
    failing.write = failing_write;
    failing.close = failing_close;
    failing.rename = failing_rename;
    rt_cache_open(&c, &failing);
    for (fails_at = 1; fails_at <= 12; fails_at++) {
        calls = 0;
        rt_cache_write(&c, key, &code);
        (void)holds(&c, key);
    }
    calls = 0, fails_at = 0;
    rt_cache_write(&c, key, &code);
    ck_assert(holds(&c, key));
    free(entry_of(&c)); // nothing is left half written
    rt_cache_close(&c);
}
END_TEST

START_TEST(every_input_changes_the_key) {
    static const char *const texts[] = {"a", "b"};
    RtNvrtc nvrtc = {.major = 13, .minor = 0};
    RtSource s = {.text = "kernel",
                  .num_headers = 1,
                  .header = texts,
                  .include = texts,
                  .num_options = 1,
                  .option = texts};
    RtCacheKey first = rt_cache_key(&nvrtc, &s), again = first;
    ck_assert(rt_cache_key(&nvrtc, &s).low == first.low);
    if (_i == 0)
        nvrtc.minor = 1;
    else if (_i == 1)
        s.text = "kernels";
    else if (_i == 2)
        s.header = texts + 1;
    else if (_i == 3)
        s.option = texts + 1;
    else if (_i == 4)
        nvrtc.file_bytes = 1;
    else if (_i == 5)
        nvrtc.file_seconds = 1;
    else
        s.num_headers = 0, s.num_options = 2;
    again = rt_cache_key(&nvrtc, &s);
    ck_assert(again.low != first.low && again.high != first.high);
}
END_TEST

Suite *cache_suite(void) {
    Suite *s = suite_create("cache");
    TCase *c = tcase_create("cache");
    tcase_add_checked_fixture(c, cache_begin, cache_end);
    tcase_add_test(c, an_entry_is_read_as_written);
    tcase_add_loop_test(c, a_broken_entry_is_none, 0, 2);
    tcase_add_test(c, a_cache_is_for_one_user);
    tcase_add_loop_test(c, an_entry_that_others_may_have_written_is_none,
                        GROUP_WRITES, FOREIGN + 1);
    tcase_add_loop_test(c, a_folder_that_others_may_write_to_is_no_cache,
                        GROUP_WRITES, FOREIGN + 1);
    tcase_add_test(c, the_home_of_another_user_is_left_alone);
    tcase_add_test(c, a_disk_that_fails_costs_no_more_than_time);
    tcase_add_loop_test(c, every_input_changes_the_key, 0, 7);
    suite_add_tcase(s, c);
    c = tcase_create("none");
    tcase_add_loop_test(c, without_a_folder_nothing_is_kept, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
