// Out: what a command writes must not take the place of what it has read, by
// whatever name, nor of what is no file.
#define _POSIX_C_SOURCE 200809L

#include "base/exits.h"
#include "tools/tools.h"

#include <sys/stat.h>

bool out_is_read(const Arguments *arguments, const char *out) {
    struct stat there, read;
    if (stat(out, &there) != 0 || stat(arguments->operand[0], &read) != 0 ||
        there.st_dev != read.st_dev || there.st_ino != read.st_ino)
        return false;
    complain(arguments, "%s would be overwritten; see --out", out);
    return true;
}

bool out_takes(const Arguments *arguments, const char *out, int *status) {
    struct stat there;
    *status = EXIT_USAGE;
    if (out_is_read(arguments, out))
        return false;
    if (stat(out, &there) != 0 || S_ISREG(there.st_mode))
        return true;
    *status = EXIT_IO;
    complain(arguments, "%s: it is no file, so none takes its place", out);
    return false;
}
