// Sums over blocks: every block writes partial sums to the workspace, and the
// last block adds them in the order of the blocks.  A sum needs one launch, and
// its bits do not depend on the order in which blocks ran.
//
// The GPU idles meanwhile, and one multiprocessor reads slowly.  So many blocks
// form teams.  The last block of each team adds the team's sums, in parallel
// with other teams; the last block of all adds the sums of the teams.
//
// A variance is carried as the sum and the sum of squares of x - pivot.  The
// pivot is a value of the block's own samples.  This avoids cancellation for
// any mean, and an outlier disturbs one block only.

#include "codegen/emit.h"

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

// A variance has two sums and the pivot.
static int sums_of(const Emit *e, NodeId n) {
    return e->g->node[n].op == OP_var ? 2 : 1;
}

static const char *const names[] = {"s@", "q@"};

// Declares one sum, or an array of sums, with an initial value.
static void declare(Emit *e, Block *b, NodeId n, const char *name,
                    const Expr *lanes, const char *first) {
    if (lanes == NULL)
        CODE(e, b, n, arena_format(e->a, "float %s = %s;", name, first));
    else
        CODE(e, b, n,
             arena_format(e->a, "float %s[$]; LANES_DO(k, $) %s[k] = %s;", name,
                          name, first),
             lanes, lanes);
}

void sums_declare(Emit *e, Block *b, bool all, const Expr *lanes) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n) || over_all(e, n) != all)
            continue;
        bool largest = e->g->node[n].op == OP_max;
        for (int i = 0; i < sums_of(e, n); i++)
            declare(e, b, n, names[i], lanes, largest ? "-INF" : "0.0f");
    }
}

void sums_add(Emit *e, Scope *s, NodeId n, Index p, const Expr *value) {
    bool lanes = p.lanes != NULL;
    Block *b = lanes ? &s->lanes : &s->before;
    switch (e->g->node[n].op) {
    case OP_max:
        CODE(e, b, n,
             lanes ? "s@[k] = larger(s@[k], $);" : "s@ = larger(s@, $);",
             value);
        break;
    case OP_var:
        CODE(e, b, n,
             over_all(e, n) || !lanes ? "const float d@ = $ - pivot@;"
                                      : "const float d@ = $ - pivot@[k];",
             value);
        CODE(e, b, n,
             lanes ? "s@[k] += d@; q@[k] += d@ * d@;"
                   : "s@ += d@; q@ += d@ * d@;");
        break;
    default:
        CODE(e, b, n, lanes ? "s@[k] += $;" : "s@ += $;", value);
    }
}

void sums_store(const Emit *e, Block *b, const char *columns, bool totals) {
    static const char *const total =
        "total_%s(part + (size_t)block * WIDTH + $, %s, VW, shared, NT);";
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n))
            continue;
        const char *call = !over_all(e, n) ? columns : totals ? total : NULL;
        const char *verb = e->g->node[n].op == OP_max ? "max" : "sum";
        int64_t count = type_count(e->g->node[n].type);
        for (int i = 0; call != NULL && i < sums_of(e, n); i++)
            CODE(e, b, n, arena_format(e->a, call, verb, names[i]),
                 x_size(e->a, workspace_offset(e, n) + i * count));
    }
}

// The result of n from the partial sums of a level's blocks in column c.
static const Expr *level_value(Emit *e, NodeId n, int64_t count) {
    const Expr *part =
        EXPR(e, "partials + $ + c", x_size(e->a, workspace_offset(e, n)));
    Op op = e->g->node[n].op;
    if (op == OP_var)
        return EXPR(e,
                    "level_variance($, $, WIDTH, all, level, blocks, "
                    "(float)(ROWS / blocks), ROWS % blocks, $)",
                    part, x_size(e->a, count),
                    over_all(e, n) ? x_name(e->a, "C") : literal(e->a, F32, 1));
    return EXPR(e,
                op == OP_max ? "grid_max($, level.step * WIDTH, level.parts)"
                             : "grid_sum($, level.step * WIDTH, level.parts)",
                part);
}

// A loop over the columns of n.  Partial and final results share one store if
// they have one type: NVRTC would duplicate the loop for two.
static void finish_one(Emit *e, Block *b, NodeId n) {
    Type type = *e->g->node[n].type;
    int64_t count = type_count(&type);
    const Expr *to = pointer_name(e, n), *value = level_value(e, n, count);
    const Expr *at =
        x_size(e->a, workspace_offset(e, n) + (sums_of(e, n) - 1) * count);
    Block inner = {NULL, NULL};
    if (type.dtype == F32)
        CODE(e, &inner, n, "put_f32((all ? $ : partials + $) + c, $);", to, at,
             value);
    else
        CODE(e, &inner, n,
             arena_format(e->a,
                          "const float x = $;"
                          "if (all) put_%s($ + c, x);"
                          "else put_f32(partials + $ + c, x);",
                          access_suffix(type.dtype)),
             value, to, at);
    CODE(e, b, NO_NODE, "for (int c = threadIdx.x; c < $; c += NT) { ~ }",
         x_size(e->a, count), &inner);
}

void sums_finish(Emit *e, Block *b) {
    Block level = {NULL, NULL};
    bool any = false;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n))
            continue;
        any = true;
        if (e->stored[n])
            finish_one(e, &level, n);
    }
    if (any)
        CODE(e, b, NO_NODE,
             "const int team = TEAM_OF($, blocks);"
             "REDUCTION_LEVELS(all, team) {"
             "    const ReductionLevel level ="
             "        reduction_level(all, block, blocks, team);"
             "    float *const partials = part + (size_t)level.first * WIDTH;"
             "    if (!last_block(counter + level.counter, level.parts)) break;"
             "    ~"
             "}",
             x_number(e->a, TEAM_BLOCKS), &level);
}
