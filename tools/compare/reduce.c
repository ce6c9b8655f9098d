// sinter reduce: reduces a model file while a command still fails for it.
// Greedy delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
// failure-inducing input", 2002) over layers, arguments, statements, blocks and
// numbers, the longest first, until none can go.  A failure is the exit status
// that the command has for the whole file.
#include "base/exits.h"
#include "base/source.h"
#include "tools/compare/ddmin.h"
#include "tools/process.h"
#include "tools/scratch.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20 };

typedef struct {
    const Arguments *arguments;
    const char *trying; // the file for the command
    int status;         // exit status for the whole file
    bool loads;         // the whole file is a model, and so is each reduction
    int tried, made;
} Reduction;

static bool try_write(const Reduction *r, const char *text) {
    return file_write(r->trying, text, strlen(text));
}

// Loads a file as a model; NULL if it is not one.
static const Program *model_of(Arena *a, const Arguments *arguments,
                               const char *path) {
    Diagnostics diags = diag_new(a);
    return frontend_load(a, path, arguments->set, arguments->num_settings,
                         &diags);
}

// Runs the command on the file, which replaces {} or is appended.
static int command_run(Arena *a, const Reduction *r) {
    Words given = {.a = a}, w = {.a = a};
    bool named = false;
    words_split(&given, r->arguments->failing);
    for (int i = 0; i < given.count; i++) {
        bool here = strcmp(given.word[i], "{}") == 0;
        words_add(&w, here ? r->trying : given.word[i]);
        named |= here;
    }
    if (!named)
        words_add(&w, r->trying);
    return program_run(&w, ".", "/dev/null", "/dev/null");
}

static bool still_fails(Reduction *r, const char *text) {
    Arena *a = arena_new();
    bool good = try_write(r, text) &&
                (!r->loads || model_of(a, r->arguments, r->trying));
    if (good) {
        r->tried++;
        good = command_run(a, r) == r->status;
    }
    arena_free(a);
    return good;
}

// Whether the command fails for any text that is not a model, as `sinter check`
// does: then everything would be cut.
static bool fails_for_nothing(Arena *a, const Reduction *r) {
    return !r->loads && try_write(r, "") && command_run(a, r) == r->status;
}

static void say_cut(const char *text, const Cut *cut) {
    enum { SHOWN = 60 };
    size_t length = cut->end - cut->start, line = 1;
    for (size_t i = 0; i < cut->start; i++)
        line += text[i] == '\n';
    size_t blank = strspn(text + cut->start, " \t\n");
    blank = blank < length ? blank : 0;
    size_t shown = strcspn(text + cut->start + blank, "\n");
    shown = shown < length - blank ? shown : length - blank;
    fprintf(stderr, "line %zu: %s%s %.*s%s\n", line, cut->with,
            *cut->with ? " instead of" : "without",
            (int)(shown < SHOWN ? shown : SHOWN), text + cut->start + blank,
            shown > SHOWN ? "..." : "");
}

// The text after the first cut that still fails, or NULL.
static const char *cut_one(Arena *a, Reduction *r, const char *text) {
    int count;
    const Cut *cut = ddmin_cuts(a, text, &count);
    for (int i = 0; i < count; i++) {
        const char *less = ddmin_cut(a, text, &cut[i]);
        if (!still_fails(r, less))
            continue;
        say_cut(text, &cut[i]);
        r->made++;
        return less;
    }
    return NULL;
}

static const char *laid_out(Arena *a, const char *path, const char *text) {
    Diagnostics diags = diag_new(a);
    Text t = text_new(a);
    return frontend_format(a, path, text, strlen(text), &t, &diags)
               ? text_string(&t)
               : text;
}

static int reduce(Arena *a, Reduction *r, const char *text, const char *out) {
    const Arguments *arguments = r->arguments;
    if (!try_write(r, text))
        return io_failed(arguments, r->trying);
    r->status = command_run(a, r);
    if (r->status <= 0) {
        complain(arguments,
                 r->status == 0 ? "'%s' does not fail for %s"
                                : "'%s' cannot be run for %s",
                 arguments->failing, arguments->operand[0]);
        return EXIT_USAGE;
    }
    if (fails_for_nothing(a, r)) {
        complain(arguments,
                 "'%s' exits with status %d for an empty file, too, so the "
                 "result would be empty: let it test for the one error, for "
                 "instance with grep",
                 arguments->failing, r->status);
        return EXIT_USAGE;
    }
    size_t whole = strlen(text);
    for (const char *less = text; less; less = cut_one(a, r, text))
        text = less;
    const char *less = laid_out(a, out, text);
    if (!file_write(out, less, strlen(less)))
        return io_failed(arguments, out);
    printf("%s: %zu of %zu bytes, status %d as before; %d of %d attempted "
           "deletions kept\n",
           text_escaped(a, out), strlen(text), whole, r->status, r->made,
           r->tried);
    return EXIT_GOOD;
}

int reduce_command(Arena *a, const Arguments *arguments) {
    const char *path = arguments->operand[0], *why = "";
    const Source *s = source_read(a, path, MOST_BYTES, &why);
    if (s == NULL) {
        file_report(a, arguments, path, why);
        return EXIT_IO;
    }
    if (arguments->failing == NULL) {
        complain(arguments, "reduce needs --check=CMD, a command that fails "
                            "for the file");
        return EXIT_USAGE;
    }
    const char *out = arguments->out
                          ? arguments->out
                          : arena_format(a, "%s.reduced.net", stem_of(a, path));
    Scratch scratch;
    int status;
    const Program *p = model_of(a, arguments, path);
    if (!output_check(arguments, p, out, &status))
        return status;
    // Beside the model file, for its imports.
    if (!scratch_file(a, arguments, path, ".net", &scratch))
        return EXIT_IO;
    Reduction r = {
        .arguments = arguments, .trying = scratch.path, .loads = p != NULL};
    status = reduce(a, &r, s->text, out);
    scratch_close(&scratch);
    return status;
}
