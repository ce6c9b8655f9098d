// Touches: how often instrumented code read and wrote each byte of an arena.
#ifndef TESTS_TRAFFIC_TOUCH_H
#define TESTS_TRAFFIC_TOUCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t reads, writes;
} Touch;

enum { TOUCH_PAGE = 4096 };

// From now on counts what is touched of these bytes.  touch[i] belongs to
// start[i]; page[i / TOUCH_PAGE] is set where anything is touched.
void touch_watch(const char *start, size_t bytes, Touch *touch, char *page);

#endif
