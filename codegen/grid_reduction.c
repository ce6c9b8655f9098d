// Sums over blocks: every block writes partial sums to the workspace, and the
// last block adds them in a fixed order.  A sum needs one launch, and its bits
// do not depend on the order in which blocks ran.
//
// The GPU idles while the last block adds, and one multiprocessor reads slowly.
// So blocks divide wide spaces into tiles of columns, too, and the last block
// of each tile adds the tile's sums, of few blocks; all its threads share the
// work.  A kernel that reduces rows has no tiles, nor has one with odd columns.
// If its blocks leave many sums, the last blocks share the work: each adds some
// of the columns.  Which block adds a column changes no bit.
//
// A variance is carried as the sum and the sum of squares of x - pivot.  The
// pivot is a value of the samples, for all blocks the same.  This avoids
// cancellation for any mean.  The sum of x comes with them.

#include "codegen/emit.h"

#include "base/round_up.h"

long long workspace_offset(const Emit *e, NodeId n) {
    return (long long)e->workspace[n - e->group->first];
}

static bool over_all(const Emit *e, NodeId n) {
    return reduction_kind(e->g, n) == FULL_REDUCTION;
}

bool is_column_reduction(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n) && !over_all(e, n);
}

bool has_pivot(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n) && e->g->node[n].op == OP_var;
}

// A cast between floats changes nothing in a kernel.
static NodeId summed_by(const Graph *g, NodeId n) {
    NodeId x = g->node[n].arg[0];
    while (g->node[x].op == OP_cast &&
           dtype_float(g->node[g->node[x].arg[0]].type->dtype))
        x = g->node[x].arg[0];
    return x;
}

// The sum of the elements of variance n, if it is the reduction before it, or
// NO_NODE.  It follows from the sum of their distances from the pivot.
static NodeId sum_with(const Emit *e, NodeId n) {
    const Node *node = e->g->node;
    NodeId m = n;
    if (node[n].op != OP_var)
        return NO_NODE;
    while (m-- > e->group->first)
        if (sums_blocks(e->g, m))
            return node[m].op == OP_sum &&
                           summed_by(e->g, m) == summed_by(e->g, n) &&
                           type_is(node[m].type, node[n].type)
                       ? m
                       : NO_NODE;
    return NO_NODE;
}

// The variance with which n is summed, or NO_NODE.
static NodeId variance_with(const Emit *e, NodeId n) {
    NodeId m = n + 1;
    while (m <= e->group->last && !sums_blocks(e->g, m))
        m++;
    return m <= e->group->last && sum_with(e, m) == n ? m : NO_NODE;
}

const Expr *pivot_index(const Emit *e, NodeId n) {
    if (sum_with(e, n) == NO_NODE)
        return NULL;
    return x_size(e->a,
                  workspace_offset(e, n) + type_count(e->g->node[n].type));
}

// A variance has two sums, or one beside the sum of its elements, and then the
// pivot.
static int sums_of(const Emit *e, NodeId n) {
    return e->g->node[n].op == OP_var && sum_with(e, n) == NO_NODE ? 2 : 1;
}

// The name of sum i of node n.
static const char *sum_name(const Emit *e, NodeId n, int i) {
    return i == 1 || sum_with(e, n) != NO_NODE ? "q@" : "s@";
}

// Declares one sum, or an array of sums, with an initial value.
static void declare(Emit *e, Stmts *b, NodeId n, const char *name,
                    const Expr *lanes, const char *first) {
    if (lanes == NULL)
        CODE(e, b, n, arena_format(e->a, "float %s = %s;", name, first));
    else
        CODE(e, b, n,
             arena_format(e->a, "float %s[$]; LANES_DO(k, $) %s[k] = %s;", name,
                          name, first),
             lanes, lanes);
}

void sums_declare(Emit *e, Stmts *b, bool all, const Expr *lanes) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n) || over_all(e, n) != all)
            continue;
        bool largest = e->g->node[n].op == OP_max;
        for (int i = 0; i < sums_of(e, n); i++)
            declare(e, b, n, sum_name(e, n, i), lanes,
                    largest ? "-INF" : "0.0f");
    }
}

void sums_add(Emit *e, Scope *s, NodeId n, Index p, const Expr *value) {
    bool lanes = p.lanes != NULL;
    Stmts *b = lanes ? &s->lanes : &s->before;
    NodeId sum = sum_with(e, n);
    if (variance_with(e, n) != NO_NODE)
        return;
    switch (e->g->node[n].op) {
    case OP_max:
        CODE(e, b, n,
             lanes ? "s@[k] = maximum(s@[k], $);" : "s@ = maximum(s@, $);",
             value);
        break;
    case OP_var:
        CODE(e, b, n,
             over_all(e, n) || !lanes ? "const float d@ = $ - pivot@;"
                                      : "const float d@ = $ - pivot@[k];",
             value);
        CODE(e, b, n,
             lanes ? "$[k] += d@; q@[k] += d@ * d@;"
                   : "$ += d@; q@ += d@ * d@;",
             x_of_node(e->a, "s", sum != NO_NODE ? sum : n));
        break;
    default:
        CODE(e, b, n, lanes ? "s@[k] += $;" : "s@ += $;", value);
    }
}

void sums_store(const Emit *e, Stmts *b, const char *columns, bool totals) {
    static const char *const total =
        "total_%s(partials + (size_t)block * WIDTH + $, %s, VW, shared, NT);";
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n))
            continue;
        const char *call = !over_all(e, n) ? columns : totals ? total : NULL;
        const char *verb = e->g->node[n].op == OP_max ? "max" : "sum";
        int64_t count = type_count(e->g->node[n].type);
        for (int i = 0; call != NULL && i < sums_of(e, n); i++)
            CODE(e, b, n, arena_format(e->a, call, verb, sum_name(e, n, i)),
                 x_size(e->a, workspace_offset(e, n) + i * count));
    }
}

// ---- the last block ----

// Successive reductions of the group whose partial results are side by side,
// and which the last block loads together: equally many columns of each, or,
// where a block adds all columns, those of all as one reduction.
typedef struct {
    NodeId first, last;
    int64_t count; // columns
    int sums;      // for each
    bool whole;    // the columns are those of all
    bool largest;  // they are maxima
    int width;     // threads of a GPU side by side along the columns
    int64_t per;   // columns of such a thread in a turn, if there is one sum
    int64_t rows; // that it loads at a time
} Run;

static bool is_largest(const Emit *e, NodeId n) {
    return e->g->node[n].op == OP_max;
}

// Whether the result of n is its sum.
static bool is_plain(const Emit *e, NodeId n) {
    return e->g->node[n].op != OP_var && variance_with(e, n) == NO_NODE;
}

// Adds n to a run, if it belongs there.
static bool run_add(const Emit *e, Run *r, NodeId n) {
    enum { MAX_SUMS = 4 }; // registers hold the loads of all
    int64_t count = type_count(e->g->node[n].type);
    if (is_largest(e, n) != r->largest || (r->whole && !is_plain(e, n)))
        return false;
    if (!r->whole && (count != r->count || r->sums + sums_of(e, n) > MAX_SUMS))
        return false;
    r->count += r->whole ? count : 0;
    r->sums += r->whole ? 0 : sums_of(e, n);
    r->last = n;
    return true;
}

// Columns side by side for which a thread of one of several last blocks can
// load all partial results at once.
static int64_t shared_width(const Run *r, int64_t chunks, int64_t most) {
    int64_t columns = shared_columns(chunks) / r->sums;
    int64_t width = threads_along(columns < 8 ? 8 : columns);
    return width < most ? width : most;
}

// Divides the columns into as few turns as registers allow, of about equal
// size: a turn holds loads, whose offsets are constants.  With two resident
// blocks, as rows have that leave many sums, a thread has twice the registers
// for loads as with three.
static void run_divide(const Emit *e, Run *r) {
    enum { LOADS = 40, MOST = 7 }; // columns, each of one sum
    bool few = e->grid[GPU_PLAN] <= 2 * e->g->multiprocessors;
    int64_t times = e->group->kind == GROUP_ROWS && few ? 2 : 1;
    Division d = e->group->division;
    int64_t columns = r->count / d.tiles, tx = threads_along(columns);
    if (d.last_blocks > 1)
        tx = shared_width(r, d.chunks, tx);
    r->width = (int)tx;
    int64_t own = divide_up(d.chunks, BLOCK_THREADS / tx), least = INT64_MAX;
    int64_t all = divide_up(columns, tx), most_columns = 1;
    if (r->sums == 1 && d.last_blocks == 1)
        most_columns = all < MOST ? all : MOST;
    for (int64_t n = 1; n == 1 || n <= most_columns; n++) {
        int64_t most = times * LOADS / (n * r->sums);
        int64_t turns = divide_up(own, most);
        int64_t waits = turns * divide_up(all, n);
        if (waits >= least)
            continue;
        least = waits;
        r->per = n;
        r->rows = divide_up(own, turns);
    }
}

// Whether the columns of first and later sums are added as one reduction.  Sums
// of equally many columns, all of which one turn has, are several of a column.
static bool is_whole(const Emit *e, NodeId first) {
    int64_t count = type_count(e->g->node[first].type);
    if (has_tiles(e) || !is_plain(e, first))
        return false;
    for (NodeId n = first; n <= e->group->last; n++)
        if (sums_blocks(e->g, n) && type_count(e->g->node[n].type) != count)
            return true;
    return count >= BLOCK_THREADS;
}

static Run run_from(const Emit *e, NodeId first) {
    Run r = {.first = first,
             .last = first,
             .count = type_count(e->g->node[first].type),
             .sums = sums_of(e, first),
             .whole = is_whole(e, first),
             .largest = is_largest(e, first)};
    for (NodeId n = first; ++n <= e->group->last;)
        if (sum_with(e, r.last) != NO_NODE) // the pivot follows it in memory
            break;
        else if (sums_blocks(e->g, n) && !run_add(e, &r, n))
            break;
    run_divide(e, &r);
    return r;
}

// Columns of a run that a block adds.
static const Expr *run_columns(const Emit *e, const Run *r) {
    return has_tiles(e) ? x_name(e->a, "TILE_COLUMNS") : x_size(e->a, r->count);
}

// The result of n from the sums s[sum] and on.
static const Expr *result_of(Emit *e, const Run *r, NodeId n, int sum) {
    int64_t all = type_count(e->group->iteration_space);
    const Expr *count =
        literal(e->a, F32, r->count > 0 ? (double)(all / r->count) : 0);
    const Expr *x = EXPR(e, r->per > 1 ? "s[j]" : "s[$]", x_number(e->a, sum));
    if (variance_with(e, n) != NO_NODE)
        return EXPR(e, "fma_of($, pivot, $)", count, x);
    if (e->g->node[n].op != OP_var)
        return x;
    int first = sum_with(e, n) != NO_NODE ? sum - 1 : sum;
    return EXPR(e, "variance_of_sums(s[$], s[$], $)", x_number(e->a, first),
                x_number(e->a, first + 1), count);
}

// Stores the result of n, whose columns begin with that of number `from`.
static void store_result(Emit *e, Stmts *b, const Run *r, NodeId n, int sum,
                         int64_t from) {
    int64_t count = type_count(e->g->node[n].type);
    Stmts own = {NULL, NULL};
    const Expr *c = x_name(e->a, "c");
    if (from > 0)
        c = EXPR(e, "(c - $)", x_size(e->a, from));
    CODE(e, &own, n,
         arena_format(e->a,
                      has_tiles(e) ? "put_%s($ + first + $, $);"
                                   : "put_%s($ + $, $);",
                      access_suffix(e->g->node[n].type->dtype)),
         pointer_name(e, n), c, result_of(e, r, n, sum));
    if (!r->whole || count == r->count)
        stmts_append(b, &own);
    else if (from == 0)
        CODE(e, b, n, "if (c < $) { ~ }", x_size(e->a, count), &own);
    else if (from + count == r->count)
        CODE(e, b, n, "if (c >= $) { ~ }", x_size(e->a, from), &own);
    else
        CODE(e, b, n, "if (c >= $ && c < $) { ~ }", x_size(e->a, from),
             x_size(e->a, from + count), &own);
}

static void store_results(Emit *e, Stmts *b, const Run *r) {
    int sum = 0;
    int64_t from = 0;
    for (NodeId n = r->first; n <= r->last; n++) {
        if (!sums_blocks(e->g, n))
            continue;
        if (e->stored[n])
            store_result(e, b, r, n, sum, from);
        if (r->whole)
            from += type_count(e->g->node[n].type);
        else
            sum += sums_of(e, n);
    }
}

// All blocks have the same pivots: the last one reads its own.
static void read_pivot(Emit *e, Stmts *b, const Run *r) {
    const Expr *pivot = pivot_index(e, r->last);
    if (pivot != NULL)
        CODE(e, b, r->last,
             has_tiles(e)
                 ? "const float pivot ="
                   "    get_f32(partials + (size_t)chunk * WIDTH + first +"
                   "            $ + (c < $ ? c : 0));"
                 : "const float pivot ="
                   "    get_f32(partials + (size_t)block * WIDTH + $ +"
                   "            (c < $ ? c : 0));",
             pivot, run_columns(e, r));
}

static bool shares(const Emit *e) {
    return e->group->division.last_blocks > 1;
}

// Threads side by side along a run's columns.
static const Expr *run_width(const Emit *e, const Run *r) {
    return shares(e) ? EXPR(e, "THREADS_ALONG($, NT)",
                            x_kind(e->a, X_GPU_ONLY, r->width))
                     : EXPR(e, "THREADS_ALONG($, NT)", run_columns(e, r));
}

// The turns of a run's columns: `load` has the sums s of columns c and, if a
// thread has several, every so many from there on; `store` is the work for
// column c.
static void emit_turns(Emit *e, Stmts *b, const Run *r, const Stmts *load,
                       const Stmts *store) {
    const Expr *count = run_columns(e, r), *tx = run_width(e, r);
    const Expr *per =
        EXPR(e, "HOST_GPU(1, $)", x_kind(e->a, X_GPU_ONLY, r->per));
    if (r->per == 1)
        CODE(e, b, NO_NODE,
             arena_format(e->a,
                          "%s {"
                          "    const int c = turn * $ + threadIdx.x %% $; ~"
                          "    if (threadIdx.x < $ && c < $) { ~ }"
                          "}",
                          shares(e) ? "SHARES_DO(turn, ($ + $ - 1) / $, shares)"
                                    : "NO_UNROLL(turn, ($ + $ - 1) / $)"),
             count, tx, tx, tx, tx, load, tx, count, store);
    else
        CODE(e, b, NO_NODE,
             "NO_UNROLL(turn, ($ + $ * $ - 1) / ($ * $)) {"
             "    const int c0 = turn * $ * $ + threadIdx.x % $; ~"
             "    UNROLLED(j, $) {"
             "        const int c = c0 + j * $;"
             "        if (threadIdx.x < $ && c < $) { ~ }"
             "    }"
             "}",
             count, tx, per, tx, per, tx, per, tx, load, per, tx, tx, count,
             store);
}

// Adds a run's partial results.
static void finish_run(Emit *e, Stmts *b, const Run *r) {
    Stmts results = {NULL, NULL}, load = results;
    const Expr *count = run_columns(e, r), *tx = run_width(e, r);
    const Expr *all = x_size(e->a, r->count);
    const Expr *number =
        r->per > 1 ? EXPR(e, "HOST_GPU(1, $)", x_kind(e->a, X_GPU_ONLY, r->per))
                   : x_number(e->a, r->sums);
    read_pivot(e, &load, r);
    store_results(e, &results, r);
    CODE(e, &load, NO_NODE,
         arena_format(e->a,
                      "float s[$];"
                      "grid_%s(s, $, $, $, $, $, %s, $, shared, NT);",
                      r->largest ? "max" : "sum",
                      has_tiles(e) ? "partials + first + $, WIDTH, chunks"
                                   : "partials + $, WIDTH, blocks"),
         number, number, x_kind(e->a, X_GPU_ONLY, r->rows),
         x_name(e->a, r->per > 1 ? "c0" : "c"),
         r->sums > 1
             ? EXPR(e, "$ + $", x_size(e->a, (r->sums - 1) * r->count), count)
             : count,
         r->per > 1 ? tx : all, x_size(e->a, workspace_offset(e, r->first)),
         tx);
    emit_turns(e, b, r, &load, &results);
}

static void finish_runs(Emit *e, Stmts *b) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n))
            continue;
        Run r = run_from(e, n);
        finish_run(e, b, &r);
        n = r.last;
    }
}

static bool sums(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n);
}

void sums_begin(Emit *e, Stmts *b) {
    if (shares(e))
        CODE(e, b, NO_NODE, "block_begins(counter);");
}

void sums_finish(Emit *e, Stmts *b) {
    Stmts last = {NULL, NULL};
    if (!group_any(e, sums))
        return;
    finish_runs(e, &last);
    if (shares(e))
        CODE(e, b, NO_NODE,
             "int shares[3];"
             "if (last_blocks(counter, blocks, $, shares)) {"
             "    ~ last_blocks_end(counter, shares);"
             "}",
             x_kind(e->a, X_GPU_ONLY, e->group->division.last_blocks), &last);
    else
        CODE(e, b, NO_NODE,
             has_tiles(e)
                 ? "if (last_block(counter + nonnegative(block) % COLUMN_TILES,"
                   "               chunks)) { ~ }"
                 : "if (last_block(counter, blocks)) { ~ }",
             &last);
}
