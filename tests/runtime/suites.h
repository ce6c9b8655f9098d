// The suites of the runtime, one for each check_*.c.
#ifndef TESTS_RUNTIME_SUITES_H
#define TESTS_RUNTIME_SUITES_H

#include <check.h>

Suite *shuffle_suite(void);
Suite *options_suite(void);
Suite *json_suite(void);
Suite *data_suite(void);
Suite *holdout_suite(void);
Suite *npy_suite(void);
Suite *image_table_suite(void);
Suite *tokens_suite(void);
Suite *image_folder_suite(void);
Suite *webdataset_suite(void);
Suite *lmdb_suite(void);
Suite *loader_suite(void);
Suite *library_call_cost_suite(void);
Suite *library_suite(void);
Suite *host_suite(void);
Suite *merged_launch_suite(void);
Suite *factor_suite(void);
Suite *fusions_suite(void);
Suite *onednn_suite(void);
Suite *checkpoint_suite(void);
Suite *weights_suite(void);
Suite *retention_suite(void);
Suite *train_suite(void);
Suite *resume_suite(void);
Suite *skipped_suite(void);
Suite *failures_suite(void);
Suite *steps_suite(void);
Suite *signals_suite(void);
Suite *output_suite(void);
Suite *sums_suite(void);

#endif
