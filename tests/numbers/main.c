// Runs the suites that PyTorch judges.
#include "tests/numbers/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *r = srunner_create(layers_suite());
    srunner_add_suite(r, cases_suite());
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
