// The runtime's tests.  CK_RUN_SUITE=loader runs one suite of them.

#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *runner = srunner_create(shuffle_suite());
    srunner_add_suite(runner, options_suite());
    srunner_add_suite(runner, json_suite());
    srunner_add_suite(runner, data_suite());
    srunner_add_suite(runner, holdout_suite());
    srunner_add_suite(runner, npy_suite());
    srunner_add_suite(runner, image_table_suite());
    srunner_add_suite(runner, tokens_suite());
    srunner_add_suite(runner, image_folder_suite());
    srunner_add_suite(runner, webdataset_suite());
    srunner_add_suite(runner, lmdb_suite());
    srunner_add_suite(runner, loader_suite());
    srunner_add_suite(runner, library_call_cost_suite());
    srunner_add_suite(runner, library_suite());
    srunner_add_suite(runner, host_suite());
    srunner_add_suite(runner, merged_launch_suite());
    srunner_add_suite(runner, factor_suite());
    srunner_add_suite(runner, fusions_suite());
    srunner_add_suite(runner, onednn_suite());
    srunner_add_suite(runner, checkpoint_suite());
    srunner_add_suite(runner, weights_suite());
    srunner_add_suite(runner, retention_suite());
    srunner_add_suite(runner, train_suite());
    srunner_add_suite(runner, resume_suite());
    srunner_add_suite(runner, skipped_suite());
    srunner_add_suite(runner, failures_suite());
    srunner_add_suite(runner, steps_suite());
    srunner_add_suite(runner, signals_suite());
    srunner_add_suite(runner, output_suite());
    srunner_add_suite(runner, sums_suite());
    place_open();
    srunner_run_all(runner, CK_ENV);
    place_close();
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
