// Occupancy: how many blocks of a kernel share a multiprocessor, and how many
// rows a thread reads at a time.
//
// Memory is busy if a multiprocessor has bandwidth times latency bytes of loads
// in flight (Little, 1961): 4.8 TB/s times 0.8 us over the 132 multiprocessors
// of an H200 are 29 KB.  Resident blocks and rows that are read together add to
// them, and both need registers.  The cost model estimates these.  Where they
// allow too few loads, a kernel is built again with vectors of half the lanes,
// which need fewer for sums and factors of columns (kernel.c).

#include "base/round_up.h"
#include "codegen/emit.h"
#include "codegen/kernel/cost.h"

#include <string.h>

enum {
    MAX_BLOCKS = 4, // resident
    MANY = 512,     // bytes of a thread's loads, which the compiler keeps
                    // for other loops over the row: no bound on registers
    // The compiler does with so many registers less than the cost model
    // estimates if a bound demands it, fewer if that is for the most blocks: no
    // kernel of models/ spills.
    SLACK = 10,
    SLACK_OF_MOST = 6
};

// Properties of a kernel's loop over rows.
typedef struct {
    Stmt *loop;
    int reads;    // loads of vectors for one row
    bool scalars; // loads of single elements
    int blocks;   // chosen
} Rows;

static Stmt *find_loop(const Stmts *b) {
    Stmt *found = NULL;
    for (Stmt *s = b->first; s != NULL && found == NULL; s = s->next)
        found = is_row_loop(s) ? s : find_loop(&s->body);
    return found;
}

static void rows_look(Rows *r, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        r->scalars |= s->kind == S_DECLARE && is_call(s->value, LOAD);
        r->reads += s->kind == S_CALL && is_call(s->value, LOAD);
        rows_look(r, &s->body);
        rows_look(r, &s->other);
    }
}

// Whether the registers of so many blocks hold those of a thread.  With narrow
// vectors the compiler needs more than the estimate for the most blocks.
static bool fits(const Emit *e, const KernelCost *k, int rows, int blocks) {
    enum { MORE = 4 };
    bool full = blocks == MAX_BLOCKS;
    int slack = full ? SLACK_OF_MOST : SLACK;
    int needed = k->registers + (rows > 1 ? row_registers(k, rows) : -slack);
    return needed + (e->narrow && full ? MORE : 0) <= registers_within(blocks);
}

// Whether a thread has so many rows; with fewer, reading them at a time costs
// more than it saves.
static bool thread_has_rows(const Emit *e, int rows) {
    int64_t lanes = e->narrow ? 4 : 8, blocks = e->grid[GPU_PLAN];
    return type_count(e->group->iteration_space) >=
           lanes * rows * THREADS * blocks;
}

// The rows at a time that a thread should read.
// - With functions and several loads one: further rows load late.
// - With loads of single elements two.
// - With one load two, in four blocks, or three in three blocks if functions of
//   three rows would need nearly the registers of four: then compilers for
//   sm_100 place the second row's load late.
// - Else as many as give two blocks enough loads.
static int rows_wanted(const Rows *r, const KernelCost *k) {
    enum { SPARE = 6 };
    if (k->functions && k->loaded > VECTOR_BYTES)
        return 1;
    int needed = k->registers + row_registers(k, 3) + SPARE, rows = 1;
    bool tight = k->functions && needed > registers_within(MAX_BLOCKS);
    if (r->scalars || (k->loaded <= VECTOR_BYTES && !tight))
        return 2;
    while (rows < MAX_UNROLLING &&
           2 * THREADS * loaded_at_once(k, rows) < IN_FLIGHT)
        rows++;
    return rows;
}

// Takes the fewest blocks that have enough loads in flight, or else the most
// loads, and returns their bytes; `most` blocks are launched for each
// multiprocessor.  After the rows that are wanted, fewer are tried, and then
// more, the most first.  The bound of three rows of whole vectors is two
// blocks: they fit in the registers of three without it, and with a bound of
// three the compiler places their loads late.
static int choose(Emit *e, Rows *r, const KernelCost *k, int most) {
    static const int order[][MAX_UNROLLING] = {
        {1, 3, 2}, {2, 1, 3}, {3, 2, 1}}; // by the rows wanted
    int best = 0, wanted = rows_wanted(r, k);
    for (int i = 0; i < MAX_UNROLLING; i++) {
        int rows = order[wanted - 1][i];
        if (rows > 1 && !thread_has_rows(e, rows))
            continue;
        for (int b = 2; b <= MAX_BLOCKS && best < IN_FLIGHT; b++) {
            int bytes =
                loaded_at_once(k, rows) * (b < most ? b : most) * THREADS;
            if (bytes <= best || !fits(e, k, rows, b))
                continue;
            best = bytes;
            r->blocks = b;
            e->min_blocks = rows > 2 && !e->narrow ? 2 : b;
            r->loop->word = unroll_word[rows];
        }
    }
    return best;
}

static bool reduces_grid(const Stmt *s) {
    return s->kind == S_CALL && (strcmp(s->value->name, "grid_sum") == 0 ||
                                 strcmp(s->value->name, "grid_max") == 0);
}

// The last block's loads of partial results must fit in the registers, too:
// three quarters of them at a time.
static void divide_tail(Arena *a, const Stmts *b) {
    enum { AT_A_TIME = 2 }; // argument of grid_sum and grid_max
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        if (reduces_grid(s)) {
            const Expr **rows = &s->value->arg[AT_A_TIME];
            *rows = x_kind(a, X_GPU_ONLY, divide_up(3 * (*rows)->integer, 4));
        }
        divide_tail(a, &s->body);
        divide_tail(a, &s->other);
    }
}

// The registers of two blocks bound a kernel that needs no more.  If it has few
// blocks, and the compiler might need more than the estimate, they do not: it
// might spill.
static int least_blocks(const KernelCost *k, int most) {
    int slack = most < 2 ? k->registers / 3 : most < MAX_BLOCKS ? SLACK : 0;
    return k->registers + slack <= registers_within(2) ? 2 : 0;
}

int choose_occupancy(Emit *e, Tree *tree) {
    int blocks = e->grid[GPU_PLAN], all = e->g->multiprocessors;
    int most = (int)divide_up(blocks, all);
    KernelCost k = tree_cost(tree, blocks, e->gpu->act);
    Rows r = {.loop = find_loop(&tree->body)};
    if (r.loop != NULL)
        rows_look(&r, &r.loop->body);
    bool many = k.in_flight > MANY;
    e->min_blocks = many ? 0 : least_blocks(&k, most);
    int bytes = e->narrow ? 0 : IN_FLIGHT;
    if (r.reads > 0 && (r.scalars ? !k.functions : k.loaded >= VECTOR_BYTES) &&
        !many && !group_any(e, window_skips))
        bytes = choose(e, &r, &k, most);
    if (r.blocks == MAX_BLOCKS)
        divide_tail(tree->arena, &tree->body);
    return bytes;
}
