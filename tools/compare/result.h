// What compare or bench wrote with --json, read back.
#ifndef TOOLS_RESULT_H
#define TOOLS_RESULT_H

#include "tools/tools.h"

typedef struct {
    const char *text; // a JSON object
    const char *model, *device;
    int64_t batch;
} Result;

// Reads the result of `command`, which has a value under `key`.  Returns an
// exit status; what is wrong has been said.
int result_read(Arena *a, const Arguments *arguments, const char *command,
                const char *key, const char *path, Result *out);

// What follows the first "key": in the text, or NULL.
const char *result_behind(Arena *a, const char *text, const char *key);

#endif
