// Place: a folder of a test's own, and files in it.
#ifndef TESTS_RUNTIME_PLACE_H
#define TESTS_RUNTIME_PLACE_H

#include <stddef.h>
#include <stdint.h>

// What a program does before its tests and after them: the latter removes what
// tests that were ended have left.
void place_open(void);
void place_close(void);

// Makes an empty folder and goes there; leave removes it with all it holds.
void place_enter(void);
void place_leave(void);

void place_folder(const char *name);
void place_write(const char *name, const void *bytes, size_t length);
// The bytes of a file, which the caller frees.
uint8_t *place_read(const char *name, size_t *length);
// Removes every file of a folder.
void place_clear(const char *name);
// Removes a folder, if it is there, and every file of it.
void place_forget(const char *name);
// The files of a folder whose names contain `part`.
int place_count(const char *name, const char *part);

#endif
