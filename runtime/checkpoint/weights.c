// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights: matches tensors of a file with the model's weights.
//
// Every parameter and running statistic of the model must be in the file with
// its shape, and every tensor of the file must be one of these, except names
// that the user excludes: a load that silently skips tensors looks like one
// that worked.  If the file has the average of a weight, that is loaded, as in
// the evaluations of its run.  Other states in a checkpoint are ignored, and
// tensors with such names in another program's file too, with a message.

#include "base/glob.h"
#include "base/json.h"
#include "runtime/checkpoint/checkpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMED = 3 };

// The first few names of a list, and its length.
typedef struct {
    char text[1024];
    size_t length, count;
} NameList;

typedef struct {
    const char *model;
    const RtPlan *plan;
    const RtHeader *header;
    bool by_sinter; // a trainer wrote the file
    char *globs;    // excluded names, each ends with a zero byte
    size_t length;  // of all globs
    RtWeights *out;
    size_t all; // number of the model's weights
    NameList misfits, missing, unknown, initialized, excluded, optimizer;
    size_t averages; // that are loaded
} Fit;

static void list_add(NameList *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void list_add(NameList *t, const char *format, ...) {
    va_list list;
    size_t left = sizeof t->text - t->length;
    if (t->count++ >= MAX_NAMED)
        return;
    int n = snprintf(t->text + t->length, left, "%s", t->count > 1 ? ", " : "");
    va_start(list, format);
    n += vsnprintf(t->text + t->length + n, left - (size_t)n, format, list);
    va_end(list);
    t->length += (size_t)n;
}

static void list_add_name(NameList *t, const char *name) {
    char text[128];
    json_escape(text, sizeof text, name, strlen(name));
    list_add(t, "%s", text);
}

// " and 4 more"
static const char *and_more(char *to, size_t room, const NameList *t) {
    *to = '\0';
    if (t->count > MAX_NAMED)
        snprintf(to, room, " and %zu more", t->count - MAX_NAMED);
    return to;
}

// ---- names ----

static bool is_weight(const RtState *s) {
    return s->kind == RT_PARAM || s->kind == RT_STATISTIC;
}

static bool matches(const Fit *f, const char *glob, const char *name) {
    int64_t ignored = 0;
    return glob_match(glob, "", name, &ignored) ||
           glob_match(glob, f->model, name, &ignored);
}

static bool is_excluded(const Fit *f, const char *name) {
    for (size_t at = 0; at < f->length; at += strlen(f->globs + at) + 1)
        if (matches(f, f->globs + at, name))
            return true;
    return false;
}

static bool matches_some(const Fit *f, const char *glob) {
    for (int i = 0; i < f->plan->num_states; i++)
        if (is_weight(&f->plan->state[i]) &&
            matches(f, glob, f->plan->state[i].name))
            return true;
    for (size_t i = 0; i < f->header->num_tensors; i++)
        if (matches(f, glob, f->header->tensor[i].name))
            return true;
    return false;
}

// A glob without a match is a mistake, such as the name of a layer.
static bool check_glob(const Fit *f, const char *glob, RtError *e) {
    char layer[128];
    if (matches_some(f, glob))
        return true;
    snprintf(layer, sizeof layer, "%.100s.*", glob);
    bool is_layer = matches_some(f, layer);
    return rt_fail(
        e, EXIT_USAGE,
        "--init-except=%.100s matches no tensor in it nor in %.100s%s%s", glob,
        f->model, is_layer ? "; did you mean " : "", is_layer ? layer : "");
}

static bool read_globs(Fit *f, const char *list, RtError *e) {
    f->length = strlen(list) + 1;
    f->globs = malloc(f->length);
    if (f->globs == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    memcpy(f->globs, list, f->length);
    for (char *at = f->globs; (at = strchr(at, ',')) != NULL;)
        *at++ = '\0';
    for (size_t at = 0; at < f->length; at += strlen(f->globs + at) + 1)
        if (!check_glob(f, f->globs + at, e))
            return false;
    return true;
}

// ---- shapes ----

static bool same_dims(const RtState *s, const RtTensor *t) {
    return s->rank == t->rank &&
           memcmp(s->dim, t->dim, (size_t)s->rank * sizeof s->dim[0]) == 0;
}

// Whether these are filters with channels before rows and columns.
static bool is_channels_first(const RtState *s, const RtTensor *t) {
    return s->rank == 4 && t->rank == 4 && s->dim[0] == t->dim[0] &&
           s->dim[1] == t->dim[2] && s->dim[2] == t->dim[3] &&
           s->dim[3] == t->dim[1];
}

static const char *dims_text(char *to, size_t room, int rank,
                             const int64_t *dim) {
    size_t length = (size_t)snprintf(to, room, "[");
    for (int i = 0; i < rank && length < room; i++)
        length += (size_t)snprintf(to + length, room - length, "%s%lld",
                                   i > 0 ? "," : "", (long long)dim[i]);
    if (length < room)
        snprintf(to + length, room - length, "]");
    return to;
}

// Halves are widened; other types must be equal.
static bool can_convert(const RtState *s, const RtTensor *t) {
    return s->type == t->type ||
           (s->type == RT_F32 && (t->type == RT_F16 || t->type == RT_BF16));
}

static void list_add_misfit(Fit *f, const RtState *s, const RtTensor *t) {
    char here[96], there[96];
    if (!can_convert(s, t)) {
        list_add(&f->misfits, "%.80s has type %s", t->name,
                 rt_type_name(t->type));
        return;
    }
    list_add(&f->misfits, "%.80s is %s not %s%s", t->name,
             dims_text(there, sizeof there, t->rank, t->dim),
             dims_text(here, sizeof here, s->rank, s->dim),
             is_channels_first(s, t) ? " with channels last" : "");
}

// ---- the fit ----

// The file's tensor for a weight, or its average; NULL: none.
static const RtTensor *tensor_of(Fit *f, const RtState *s) {
    char name[RT_MAX_KEY];
    snprintf(name, sizeof name, "%s.average", s->name);
    const RtTensor *average = rt_header_tensor(f->header, name);
    if (average != NULL && !is_excluded(f, name)) {
        f->averages++;
        return average;
    }
    if (average != NULL)
        list_add_name(&f->excluded, name);
    return rt_header_tensor(f->header, s->name);
}

static void fit_state(Fit *f, const RtState *s) {
    f->all++;
    if (is_excluded(f, s->name)) {
        list_add_name(&f->initialized, s->name);
        return;
    }
    const RtTensor *t = tensor_of(f, s);
    if (t == NULL) {
        list_add_name(&f->missing, s->name);
    } else if (!can_convert(s, t) || !same_dims(s, t)) {
        list_add_misfit(f, s, t);
    } else {
        f->out->state[t - f->header->tensor] = s;
        f->out->count++;
    }
}

// Whether a tensor is no weight: a scalar of a run, or the optimizer state or
// average of another tensor.
static bool is_optimizer_state(const Fit *f, const RtTensor *t) {
    char name[RT_MAX_KEY];
    const char *dot = strrchr(t->name, '.');
    if (dot == NULL)
        return false;
    if (t->rank == 0 && (strncmp(t->name, "run.", 4) == 0 ||
                         strncmp(t->name, "metric.", 7) == 0))
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(dot - t->name), t->name);
    return rt_header_tensor(f->header, name) != NULL;
}

static void check_tensor(Fit *f, const RtTensor *t) {
    const RtState *s = rt_state_find(f->plan, t->name);
    bool loaded = f->out->state[t - f->header->tensor] != NULL;
    if (loaded || (s != NULL && is_weight(s)))
        return;
    bool optimizer = is_optimizer_state(f, t),
         excluded = is_excluded(f, t->name);
    if (optimizer && (f->by_sinter || excluded))
        return;
    list_add_name(optimizer  ? &f->optimizer
                  : excluded ? &f->excluded
                             : &f->unknown,
                  t->name);
}

// ---- messages ----

static bool refuse(const Fit *f, RtError *e) {
    const NameList *kind[] = {&f->misfits, &f->missing, &f->unknown};
    const char *text[] = {"", "it has no ", " has no "};
    char reasons[3 * sizeof kind[0]->text + 400], more[40];
    size_t length = 0;
    for (int i = 0; i < 3; i++)
        if (kind[i]->count > 0)
            length += (size_t)snprintf(
                reasons + length, sizeof reasons - length, "%.100s%s%s%s; ",
                i == 2 ? f->model : "", text[i], kind[i]->text,
                and_more(more, sizeof more, kind[i]));
    return rt_fail(e, EXIT_DATA,
                   "it does not fit: %s--init-except=GLOB leaves out the "
                   "tensors that GLOB matches",
                   reasons);
}

static void message_add(RtWeights *w, const char *what, const NameList *t) {
    char more[40];
    size_t length = strlen(w->message);
    if (t->count > 0)
        snprintf(w->message + length, sizeof w->message - length, "\n%s%s%s",
                 what, t->text, and_more(more, sizeof more, t));
}

static void write_message(const Fit *f) {
    RtWeights *w = f->out;
    snprintf(w->message, sizeof w->message, "%zu of %zu tensors of %.100s",
             w->count, f->all, f->model);
    size_t length = strlen(w->message);
    if (f->averages > 0)
        snprintf(w->message + length, sizeof w->message - length,
                 "\n%zu of them %s from the file; --init-except='*.average' "
                 "loads the weights themselves",
                 f->averages,
                 f->averages == 1 ? "is a weight average"
                                  : "are weight averages");
    message_add(w, "initialized, not loaded: ", &f->initialized);
    message_add(w, "in the file, not loaded: ", &f->excluded);
    message_add(w, "ignored optimizer states and counters: ", &f->optimizer);
}

static bool fit(Fit *f, const char *except, RtError *e) {
    if (except != NULL && !read_globs(f, except, e))
        return false;
    for (int i = 0; i < f->plan->num_states; i++)
        if (is_weight(&f->plan->state[i]))
            fit_state(f, &f->plan->state[i]);
    for (size_t i = 0; i < f->header->num_tensors; i++)
        check_tensor(f, &f->header->tensor[i]);
    if (f->misfits.count + f->missing.count + f->unknown.count > 0)
        return refuse(f, e);
    if (f->out->count == 0)
        return rt_fail(e, EXIT_DATA, "--init-except leaves nothing to load");
    write_message(f);
    return true;
}

bool rt_weights_fit(RtWeights *w, const RtTrainer *t, const RtPlan *plan,
                    const RtHeader *h, bool by_sinter, const char *except,
                    RtError *e) {
    Fit f = {.model = t->model,
             .plan = plan,
             .header = h,
             .by_sinter = by_sinter,
             .out = w};
    *w = (RtWeights){.state = calloc(h->num_tensors + 1, sizeof *w->state)};
    bool good = w->state != NULL ? fit(&f, except, e)
                                 : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(f.globs);
    if (!good)
        rt_weights_free(w);
    return good;
}

void rt_weights_free(RtWeights *w) {
    free(w->state);
    w->state = NULL;
}
