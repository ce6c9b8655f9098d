// The command line: one table of commands, one of options, and what the
// commands share.
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "frontend/frontend.h"
#include "passes/passes.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    MAX_SETTINGS = 64,
    MAX_KEY = 64,
    MAX_COUNTS = 32,
    MAX_RUNS = 12
};

// A number on the command line.
typedef struct {
    bool given;
    int64_t value;
} Count;

// A line of a model.
typedef struct {
    const char *file; // that is imported; NULL: the one of the command line
    Count number;
} LineOf;

// Numbers with commas between them.
typedef struct {
    int count;
    int64_t value[MAX_COUNTS];
} Counts;

// A command line taken apart.  An option that is not given is NULL or false.
typedef struct {
    char **operand;
    int num_operands;
    Setting set[MAX_SETTINGS];
    char key[MAX_SETTINGS][MAX_KEY]; // what the settings' keys point to
    int num_settings;
    char **passed; // of train: the words that are the trainer's
    int num_passed;
    const char *out, *emit, *target, *diagnostics, *graph, *run, *act, *level,
        *device, *device_file, *from, *to, *dump, *a, *b, *data, *failing,
        *kernel, *op, *arch, *at, *lineinfo, *embed, *compared, *validation,
        *axis;
    const char *metrics[MAX_RUNS]; // files or folders of runs
    int num_metrics;
    Count rewrite_limit, steps, batch, runs, samples, seed;
    LineOf line;
    Counts batches;           // of bench
    double lowest, highest;   // rates of lrfind; 0: not given
    int64_t memory;           // 0: no limit
    int multiprocessors;      // as PassOptions has it: see device_plan
    uint32_t without;         // as PassOptions has left_out
    bool no_updates;          // as PassOptions has it; no option sets it
    bool images, table, text; // of new
    bool json, check, max_batch, no_eval, ablate, help;
} Arguments;

typedef struct {
    const char *title; // of the group that begins with this command
    const char *name, *operands;
    int least, most; // operands
    // Returns an exit status; the arena is its own.
    int (*run)(Arena *a, const Arguments *arguments);
    const char *what;
} Command;

extern const Command commands[]; // ends with a NULL name

// ---- arguments.c ----

// Takes the words after the command's name apart; the operands come to their
// front.  For train, out->passed has room for all words.  false when they are
// wrong, which has been said on stderr as the words themselves ask for, or else
// as *out did before.
bool arguments_parse(Arguments *out, const Command *command, int count,
                     char **word);

// What is asked for of how mistakes are printed, wherever it stands: also
// before a mistake, and if the other words are wrong.
const char *diagnostics_wanted(int count, char **word);

// Sets one more key; false when there are too many, which has been said.
bool setting_add(Arguments *out, Setting set);

extern const Option tool_options[];
extern const OptionKind option_choice; // one of the words in its placeholder

// Calls a function with each option of a command, and of the trainer that
// train runs.
void options_each(const Command *command,
                  void (*call)(void *to, const Option *o), void *to);

// Adds the help of a command.
void arguments_help(Text *t, const Command *command);

// ---- bytes.c ----

// Reads a size as 8GiB, 1.5 GB or 4096: a whole number of bytes above 0.
bool bytes_parse(const char *text, int64_t *bytes);

// A quantity in the largest unit of which there is one, so that little is not
// printed as nothing.
typedef struct {
    double count;
    const char *unit;
} Scaled;

Scaled bytes_scaled(int64_t bytes); // KiB or MiB
Scaled flops_scaled(int64_t flops); // k, M or G

// ---- complain.c: stderr, as text or, with --diagnostics=json, as JSON ----

bool wants_json(const Arguments *arguments);

// Whether what is printed there is for a terminal, and may have colours.
bool wants_color(int file);

// A line of progress, which an error ends.
void line_begin(const char *text);
void line_end(void); // where one has begun

// Prints what was reported.
void diagnostics_print(Arena *a, const Arguments *arguments,
                       Diagnostics *diags);

// Says what is wrong where that is in no file.
void complain(const Arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Says that a file cannot be read.
void file_report(Arena *a, const Arguments *arguments, const char *path,
                 const char *why);

// Has it said when passes make too much of the graph.
void complain_when_full(const Arguments *arguments, Graph *g);

// Says that what a step costs cannot be counted.
void complain_uncounted(const Arguments *arguments, const Program *p);

// ---- limit.c ----

// Whether the plan fits into the memory asked for; if not, says on stderr what
// is needed, what there is and which batch would fit.
bool plan_fits(Arena *a, const Arguments *arguments, const Program *p,
               const Plan *plan);

// The largest batch with which the model as it is set otherwise is planned
// within so many bytes, 0 if there is none; as its recipe says or with all
// values kept.
int64_t batch_largest(const Arguments *arguments, const Program *p,
                      int64_t memory, bool keep);

// ---- out.c ----

// Whether `out` is a file that was read, by whatever name, which is said: one
// of the command line, or one that a model imports; p is NULL where there is
// no model.
bool out_is_read(const Arguments *arguments, const Program *p, const char *out);

// Whether a new file can take the place of `out`; if not, that has been said,
// with an exit status in *status.
bool out_takes(const Arguments *arguments, const Program *p, const char *out,
               int *status);

// A line of text, or lines, in which nothing steers a terminal.
const char *text_shown(Arena *a, const char *s);
void lines_print(const Text *t); // to stdout

// Writes a whole file; false, and errno, when that fails.
bool file_write(const char *path, const void *bytes, size_t length);

// These return an exit status; what went wrong has been said.  The last says
// what errno is of a file, and returns EXIT_IO.
int text_write(const Arguments *arguments, const char *path, const Text *text);
int folder_make(const Arguments *arguments, const char *path); // or it is there
int io_failed(const Arguments *arguments, const char *path);

// Says on stderr, in one line, that a file was written, how large it is, and
// what to do with it.  Nothing where only diagnostics in JSON are wanted there.
void wrote_print(const Arguments *arguments, const char *path,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- model.c ----

// Loads the model file and prints its diagnostics on stderr, as JSON if asked
// to; NULL and an exit status in *status when that fails.  Warnings are left
// in diags for a caller that wants them.
Program *model_load(Arena *a, const Arguments *arguments, Diagnostics *diags,
                    int *status);

// The target asked for; cuda is what a trainer is planned for by default.
const char *target_of(const Arguments *arguments);

// What the program is compiled for, as the options of the command say.
PassOptions plan_options(const Program *p, const Arguments *arguments,
                         const char *device);

// Names a file beside another: its base name without the extension.
char *stem_of(Arena *a, const char *path);

// ---- graph.c ----

// Reads the graph in the file that is the last operand, and verifies it; NULL
// and an exit status, after a report, when it is not one.
Graph *graph_load(Arena *a, const Arguments *arguments, int *status);

// What passes are told about such a graph.
PassOptions graph_options(const Arguments *arguments);

// Writes the kernels of a planned graph.
void kernels_add(Arena *a, Text *t, const Graph *g);

// ---- json.c ----

// Behind the string that begins at s; NULL: none does.
const char *json_string_end(const char *s);

// Whether the text is one JSON object, and nothing else.
bool json_is_object(const char *text);

// ---- one file each ----

int check_command(Arena *a, const Arguments *arguments);
int build_command(Arena *a, const Arguments *arguments);
int train_command(Arena *a, const Arguments *arguments);
int new_command(Arena *a, const Arguments *arguments);
int show_command(Arena *a, const Arguments *arguments);
void show_stages(Text *t); // with a sentence each
// Stage i, NULL after the last; *what is NULL for a second form of a stage.
const char *show_stage(int i, const char **what);
int report_command(Arena *a, const Arguments *arguments);
int plot_command(Arena *a, const Arguments *arguments);
int opt_command(Arena *a, const Arguments *arguments);
int compare_command(Arena *a, const Arguments *arguments);
int reduce_command(Arena *a, const Arguments *arguments);
int bisect_command(Arena *a, const Arguments *arguments);
int bench_command(Arena *a, const Arguments *arguments);
int lrfind_command(Arena *a, const Arguments *arguments);
int tune_command(Arena *a, const Arguments *arguments);
int repeat_command(Arena *a, const Arguments *arguments);
int benchcmp_command(Arena *a, const Arguments *arguments);
int runs_command(Arena *a, const Arguments *arguments);
int passes_command(Arena *a, const Arguments *arguments);
int complete_command(Arena *a, const Arguments *arguments);
int manual_command(Arena *a, const Arguments *arguments);
int doctor_command(Arena *a, const Arguments *arguments);
int fmt_command(Arena *a, const Arguments *arguments);
int explain_command(Arena *a, const Arguments *arguments);

#endif
