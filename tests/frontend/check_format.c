// Formatting: the layout, and no other change.
//
// Each model file of the repository is formatted, then again with its spaces
// and empty lines rearranged at random: both give the same layout, with the
// same tree and the same comments.
#include "tests/frontend/suites.h"
#include "tests/frontend/tree.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Text text;
    Diagnostics diags;
    bool good;
} Formatted;

static Formatted formatted(const char *text, size_t length) {
    Formatted f = {.arena = arena_new()};
    f.diags = diag_new(f.arena);
    f.text = text_new(f.arena);
    f.good = frontend_format(f.arena, "t.net", text, length, &f.text, &f.diags);
    return f;
}

static void expect_format(const char *text, const char *expected) {
    Formatted f = formatted(text, strlen(text));
    ck_assert(f.good);
    ck_assert_str_eq(text_string(&f.text), expected);
    arena_free(f.arena);
}

static const struct {
    const char *text, *layout;
} spacing[] = {
    {"-a*(b+c)/d^-2", "-a * (b + c) / d^-2"},
    {"a- -b", "a - -b"},
    {"a*[b*c]", "a * [b * c]"},
    {"not(a==b)and c", "not (a == b) and c"},
    {"1 / 8", "1/8"},
    {"a * 1/8 ^ 2", "a * 1 / 8^2"},
    {"1 / 8*a", "1/8 * a"},
    {"f(a=b / c, d=b / c*e, g=2 * 3/4, h=1 / 2*c, i=b ^ 2*c, j=2 * f(x))",
     "f(a=b/c, d=b / c * e, g=2*3/4, h=1/2 * c, i=b^2 * c, j=2 * f(x))"},
    {"1/2 epoch", "1 / 2 epoch"},
    {"f ( x,[ 1,2, ],k = a / b * 2+1 , m=(a/b) )",
     "f(x, [1, 2,], k=a / b * 2 + 1, m=(a / b))"},
    {"p(0:0,5 / 24 :0.4,1 :0)", "p(0: 0, 5/24: 0.4, 1: 0)"},
    {"5 %+300   step", "5% + 300 step"},
    {"x|>f|>g( 1 )as h", "x |> f |> g(1) as h"},
    {"data . train", "data.train"},
    {"a @ b", "a @ b"},
    {"[-i/2 for i,j in[[1,2]]if not(i>j)]",
     "[-i / 2 for i, j in [[1, 2]] if not (i > j)]"},
    {"if(a){-b}else if c{[1]}else{d} [0]",
     "if (a) { -b } else if c { [1] } else { d }[0]"},
    {"f(k=if a{b/c}else{2*d})", "f(k=if a { b / c } else { 2 * d })"},
    {"\"a  #b\"", "\"a  #b\""},
};

START_TEST(tokens_are_spaced) {
    Arena *a = arena_new();
    expect_format(arena_format(a, "let v=%s", spacing[_i].text),
                  arena_format(a, "let v = %s\n", spacing[_i].layout));
    arena_free(a);
}
END_TEST

static const struct {
    const char *text, *layout;
} layouts[] = {
    {"", ""},
    {"\n\n# only\n\n\n# this\n", "# only\n\n# this\n"},
    {"let a=1;let b=2;\n", "let a = 1; let b = 2\n"},
    {"let a=1\nlet bcd=2\n\nlet ef=3",
     "let a   = 1\nlet bcd = 2\n\nlet ef = 3\n"},
    {"fn f(x)\n{\n\nh=x\n-h}", "fn f(x) {\n  h = x\n  -h\n}\n"},
    {"fn f(x){h=x;-h;}", "fn f(x) { h = x; -h }\n"},
    {"fn f(x){if a{x}\nelse\n{x}}", "fn f(x) { if a { x } else { x } }\n"},
    {"fn f(x){if a{x}#c\nelse\n{x\n}}",
     "fn f(x) {\n  if a { x }  #c\n    else {\n    x\n  }\n}\n"},
    {"fn f(x)=x|>g\n|>h\n# c\n|>i",
     "fn f(x) = x |> g\n            |> h\n            # c\n            |> i\n"},
    {"fn f(x){x\n|>g as a#1\n|>gg(\n1,\n2)as b\n|>k   # 2\n|>l(a,\nb) as d\n}",
     "fn f(x) {\n  x\n    |> g    as a  #1\n    |> gg(\n      1,\n"
     "      2)    as b\n    |> k  # 2\n    |> l(a,\n         b) as d\n}\n"},
    {"fn f(x){a,b=if x{\n1}\nelse{2\n}\n|>g\na}",
     "fn f(x) {\n  a, b = if x {\n    1\n  } else {\n    2\n  }\n"
     "    |> g\n  a\n}\n"},
    {"let a=f(1,if b{\n2}else{\n3},[c\nfor c in d])",
     "let a = f(1, if b {\n            2\n          } else {\n            3\n"
     "          }, [c\n                for c in d])\n"},
    {"train X{a=if b{1}else{\n2}\nbcd=2}",
     "train X {\n  a   = if b { 1 } else {\n    2\n  }\n  bcd = 2\n}\n"},
    {"import \"a\"{b,c}\nimport \"d\"\n{e,\nf\n}",
     "import \"a\" { b, c }\nimport \"d\" { e,\n             f\n             "
     "}\n"},
    {"train X{a=1\nbcd=2,e\n\nf=3#c\neval at end{x=1\nyy=2}\nghi=4#d\n}",
     "train X {\n  a   = 1\n  bcd = 2, e\n\n  f   = 3  #c\n"
     "  eval at end {\n    x  = 1\n    yy = 2\n  }\n  ghi = 4  #d\n}\n"},
};

START_TEST(lines_are_laid_out) {
    expect_format(layouts[_i].text, layouts[_i].layout);
}
END_TEST

START_TEST(syntax_errors_are_reported) {
    Formatted f = formatted("let a = (", 9);
    ck_assert(!f.good);
    ck_assert_int_eq(f.diags.errors, 1);
    ck_assert_int_eq((int)f.text.length, 0);
    arena_free(f.arena);
}
END_TEST

// ---- every model file ----

static const char *const folders[] = {
    "models/*.net",
    "tests/codegen/nets/*.net",
    "tests/end_to_end/*.net",
    "tests/golden/accept/*.net",
    "tests/golden/reject/*.net",
};

static glob_t files;

// No test runs yet, so a failure has no test.
static void files_find(void) {
    const char *source = getenv("SINTER_SOURCE");
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char *pattern =
            arena_format(a, "%s/%s", source ? source : ".", folders[i]);
        if (glob(pattern, i ? GLOB_APPEND : 0, NULL, &files) != 0)
            abort();
    }
    arena_free(a);
}

static const char *tree_of(Arena *a, const char *text, size_t length) {
    Diagnostics diags = diag_new(a);
    const Source *s = source_new(a, "t.net", text, length);
    Text t = text_new(a);
    const File *f = parse(a, atoms_new(a), s, &diags);
    if (diags.errors > 0)
        return NULL;
    tree_print(&t, f);
    return text_string(&t);
}

// Comments of a text, one per line.
static const char *comments_of(Arena *a, const char *text) {
    Text t = text_new(a);
    bool quoted = false;
    for (const char *s = text; *s != '\0'; s++) {
        quoted ^= *s == '"';
        if (*s != '#' || quoted)
            continue;
        size_t length = strcspn(s, "\n");
        text_add(&t, "%.*s\n", (int)length, s);
        s += length - 1;
    }
    return text_string(&t);
}

// The text with spaces added between tokens, and empty lines moved or doubled.
static const char *rearranged(Arena *a, const char *text, uint32_t state) {
    Text t = text_new(a);
    bool quoted = false, comment = false;
    for (const char *s = text; *s != '\0'; s++) {
        state = state * 1664525u + 1013904223u;
        quoted ^= *s == '"' && !comment;
        comment = *s != '\n' && (comment || (*s == '#' && !quoted));
        bool free = !quoted && !comment;
        bool blank = *s == ' ' || *s == '\n';
        if (free && blank && state >> 30 == 0)
            text_add(&t, "%*s", (int)(state >> 20 & 7), "");
        text_bytes(&t, s, 1);
        if (free && *s == '\n' && s[1] == '\n' && state >> 31)
            text_add(&t, "\n\n");
    }
    return text_string(&t);
}

// All files are formatted, except those with errors and quoted examples.
static bool is_laid_out(const char *path) {
    return strstr(path, "/reject/") == NULL &&
           strstr(path, "/example-") == NULL;
}

START_TEST(files_keep_their_tree) {
    Arena *a = arena_new();
    const char *why;
    const char *path = files.gl_pathv[_i];
    const Source *s = source_read(a, path, 1 << 20, &why);
    ck_assert_ptr_nonnull(s);
    const char *tree = tree_of(a, s->text, s->length);
    Formatted f = formatted(s->text, s->length);
    ck_assert_msg(f.good == (tree != NULL), "%s", path);
    if (is_laid_out(path))
        ck_assert_msg(strcmp(s->text, text_string(&f.text)) == 0,
                      "sinter fmt %s", path);
    if (f.good) {
        const char *text = text_string(&f.text);
        ck_assert_str_eq(tree_of(a, text, f.text.length), tree);
        ck_assert_str_eq(comments_of(a, text), comments_of(a, s->text));
        expect_format(text, text);
        for (uint32_t i = 0; i < 5; i++)
            expect_format(rearranged(a, s->text, i), text);
    }
    arena_free(f.arena);
    arena_free(a);
}
END_TEST

// A wide line indents its continuation by a bound, not by its width.
START_TEST(layout_is_linear) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "let a = f(");
    for (int i = 0; i < 50000; i++)
        text_add(&t, "b, ");
    text_add(&t, "[\n");
    for (int i = 0; i < 50000; i++)
        text_add(&t, "1,\n");
    text_add(&t, "])\n");
    Formatted f = formatted(text_string(&t), t.length);
    ck_assert(f.good);
    ck_assert_uint_lt(f.text.length, 1 << 20);
    arena_free(f.arena);
    arena_free(a);
}
END_TEST

Suite *format_suite(void) {
    files_find();
    Suite *s = suite_create("format");
    TCase *t = tcase_create("format");
    tcase_add_loop_test(t, tokens_are_spaced, 0,
                        sizeof spacing / sizeof spacing[0]);
    tcase_add_loop_test(t, lines_are_laid_out, 0,
                        sizeof layouts / sizeof layouts[0]);
    tcase_add_test(t, syntax_errors_are_reported);
    tcase_add_loop_test(t, files_keep_their_tree, 0, (int)files.gl_pathc);
    tcase_add_test(t, layout_is_linear);
    suite_add_tcase(s, t);
    return s;
}
