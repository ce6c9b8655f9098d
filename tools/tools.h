// The command line: the table of commands, the table of options, and functions
// that commands share.
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

// A longer model file is refused.
enum { MODEL_BYTES = 1 << 20 };

enum { MAX_SETTINGS = 64, MAX_KEY = 64, MAX_COUNTS = 32, MAX_RUNS = 12 };

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

// A parsed command line.  An option that is not given is NULL or false.
typedef struct {
    char **operand;
    int num_operands;
    Setting set[MAX_SETTINGS];
    char key[MAX_SETTINGS][MAX_KEY]; // storage of the settings' keys
    int num_settings;
    char **passed; // words for the trainer, or of complete
    int num_passed;
    const char *out, *emit, *target, *diagnostics, *graph, *run, *act, *level,
        *device, *device_file, *from, *to, *dump, *a, *b, *data, *kernel, *op,
        *arch, *at, *lineinfo, *embed, *tile, *validation, *axis,
        *launcher;
    const char *metrics[MAX_RUNS]; // files or folders of runs
    int num_metrics;
    Count rewrite_limit, steps, batch, runs, samples, seed;
    LineOf line;
    Counts batches;           // of bench
    double lowest, highest;   // rates of lrfind; 0: not given
    Count gpus, processes, per_node; // of plan
    Count tile_configs;   // of each tile kernel in a trainer; 1 if not given
    double link, latency; // bytes per second, 0: not given; seconds
    const char *reduce;
    int64_t memory;           // 0: no limit
    int multiprocessors;      // as PassOptions has it: see device_plan
    TimeModel time_model;     // ... on that device
    uint32_t without;         // as PassOptions has left_out
    bool no_updates;          // as PassOptions has it; no option sets it
    bool images, table, text; // of new
    const char *weights, *safetensors; // of export
    const char *tokenizer;             // of data
    const char *march; // processor that trainers are for; NULL: this one
    bool json, check, max_batch, no_eval, ablate, onnx, pytorch, library,
        inference, gradients, help;
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

// Parses the words after the command's name, and moves the operands to their
// front.  out->passed has room for all words.  False, after a message in the
// format of --diagnostics, or else of *out, if they are wrong.
bool arguments_parse(Arguments *out, const Command *command, int count,
                     char **word);

// The value of --diagnostics anywhere in the words, so that even mistakes
// before it are printed in its format; NULL for text.
const char *diagnostics_format(int count, char **word);

// Adds a setting; false, after a message, if there are too many.
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

// Reads a rate as 400Gb, bits per second, or 50GB, bytes: bytes per second.
bool rate_parse(const char *text, double *rate);

// Reads a time as 14us.
bool time_parse(const char *text, double *seconds);

void seconds_add(Text *t, double seconds); // 3 digits, with a unit

// A quantity in the largest unit in which it is at least 1.
typedef struct {
    double count;
    const char *unit;
} Scaled;

Scaled bytes_scaled(int64_t bytes); // KiB or MiB
Scaled flops_scaled(int64_t flops); // k, M or G

// ---- explain.c ----

// The page of a code in docs/diagnostics.md; NULL: none has it.
const char *diagnostic_page(Arena *a, const char *code);

// ---- complain.c: stderr, as text or, with --diagnostics=json, as JSON ----

bool wants_json(const Arguments *arguments);

// Begins a line of progress, which an error ends.
void line_begin(const char *text);
void line_end(void); // where one has begun

// Prints the collected diagnostics.
void diagnostics_print(Arena *a, const Arguments *arguments,
                       Diagnostics *diags);

// Prints an error that is not in a file.
void complain(const Arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Prints that a file cannot be read.
void file_report(Arena *a, const Arguments *arguments, const char *path,
                 const char *why);

// Makes passes print a diagnostic if a graph grows too large.
void complain_when_full(const Arguments *arguments, Graph *g);

// Prints that the costs of a step overflow a counter.
void complain_uncounted(const Arguments *arguments, const Program *p);

// ---- limit.c ----

const char *memory_shown(Arena *a, int64_t bytes);

// Whether the plan fits into --memory; if not, prints the memory that it needs,
// the limit, and the batch that would fit.
bool plan_fits(Arena *a, const Arguments *arguments, const Program *p,
               const Plan *plan);

// The largest batch of the model, otherwise as set, whose plan fits into so
// many bytes, or 0. `keep` turns rematerialization off.
int64_t batch_largest(const Arguments *arguments, const Program *p,
                      int64_t memory, bool keep);

// ---- output.c ----

// Whether `out` is, by any name, a file that was read: an operand, or one that
// a model imports.  Prints an error if so.  p is NULL if there is no model.
bool output_is_input(const Arguments *arguments, const Program *p,
                     const char *out);

// Whether `out` can be written; if not, prints an error and sets *status.
bool output_check(const Arguments *arguments, const Program *p, const char *out,
                  int *status);

// Returns or prints text without control characters, but for tabs and the ends
// of lines in printed text.
const char *text_escaped(Arena *a, const char *s);
void lines_print(const Text *t); // to stdout

// Writes a whole file; false, with errno set, if that fails.
bool file_write(const char *path, const void *bytes, size_t length);

// Each returns an exit status, after a message if it failed.  The last prints
// errno for a file, and returns EXIT_IO.
int text_write(const Arguments *arguments, const char *path, const Text *text);
int folder_make(const Arguments *arguments, const char *path); // may exist
int io_failed(const Arguments *arguments, const char *path);

// Prints a line on stderr: a file was written, its size, its use.  Prints
// nothing with --diagnostics=json.
void wrote_print(const Arguments *arguments, const char *path,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

// ---- model.c ----

// Whether the file is a graph, after a message.
bool graph_refused(const Arguments *arguments, const char *path);

// Loads the model file and prints its diagnostics; NULL and an exit status in
// *status if that fails.  Warnings stay in diags.
Program *model_load(Arena *a, const Arguments *arguments, Diagnostics *diags,
                    int *status);

// The value of --target; cuda by default, as for a trainer.
const char *target_of(const Arguments *arguments);

// Compile options of the program, from the options of the command.
PassOptions plan_options(const Program *p, const Arguments *arguments,
                         const char *device);

// The base name of a file without its extension.
char *stem_of(Arena *a, const char *path);

// ---- graph.c ----

enum { MAX_TEXT = 64 << 20 }; // bytes of a graph or of kernels in a file

// Reads and verifies the graph in the last operand.  NULL and an exit status,
// after a message, if it is not one.
// Whether a text begins as a graph does, and no model file.
bool text_is_graph(const char *text);
Graph *graph_load(Arena *a, const Arguments *arguments, int *status);

// Options for passes on such a graph.
PassOptions graph_options(const Arguments *arguments);

// Writes the kernels of a planned graph.
void kernels_add(Arena *a, Text *t, const Graph *g, bool ir);

// ---- json.c ----

// The end of the string that begins at s; NULL: none begins there.
const char *json_string_end(const char *s);

// The characters of the string that begins at s; NULL: none begins there.
const char *json_string_read(Arena *a, const char *s);

// Whether the text is exactly one JSON object.
bool json_is_object(const char *text);

// ---- one file each ----

int check_command(Arena *a, const Arguments *arguments);
int build_command(Arena *a, const Arguments *arguments);
int train_command(Arena *a, const Arguments *arguments);
int new_command(Arena *a, const Arguments *arguments);
int plan_command(Arena *a, const Arguments *arguments);
int show_command(Arena *a, const Arguments *arguments);
void show_stages(Text *t); // with a sentence each
// Stage i, NULL after the last; *what is NULL for a second form of a stage.
const char *show_stage(int i, const char **what);
int report_command(Arena *a, const Arguments *arguments);
int plot_command(Arena *a, const Arguments *arguments);
int opt_command(Arena *a, const Arguments *arguments);
int lsp_command(Arena *a, const Arguments *arguments);
int data_command(Arena *a, const Arguments *arguments);
int export_command(Arena *a, const Arguments *arguments);
int compare_command(Arena *a, const Arguments *arguments);
int bisect_command(Arena *a, const Arguments *arguments);
int bench_command(Arena *a, const Arguments *arguments);
int lrfind_command(Arena *a, const Arguments *arguments);
int tune_command(Arena *a, const Arguments *arguments);
int repeat_command(Arena *a, const Arguments *arguments);
int runs_command(Arena *a, const Arguments *arguments);
int passes_command(Arena *a, const Arguments *arguments);
int complete_command(Arena *a, const Arguments *arguments);
int manual_command(Arena *a, const Arguments *arguments);
int doctor_command(Arena *a, const Arguments *arguments);
int fmt_command(Arena *a, const Arguments *arguments);
int explain_command(Arena *a, const Arguments *arguments);

#endif
