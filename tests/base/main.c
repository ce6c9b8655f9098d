// Runs the suites of base.
#include "tests/base/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *runner = srunner_create(arena_suite());
    srunner_add_suite(runner, text_suite());
    srunner_add_suite(runner, source_suite());
    srunner_add_suite(runner, diag_suite());
    srunner_add_suite(runner, json_suite());
    srunner_add_suite(runner, terminal_suite());
    srunner_add_suite(runner, options_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
