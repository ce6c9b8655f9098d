// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Glob: names with `*` for any characters, dots included, and `?` for one.
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>
#include <stdint.h>

// Whether a glob matches "model.path", or "path" if model is "".  Adds the
// number of compared characters to *work.
bool glob_match(const char *glob, const char *model, const char *path,
                int64_t *work);

#endif
