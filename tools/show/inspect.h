// Inspect: lines, costs and texts of the launches of a trainer.
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "base/source.h"
#include "codegen/codegen.h"
#include "tools/machine.h"
#include "tools/show/show.h"
#include "tools/tile.h"

enum { MAX_ARCHS = 16 };

// The limit of a launch's time.
typedef enum {
    BY_MEMORY,
    BY_ARITHMETIC,
    BY_ISSUE, // of instructions
    NUM_BOUNDS
} Bound;

extern const char *const bound_name[NUM_BOUNDS];

// A line of the model from which an operation of a launch comes.
typedef struct {
    const char *file;
    int line;
} ModelLine;

// The bytes and flops of a launch that belong to one line and layer.
typedef struct {
    const Origin *from;
    CallSite site; // the charged line: see program_site
    int64_t bytes, flops;
} Charge;

// Launch `index` of a step: a kernel, or a library call if kernel->text is
// NULL. Or a merged launch, with the index of its first kernel.
typedef struct {
    const Step *step;
    const Group *group; // of the step's plan; the kernel's is of the host's
    const Kernel *kernel;
    const MergedKernel *merged; // NULL: not a merged launch
    int index, count;           // count: launches that are merged, else 1
    ModelLine *line;
    int num_lines;
    Charge *charge; // in order of lines; none for a merged launch
    int num_charges;
    int64_t bytes, flops;
    double seconds;                  // on the described device, by its roofline
    double estimate;                 // seconds there, by the cost model
    Bound bound;                     // takes longest of them
    bool chosen;                     // selected by --kernel, --line and --op
    bool taken;                      // the device uses this merged launch
    const char *fused_into, *fusion; // library call that does its work
    const TileKernel *tile; // that can compute it; NULL: none
    TileTime tile_time;     // of that
    TileTime with_windows[TILE_OPERANDS]; // of that, see TileFusion's windows
    const Edge *edge;                // its reads of other launches' results
    int num_edges;
    const char *merged_as; // the merged launch that contains it
    const char *merged_to; // the launch before it there
    KernelCost cost;       // of a kernel, estimated
    int64_t elements;      // of its iteration space; 0: it has several
    Resources *resources;  // for each of the archs; NULL: not requested
} Inspected;

// All launches of the shown steps, and all possible merged launches.
typedef struct {
    const Program *p;
    const Device *device;
    const Plan *plan;
    const Plan *host;         // NULL of inspect_step
    const Step *step;         // the shown one, of inspect_step
    const char *header;       // text before every kernel
    const Launches *launches; // of all steps of the plan
    Inspected *launch, *merged;
    int count, num_merged;
    int arch[MAX_ARCHS], num_archs;
    const char *compiler; // "NVRTC 13.0"; NULL: not used
    const char *why;      // the reason why NVRTC failed
} Inspection;

// ---- inspect.c ----

// Collects the launches of the step of --graph, or of all steps.  False and an
// exit status, after a message, if that fails.
bool inspect(Show *s, const Device *device, Inspection *out, int *status);

// Collects the launches of one step, planned for --target, without the texts of
// a trainer.
bool inspect_step(Show *s, const Device *device, Inspection *out, int *status);

// The next operation of the launch that computes something, NO_NODE after the
// last; `from` is NO_NODE for the first.
NodeId launch_operation(const Inspected *l, NodeId from);

// Floating point operations of one operation.
int64_t operation_flops(const Graph *g, NodeId n);

// Its name in listings and profilers.
const char *launch_name(const Inspected *l);

// Blocks on a GPU; 0 for a call.
int launch_blocks(const Inspected *l);

// Warp instructions of the launch.
double launch_instructions(const Inspected *l, Issue kind);

// The issue_seconds of its kernels.
double launch_issue_seconds(const Inspected *l, const Device *d);

// Its text, which equal launches share; NULL for a call.
const char *launch_text(const Inspected *l);

// The same; NULL also if an earlier selected launch has that text.
const char *launch_new_text(const Inspection *in, const Inspected *l);

// The name of a parameter, else the path of a tensor's layer, or "".
const char *tensor_name(const Node *n);

// ---- charges.c ----

// Finds the charges of a launch that is not a merged one.
void charges_find(Arena *a, const Program *p, Inspected *l);

// ---- filter.c ----

// Whether --kernel, --line and --op select it.  A merged launch that the
// described device does not use is selected by name only.
bool launch_matches(const Inspected *l, const Program *p,
                    const Arguments *arguments);

// Prints why no launch is selected, and near names.
void filter_report(const Show *s, const Inspection *in);

// ---- resources.c ----

// Reads a list such as sm_80,sm_90. False after a message.
bool archs_parse(const Arguments *arguments, const Device *device,
                 Inspection *out);

// Compiles selected kernels with NVRTC for their resources, if requested.
void resources_find(Arena *a, Inspection *in);

// ---- code.c ----

// A kernel, a merged launch, or functions that merged launches call.
typedef struct {
    const char *name; // of the entry; NULL for functions
    const char *text;
    const char *step; // the first step that has it
} CodeText;

// PTX or machine code of the selected launches.
typedef struct {
    CodeText *text; // each once, in the order of the launches
    int count;
    const char *bytes;
    size_t length;
    const char *origin; // "sm_90 by NVRTC 13.0"
} Code;

ViewWriter ptx_write, sass_write;

// ---- tile.c ----

ViewWriter tile_write;

// Finds the tile kernels of a step, whose launches begin at first.
void tiles_find(Arena *a, Inspected *first, const Launches *l, const Device *d);
// Configuration number i of those that builds try for the device, the best
// first, with its estimate; NULL behind the last.
const TileConfig *tile_candidate(const TileKernel *k, int i, double *seconds);

// ---- disassembler.c ----

// Finds nvdisasm; NULL after a message.
const char *disassembler_find(Arena *a, const Arguments *arguments);

// Disassembles machine code.  NULL and an exit status, after a message.
const char *disassembler_run(Arena *a, const Arguments *arguments,
                             const char *program, const Code *code,
                             int *status);

// ---- listing.c ----

// Writes the instructions of each kernel in the disassembler's output, below
// the lines of these sources, which end with NULL. Returns the name of a kernel
// that the output lacks, or has cut off; else NULL.
const char *listing_add(Arena *a, Text *out, const char *said, const Code *code,
                        const Source *const *source);

// ---- memory.c, params.c, recipe.c ----

ViewWriter memory_write, params_write, recipe_write;

// Writes the parameters of a plan, those of a step first.
void params_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step);

// ---- launches.c ----

// Writes a line for each selected launch of the step, with its library fusion
// and its merged launch on the device.
void launches_print(Arena *a, Text *t, const Inspection *in);

// ---- fusion.c ----

// Writes "%12 conv f32[8,4,4,16] resnet9.net:14 layer1.conv_1".
void value_add(Text *t, const Graph *g, NodeId n);

// Writes the selected groups of the step: their operations, their reads and the
// reasons for them, and the hidden launches that read their results.
void fusion_print(Text *t, const Inspection *in);

// ---- kernels.c, kernels_json.c ----

void kernels_print(Arena *a, Text *t, const Inspection *in);
void kernels_json(Arena *a, Text *t, const Inspection *in);

#endif
