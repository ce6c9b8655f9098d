// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernel source: reads the text line by line, as codegen/kernel_file.c writes it.

#include "runtime/cuda/kernels/kernels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *s, const char *word) {
    return strncmp(s, word, strlen(word)) == 0;
}

static size_t line_length(const char *s) {
    size_t length = strcspn(s, "\n");
    return length + (s[length] == '\n');
}

// The length of a condition, which continues after a backslash.
static size_t condition_length(const char *s) {
    size_t length = line_length(s);
    while (length >= 2 && s[length - 2] == '\\')
        length += line_length(s + length);
    return length;
}

static bool names(const char *s, size_t length, int kernel) {
    static const char word[] = "IS_NEEDED(";
    const char *end = s + length;
    while ((s = strstr(s, word)) != NULL && s < end) {
        s += sizeof word - 1;
        if (strtol(s, NULL, 10) == kernel)
            return true;
    }
    return false;
}

// The text after the #endif of a condition.
static const char *after(const char *s) {
    for (int depth = 1; depth > 0 && *s != '\0'; s += line_length(s))
        depth += begins(s, "#if") - begins(s, "#endif");
    return s;
}

char *rt_kernel_source(const char *text, int kernel) {
    char *own = malloc(strlen(text) + 1), *end = own;
    while (own != NULL && *text != '\0') {
        bool condition = begins(text, "#if IS_NEEDED(");
        size_t length = condition ? condition_length(text) : line_length(text);
        if (condition && !names(text, length, kernel)) {
            text = after(text + length);
            continue;
        }
        if (*text != '\n' && !begins(text, "//")) {
            memcpy(end, text, length);
            end += length;
        }
        text += length;
    }
    if (own != NULL)
        *end = '\0';
    return own;
}
