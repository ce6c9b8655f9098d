// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights: matches tensors of a file with the model's weights.
//
// Names and layouts of another program's file may be PyTorch's: filters with
// channels before rows and columns, in all of the file if in one tensor;
// `weight` of a normalization for `scale`; counters, which are passed over.  A
// map gives the names of layers.
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

#include <errno.h>
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

// A line of a map: a layer or a weight of the model, and its name in the file.
typedef struct {
    char *own, *other;
    int number; // in its file
    bool used;
} MapLine;

typedef struct {
    MapLine *line;
    size_t count;
} NameMap;

typedef struct {
    const char *model;
    NameMap map;
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

// Other programs' files may have more leading ones or fewer.
static bool same_dims(const RtState *s, const RtTensor *t) {
    int i = 0, j = 0;
    while (s->rank - i > t->rank && s->dim[i] == 1)
        i++;
    while (t->rank - j > s->rank && t->dim[j] == 1)
        j++;
    return s->rank - i == t->rank - j &&
           memcmp(&s->dim[i], &t->dim[j],
                  (size_t)(s->rank - i) * sizeof s->dim[0]) == 0;
}

// Whether these are filters with channels before rows and columns.  Filters of
// sequences have no rows there.
static bool is_channels_first(const RtState *s, const RtTensor *t) {
    int64_t rows = t->rank == 4 ? t->dim[2] : 1;
    return s->rank == 4 && (t->rank == 4 || t->rank == 3) &&
           s->dim[0] == t->dim[0] && s->dim[1] == rows &&
           s->dim[2] == t->dim[t->rank - 1] && s->dim[3] == t->dim[1];
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
    return t->other == NULL &&
           (s->type == t->type ||
            (s->type == RT_F32 && (t->type == RT_F16 || t->type == RT_BF16)));
}

static void list_add_misfit(Fit *f, const RtState *s, const RtTensor *t) {
    char here[96], there[96];
    if (!can_convert(s, t)) {
        list_add(&f->misfits, "%.80s has type %s", t->name,
                 t->other != NULL ? t->other : rt_type_name(t->type));
        return;
    }
    list_add(&f->misfits, "%.80s is %s not %s%s", t->name,
             dims_text(there, sizeof there, t->rank, t->dim),
             dims_text(here, sizeof here, s->rank, s->dim),
             same_dims(s, t) ? ", as other filters have channels first" : "");
}

// ---- a map of names ----

static void map_free(NameMap *m) {
    for (size_t i = 0; i < m->count; i++)
        free(m->line[i].own);
    free(m->line);
}

// "layer1.conv_1 = layer1.0.conv1", or a comment after #.
static bool map_line_read(NameMap *m, char *text, int number, RtError *e) {
    char *sign, *end;
    text[strcspn(text, "#\n")] = '\0';
    text += strspn(text, " \t");
    if (*text == '\0')
        return true;
    sign = strchr(text, '=');
    MapLine *more = realloc(m->line, (m->count + 1) * sizeof *more);
    if (more == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    m->line = more;
    if (sign == NULL)
        return rt_fail(e, EXIT_DATA, "a line has no =: %.100s", text);
    *sign++ = '\0';
    size_t length = strlen(sign) + (size_t)(sign - text) + 1;
    char *own = malloc(length);
    if (own == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    memcpy(own, text, length);
    MapLine *l = &m->line[m->count++];
    *l = (MapLine){own, own + (sign - text), number, false};
    l->other += strspn(l->other, " \t");
    for (end = own + strlen(own); end > own && strchr(" \t", end[-1]); end--)
        end[-1] = '\0';
    for (end = l->other + strlen(l->other);
         end > l->other && strchr(" \t\r", end[-1]); end--)
        end[-1] = '\0';
    return true;
}

static bool map_read(NameMap *m, const char *path, RtError *e) {
    char line[2 * RT_MAX_KEY];
    FILE *f = fopen(path, "r");
    RtError why;
    bool good = true;
    if (f == NULL)
        return rt_fail(e, EXIT_DATA, "cannot open %s: %s", path,
                       strerror(errno));
    for (int i = 1; good && fgets(line, sizeof line, f) != NULL; i++)
        good = map_line_read(m, line, i, &why);
    fclose(f);
    return good || rt_fail(e, why.status, "%s: %s", path, why.text);
}

// A line that names no weight is a mistake.
static bool map_check(const NameMap *m, const char *path, RtError *e) {
    for (size_t i = 0; i < m->count; i++)
        if (!m->line[i].used)
            return rt_fail(e, EXIT_DATA,
                           "%s maps %.100s, but no weight of the model has "
                           "that name",
                           path, m->line[i].own);
    return true;
}

// The file's name for a weight: by the longest line that is its name or the
// layers around it, which is returned; NULL: none.
static const MapLine *file_name(Fit *f, const char *own, char to[RT_MAX_KEY]) {
    MapLine *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < f->map.count; i++) {
        size_t length = strlen(f->map.line[i].own);
        if (strncmp(own, f->map.line[i].own, length) == 0 &&
            (own[length] == '.' || own[length] == '\0') && length >= most) {
            best = &f->map.line[i];
            most = length;
        }
    }
    if (best != NULL)
        best->used = true;
    snprintf(to, RT_MAX_KEY, "%s%s", best != NULL ? best->other : "",
             own + most);
    return best;
}

// The tensor of that name, or PyTorch's for the scale of a normalization.
static const RtTensor *named_tensor(Fit *f, const char *own) {
    char name[RT_MAX_KEY];
    file_name(f, own, name);
    const RtTensor *t = rt_header_tensor(f->header, name);
    char *last = strrchr(name, '.');
    if (t != NULL || f->by_sinter || last == NULL ||
        strcmp(last, ".scale") != 0)
        return t;
    memcpy(last, ".weight", sizeof ".weight");
    return rt_header_tensor(f->header, name);
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
    return named_tensor(f, s->name);
}

// The layout of a file's filters is that of a tensor that fits in one layout
// alone.  If all fit in both, a file with a counter is PyTorch's.
static void find_layout(Fit *f) {
    bool first = false, last = false, counts = false;
    for (int i = 0; i < f->plan->num_states; i++) {
        const RtState *s = &f->plan->state[i];
        const RtTensor *t = is_weight(s) ? named_tensor(f, s->name) : NULL;
        if (t == NULL || s->rank != 4)
            continue;
        first |= is_channels_first(s, t) && !same_dims(s, t);
        last |= same_dims(s, t) && !is_channels_first(s, t);
    }
    for (size_t i = 0; i < f->header->num_tensors; i++)
        counts |= f->header->tensor[i].other != NULL;
    f->out->channels_first = !f->by_sinter && (first || (counts && !last));
}

static bool has_shape(const Fit *f, const RtState *s, const RtTensor *t) {
    return s->rank == 4 && f->out->channels_first ? is_channels_first(s, t)
                                                  : same_dims(s, t);
}

// Names a weight that the file lacks, and the name that the map gives it.
static void list_add_missing(Fit *f, const char *own) {
    char name[RT_MAX_KEY];
    const MapLine *by = file_name(f, own, name);
    if (by == NULL)
        list_add_name(&f->missing, own);
    else
        list_add(&f->missing, "%.80s (%.80s, line %d of the map)", name, own,
                 by->number);
}

static void fit_state(Fit *f, const RtState *s) {
    f->all++;
    if (is_excluded(f, s->name)) {
        list_add_name(&f->initialized, s->name);
        return;
    }
    const RtTensor *t = tensor_of(f, s);
    if (t == NULL) {
        list_add_missing(f, s->name);
    } else if (!can_convert(s, t) || !has_shape(f, s, t)) {
        list_add_misfit(f, s, t);
    } else {
        f->out->state[t - f->header->tensor] = s;
        f->out->count++;
    }
}

static bool begins_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

// Whether a tensor is no weight: a state of a run and its evaluations, or the
// optimizer state or average of another tensor.
static bool is_optimizer_state(const Fit *f, const RtTensor *t) {
    char name[RT_MAX_KEY];
    const char *dot = strrchr(t->name, '.');
    if (dot == NULL)
        return false;
    if (begins_with(t->name, "metric.") ||
        (t->rank == 0 && (begins_with(t->name, "run.") ||
                          begins_with(t->name, "monitor."))))
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(dot - t->name), t->name);
    return rt_header_tensor(f->header, name) != NULL;
}

static void check_tensor(Fit *f, const RtTensor *t) {
    const RtState *s = rt_state_find(f->plan, t->name);
    bool loaded = f->out->state[t - f->header->tensor] != NULL;
    if (loaded || (s != NULL && is_weight(s)))
        return;
    bool optimizer = t->other != NULL || is_optimizer_state(f, t),
         excluded = is_excluded(f, t->name);
    if (optimizer && (f->by_sinter || excluded))
        return;
    list_add_name(optimizer  ? &f->optimizer
                  : excluded ? &f->excluded
                             : &f->unknown,
                  t->name);
}

// ---- messages ----

static bool refuse(const Fit *f, const RtWeightsOptions *o, RtError *e) {
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
    bool renamed = f->missing.count > 0 && f->unknown.count > 0;
    return rt_fail(e, EXIT_DATA, "it does not fit: %s%s%s", reasons,
                   renamed && !f->by_sinter && f->map.count == 0
                       ? "--map=FILE maps names of the model to the file's; "
                       : "",
                   o->advice != NULL ? o->advice
                                     : "--init-except=GLOB leaves out the "
                                       "tensors that GLOB matches");
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
    length = strlen(w->message);
    if (w->channels_first)
        snprintf(w->message + length, sizeof w->message - length,
                 "\nits filters have channels first, and are turned");
    message_add(w, "initialized, not loaded: ", &f->initialized);
    message_add(w, "in the file, not loaded: ", &f->excluded);
    message_add(w, "ignored optimizer states and counters: ", &f->optimizer);
}

static bool fit(Fit *f, const RtWeightsOptions *o, RtError *e) {
    if ((o->except != NULL && !read_globs(f, o->except, e)) ||
        (o->map != NULL && !map_read(&f->map, o->map, e)))
        return false;
    find_layout(f);
    for (int i = 0; i < f->plan->num_states; i++)
        if (is_weight(&f->plan->state[i]))
            fit_state(f, &f->plan->state[i]);
    for (size_t i = 0; i < f->header->num_tensors; i++)
        check_tensor(f, &f->header->tensor[i]);
    if (o->map != NULL && !map_check(&f->map, o->map, e))
        return false;
    if (f->misfits.count + f->missing.count + f->unknown.count > 0)
        return refuse(f, o, e);
    if (f->out->count == 0)
        return rt_fail(e, EXIT_DATA, "--init-except leaves nothing to load");
    write_message(f);
    return true;
}

bool rt_weights_fit(RtWeights *w, const RtTrainer *t, const RtPlan *plan,
                    const RtHeader *h, bool by_sinter,
                    const RtWeightsOptions *o, RtError *e) {
    Fit f = {.model = t->model,
             .plan = plan,
             .header = h,
             .by_sinter = by_sinter,
             .out = w};
    *w = (RtWeights){.state = calloc(h->num_tensors + 1, sizeof *w->state)};
    bool good = w->state != NULL ? fit(&f, o, e)
                                 : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(f.globs);
    map_free(&f.map);
    if (!good)
        rt_weights_free(w);
    return good;
}

void rt_weights_free(RtWeights *w) {
    free(w->state);
    w->state = NULL;
}
