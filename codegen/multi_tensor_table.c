// Tables of multi-tensor entries, and the loop over chunks that reads them.
//
// Entries whose text differs only in names and numbers share one case of a
// switch.  A row of the table has an entry's case, size, first chunk, addresses
// and numbers.
// Another table has the first chunk of each entry, and the number of chunks; a
// block looks up the entry of its first chunk there.

#include "codegen/multi_tensor.h"

#include <string.h>

// Properties that the entries of a kind share.
typedef struct {
    const Entry *like; // its first entry
    bool *agrees;      // for each number, whether all entries agree
} Kind;

static bool same_body(const Emit *e, NodeId terms, const Entry *a,
                      const Entry *b) {
    if (!stmts_equal(&a->body, &b->body) || a->num_tensors != b->num_tensors)
        return false;
    for (int i = 0; i < a->num_tensors; i++)
        if (is_pointer(e, a->tensor[i]) &&
            (e->g->node[a->tensor[i]].type->dtype !=
                 e->g->node[b->tensor[i]].type->dtype ||
             is_shard_term(e, terms, a->tensor[i]) !=
                 is_shard_term(e, terms, b->tensor[i])))
            return false;
    return true;
}

static Kind *find_kinds(const Emit *e, const Entries *entries, NodeId terms,
                        int *count) {
    Kind *kind = ARENA_ARRAY(e->a, (size_t)entries->count + 1, Kind);
    *count = 0;
    for (int i = 0; i < entries->count; i++) {
        Entry *own = &entries->entry[i];
        int k = 0;
        while (k < *count && !same_body(e, terms, kind[k].like, own))
            k++;
        own->kind = k;
        if (k == *count) {
            size_t numbers = (size_t)own->num_numbers + 1;
            kind[(*count)++] = (Kind){own, ARENA_ARRAY(e->a, numbers, bool)};
            memset(kind[k].agrees, true, numbers * sizeof(bool));
        }
        for (int j = 0; j < own->num_numbers; j++)
            kind[k].agrees[j] &=
                expr_equal(kind[k].like->number[j], own->number[j]);
    }
    return kind;
}

static bool is_real(const Expr *number) {
    return number->kind == X_REAL;
}

// ---- the table ----

// Numbers of one type in an entry's row.
static Expr *numbers_of(Arena *a, const Entry *entry, const Kind *kind,
                        bool real) {
    Expr *x = x_list(a, entry->num_numbers);
    for (int j = 0; j < entry->num_numbers; j++)
        if (is_real(entry->number[j]) == real && !kind[entry->kind].agrees[j])
            list_add(x, entry->number[j]);
    return x;
}

// A C initializer needs at least one number.
static const Expr *filled(Arena *a, Expr *list) {
    if (list->count == 0)
        list_add(list, x_number(a, 0));
    return list;
}

static int pointers(const Emit *e, const Entry *entry) {
    int count = 0;
    for (int i = 0; i < entry->num_tensors; i++)
        count += is_pointer(e, entry->tensor[i]);
    return count;
}

const char *tensor_label(const Emit *e, NodeId n) {
    const char *name = node_text(&e->g->node[n], ATTR_name);
    return name != NULL ? file_text(e->a, name) : "";
}

// The name of an entry's parameter, or of its first tensor with a name.
static const char *entry_label(const Emit *e, const Entry *entry) {
    const char *label = "";
    for (int j = 0; j < entry->num_tensors; j++) {
        NodeId n = entry->tensor[j];
        if (!is_pointer(e, n) ||
            (*label != '\0' && e->g->node[n].op != OP_param))
            continue;
        const char *own = tensor_label(e, n);
        label = *own != '\0' ? own : label;
    }
    return label;
}

const Expr *planned_offset(const Emit *e, NodeId n) {
    return EXPR(e, "HOST_GPU($, $)", x_number(e->a, e->g->node[n].offset),
                x_number(e->a, e->gpu->node[n].offset));
}

NodeId shard_terms(const Graph *g) {
    NodeId terms = NO_NODE;
    bool sums = false;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        sums |= (op_info[d->op].traits & COLLECTIVE) != 0;
        if (state_is(d, STATE_PARTIAL) &&
            (terms == NO_NODE || d->offset < g->node[terms].offset))
            terms = n;
    }
    return sums ? terms : NO_NODE;
}

bool is_shard_term(const Emit *e, NodeId terms, NodeId n) {
    return terms != NO_NODE && e->g->node[n].offset >= e->g->node[terms].offset;
}

static Expr *addresses_of(const Emit *e, const Entry *entry) {
    Expr *x = x_list(e->a, entry->num_tensors);
    for (int j = 0; j < entry->num_tensors; j++) {
        NodeId n = entry->tensor[j];
        if (is_pointer(e, n))
            list_add(x, planned_offset(e, n));
    }
    return x;
}

// Capacities of a row.
typedef struct {
    int pointers, reals, wholes;
} Widths;

static void widen(int *most, int count) {
    *most = count > *most ? count : *most;
}

static Widths find_widths(const Emit *e, const Entries *entries,
                          const Kind *kind) {
    Widths w = {1, 0, 0};
    for (int i = 0; i < entries->count; i++) {
        const Entry *own = &entries->entry[i];
        widen(&w.pointers, pointers(e, own));
        widen(&w.reals, numbers_of(e->a, own, kind, true)->count);
        widen(&w.wholes, numbers_of(e->a, own, kind, false)->count);
    }
    return w;
}

static Stmt *table_new(Emit *e, StmtKind kind, const char *type,
                       const char *name) {
    return table_add(e, (Stmt){.kind = kind,
                               .node = NO_NODE,
                               .word = "LARGE_TABLE",
                               .type = type,
                               .name = x_name(e->a, name)});
}

static void emit_type(Emit *e, const char *type, Widths w) {
    Stmt *s = table_new(e, S_STRUCT, NULL, type);
    const Enumerator field[] = {
        {"size_t offset", x_number(e->a, w.pointers), false},
        {"float f", x_number(e->a, w.reals), false},
        {"int u", x_number(e->a, w.wholes), false}};
    for (int i = 0; i < 3; i++)
        if (field[i].value->integer > 0)
            s->enumerator[s->num_enumerators++] = field[i];
}

static void emit_rows_of(Emit *e, const Entries *entries, const Kind *kind) {
    Widths w = find_widths(e, entries, kind);
    const char *type = arena_format(e->a, "OWN_entry%s", entries->suffix);
    emit_type(e, type, w);
    Stmt *s = table_new(e, S_TABLE, type,
                        arena_format(e->a, "OWN_entries%s", entries->suffix));
    int64_t first = 0;
    for (int i = 0; i < entries->count; i++) {
        const Entry *own = &entries->entry[i];
        Expr *row = x_list(e->a, 6);
        list_add(row, x_number(e->a, own->kind));
        list_add(row, x_number(e->a, own->elements));
        list_add(row, x_number(e->a, first));
        first += chunk_count(own->elements);
        list_add(row, filled(e->a, addresses_of(e, own)));
        if (w.reals > 0)
            list_add(row, filled(e->a, numbers_of(e->a, own, kind, true)));
        if (w.wholes > 0)
            list_add(row, filled(e->a, numbers_of(e->a, own, kind, false)));
        ARENA_APPEND(e->a, s->row, s->num_rows,
                     ((TableRow){row, entry_label(e, own)}));
    }
}

static void emit_firsts(Emit *e, const Entries *entries) {
    Stmt *s = table_new(e, S_TABLE, "int",
                        arena_format(e->a, "OWN_first%s", entries->suffix));
    int64_t first = 0;
    for (int i = 0; i < entries->count; i++) {
        ARENA_APPEND(e->a, s->row, s->num_rows,
                     ((TableRow){x_number(e->a, first), NULL}));
        first += chunk_count(entries->entry[i].elements);
    }
    ARENA_APPEND(e->a, s->row, s->num_rows,
                 ((TableRow){x_number(e->a, first), NULL}));
}

// ---- the loop ----

// Numbers of a kind: literals if all entries agree, else reads from the table.
typedef struct {
    Arena *a;
    const Kind *kind;
} Numbering;

static const Expr *entry_number(void *context, const Expr *x) {
    const Numbering *n = context;
    if (x->kind != X_ENTRY)
        return x;
    const Entry *entry = n->kind->like;
    int index = (int)x->integer, before = 0;
    if (n->kind->agrees[index])
        return entry->number[index];
    for (int j = 0; j < index; j++)
        before += !n->kind->agrees[j] &&
                  is_real(entry->number[j]) == is_real(entry->number[index]);
    return expr(n->a,
                is_real(entry->number[index]) ? "entry.f[$]" : "entry.u[$]",
                x_number(n->a, before));
}

static void emit_entry_pointer(const Emit *e, Stmts *b, NodeId terms, NodeId n,
                               int local, const Expr *index) {
    const char *type = memory_type(e->g->node[n].type->dtype);
    if (is_shard_term(e, terms, n))
        CODE(e, b, NO_NODE,
             arena_format(e->a,
                          "%s *const p_%d = (%s *)(terms + (entry.offset[$] - "
                          "$));",
                          type, local, type),
             index, planned_offset(e, terms));
    else
        CODE(e, b, NO_NODE,
             arena_format(e->a,
                          "%s *const p_%d = (%s *)(arena + entry.offset[$]);",
                          type, local, type),
             index);
}

static void emit_case(const Emit *e, Stmts *b, NodeId terms, const Kind *kind) {
    const Entry *entry = kind->like;
    Stmts body = {NULL, NULL};
    for (int i = 0, at = 0; i < entry->num_tensors; i++)
        if (is_pointer(e, entry->tensor[i]))
            emit_entry_pointer(e, &body, terms, entry->tensor[i], i + 1,
                               x_number(e->a, at++));
    Stmts own = stmts_rewrite(e->a, &entry->body, entry_number,
                              &(Numbering){e->a, kind});
    stmts_append(&body, &own);
    CODE(e, b, NO_NODE, "case $: { ~ break; }", x_number(e->a, entry->kind),
         &body);
}

void multi_tensor_loop(Emit *e, Stmts *b, const Entries *entries) {
    int count;
    NodeId terms = shard_terms(e->g);
    Kind *kind = find_kinds(e, entries, terms, &count);
    Stmts cases = {NULL, NULL};
    emit_rows_of(e, entries, kind);
    emit_firsts(e, entries);
    for (int k = 0; k < count; k++)
        emit_case(e, &cases, terms, &kind[k]);
    const Expr *elements = x_number(e->a, CHUNK_ELEMENTS);
    const Expr *first =
        x_name(e->a, arena_format(e->a, "OWN_first%s", entries->suffix));
    CODE(e, b, NO_NODE,
         arena_format(
             e->a,
             "BLOCK_RANGE(from, to, $);"
             "int j = chunk_owner($, $, from);"
             "for (int chunk = from; chunk < to; chunk++) {"
             "    j += $[j + 1] <= chunk;"
             "    const OWN_entry%s entry = OWN_entries%s[j];"
             "    const int lo = (chunk - entry.first) * $;"
             "    const int hi = lo + $ < entry.elements ? lo + $"
             "                                         : entry.elements;"
             "    switch (entry.kind) { ~ }"
             "}",
             entries->suffix, entries->suffix),
         x_number(e->a, entries->chunks), first, x_number(e->a, entries->count),
         first, elements, elements, elements, &cases);
}
