// Row emitter: reductions over each row, such as softmax.  ROW_THREADS threads
// share a row, each with a vector of lanes at a time.  They sweep over the row
// once for each dependent reduction, and a last time for the stores.  The rows
// of a warp are reduced through shuffles, so their threads iterate together:
// threads without a row repeat the last row and store nothing.  A thread has a
// few vectors of a row, which share its index expressions and the shuffles.

#include "codegen/emit.h"

#include "base/round_up.h"

// Bytes for vectors before registers spill.  A thread has 512 bytes with two
// resident blocks on a multiprocessor.
enum { MAX_BYTES = 448, SUM_BYTES = 32 };

// Vectors of a row that a thread has.
enum { MAX_VECTORS = 4 };

bool reduces_row(const Emit *e, NodeId n) {
    return (op_info[e->g->node[n].op].traits & REDUCES) &&
           !sums_blocks(e->g, n);
}

static int *find_sweeps(const Emit *e, int *most) {
    const Group *group = e->group;
    int *sweep = ARENA_ARRAY(e->a, group->last - group->first + 1, int);
    *most = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &e->g->node[n];
        int *own = &sweep[n - group->first];
        for (int i = 0; i < d->num_args; i++)
            if (group_has(group, d->arg[i]) &&
                sweep[d->arg[i] - group->first] > *own)
                *own = sweep[d->arg[i] - group->first];
        *own += reduces_row(e, n);
        *most = *own > *most ? *own : *most;
    }
    return sweep;
}

static void declare_row(Emit *e, Stmts *b, NodeId n) {
    Op op = e->g->node[n].op;
    bool largest = op == OP_max || op == OP_argmax;
    CODE(e, b, n,
         largest ? "float s@[VW]; LANES_DO(k, VW) s@[k] = -INF;"
                 : "float s@[VW]; LANES_DO(k, VW) s@[k] = 0.0f;");
    if (op == OP_argmax)
        CODE(e, b, n,
             "int at@[VW]; LANES_DO(k, VW) at@[k] = row_thread * VW + k;");
    if (op == OP_var)
        CODE(e, b, n, "float q@[VW]; LANES_DO(k, VW) q@[k] = 0.0f;");
}

static bool has_margin(const Emit *e) {
    return e->group->columns > space_columns(e->group->iteration_space);
}

// x, or past the row's end the identity of the reduction.
static const Expr *in_row(const Emit *e, const Expr *x, const Expr *nothing) {
    return has_margin(e) ? EXPR(e, "c + k < C ? $ : $", x, nothing) : x;
}

// Adds x, a lane of the row, to the thread's partial result.
static void add_element(Emit *e, Scope *sweep, NodeId n, const Expr *x) {
    Stmts *b = &sweep->lanes;
    Op op = e->g->node[n].op;
    if (has_margin(e)) {
        bool largest = op == OP_max || op == OP_argmax;
        CODE(e, b, n, "const float x@ = $;",
             in_row(e, x, EXPR(e, largest ? "-INF" : "0.0f")));
        x = x_of_node(e->a, "x", n);
    }
    switch (op) {
    case OP_max:
        CODE(e, b, n, "s@[k] = maximum(s@[k], $);", x);
        break;
    case OP_argmax:
        CODE(e, b, n,
             "const int more@ = beats($, s@[k]);"
             "at@[k] = more@ ? c + k : at@[k];"
             "s@[k] = more@ ? $ : s@[k];",
             x, x);
        break;
    case OP_var:
        CODE(e, b, n,
             "const float d@ = $ - pivot@;"
             "s@[k] += d@;"
             "q@[k] += d@ * d@;",
             x);
        break;
    default:
        CODE(e, b, n, "s@[k] += $;", x);
    }
}

// Reduces across the threads of the row and binds n to the result.
static void join_row(Emit *e, Scope *row, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Stmts *b = &row->before;
    const Expr *name = value_name(e, "v", n);
    switch (d->op) {
    case OP_max:
        CODE(e, b, n,
             "const float $ ="
             "    row_max(lanes_max(s@, VW), ROW_THREADS, shared);",
             name);
        break;
    case OP_argmax:
        CODE(e, b, n,
             "const int $ = row_argmax(lanes_max(s@, VW), "
             "lanes_argmax(s@, at@, VW), ROW_THREADS, shared);",
             name);
        break;
    case OP_var:
        CODE(e, b, n,
             "const float sum@ ="
             "    row_sum(lanes_sum(s@, VW), ROW_THREADS, shared);"
             "const float squares@ = "
             "    row_sum(lanes_sum(q@, VW), ROW_THREADS, shared);"
             "const float b@ = (squares@ - sum@ * sum@ / C) / C;"
             "const float $ = b@ < 0.0f ? 0.0f : b@;",
             name);
        break;
    default:
        CODE(e, b, n,
             "const float $ ="
             "    row_sum(lanes_sum(s@, VW), ROW_THREADS, shared);",
             name);
    }
    value_define(e, row, n, index_broadcast(p, *d->type), HELD_ONCE, name);
}

static bool any_columns(const Emit *e) {
    return group_any(e, is_column_reduction);
}

// Bytes of a thread's live vectors: sums and stores, and those of each vector
// of a row, reads and cached values.
typedef struct {
    int64_t once, each;
} RowBytes;

// Whether a thread may have several vectors of a row: whole ones of 8 lanes.
// With column sums few threads in a row would be many rows of partial sums.
static bool has_several(const Emit *e) {
    return !any_columns(e) && !has_margin(e) && e->step % 8 == 0;
}

// Whether sweeps are unrolled: arrays with an index of the thread's vectors
// stay in registers, and the loads of all vectors come first.
static bool is_numbered(const Emit *e) {
    return any_columns(e) || e->num_cached > 0 ||
           (has_several(e) && space_columns(e->group->iteration_space) > 0 &&
            e->group->columns <= warp_columns(e, MAX_VECTORS));
}

static Scope *sweep_open(Emit *e, Scope *row) {
    return scope_new(e, row, IN_LOOP, e->vw);
}

// A sweep over the columns up to `end`, which is 0 for threads without a row.
static void sweep_close(Emit *e, Scope *row, Scope *sweep, const char *end) {
    const Stmts *body = scope_close(e, sweep);
    if (body->first == NULL)
        return;
    if (is_numbered(e))
        CODE(e, &row->before, NO_NODE,
             "UNROLLED(j, VECTORS_PER_THREAD) {"
             "    const int c = (row_thread + j * ROW_THREADS) * VW;"
             "    if (c >= $) break;"
             "    ~"
             "}",
             x_name(e->a, end), body);
    else
        CODE(e, &row->before, NO_NODE,
             arena_format(
                 e->a,
                 "for (%s c = row_thread * VW; c < %s; c += ROW_THREADS * VW) "
                 "{ ~ }",
                 column_type(*e->group->iteration_space), end),
             body);
}

// Bytes of 8 lanes of n on the device.
static int64_t vector_bytes(const Emit *e, NodeId n) {
    Type one = type_scalar(e->gpu->node[n].type->dtype);
    return 8 * graph_bytes(e->gpu, &one);
}

// Bytes of the vectors that a thread reads in a sweep, as stored in memory.
static int64_t bytes_read(const Emit *e, const Scope *sweep) {
    int64_t bytes = 0;
    for (int i = 0; i < e->num_values; i++)
        if (e->value[i].scope == sweep && e->value[i].form == HELD_ARRAY)
            bytes += vector_bytes(e, e->value[i].node);
    return bytes;
}

static void read_more(RowBytes *bytes, int64_t read) {
    bytes->each = read > bytes->each ? read : bytes->each;
}

static void emit_sweep(Emit *e, Scope *row, Index p, int which,
                       RowBytes *bytes) {
    Scope *sweep = sweep_open(e, row);
    int64_t sums = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!reduces_row(e, n) || e->sweep[n - e->group->first] != which)
            continue;
        NodeId arg = e->g->node[n].arg[0];
        if (e->g->node[n].op == OP_var) {
            Index first = p;
            first.is_identity = false;
            first.lanes = NULL;
            first.index[p.rank - 1] = e->zero;
            const Expr *x = value_at(e, row, arg, first);
            CODE(e, &row->before, n, "const float pivot@ = $;", x);
        }
        declare_row(e, &row->before, n);
        add_element(e, sweep, n, value_at(e, sweep, arg, p));
        Op op = e->g->node[n].op;
        sums += op == OP_var || op == OP_argmax ? 2 * SUM_BYTES : SUM_BYTES;
    }
    bytes->once = sums > bytes->once ? sums : bytes->once;
    cache_write(e, row, sweep, p, which);
    read_more(bytes, bytes_read(e, sweep));
    sweep_close(e, row, sweep, "C");
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (reduces_row(e, n) && e->sweep[n - e->group->first] == which)
            join_row(e, row, n, p);
}

static bool has_lanes(const Emit *e, NodeId n) {
    Type t = *e->g->node[n].type;
    return t.rank > 0 && t.dim[t.rank - 1] != 1;
}

// Stores x, the value of n at p or of n's operand if n pads, from s.  Columns
// of padding get zeros.
static void emit_output(Emit *e, Scope *s, Scope *row, NodeId n, Index p,
                        const Expr *x) {
    Type type = *e->g->node[n].type;
    if (!pads_columns(e->g, n)) {
        emit_store(e, s, n, p, x);
        return;
    }
    p.is_identity = false;
    p.dim[p.rank - 1] = type.dim[p.rank - 1];
    if (has_margin(e)) {
        emit_place(e, s, n, p, in_row(e, x, e->zero));
        return;
    }
    emit_store(e, s, n, p, x);
    p.lanes = NULL;
    p.index[p.rank - 1] = x_name(e->a, "c"); // 0 if rows have one column
    Scope *added = sweep_open(e, row);
    emit_store(e, added, n, p, literal(e->a, type.dtype, 0));
    int64_t columns = space_columns(e->group->iteration_space);
    int64_t more = p.dim[p.rank - 1] - columns;
    CODE(e, &row->before, NO_NODE,
         more > columns // threads without a row have an end of 0
             ? "if (end == C)"
               "    for (int c = C + row_thread; c < C + $; c += ROW_THREADS) "
               "{ ~ }"
             : "for (int c = C + row_thread; c < end + $; c += ROW_THREADS) { "
               "~ }",
         x_size(e->a, more), scope_close(e, added));
}

// The index expression of an output or a summed operand.  It may have the
// iteration space's rows as a matrix.
static Index output_index(Emit *e, Index p, Type type) {
    Type space = *e->group->iteration_space;
    if (type.rank != 2 || p.rank == 2 || type.dim[0] != space_rows(&space) ||
        type.dim[1] != space_columns(&space) ||
        type.dim[0] == space.dim[space.rank - 2])
        return index_broadcast(p, type);
    return (Index){.rank = 2,
                   .lanes = type.dim[1] == 1 ? NULL : p.lanes,
                   .dim = {type.dim[0], type.dim[1]},
                   .index = {x_name(e->a, "i"),
                             type.dim[1] == 1 ? e->zero : p.index[p.rank - 1]}};
}

// A value for each row is added as the first lane of a vector.
static Index in_lanes(const Emit *e, Index p) {
    if (p.lanes == NULL)
        p.lanes = e->one;
    return p;
}

// Whether the threads have a row of their own.  `end` does not say so if rows
// have no columns.
static const char *has_row(const Emit *e) {
    return space_columns(e->group->iteration_space) > 0 ? "end == C"
                                                        : "row < hi";
}

// Stores each row's values, by its first thread, and each element.
static void emit_outputs(Emit *e, Scope *row, Index p, RowBytes *bytes) {
    Scope *sweep = sweep_open(e, row);
    int64_t stored = 0;
    Scope *first = scope_new(e, row, IN_LOOP, e->one);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        bool sum = sums_blocks(e->g, n);
        if (!sum && (!e->stored[n] || d->op == OP_workspace))
            continue;
        NodeId of = sum || pads_columns(e->g, n) ? d->arg[0] : n;
        Index q = output_index(e, p, *e->g->node[of].type);
        Scope *s = has_lanes(e, of) ? sweep : first;
        stored += s == sweep && !sum ? vector_bytes(e, n) : 0;
        const Expr *x = value_at(e, s == sweep ? sweep : row, of, q);
        if (is_column_reduction(e, n))
            CODE(e, &sweep->lanes, n, "s@[j * VW + k] += $;", x);
        else if (sum)
            sums_add(e, s, n, in_lanes(e, q),
                     s == sweep ? in_row(e, x, literal(e->a, F32, 0)) : x);
        else
            emit_output(e, s, row, n, q, x);
    }
    bytes->once = stored > bytes->once ? stored : bytes->once;
    read_more(bytes, bytes_read(e, sweep));
    sweep_close(e, row, sweep, "end");
    const Stmts *body = scope_close(e, first);
    if (body->first != NULL)
        CODE(e, &row->before, NO_NODE, "if (row_thread == 0 && $) { ~ }",
             EXPR(e, has_row(e)), body);
}

// Vectors of a row that a thread holds at once, if it should have at most so
// many; a warp may be too few threads for that.
static int64_t vectors_held(const Emit *e, int64_t most) {
    int64_t own = divide_up(e->group->columns, 8), threads = 1;
    int64_t limit = e->group->columns > 1024 ? BLOCK_THREADS : 32;
    while (threads < limit && own > threads * most)
        threads *= 2;
    return is_numbered(e) ? divide_up(own, threads) : 1;
}

// Bytes of column and full reductions, which a thread holds for all its rows.
static int64_t sum_bytes(const Emit *e) {
    int64_t sums = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (sums_blocks(e->g, n))
            sums += is_column_reduction(e, n) ? vectors_held(e, 1) : 1;
    return sums * SUM_BYTES;
}

static int64_t live_bytes(const Emit *e, RowBytes bytes, int vectors) {
    return bytes.once + vectors_held(e, vectors) * bytes.each;
}

// Vectors of a row for a thread: as many as leave registers for two resident
// blocks.  Two threads or more are side by side, so that an access of 16 bytes
// each is of whole sectors.
static int row_vectors(const Emit *e, RowBytes bytes) {
    int64_t half = divide_up(e->group->columns, 16);
    int vectors = has_several(e) ? MAX_VECTORS : 1;
    vectors = half < vectors ? (half > 1 ? (int)half : 1) : vectors;
    while (vectors > 1 && live_bytes(e, bytes, vectors) > MAX_BYTES)
        vectors /= 2;
    return vectors;
}

// The constants of the kernel, and the first row and lanes of its threads.
static void emit_head(Emit *e, Stmts *b, Type space, int vectors) {
    emit_space(e, b, space, false,
               arena_format(e->a, ", VW = %s",
                            expr_print(e->a, lanes_of(e, space), NULL)));
    CODE(e, b, NO_NODE,
         "enum {"
         "    NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF($, VW, NT, $)"
         "};"
         "enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };",
         has_margin(e) ? x_number(e->a, e->group->columns) : x_name(e->a, "C"),
         x_number(e->a, vectors));
    if (e->group->workspace != NO_NODE)
        CODE(e, b, NO_NODE, "enum { spec WIDTH = $ };",
             x_number(e->a, e->g->node[e->group->workspace].type->dim[1]));
    if (is_numbered(e))
        CODE(e, b, NO_NODE,
             "enum {"
             "    VECTORS_PER_THREAD = ((C + VW - 1) / VW + ROW_THREADS - 1) / "
             "ROW_THREADS"
             "};");
    CODE(e, b, NO_NODE,
         any_columns(e) ? "SHARED float shared[REDUCE_LANES * NT];"
                        : "SHARED float shared[NT];");
    CODE(e, b, NO_NODE, "const int row_thread = threadIdx.x % ROW_THREADS;");
    emit_block_range(e, b, space);
}

static RowBytes emit_sweeps(Emit *e, Scope *row, Index p, int sweeps) {
    RowBytes bytes = {0, 0};
    for (int i = 1; i <= sweeps; i++)
        emit_sweep(e, row, p, i, &bytes);
    emit_outputs(e, row, p, &bytes);
    bytes.each += e->num_cached * SUM_BYTES;
    bytes.once += sum_bytes(e);
    return bytes;
}

void emit_rows(Emit *e, Stmts *b) {
    Type space = *e->group->iteration_space;
    int sweeps;
    e->sweep = find_sweeps(e, &sweeps);
    cache_find(e, sweeps);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL);
    Scope *row = scope_new(e, kernel, IN_LOOP, NULL);
    sums_declare(e, &kernel->before, true, e->vw);
    // Rows may have no columns, but C has no empty arrays.
    sums_declare(e, &kernel->before, false,
                 space_columns(&space) > 0 ? EXPR(e, "VECTORS_PER_THREAD * VW")
                                           : e->one);
    Index p = space_index(e, space, x_name(e->a, "c"), e->vw);
    RowBytes bytes = emit_sweeps(e, row, p, sweeps);
    int vectors = row_vectors(e, bytes);
    emit_head(e, b, space, vectors);
    sums_begin(e, b);
    const Stmts *rows = scope_close(e, row);
    stmts_append(b, scope_close(e, kernel));
    Stmts indices = {NULL, NULL};
    emit_row_indices(e, &indices, space, rows);
    const char *type = row_type(space);
    CODE(
        e, b, NO_NODE,
        arena_format(e->a,
                     "for (%s first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS);"
                     "     first < hi; first += NT / ROW_THREADS) {"
                     "    const %s row = first + threadIdx.x %% SYNC_THREADS / "
                     "ROW_THREADS;"
                     "    const %s i = row < hi ? row : hi - 1;"
                     "    const int end = row < hi ? C : 0;"
                     "    ~ ~"
                     "}",
                     type, type, type),
        &indices, rows);
    sums_store(
        e, b,
        "UNROLLED(j, VECTORS_PER_THREAD) columns_%s("
        "    partials + (size_t)block * WIDTH + $ + j * ROW_THREADS * VW,"
        "    &%s[j * VW], VW, C - j * ROW_THREADS * VW, shared,"
        "    ROW_THREADS, NT);",
        true);
    sums_finish(e, b);
}
