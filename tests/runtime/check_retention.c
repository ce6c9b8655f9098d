// Retention through full disks, crashes and other runs: at every moment a
// complete checkpoint can be loaded, never a mixture.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ---- a disk that fails, or loses its power ----

typedef enum { FAILS_ONCE, FAILS_ON, LOSES_POWER } Fault;
// The fate of unsynced data in a power failure.
typedef enum { KEPT, DROPPED, TORN, RENAMES_UNDONE, NUM_LOSSES } Loss;

enum { MAX_OPEN = 64, MAX_RENAMES = 8, MAX_PATH = 64 };

static struct {
    Fault fault;
    int at, reason; // the call that fails (0: none), and its errno
    int calls;
    bool dead;
    char path[MAX_OPEN][MAX_PATH]; // by file descriptor
    char dirty[MAX_PATH];          // a file with unsynced writes
    char from[MAX_RENAMES][MAX_PATH], to[MAX_RENAMES][MAX_PATH];
    int renames; // since the folder was synced
} disk;

static void disk_set(Fault fault, int at, int reason) {
    memset(&disk, 0, sizeof disk);
    disk.fault = fault;
    disk.at = at;
    disk.reason = reason;
}

// Whether this call fails; after a power failure all calls do.
static bool trips(void) {
    bool now = ++disk.calls == disk.at;
    if (disk.fault == FAILS_ON && disk.at > 0)
        now = disk.calls >= disk.at;
    if (disk.fault == LOSES_POWER)
        disk.dead = disk.dead || now;
    if (now || disk.dead)
        errno = disk.reason;
    return now || disk.dead;
}

static int disk_open(const char *path, int flags, mode_t mode) {
    if (trips())
        return -1;
    int fd = open(path, flags, mode);
    if (fd >= 0 && fd < MAX_OPEN)
        snprintf(disk.path[fd], MAX_PATH, "%s", path);
    if (flags & O_CREAT)
        snprintf(disk.dirty, MAX_PATH, "%s", path);
    return fd;
}

static ssize_t disk_read(int fd, void *to, size_t bytes) {
    return trips() ? -1 : read(fd, to, bytes);
}

// A failing write may write a part; an interrupted one does not.
static ssize_t disk_write(int fd, const void *from, size_t bytes) {
    bool was_dead = disk.dead;
    if (!trips())
        return write(fd, from, bytes);
    if (!was_dead && disk.reason != EINTR && write(fd, from, bytes / 2) < 0)
        return -1;
    errno = disk.reason;
    return -1;
}

static int disk_sync(int fd) {
    if (trips())
        return -1;
    if (strcmp(disk.path[fd], disk.dirty) == 0)
        disk.dirty[0] = '\0';
    if (strcmp(disk.path[fd], "r") == 0)
        disk.renames = 0;
    return 0;
}

// A descriptor is closed even if close reports a failure.
static int disk_close(int fd) {
    close(fd);
    return trips() ? -1 : 0;
}

static int disk_rename(const char *from, const char *to) {
    if (trips() || rename(from, to) != 0)
        return -1;
    ck_assert_int_lt(disk.renames, MAX_RENAMES);
    snprintf(disk.from[disk.renames], MAX_PATH, "%s", from);
    snprintf(disk.to[disk.renames++], MAX_PATH, "%s", to);
    if (strcmp(from, disk.dirty) == 0)
        snprintf(disk.dirty, MAX_PATH, "%s", to);
    return 0;
}

static int disk_unlink(const char *path) {
    return trips() ? -1 : unlink(path);
}

static const RtFiles faulty = {disk_open,  disk_read,   disk_write, disk_sync,
                               disk_close, disk_rename, disk_unlink, NULL};

static void restart(Loss loss) {
    size_t length;
    if (disk.dirty[0] != '\0' && access(disk.dirty, F_OK) == 0 &&
        (loss == DROPPED || loss == TORN)) {
        free(place_read(disk.dirty, &length));
        if (loss == DROPPED)
            length = 0;
        ck_assert_int_eq(truncate(disk.dirty, (off_t)length / 2), 0);
    }
    if (loss == RENAMES_UNDONE)
        while (disk.renames-- > 0)
            ck_assert_int_eq(
                rename(disk.to[disk.renames], disk.from[disk.renames]), 0);
}

// ---- a run ----

static RtDevice *device;
static RtCheckpoint *good, *bad; // on a good disk, and on the faulty one
static RtError error;

static void begin(void) {
    place_enter();
    place_folder("r");
    device = host_open(tiny.plan, 1);
    device->reserve(device);
    good =
        rt_checkpoint_new(&tiny, tiny.plan, device, &rt_system_files, &error);
    bad = rt_checkpoint_new(&tiny, tiny.plan, device, &faulty, &error);
    ck_assert(good != NULL && bad != NULL);
}

static void end(void) {
    rt_checkpoint_free(good);
    rt_checkpoint_free(bad);
    device->close(device);
    place_leave();
}

static RtRetention shelf_on(const RtFiles *files, int64_t from) {
    return (RtRetention){
        .folder = "r", .files = files, .keep = 2, .from = from, .lock = -1};
}

// Every state has the step's number in all its bytes.
static void fill(int64_t step) {
    char bytes[10000];
    memset(bytes, (int)step, sizeof bytes);
    for (int i = 0; i < tiny.plan->num_states; i++)
        device->write(device, tiny.plan->state[i].offset, bytes,
                      rt_state_bytes(&tiny.plan->state[i]));
}

static bool filled(int64_t step) {
    char bytes[10000];
    for (int i = 0; i < tiny.plan->num_states; i++) {
        size_t count = rt_state_bytes(&tiny.plan->state[i]);
        device->read(device, bytes, tiny.plan->state[i].offset, count);
        for (size_t k = 0; k < count; k++)
            if (bytes[k] != (char)step)
                return false;
    }
    return true;
}

static bool save(RtRetention *s, int64_t step) {
    RtProgress p = {step, 100, 10, 0, 1};
    fill(step);
    memset(&error, 0, sizeof error);
    return rt_retention_save(s, s->files == &faulty ? bad : good, &p, &error);
}

// The step of the checkpoint that loads; -1: none.
static int64_t loaded(void) {
    RtRetention s = shelf_on(&rt_system_files, -1);
    RtProgress p = {0};
    char *path = NULL;
    fill(0);
    bool found = rt_retention_load(&s, good, &p, &path, &error);
    if (found)
        ck_assert_msg(filled(p.step), "%s is a mixture", path);
    free(path);
    return found ? p.step : -1;
}

static void restart_empty(void) {
    place_clear("r");
    RtRetention s = shelf_on(&rt_system_files, -1);
    for (int64_t step = 1; step <= 3; step++)
        ck_assert(save(&s, step));
}

START_TEST(the_newest_two_are_kept) {
    restart_empty();
    ck_assert_int_eq(place_count("r", ""), 2);
    ck_assert_int_eq(place_count("r", "step-00000003.safetensors"), 1);
    ck_assert_int_eq(loaded(), 3);
}
END_TEST

START_TEST(a_broken_one_is_passed_over) {
    size_t length;
    restart_empty();
    uint8_t *bytes = place_read("r/step-00000003.safetensors", &length);
    bytes[length - 1] ^= 1;
    place_write("r/step-00000003.safetensors", bytes, length);
    ck_assert_int_eq(loaded(), 2);
    ck_assert_int_eq(truncate("r/step-00000002.safetensors", 100), 0);
    ck_assert_int_eq(loaded(), -1);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_ptr_nonnull(strstr(error.text, "no whole checkpoint in r"));
    free(bytes);
}
END_TEST

// A disk that cannot be read is retried, whatever older checkpoints it has.
START_TEST(the_newest_checkpoint_decides_the_error) {
    restart_empty();
    ck_assert_int_eq(truncate("r/step-00000002.safetensors", 100), 0);
    RtRetention s = shelf_on(&faulty, -1);
    RtProgress p;
    char *path = NULL;
    disk_set(FAILS_ONCE, 1, EIO);
    ck_assert(!rt_retention_load(&s, bad, &p, &path, &error));
    ck_assert_int_eq(error.status, EXIT_IO);
    ck_assert_str_eq(error.text, "no whole checkpoint in r");
    free(path);
}
END_TEST

// A missing folder is another error than an empty one.
START_TEST(a_folder_that_cannot_be_read) {
    ck_assert_int_eq(rmdir("r"), 0);
    ck_assert_int_eq(loaded(), -1);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_str_eq(error.text, "no checkpoint can be read in r: "
                                 "No such file or directory");
}
END_TEST

START_TEST(other_files_stay) {
    restart_empty();
    place_write("r/step-00000099.safetensors.bak", "x", 1);
    place_write("r/step-.safetensors", "x", 1);
    place_write("r/step--0000005.safetensors", "x", 1);
    place_write("r/notes.txt", "x", 1);
    place_write("r/.step-00000007.partial", "x", 1);
    RtRetention s = shelf_on(&rt_system_files, 3);
    rt_retention_remove_partial(&s);
    ck_assert(save(&s, 4));
    ck_assert_int_eq(place_count("r", ""), 6);
    ck_assert_int_eq(place_count("r", "partial"), 0);
    ck_assert_int_eq(loaded(), 4);
}
END_TEST

START_TEST(a_new_run_sets_the_old_one_aside) {
    restart_empty();
    RtRetention s = shelf_on(&rt_system_files, -1);
    ck_assert_int_eq(loaded(), 3);
    ck_assert(save(&s, 1));
    ck_assert_int_eq(loaded(), 1);
    ck_assert_int_eq(place_count("r", "previous-"), 2);
    ck_assert(save(&s, 2));
    ck_assert(save(&s, 3));
    ck_assert_int_eq(place_count("r", "step-"), 2);
    ck_assert_int_eq(place_count("r", "previous-"), 2);
    s = shelf_on(&rt_system_files, -1);
    ck_assert(save(&s, 9));
    ck_assert_int_eq(loaded(), 9);
    ck_assert_int_eq(place_count("r", "previous-"), 2);
    ck_assert_int_eq(truncate("r/step-00000009.safetensors", 100), 0);
    ck_assert_int_eq(loaded(), 3);
}
END_TEST

START_TEST(another_run_is_seen_before_it_is_set_aside) {
    bool drops;
    restart_empty();
    RtRetention s = shelf_on(&rt_system_files, -1);
    ck_assert_int_eq(rt_retention_superseded(&s, &drops), 3);
    ck_assert(!drops);
    ck_assert(save(&s, 1));
    s = shelf_on(&rt_system_files, -1);
    ck_assert_int_eq(rt_retention_superseded(&s, &drops), 1);
    ck_assert(drops);
    s = shelf_on(&rt_system_files, 1);
    ck_assert_int_eq(rt_retention_superseded(&s, &drops), -1);
}
END_TEST

START_TEST(one_trainer_writes_to_a_folder) {
    restart_empty();
    RtRetention a = shelf_on(&rt_system_files, -1), b = a;
    ck_assert(rt_retention_lock(&a, &error));
    ck_assert(!rt_retention_lock(&b, &error));
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_ptr_nonnull(strstr(error.text, "another trainer writes"));
    rt_retention_unlock(&b);
    rt_retention_unlock(&a);
    ck_assert(rt_retention_lock(&b, &error));
    rt_retention_unlock(&b);
}
END_TEST

// `sinter runs` tests whether a trainer has locked the folder in less time.
START_TEST(a_short_look_is_waited_for) {
    const struct timespec look = {.tv_nsec = 30000000};
    restart_empty();
    RtRetention a = shelf_on(&rt_system_files, -1);
    int fd = open("r", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(fd, LOCK_SH), 0);
    pid_t child = fork();
    if (child == 0) {
        nanosleep(&look, NULL);
        flock(fd, LOCK_UN);
        _exit(0);
    }
    ck_assert(rt_retention_lock(&a, &error));
    rt_retention_unlock(&a);
    waitpid(child, NULL, 0);
    close(fd);
}
END_TEST

// A trainer that starts in a recreated folder does not know the other one.
START_TEST(a_folder_made_anew_is_claimed_anew) {
    restart_empty();
    RtRetention a = shelf_on(&rt_system_files, 3), b = a;
    ck_assert(rt_retention_lock(&a, &error));
    ck_assert_int_eq(rename("r", "moved"), 0);
    ck_assert(!save(&a, 4));
    ck_assert_int_eq(error.status, EXIT_IO);
    ck_assert_str_eq(error.text, "r is gone: No such file or directory");
    ck_assert(!rt_retention_has(&a, 3));
    place_folder("r");
    ck_assert(rt_retention_lock(&b, &error));
    for (int tries = 0; tries < 2; tries++) {
        ck_assert(!save(&a, 4));
        ck_assert_int_eq(error.status, EXIT_IO);
        ck_assert_ptr_nonnull(strstr(error.text, "another trainer writes"));
    }
    ck_assert(save(&b, 2));
    rt_retention_unlock(&b);
    ck_assert(save(&a, 4));
    ck_assert(!rt_retention_lock(&b, &error));
    rt_retention_unlock(&b);
    ck_assert_int_eq(place_count("r", "previous-00000002"), 1);
    ck_assert_int_eq(place_count("r", "step-00000004"), 1);
    ck_assert(rt_retention_has(&a, 4) && !rt_retention_has(&a, 2));
    rt_retention_unlock(&a);
    place_clear("moved");
    ck_assert_int_eq(rmdir("moved"), 0);
}
END_TEST

// As after copying: its step decides which ones are older.
START_TEST(one_that_has_the_name_of_another_is_passed_over) {
    restart_empty();
    ck_assert_int_eq(
        link("r/step-00000002.safetensors", "r/step-00000007.safetensors"), 0);
    ck_assert_int_eq(loaded(), 3);
    ck_assert_int_eq(unlink("r/step-00000003.safetensors"), 0);
    ck_assert_int_eq(unlink("r/step-00000002.safetensors"), 0);
    ck_assert_int_eq(loaded(), -1);
}
END_TEST

START_TEST(a_run_from_an_earlier_step_resumes_there) {
    restart_empty();
    RtRetention s = shelf_on(&rt_system_files, 2);
    ck_assert(save(&s, 2));
    ck_assert_int_eq(place_count("r", "previous-00000003"), 1);
    ck_assert_int_eq(loaded(), 2);
}
END_TEST

// ---- every call fails once ----

static const struct {
    Fault fault;
    int reason;
} faults[] = {
    {FAILS_ONCE, ENOSPC}, {FAILS_ON, ENOSPC},   {FAILS_ONCE, EIO},
    {FAILS_ON, EIO},      {FAILS_ONCE, EDQUOT}, {FAILS_ONCE, EINTR},
};

START_TEST(a_call_that_fails) {
    Fault fault = faults[_i].fault;
    int reason = faults[_i].reason;
    for (int at = 1;; at++) {
        restart_empty();
        RtRetention s = shelf_on(&faulty, 3);
        disk_set(fault, at, reason);
        bool saved = save(&s, 4);
        bool tripped = disk.calls >= at;
        int64_t step = loaded();
        ck_assert_msg(step == 4 || (!saved && step == 3), "%d: %d", at,
                      (int)step);
        if (!saved) {
            ck_assert_int_eq(error.status != EXIT_GOOD, 1);
            if (fault == FAILS_ONCE)
                ck_assert_int_eq(place_count("r", "partial"), 0);
        }
        disk_set(FAILS_ONCE, 0, 0);
        rt_retention_remove_partial(&s);
        ck_assert(save(&s, 5));
        ck_assert_int_eq(loaded(), 5);
        ck_assert_int_eq(place_count("r", ""), 2);
        if (!tripped)
            break;
        ck_assert_int_lt(at, 1000);
    }
}
END_TEST

START_TEST(an_interrupted_write_is_continued) {
    restart_empty();
    RtRetention s = shelf_on(&faulty, 3);
    disk_set(FAILS_ONCE, 4, EINTR);
    ck_assert(save(&s, 4));
    ck_assert_int_eq(loaded(), 4);
}
END_TEST

START_TEST(a_full_disk) {
    if (access("/dev/full", W_OK) != 0)
        return;
    RtProgress p = {1, 100, 10, 0, 1};
    fill(1);
    ck_assert(!rt_checkpoint_write(good, "/dev/full/x", &p, &error));
    ck_assert_int_eq(error.status, EXIT_IO);
    ck_assert_int_eq(symlink("/dev/full", "r/full"), 0);
    ck_assert(!rt_checkpoint_write(good, "r/full", &p, &error));
    ck_assert_ptr_nonnull(strstr(error.text, strerror(ENOSPC)));
}
END_TEST

// ---- the power goes at every call ----

START_TEST(a_crash_during_a_run) {
    for (int at = 1;; at++) {
        restart_empty();
        RtRetention s = shelf_on(&faulty, 3);
        disk_set(LOSES_POWER, at, EIO);
        bool saved = save(&s, 4);
        bool tripped = disk.dead;
        restart((Loss)_i);
        int64_t step = loaded();
        ck_assert_msg(saved ? step == 4 : step == 3 || step == 4,
                      "crash at call %d: step %d", at, (int)step);
        s = shelf_on(&rt_system_files, step);
        rt_retention_remove_partial(&s);
        ck_assert_int_eq(place_count("r", "partial"), 0);
        ck_assert(save(&s, 5));
        ck_assert_int_eq(loaded(), 5);
        if (!tripped)
            break;
    }
}
END_TEST

START_TEST(a_crash_while_a_new_run_takes_over) {
    for (int at = 1;; at++) {
        restart_empty();
        RtRetention s = shelf_on(&faulty, -1);
        disk_set(LOSES_POWER, at, EIO);
        bool saved = save(&s, 1);
        bool tripped = disk.dead;
        restart((Loss)_i);
        int64_t step = loaded();
        ck_assert_msg(saved ? step == 1 : step == 3 || step == 1,
                      "crash at call %d: step %d", at, (int)step);
        if (!tripped)
            break;
    }
}
END_TEST

Suite *retention_suite(void) {
    Suite *s = suite_create("retention");
    TCase *t = tcase_create("shelf");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, the_newest_two_are_kept);
    tcase_add_test(t, a_broken_one_is_passed_over);
    tcase_add_test(t, the_newest_checkpoint_decides_the_error);
    tcase_add_test(t, a_folder_that_cannot_be_read);
    tcase_add_test(t, other_files_stay);
    tcase_add_test(t, a_new_run_sets_the_old_one_aside);
    tcase_add_test(t, another_run_is_seen_before_it_is_set_aside);
    tcase_add_test(t, one_trainer_writes_to_a_folder);
    tcase_add_test(t, a_short_look_is_waited_for);
    tcase_add_test(t, a_folder_made_anew_is_claimed_anew);
    tcase_add_test(t, one_that_has_the_name_of_another_is_passed_over);
    tcase_add_test(t, a_run_from_an_earlier_step_resumes_there);
    tcase_add_loop_test(t, a_call_that_fails, 0,
                        sizeof faults / sizeof faults[0]);
    tcase_add_test(t, an_interrupted_write_is_continued);
    tcase_add_test(t, a_full_disk);
    tcase_add_loop_test(t, a_crash_during_a_run, 0, NUM_LOSSES);
    tcase_add_loop_test(t, a_crash_while_a_new_run_takes_over, 0, NUM_LOSSES);
    suite_add_tcase(s, t);
    return s;
}
