// What kernels use of <string.h>.
#ifndef TESTS_RANDOM_TCC_STRING_H
#define TESTS_RANDOM_TCC_STRING_H

#include <stddef.h>

void *memcpy(void *, const void *, size_t), *memset(void *, int, size_t);

#endif
