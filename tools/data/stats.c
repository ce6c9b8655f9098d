// sinter data stats and verify: the data set of a model file.
#include "runtime/stats.h"
#include "base/exits.h"
#include "tools/data/data.h"
#include "tools/trainer.h"

int data_stats(Arena *a, const Arguments *arguments, bool verify) {
    Diagnostics diags = diag_new(a);
    int status;
    if (arguments->num_operands != 2) {
        complain(arguments, "data %s needs one model file",
                 arguments->operand[0]);
        return EXIT_USAGE;
    }
    const Program *p = model_load(a, arguments, &diags, &status);
    if (p == NULL)
        return status;
    DataDescription d;
    data_describe(p, &d);
    return rt_data_stats(&d.trainer, arguments->data, verify);
}
