// The train block, as the files that read it share it.
#ifndef FRONTEND_TRAIN_H
#define FRONTEND_TRAIN_H

#include "frontend/functions/functions.h"

typedef enum { UNTOUCHED, IN_PROGRESS, DONE } Progress;

// A name of the train block: one of its keys, or a variable of the run.
struct Lazy {
    const Entry *entry;   // NULL: a variable
    const char *variable; // step, epoch, progress, output, label, input
    bool hides;           // the file gives the variable's name to another
    Phase phase;
    Binding *scope;
    Progress progress;
    bool used;
    Value value;
};

typedef struct TrainBlock TrainBlock;
struct TrainBlock {
    const File *file;
    Span at;
    Value model;
    bool doubtful; // keys that others rest on are wrong
    Entry *entry;
    int num_entries;
    Lazy *lazy;                  // of each entry, for the current graph
    struct Regrouped *regrouped; // the optimizers of groups, for it too
    Binding *scope;              // of the file
    Time *freeze_at;             // of each entry; count 0: from the start
    Time *moment;                // the others, once each, ascending
    int num_moments;
};

// ---- keys.c ----

// The place of a name among the keys that the language has, and among the
// entries of the block; -1 where it is not there.
int key_find(const char *name);
const char *key_name(int known); // NULL after the last
int entry_find(const TrainBlock *t, const char *name);

// Reports keys that nothing has used.
void train_check_used(Expansion *e, const TrainBlock *t);

// Whether a key that the language has not is a misspelt one that it has.
bool key_means(const char *key, const char *name);

// Words that may follow the value of a known key.
const char *key_flags(int known);

// Reports too many entries, and keys that are given twice; clauses that name
// parameters may be.
bool keys_check(Expansion *e, Span at, const Entry *entry, int count);

// Reports words after the values of a clause's keys, which have none.
bool keys_check_bare(Expansion *e, const Entry *key, int count);

// The value of a key; NOTHING where it is not given.
Value key_value(Expansion *e, TrainBlock *t, const char *name);

// The value of a key that must be given; poison after a report.
Value key_needed(Expansion *e, TrainBlock *t, const char *name,
                 const char *example);

// Where the value of a key stands.
Span key_at(const TrainBlock *t, const char *name);

// Reports that what is at a place must be what is wanted.
Diagnostic *key_report(Expansion *e, Span at, const char *what,
                       const char *wanted);

// Whether it is a call of that class; false after a report.
bool key_call(Expansion *e, Value v, Span at, Class class, const char *what,
              const char *wanted);

// Puts a whole number from least to INT32_MAX into *out; false after a report.
bool key_whole(Expansion *e, Value v, Span at, const char *what, int64_t least,
               int64_t *out);

// ---- input.c: what the model takes ----

// The parameter that takes the data: the only one with a type.
const Param *input_param(Expansion *e, const Function *model);

// Sets e->image; given has the value of each parameter of the model, NOTHING
// where its default is meant.  False after a report.
bool input_type(Expansion *e, const TrainBlock *block, const Value *given,
                const Param *p);

// Whether the model takes what the key `input` gives.
bool input_check(Expansion *e, const TrainBlock *block, const Value *given,
                 const Param *p, Value input);

// ---- views.c: how evaluation looks at an image ----

// The output of the model for images; poison after a report.
typedef Value ViewOutput(Expansion *e, void *whose, Value image);

// The weighted mean of what the model gives over e's views of the images. False
// after a report.
bool views_mean(Expansion *e, ViewOutput *output_of, void *whose, Value image,
                NodeId *mean);

// Reads the list of views into e.  False after a report.
bool views_read(Expansion *e, TrainBlock *t, const Expr *list);

// ---- clause.c: eval, checkpoint, stop ----

// The time above 0 that is written; false after a report.
bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *what,
               Time *out);

// Reads them into e->recipe.  False after a report.
bool clauses_read(Expansion *e, TrainBlock *t);

// ---- glob.c: names of parameters ----

// Whether a clause is about the parameter of that name.
bool glob_matches(Expansion *e, const TrainBlock *t, const Entry *clause,
                  const char *name);

// False, with a report, when a clause is about none.
bool glob_check(Expansion *e, const TrainBlock *t, const Entry *clause);

// ---- group.c: params ----

// False after a report about the blocks themselves.
bool groups_check(Expansion *e, const TrainBlock *t);

// Whether some group has an optimizer of its own.
bool groups_have_optimizer(const TrainBlock *t);

// The optimizer of a parameter, base being that of the train block or NULL;
// NULL after a report.
const Call *group_optimizer(Expansion *e, TrainBlock *t, const Call *base,
                            const Parameter *p);

// ---- freeze.c: parameters that stop to train ----

// The moments at which parameters are frozen, ascending.  Stage 0 is before the
// first of them, stage i begins at moment i - 1.
const Time *freeze_moments(const TrainBlock *t, int *count);

// Whether a parameter is frozen in a stage.
bool freeze_holds(Expansion *e, const TrainBlock *t, const Parameter *p,
                  int stage);

// Reads the times of freezing.  False after a report.
bool freezes_read(Expansion *e, TrainBlock *t);

// False after a report of a name that is nobody's, or when nothing is left to
// train.
bool freezes_check(Expansion *e, const TrainBlock *t);

// ---- recipe.c: the train block ----

// The train block of f with the settings that concern it; NULL after a
// report.
TrainBlock *train_new(Expansion *e, const File *f);

// Offers the keys that can be set.
void train_offer_keys(const TrainBlock *t, Nearest *n);

// Whether a name is that of a clause, as eval.
bool train_is_clause(const char *name);

// The model that the block trains.
Value train_model(const TrainBlock *t);

// Reads what must be known before a graph is built into e->recipe and e->data.
bool train_constants(Expansion *e, TrainBlock *t);

// Warns of a last batch that is short.  It comes last, as no mistake follows
// from that.
void train_warn_batch(Expansion *e, const TrainBlock *t);

// False, with a report, where an evaluation needs whole batches and the size of
// the data is known and leaves a short one.
bool train_check_batch(Expansion *e, const TrainBlock *t);

// Values of the graph that is being built.  train_begin comes first.
void train_begin(Expansion *e, TrainBlock *t);
Value train_input(Expansion *e, TrainBlock *t);
Value train_loss(Expansion *e, TrainBlock *t, Value output);
Value train_optimizer(Expansion *e, TrainBlock *t);
Value train_rate(Expansion *e, TrainBlock *t, const Call *optimizer);

// ---- setting.c: what the command line sets ----

// Sets keys of the block, arguments of their calls, and parameters of the
// model, of which arg has room for all.  What cannot be set is reported.
void settings_apply(Expansion *e, TrainBlock *t, const Setting *setting,
                    int num_settings, Value *arg);

// ---- update.c: what a step does to the parameters ----

// Adds the updates of a stage.  False after a report.
bool update_add(Expansion *e, TrainBlock *t, int stage);

// ---- average.c ----

// The average of a parameter or statistic, which starts at `init`, and its
// name.
const char *average_name(Expansion *e, const char *name);
NodeId average_node(Expansion *e, const char *name, Type type, double init);

// Builds p->average where averages are kept, and e->eval_averages where an
// evaluation is of them.  False after a report.
bool average_build(Expansion *e, TrainBlock *t, Program *p);

// ---- collect.c: before parameters start ----

// The nodes of a graph that its effects need.
bool *effects_needed(Expansion *e, const Graph *g);

// Whether some parameter starts from the data, and from how many samples: that
// is left in e->recipe.
bool collect_wanted(Expansion *e);

// What remains of the current graph, in which e->collecting was set; NULL after
// a report.
Graph *collect_finish(Expansion *e);

// ---- stage.c: the graphs that train ----

// Builds the stages of p from e->graph, which has the model and its loss.
// False after a report.
bool stages_build(Expansion *e, TrainBlock *t, Program *p);

// ---- lower.c: the graphs ----

// Begins another graph, in which names of the train block have new values.
void graph_begin(Expansion *e, TrainBlock *t, const char *name, bool training);

Program *lower(Expansion *e, TrainBlock *t, const Value *model_arg);

// Reports what is wrong with the model, the loss and the optimizer where keys
// that they rest on are wrong already.
void lower_doubtful(Expansion *e, TrainBlock *t, const Value *model_arg);

#endif
