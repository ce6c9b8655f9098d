// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reader: bytes at any offset of a file, through a small buffer.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <string.h>
#include <unistd.h>

bool rt_reader_open(RtReader *r, const RtFiles *files, const char *path,
                    RtError *e) {
    size_t bytes;
    *r = (RtReader){.files = files, .path = path};
    r->fd = rt_open_sized(files, path, &bytes, e);
    r->size = r->fd < 0 ? 0 : (int64_t)bytes;
    return r->fd >= 0;
}

void rt_reader_close(RtReader *r) {
    r->files->close(r->fd);
}

static bool refill(RtReader *r, int64_t from, RtError *e) {
    int64_t left = r->size - from;
    size_t most = sizeof r->buffer;
    most = left < (int64_t)most ? (size_t)left : most;
    r->ready = 0;
    if (lseek(r->fd, from, SEEK_SET) < 0 ||
        !rt_read(r->files, r->fd, r->buffer, most))
        return rt_fail_read(e, r->path);
    r->buffered = from;
    r->ready = most;
    return true;
}

bool rt_reader_has(const RtReader *r, int64_t from, int64_t count) {
    return from >= 0 && count >= 0 && from <= r->size &&
           count <= r->size - from;
}

bool rt_reader_copy(RtReader *r, int64_t from, size_t count, void *to,
                    RtError *e) {
    for (uint8_t *p = to; count > 0;) {
        bool here =
            from >= r->buffered && from < r->buffered + (int64_t)r->ready;
        if (!here && !refill(r, from, e))
            return false;
        size_t skipped = (size_t)(from - r->buffered);
        size_t some = r->ready - skipped < count ? r->ready - skipped : count;
        memcpy(p, r->buffer + skipped, some);
        p += some;
        from += (int64_t)some;
        count -= some;
    }
    return true;
}
