// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Glob: names with `*` for any characters, dots included, and `?` for one.
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>
#include <stdint.h>

// Whether a glob fits the model's name, a dot and the path, or where the model
// is "" the path alone.  Adds to *work the places of it that were looked at.
bool glob_fits(const char *glob, const char *model, const char *path,
               int64_t *work);

#endif
