// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processor: its name, from /proc/cpuinfo.

#include "runtime/runtime.h"

#include <string.h>

void rt_processor_name(char *to, size_t room) {
    static const char key[] = "model name";
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(to, room, "processor");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || value == NULL)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(to, room, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (f != NULL)
        fclose(f);
}
