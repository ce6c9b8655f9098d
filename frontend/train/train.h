// Shared by the files that read the train block.
#ifndef FRONTEND_TRAIN_H
#define FRONTEND_TRAIN_H

#include "frontend/expand/expand.h"

typedef struct TrainBlock TrainBlock;
struct TrainBlock {
    const File *file;
    Span at;
    Value model;
    bool invalid; // keys that others use are wrong
    bool absent;  // the file has no block
    Entry *entry;
    int num_entries;
    Lazy *lazy; // by entry, for the current graph
    struct Regrouped
        *regrouped;  // the optimizers of groups, for the current graph
    Binding *scope;  // of the file
    Time *freeze_at; // by entry; count 0: from the start
    Time *time;      // the distinct others, ascending
    int num_times;
};

// ---- keys.c ----

// The index of a name among the known keys, and among the entries of the block;
// -1 if absent.
int key_find(const char *name);
const char *key_name(int known); // NULL after the last
int entry_find(const TrainBlock *t, const char *name);

// Reports unused keys.
void train_check_used(Expansion *e, const TrainBlock *t);

// Whether an unknown key is a known one misspelt.
bool key_resembles(const char *key, const char *name);

// Flags that may follow the value of a known key.
const char *key_flags(int known);

// Reports too many entries, and repeated keys; clauses with a pattern may
// repeat.
bool keys_check(Expansion *e, Span at, const Entry *entry, int count);

// Reports flags after the keys of a clause, which have none.
bool keys_check_bare(Expansion *e, const Entry *key, int count);

// The value of a key; NONE if it is absent.
Value key_value(Expansion *e, TrainBlock *t, const char *name);

// The value of a required key; poison after a report.
Value key_required(Expansion *e, TrainBlock *t, const char *name,
                   const char *example);

// The span of the value of a key.
Span key_at(const TrainBlock *t, const char *name);

// Reports that `subject` must be `expected`.
Diagnostic *key_report(Expansion *e, Span at, const char *subject,
                       const char *expected);

// Whether v is a call of a class; false after a report.
bool key_call(Expansion *e, Value v, Span at, Class class, const char *subject,
              const char *expected);

// Reads an integer from least to INT32_MAX into *out; false after a report.
bool key_integer(Expansion *e, Value v, Span at, const char *subject,
                 int64_t least, int64_t *out);

// ---- input.c: the model's input ----

// The parameter that takes the data: the only one with a type.
const Param *input_param(Expansion *e, const Function *model);

// Sets e->image; given has the value of each parameter of the model, NONE
// for a default.  False after a report.
bool input_type(Expansion *e, const TrainBlock *block, const Value *given,
                const Param *p);

// Whether the type of `input` fits the model.
bool input_check(Expansion *e, const TrainBlock *block, const Value *given,
                 const Param *p, Value input);

// ---- views.c: test-time augmentation ----

// The output of the model for images; poison after a report.
typedef Value ViewOutput(Expansion *e, void *context, Value image);

// The weighted mean of the model's output over e's views of the images, or of
// each named output.  Poison after a report.
Value views_mean(Expansion *e, ViewOutput *output_of, void *context,
                 Value image);

// Reads the list of views into e.  False after a report.
bool views_read(Expansion *e, TrainBlock *t, const Expr *list);

// ---- clause.c: eval, checkpoint, stop ----

// Reads a time above 0; false after a report.
bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *subject,
               Time *out);

// Reads the clauses into e->recipe.  False after a report.
bool clauses_read(Expansion *e, TrainBlock *t);

// ---- glob.c: patterns of parameters ----

// Whether a clause matches the parameter of that name.
bool glob_matches(Expansion *e, const TrainBlock *t, const Entry *clause,
                  const char *name);

// False, with a report, if a clause matches no parameter.
bool glob_check(Expansion *e, const TrainBlock *t, const Entry *clause);

// ---- group.c: params ----

// Checks the blocks themselves; false after a report.
bool groups_check(Expansion *e, const TrainBlock *t);

// Whether some group has its own optimizer.
bool groups_have_optimizer(const TrainBlock *t);

// The optimizer of a parameter, base being that of the train block or NULL;
// NULL after a report.
const Call *group_optimizer(Expansion *e, TrainBlock *t, const Call *base,
                            const Parameter *p);

// ---- freeze.c: freezing parameters ----

// The times at which parameters freeze, ascending.  Stage 0 is before the
// first, stage i begins at time i - 1.
const Time *freeze_times(const TrainBlock *t, int *count);

// Whether a parameter is frozen in a stage.
bool is_frozen(Expansion *e, const TrainBlock *t, const Parameter *p,
               int stage);

// Notes the parameters that are frozen from the start with random values.
void freezes_count_random(Expansion *e, const TrainBlock *t, Recipe *r);

// Reads the freeze clauses.  False after a report.
bool freezes_read(Expansion *e, TrainBlock *t);

// False, with a report, if a pattern matches no parameter, or none is left to
// train.
bool freezes_check(Expansion *e, const TrainBlock *t);

// ---- recipe.c: the train block ----

// The train block of f with its settings; NULL after a report.
TrainBlock *train_new(Expansion *e, const File *f);

// Offers the keys that can be set.
void train_offer_keys(const TrainBlock *t, Nearest *n);

// Whether a name is a clause, as eval.
bool train_is_clause(const char *name);

// The model that the block trains.
Value train_model(const TrainBlock *t);

// Reads keys that graphs depend on into e->recipe and e->data.
bool train_constants(Expansion *e, TrainBlock *t);

// Warns of a short last batch.  It comes last, as no error follows from it.
void train_warn_batch(Expansion *e, const TrainBlock *t);

// False, with a report, if an evaluation needs full batches and the known size
// of the data leaves a short one.
bool train_check_batch(Expansion *e, const TrainBlock *t);

// Values of the current graph; call train_begin first.
void train_begin(Expansion *e, TrainBlock *t);
Value train_input(Expansion *e, TrainBlock *t);
Value train_loss(Expansion *e, TrainBlock *t, Value output);
Value train_optimizer(Expansion *e, TrainBlock *t);
Value train_rate(Expansion *e, TrainBlock *t, const Call *optimizer);

// ---- setting.c: settings of the command line ----

// Sets keys of the block, arguments of their calls, and parameters of the
// model, for which arg has room.  Reports the others.
void settings_apply(Expansion *e, TrainBlock *t, const Setting *setting,
                    int num_settings, Value *arg);

// ---- update.c: the updates of a step ----

// Adds the updates of a stage.  False after a report.
bool update_add(Expansion *e, TrainBlock *t, int stage);

// ---- average.c ----

// Builds p->average if there are averages, and sets e->eval_averages if an
// evaluation uses them.  False after a report.
bool average_build(Expansion *e, TrainBlock *t, Program *p);

// ---- collect.c: statistics for initialisation ----

// The nodes that a graph's effects need.
bool *effects_needed(Expansion *e, const Graph *g);

// Whether some parameter starts from the data; sets the number of samples in
// e->recipe.
bool collect_needed(Expansion *e);

// Finishes the collect graph, in which e->collecting was set; NULL after a
// report.
Graph *collect_finish(Expansion *e);

// ---- stage.c: the train graphs ----

// Builds the stages of p from e->graph, which has the model and its loss.
// False after a report.
bool stages_build(Expansion *e, TrainBlock *t, Program *p);

// ---- lower.c: the graphs ----

// Begins another graph; lazy values are computed anew.
void graph_begin(Expansion *e, TrainBlock *t, const char *name, bool training);

Program *lower(Expansion *e, TrainBlock *t, const Value *model_arg);

// Reports the errors of the model, the loss and the optimizer although keys
// that they use are invalid.
void lower_invalid(Expansion *e, TrainBlock *t, const Value *model_arg);

#endif
