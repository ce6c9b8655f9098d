// The modules of std/: they parse, are formatted, and agree with the table of
// builtins.
#include "frontend/expand/expand.h"
#include "tests/frontend/suites.h"

#include <stdlib.h>
#include <string.h>

static File *module_parse(Arena *a, const char *path) {
    Diagnostics diags = diag_new(a);
    const char *text = std_text(path);
    const Source *s = source_new(a, path, text, strlen(text));
    File *f = parse(a, atoms_new(a), s, &diags);
    ck_assert_int_eq(diags.errors, 0);
    return f;
}

static const Function *function_named(const File *f, const char *name) {
    for (int i = 0; i < f->count; i++)
        if (f->item[i].function && strcmp(f->item[i].function->name, name) == 0)
            return f->item[i].function;
    return NULL;
}

// A default as in builtins.def: `none` depends on other arguments.
static void expect_default(const ParamInfo *p, const Param *param) {
    const Expr *x = param->otherwise;
    ck_assert_str_eq(param->name, p->name);
    ck_assert_msg((p->otherwise == NULL) == (x == NULL), "%s", p->name);
    if (x == NULL)
        return;
    if (x->kind == EXPR_NUMBER)
        ck_assert(*p->otherwise && x->number == strtod(p->otherwise, NULL));
    else if (strcmp(x->text, "none") == 0)
        ck_assert_str_eq(p->otherwise, "");
    else
        ck_assert_str_eq(p->otherwise, x->text);
}

START_TEST(builtins_are_declared) {
    const Builtin *b = &builtin_info[_i];
    if (b->module == NULL)
        return;
    Arena *a = arena_new();
    ck_assert_ptr_nonnull(std_text(b->module));
    const Function *f = function_named(module_parse(a, b->module), b->name);
    ck_assert_msg(f != NULL, "%s has no `fn %s(...) = native`", b->module,
                  b->name);
    ck_assert(function_is_native(f));
    ck_assert_msg(f->num_params == builtin_num_params(b),
                  "%s: other parameters of %s", b->module, b->name);
    for (int i = 0; i < f->num_params; i++)
        expect_default(&param_info[(int)b->first + i], &f->param[i]);
    arena_free(a);
}
END_TEST

static bool says_native(const Function *f) {
    const Expr *x = f->body.count == 1 ? f->body.stmt[0].value : NULL;
    return x != NULL && x->kind == EXPR_NAME && strcmp(x->text, "native") == 0;
}

START_TEST(natives_are_builtins) {
    Arena *a = arena_new();
    for (int m = 0; std_path(m) != NULL; m++) {
        const File *f = module_parse(a, std_path(m));
        for (int i = 0; i < f->count; i++) {
            const Function *function = f->item[i].function;
            ck_assert_msg(function == NULL || !says_native(function) ||
                              function_is_native(function),
                          "%s", function->name);
        }
    }
    arena_free(a);
}
END_TEST

// A file in a folder of that name is not the compiler's.
START_TEST(natives_are_in_modules) {
    static const char text[] = "fn mine(x) = native\n"
                               "let y = mine(1)\n";
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    frontend_parse(a, "std/mine.net", text, strlen(text), NULL, 0, &diags);
    ck_assert_int_gt(diags.count, 0);
    ck_assert_str_eq(diags.list[0]->code, "E0201");
    arena_free(a);
}
END_TEST

START_TEST(modules_are_laid_out) {
    Arena *a = arena_new();
    for (int m = 0; std_path(m) != NULL; m++) {
        Diagnostics diags = diag_new(a);
        Text t = text_new(a);
        const char *text = std_text(std_path(m));
        ck_assert(
            frontend_format(a, std_path(m), text, strlen(text), &t, &diags));
        ck_assert_str_eq(text_string(&t), text);
    }
    arena_free(a);
}
END_TEST

Suite *std_suite(void) {
    Suite *s = suite_create("std");
    TCase *t = tcase_create("std");
    tcase_add_loop_test(t, builtins_are_declared, 0, NUM_BUILTINS);
    tcase_add_test(t, natives_are_builtins);
    tcase_add_test(t, natives_are_in_modules);
    tcase_add_test(t, modules_are_laid_out);
    suite_add_tcase(s, t);
    return s;
}
