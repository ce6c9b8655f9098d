// Compiler: compiles an emitted C file to a program, without a shell.
#define _GNU_SOURCE
#include "tools/compiler.h"
#include "base/exits.h"
#include "base/source.h"
#include "tools/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// MAX_UNITS is the number of translation units in codegen/entry_points.c.
enum { MAX_UNITS = 8, PATH_BYTES = 4096 };

// Sums keep their written order, and products are not contracted with them, so
// that every compiler gives the same bits.  Nothing reads errno or the flags of
// floating point.
// clang-format off
static const char *const compile_flags[] = {
    "-std=c11", "-O3", "-fopenmp-simd", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math",
#ifdef __x86_64__
    "-mprefer-vector-width=512",
#endif
    NULL,
};
static const char *const tile_flags[] = {
    "-std=c++20", "-O2", "-ffp-contract=off", "-fno-math-errno", NULL,
};
static const char *const link_flags[] = {
    "-fopenmp", "-Wl,--as-needed", "-ldnnl", "-lm", "-lpthread", "-ldl", NULL,
};
// clang-format on

static bool is_there(const Arguments *arguments, const char *path) {
    if (access(path, R_OK) == 0)
        return true;
    complain(arguments, "%s: %s", path, strerror(errno));
    return false;
}

bool installation_find(Arena *a, const Arguments *arguments,
                       Installation *out) {
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) {
        complain(arguments, "/proc/self/exe: %s", strerror(errno));
        return false;
    }
    // Twice the name after the last slash: the program, then its folder.
    path[length] = 0;
    for (int i = 0; i < 2; i++)
        if (strrchr(path, '/'))
            *strrchr(path, '/') = 0;
    out->library = arena_format(a, "%s/lib/sinter/libsinter_rt.a", path);
    out->plain = arena_format(a, "%s/lib/sinter/libsinter_plain.a", path);
    out->include = arena_format(a, "%s/include/sinter", path);
    out->prelude = arena_format(a, "%s/runtime/prelude", out->include);
    out->tile = arena_format(a, "%s/tile", out->prelude);
    return is_there(arguments, out->library) &&
           is_there(arguments, out->include);
}

// ---- running the compiler ----

// A trainer's compilation.
typedef struct {
    Arena *a;
    const char *compiler;
    const Installation *where;
    const char *folder;
    const CompilerInput *in;
    const char *cxx; // compiles tile kernels; NULL: there are none
    int units;       // translation units of C
    const CompilerOutput *out;
    const char *march; // NULL: native
} Job;

static const char *object_name(const Job *j, int unit) {
    return arena_format(j->a, "unit%d.o", unit);
}

const char *path_absolute(Arena *a, const char *path) {
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (!here)
        return path;
    const char *absolute = arena_format(a, "%s/%s", here, path);
    free(here);
    return absolute;
}

// The words of CC. A relative path is relative to sinter's folder, not to that
// in which the compiler runs.
static Words compiler_words(Arena *a, const char *compiler) {
    Words w = {.a = a};
    words_split(&w, compiler);
    if (w.count > 0 && strchr(w.word[0], '/'))
        w.word[0] = path_absolute(a, w.word[0]);
    return w;
}

// Kernels of a portable program have a version for each kind of vectors, unless
// the flags in a variable name a processor.
static void march_add(const Job *j, Words *w, const char *variable) {
    const char *march = j->march ? j->march : "native";
    const char *flags = getenv(variable);
    if (strcmp(march, MARCH_PORTABLE) != 0)
        words_add(w, arena_format(j->a, "-march=%s", march));
    else if (!flags || !strstr(flags, "-march="))
        words_add(w, "-DSINTER_PORTABLE");
}

// Whether the compiler compiles an empty file, with -march or without.
static bool empty_compiles(const Job *j, const char *march) {
    const char *log = arena_format(j->a, "%s/march", j->folder);
    Words w = compiler_words(j->a, j->compiler);
    if (march)
        words_add(&w, arena_format(j->a, "-march=%s", march));
    words_split(&w, "-fsyntax-only -x c /dev/null");
    return program_run(&w, ".", log, log) == 0;
}

static bool march_unknown(const Job *j) {
    return j->march && strcmp(j->march, MARCH_PORTABLE) != 0 &&
           strcmp(j->march, "native") != 0 && !empty_compiles(j, j->march) &&
           empty_compiles(j, NULL);
}

static Words words_begin(const Job *j) {
    Words w = compiler_words(j->a, j->compiler);
    words_add_all(&w, compile_flags);
    march_add(j, &w, "CFLAGS");
    words_split(&w, getenv("CFLAGS"));
    words_add(&w, arena_format(j->a, "-I%s", j->where->include));
    return w;
}

static const char *log_path(const Job *j, int unit) {
    return arena_format(j->a, "%s/unit%d.log", j->folder, unit);
}

// Prints a compiler's messages after it has ended, below sinter's own.
static void log_show(const Job *j, int unit) {
    enum { MAX_BYTES = 1 << 20 };
    const char *why;
    const Source *s = source_read(j->a, log_path(j, unit), MAX_BYTES, &why);
    if (s && s->length > 0) {
        line_end();
        fwrite(s->text, 1, s->length, stderr);
    }
    unlink(log_path(j, unit));
}

static Words unit_words(const Job *j, int unit) {
    Words w = words_begin(j);
    if (j->out->name) {
        words_add(&w, "-fPIC");
        words_add(&w, "-fvisibility=hidden");
        words_add(&w, arena_format(j->a, "-DSINTER_LIBRARY=%s", j->out->name));
    }
    if (j->units > 1) {
        words_add(&w, arena_format(j->a, "-DSINTER_UNITS=%d", j->units));
        words_add(&w, arena_format(j->a, "-DSINTER_UNIT=%d", unit));
    }
    words_add(&w, "-c");
    words_add(&w, "-o");
    words_add(&w, object_name(j, unit));
    words_add(&w, j->in->c_file);
    return w;
}

// Tile kernels are one more unit.
static int all_units(const Job *j) {
    return j->units + (j->cxx != NULL);
}

static Words tile_words(const Job *j) {
    Words w = compiler_words(j->a, j->cxx);
    words_add_all(&w, tile_flags);
    march_add(j, &w, "CXXFLAGS");
    words_split(&w, getenv("CXXFLAGS"));
    words_add(&w, arena_format(j->a, "-I%s", j->where->include));
    words_add(&w, arena_format(j->a, "-I%s", j->where->tile));
    words_add(&w, "-c");
    words_add(&w, "-o");
    words_add(&w, object_name(j, j->units));
    words_add(&w, j->in->tile_file);
    return w;
}

static int units_compile(const Job *j) {
    Process unit[MAX_UNITS + 1];
    int status = 0;
    for (int i = 0; i < all_units(j); i++)
        unit[i] =
            (Process){.words = i < j->units ? unit_words(j, i) : tile_words(j),
                      .folder = j->folder,
                      .log = log_path(j, i)};
    processes_run(unit, all_units(j));
    for (int i = 0; i < all_units(j); i++) {
        log_show(j, i);
        status = status != 0 ? status : unit[i].status;
    }
    return status;
}

static int logged_run(const Job *j, const Words *w) {
    int status = program_run(w, j->folder, NULL, log_path(j, 0));
    log_show(j, 0);
    return status;
}

static void objects_add(const Job *j, Words *w) {
    for (int i = 0; i < all_units(j); i++)
        words_add(w, object_name(j, i));
    if (j->out->plain) { // instead of the runtime's
        words_add(w, "-Wl,--whole-archive");
        words_add(w, j->where->plain);
        words_add(w, "-Wl,--no-whole-archive");
    }
    words_add(w, j->where->library);
}

static int units_link(const Job *j) {
    Words w = words_begin(j);
    if (j->out->name) {
        words_add(&w, "-shared");
        words_add(&w, "-Wl,--exclude-libs,ALL");
        words_add(&w, "-Wl,--strip-debug");
        words_add(&w, arena_format(j->a, "-Wl,-soname,%s", j->out->soname));
    }
    words_add(&w, "-o");
    words_add(&w, j->out->file);
    objects_add(j, &w);
    words_add_all(&w, link_flags);
    return logged_run(j, &w);
}

// One object of the units and what they need of the runtime, with the library's
// functions as its only names, so that a program can have several.
static int units_archive(const Job *j) {
    static const char *const whole = "whole.o";
    Words link = compiler_words(j->a, j->compiler), hide = {.a = j->a},
          archive = {.a = j->a};
    words_add_all(&link,
                  (const char *const[]){"-r", "-nostdlib", "-o", whole, NULL});
    objects_add(j, &link);
    words_add_all(&hide, (const char *const[]){"objcopy", "--strip-debug",
                                               "--wildcard", NULL});
    words_add(&hide,
              arena_format(j->a, "--keep-global-symbol=%s_*", j->out->name));
    words_add(&hide, whole);
    words_add_all(&archive, (const char *const[]){"ar", "rcsD", j->out->archive,
                                                  whole, NULL});
    unlink(j->out->archive); // ar would add to it
    int status = logged_run(j, &link);
    if (status == 0)
        status = logged_run(j, &hide);
    if (status == 0)
        status = logged_run(j, &archive);
    unlink(arena_format(j->a, "%s/%s", j->folder, whole));
    return status;
}

static int job_run(const Job *j) {
    int status = units_compile(j);
    if (status == 0)
        status = units_link(j);
    if (status == 0 && j->out->name)
        status = units_archive(j);
    for (int i = 0; i < all_units(j); i++)
        unlink(arena_format(j->a, "%s/%s", j->folder, object_name(j, i)));
    return status;
}

// The number of translation units depends on the text alone: the linker lays
// kernels out by unit, and the same model must become the same program on any
// number of processors.  A power of two, so that units have equally many of the
// text's pieces.
static int units_for(size_t bytes) {
    enum { UNIT_BYTES = 64 << 10 };
    int units = 1;
    while (units < MAX_UNITS && bytes > (size_t)units * UNIT_BYTES)
        units *= 2;
    return units;
}

// The value of CC or CXX; NULL if it is not set, or empty.
static const char *named_in(const char *variable) {
    const char *named = getenv(variable);
    return named && *named ? named : NULL;
}

static const char *compiler_named(void) {
    return named_in("CC");
}

const char *compiler_candidate(size_t i) {
    static const char *const usual[COMPILER_CANDIDATES] = {"cc", "gcc",
                                                           "clang"};
    if (compiler_named())
        return i == 0 ? compiler_named() : NULL;
    return usual[i];
}

const char *compiler_version(Arena *a, const char *folder,
                             const char *program) {
    enum { MAX_BYTES = 1 << 16 };
    const char *log = arena_format(a, "%s/version", folder), *why;
    Words w = compiler_words(a, program);
    words_add(&w, "--version");
    if (program_run(&w, ".", log, log) != 0)
        return NULL;
    const Source *said = source_read(a, log, MAX_BYTES, &why);
    size_t length = said ? strcspn(said->text, "\n") : 0;
    return length > 0 ? arena_string(a, said->text, length) : NULL;
}

// The executable of this name in PATH; NULL if there is none.
static const char *program_path(Arena *a, const char *name) {
    const char *path = getenv("PATH");
    if (strchr(name, '/'))
        return name;
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        const char *file = arena_format(a, "%.*s/%s", length, path, name);
        if (access(file, X_OK) == 0)
            return file;
        path += length + (path[length] == ':');
    }
    return NULL;
}

// A replaced compiler is another file or has another time.
static void file_describe(Arena *a, const char *program, Text *t) {
    struct stat s;
    Words w = compiler_words(a, program);
    const char *path = w.count > 0 ? program_path(a, w.word[0]) : NULL;
    if (path && stat(path, &s) == 0)
        text_add(t, "%ju %ju %jd %jd.%09ld\n", (uintmax_t)s.st_dev,
                 (uintmax_t)s.st_ino, (intmax_t)s.st_size,
                 (intmax_t)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

// The C++ compiler: the one in CXX, else the first usual one that is there, or
// NULL.
static const char *cxx_find(Arena *a) {
    static const char *const usual[] = {"c++", "g++", "clang++"};
    const char *named = named_in("CXX");
    Words w = compiler_words(a, named ? named : "");
    if (named)
        return w.count > 0 && program_path(a, w.word[0]) ? named : NULL;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (program_path(a, usual[i]))
            return usual[i];
    return NULL;
}

static void cxx_describe(Arena *a, const char *folder, Text *t) {
    const char *program = cxx_find(a);
    const char *version = program ? compiler_version(a, folder, program) : NULL;
    if (!version)
        return;
    text_add(t, "%s\n%s\n", program, version);
    file_describe(a, program, t);
    for (const char *const *flag = tile_flags; *flag; flag++)
        text_add(t, "%s ", *flag);
}

static void variables_describe(Text *t) {
    static const char *const names[] = {
        "CFLAGS",         "CXXFLAGS",           "CPATH",
        "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
        "LD_RUN_PATH",    "COMPILER_PATH",      "GCC_EXEC_PREFIX"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        text_add(t, "%s=%s\n", names[i], value ? value : "");
    }
}

void compiler_describe(Arena *a, const char *folder, bool tiles, Text *t) {
    const char *version = NULL;
    for (size_t i = 0; i < COMPILER_CANDIDATES && !version; i++) {
        const char *program = compiler_candidate(i);
        version = program ? compiler_version(a, folder, program) : NULL;
        if (version) {
            text_add(t, "%s\n%s\n", program, version);
            file_describe(a, program, t);
        }
    }
    for (const char *const *flag = compile_flags; *flag; flag++)
        text_add(t, "%s ", *flag);
    for (const char *const *flag = link_flags; *flag; flag++)
        text_add(t, "%s ", *flag);
    if (tiles)
        cxx_describe(a, folder, t);
    variables_describe(t);
}

int compiler_run(Arena *a, const Arguments *arguments,
                 const Installation *where, const char *folder,
                 const CompilerInput *in, const CompilerOutput *out) {
    const char *cxx = in->tile_file ? cxx_find(a) : NULL;
    if (in->tile_file && !cxx) {
        complain(arguments, "tile kernels on the host need a C++ compiler: "
                            "install g++ or clang++, or name one in CXX");
        return EXIT_DEVICE;
    }
    for (size_t i = 0; i < COMPILER_CANDIDATES; i++) {
        const char *candidate = compiler_candidate(i);
        if (!candidate)
            continue;
        Job j = {.a = a,
                 .compiler = candidate,
                 .where = where,
                 .folder = folder,
                 .in = in,
                 .cxx = cxx,
                 .units = units_for(in->bytes),
                 .out = out,
                 .march = arguments->march};
        if (march_unknown(&j)) {
            complain(arguments,
                     "--march=%s: no processor that %s knows; give portable, "
                     "native or a name that its -march takes",
                     arguments->march, candidate);
            return EXIT_USAGE;
        }
        int status = job_run(&j);
        if (status == 0)
            return EXIT_GOOD;
        if (status > BY_SIGNAL) {
            complain(arguments, "%s %s while compiling", candidate,
                     ended_how(a, status));
            return status;
        }
        if (status > 0) {
            complain(arguments, "%s cannot compile %s/%s", candidate, folder,
                     in->c_file);
            return EXIT_FAULT;
        }
    }
    if (compiler_named())
        complain(
            arguments,
            "building a trainer needs a C compiler, and CC=%s cannot be run",
            compiler_named());
    else
        complain(arguments, "building a trainer needs a C compiler: install "
                            "gcc or clang, or name one in CC");
    return EXIT_DEVICE;
}
