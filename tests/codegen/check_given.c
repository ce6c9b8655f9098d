// Given sizes: whatever the kernels of one function differ in is given to it.
#include "tests/codegen/suites.h"

#include "codegen/codegen.h"
#include "passes/passes.h"
#include "tests/codegen/load.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *model;
    int level;
} whole[] = {
    {"models/resnet50.net", 1},   {"models/resnet18.net", 0},
    {"models/gpt_nano.net", 0},   {"tests/codegen/nets/functions.net", 0},
    {"models/airbench94.net", 1}, {"tests/codegen/nets/tables.net", 1},
};

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *word_in(const char *text, const char *word) {
    size_t length = strlen(word);
    const char *s = text;
    while ((s = strstr(s, word)) != NULL &&
           (in_word(s[length]) || (s > text && in_word(s[-1]))))
        s += length;
    return s;
}

// "64" where the text has "C = 64".
static const char *defined(Arena *a, const char *text, const char *name) {
    const char *s = strstr(text, arena_format(a, " %s = ", name));
    return s ? arena_format(a, "%.*s", (int)strcspn(s + 1, ",}"), s + 1) : "";
}

// A kernel's text without the lines that define names.
static const char *without_names(Arena *a, const char *text) {
    Text t = text_new(a);
    for (const char *s = text; *s != '\0';) {
        size_t length = strcspn(s, "\n");
        if (strncmp(s, "    enum {", strlen("    enum {")) != 0)
            text_bytes(&t, s, length + (s[length] == '\n'));
        s += length + (s[length] == '\n');
    }
    return text_string(&t);
}

// Whatever another of the family has another value of is given, not named.
static void check_member(Arena *a, const Kernel *head, const Kernel *k) {
    static const char *const name[] = {"ROWS", "C", "WIDTH"};
    const char *text = without_names(a, head->text);
    for (int i = 0; i < 3; i++) {
        const char *x = defined(a, head->text, name[i]);
        const char *y = defined(a, k->text, name[i]);
        if (strcmp(x, y) == 0)
            continue;
        const char *at = word_in(text, name[i]);
        if (at == NULL && i == 1)
            at = word_in(text, "CG");
        ck_assert_msg(at == NULL,
                      "%s has %s, %s has %s, and one function: %.40s",
                      head->name, x, k->name, y, at);
    }
}

START_TEST(what_differs_is_given) {
    Arena *a = arena_new();
    Text report = text_new(a);
    Program *p = load_program(a, whole[_i].model, NULL, 0, F16, &report);
    ck_assert_msg(p != NULL, "%s", text_string(&report));
    PassOptions host = pass_options(&p->recipe, "host");
    PassOptions cuda = pass_options(&p->recipe, "cuda");
    host.level = cuda.level = whole[_i].level;
    const Plan *plan = program_plan(p, &host);
    Launches *l = codegen_launches(plan, program_plan(p, &cuda), a);
    int members = 0;
    for (int i = 0; i < plan->num_steps; i++)
        for (int j = 0; j < l[i].count; j++)
            if (l[i].kernel[j].head != NULL) {
                check_member(a, l[i].kernel[j].head, &l[i].kernel[j]);
                members++;
            }
    ck_assert_int_gt(members, 1);
    arena_free(a);
}
END_TEST

Suite *given_suite(void) {
    Suite *s = suite_create("given");
    TCase *t = tcase_create("given");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, what_differs_is_given, 0,
                        (int)(sizeof whole / sizeof *whole));
    suite_add_tcase(s, t);
    return s;
}
