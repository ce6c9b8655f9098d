// The runtime's tests.  CK_RUN_SUITE=loader runs one suite of them,
// RUNTIME_PART=0 or 1 every second: most of them wait for runs that they start,
// so that two tests of ctest take half the time.

#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdbool.h>
#include <stdlib.h>

// clang-format off
static Suite *(*const suites[])(void) = {
    shuffle_suite, options_suite, json_suite, data_suite, holdout_suite,
    npy_suite, image_table_suite, tokens_suite, image_folder_suite,
    webdataset_suite, lmdb_suite, loader_suite, library_call_cost_suite,
    library_suite, host_suite, merged_launch_suite, factor_suite, fusions_suite,
    onednn_suite, checkpoint_suite, weights_suite, retention_suite, train_suite,
    resume_suite, skipped_suite, failures_suite, steps_suite, signals_suite,
    output_suite, sums_suite};
// clang-format on
enum { NUM_SUITES = sizeof suites / sizeof *suites };

int main(void) {
    const char *part = getenv("RUNTIME_PART");
    bool all = part == NULL || getenv("CK_RUN_SUITE") != NULL;
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; i < NUM_SUITES; i++)
        if (all || i % 2 == atoi(part))
            srunner_add_suite(runner, suites[i]());
    place_open();
    srunner_run_all(runner, CK_ENV);
    place_close();
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
