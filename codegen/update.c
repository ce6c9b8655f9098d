// Update kernels: the assignments of a step in one launch.
//
// Assignments that share tensors (a weight and its momentum) are a member; it
// is cut into parts, one for each block.  Members whose text is equal but for
// names and numbers share one case of a switch, and a table gives each part
// its case, elements and addresses.  v_1 in a case is numbered within it, v1
// is a scalar that all share.  Assignments of scalars are stored by the
// last block, when all others have read what they replace.

#include "codegen/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    NodeId root; // smallest node of the member
    int64_t elements;
    const char *text; // of the loop body, with marks for numbers
    bool single;      // one element at a time
    int kind;
    NodeId *tensor; // in the order of their local numbers
    int num_tensors;
    const char **number;
    int num_numbers;
} Member;

static bool is_scalar(const Emit *e, NodeId n) {
    return type_count(e->g->node[n].type) == 1;
}

static NodeId find(NodeId *parent, NodeId n) {
    while (parent[n] != n)
        n = parent[n] = parent[parent[n]];
    return n;
}

static void join(NodeId *parent, NodeId a, NodeId b) {
    a = find(parent, a);
    b = find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

// The member of each tensor node that the group mentions.
static NodeId *find_members(const Emit *e) {
    NodeId *parent = ARENA_ARRAY(e->a, e->g->count, NodeId);
    for (NodeId n = 0; n < e->g->count; n++)
        parent[n] = n;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId base = node_base(e->g, d->arg[i]);
            if (!is_scalar(e, n) && !is_scalar(e, base) &&
                !node_immediate(&e->g->node[base]))
                join(parent, n, base);
        }
    }
    return parent;
}

// A pad below an assignment is a store to other addresses.
static NodeId scattered(const Emit *e, NodeId value) {
    bool own = value >= e->group->first && value <= e->group->last;
    return own && e->g->node[value].op == OP_pad ? value : NO_NODE;
}

// Where element i of the pad's operand is in its result.
static const char *scatter_offset(Emit *e, Scope *s, NodeId pad) {
    const Node *d = &e->g->node[pad];
    Type from = e->g->node[d->arg[0]].type;
    Place p = {.rank = from.rank};
    int64_t stride = 1;
    for (int i = from.rank - 1; i >= 0; i--) {
        const char *name = arena_format(e->a, "x%d", ++e->num_indices);
        text_line(&s->before, "const int %s = i / %lld %% %lld + %lld;", name,
                  (long long)stride, (long long)from.dim[i],
                  (long long)node_ints(d, ATTR_low, i, 0));
        p.dim[i] = d->type.dim[i];
        p.index[i] = name;
        stride *= from.dim[i];
    }
    return place_offset(e, p);
}

static void assign(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    DType type = d->type.dtype;
    NodeId pad = scattered(e, d->arg[1]);
    NodeId from = pad == NO_NODE ? d->arg[1] : e->g->node[pad].arg[0];
    const char *x = value_at(e, s, from, p);
    const char *to = pointer_name(e, d->arg[0]);
    if (p.lanes == NULL) {
        const char *at = pad == NO_NODE ? "i" : scatter_offset(e, s, pad);
        text_line(&s->after, "put_%s(%s + %s, %s);", access_suffix(type), to,
                  at, x);
        return;
    }
    const char *out = value_name(e, "out", d->arg[0]);
    text_line(&s->before, "%s %s[VW];", held_type(type), out);
    text_line(&s->lanes, "%s[k] = %s;", out, x);
    text_line(&s->after, "store_%s(%s + i, %s, VW);", access_suffix(type), to,
              out);
}

static bool in_member(const Emit *e, NodeId *parent, NodeId n, NodeId root) {
    return e->g->node[n].op == OP_assign && !is_scalar(e, n) &&
           find(parent, n) == root;
}

// Writes the body of a member's loop.  Names are numbered from 1 on, so that
// equal members have equal text.
static void write_member(Emit *e, Scope *kernel, NodeId *parent, Member *m) {
    e->local = ARENA_ARRAY(e->a, e->g->count, int);
    e->num_local = e->num_constants = e->max_constants = e->num_indices = 0;
    int mark = e->num_values;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (in_member(e, parent, n, m->root)) {
            NodeId value = e->g->node[n].arg[1];
            bool pad = scattered(e, value) != NO_NODE;
            m->single |= pad;
            m->elements = type_count(
                e->g->node[pad ? e->g->node[value].arg[0] : value].type);
        }
    Place p = {.rank = 1,
               .flat = true,
               .index = {"i"},
               .dim = {m->elements},
               .lanes = m->single ? NULL : "VW"};
    Scope *s = scope_new(e, kernel, IN_ROW, "VW", 3);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (in_member(e, parent, n, m->root))
            assign(e, s, n, p);
    Text body = text_new(e->a);
    scope_close(e, s, &body);
    m->text = text_string(&body);
    m->number = e->constant;
    m->num_numbers = e->num_constants;
    m->tensor = ARENA_ARRAY(e->a, (size_t)e->num_local + 1, NodeId);
    for (NodeId n = 0; n < e->g->count; n++)
        if (e->local[n] > 0) {
            m->tensor[e->local[n] - 1] = n;
            m->num_tensors = e->num_local;
        }
    e->local = NULL;
    e->constant = NULL;
    // Values of a member are of no use to the next; those of the kernel are.
    int kept = mark;
    for (int i = mark; i < e->num_values; i++)
        if (e->value[i].scope == kernel)
            e->value[kept++] = e->value[i];
    e->num_values = kept;
    memset(e->names, 0, e->g->count * sizeof *e->names);
}

// A tensor in memory; a view has the address of its base.
static bool is_pointer(const Emit *e, NodeId n) {
    return (n < e->group->first || n > e->group->last) &&
           node_base(e->g, n) == n;
}

static bool same_text(const Emit *e, const Member *a, const Member *b) {
    if (strcmp(a->text, b->text) != 0 || a->num_tensors != b->num_tensors)
        return false;
    for (int i = 0; i < a->num_tensors; i++)
        if (is_pointer(e, a->tensor[i]) &&
            e->g->node[a->tensor[i]].type.dtype !=
                e->g->node[b->tensor[i]].type.dtype)
            return false;
    return true;
}

static bool is_real(const char *number) {
    return strpbrk(number, ".fI") != NULL;
}

// Whether all members of a kind have the same number j.
static bool agree(const Member *m, int count, int kind, int j) {
    const char *first = NULL;
    for (int i = 0; i < count; i++) {
        if (m[i].kind != kind)
            continue;
        if (first == NULL)
            first = m[i].number[j];
        if (strcmp(first, m[i].number[j]) != 0)
            return false;
    }
    return true;
}

// Writes a member's text with each marked number spelled out where the kind
// agrees on it, else taken from the table.
static void write_numbers(Text *t, const Member *m, int count,
                          const Member *of) {
    int real = 0, whole = 0;
    const char **spelled =
        ARENA_ARRAY(t->arena, (size_t)of->num_numbers + 1, const char *);
    for (int j = 0; j < of->num_numbers; j++) {
        bool f = is_real(of->number[j]);
        if (agree(m, count, of->kind, j))
            spelled[j] = of->number[j];
        else
            spelled[j] = arena_format(t->arena, "own.%c[%d]", f ? 'f' : 'u',
                                      f ? real++ : whole++);
    }
    for (const char *s = of->text; *s != '\0';) {
        size_t plain = strcspn(s, "\x01");
        text_bytes(t, s, plain);
        s += plain;
        if (*s == '\x01') {
            char *end;
            long j = strtol(s + 1, &end, 10);
            text_add(t, "%s", spelled[j]);
            s = end + 1;
        }
    }
}

static void write_case(Emit *e, Text *t, const Member *m, int count,
                       const Member *of) {
    text_line(t, "case %d: {", of->kind);
    t->indent++;
    for (int i = 0, at = 0; i < of->num_tensors; i++)
        if (is_pointer(e, of->tensor[i])) {
            DType d = e->g->node[of->tensor[i]].type.dtype;
            text_line(t, "%s *const p_%d = (%s *)(arena + own.at[%d]);",
                      memory_type(d), i + 1, memory_type(d), at++);
        }
    text_line(t, of->single
                     ? "for (int i = lo + threadIdx.x; i < hi; i += NT) {"
                     : "for (int i = lo + threadIdx.x * VW; i < hi; "
                       "i += NT * VW) {");
    write_numbers(t, m, count, of);
    text_line(t, "}");
    text_line(t, "break;");
    t->indent--;
    text_line(t, "}");
}

// Numbers of one kind that a table row of member m holds.
static int write_row_numbers(Text *t, const Member *m, int count,
                             const Member *of, bool real) {
    int written = 0;
    for (int j = 0; j < of->num_numbers; j++)
        if (is_real(of->number[j]) == real && !agree(m, count, of->kind, j))
            text_add(t, "%s%s", written++ ? ", " : "", of->number[j]);
    return written;
}

static void write_row_column(Text *t, const Member *m, int count,
                             const Member *of, bool real) {
    text_add(t, ", {");
    if (write_row_numbers(t, m, count, of, real) == 0)
        text_add(t, "0");
    text_add(t, "}");
}

static int pointers(const Emit *e, const Member *m) {
    int count = 0;
    for (int i = 0; i < m->num_tensors; i++)
        count += is_pointer(e, m->tensor[i]);
    return count;
}

static const char *tensor_label(const Emit *e, NodeId n) {
    const char *name = node_text(&e->g->node[n], ATTR_name);
    return name != NULL ? name : "";
}

// The parts of all members: case, first block, elements, addresses, numbers.
static void write_table(Emit *e, const Member *m, int count) {
    int most = 1, reals = 0, wholes = 0;
    Text unused = text_new(e->a);
    for (int i = 0; i < count; i++) {
        int n = pointers(e, &m[i]);
        int f = write_row_numbers(&unused, m, count, &m[i], true);
        int u = write_row_numbers(&unused, m, count, &m[i], false);
        most = n > most ? n : most;
        reals = f > reals ? f : reals;
        wholes = u > wholes ? u : wholes;
    }
    text_line(&e->tables, "typedef struct {");
    text_line(&e->tables, "    int kind, first, elements;");
    text_line(&e->tables, "    size_t at[%d];", most);
    if (reals > 0)
        text_line(&e->tables, "    float f[%d];", reals);
    if (wholes > 0)
        text_line(&e->tables, "    int u[%d];", wholes);
    text_line(&e->tables, "} " OWN_NAME "_member;");
    text_line(&e->tables,
              "TABLE " OWN_NAME "_member " OWN_NAME "_members[%d] = {", count);
    int64_t first = 0;
    for (int i = 0; i < count; i++) {
        text_add(&e->tables, "    {%d, %lld, %lld, {", m[i].kind,
                 (long long)first, (long long)m[i].elements);
        const char *label = "";
        for (int j = 0, written = 0; j < m[i].num_tensors; j++) {
            NodeId n = m[i].tensor[j];
            if (!is_pointer(e, n))
                continue;
            text_add(&e->tables, "%sAT(%lld, %lld)", written++ ? ", " : "",
                     (long long)e->g->node[n].offset,
                     (long long)e->device->node[n].offset);
            if (*label == '\0' || e->g->node[n].op == OP_param)
                label = *tensor_label(e, n) ? tensor_label(e, n) : label;
        }
        text_add(&e->tables, "}");
        if (reals > 0)
            write_row_column(&e->tables, m, count, &m[i], true);
        if (wholes > 0)
            write_row_column(&e->tables, m, count, &m[i], false);
        text_add(&e->tables, "}, // %s\n", label);
        first += part_blocks(m[i].elements);
    }
    text_line(&e->tables, "};");
}

static void write_switch(Emit *e, Text *t, const Member *m, int count) {
    int kinds = 0;
    text_line(t, "int j = 0;");
    text_line(t,
              "while (j + 1 < %d && " OWN_NAME
              "_members[j + 1].first <= (int)blockIdx.x) j++;",
              count);
    text_line(t, "const " OWN_NAME "_member own = " OWN_NAME "_members[j];");
    text_line(t, "const int lo = ((int)blockIdx.x - own.first) * %d;",
              PART_ELEMENTS);
    text_line(t,
              "const int hi = lo + %d < own.elements ? lo + %d : "
              "own.elements;",
              PART_ELEMENTS, PART_ELEMENTS);
    text_line(t, "switch (own.kind) {");
    for (int i = 0; i < count; i++)
        if (m[i].kind == kinds) {
            write_case(e, t, m, count, &m[i]);
            kinds++;
        }
    text_line(t, "}");
}

static int find_kinds(const Emit *e, Member *m, int count) {
    int kinds = 0;
    for (int i = 0; i < count; i++) {
        m[i].kind = -1;
        for (int j = 0; j < i && m[i].kind < 0; j++)
            if (same_text(e, &m[i], &m[j]))
                m[i].kind = m[j].kind;
        if (m[i].kind < 0)
            m[i].kind = kinds++;
    }
    return kinds;
}

static void write_scalars(Emit *e, Scope *kernel, Text *t) {
    bool any = false;
    Place p = {.flat = true};
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        if (d->op != OP_assign || !is_scalar(e, n))
            continue;
        const char *x = value_at(e, kernel, d->arg[1], p);
        if (!any) {
            text_line(t, "if (last_block(ticket) && threadIdx.x == 0) {");
            any = true;
        }
        text_line(t, "    put_%s(p%u, %s);", access_suffix(d->type.dtype),
                  node_base(e->g, d->arg[0]), x);
    }
    if (any)
        text_line(t, "}");
}

// Pointers to the scalars that the kernel reads and writes.
static void write_pointers(Emit *e, Text *t) {
    bool *seen = ARENA_ARRAY(e->a, e->g->count, bool);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        for (int i = 0; i < e->g->node[n].num_args; i++) {
            NodeId base = node_base(e->g, e->g->node[n].arg[i]);
            const Node *d = &e->g->node[base];
            if (!is_pointer(e, base) || !is_scalar(e, base) ||
                node_immediate(d) || seen[base])
                continue;
            seen[base] = true;
            const char *label = tensor_label(e, base);
            text_line(
                t, "%s *const p%u = (%s *)(arena + AT(%lld, %lld)); // %s",
                memory_type(d->type.dtype), base, memory_type(d->type.dtype),
                (long long)d->offset, (long long)e->device->node[base].offset,
                *label ? label : op_info[d->op].name);
        }
}

void emit_update(Emit *e, Text *t, int *grid) {
    NodeId *parent = find_members(e);
    Member *m = ARENA_ARRAY(
        e->a, (size_t)(e->group->last - e->group->first) + 2, Member);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    int count = 0;
    bool *seen = ARENA_ARRAY(e->a, e->g->count, bool);
    int64_t blocks = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        NodeId root = find(parent, n);
        if (e->g->node[n].op != OP_assign || is_scalar(e, n) || seen[root])
            continue;
        seen[root] = true;
        m[count] = (Member){.root = root};
        write_member(e, kernel, parent, &m[count]);
        blocks += part_blocks(m[count++].elements);
    }
    find_kinds(e, m, count);
    Text scalars = text_new(e->a), members = text_new(e->a);
    scalars.indent = members.indent = t->indent;
    write_scalars(e, kernel, &scalars);
    if (count > 0) {
        write_table(e, m, count);
        write_switch(e, &members, m, count);
    }
    text_line(t, "enum { NT = THREADS(256), VW = LANES(64) };");
    write_pointers(e, t);
    scope_close(e, kernel, t);
    text_bytes(t, text_string(&members), members.length);
    text_bytes(t, text_string(&scalars), scalars.length);
    grid[0] = grid[1] = blocks < 1 ? 1 : (int)blocks;
}
