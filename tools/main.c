// sinter: runs the command that the first word names.
#include "base/exits.h"
#include "base/standard.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>

// clang-format off
const Command commands[] = {
    {"Start", "new", "DIR", 1, 1, new_command,
     "Create a folder with a model file to start from, for images, a table or "
     "a text."},
    {NULL, "train", "FILE.net", 1, 1, train_command,
     "Build the trainer of a model, if it has changed, and run it."},
    {NULL, "check", "FILE.net", 1, 1, check_command,
     "Print the layers of a model and the cost of a step."},
    {NULL, "plan", "FILE.net", 1, 1, plan_command,
     "Estimate the step of a model on many GPUs or processes, and its "
     "communication."},
    {NULL, "build", "FILE.net", 1, 1, build_command,
     "Compile a model file to a trainer."},
    {NULL, "export", "FILE.net", 1, 1, export_command,
     "Write a trained model as an ONNX file, a PyTorch module or its "
     "safetensors."},
    {NULL, "data", "stats|verify|bench FILE.net | tokenize TEXT...", 2, INT_MAX,
     data_command,
     "Print the statistics of a data set, check that all of it can be read, "
     "measure its loading, or write texts as tokens."},
    {NULL, "runs", "[DIR | RUN RUN]", 0, 2, runs_command,
     "List the runs in a folder, runs by default, or compare two."},
    {"Look", "show", "STAGE FILE.net", 1, INT_MAX, show_command,
     "Print the graph of a model at any stage, its kernels, launches, memory "
     "or recipe; or a module such as std/vision.net."},
    {NULL, "report", "FILE.net", 1, 1, report_command,
     "Write a page of HTML: a model, its kernels, memory, roofline and "
     "schedules."},
    {NULL, "plot", "RUN... [METRIC...]", 1, INT_MAX, plot_command,
     "Draw the curves of runs as one SVG file. A run is a folder with "
     "metrics.jsonl, or a file of --metrics."},
    {NULL, "fmt", "FILE.net...", 1, INT_MAX, fmt_command,
     "Format model files; - is standard input."},
    {NULL, "lsp", "", 0, 0, lsp_command,
     "Serve an editor with errors, shapes and names of model files, as a "
     "language server."},
    {NULL, "explain", "CODE", 1, 1, explain_command,
     "Explain a diagnostic such as E0312, with an example."},
    {"Compare, and find a fault", "compare", "FILE.net", 1, 1, compare_command,
     "Build a model in two variants, run both, and compare every tensor that "
     "both store."},
    {NULL, "bisect", "FILE.net", 1, 1, bisect_command,
     "Find the first rewrite that breaks a result, and write its kernel to a "
     "folder."},
    {"Measure", "bench", "FILE.net", 1, 1, bench_command,
     "Measure the step of a model in several runs."},
    {NULL, "lrfind", "FILE.net", 1, 1, lrfind_command,
     "Raise the learning rate from step to step, and print the rates at which "
     "the loss falls."},
    {NULL, "tune", "FILE", 1, 1, tune_command,
     "Measure on a GPU which library plans and fusions are fastest, for a "
     "model or a trainer."},
    {NULL, "repeat", "FILE", 1, 1, repeat_command,
     "Train from several seeds, a model or a trainer, and print the spread of "
     "the results."},
    {"Tools", "opt", "FILE.ir", 1, 1, opt_command,
     "Read a graph, run passes, print the graph."},
    {NULL, "doctor", "", 0, 0, doctor_command,
     "List the libraries, GPUs and compilers on this machine, and missing "
     "packages."},
    {NULL, "passes", "", 0, 0, passes_command,
     "List the passes in their order."},
    {NULL, "complete", "-- WORD...", 0, 0, complete_command,
     "Print what the last word can become, for the completions of shells."},
    {NULL, "manual", "DIR", 1, 1, manual_command,
     "Write a manual page of each command into a folder."},
    {.name = NULL},
};
// clang-format on

static const Command *command_find(const char *name) {
    for (const Command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void command_unknown(const Arguments *arguments, const char *name) {
    Nearest near = nearest_to(name);
    for (const Command *c = commands; c->name; c++)
        nearest_offer(&near, c->name);
    if (near.best)
        complain(arguments, "no command '%s'; did you mean %s?", name,
                 near.best);
    else
        complain(arguments, "no command '%s'; see sinter help", name);
}

// A command and a sentence, in lines of 80 columns.
static void help_line(FILE *to, const char *name, const char *what) {
    enum { INDENT = 12, WIDTH = 80 };
    int column = fprintf(to, "  %-*s", INDENT - 2, name);
    for (const char *word = what; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        if (column > INDENT && column + 1 + length > WIDTH)
            column = fprintf(to, "\n%*s", INDENT, "") - 1;
        column +=
            fprintf(to, "%s%.*s", column > INDENT ? " " : "", length, word);
        word += length;
    }
    fputc('\n', to);
}

static void help_print(FILE *to) {
    fputs("usage: sinter COMMAND ...\n\n"
          "A compiler for training: a model file becomes a trainer.\n",
          to);
    for (const Command *c = commands; c->name; c++) {
        if (c->title)
            fprintf(to, "\n%s\n", c->title);
        help_line(to, c->name, c->what);
    }
    help_line(to, "version", "Print the version.");
    fputs("\nsinter COMMAND --help lists a command's options.\n", to);
}

static int command_help(Arena *a, const Command *command) {
    Text t = text_new(a);
    arguments_help(&t, command);
    if (command->run == show_command)
        show_stages(&t);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}

// Flushes standard output; status 74 if that fails.
static int output_end(const Arguments *arguments, int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    complain(arguments, "standard output: %s", strerror(errno));
    return EXIT_IO;
}

static int command_run(const Command *command, int count, char **word) {
    Arena *a = arena_new();
    Arguments arguments = {.passed = ARENA_ARRAY(a, (size_t)count + 1, char *)};
    int status = EXIT_USAGE;
    if (arguments_parse(&arguments, command, count, word))
        status = arguments.help ? command_help(a, command)
                                : command->run(a, &arguments);
    arena_free(a);
    return output_end(&arguments, status);
}

static bool is_word(const char *word, const char *name) {
    return strcmp(word, name) == 0 ||
           (word[0] == '-' && word[1] == name[0] && word[2] == '\0') ||
           (strncmp(word, "--", 2) == 0 && strcmp(word + 2, name) == 0);
}

// Keeps freed memory for the next of many graphs instead of returning it to the
// system.
static void keep_memory(void) {
#ifdef M_TRIM_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

int main(int argc, char **argv) {
    const Arguments none = {0};
    standard_open();
    keep_memory();
    signal(SIGXFSZ, SIG_IGN); // a write beyond the limit fails with a message
    signal(SIGCHLD, SIG_DFL); // or waitpid reports no status
    if (argc < 2) {
        help_print(stderr);
        return EXIT_USAGE;
    }
    if (is_word(argv[1], "help")) {
        help_print(stdout);
        return output_end(&none, EXIT_GOOD);
    }
    if (is_word(argv[1], "version")) {
        puts("sinter " SINTER_VERSION);
        return output_end(&none, EXIT_GOOD);
    }
    const Command *command = command_find(argv[1]);
    if (command)
        return command_run(command, argc - 2, argv + 2);
    const Arguments words = {.diagnostics =
                                 diagnostics_format(argc - 1, argv + 1)};
    command_unknown(&words, argv[1]);
    return EXIT_USAGE;
}
