// Sums over blocks: every block leaves its sums in the workspace, and the last
// one to finish adds them up in the order of the blocks.  So a sum is made in
// one launch, and is the same to the bit however the blocks ran.
//
// While it does the GPU waits, and what one multiprocessor reads comes slowly.
// So many blocks are teams: the last of a team adds up what the team left, side
// by side with those of others, and the last of all what was left of the teams.
//
// A variance is carried as the sum and the sum of squares of x - pivot, where
// the pivot is a value of the block's own.  So little cancels, however far the
// mean is from 0, and an outlier disturbs one block alone.

#include "codegen/emit.h"

long long sums_place(const Emit *e, NodeId n) {
    return (long long)e->place[n - e->group->first];
}

static bool over_all(const Emit *e, NodeId n) {
    return reduce_extent(e->g, n) == OVER_ALL;
}

static void declare(Scope *s, const char *name, const char *lanes,
                    const char *first) {
    if (lanes == NULL) {
        text_line(&s->before, "float %s = %s;", name, first);
        return;
    }
    text_line(&s->before, "float %s[%s];", name, lanes);
    text_line(&s->before, "LANES_DO(k, %s) %s[k] = %s;", lanes, name, first);
}

void sums_declare(Emit *e, Scope *s, bool all, const char *lanes) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!sums_blocks(e->g, n) || over_all(e, n) != all)
            continue;
        bool largest = e->g->node[n].op == OP_max;
        declare(s, arena_format(e->a, "s" NODE, n), lanes,
                largest ? "-INF" : "0.0f");
        if (e->g->node[n].op == OP_var)
            declare(s, arena_format(e->a, "q" NODE, n), lanes, "0.0f");
    }
}

void sums_add(Emit *e, Scope *s, NodeId n, Place p, const char *value) {
    Text *t = p.lanes != NULL ? &s->lanes : &s->before;
    const char *k = p.lanes != NULL ? "[k]" : "";
    switch (e->g->node[n].op) {
    case OP_max:
        node_line(t, n, "s#%s = larger(s#%s, %s);", k, k, value);
        break;
    case OP_var:
        node_line(t, n, "const float d# = %s - pivot#%s;", value,
                  over_all(e, n) ? "" : k);
        node_line(t, n, "s#%s += d#;", k);
        node_line(t, n, "q#%s += d# * d#;", k);
        break;
    default:
        node_line(t, n, "s#%s += %s;", k, value);
    }
}

// A variance is two sums, beside the pivot.
int sums_of(const Emit *e, NodeId n) {
    return e->g->node[n].op == OP_var ? 2 : 1;
}

void sums_total(const Emit *e, Text *t, NodeId n) {
    for (int i = 0; i < sums_of(e, n); i++)
        node_line(t, n,
                  "total_%s(part + (size_t)block * " WIDTH " + " SIZE
                  ", %s#, VW, shared, NT);",
                  e->g->node[n].op == OP_max ? "max" : "sum",
                  sums_place(e, n) + i, i ? "q" : "s");
}

// What n is of what a level's blocks left in column c.
static const char *level_value(Emit *e, NodeId n, long long count) {
    const char *part =
        arena_format(e->a, "left + " SIZE " + c", sums_place(e, n));
    Op op = e->g->node[n].op;
    if (op == OP_var)
        return arena_format(e->a,
                            "level_variance(%s, " SIZE ", " WIDTH
                            ", all, of, blocks, (float)(" ROWS
                            " / blocks), " ROWS " %% blocks, %s)",
                            part, count, over_all(e, n) ? COLUMNS : "1.0f");
    return arena_format(e->a, "grid_%s(%s, of.step * " WIDTH ", of.parts)",
                        op == OP_max ? "max" : "sum", part);
}

// A loop over the columns of n, whose result is stored in one place where it is
// such a number as the parts: of two NVRTC would make two loops.
static void finish_one(Emit *e, Text *t, NodeId n) {
    Type type = *e->g->node[n].type;
    long long count = (long long)type_count(&type);
    long long at = sums_place(e, n) + (sums_of(e, n) - 1) * count;
    const char *to = pointer_name(e, n), *value = level_value(e, n, count);
    text_line(t, "for (int c = threadIdx.x; c < " SIZE "; c += NT) {", count);
    t->indent++;
    if (type.dtype == F32) {
        text_line(t, "put_f32((all ? %s : left + " SIZE ") + c,", to, at);
        text_line(t, "        %s);", value);
    } else {
        text_line(t, "const float x = %s;", value);
        text_line(t, "if (all) put_%s(%s + c, x);", access_suffix(type.dtype),
                  to);
        text_line(t, "else put_f32(left + " SIZE " + c, x);", at);
    }
    t->indent--;
    text_line(t, "}");
}

void sums_finish(Emit *e, Text *t) {
    bool any = false;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        any |= sums_blocks(e->g, n);
    if (!any)
        return;
    text_line(t, "const int team = TEAM_OF(%d, blocks);", TEAM_BLOCKS);
    text_line(t, "LEVELS(all, team) {");
    t->indent++;
    text_line(t, "const Level of = level_of(all, block, blocks, team);");
    text_line(t, "float *const left = part + (size_t)of.first * " WIDTH ";");
    text_line(t, "if (!last_block(ticket + of.ticket, of.parts)) break;");
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (sums_blocks(e->g, n) && e->stored[n])
            finish_one(e, t, n);
    t->indent--;
    text_line(t, "}");
}
