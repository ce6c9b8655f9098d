// Memory limit: the error if no plan fits, and the largest batch that does.
#include "tools/tools.h"

#include <inttypes.h>

enum { MAX_BATCH = 1 << 30 };

// The model with another batch, or NULL if it does not compile with it.
static Program *with_batch(Arena *a, const Arguments *arguments,
                           int64_t batch) {
    Diagnostics diags = diag_new(a);
    Setting set[MAX_SETTINGS + 1];
    int count = 0;
    for (; count < arguments->num_settings; count++)
        set[count] = arguments->set[count];
    set[count++] = (Setting){"batch", arena_format(a, "%" PRId64, batch)};
    return frontend_load(a, arguments->operand[0], set, count, &diags);
}

static bool batch_compiles(const Arguments *arguments, int64_t batch) {
    Arena *a = arena_new();
    bool compiles = with_batch(a, arguments, batch) != NULL;
    arena_free(a);
    return compiles;
}

static bool batch_fits(const Arguments *arguments, int64_t batch, bool keep) {
    Arena *a = arena_new();
    Program *p = with_batch(a, arguments, batch);
    bool fits = false;
    if (p != NULL) {
        if (keep)
            p->recipe.recompute = RECOMPUTE_NONE;
        PassOptions o = plan_options(p, arguments, target_of(arguments));
        fits = program_fits(p, &o);
    }
    arena_free(a);
    return fits;
}

// The least batch that compiles, of those that divide the recipe's: splits of a
// batch, as for ghost batches, divide both.
static int64_t least_batch(const Arguments *arguments, int64_t shards,
                           int64_t batch) {
    for (int64_t unit = 1; unit < batch; unit++)
        if (batch % unit == 0 && batch_compiles(arguments, shards * unit))
            return unit;
    return batch;
}

// Batches that are multiples of `unit` and, if `whole` is not 0, divide it.
typedef struct {
    const Arguments *within;
    int64_t unit, whole;
    bool keep;
} Search;

// The largest of these batches of at most unit * count; 0: there is none.
static int64_t batch_below(const Search *s, int64_t count) {
    while (s->whole > 0 && count > 0 && s->whole % (s->unit * count) != 0)
        count--;
    return s->unit * count;
}

static bool count_fits(const Search *s, int64_t count) {
    return batch_fits(s->within, batch_below(s, count), s->keep);
}

// The largest batch that fits: steps that double lead from `start` to numbers
// on both sides of it, and halves between them to it.
static int64_t search(const Search *s, int64_t start, int64_t step) {
    int64_t most = s->whole > 0 ? s->whole / s->unit + 1 : MAX_BATCH / s->unit;
    int64_t fits = 0, over = start;
    while (over < most && count_fits(s, over)) {
        fits = over;
        over += step;
        step *= 2;
    }
    while (fits == 0 && over > 1) {
        int64_t less = over > step ? over - step : over / 2;
        if (count_fits(s, less))
            fits = less;
        else
            over = less;
        step *= 2;
    }
    over = over < most ? over : most;
    while (over - fits > 1) {
        int64_t middle = fits + (over - fits) / 2;
        if (count_fits(s, middle))
            fits = middle;
        else
            over = middle;
    }
    return batch_below(s, fits);
}

// Estimates of kernels take most of the time of a plan and change its memory
// little, so that the search with them starts at the result of one without.
int64_t batch_largest(const Arguments *arguments, const Program *p,
                      int64_t memory, bool keep) {
    Arguments within = *arguments;
    int64_t shards = p->recipe.shards > 0 ? p->recipe.shards : 1;
    int64_t least = least_batch(arguments, shards, p->recipe.batch);
    int64_t start = p->recipe.batch / least;
    Search s = {&within, shards * least, 0, keep};
    if (p->recipe.whole_eval != NULL)
        s.whole = shards * p->recipe.eval_samples;
    within.memory = memory;
    within.time_model = (TimeModel){0};
    int64_t largest = search(&s, start, start) / s.unit;
    if (arguments->time_model.times == NULL)
        return s.unit * largest;
    within.time_model = arguments->time_model;
    return search(&s, largest ? largest : 1, 1);
}

static const char *advice(Arena *a, const Arguments *arguments,
                          const Program *p) {
    int64_t batch = batch_largest(arguments, p, arguments->memory, false);
    return batch > 0
               ? arena_format(a, "a batch of %" PRId64 " would fit", batch)
               : "no batch would fit";
}

const char *memory_shown(Arena *a, int64_t bytes) {
    Scaled s = bytes_scaled(bytes);
    return bytes < 1024 ? arena_format(a, "%" PRId64 " bytes", bytes)
                        : arena_format(a, "%.1f %s", s.count, s.unit);
}

bool plan_fits(Arena *a, const Arguments *arguments, const Program *p,
               const Plan *plan) {
    if (arguments->memory == 0 || plan_process_bytes(plan) <= arguments->memory)
        return true;
    complain(arguments,
             "a batch of %" PRId64 " needs %s of memory in the plan for %s%s, "
             "but the limit is %s; %s",
             recipe_batch(&p->recipe),
             memory_shown(a, plan_process_bytes(plan)), plan->device,
             p->recipe.recompute == RECOMPUTE_NONE
                 ? " with `recompute = none`"
                 : ", even with rematerialization",
             memory_shown(a, arguments->memory), advice(a, arguments, p));
    return false;
}
