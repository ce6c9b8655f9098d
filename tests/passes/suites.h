// The suites of this folder, one for each check_*.c and for gradcheck.c.
#ifndef TESTS_PASSES_SUITES_H
#define TESTS_PASSES_SUITES_H

#include <check.h>

Suite *autodiff_suite(void);
Suite *average_suite(void);
Suite *bit_packing_suite(void);
Suite *direct_conv_suite(void);
Suite *direct_matmul_suite(void);
Suite *canonicalize_suite(void);
Suite *batch_invariant_suite(void);
Suite *compile_suite(void);
Suite *conventions_suite(void);
Suite *cost_suite(void);
Suite *expand_suite(void);
Suite *fuse_suite(void);
Suite *gradcheck_suite(void);
Suite *group_suite(void);
Suite *derive_suite(void);
Suite *inplace_suite(void);
Suite *layout_suite(void);
Suite *memory_suite(void);
Suite *numbers_suite(void);
Suite *optimizer_suite(void);
Suite *offset_assignment_suite(void);
Suite *pipeline_suite(void);
Suite *precision_suite(void);
Suite *dce_suite(void);
Suite *stack_sums_suite(void);
Suite *decode_suite(void);
Suite *rematerialize_suite(void);
Suite *library_fusion_suite(void);
Suite *rules_suite(void);
Suite *merged_launch_suite(void);
Suite *schedule_suite(void);
Suite *shards_suite(void);
Suite *short_suite(void);
Suite *simplify_suite(void);
Suite *conv_reductions_suite(void);

#endif
