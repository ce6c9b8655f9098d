// The editors' syntax files: their lists of words equal the tables'.  BLESS=1
// in the environment rewrites them.
#include "frontend/functions/functions.h"
#include "frontend/train/train.h"
#include "tests/frontend/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_word(Text *t, const char *word, const char *between) {
    text_add(t, "%s%s", t->length ? between : "", word);
}

static const char *keywords(Arena *a, const char *between) {
    static const char *const word[] = {
#define KEYWORD(name, spelling) spelling,
#include "frontend/text/tokens.def"
    };
    Text t = text_new(a);
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        add_word(&t, word[i], between);
    return text_string(&t);
}

static const char *functions(Arena *a, const char *between) {
    Text t = text_new(a);
    for (int i = 0; i < NUM_BUILTINS; i++)
        add_word(&t, builtin_info[i].name, between);
    return text_string(&t);
}

static const char *keys(Arena *a, const char *between) {
    Text t = text_new(a);
    for (int i = 0; key_name(i) != NULL; i++)
        add_word(&t, key_name(i), between);
    return text_string(&t);
}

// A line of a file, and the position of its words.
static const struct {
    const char *file, *before, *after, *between;
    const char *(*words)(Arena *a, const char *between);
} lines[] = {
    {"tools/editors/sinter.tmLanguage.json",
     "\"name\": \"keyword.control.sinter\",\n      \"match\": \"\\\\b(",
     ")\\\\b\"", "|", keywords},
    {"tools/editors/sinter.tmLanguage.json",
     "\"name\": \"support.function.sinter\",\n      \"match\": \"\\\\b(",
     ")\\\\b(?!", "|", functions},
    {"tools/editors/sinter.tmLanguage.json",
     "\"name\": \"support.type.property-name.sinter\",\n"
     "      \"match\": \"^\\\\s*(",
     ")\\\\b\"", "|", keys},
    {"tools/editors/vim/syntax/sinter.vim", "syn keyword sinterKeyword ",
     "\n", " ",
     keywords},
    {"tools/editors/vim/syntax/sinter.vim", "syn keyword sinterFunction ",
     "\n", " ",
     functions},
    {"tools/editors/tree-sitter/grammar.js", "const KEYWORDS = [\n  \"",
     "\",\n];", "\",\n  \"", keywords},
    {"tools/editors/tree-sitter/queries/highlights.scm",
     "(unit) @constant.numeric\n\n[\n  \"", "\"\n] @keyword", "\"\n  \"",
     keywords},
    {"tools/editors/vim/syntax/sinter.vim", "syn match sinterKey \"^\\s*\\%(",
     "\\)\\>\"", "\\|", keys},
};

static void rewrite(const char *path, const char *text, const char *from,
                    const char *to, const char *words) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%.*s%s%s", (int)(from - text), text, words, to);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(words_are_those_of_the_tables) {
    Arena *a = arena_new();
    const char *why, *source = getenv("SINTER_SOURCE");
    const char *path =
        arena_format(a, "%s/%s", source ? source : ".", lines[_i].file);
    const Source *s = source_read(a, path, 1 << 20, &why);
    ck_assert_msg(s != NULL, "%s: %s", path, why);
    const char *from = strstr(s->text, lines[_i].before);
    ck_assert_msg(from != NULL, "%s: no line %s", path, lines[_i].before);
    from += strlen(lines[_i].before);
    const char *to = strstr(from, lines[_i].after);
    ck_assert_ptr_nonnull(to);
    const char *words = lines[_i].words(a, lines[_i].between);
    bool same = strlen(words) == (size_t)(to - from) &&
                strncmp(words, from, strlen(words)) == 0;
    if (!same && getenv("BLESS"))
        rewrite(path, s->text, from, to, words);
    else
        ck_assert_msg(same, "%s has other words; BLESS=1 rewrites it:\n%s",
                      path, words);
    arena_free(a);
}
END_TEST

Suite *editors_suite(void) {
    Suite *s = suite_create("editors");
    TCase *t = tcase_create("editors");
    tcase_add_loop_test(t, words_are_those_of_the_tables, 0,
                        sizeof lines / sizeof lines[0]);
    suite_add_tcase(s, t);
    return s;
}
