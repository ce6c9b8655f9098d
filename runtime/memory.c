// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory: bytes that this process can still allocate, from the free memory of
// the machine, the limits of its cgroups and its address space limit.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// The number after `key` at the start of a line of a /proc file; 0: no such
// line.
static size_t number_after(const char *path, const char *key) {
    char line[256];
    unsigned long long value = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0 &&
            sscanf(line + strlen(key), "%llu", &value) == 1)
            break;
    fclose(f);
    return value;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t minus(size_t a, size_t b) {
    return a > b ? a - b : 0;
}

static size_t machine_available(void) {
    size_t kb = number_after("/proc/meminfo", "MemAvailable:");
    return kb > 0 ? kb * 1024 : SIZE_MAX;
}

static size_t address_space_available(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    size_t used = number_after("/proc/self/status", "VmSize:") * 1024;
    return minus(limit.rlim_cur, used);
}

// Free bytes of a cgroup.  The page cache counts as used, but is reclaimed when
// memory is short.
static size_t cgroup_available(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/memory.max", folder);
    size_t most = number_after(path, ""); // 0 for "max"
    if (most == 0)
        return SIZE_MAX;
    snprintf(path, sizeof path, "%s/memory.current", folder);
    size_t used = number_after(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    size_t file = number_after(path, "inactive_file ");
    return minus(most, minus(used, file));
}

static size_t cgroup_v1_available(void) {
    static const char folder[] = "/sys/fs/cgroup/memory";
    char path[128];
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    size_t most = number_after(path, "");
    if (most == 0)
        return SIZE_MAX;
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", folder);
    size_t used = number_after(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    return minus(most, minus(used, number_after(path, "total_inactive_file ")));
}

// The limits of our cgroup and of its parents.
static size_t cgroups_available(void) {
    char line[2048], folder[2100];
    size_t least = cgroup_v1_available();
    FILE *f = fopen("/proc/self/cgroup", "r");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = strncmp(line, "0::", 3) == 0;
    if (f != NULL)
        fclose(f);
    if (!found)
        return least;
    line[strcspn(line, "\n")] = '\0';
    snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
    for (char *end; strlen(folder) >= strlen("/sys/fs/cgroup"); *end = '\0') {
        least = smaller(least, cgroup_available(folder));
        end = strrchr(folder, '/');
    }
    return least;
}

size_t rt_memory_available(void) {
    return smaller(machine_available(),
                   smaller(cgroups_available(), address_space_available()));
}
