// Place: a temporary folder for a test, and its files.
#ifndef TESTS_RUNTIME_PLACE_H
#define TESTS_RUNTIME_PLACE_H

#include <stddef.h>
#include <stdint.h>

// Set up and tear down a program's tests; the latter removes the files of tests
// that were killed.
void place_open(void);
void place_close(void);

// Creates an empty folder and changes to it; leave removes it with its files.
void place_enter(void);
void place_leave(void);

void place_folder(const char *name);
void place_write(const char *name, const void *bytes, size_t length);
// The bytes of a file; the caller frees them.
uint8_t *place_read(const char *name, size_t *length);
// Removes every file of a folder.
void place_clear(const char *name);
// Removes a folder, if it exists, and its files.
void place_forget(const char *name);
// The files of a folder whose names contain `part`.
int place_count(const char *name, const char *part);

#endif
