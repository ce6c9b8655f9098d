// Repro: writes a program of one kernel and its inputs.
//
// The program's arena has the inputs at the plan's offsets, else zeros.  The
// expected outputs follow in double.  The text is a program for the host, and
// for a GPU if nvcc compiles it.
#include "tools/compare/repro.h"
#include "base/exits.h"
#include "codegen/codegen.h"
#include "tools/compare/isolated.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    Arena *a;
    const Variant *variant;
    const Snapshot *s;
    const Graph *g;
    const Kernel *launch,
        *kernel; // the launch, and the one whose text it shares
    NodeId node;
    Text input; // rows of the table of inputs
    FILE *bin;
} Repro;

static DType stored_type(const Graph *g, Type t) {
    return t.dtype == ACT ? g->act : t.dtype;
}

// Adds the recorded bytes of node n to the file, and a row to the table.
static void input_add(Repro *r, NodeId n) {
    const Node *d = &r->g->node[n];
    const void *held =
        op_info[d->op].traits & LEAF ? r->s->before[n] : r->s->found[n];
    size_t bytes = (size_t)graph_bytes(r->g, d->type);
    if (held == NULL)
        return;
    text_add(&r->input, "    {%" PRId64 ", %zu}, // %%%u\n", d->offset, bytes,
             n);
    fwrite(held, 1, bytes, r->bin);
}

// Adds the inputs of a launch, and the states that it assigns, as it may read
// parts of them.
static void inputs_add(Repro *r) {
    const Kernel *k = r->launch;
    bool *added = ARENA_ARRAY(r->a, (size_t)r->g->count + 1, bool);
    for (int i = 0; i < k->num_args; i++) {
        NodeId n = k->arg[i].node;
        if (n != NO_NODE && !added[n])
            input_add(r, n);
        if (n != NO_NODE)
            added[n] = true;
    }
    for (int i = 0; i < k->group->num_inputs; i++)
        if (!added[k->group->input[i]])
            input_add(r, k->group->input[i]);
}

static void right_add(Repro *r, const double *right) {
    fwrite(right, sizeof *right, (size_t)type_count(r->g->node[r->node].type),
           r->bin);
}

static const char *c_type(DType d) {
    return d == I32                ? "int32_t"
           : d == U8 || d == BOOL  ? "uint8_t"
           : d == F16 || d == BF16 ? "uint16_t"
                                   : "float";
}

// C expression for element i of the output as a double: finite, or large.
static const char *element(DType d) {
    return d == F16 ? "ldexp(found[i] & 0x7c00 ? 1024 + (found[i] & 1023) : "
                      "found[i] & 1023, (found[i] & 0x7c00 ? found[i] >> 10 & "
                      "31 : 1) - 25) * (found[i] >> 15 ? -1 : 1)"
           : d == BF16
               ? "ldexp(found[i] & 0x7f80 ? 128 + (found[i] & 127) : found[i] "
                 "& 127, (found[i] & 0x7f80 ? found[i] >> 7 & 255 : 1) - 134) "
                 "* (found[i] >> 15 ? -1 : 1)"
               : "(double)found[i]";
}

// The bits of SINTER_ACT.
static int act_bits(DType act) {
    return act == F16 ? 16 : act == BF16 ? 1 : 32;
}

// ---- the text ----

static void entry_add(Repro *r, Text *t) {
    const Kernel *k = r->kernel;
    text_add(t, "#ifndef __CUDACC__\nHOST_KERNEL(%s", k->name);
    for (int j = 0; j < k->num_args; j++)
        if (k->arg[j].node == NO_NODE)
            text_add(t, ",\n            arena");
        else
            text_add(t, ",\n            ARG(%s *, %d)", k->arg[j].type, j);
    text_add(t, ")\n#endif\n\n// Where its arguments are.\n"
                "static const size_t arg[] = {\n");
    for (int j = 0; j < r->launch->num_args; j++) {
        text_add(t, "    %" PRId64 ",\n",
                 parameter_address(r->g, &r->launch->arg[j]));
    }
    text_add(t, "};\n");
}

static const char run_text[] =
    "\n"
    "#ifdef __CUDACC__\n"
    "static void must(cudaError_t status) {\n"
    "    if (status != cudaSuccess) {\n"
    "        fprintf(stderr, \"%s\\n\", cudaGetErrorString(status));\n"
    "        exit(2);\n"
    "    }\n"
    "}\n"
    "\n"
    "// Blocks that wait for each other must all be resident.\n"
    "static int resident(void) {\n"
    "    int each = 0, processors = 0;\n"
    "    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, RUN, "
    "THREADS_EACH, 0));\n"
    "    must(cudaDeviceGetAttribute(&processors, "
    "cudaDevAttrMultiProcessorCount, 0));\n"
    "    return each * processors;\n"
    "}\n"
    "\n"
    "static void run(char *arena) {\n"
    "    enum { ARGS = sizeof arg / sizeof *arg };\n"
    "    char *on, *at[ARGS];\n"
    "    void *given[ARGS];\n"
    "    int most = PHASES > 1 ? resident() : BLOCKS;\n"
    "    int blocks = most < BLOCKS ? most : BLOCKS;\n"
    "    must(cudaMalloc((void **)&on, ARENA));\n"
    "    must(cudaMemcpy(on, arena, ARENA, cudaMemcpyHostToDevice));\n"
    "    for (int i = 0; i < ARGS; i++) {\n"
    "        at[i] = on + arg[i];\n"
    "        given[i] = &at[i];\n"
    "    }\n"
    "    must(PHASES > 1 ? cudaLaunchCooperativeKernel((const void *)RUN, "
    "blocks, THREADS_EACH, given, 0, 0)\n"
    "                    : cudaLaunchKernel((const void *)RUN, blocks, "
    "THREADS_EACH, given, 0, 0));\n"
    "    must(cudaDeviceSynchronize());\n"
    "    must(cudaMemcpy(arena, on, ARENA, cudaMemcpyDeviceToHost));\n"
    "    must(cudaFree(on));\n"
    "}\n"
    "#else\n"
    "static void run(char *arena) {\n"
    "    for (int phase = 0; phase < PHASES; phase++)\n"
    "        RUN(arena, arg, 0, GRID, GRID, phase);\n"
    "}\n"
    "#endif\n"
    "\n"
    "static double number(const TYPE *found, long i) {\n"
    "    return NUMBER;\n"
    "}\n";

static const char main_text[] =
    "\n"
    "int main(int argc, char **argv) {\n"
    "    FILE *f = fopen(argc > 1 ? argv[1] : \"kernel.bin\", \"rb\");\n"
    "    char *arena = (char *)calloc(1, ARENA + 64);\n"
    "    double *right = (double *)malloc(COUNT * sizeof *right);\n"
    "    double error = 0, size = 0, most = 0;\n"
    "    long worst = 0;\n"
    "    if (!f || !arena || !right) {\n"
    "        perror(\"kernel.bin\");\n"
    "        return 2;\n"
    "    }\n"
    "    arena += -(uintptr_t)arena & 63;\n"
    "    for (size_t i = 0; i < sizeof input / sizeof *input; i++)\n"
    "        if (fread(arena + input[i].at, 1, input[i].bytes, f) !=\n"
    "            input[i].bytes)\n"
    "            return 2;\n"
    "    if (fread(right, sizeof *right, COUNT, f) != COUNT)\n"
    "        return 2;\n"
    "    run(arena);\n"
    "    const TYPE *found = (const TYPE *)(arena + RESULT);\n"
    "    for (long i = 0; i < COUNT; i++) {\n"
    "        double away = number(found, i) - right[i];\n"
    "        error += away * away;\n"
    "        size += right[i] * right[i];\n"
    "        if (!(away * away <= most)) {\n"
    "            most = away * away;\n"
    "            worst = i;\n"
    "        }\n"
    "    }\n"
    "    printf(\"error %.3e of %.3e, root mean squares; [%ld] is %.9g, should "
    "be %.9g\\n\",\n"
    "           sqrt(error / COUNT), sqrt(size / COUNT), worst,\n"
    "           number(found, worst), right[worst]);\n"
    "    return !(error <= ALLOWED * ALLOWED * size);\n"
    "}\n";

// The text has the offsets of the plan that was run.
static void begin_add(Repro *r, Text *t) {
    bool cuda = strcmp(r->variant->plan->device, "cuda") == 0;
    text_add(t,
             "// One kernel of %s, to run alone.  kernel.bin has its inputs "
             "and the right values\n"
             "// of %%%u.  The program exits with status 1 if the kernel "
             "computes others.\n"
             "//\n"
             "//   cc -O2 -march=native -fopenmp-simd -ffp-contract=off -I "
             "INCLUDE kernel.c -lm\n"
             "//   nvcc -x cu -fmad=false -I INCLUDE kernel.c    on a GPU\n"
             "//   ./a.out\n"
             "//\n"
             "// INCLUDE is include/sinter of an installation.\n\n"
             "#define SINTER_ACT %d\n"
             "#include \"runtime/prelude/prelude.h\"\n"
             "#undef HOST_GPU\n"
             "#define HOST_GPU(host, device) (%s)\n\n"
             "#include <math.h>\n"
             "#include <stdint.h>\n"
             "#include <stdio.h>\n"
             "#include <stdlib.h>\n\n",
             r->variant->program->name, r->node, act_bits(r->g->act),
             cuda ? "device" : "host");
}

static Text text_of(Repro *r) {
    const Node *d = &r->g->node[r->node];
    const Node *at = d->op == OP_assign ? &r->g->node[d->arg[0]] : d;
    DType type = stored_type(r->g, *at->type);
    Text t = text_new(r->a);
    begin_add(r, &t);
    text_add(&t, "%s\n", r->kernel->text);
    entry_add(r, &t);
    text_add(&t,
             "\n// Where inputs are, and their bytes.\n"
             "static const struct {\n    size_t at, bytes;\n} input[] = {\n"
             "%s};\n\n",
             text_string(&r->input));
    text_add(
        &t,
        "enum { GRID = %d, BLOCKS = %d, THREADS_EACH = %d, PHASES = %d };\n"
        "#ifdef __CUDACC__\n#define RUN %s\n#else\n"
        "#define RUN %s_host\n#endif\n"
        "#define TYPE %s\n#define NUMBER (%s)\n"
        "#define ARENA %" PRId64 "\n#define RESULT %" PRId64
        "\n#define COUNT %" PRId64 "\n#define ALLOWED 1e-4\n",
        r->launch->grid[HOST_PLAN], r->launch->grid[GPU_PLAN], BLOCK_THREADS,
        r->launch->group->phases, r->kernel->name, r->kernel->name,
        c_type(type), element(type), r->variant->plan->arena_bytes, at->offset,
        type_count(at->type));
    text_add(&t, "%s%s", run_text, main_text);
    return t;
}

// ---- writing ----

static bool find_kernel(Repro *r) {
    const Plan *host = r->variant->text.host;
    int step = (int)(r->s->step - r->variant->plan->step);
    const Launches *l =
        &codegen_launches(host, r->variant->text.plan, r->a)[step];
    for (int k = 0; k < l->count; k++)
        if (l->kernel[k].group->group == r->g->node[r->node].group) {
            r->launch = &l->kernel[k];
            r->kernel = r->launch->first ? r->launch->first : r->launch;
        }
    return r->launch != NULL && r->kernel->text != NULL;
}

int repro_write(Arena *a, const Arguments *arguments, const Variant *v,
                NodeId n, const char *folder) {
    Repro r = {.a = a,
               .variant = v,
               .s = &v->snapshot,
               .g = v->snapshot.step->graph,
               .node = n,
               .input = text_new(a)};
    const double *right = node_meant(a, r.s, n);
    if (!find_kernel(&r) || right == NULL) {
        complain(arguments,
                 "%%%u is the result of a library call, which has no source to "
                 "write",
                 n);
        return EXIT_COMPARE;
    }
    const char *bin = arena_format(a, "%s/kernel.bin", folder);
    int status = folder_make(arguments, folder);
    if (status != EXIT_GOOD)
        return status;
    r.bin = fopen(bin, "wb");
    if (r.bin == NULL)
        return io_failed(arguments, bin);
    inputs_add(&r);
    right_add(&r, right);
    bool good = !ferror(r.bin);
    if (fclose(r.bin) != 0 || !good)
        return io_failed(arguments, bin);
    Text t = text_of(&r);
    return text_write(arguments, arena_format(a, "%s/kernel.c", folder), &t);
}
