#include "tests/codegen/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *runner = srunner_create(agree_suite());
    srunner_add_suite(runner, average_suite());
    srunner_add_suite(runner, pointwise_suite());
    srunner_add_suite(runner, fma_suite());
    srunner_add_suite(runner, tree_suite());
    srunner_add_suite(runner, parametrize_suite());
    srunner_add_suite(runner, program_suite());
    srunner_add_suite(runner, sums_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
