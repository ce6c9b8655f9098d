// Runs the suites of the passes.
#include "tests/passes/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *r = srunner_create(autodiff_suite());
    srunner_add_suite(r, direct_conv_suite());
    srunner_add_suite(r, direct_matmul_suite());
    srunner_add_suite(r, canonicalize_suite());
    srunner_add_suite(r, batch_invariant_suite());
    srunner_add_suite(r, gradcheck_suite());
    srunner_add_suite(r, optimizer_suite());
    srunner_add_suite(r, numbers_suite());
    srunner_add_suite(r, conventions_suite());
    srunner_add_suite(r, expand_suite());
    srunner_add_suite(r, precision_suite());
    srunner_add_suite(r, average_suite());
    srunner_add_suite(r, layout_suite());
    srunner_add_suite(r, derive_suite());
    srunner_add_suite(r, shards_suite());
    srunner_add_suite(r, short_suite());
    srunner_add_suite(r, simplify_suite());
    srunner_add_suite(r, conv_reductions_suite());
    srunner_add_suite(r, dce_suite());
    srunner_add_suite(r, stack_sums_suite());
    srunner_add_suite(r, decode_suite());
    srunner_add_suite(r, fuse_suite());
    srunner_add_suite(r, group_suite());
    srunner_add_suite(r, inplace_suite());
    srunner_add_suite(r, bit_packing_suite());
    srunner_add_suite(r, library_fusion_suite());
    srunner_add_suite(r, merged_launch_suite());
    srunner_add_suite(r, schedule_suite());
    srunner_add_suite(r, rematerialize_suite());
    srunner_add_suite(r, memory_suite());
    srunner_add_suite(r, offset_assignment_suite());
    srunner_add_suite(r, cost_suite());
    srunner_add_suite(r, compile_suite());
    srunner_add_suite(r, pipeline_suite());
    srunner_add_suite(r, rules_suite());
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
