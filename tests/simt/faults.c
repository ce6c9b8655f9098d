// Faults that the faithful mode has found in a kernel.  Each cause is recorded
// once, with the first threads that met it: a race in a loop is one mistake,
// not a thousand.
#include "tests/simt/simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAULTS = 64, FAULT_BYTES = 640 };

static char fault[MAX_FAULTS][FAULT_BYTES];
static int num_faults;
static bool keeping;

void simt_faults_keep(bool keep) {
    keeping = keep;
}

int simt_faults(void) {
    return num_faults;
}

const char *simt_fault(int i) {
    return fault[i];
}

void simt_faults_clear(void) {
    num_faults = 0;
}

void simt_fault_add(const char *what, const char *format, ...) {
    char who[FAULT_BYTES / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(who, sizeof who, format, list);
    va_end(list);
    if (!keeping) {
        fprintf(stderr, "simt: %s: %s\n", what, who);
        abort();
    }
    size_t length = strlen(what);
    for (int i = 0; i < num_faults; i++)
        if (strncmp(fault[i], what, length) == 0)
            return;
    if (num_faults < MAX_FAULTS)
        snprintf(fault[num_faults++], FAULT_BYTES, "%s: %s", what, who);
}
