// Memory limit: the error if no plan fits, and the largest batch that does.
#include "tools/tools.h"

#include <inttypes.h>

enum { MOST_BATCH = 1 << 30 };

// Whether the model compiles with another batch, and fits.
static bool batch_fits(const Arguments *arguments, int64_t batch, bool keep) {
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Setting set[MAX_SETTINGS + 1];
    int count = 0;
    bool fits = false;
    for (; count < arguments->num_settings; count++)
        set[count] = arguments->set[count];
    set[count++] = (Setting){"batch", arena_format(a, "%" PRId64, batch)};
    Program *p = frontend_load(a, arguments->operand[0], set, count, &diags);
    if (p != NULL) {
        if (keep)
            p->recipe.recompute = RECOMPUTE_NONE;
        PassOptions o = plan_options(p, arguments, target_of(arguments));
        fits = program_fits(p, &o);
    }
    arena_free(a);
    return fits;
}

int64_t batch_largest(const Arguments *arguments, const Program *p,
                      int64_t memory, bool keep) {
    Arguments within = *arguments;
    int64_t shards = p->recipe.shards > 0 ? p->recipe.shards : 1;
    int64_t fits = 0, over = 1, batch = p->recipe.batch;
    within.memory = memory;
    while (over < MOST_BATCH && batch_fits(&within, shards * over, keep)) {
        fits = over;
        over = over < batch ? batch : 2 * over;
    }
    while (over - fits > 1) {
        int64_t middle = fits + (over - fits) / 2;
        if (batch_fits(&within, shards * middle, keep))
            fits = middle;
        else
            over = middle;
    }
    return shards * fits;
}

static const char *advice(Arena *a, const Arguments *arguments,
                          const Program *p) {
    int64_t batch = batch_largest(arguments, p, arguments->memory, false);
    return batch > 0
               ? arena_format(a, "a batch of %" PRId64 " would fit", batch)
               : "no batch would fit";
}

bool plan_fits(Arena *a, const Arguments *arguments, const Program *p,
               const Plan *plan) {
    if (arguments->memory == 0 || plan->arena_bytes <= arguments->memory)
        return true;
    Scaled need = bytes_scaled(plan->arena_bytes);
    Scaled room = bytes_scaled(arguments->memory);
    complain(arguments,
             "a batch of %" PRId64 " needs %.1f %s of memory in the plan for "
             "%s%s, but the limit is %.1f %s; %s",
             recipe_batch(&p->recipe), need.count, need.unit, plan->device,
             p->recipe.recompute == RECOMPUTE_NONE
                 ? " with `recompute = none`"
                 : ", even with rematerialization",
             room.count, room.unit, advice(a, arguments, p));
    return false;
}
