// Sums over blocks: every block leaves its sums in the scratch, and the last
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
        node_line(t, n, "s#%s = %s > s#%s ? %s : s#%s;", k, value, k, value, k);
        node_line(t, n, "s#%s = %s != %s ? %s : s#%s;", k, value, value, value,
                  k);
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

static const char *variance_call(Emit *e, const char *part, long long count,
                                 bool team, bool all) {
    return arena_format(e->a,
                        "variance(%s, " SIZE ", " WIDTH ", %sblocks, team, "
                        "(float)(" ROWS " / blocks), " ROWS " %% blocks, %s)",
                        part, count, team ? "block, " : "",
                        all ? COLUMNS : "1.0f");
}

// A loop over the columns of n: what a team left becomes one part, or the parts
// of all teams become the result.
static void finish_one(Emit *e, Text *t, NodeId n, bool team) {
    const Node *d = &e->g->node[n];
    bool all = over_all(e, n);
    const char *part =
        arena_format(e->a, "part + " SIZE " + c", sums_place(e, n));
    long long count = (long long)type_count(d->type);
    const char *parts =
        team ? WIDTH ", block, blocks, team" : "team * " WIDTH ", teams";
    const char *call =
        d->op == OP_var
            ? variance_call(e, part, count, team, all)
            : arena_format(e->a, "%s(%s, %s)", d->op == OP_max ? "max" : "sum",
                           part, parts);
    text_line(t, "for (int c = threadIdx.x; c < " SIZE "; c += NT)", count);
    if (team)
        text_line(t, "    team_%s;", call);
    else
        text_line(t, "    put_%s(%s + %s, grid_%s);",
                  access_suffix(d->type->dtype), pointer_name(e, n),
                  all ? "0" : "c", call);
}

static void finish_all(Emit *e, Text *t, bool team) {
    t->indent++;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (sums_blocks(e->g, n) && e->stored[n])
            finish_one(e, t, n, team);
    t->indent--;
}

void sums_finish(Emit *e, Text *t) {
    bool any = false;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        any |= sums_blocks(e->g, n);
    if (!any)
        return;
    text_line(t, "const int team = TEAM_OF(%d, blocks);", TEAM_BLOCKS);
    text_line(t, "const int teams = (blocks + team - 1) / team;");
    text_line(t,
              "const int whole = last_of_team(ticket, block, blocks, team);");
    text_line(t, "if (whole && team > 1) {");
    finish_all(e, t, true);
    text_line(t, "}");
    text_line(t, "if (whole && last_block(ticket, teams)) {");
    finish_all(e, t, false);
    text_line(t, "}");
}
