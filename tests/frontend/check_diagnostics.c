// Diagnostics: each code has a page in docs/diagnostics.md with working
// examples, and a golden case.
#include "frontend/report.h"
#include "tests/frontend/suites.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static const char *read_text(Arena *a, const char *path) {
    const char *why;
    const Source *s = source_read(a, path, 1 << 20, &why);
    ck_assert_msg(s != NULL, "%s: %s", path, why);
    return s->text;
}

static const char *source_path(Arena *a, const char *path) {
    const char *source = getenv("SINTER_SOURCE");
    return arena_format(a, "%s/%s", source ? source : ".", path);
}

// The text of a code's page, without its heading.
static const char *page_of(Arena *a, const DiagInfo *info) {
    const char *all = read_text(a, source_path(a, "docs/diagnostics.md"));
    const char *heading =
        arena_format(a, "\n## %s: %s\n", info->code, info->title);
    const char *page = strstr(all, heading);
    ck_assert_msg(page != NULL, "docs/diagnostics.md has no line '## %s: %s'",
                  info->code, info->title);
    page += strlen(heading);
    const char *end = strstr(page, "\n## ");
    return arena_string(a, page, end ? (size_t)(end - page) : strlen(page));
}

// ---- examples ----

static const char body[] = "  image |> flatten |> linear(10)\n";
static const char *const keys[] = {
    "  data      = cifar10(\"data\")\n",
    "  batch     = 100\n",
    "  epochs    = 1\n",
    "  loss      = mean(cross_entropy(output, label))\n",
    "  optimizer = sgd(lr=0.1)\n",
};

static bool gives_key(const char *lines, const char *key) {
    size_t length = strcspn(key + 2, " ") + 2;
    for (const char *l = lines; l != NULL; l = strchr(l, '\n')) {
        l += *l == '\n';
        if (strncmp(l, key, length) == 0 && l[length] == ' ')
            return true;
    }
    return false;
}

// The whole file for an example of a part.
static const char *completed(Arena *a, const char *place, const char *lines) {
    if (strcmp(place, "as a file") == 0)
        return lines;
    bool before = strcmp(place, "before the model") == 0;
    bool model = strcmp(place, "in the model") == 0;
    bool train = strcmp(place, "in the train block") == 0;
    ck_assert_msg(before || model || train, "no place is called '%s'", place);
    Text t = text_new(a);
    text_add(&t,
             "%s\nmodel Net(image: u8[N, 32, 32, 3]) -> f32[N, 10] {\n%s}\n"
             "\ntrain Net {\n",
             before ? lines : "", model ? lines : body);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!train || !gives_key(lines, keys[i]))
            text_add(&t, "%s", keys[i]);
    text_add(&t, "%s}\n", train ? lines : "");
    return text_string(&t);
}

// The example after a word, indented by two spaces as a block, as a whole file;
// NULL if the page has none, or one for the command line.
static const char *example_of(Arena *a, const char *page, const char *word) {
    const char *mark = strstr(page, arena_format(a, "%s, ", word));
    if (mark == NULL)
        return NULL;
    mark += strlen(word) + 2;
    const char *place = arena_string(a, mark, strcspn(mark, ":"));
    if (strcmp(place, "on the command line") == 0)
        return NULL;
    size_t margin = strcmp(place, "in the model") == 0 ||
                            strcmp(place, "in the train block") == 0
                        ? 2
                        : 4;
    Text t = text_new(a);
    const char *line = strchr(mark, '\n') + 2;
    for (; strncmp(line, "    ", 4) == 0 || *line == '\n';
         line += strcspn(line, "\n") + 1)
        if (*line == '\n')
            text_add(&t, "\n");
        else
            text_add(&t, "%.*s\n", (int)(strcspn(line, "\n") - margin),
                     line + margin);
    return completed(a, place, text_string(&t));
}

static bool gives_code(const Loaded *l, const char *code) {
    for (int i = 0; i < l->diags.count; i++)
        if (strcmp(l->diags.list[i]->code, code) == 0)
            return true;
    return false;
}

// Only the error is reported, not its consequences.
static void check_wrong(const DiagInfo *info, const char *text) {
    Loaded l = load_text(text);
    ck_assert_msg(gives_code(&l, info->code), "%s: the wrong example gives %s",
                  info->code, codes_of(&l));
    ck_assert_msg(info->severity == DIAG_WARNING || l.diags.errors == 1,
                  "%s: the wrong example gives %s", info->code, codes_of(&l));
    arena_free(l.arena);
}

static void check_right(const DiagInfo *info, const char *text) {
    Loaded l = load_text(text);
    ck_assert_msg(l.program != NULL && !gives_code(&l, info->code),
                  "%s: the right example gives %s", info->code, codes_of(&l));
    arena_free(l.arena);
}

// Too long for a page, or about files and commands.
static bool has_no_example(DiagId id) {
    return id == D_name_length || id == D_file || id == D_nesting ||
           id == D_import_cycle || id == D_setting;
}

START_TEST(pages_have_examples) {
    Arena *a = arena_new();
    const DiagInfo *info = &diag_info[_i];
    const char *page = page_of(a, info);
    const char *wrong = example_of(a, page, "Wrong");
    const char *right = example_of(a, page, "Right");
    ck_assert_msg(has_no_example((DiagId)_i) || (wrong && right),
                  "%s has no example", info->code);
    if (wrong && right) {
        check_wrong(info, wrong);
        check_right(info, right);
    }
    arena_free(a);
}
END_TEST

START_TEST(codes_have_a_golden_case) {
    Arena *a = arena_new();
    const char *mark = arena_format(a, "[%s]", diag_info[_i].code);
    bool found = _i == D_file; // needs more than a mebibyte
    glob_t files;
    const char *pattern = source_path(a, "tests/golden/reject/*.err");
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc && !found; i++)
        found = strstr(read_text(a, files.gl_pathv[i]), mark) != NULL;
    globfree(&files);
    ck_assert_msg(found, "no case of tests/golden/reject gives %s",
                  diag_info[_i].code);
    arena_free(a);
}
END_TEST

// Cases that show several mistakes.
static bool has_several(const char *path) {
    static const char *const name[] = {"/two-mistakes.",     "/twenty-five-",
                                       "/normalize-length.", "/flag-misspelt.",
                                       "/misspelt-layer.",   "/misspelt-batch.",
                                       "/mistakes-here-"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (strstr(path, name[i]) != NULL)
            return true;
    return false;
}

START_TEST(one_mistake_gives_one_message) {
    Arena *a = arena_new();
    glob_t files;
    const char *pattern = source_path(a, "tests/golden/reject/*.err");
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *path = files.gl_pathv[i], *said = read_text(a, path);
        const char *first = strstr(said, "error[");
        ck_assert_msg(first != NULL, "%s", path);
        ck_assert_msg(has_several(path) || !strstr(first + 1, "\nerror["),
                      "%s has several messages", path);
    }
    globfree(&files);
    arena_free(a);
}
END_TEST

Suite *diagnostics_suite(void) {
    Suite *s = suite_create("diagnostics");
    TCase *t = tcase_create("diagnostics");
    tcase_add_loop_test(t, pages_have_examples, 0, NUM_DIAGS);
    tcase_add_loop_test(t, codes_have_a_golden_case, 0, NUM_DIAGS);
    tcase_add_test(t, one_mistake_gives_one_message);
    suite_add_tcase(s, t);
    return s;
}
