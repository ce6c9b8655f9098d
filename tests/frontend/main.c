// Runs the suites of the front end, and loads models for them.
#include "tests/frontend/suites.h"

#include <stdlib.h>
#include <string.h>

Loaded load_with(const char *body, const char *keys, const Setting *setting,
                 int num_settings) {
    Loaded l = {.arena = arena_new()};
    l.diags = diag_new(l.arena);
    const char *text = arena_format(
        l.arena,
        "import \"std/vision.net\" { random_crop, flip_lr, cutout }\n"
        "model Tiny(image: u8[N, 4, 4, 1]%s) -> f32[N, 2] {\n%s\n}\n"
        "train Tiny {\n data = synthetic()\n batch = 4, drop_last\n"
        " epochs = 2\n loss = sum(cross_entropy(output, label))\n"
        " optimizer = sgd(lr=lr)\n lr = 0.1\n%s\n}\n",
        strstr(body, "width") ? ", width=8" : "", body, keys);
    l.program = frontend_parse(l.arena, "tiny.net", text, strlen(text), setting,
                               num_settings, &l.diags);
    return l;
}

Loaded load_model(const char *body, const char *keys) {
    return load_with(body, keys, NULL, 0);
}

Loaded load_text(const char *text) {
    Loaded l = {.arena = arena_new()};
    l.diags = diag_new(l.arena);
    l.program = frontend_parse(l.arena, "text.net", text, strlen(text), NULL, 0,
                               &l.diags);
    return l;
}

const char *codes_of(Loaded *l) {
    Text t = text_new(l->arena);
    for (int i = 0; i < l->diags.count; i++)
        text_add(&t, "%s%s", i ? " " : "", l->diags.list[i]->code);
    return text_string(&t);
}

int main(void) {
    SRunner *runner = srunner_create(lex_suite());
    srunner_add_suite(runner, parse_suite());
    srunner_add_suite(runner, expand_suite());
    srunner_add_suite(runner, lower_suite());
    srunner_add_suite(runner, layers_suite());
    srunner_add_suite(runner, recipe_suite());
    srunner_add_suite(runner, loss_suite());
    srunner_add_suite(runner, initial_suite());
    srunner_add_suite(runner, schedule_suite());
    srunner_add_suite(runner, limits_suite());
    srunner_add_suite(runner, augment_suite());
    srunner_add_suite(runner, augment_std_suite());
    srunner_add_suite(runner, transform_suite());
    srunner_add_suite(runner, format_suite());
    srunner_add_suite(runner, diagnostics_suite());
    srunner_add_suite(runner, foreign_suite());
    srunner_add_suite(runner, std_suite());
    srunner_add_suite(runner, editors_suite());
    srunner_add_suite(runner, docs_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
