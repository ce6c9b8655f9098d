// A small file as a string, for programs that are linked to a trainer's tables.
#ifndef TESTS_CUDNN_FILE_H
#define TESTS_CUDNN_FILE_H

#include <stdio.h>
#include <stdlib.h>

// Ends the program where it cannot be read.
static inline char *file_read(const char *path) {
    enum { MAX_BYTES = 1 << 16 };
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, MAX_BYTES);
    if (f == NULL || text == NULL || fread(text, 1, MAX_BYTES - 1, f) == 0) {
        perror(path);
        exit(2);
    }
    fclose(f);
    return text;
}

#endif
