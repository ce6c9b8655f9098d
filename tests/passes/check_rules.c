// Rules: each has golden cases for it and against it.  tests/golden/rules.txt
// is the table; what it must name is read off the passes, the rules of simplify
// and library fusions; launches that are merged count besides.
#include "base/source.h"
#include "passes/passes.h"
#include "passes/plan/library_fusion.h"
#include "tests/passes/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

static const char *const classes[] = {"for",       "against",   "fan-out",
                                      "precision", "broadcast", "odd",
                                      "channel",   "pixel",     "image"};
enum { CLASSES = sizeof classes / sizeof *classes };

// A line of the table.
typedef struct {
    const char *rule, *class, *path; // path "-": there can be no case
} Row;

typedef struct {
    Arena *a;
    Row *row;
    int count;
} Table;

static Source *source_of(Arena *a, const char *file) {
    const char *root = getenv("SINTER_SOURCE"), *why = NULL;
    Source *s = source_read(
        a, arena_format(a, "%s/%s", root ? root : ".", file), MAX_BYTES, &why);
    ck_assert_msg(s != NULL, "%s: %s", file, why);
    return s;
}

static Table table_read(Arena *a) {
    Source *s = source_of(a, "tests/golden/rules.txt");
    Table t = {a, ARENA_ARRAY(a, (size_t)s->num_lines, Row), 0};
    for (int i = 0; i < s->num_lines; i++) {
        const char *line = s->text + s->line_start[i];
        char word[3][100];
        if (*line == '#' || *line == '\n' || *line == '\0')
            continue;
        int words = sscanf(line, "%99s %99s %99s", word[0], word[1], word[2]);
        ck_assert_msg(words == 3, "rules.txt:%d: no rule, class and case",
                      i + 1);
        t.row[t.count++] = (Row){arena_format(a, "%s", word[0]),
                                 arena_format(a, "%s", word[1]),
                                 arena_format(a, "%s", word[2])};
    }
    return t;
}

// Whether the row is about the rule, or about all of its pass.
static bool is_about(const Row *row, const char *rule) {
    size_t length = strlen(row->rule);
    if (length > 1 && strcmp(row->rule + length - 2, ".*") == 0)
        return strncmp(row->rule, rule, length - 1) == 0;
    return strcmp(row->rule, rule) == 0;
}

// Whether a list of classes has this one.
static bool has_class(const Row *row, const char *class) {
    size_t length = strlen(class);
    for (const char *s = row->class; *s != '\0';) {
        size_t own = strcspn(s, ",");
        if (own == length && strncmp(s, class, own) == 0)
            return true;
        s += own + (s[own] == ',');
    }
    return false;
}

static bool is_case(const Row *row) {
    return strcmp(row->path, "-") != 0;
}

static const char *file_of(Arena *a, const Row *row) {
    bool launches = strncmp(row->path, "launches/", 9) == 0;
    bool own = launches || strncmp(row->path, "kernels/", 8) == 0;
    return arena_format(a, "tests/golden/%s%s%s", own ? "" : "passes/",
                        row->path, launches ? ".net" : ".ir");
}

static bool is_covered(const Table *t, const char *rule, const char *class) {
    for (int i = 0; i < t->count; i++)
        if (is_about(&t->row[i], rule) && has_class(&t->row[i], class))
            return true;
    return false;
}

static void check_covered(const Table *t, const char *rule) {
    for (int i = 0; i < CLASSES; i++)
        ck_assert_msg(is_covered(t, rule, classes[i]),
                      "rules.txt has no case `%s` of %s", classes[i], rule);
}

START_TEST(rules_have_cases) {
    Arena *a = arena_new();
    Table t = table_read(a);
    for (int i = 0; i < t.count; i++) {
        if (strchr(t.row[i].rule, '*') == NULL)
            check_covered(&t, t.row[i].rule);
        if (is_case(&t.row[i]))
            source_of(a, file_of(a, &t.row[i]));
    }
    arena_free(a);
}
END_TEST

START_TEST(passes_have_rules) {
    Arena *a = arena_new();
    Table t = table_read(a);
    for (const Pass *p = standard_passes; p->name != NULL; p++) {
        size_t length = strlen(p->name);
        bool found = false;
        for (int i = 0; i < t.count; i++)
            found |= strncmp(t.row[i].rule, p->name, length) == 0 &&
                     t.row[i].rule[length] == '.';
        ck_assert_msg(found, "rules.txt has no rule of %s", p->name);
    }
    for (int i = 0; i < NUM_FUSIONS; i++)
        check_covered(&t, arena_format(a, "fusion.%s", fusion_info[i].name));
    check_covered(&t, "merge.launch");
    arena_free(a);
}
END_TEST

// The table in simplify.c, and what it asks for every pointwise operation.
START_TEST(rules_of_simplify_are_there) {
    Arena *a = arena_new();
    Table t = table_read(a);
    const char *s =
        strstr(source_of(a, "passes/simplify.c")->text, "} rules[]");
    ck_assert_ptr_nonnull(s);
    const char *end = strstr(s, "};");
    int count = 0;
    while ((s = strstr(s, "{OP_")) != NULL && s < end) {
        char name[100];
        ck_assert_int_eq(sscanf(s, "{OP_%*[^,], %99[a-z_]", name), 1);
        check_covered(&t, arena_format(a, "simplify.%s", name));
        s++;
        count++;
    }
    ck_assert_int_gt(count, 0);
    check_covered(&t, "simplify.fold");
    check_covered(&t, "simplify.drop_broadcast");
    arena_free(a);
}
END_TEST

// How many rewrites the pass of a case makes.
static int rewrites_of(Arena *a, const Row *row, const char *pass) {
    Source *s = source_of(a, file_of(a, row));
    const char *end = strstr(s->text, "\n---\n"), *why = NULL;
    size_t length = end ? (size_t)(end - s->text) + 1 : s->length;
    Graph *g = graph_read(a, s->text, length, &why);
    ck_assert_msg(g != NULL, "%s: %s", row->path, why);
    bool unfused = strstr(s->text, "# options: --level=0\n") != NULL;
    bool described = strstr(s->text, "# options: --device=") != NULL;
    PassOptions o = {.act = F32,
                     .storage = F32,
                     .level = !unfused,
                     .multiprocessors = described ? 132 : 0};
    return pass_run(g, &o, pass_find(pass))->rewrites;
}

static int rules_of(const Table *t, const char *path) {
    int count = 0;
    for (int i = 0; i < t->count; i++)
        count +=
            has_class(&t->row[i], "for") && strcmp(t->row[i].path, path) == 0;
    return count;
}

// These passes count what they do: a case makes as many rewrites as there are
// rules that it is for, and one against them none.
START_TEST(counted_rules_are_made_or_not) {
    static const char *const pass[] = {
        "canonicalize",  "fold_batch_norm", "simplify",    "direct_conv",
        "direct_matmul", "conv_reductions", "bit_packing", "inplace"};
    Arena *a = arena_new();
    Table t = table_read(a);
    for (int i = 0; i < t.count; i++) {
        const Row *row = &t.row[i];
        size_t length = strlen(pass[_i]);
        if (strncmp(row->rule, pass[_i], length) != 0 ||
            row->rule[length] != '.' || !is_case(row))
            continue;
        int made = rewrites_of(a, row, pass[_i]);
        if (has_class(row, "for"))
            ck_assert_int_ge(made, rules_of(&t, row->path));
        if (has_class(row, "against"))
            ck_assert_msg(made == 0, "%s makes %d rewrites", row->path, made);
    }
    arena_free(a);
}
END_TEST

Suite *rules_suite(void) {
    Suite *s = suite_create("rules");
    TCase *t = tcase_create("rules");
    tcase_add_test(t, rules_have_cases);
    tcase_add_test(t, passes_have_rules);
    tcase_add_test(t, rules_of_simplify_are_there);
    tcase_add_loop_test(t, counted_rules_are_made_or_not, 0, 8);
    suite_add_tcase(s, t);
    return s;
}
