// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Standard: the three descriptors that every program begins with are taken.
//
// Where one was closed, the next file to be opened would get its number, and
// what is meant for a person would be written into that file.  What takes the
// place fails as a closed one does.
#ifndef BASE_STANDARD_H
#define BASE_STANDARD_H

#include <fcntl.h>
#include <unistd.h>

static inline void standard_take(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

#endif
