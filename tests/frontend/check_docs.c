// docs/language.md against the parser and the tables: its grammar equals that
// above the parse functions, and it lists every function, argument, default and
// key.  docs/ir.md lists the traits of operations, and its kernel is a golden
// file.  Lines and tables of all documents are well-formed.
#include "frontend/functions/functions.h"
#include "frontend/train/train.h"
#include "tests/frontend/suites.h"

#include <ctype.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *read_text(Arena *a, const char *path) {
    const char *why, *source = getenv("SINTER_SOURCE");
    path = arena_format(a, "%s/%s", source ? source : ".", path);
    const Source *s = source_read(a, path, 1 << 20, &why);
    ck_assert_msg(s != NULL, "%s: %s", path, why);
    return s->text;
}

// ---- the grammar ----

// A rule that begins at line s, on one line; each line begins with `margin`,
// and continuations are indented further.
static const char *rule_at(Arena *a, const char *s, const char *margin) {
    Text t = text_new(a);
    bool space = false;
    for (bool first = true;; first = false) {
        size_t length = strcspn(s, "\n"), skip = strlen(margin);
        bool goes_on = strncmp(s, margin, skip) == 0 && s[skip] == ' ';
        if (!first && !goes_on)
            break;
        for (size_t i = skip; i < length; i++) {
            if (s[i] != ' ')
                text_add(&t, "%s%c", space && t.length ? " " : "", s[i]);
            space = s[i] == ' ';
        }
        space = true;
        s += length + (s[length] != '\0');
    }
    return text_string(&t);
}

// Whether a line begins a rule: `name = ...`.
static bool begins_rule(const char *s, const char *margin) {
    size_t skip = strlen(margin), length = 0;
    if (strncmp(s, margin, skip) != 0)
        return false;
    while (islower((unsigned char)s[skip + length]))
        length++;
    s += skip + length;
    return length > 0 && *s == ' ' && s[strspn(s, " ")] == '=' &&
           s[strspn(s, " ") + 1] == ' ';
}

// The rules of a text, one per line.
static const char *rules_of(Arena *a, const char *text, const char *margin) {
    Text t = text_new(a);
    text_add(&t, "\n");
    for (const char *s = text; *s != '\0'; s += strcspn(s, "\n") + 1)
        if (begins_rule(s, margin))
            text_add(&t, "%s\n", rule_at(a, s, margin));
    return text_string(&t);
}

static void expect_rules(Arena *a, const char *rules, const char *others,
                         const char *where) {
    for (const char *s = rules + 1; *s != '\0';) {
        size_t length = strcspn(s, "\n");
        const char *line = arena_format(a, "\n%.*s\n", (int)length, s);
        ck_assert_msg(strstr(others, line) != NULL, "%s has no rule%s", where,
                      line);
        s += length + 1;
    }
}

// The rules above the parser's functions, in several files.
static const char *parser_rules(Arena *a) {
    static const char *const name[] = {"parse", "parse_tokens",
                                       "parse_statement", "parse_expression",
                                       "parse_train"};
    Text t = text_new(a);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        text_add(&t, "%s",
                 read_text(a, arena_format(a, "frontend/text/%s.c", name[i])));
    return rules_of(a, text_string(&t), "// ");
}

START_TEST(grammar_is_the_parsers) {
    Arena *a = arena_new();
    const char *doc = read_text(a, "docs/language.md");
    const char *start = strstr(doc, "\n## 2."), *end = strstr(doc, "\n## 3.");
    ck_assert(start != NULL && end != NULL);
    const char *section = arena_string(a, start, (size_t)(end - start));
    const char *written = rules_of(a, section, "    ");
    const char *parsed = parser_rules(a);
    expect_rules(a, parsed, written, "docs/language.md");
    expect_rules(a, written, parsed, "the parser");
    arena_free(a);
}
END_TEST

// ---- functions ----

// The next argument of a signature: up to a comma or the closing bracket.
static const char *argument_end(const char *s) {
    int open = 0;
    for (; *s != '\0' && *s != '\n'; s++) {
        if (open == 0 && (*s == ',' || *s == ')'))
            return s;
        open += *s == '(' || *s == '[';
        open -= *s == ')' || *s == ']';
    }
    return s;
}

static bool same_text(const char *text, const char *s, size_t length) {
    return strlen(text) == length && strncmp(text, s, length) == 0;
}

// A default as the page writes it: 30% for 0.3, `1 step` for 1, `sqrt 2`.
static bool same_default(const char *otherwise, const char *s, size_t length) {
    if (same_text(otherwise, s, length))
        return true;
    bool root = strncmp(s, "sqrt ", 5) == 0;
    char *end, *last;
    double is = strtod(otherwise, &last);
    double said = strtod(s + (root ? 5 : 0), &end);
    if (*last != '\0' || end == s)
        return false;
    said = root ? sqrt(said) : *end == '%' ? said / 100 : said;
    return fabs(said - is) < 1e-9;
}

// Whether an argument is written as `name` or `name=default`; any default or
// none is valid if it depends on other arguments.
static bool argument_agrees(const ParamInfo *p, const char *s,
                            const char *end) {
    size_t length = strlen(p->name);
    if (strncmp(s, p->name, length) != 0 ||
        (s[length] != '=' && s + length != end))
        return false;
    s += length;
    if (p->otherwise == NULL || *p->otherwise == '\0')
        return p->otherwise != NULL || s == end;
    return *s == '=' &&
           same_default(p->otherwise, s + 1, (size_t)(end - s - 1));
}

// Whether the signature at s, behind its opening bracket, is one of b, except
// arguments whose default depends on others; marks the parameters found.  The
// image of a view is implicit.
static bool signature_agrees(const Builtin *b, const char *s, bool *seen) {
    int count = builtin_num_params(b);
    const ParamInfo *p = &param_info[b->first];
    int first = b->class == EVAL_VIEW;
    seen[0] |= first;
    for (int i = first; i < count; i++) {
        if (p[i].kind == KNOTS)
            return seen[i] = true;
        const char *end = argument_end(s);
        if (argument_agrees(&p[i], s, end)) {
            seen[i] = true;
            s = end + (*end == ',' ? 2 : 0);
        } else if (p[i].otherwise == NULL || *p[i].otherwise != '\0') {
            return false;
        }
    }
    return *s == ')';
}

// Whether the page's entry of b is right and complete.
static bool is_documented(const Builtin *b, const char *doc, const char *mark) {
    enum { MAX_PARAMS = 32 };
    bool seen[MAX_PARAMS] = {false};
    int count = builtin_num_params(b);
    ck_assert_int_le(count, MAX_PARAMS);
    bool all = false;
    for (const char *s = strstr(doc, mark); s != NULL && !all;
         s = strstr(s + 1, mark)) {
        bool agrees = s[strlen(mark) - 1] == '`' ||
                      signature_agrees(b, s + strlen(mark), seen);
        all = agrees;
        for (int i = b->class == EVAL_VIEW; i < count; i++)
            all &= seen[i];
    }
    return all;
}

static const char *signature_of(Arena *a, const Builtin *b) {
    Text t = text_new(a);
    text_add(&t, "`%s(", b->name);
    for (int i = 0; i < builtin_num_params(b); i++) {
        const ParamInfo *p = &param_info[(int)b->first + i];
        text_add(&t, "%s%s", i ? ", " : "", p->name);
        if (p->otherwise != NULL)
            text_add(&t, "=%s", *p->otherwise ? p->otherwise : "...");
    }
    text_add(&t, ")`");
    return text_string(&t);
}

START_TEST(functions_are_documented) {
    Arena *a = arena_new();
    const Builtin *b = &builtin_info[_i];
    const char *doc = read_text(a, "docs/language.md");
    bool found = is_documented(b, doc, arena_format(a, "`%s(", b->name)) ||
                 is_documented(b, doc, arena_format(a, "`%s`", b->name));
    ck_assert_msg(found, "docs/language.md has no %s", signature_of(a, b));
    arena_free(a);
}
END_TEST

START_TEST(keys_are_documented) {
    Arena *a = arena_new();
    const char *doc = read_text(a, "docs/language.md");
    for (int i = 0; key_name(i) != NULL; i++)
        ck_assert_msg(strstr(doc, arena_format(a, "`%s`", key_name(i))) ||
                          strstr(doc, arena_format(a, "`%s ", key_name(i))),
                      "docs/language.md has no `%s`", key_name(i));
    arena_free(a);
}
END_TEST

// ---- all pages ----

static const char *const folders[] = {"*.md", "docs/*.md", "bench/*.md",
                                      "tests/pytorch/*.md"};

enum { NUM_FOLDERS = sizeof folders / sizeof folders[0] };

// Calls check for each line of the pages of a folder, without fenced examples.
static void each_line(const char *pattern,
                      void check(const char *page, const char *s, size_t n)) {
    Arena *a = arena_new();
    const char *source = getenv("SINTER_SOURCE");
    glob_t found;
    pattern = arena_format(a, "%s/%s", source ? source : ".", pattern);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *why, *page = found.gl_pathv[i];
        const Source *text = source_read(a, page, 1 << 20, &why);
        ck_assert_msg(text != NULL, "%s: %s", page, why);
        bool fenced = false;
        for (const char *s = text->text; *s != '\0';) {
            size_t length = strcspn(s, "\n");
            bool fence = strncmp(s, "```", 3) == 0;
            fenced ^= fence;
            if (!fence && !fenced)
                check(page, s, length);
            s += length + (s[length] == '\n');
        }
    }
    globfree(&found);
    arena_free(a);
}

// Indented by four is an example.
static bool is_example(const char *s) {
    return strspn(s, " ") >= 4;
}

// Columns of a line, without the targets of its links, which have no breaks.
static size_t width_of(const char *s, size_t length) {
    size_t width = 0;
    bool target = false;
    for (size_t i = 0; i < length; i++) {
        target |= i > 0 && s[i - 1] == ']' && s[i] == '(';
        width += !target;
        target &= s[i] != ')';
    }
    return width;
}

static void expect_width(const char *page, const char *s, size_t length) {
    ck_assert_msg(
        s[strspn(s, " ")] == '|' || is_example(s) || width_of(s, length) <= 80,
        "%s: %zu columns: %.*s", page, width_of(s, length), (int)length, s);
}

// ---- docs/ir.md ----

// The example is a golden file, so that it is valid kernel IR.
START_TEST(kernel_ir_example_is_a_kernel) {
    Arena *a = arena_new();
    const char *page = read_text(a, "docs/ir.md");
    const char *kernel = read_text(a, "tests/golden/kernel-ir/chain.kir");
    Text t = text_new(a);
    for (const char *s = kernel; *s; s += strcspn(s, "\n") + 1) {
        text_add(&t, "    ");
        text_bytes(&t, s, strcspn(s, "\n") + 1);
    }
    ck_assert_msg(strstr(page, text_string(&t)) != NULL,
                  "docs/ir.md has no kernel:\n%s", text_string(&t));
    arena_free(a);
}
END_TEST

// ir/ir.h declares the traits of operations from LEAF on.
START_TEST(traits_are_documented) {
    Arena *a = arena_new();
    const char *page = read_text(a, "docs/ir.md");
    const char *s = strstr(read_text(a, "ir/ir.h"), "    LEAF = 1u << 0,");
    ck_assert_ptr_nonnull(s);
    for (; *s != '}'; s += strcspn(s, "\n") + 1) {
        int length = (int)strcspn(s + 4, " =");
        const char *row = arena_format(a, "\n| %.*s | ", length, s + 4);
        ck_assert_msg(strstr(page, row) != NULL, "docs/ir.md has no row:%s",
                      row);
    }
    arena_free(a);
}
END_TEST

// ---- all pages ----

// A row of a table is one line of any length.
START_TEST(lines_are_a_page_wide) {
    each_line(folders[_i], expect_width);
}
END_TEST

static void expect_row(const char *page, const char *s, size_t length) {
    bool row = !is_example(s) && s[strspn(s, " ")] == '|';
    ck_assert_msg(!row || s[length - 1] == '|', "%s: no row: %.*s", page,
                  (int)length, s);
}

// A wrapped row is not a table any more.
START_TEST(rows_of_tables_are_lines) {
    each_line(folders[_i], expect_row);
}
END_TEST

Suite *docs_suite(void) {
    Suite *s = suite_create("docs");
    TCase *t = tcase_create("docs");
    tcase_add_test(t, grammar_is_the_parsers);
    tcase_add_loop_test(t, functions_are_documented, 0, NUM_BUILTINS);
    tcase_add_test(t, keys_are_documented);
    tcase_add_test(t, kernel_ir_example_is_a_kernel);
    tcase_add_test(t, traits_are_documented);
    tcase_add_loop_test(t, lines_are_a_page_wide, 0, NUM_FOLDERS);
    tcase_add_loop_test(t, rows_of_tables_are_lines, 0, NUM_FOLDERS);
    suite_add_tcase(s, t);
    return s;
}
