// Runs the suites of ir.

#include "tests/ir/suites.h"

#include <stdlib.h>
#include <string.h>

Graph *graph_of(Arena *a, const char *body) {
    const char *error;
    char *text = arena_format(a, "graph test {\n%s}\n", body);
    Graph *g = graph_read(a, text, strlen(text), &error);
    ck_assert_msg(g != NULL, "%s in\n%s", error, text);
    return g;
}

int main(void) {
    SRunner *runner = srunner_create(type_suite());
    srunner_add_suite(runner, graph_suite());
    srunner_add_suite(runner, shape_suite());
    srunner_add_suite(runner, read_suite());
    srunner_add_suite(runner, verify_suite());
    srunner_add_suite(runner, eval_suite());
    srunner_add_suite(runner, samples_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
