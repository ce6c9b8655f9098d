// Golden tests: text in, text out, byte for byte.
//
// Each case runs sinter as a person would, in the directory of its file, so
// that messages name the file alone.
//
//   golden/reject/X.net       check: status 1, stderr is X.err
//   golden/accept/X.net       show graph: stdout is X.ir
//   golden/verify/X.ir        opt: status 1; the message begins with the text
//                             after "# error: " in the first line
//   golden/passes/P/X.ir      opt --run=P on the part before the line ---:
//                             stdout is the part after it, or the same graph if
//                             that is the word unchanged
//   golden/kernels/X.ir       opt --emit=cu: stdout is X.cu
//   golden/kernel-passes/P/X.kir  opt --run=P: stdout is X.out
//   golden/launches/X.net     show launches: stdout is X.launches
//   golden/tile/X.net         show tile: stdout is X.tile
//   golden/models/X.report    check --device=h200 models/X.net: stdout is it
//   golden/models/X.plan      plan --gpus=16 --link=400Gb models/X.net
//   golden/models/X.launches  show launches models/X.net: stdout is the file
//
// A line "# options: ..." adds options.  A last line "# train" stands for a
// train block whose content does not matter.  With BLESS=1 in the environment,
// expectations are rewritten instead of compared.
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGS = 32, PATH_BYTES = 4096 };

typedef enum { OUT, ERR } Stream;

typedef enum {
    WHOLE,  // the expectation is a file of its own
    AFTER,  // ... the part after the line --- in the case's own file
    PREFIX, // ... the first line, and only the start is compared
} Where;

// A kind of case: its files, the command and the expected result.  %s in an
// argument stands for the name of the file's directory.
typedef struct {
    const char *files;      // below tests/
    const char *command[4]; // arguments before the options and the file
    const char *extension;  // of the expectation, for WHOLE
    int status;
    Stream stream;
    Where where;
} Kind;

// clang-format off
static const Kind kinds[] = {
    {"golden/reject/*.net",    {"check"},            "err", 1, ERR, WHOLE},
    {"golden/accept/*.net",    {"show", "graph"},    "ir",  0, OUT, WHOLE},
    {"golden/verify/*.ir",     {"opt"},              NULL,  1, ERR, PREFIX},
    {"golden/passes/*/*.ir",   {"opt", "--run=%s"},  NULL,  0, OUT, AFTER},
    {"golden/kernels/*.ir",    {"opt", "--emit=cu"}, "cu",  0, OUT, WHOLE},
    {"golden/kernel-ir/*.ir",  {"opt", "--emit=kernel-ir"}, "kir", 0, OUT, WHOLE},
    {"golden/kernel-passes/*/*.kir", {"opt", "--run=%s"}, "out", 0, OUT, WHOLE},
    {"golden/launches/*.net",  {"show", "launches"}, "launches", 0, OUT, WHOLE},
    {"golden/tile/*.net",      {"show", "tile"}, "tile", 0, OUT, WHOLE},
    {"golden/models/*.report", {"check", "--device=h200"}, NULL,  0, OUT, WHOLE},
    {"golden/models/*.plan", {"plan", "--gpus=16", "--link=400Gb"}, NULL, 0, OUT, WHOLE},
    {"golden/models/*.launches", {"show", "launches"}, NULL, 0, OUT, WHOLE},
};
// clang-format on

typedef struct {
    const Kind *kind;
    char *path; // absolute
} Case;

static Case *cases;
static int num_cases;
static const char *source, *sinter;

// ---- text ----

static char *text_format(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
static char *text_format(const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        abort();
    va_end(list);
    return text;
}

// The bytes of a file; "" when there is none.
static char *file_read(const char *path) {
    char *text = calloc(1, 1);
    FILE *f = fopen(path, "rb");
    if (!f)
        return text;
    size_t length = 0, got;
    char part[4096];
    while ((got = fread(part, 1, sizeof part, f)) > 0) {
        text = realloc(text, length + got + 1);
        ck_assert_ptr_nonnull(text);
        memcpy(text + length, part, got);
        length += got;
        text[length] = 0;
    }
    fclose(f);
    return text;
}

static void file_write(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "cannot write %s", path);
    fputs(text, f);
    ck_assert(fclose(f) == 0);
}

// What follows the line --- in text, NULL when there is no such line.
static char *after_rule(char *text) {
    char *rule = strstr(text, "\n---\n");
    return rule ? rule + 5 : NULL;
}

// The graph of a case: its text before the line ---, without the comments above
// it.
static char *graph_before(const char *text) {
    while (*text == '#')
        text += strcspn(text, "\n") + 1;
    const char *rule = strstr(text, "\n---\n");
    return strndup(text, rule ? (size_t)(rule + 1 - text) : strlen(text));
}

// ---- a case ----

// What a case says and what is to come out of it.
typedef struct {
    char *text;     // of the file
    char *file;     // its base name, or the model's that it is about
    char *folder;   // where sinter runs
    char *expected; // where the expectation is kept
} Setup;

static Setup case_setup(const Case *c) {
    Setup s = {.text = file_read(c->path)};
    char *base = basename(strdup(c->path));
    char *stem = strdup(base);
    *strrchr(stem, '.') = 0;
    s.folder = dirname(strdup(c->path));
    s.file = base;
    s.expected = c->path;
    if (c->kind->extension)
        s.expected =
            text_format("%s/%s.%s", s.folder, stem, c->kind->extension);
    if (strcmp(basename(strdup(s.folder)), "models") == 0) {
        s.folder = text_format("%s/models", source);
        s.file = text_format("%s.net", stem);
    }
    return s;
}

// A case that ends with the line "# train" runs as a copy with this block, in a
// folder of its own.
static bool train_block_add(Setup *s) {
    static const char mark[] = "\n# train\n",
                      block[] =
                          "\ntrain Net {\n"
                          "  data      = cifar10(\"data\")\n"
                          "  batch     = 100\n"
                          "  epochs    = 1\n"
                          "  loss      = mean(cross_entropy(output, label))\n"
                          "  optimizer = sgd(lr=0.1)\n"
                          "}\n";
    const char *end = strstr(s->text, mark);
    if (end == NULL || end[sizeof mark - 1] != '\0')
        return false;
    s->folder = strdup("/tmp/golden-XXXXXX");
    ck_assert(mkdtemp(s->folder) != NULL);
    file_write(text_format("%s/%s", s->folder, s->file),
               text_format("%s%s", s->text, block));
    return true;
}

static void copy_remove(const Setup *s) {
    unlink(text_format("%s/%s", s->folder, s->file));
    rmdir(s->folder);
}

// The words after "# options: " in the file.
static int options_add(char **arg, int count, const char *text) {
    static const char mark[] = "# options: ";
    const char *line = strstr(text, mark);
    if (!line)
        return count;
    line += sizeof mark - 1;
    char *words = strndup(line, strcspn(line, "\n"));
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        if (count < MAX_ARGS - 2)
            arg[count++] = w;
    return count;
}

static void command_make(char **arg, const Kind *kind, const Setup *s) {
    int count = 0;
    arg[count++] = (char *)sinter;
    for (int i = 0; i < 4 && kind->command[i]; i++) {
        bool folder = strstr(kind->command[i], "%s") != NULL;
        arg[count++] = folder ? text_format("--run=%s", basename(s->folder))
                              : (char *)kind->command[i];
    }
    if (kind->where != WHOLE || kind->extension)
        count = options_add(arg, count, s->text);
    arg[count++] = s->file;
    arg[count] = NULL;
}

static void command_exec(char **arg, const char *folder, char *out[2]) {
    for (int i = 0; i < 2; i++) {
        int fd = open(out[i], O_WRONLY | O_TRUNC);
        if (fd < 0 || dup2(fd, 1 + i) < 0)
            _exit(126);
    }
    if (chdir(folder) == 0)
        execv(arg[0], arg);
    _exit(127);
}

// Runs sinter and returns its status; out[] are the files for its output.
static int command_run(char **arg, const char *folder, char *out[2]) {
    pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0)
        command_exec(arg, folder, out);
    int status;
    ck_assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *scratch_file(void) {
    char *path = strdup("/tmp/golden-XXXXXX");
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    return path;
}

// ---- comparison ----

static const char unchanged[] = "unchanged\n";

static const char *expectation_read(const Case *c, const Setup *s) {
    if (c->kind->where != AFTER)
        return file_read(s->expected);
    const char *after = after_rule(s->text);
    bool is_same = after && strcmp(after, unchanged) == 0;
    return is_same ? graph_before(s->text) : after;
}

static void expectation_bless(const Case *c, const Setup *s,
                              const char *actual) {
    const char *rule = after_rule(s->text);
    size_t before = rule ? (size_t)(rule - 4 - s->text) : strlen(s->text);
    bool is_same = strcmp(actual, graph_before(s->text)) == 0;
    if (c->kind->where == AFTER)
        file_write(s->expected, text_format("%.*s---\n%s", (int)before, s->text,
                                            is_same ? unchanged : actual));
    else
        file_write(s->expected, actual);
}

static void difference_print(const Setup *s, const char *expected,
                             const char *actual) {
    char *a = scratch_file(), *b = scratch_file();
    file_write(a, expected);
    file_write(b, actual);
    fflush(stdout);
    char *diff = text_format("diff -u --label '%s' --label 'now' %s %s >&2",
                             s->expected, a, b);
    if (system(diff) == 0)
        fputs("(no difference)\n", stderr);
    fprintf(stderr, "if this is right: BLESS=1 ctest -L golden\n");
    unlink(a);
    unlink(b);
}

static bool prefix_agrees(const Setup *s, const char *actual) {
    static const char mark[] = "# error: ";
    const char *line = strstr(s->text, mark);
    ck_assert_msg(line != NULL, "%s: no line '# error: '", s->expected);
    line += sizeof mark - 1;
    const char *said = strstr(actual, "error: ");
    return said && strncmp(said + 7, line, strcspn(line, "\n")) == 0;
}

static bool whole_agrees(const Case *c, const Setup *s, const char *actual) {
    const char *expected = expectation_read(c, s);
    if (expected && strcmp(expected, actual) == 0)
        return true;
    if (getenv("BLESS")) {
        expectation_bless(c, s, actual);
        return true;
    }
    difference_print(s, expected ? expected : "", actual);
    return false;
}

START_TEST(case_agrees) {
    const Case *c = &cases[_i];
    Setup s = case_setup(c);
    bool is_copy = train_block_add(&s);
    char *arg[MAX_ARGS], *out[2] = {scratch_file(), scratch_file()};
    command_make(arg, c->kind, &s);
    int status = command_run(arg, s.folder, out);
    char *actual = file_read(out[c->kind->stream]);
    char *complaint = file_read(out[ERR]);
    unlink(out[0]);
    unlink(out[1]);
    if (is_copy)
        copy_remove(&s);
    ck_assert_msg(status == c->kind->status, "%s: exit status %d, not %d: %s",
                  c->path, status, c->kind->status, complaint);
    if (c->kind->where == PREFIX)
        ck_assert_msg(prefix_agrees(&s, actual), "%s: says: %s", c->path,
                      actual);
    else
        ck_assert_msg(whole_agrees(c, &s, actual), "%s differs", c->path);
}
END_TEST

static void cases_find(const Kind *kind) {
    glob_t found;
    char *pattern = text_format("%s/tests/%s", source, kind->files);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        cases = realloc(cases, (size_t)(num_cases + 1) * sizeof *cases);
        if (!cases)
            abort();
        cases[num_cases++] = (Case){kind, strdup(found.gl_pathv[i])};
    }
    globfree(&found);
}

int main(void) {
    source = getenv("SINTER_SOURCE");
    sinter = getenv("SINTER");
    if (!source || !sinter) {
        fputs("golden: SINTER and SINTER_SOURCE say what to test\n", stderr);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        cases_find(&kinds[i]);
    Suite *suite = suite_create("golden");
    TCase *tcase = tcase_create("golden");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, case_agrees, 0, num_cases);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
