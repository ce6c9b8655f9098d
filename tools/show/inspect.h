// What is known of each launch of a trainer, for people and for programs.
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "base/source.h"
#include "codegen/codegen.h"
#include "tools/machine.h"
#include "tools/show/show.h"

enum { MAX_ARCHS = 16 };

// A line of a file that an operation of a launch came from.
typedef struct {
    const char *file;
    int line;
} ModelLine;

// A share of a launch: its bytes and flops that belong to one line and layer.
typedef struct {
    const Origin *from;
    CallSite site; // the line that it is charged to: see program_site
    int64_t bytes, flops;
} Charge;

// Launch `index` of a step: a kernel or, where kernel->text is NULL, a call of
// a library.  Of launches that are merged the first.
typedef struct {
    const Step *step;
    const Kernel *kernel;
    const MergedKernel *merged; // NULL: it is a launch of its own
    int index, count;           // launches: 1, or those that are merged
    ModelLine *line;
    int num_lines;
    Charge *charge; // of a launch of its own, in order of lines
    int num_charges;
    int64_t bytes, flops;
    double seconds;                  // on the described device, by the roofline
    bool by_memory;                  // whether memory is what takes so long
    bool chosen;                     // by --kernel, --line and --op
    bool taken;                      // of merged ones: the device launches them
    const char *fused_into, *fusion; // the call whose fusion does its work
    const Edge *edge;                // what it reads of other launches
    int num_edges;
    const char *merged_as; // what launches it with others
    const char *merged_to; // the launch before it there
    Resources *resources;  // for each of the archs; NULL: not asked for
} Inspected;

// All launches of the steps that are shown, and all that may be merged.
typedef struct {
    const Program *p;
    const Device *device;
    const Plan *plan;
    const Step *step;         // the one that is shown, of inspect_step
    const char *header;       // what every kernel's text needs before it
    const Launches *launches; // of all steps of the plan
    Inspected *launch, *merged;
    int count, num_merged;
    int arch[MAX_ARCHS], num_archs;
    const char *compiler; // "NVRTC 13.0"; NULL: not asked
    const char *why;      // it was asked and could not answer
} Inspection;

// ---- inspect.c ----

// The launches of the step that --graph names, or of all.  False, and an exit
// status, after a message.
bool inspect(Show *s, const Device *device, Inspection *out, int *status);

// The launches of one step as they are planned for what --target names: what
// is launched, without the texts of a trainer.
bool inspect_step(Show *s, const Device *device, Inspection *out, int *status);

// Operations of the launch that compute something, in their order: NO_NODE
// after the last, starting with from = NO_NODE.
NodeId launch_operation(const Inspected *l, NodeId from);

// Floating point operations of one operation.
int64_t operation_flops(const Graph *g, NodeId n);

// What it is called in listings and by profilers.
const char *launch_name(const Inspected *l);

// Blocks on a GPU; 0 for a call.
int launch_blocks(const Inspected *l);

// Its text, which launches that do the same share; NULL for a call.
const char *launch_text(const Inspected *l);

// The same, NULL also where a launch before it that is chosen has that text.
const char *launch_new_text(const Inspection *in, const Inspected *l);

// What a tensor is called: a parameter's name, else its layer's path, or "".
const char *tensor_name(const Node *n);

// ---- charges.c ----

// Finds the charges of a launch of its own.
void charges_find(Arena *a, const Program *p, Inspected *l);

// ---- chosen.c ----

// Whether it is what --kernel, --line and --op ask for.  Merged launches that
// the described device does not take are chosen by name alone.
bool launch_is_chosen(const Inspected *l, const Program *p,
                      const Arguments *arguments);

// Says why none of the launches is, and what is near.
void complain_of_choice(const Show *s, const Inspection *in);

// ---- resources.c ----

// The capabilities in a list such as sm_80,sm_90.  False after a message.
bool archs_parse(const Arguments *arguments, const Device *device,
                 Inspection *out);

// Asks NVRTC for what chosen kernels take, if it is wanted.
void resources_find(Arena *a, Inspection *in);

// ---- code.c ----

// A kernel or merged launches, or functions that merged launches call.
typedef struct {
    const char *name; // of what is launched; NULL for functions
    const char *text;
    const char *step; // the first that has it
} CodeText;

// What NVIDIA's compiler made of what is chosen.
typedef struct {
    CodeText *text; // each once, in the order of the launches
    int count;
    const char *bytes;
    size_t length;
    const char *origin; // "sm_90 by NVRTC 13.0"
} Code;

ViewWriter ptx_write, sass_write, lines_write;

// ---- disassembler.c ----

// The disassembler that is installed; NULL after a message.
const char *disassembler_find(Arena *a, const Arguments *arguments);

// What it prints of machine code.  NULL, and an exit status, after a message.
const char *disassembler_run(Arena *a, const Arguments *arguments,
                             const char *program, const Code *code,
                             int *status);

// ---- listing.c ----

// Writes the instructions of each kernel, from what the disassembler printed,
// below the lines of these sources, which end with NULL.  The name of a kernel
// that it did not print to the end; NULL: there is none.
const char *listing_add(Arena *a, Text *out, const char *said, const Code *code,
                        const Source *const *source);

// ---- memory.c, params.c, recipe.c ----

ViewWriter memory_write, params_write, recipe_write;

// Writes the parameters of a plan, those of a step first.
void params_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step);

// ---- launches.c ----

// Writes a line for each chosen launch of the step, and what a library can take
// over and what it is merged as on the device.
void launches_print(Arena *a, Text *t, const Inspection *in);

// ---- fusion.c ----

// Writes "%12 conv f32[8,4,4,16] resnet9.net:14 layer1.conv_1".
void value_add(Text *t, const Graph *g, NodeId n);

// Writes the chosen groups of the step: their operations, what they read of one
// another, and why that goes through memory; also what launches read of
// them that are not chosen.
void fusion_print(Text *t, const Inspection *in);

// ---- kernels.c, kernels_json.c ----

void kernels_print(Arena *a, Text *t, const Inspection *in);
void kernels_json(Arena *a, Text *t, const Inspection *in);

#endif
