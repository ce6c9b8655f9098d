// Parsing: precedence, ends of statements, chains, and error recovery.
#include "frontend/text/ast.h"
#include "tests/frontend/suites.h"
#include "tests/frontend/tree.h"

#include <string.h>

typedef struct {
    Arena *arena;
    Diagnostics diags;
    File *file;
} Parsed;

static Parsed parsed(const char *text) {
    Parsed p = {.arena = arena_new()};
    p.diags = diag_new(p.arena);
    const Source *s = source_new(p.arena, "t.net", text, strlen(text));
    p.file = parse(p.arena, atoms_new(p.arena), s, &p.diags);
    return p;
}

static const struct {
    const char *text, *tree;
} expressions[] = {
    {"1 + 2 * 3", "(1`+`(2`*`3))"},
    {"1 - 2 - 3", "((1`-`2)`-`3)"},
    {"-x ^ 2", "(`-`(x`^`2))"},
    {"2 ^ 3 ^ 4", "(2`^`(3`^`4))"},
    {"2 ^ -1", "(2`^`(`-`1))"},
    {"a / b * c", "((a`/`b)`*`c)"},
    {"a < b and not c == d or e", "(((a`<`b)`and`(`not`(c`==`d)))`or`e)"},
    {"x |> f |> g(1, k=2) as p", "<x |> f |> g(1, k=2) as p>"},
    {"a + b |> f", "<(a`+`b) |> f>"},
    {"f(x |> g, [1, 2,],)", "f(<x |> g>, [1, 2])"},
    {"p(0: 0, 5/24: 0.4)", "p((0: 0), ((5`/`24): 0.4))"},
    {"5 epoch + 94%", "({5 1}`+`{94 3})"},
    {"data.train", "data.train"},
    {"(2 * n) step", "{(2`*`n) 2}"},
    {"f(1)(2)", "f(1)(2)"},
    {"[i + 1 for i in x]", "[(i`+`1) for i in x]"},
    {"[a: b for a, b in f(x) if a > b]",
     "[(a: b) for a, b in f(x) if (a`>`b)]"},
    {"[[j for j in i] for i in x]", "[[j for j in i] for i in x]"},
    {"if a { b } else { c } + 1", "((if a then b else c)`+`1)"},
    {"-if a { b } else if c { d } else { e }[0]",
     "(`-`{(if a then b else (if c then d else e)) at 0})"},
    {"f(if a == b { [\n1,\n2] }\nelse { x |> g }, k=if c { d } else { e })",
     "f((if (a`==`b) then [1, 2] else <x |> g>), k=(if c then d else e))"},
    {"x |> if a { f } else { g } as p", "<x |> (if a then f else g) as p>"},
    {"f(1)[0][-1]", "{{f(1) at 0} at (`-`1)}"},
};

START_TEST(precedence) {
    Arena *a = arena_new();
    Parsed p = parsed(arena_format(a, "let v = %s\n", expressions[_i].text));
    ck_assert_int_eq(p.diags.errors, 0);
    Text t = text_new(a);
    tree_spell(&t, p.file->item[0].let.value);
    ck_assert_str_eq(text_string(&t), expressions[_i].tree);
    arena_free(p.arena);
    arena_free(a);
}
END_TEST

// The number of statements in a function's body.
static int count_statements(const char *body) {
    Arena *a = arena_new();
    Parsed p = parsed(arena_format(a, "fn f(x) {\n%s\n}\n", body));
    int count = p.diags.errors ? -1 : p.file->item[0].function->body.count;
    arena_free(p.arena);
    arena_free(a);
    return count;
}

START_TEST(statements_end_with_their_line) {
    ck_assert_int_eq(count_statements("a = x\nb = a"), 2);
    ck_assert_int_eq(count_statements("a = x; b = a"), 2);
    ck_assert_int_eq(count_statements("a = x\n  |> f\n  |> g"), 1);
    ck_assert_int_eq(count_statements("a = x\n  + 1"), 1);
    ck_assert_int_eq(count_statements("a = x +\n  1"), 1);
    ck_assert_int_eq(count_statements("a = x\n-a"), 2);
    ck_assert_int_eq(count_statements("a = f\n(a)"), 2);
    ck_assert_int_eq(count_statements("a = f(1,\n  -2,\n  3)"), 1);
    ck_assert_int_eq(count_statements("if a { b } else { c }\nd"), 2);
    ck_assert_int_eq(count_statements("a = if b { c } else { d }\ne"), 2);
    ck_assert_int_eq(count_statements("a = if b {\n c\n}\nelse {\n d\n}\n+ e"),
                     1);
    ck_assert_int_eq(count_statements("a, b = x; a"), 2);
    ck_assert_int_eq(count_statements("a = if b { c\n-d } else { d }"), -1);
    ck_assert_int_eq(count_statements("a = x b = a"), -1);
}
END_TEST

START_TEST(an_item_ends_open_blocks) {
    Parsed p = parsed("model A(x) {\n  x |> f(\n\ntrain A {\n  batch = 1\n}\n");
    ck_assert_int_ge(p.diags.errors, 1);
    ck_assert_int_eq(p.file->item[p.file->count - 1].kind, ITEM_TRAIN);
    ck_assert_int_eq(p.file->item[p.file->count - 1].train.num_entries, 1);
    arena_free(p.arena);
}
END_TEST

START_TEST(errors_name_their_own_line) {
    Parsed p = parsed("fn f(x) {\n a = (1\n b = 2\n c = * 3\n d = ]\n"
                      " e = if a { if b { * } } else { c = 1 }\n}\n"
                      "let = 4\n");
    ck_assert_int_eq(p.diags.errors, 5);
    const int line[] = {3, 4, 5, 6, 8};
    for (int i = 0; i < 5; i++) {
        Span at = p.diags.list[i]->label[0].at;
        ck_assert_int_eq(source_line_column(at.source, at.start).line, line[i]);
    }
    arena_free(p.arena);
}
END_TEST

START_TEST(clauses) {
    Parsed p = parsed("train A {\n eval every 1 epoch on data.test { metrics = "
                      "[loss] }\n checkpoint every 8 epoch keep 2\n eval at "
                      "end\n batch = 5, drop_last\n}\n");
    ck_assert_int_eq(p.diags.errors, 0);
    const Train *t = &p.file->item[0].train;
    ck_assert_int_eq(t->num_entries, 4);
    ck_assert_int_eq(t->entry[0].num_keys, 1);
    ck_assert_ptr_nonnull(t->entry[0].on);
    ck_assert_ptr_nonnull(t->entry[1].keep);
    ck_assert_ptr_null(t->entry[2].every);
    ck_assert_str_eq(t->entry[3].flag[0], "drop_last");
    arena_free(p.arena);
}
END_TEST

Suite *parse_suite(void) {
    Suite *s = suite_create("parse");
    TCase *t = tcase_create("parse");
    tcase_add_loop_test(t, precedence, 0,
                        sizeof expressions / sizeof expressions[0]);
    tcase_add_test(t, statements_end_with_their_line);
    tcase_add_test(t, an_item_ends_open_blocks);
    tcase_add_test(t, errors_name_their_own_line);
    tcase_add_test(t, clauses);
    suite_add_tcase(s, t);
    return s;
}
