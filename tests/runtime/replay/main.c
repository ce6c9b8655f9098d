// Runs the suites of replay.
#include "tests/runtime/replay/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *runner = srunner_create(replay_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
