// Filter: selects launches by --kernel, --line and --op.  If none matches, the
// message names the option that excludes all, and near names.
#include "base/nearest.h"
#include "base/source.h"
#include "tools/show/inspect.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

static bool has_name(const Inspected *l, const char *glob) {
    return fnmatch(glob, launch_name(l), 0) == 0;
}

// Whether a line is in the FILE of --line=FILE:N.
static bool is_of_file(const ModelLine *line, const Program *p,
                       const LineOf *asked) {
    if (asked->file == NULL)
        return strcmp(line->file, p->file) == 0;
    size_t length = strlen(line->file);
    return strncmp(line->file, asked->file, length) == 0 &&
           asked->file[length] == ':';
}

static bool has_line(const Inspected *l, const Program *p,
                     const LineOf *asked) {
    for (int i = 0; i < l->num_lines; i++)
        if (l->line[i].line == asked->number.value &&
            is_of_file(&l->line[i], p, asked))
            return true;
    return false;
}

static const char *path_of(const Inspected *l, NodeId n) {
    return l->step->graph->node[n].from.path;
}

static bool has_path(const Inspected *l, const char *glob) {
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;)
        if (path_of(l, n) && fnmatch(glob, path_of(l, n), 0) == 0)
            return true;
    return false;
}

bool launch_matches(const Inspected *l, const Program *p,
                    const Arguments *arguments) {
    if (l->merged && !l->taken && !arguments->kernel)
        return false;
    return (!arguments->kernel || has_name(l, arguments->kernel)) &&
           (!arguments->line.number.given ||
            has_line(l, p, &arguments->line)) &&
           (!arguments->op || has_path(l, arguments->op));
}

// ---- no line ----

// The nearest lines of the file with launches; 0: there is none.
static void lines_around(const Inspection *in, const LineOf *asked, int *before,
                         int *after) {
    int64_t line = asked->number.value;
    *before = *after = 0;
    for (int i = 0; i < in->count; i++)
        for (int k = 0; k < in->launch[i].num_lines; k++) {
            const ModelLine *other = &in->launch[i].line[k];
            if (!is_of_file(other, in->p, asked))
                continue;
            if (other->line < line && other->line > *before)
                *before = other->line;
            if (other->line > line && (*after == 0 || other->line < *after))
                *after = other->line;
        }
}

// The number of lines of the file, without an empty last one.
static int lines_of(Arena *a, const char *path) {
    const char *error;
    const Source *s = source_read(a, path, MODEL_BYTES, &error);
    if (!s)
        return 0;
    return s->num_lines -
           (s->length > 0 && s->text[s->length - 1] == '\n' ? 1 : 0);
}

static void complain_of_line(const Show *s, const Inspection *in) {
    const LineOf *asked = &s->arguments->line;
    int64_t line = asked->number.value;
    int last = asked->file ? 0 : lines_of(s->a, s->file), before, after;
    const char *file =
        asked->file
            ? arena_string(s->a, asked->file,
                           (size_t)(strrchr(asked->file, ':') - asked->file))
            : s->p->file;
    if (last > 0 && line > last) {
        complain(s->arguments, "no line %" PRId64 ": %s ends at line %d", line,
                 file, last);
        return;
    }
    Text t = text_new(s->a);
    lines_around(in, asked, &before, &after);
    if (before)
        text_add(&t, "line %d", before);
    if (after)
        text_add(&t, "%sline %d", before ? " and " : "", after);
    complain(s->arguments, "no kernel comes from line %" PRId64 " of %s; %s%s",
             line, file, text_string(&t),
             before && after   ? " are the nearest lines with kernels"
             : before || after ? " is the nearest line with kernels"
                               : "nor from any other line");
}

// ---- no name, no path ----

// Offers a name; whether it begins with the requested one.
static bool name_offer(Nearest *near, const char *name) {
    nearest_offer(near, name);
    return strncmp(name, near->name, strlen(near->name)) == 0;
}

static void complain_of_name(const Show *s, const Inspection *in) {
    Nearest near = nearest_to(s->arguments->kernel);
    bool begun = false;
    for (int i = 0; i < in->count; i++)
        begun |= name_offer(&near, launch_name(&in->launch[i]));
    for (int i = 0; i < in->num_merged; i++)
        begun |= name_offer(&near, launch_name(&in->merged[i]));
    if (begun)
        complain(s->arguments, "no kernel is called '%s'; did you mean '%s*'?",
                 near.name, near.name);
    else if (near.best)
        complain(s->arguments, "no kernel is called '%s'; did you mean %s?",
                 near.name, near.best);
    else
        complain(s->arguments,
                 "no kernel is called '%s'; see sinter show launches",
                 near.name);
}

// Offers a path and its prefixes: for a.b.c also a.b and a.
static void path_offer(Arena *a, Nearest *near, const char *path) {
    nearest_offer(near, path);
    for (const char *dot = path; (dot = strchr(dot, '.')) != NULL; dot++)
        nearest_offer(near, arena_string(a, path, (size_t)(dot - path)));
}

static void complain_of_path(const Show *s, const Inspection *in) {
    Nearest near = nearest_to(s->arguments->op);
    bool whole = false;
    for (int i = 0; i < in->count; i++)
        for (NodeId n = NO_NODE;
             (n = launch_operation(&in->launch[i], n)) != NO_NODE;)
            if (path_of(&in->launch[i], n))
                path_offer(s->a, &near, path_of(&in->launch[i], n));
    for (int i = 0; i < in->count && near.best; i++)
        whole |= has_path(&in->launch[i], near.best);
    if (near.best)
        complain(s->arguments,
                 "no operation has the path '%s'; did you mean %s%s?",
                 near.name, near.best, whole ? "" : ".*");
    else
        complain(s->arguments,
                 "no operation has the path '%s'; sinter show fusion lists all "
                 "paths",
                 near.name);
}

// ---- none ----

static bool is_met(const Inspection *in, const Arguments *one) {
    for (int i = 0; i < in->count; i++)
        if (launch_matches(&in->launch[i], in->p, one))
            return true;
    for (int i = 0; i < in->num_merged; i++)
        if (launch_matches(&in->merged[i], in->p, one))
            return true;
    return false;
}

void filter_report(const Show *s, const Inspection *in) {
    const Arguments *all = s->arguments;
    if (!is_met(in, &(Arguments){.line = all->line}))
        complain_of_line(s, in);
    else if (!is_met(in, &(Arguments){.kernel = all->kernel}))
        complain_of_name(s, in);
    else if (!is_met(in, &(Arguments){.op = all->op}))
        complain_of_path(s, in);
    else
        complain(all, "no kernel matches all of --line, --kernel and --op "
                      "together; see sinter show launches");
}
