// Check kernels: whether every element of many tensors is finite.

#include "codegen/emit.h"

static const Node *check_node(const Emit *e) {
    NodeId n = e->group->first;
    while (e->g->node[n].op != OP_all_finite)
        n++;
    return &e->g->node[n];
}

static void write_table(Emit *e, const Node *d) {
    int first = 0;
    text_line(&e->tables, "typedef struct {");
    text_line(&e->tables, "    int is_act, first, elements;");
    text_line(&e->tables, "    size_t at;");
    text_line(&e->tables, "} " OWN_NAME "_member;");
    text_line(&e->tables,
              "TABLE " OWN_NAME "_member " OWN_NAME "_members[%d] = {",
              d->num_args);
    for (int i = 0; i < d->num_args; i++) {
        NodeId n = node_base(e->g, d->arg[i]);
        Type type = e->g->node[n].type;
        text_line(&e->tables, "    {%d, %d, %lld, AT(%lld, %lld)},",
                  type.dtype == ACT, first, (long long)type_count(type),
                  (long long)e->g->node[n].offset,
                  (long long)e->device->node[n].offset);
        first += (int)part_blocks(type_count(type));
    }
    text_line(&e->tables, "};");
}

void emit_check(Emit *e, Text *t, int *grid) {
    const Node *d = check_node(e);
    write_table(e, d);
    grid[0] = grid[1] = parts_grid(e->g, e->group);
    text_line(t, "enum { NT = THREADS(256), WIDTH = 1 };");
    text_line(t, "SHARED float shared[NT];");
    text_line(t, "int j = 0;");
    text_line(t,
              "while (j + 1 < %d && " OWN_NAME
              "_members[j + 1].first <= (int)blockIdx.x) j++;",
              d->num_args);
    text_line(t, "const " OWN_NAME "_member own = " OWN_NAME "_members[j];");
    text_line(t, "const int lo = ((int)blockIdx.x - own.first) * %d;",
              PART_ELEMENTS);
    text_line(t,
              "const int hi = lo + %d < own.elements ? lo + %d : "
              "own.elements;",
              PART_ELEMENTS, PART_ELEMENTS);
    text_line(t, "int bad = 0;");
    text_line(t, "if (own.is_act) {");
    text_line(t, "    const act *const p = (const act *)(arena + own.at);");
    text_line(t, "    for (int i = lo + threadIdx.x; i < hi; i += NT)");
    text_line(t, "        bad |= !is_finite(get_act(p + i));");
    text_line(t, "} else {");
    text_line(t, "    const float *const p = (const float *)(arena + own.at);");
    text_line(t, "    for (int i = lo + threadIdx.x; i < hi; i += NT)");
    text_line(t, "        bad |= !is_finite(p[i]);");
    text_line(t, "}");
    text_line(t, "const float worst = (float)bad;");
    text_line(t, "total_sum(part + blockIdx.x, &worst, 1, shared, NT);");
    text_line(t, "if (last_block(ticket) && threadIdx.x == 0) {");
    text_line(t, "    const float sum = grid_sum(part, WIDTH);");
    text_line(t, "    put_f32(p%u, sum == 0.0f ? 1.0f : 0.0f);",
              (unsigned)(d - e->g->node));
    text_line(t, "}");
}
