// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gzip: a compressed file as one in memory, by zlib, opened when a data set
// needs it.
#define _GNU_SOURCE // memfd_create

#include "runtime/data/data.h"
#include "runtime/library.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// clang-format off
#define FUNCTIONS(F) \
    F(void *, open, "gzopen", (const char *, const char *)) \
    F(int, read, "gzread", (void *, void *, unsigned)) \
    F(int, close, "gzclose", (void *))
// clang-format on

typedef struct {
    FUNCTIONS(RT_FUNCTION)
} Zlib;

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(Zlib, member)},
    FUNCTIONS(F)
#undef F
};

// Copies what zlib reads; a file of more than `most` bytes is refused.
static bool copy(const Zlib *z, void *from, int to, const char *path,
                 size_t most, size_t *bytes, RtError *e) {
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    int some = 0;
    bool good = piece != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    for (*bytes = 0; good && (some = z->read(from, piece, PIECE)) > 0;) {
        *bytes += (size_t)some;
        if (*bytes > most)
            good = rt_fail(e, EXIT_DATA,
                           "%s has more than %zu bytes: unpack it with gunzip",
                           path, most);
        else if (!rt_write(&rt_system_files, to, piece, (size_t)some))
            good = rt_fail(e, EXIT_MEMORY, "out of memory for %s", path);
    }
    free(piece);
    return good &&
           (some == 0 ||
            rt_fail(e, EXIT_DATA, "%s is no gzip file, or damaged", path));
}

int rt_gzip_open(const char *path, size_t *bytes, RtError *e) {
    static const char *const files[] = {"libz.so.1", NULL};
    enum { MOST = 1 << 30 };
    const RtLibrary library = {.needed = "compressed files need",
                               .files = files,
                               .remedy = "install zlib1g",
                               .status = EXIT_DATA,
                               .symbol = symbols,
                               .num_symbols = sizeof symbols / sizeof *symbols};
    Zlib z;
    void *own = rt_library_open(&library, &z, e);
    if (own == NULL)
        return -1;
    int to = memfd_create("gzip", MFD_CLOEXEC);
    void *from = to >= 0 ? z.open(path, "rb") : NULL;
    bool good = from != NULL || rt_fail(e, to < 0 ? EXIT_MEMORY : EXIT_IO,
                                        "cannot open %s", path);
    good = good && copy(&z, from, to, path, MOST, bytes, e);
    if (from != NULL)
        z.close(from);
    rt_library_close(own);
    if (good && lseek(to, 0, SEEK_SET) == 0)
        return to;
    if (to >= 0)
        close(to);
    return -1;
}
