// Compiles the text of kernels with the C compiler into a shared object, which
// is the machine code of the described device.
#define _GNU_SOURCE
#include "tests/runtime/cuda/double/double.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A kernel's parameters may take 32764 bytes from 7.0 on.
enum { MAX_PARAMETERS = 4095, LONGEST_PATH = 4096, LONGEST_FOLDER = 2048 };
// Another number where rows of kernels are others: caches keep images.
static const char magic[8] = "DOUBLE3";

bool ptx_is_asked_for(void) {
    return setting_number("SINTER_DOUBLE_PTX", 0) != 0;
}

static uint64_t sum_of(const void *code, size_t bytes) {
    const unsigned char *at = code;
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

// ---- assembly: the bytes of an image, as digits ----

static const char assembly[] = "// assembly\n";

void image_disassemble(const void *image, size_t bytes, char *text) {
    const unsigned char *at = image;
    strcpy(text, assembly);
    text += strlen(assembly);
    for (size_t i = 0; i < bytes; i++, text += 2)
        sprintf(text, "%02x", at[i]);
}

static void *assemble(const char *text) {
    size_t bytes = strlen(text) / 2;
    unsigned char *image =
        take(bytes > sizeof(ImageHead) ? bytes : sizeof(ImageHead));
    for (size_t i = 0; i < bytes; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        image[i] = (unsigned char)byte;
    }
    if (bytes != sizeof(ImageHead) + ((ImageHead *)(void *)image)->bytes)
        image[0] = 0; // it was cut short
    return image;
}

const ImageHead *image_head(const void *image, void **assembled) {
    enum { BEFORE = 224 }; // bytes of an ELF file: see tile/tileiras
    *assembled = NULL;
    if (memcmp(image, ELFMAG, SELFMAG) == 0)
        image = (const char *)image + BEFORE;
    if (memcmp(image, assembly, sizeof magic) == 0)
        image = *assembled = assemble((const char *)image + strlen(assembly));
    const ImageHead *h = image;
    bool whole = memcmp(h->magic, magic, sizeof magic) == 0 &&
                 h->sum == sum_of(h + 1, h->bytes);
    return whole ? h : NULL;
}

// ---- the entries of kernels ----

// A kernel's head in the text: KERNEL(256) name(type p0, type p1)
typedef struct {
    const char *name, *list, *end; // and where its parameters are
    int name_length, threads;
    bool cooperative;
} Head;

// The next kernel, or false.
static bool head_next(const char *text, Head *h) {
    static const char *const word[] = {"\nKERNEL(", "\nPHASED(", "\nMERGED("};
    const char *at = NULL;
    for (int i = 0; i < 3; i++) {
        const char *found = strstr(text, word[i]);
        if (found != NULL && (at == NULL || found < at)) {
            at = found;
            h->cooperative = i > 0;
        }
    }
    if (at == NULL)
        return false;
    h->threads = atoi(at + strlen(word[0]));
    h->name = strchr(at + strlen(word[0]), ')') + 1;
    h->name += strspn(h->name, " \n");
    h->name_length = (int)strcspn(h->name, "( \n");
    h->list = strchr(h->name, '(') + 1;
    h->end = strchr(h->list, ')');
    return true;
}

// Writes the function that passes on a kernel's arguments, and its row of the
// table.  A parameter is its type and then a name.
static void entry_write(FILE *f, const Head *h) {
    const char *type[MAX_PARAMETERS], *at = h->list;
    int length[MAX_PARAMETERS], count = 0;
    while (at < h->end) {
        if (count == MAX_PARAMETERS)
            complain("%.*s has too many parameters", h->name_length, h->name);
        const char *stop = at + strcspn(at, ",)"), *last = stop;
        while (
            strchr("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                   "UVWXYZ",
                   last[-1]) != NULL)
            last--;
        type[count] = at + strspn(at, " \n");
        length[count] = (int)(last - type[count]);
        count++;
        at = stop + 1;
    }
    fprintf(f,
            "\nstatic void %.*s_call(char *a, const size_t *unused) {\n"
            "    (void)unused;\n    %.*s(",
            h->name_length, h->name, h->name_length, h->name);
    for (int i = 0; i < count; i++)
        fprintf(f, "%s*(%.*s *)((void **)a)[%d]", i ? ", " : "", length[i],
                type[i], i);
    fprintf(f, ");\n}\nIMAGE_KERNEL(%.*s, %d, %d", h->name_length, h->name,
            h->threads, h->cooperative);
    for (int i = 0; i < count; i++)
        fprintf(f, ", (int)sizeof(%.*s)", length[i], type[i]);
    fputs(")\n", f);
}

// The text, with image.h behind the prelude and an entry behind each kernel, so
// that a part of the text that is left out leaves out its entries.
static void text_write(FILE *f, const char *text) {
    static const char prelude[] = "#include \"runtime/prelude/prelude.h\"\n";
    Head h;
    const char *start = strstr(text, prelude);
    if (start != NULL) {
        start += strlen(prelude);
        fwrite(text, 1, (size_t)(start - text), f);
        fputs("#include \"" DOUBLE_SOURCE
              "/tests/runtime/cuda/double/image.h\"\n",
              f);
        text = start - 1;
    }
    while (head_next(text, &h)) {
        const char *end = strstr(h.end, "\n}\n");
        if (end == NULL)
            break;
        end += strlen("\n}\n");
        fwrite(text, 1, (size_t)(end - text), f);
        entry_write(f, &h);
        text = end - 1; // the line's end begins the next head
    }
    fputs(text, f);
}

// ---- tile kernels ----

// The text, and behind it an entry for each kernel: TILE_KERNEL(8)
// name(type *p0, int p1), which are addresses and numbers.
static void tile_write(FILE *f, const char *text) {
    static const char word[] = "\nTILE_KERNEL(";
    fputs(text, f);
    fputs("#include \"" DOUBLE_SOURCE
          "/tests/runtime/cuda/double/tile_image.h\"\n",
          f);
    for (const char *at = text; (at = strstr(at, word)) != NULL;) {
        const char *name = strchr(at + 1, '\n') + 1;
        const char *list = strchr(name, '('), *end = strchr(list, ')');
        fprintf(f, "TILE_ENTRY(%.*s", (int)(list - name), name);
        for (at = list; at < end; at += 1 + strcspn(at + 1, ",)"))
            fputs(at[1 + strcspn(at + 1, "*,)")] == '*' ? ", sizeof(void *)"
                                                        : ", sizeof(int)",
                  f);
        fputs(")\n", f);
    }
    fputs("TILE_TABLE\n", f);
}

// ---- files ----

static void folders_make(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
}

static bool unit_write(const Unit *u, const char *folder) {
    char path[LONGEST_PATH];
    for (int i = 0; i < u->num_headers; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, u->name[i]);
        folders_make(path);
        FILE *f = fopen(path, "w");
        if (f == NULL || fputs(u->header[i], f) < 0 || fclose(f) != 0)
            return false;
    }
    snprintf(path, sizeof path, "%s/unit.c", folder);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return false;
    (u->is_tile ? tile_write : text_write)(f, u->text);
    return fclose(f) == 0;
}

// A file's bytes, and a zero byte; NULL: there is none.
static char *file_read(const char *folder, const char *name, size_t *bytes) {
    char path[LONGEST_PATH];
    struct stat is;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (f == NULL || fstat(fileno(f), &is) != 0)
        return NULL;
    *bytes = (size_t)is.st_size;
    char *to = take(*bytes + 1);
    if (fread(to, 1, *bytes, f) != *bytes)
        complain("cannot read %s", path);
    fclose(f);
    return to;
}

// The folder of the stand-in's libraries, which images are linked with.
static void own_folder(char *to, size_t room) {
    Dl_info info;
    dladdr(magic, &info);
    snprintf(to, room, "%s", info.dli_fname);
    *strrchr(to, '/') = '\0';
}

// $TCC, where it is set, takes a hundredth of the time.
static void compiler_command(char *to, size_t room) {
    static const char own[] = DOUBLE_SOURCE "/tests/random/tcc";
    const char *tcc = getenv("TCC"), *cc = getenv("CC");
    if (tcc != NULL)
        snprintf(to, room, "%s -w -include %s/prepare.h -I%s", tcc, own, own);
    else
        snprintf(to, room,
                 "%s -std=gnu11 -w -fPIC -O1 -march=native -fopenmp-simd "
                 "-ffp-contract=off",
                 cc ? cc : "cc");
}

static void tile_command(char *to, size_t room) {
    const char *cxx = getenv("CXX");
    snprintf(to, room,
             "%s -std=c++20 -x c++ -w -fPIC -O1 -march=native -I. "
             "-I'" DOUBLE_SOURCE
             "/runtime/prelude/tile' -shared unit.c -o unit.so",
             cxx ? cxx : "c++");
}

static void command_of(const Unit *u, char *to, size_t room) {
    char own[LONGEST_FOLDER], compiler[LONGEST_PATH];
    const char *faithful = setting_number("SINTER_DOUBLE_THREADS", 256) == 1
                               ? ""
                               : "-DSINTER_SIMT";
    if (u->is_tile) {
        tile_command(to, room);
        return;
    }
    own_folder(own, sizeof own);
    compiler_command(compiler, sizeof compiler);
    snprintf(
        to, room,
        "%s %s '-DDECLARE_FLAGS(name,count)=unsigned char name[count];' %s -I. "
        "-I'%s' -c unit.c -o unit.o && "
        "cc -shared -Wl,-z,noexecstack unit.o %s -o unit.so "
        "'%s/libsinter_double.so' -lm",
        compiler, faithful, u->defines, DOUBLE_SOURCE,
        DOUBLE_SOURCE "/tests/random/tcc/shared.s", own);
}

void *image_of(const Unit *u, const void *code, size_t count, size_t *bytes) {
    ImageHead head = {.bytes = count,
                      .sum = sum_of(code, count),
                      .architecture = u->architecture,
                      .cuda = u->cuda};
    memcpy(head.magic, magic, sizeof magic);
    *bytes = sizeof head + count;
    char *image = take(*bytes);
    memcpy(image, &head, sizeof head);
    memcpy(image + sizeof head, code, count);
    return image;
}

// The code of a unit, or NULL; `command` compiles unit.c to unit.so.
static char *unit_compile(const Unit *u, const char *command, size_t *count,
                          char **log) {
    char folder[LONGEST_FOLDER], whole[4 * LONGEST_PATH];
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    size_t length;
    snprintf(folder, sizeof folder, "%s/sinter-double-XXXXXX", tmp);
    if (mkdtemp(folder) == NULL || !unit_write(u, folder))
        complain("cannot write into %s", tmp);
    snprintf(whole, sizeof whole, "cd '%s' && { %s; } >log 2>&1", folder,
             command);
    bool good = system(whole) == 0;
    char *code = good ? file_read(folder, "unit.so", count) : NULL;
    *log = file_read(folder, "log", &length);
    snprintf(whole, sizeof whole, "rm -rf '%s'", folder);
    if (getenv("SINTER_DOUBLE_KEEP") == NULL && system(whole) != 0)
        complain("cannot remove %s", folder);
    return code;
}

// ---- the folder $SINTER_DOUBLE_IMAGES, if set: code by a sum of its text ----

static void code_name(const Unit *u, const char *command, char *to) {
    uint64_t sum = sum_of(command, strlen(command));
    for (int i = 0; i < u->num_headers; i++) {
        sum = 31 * sum + sum_of(u->name[i], strlen(u->name[i]));
        sum = 31 * sum + sum_of(u->header[i], strlen(u->header[i]));
    }
    sum = 31 * sum + sum_of(u->text, strlen(u->text));
    sprintf(to, "%016llx", (unsigned long long)sum);
}

// Another process may read or write the same.
static void code_save(const char *folder, const char *name, const char *code,
                      size_t count) {
    char path[LONGEST_PATH], part[LONGEST_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(part, sizeof part, "%s/%s.XXXXXX", folder, name);
    int to = mkstemp(part);
    if (to < 0 || write(to, code, count) != (ssize_t)count || close(to) != 0 ||
        rename(part, path) != 0)
        complain("cannot write into %s", folder);
}

void *image_compile(const Unit *u, size_t *bytes, char **log) {
    char command[3 * LONGEST_PATH], name[32] = "";
    const char *cache = getenv("SINTER_DOUBLE_IMAGES");
    size_t count;
    char *code = NULL;
    command_of(u, command, sizeof command);
    if (cache != NULL) {
        code_name(u, command, name);
        code = file_read(cache, name, &count);
    }
    if (code != NULL) {
        *log = take(1);
    } else {
        code = unit_compile(u, command, &count, log);
        if (cache != NULL && code != NULL)
            code_save(cache, name, code, count);
    }
    void *image = code != NULL ? image_of(u, code, count, bytes) : NULL;
    free(code);
    return image;
}
