// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/glob.h"

#include <string.h>

bool glob_match(const char *glob, const char *model, const char *path,
                int64_t *work) {
    size_t length = strlen(model), before = length ? length + 1 : 0;
    size_t end = before + strlen(path), at = 0, from = 0;
    const char *star = NULL; // the last `*`; it matches up to `from`
    for (; at < end; ++*work) {
        char c = at < length   ? model[at]
                 : at < before ? '.'
                               : path[at - before];
        if (*glob == '*') {
            star = glob++;
            from = at;
        } else if (*glob == '?' || *glob == c) {
            glob++;
            at++;
        } else if (star != NULL) {
            glob = star + 1;
            at = ++from;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}
