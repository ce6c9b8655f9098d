// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Standard: opens closed standard descriptors.
//
// Otherwise the next opened file would get such a number, and messages would be
// written into it.  The replacement fails as a closed descriptor does.
#ifndef BASE_STANDARD_H
#define BASE_STANDARD_H

#include <fcntl.h>
#include <unistd.h>

static inline void standard_open(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

#endif
