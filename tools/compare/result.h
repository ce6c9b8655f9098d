// Result: reads an output of compare --json or bench --json.
#ifndef TOOLS_RESULT_H
#define TOOLS_RESULT_H

#include "tools/tools.h"

typedef struct {
    const char *text; // a JSON object
    const char *model, *device;
    int64_t batch;
} Result;

// Reads the result of `command`, which must have `key`. Returns an exit status,
// after a message if it failed.
int result_read(Arena *a, const Arguments *arguments, const char *command,
                const char *key, const char *path, Result *out);

#endif
