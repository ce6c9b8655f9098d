// sinter build: compiles a model file to its trainer, or with --emit=c to the
// trainer's source.
#define _GNU_SOURCE
#include "base/exits.h"
#include "tools/compiler.h"
#include "tools/device.h"
#include "tools/embed.h"
#include "tools/library/library.h"
#include "tools/scratch.h"
#include "tools/tile.h"
#include "tools/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The files of a trainer.  Empty ones are not written.
enum { TRAINER_FILES = 5 };

typedef struct {
    const char *path;
    const Text *text;
} TrainerFile;

static const TrainerFile *trainer_files(Arena *a, const TrainerText *t,
                                        const char *folder) {
    const TrainerFile files[TRAINER_FILES] = {
        {"c", &t->c_file}, {"cu", &t->cu_file},        {"ir", &t->graphs},
        {"bin", &t->code}, {"tile.cc", &t->tile_file},
    };
    TrainerFile *to = ARENA_ARRAY(a, TRAINER_FILES, TrainerFile);
    for (int i = 0; i < TRAINER_FILES; i++)
        to[i] = (TrainerFile){
            arena_format(a, "%s/%s.%s", folder, t->name, files[i].path),
            files[i].text};
    return to;
}

static int trainer_write(Arena *a, const Arguments *arguments,
                         const TrainerText *t, const char *folder) {
    const TrainerFile *file = trainer_files(a, t, folder);
    int status = EXIT_GOOD;
    for (int i = 0; i < TRAINER_FILES && status == EXIT_GOOD; i++)
        if (file[i].text->length > 0)
            status = text_write(arguments, file[i].path, file[i].text);
    return status;
}

static int trainer_emit(Arena *a, const Arguments *arguments, const Program *p,
                        const TrainerText *t, const char *folder) {
    const TrainerFile *file = trainer_files(a, t, folder);
    for (int i = 0; i < TRAINER_FILES; i++)
        if (output_is_input(arguments, p, file[i].path))
            return EXIT_USAGE;
    int status = folder_make(arguments, folder);
    if (status == EXIT_GOOD)
        status = trainer_write(a, arguments, t, folder);
    if (status == EXIT_GOOD)
        wrote_print(arguments, file->path, "the kernels are in %s.cu beside it",
                    t->name);
    return status;
}

// Whether an error means that a disk or a quota is full.
static bool is_full(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

// Whether a file of so many bytes fits on the disk of path; sets errno if not.
static bool disk_takes(Arena *a, const char *path, int64_t bytes) {
    const char *trial = arena_format(a, "%s.trial", path);
    int to = open(trial, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return !is_full(errno);
    int error = posix_fallocate(to, 0, bytes);
    close(to);
    unlink(trial);
    errno = error;
    return !is_full(error);
}

// Whether a child process may take so many bytes, by the limit that it
// inherits.
static bool memory_takes(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

// A compiler that fails for lack of memory or disk has freed it again.  So this
// tests for the room that it may have needed: memory, assembly and objects of
// the text, and a program no larger than they and the library.
static int compiler_failed(Arena *a, const Arguments *arguments,
                           const TrainerText *t, const Installation *where,
                           const char *folder, const char *part) {
    enum { TIMES_TEXT = 16, MEMORY = 256 << 20 };
    struct stat library;
    int64_t bytes, text = (int64_t)(t->c_file.length + t->cu_file.length);
    if (!memory_takes(MEMORY)) {
        complain(arguments,
                 "the C compiler needs memory, but less than %d MiB are free",
                 MEMORY >> 20);
        return EXIT_MEMORY;
    }
    if (stat(where->library, &library) != 0 ||
        __builtin_mul_overflow(text, TIMES_TEXT, &bytes) ||
        __builtin_add_overflow(bytes, library.st_size, &bytes))
        return EXIT_FAULT;
    if (!disk_takes(a, arena_format(a, "%s/%s", folder, t->name), bytes))
        return io_failed(arguments, folder);
    if (!disk_takes(a, part, bytes))
        return io_failed(arguments, part);
    return EXIT_FAULT;
}

// A compiler may succeed without linking, with -fsyntax-only for example.
static int program_made(const Arguments *arguments, const char *path) {
    struct stat s;
    if (stat(path, &s) != 0)
        return io_failed(arguments, path);
    if (s.st_size > 0)
        return EXIT_GOOD;
    complain(
        arguments,
        "the C compiler exited well but wrote no program: check CC and CFLAGS");
    return EXIT_DEVICE;
}

// Gives a file the permissions of a new one: a linker adds to existing ones.
static void permit_as_new(const char *path) {
    mode_t none = umask(0);
    umask(none);
    chmod(path, 0666 & ~none);
}

// Compiles beside the paths and renames, so that a file is there whole or not
// at all.  Tests first that they can be written.  archive: NULL for a program.
static int trainer_link(Arena *a, const Arguments *arguments,
                        const TrainerText *t, const char *folder,
                        const CompilerOutput *to) {
    Installation where;
    Scratch part, archive;
    CompilerOutput parts = *to;
    if (!installation_find(a, arguments, &where) ||
        !scratch_file(a, arguments, to->file, ".part", &part))
        return EXIT_IO;
    if (to->name && !scratch_file(a, arguments, to->archive, ".part", &archive))
        return scratch_close(&part), EXIT_IO;
    permit_as_new(part.path);
    parts.file = part.path;
    parts.archive = to->name ? archive.path : NULL;
    int status = trainer_write(a, arguments, t, folder);
    const CompilerInput in = {.c_file = arena_format(a, "%s.c", t->name),
                              .bytes = t->cu_file.length,
                              .tile_file =
                                  t->tile_file.length > 0
                                      ? arena_format(a, "%s.tile.cc", t->name)
                                      : NULL};
    if (status == EXIT_GOOD)
        status = compiler_run(a, arguments, &where, folder, &in, &parts);
    if (status == EXIT_FAULT)
        status = compiler_failed(a, arguments, t, &where, folder, part.path);
    if (status == EXIT_GOOD)
        status = program_made(arguments, part.path);
    if (status == EXIT_GOOD && rename(part.path, to->file) != 0)
        status = io_failed(arguments, to->file);
    if (status == EXIT_GOOD && to->name &&
        rename(archive.path, to->archive) != 0)
        status = io_failed(arguments, to->archive);
    scratch_close(&part);
    if (to->name)
        scratch_close(&archive);
    return status;
}

static int output_build(Arena *a, const Arguments *arguments,
                        const TrainerText *t, const CompilerOutput *to) {
    Scratch scratch;
    if (!scratch_open(a, arguments, &scratch))
        return EXIT_IO;
    int status = trainer_link(a, arguments, t, scratch.path, to);
    // The text that failed to compile stays there.
    (status == EXIT_FAULT ? scratch_keep : scratch_close)(&scratch);
    return status;
}

int trainer_build(Arena *a, const Arguments *arguments, const TrainerText *t,
                  const char *out) {
    CompilerOutput to = {.file = path_absolute(a, out)};
    return output_build(a, arguments, t, &to);
}

// Writes PATH.h, then builds PATH.so and PATH.a.
static int library_build(Arena *a, const Arguments *arguments, const Program *p,
                         const TrainerText *t) {
    const char *out =
        arguments->out ? arguments->out : arena_format(a, "lib%s", t->name);
    const char *header = arena_format(a, "%s.h", out);
    const char *shared = arena_format(a, "%s.so", out);
    const char *slash = strrchr(shared, '/');
    CompilerOutput to = {.name = library_name(a, out),
                         .file = path_absolute(a, shared),
                         .archive =
                             path_absolute(a, arena_format(a, "%s.a", out)),
                         .soname = slash ? slash + 1 : shared,
                         .plain = arguments->inference && !arguments->act &&
                                  library_is_small(t->host)};
    int status;
    Text text = library_header(a, p, t->host, to.name);
    if (p->predict == NULL) {
        complain(arguments, "%s has no prediction for a library", p->name);
        return EXIT_DATA;
    }
    if (!output_check(arguments, p, header, &status) ||
        !output_check(arguments, p, shared, &status))
        return status;
    status = output_build(a, arguments, t, &to);
    if (status == EXIT_GOOD)
        status = text_write(arguments, header, &text);
    if (status == EXIT_GOOD)
        wrote_print(arguments, shared, "its functions are in %s", header);
    return status;
}

int build_command(Arena *a, const Arguments *given) {
    int status;
    TrainerText t;
    Arguments copy = *given;
    const Arguments *arguments = &copy;
    if (given->inference && !given->library) {
        complain(given, "--inference needs --library");
        return EXIT_USAGE;
    }
    if (given->library && tiles_on_host(given)) {
        complain(given,
                 "a library runs no tile kernels: --tile needs --target");
        return EXIT_USAGE;
    }
    if (given->emit && given->library) {
        complain(given, "--library and --emit exclude each other");
        return EXIT_USAGE;
    }
    if (!copy.march)
        copy.march = getenv("SINTER_MARCH");
    if (!copy.march || !*copy.march)
        copy.march = MARCH_PORTABLE;
    if (!device_plan(a, &copy, &status))
        return status;
    const Program *p = trainer_load(a, arguments, &t, &status);
    if (!p)
        return status;
    if (arguments->embed && (!embed_wanted(arguments, &status) ||
                             !embed_make(a, arguments, &t, &status)))
        return status;
    if (arguments->emit)
        return trainer_emit(a, arguments, p, &t,
                            arguments->out ? arguments->out : ".");
    if (arguments->library)
        return library_build(a, arguments, p, &t);
    if (tiles_on_host(arguments) &&
        (arguments->device || arguments->device_file))
        fprintf(stderr,
                "sinter: --tile without --target is for the host, which "
                "runs tile kernels slowly: --target=cuda:sm_90 compiles "
                "them for a GPU, and --device only describes one\n");
    const char *out = arguments->out ? arguments->out : t.name;
    if (!output_check(arguments, p, out, &status))
        return status;
    status = trainer_build(a, arguments, &t, out);
    if (status == EXIT_GOOD)
        wrote_print(arguments, out, "train with %s, whose options --help lists",
                    trainer_file_path(a, out));
    return status;
}
