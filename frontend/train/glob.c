// Patterns of parameters.  A pattern matches a path, with or without the
// model's name: `layer1.conv_1.weight` and `ResNet9.layer1.conv_1.weight`.

#include "base/glob.h"
#include "frontend/train/train.h"

#include <string.h>

bool glob_matches(Expansion *e, const TrainBlock *t, const Entry *clause,
                  const char *name) {
    const char *model = t->model.closure.function->name;
    if (e->work > MAX_WORK && !within_limits(e, clause->glob_at))
        return false;
    return glob_match(clause->glob, "", name, &e->work) ||
           glob_match(clause->glob, model, name, &e->work);
}

// ---- the nearest name ----

enum { MAX_COMPARED = 120, MAX_NAMES = 500 };

static int min_int(int a, int b) {
    return a < b ? a : b;
}

static const char *with_model(Expansion *e, const TrainBlock *t,
                              const char *name) {
    return arena_format(e->arena, "%s.%s", t->model.closure.function->name,
                        name);
}

// The number of characters in which a pattern and a name differ.
static int distance(Expansion *e, const char *glob, const char *name) {
    size_t width = strlen(name) + 1;
    int *last = ARENA_ARRAY(e->arena, width, int);
    int *row = ARENA_ARRAY(e->arena, width, int);
    for (size_t j = 0; j < width; j++)
        last[j] = (int)j;
    for (; *glob != '\0'; glob++) {
        bool star = *glob == '*';
        row[0] = last[0] + !star;
        for (size_t j = 1; j < width; j++) {
            bool same = star || *glob == '?' || *glob == name[j - 1];
            row[j] = min_int(min_int(last[j] + !star, row[j - 1] + !star),
                             last[j - 1] + !same);
        }
        int *oldest = last;
        last = row;
        row = oldest;
    }
    return last[width - 1];
}

// The distance of a name from the pattern, or from the pattern with a layer
// inserted before its last part or before all of it.
static int nearest_form(Expansion *e, const char *glob, const char *name) {
    const char *dot = strrchr(glob, '.');
    const char *within =
        dot ? arena_format(e->arena, "%.*s.*%s", (int)(dot - glob), glob, dot)
            : glob;
    const char *below = arena_format(e->arena, "*.%s", glob);
    return min_int(distance(e, glob, name), min_int(distance(e, within, name),
                                                    distance(e, below, name)));
}

// Notes the parameter with the name nearest to the pattern, else any name.
static void note_nearest(Expansion *e, const TrainBlock *t, const char *glob,
                         Diagnostic *d) {
    int best = -1, allowed = ((int)strlen(glob) + 1) / 3;
    for (int i = 0; i < min_int(e->num_parameters, MAX_NAMES); i++) {
        const char *name = e->parameter[i].name;
        if (strlen(glob) > MAX_COMPARED || strlen(name) > MAX_COMPARED)
            continue;
        int far = min_int(nearest_form(e, glob, name),
                          distance(e, glob, with_model(e, t, name)));
        if (far > allowed || (best >= 0 && far == allowed))
            continue;
        best = i;
        allowed = far;
    }
    if (best >= 0)
        diag_note(d, "the nearest parameter is `%s`", e->parameter[best].name);
    else if (e->num_parameters > 0)
        diag_note(d, "parameters have names such as `%s`",
                  e->parameter[0].name);
}

static bool matches_any(Expansion *e, const TrainBlock *t,
                        const Entry *clause) {
    for (int i = 0; i < e->num_parameters; i++)
        if (glob_matches(e, t, clause, e->parameter[i].name))
            return true;
    return false;
}

// Whether the pattern matches the end of a name; the pattern with a `*` before.
static bool matches_suffix(Expansion *e, const TrainBlock *t,
                           const Entry *clause, Entry *ending) {
    *ending = *clause;
    ending->glob = arena_format(e->arena, "*.%s", clause->glob);
    return matches_any(e, t, ending);
}

// Whether a pattern was written for the statistics of batch_norm.
static bool names_statistic(const char *glob) {
    const char *dot = strrchr(glob, '.');
    const char *last = dot ? dot + 1 : glob;
    return strncmp(last, "running_", strlen("running_")) == 0;
}

bool glob_check(Expansion *e, const TrainBlock *t, const Entry *clause) {
    if (matches_any(e, t, clause))
        return true;
    if (e->stopped || e->diags->truncated)
        return false;
    Diagnostic *d =
        report(e->diags, D_unmatched_pattern, clause->glob_at,
               "the pattern \"%s\" matches no parameter", clause->glob);
    Entry layer = *clause;
    layer.glob = arena_format(e->arena, "%s.*", clause->glob);
    if (matches_any(e, t, &layer))
        diag_note(d, "that is a layer; \"%s\" are its parameters", layer.glob);
    else if (matches_suffix(e, t, clause, &layer))
        diag_note(d,
                  "a pattern matches whole names; \"%s\" matches the names "
                  "that end so",
                  layer.glob);
    else if (names_statistic(clause->glob))
        diag_note(d, "running statistics are no parameters; those of "
                     "batch_norm(frozen) stay as they are");
    else
        note_nearest(e, t, clause->glob, d);
    return false;
}
