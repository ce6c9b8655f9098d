// Tables of members, and the loop over parts that reads them.
//
// Members whose text is equal but for names and numbers share one case of a
// switch.  A row of the table has the case, the elements, the addresses and the
// numbers of a member; another table has the first part of each, in which a
// block looks up the member of a part.

#include "codegen/member.h"

#include <stdlib.h>
#include <string.h>

// What the members of one kind have in common.
typedef struct {
    const Member *like; // the first of them
    bool *agrees;       // for each number, whether all have the same
} Kind;

static bool same_text(const Emit *e, const Member *a, const Member *b) {
    if (strcmp(a->text, b->text) != 0 || a->num_tensors != b->num_tensors)
        return false;
    for (int i = 0; i < a->num_tensors; i++)
        if (is_pointer(e, a->tensor[i]) &&
            e->g->node[a->tensor[i]].type->dtype !=
                e->g->node[b->tensor[i]].type->dtype)
            return false;
    return true;
}

static Kind *find_kinds(const Emit *e, const Members *m, int *count) {
    Kind *kind = ARENA_ARRAY(e->a, (size_t)m->count + 1, Kind);
    *count = 0;
    for (int i = 0; i < m->count; i++) {
        Member *own = &m->member[i];
        int k = 0;
        while (k < *count && !same_text(e, kind[k].like, own))
            k++;
        own->kind = k;
        if (k == *count) {
            size_t numbers = (size_t)own->num_numbers + 1;
            kind[(*count)++] = (Kind){own, ARENA_ARRAY(e->a, numbers, bool)};
            memset(kind[k].agrees, true, numbers * sizeof(bool));
        }
        for (int j = 0; j < own->num_numbers; j++)
            kind[k].agrees[j] &=
                strcmp(kind[k].like->number[j], own->number[j]) == 0;
    }
    return kind;
}

static bool is_real(const char *number) {
    return strpbrk(number, ".fI") != NULL;
}

// ---- the table ----

// Numbers of one sort that the row of a member holds.
static int write_numbers(Text *t, const Member *m, const Kind *kind,
                         bool real) {
    int written = 0;
    for (int j = 0; j < m->num_numbers; j++)
        if (is_real(m->number[j]) == real && !kind[m->kind].agrees[j])
            text_add(t, "%s%s", written++ ? ", " : "", m->number[j]);
    return written;
}

// Four addresses fill a line.
static void write_column(Text *t, const Member *m, const Kind *kind, bool real,
                         bool apart) {
    text_add(t, apart ? ",\n     {" : ", {");
    if (write_numbers(t, m, kind, real) == 0)
        text_add(t, "0");
    text_add(t, "}");
}

static int pointers(const Emit *e, const Member *m) {
    int count = 0;
    for (int i = 0; i < m->num_tensors; i++)
        count += is_pointer(e, m->tensor[i]);
    return count;
}

const char *tensor_label(const Emit *e, NodeId n) {
    const char *name = node_text(&e->g->node[n], ATTR_name);
    return name != NULL ? file_text(e->a, name) : "";
}

// The name of a member's param, or else of its first tensor that has one.
static const char *member_label(const Emit *e, const Member *m) {
    const char *label = "";
    for (int j = 0; j < m->num_tensors; j++) {
        NodeId n = m->tensor[j];
        if (!is_pointer(e, n) ||
            (*label != '\0' && e->g->node[n].op != OP_param))
            continue;
        const char *own = tensor_label(e, n);
        label = *own != '\0' ? own : label;
    }
    return label;
}

static void write_addresses(Emit *e, const Member *m) {
    for (int j = 0, written = 0; j < m->num_tensors; j++) {
        NodeId n = m->tensor[j];
        if (is_pointer(e, n))
            text_add(&e->tables, "%sAT(%lld, %lld)", written++ ? ", " : "",
                     (long long)e->g->node[n].offset,
                     (long long)e->device->node[n].offset);
    }
}

// How much room the rows need.
typedef struct {
    int pointers, reals, wholes;
} Widths;

static void widen(int *most, int count) {
    *most = count > *most ? count : *most;
}

static Widths find_widths(const Emit *e, const Members *m, const Kind *kind) {
    Widths w = {1, 0, 0};
    Text unused = text_new(e->a);
    for (int i = 0; i < m->count; i++) {
        widen(&w.pointers, pointers(e, &m->member[i]));
        widen(&w.reals, write_numbers(&unused, &m->member[i], kind, true));
        widen(&w.wholes, write_numbers(&unused, &m->member[i], kind, false));
    }
    return w;
}

static void write_type(Emit *e, const Members *m, Widths w) {
    text_line(&e->tables, "typedef struct {");
    text_line(&e->tables, "    int kind, elements;");
    text_line(&e->tables, "    size_t at[%d];", w.pointers);
    if (w.reals > 0)
        text_line(&e->tables, "    float f[%d];", w.reals);
    if (w.wholes > 0)
        text_line(&e->tables, "    int u[%d];", w.wholes);
    text_line(&e->tables, "} " OWN_NAME "_member%s;", m->suffix);
}

static void write_rows(Emit *e, const Members *m, const Kind *kind) {
    Widths w = find_widths(e, m, kind);
    write_type(e, m, w);
    text_line(&e->tables,
              "LARGE_TABLE " OWN_NAME "_member%s " OWN_NAME
              "_members%s[%d] = {",
              m->suffix, m->suffix, m->count);
    for (int i = 0; i < m->count; i++) {
        const Member *own = &m->member[i];
        const char *label = member_label(e, own);
        if (*label != '\0')
            text_add(&e->tables, REMARK("    // %s\n"), label);
        text_add(&e->tables, "    {%d, %lld, {", own->kind,
                 (long long)own->elements);
        write_addresses(e, own);
        text_add(&e->tables, pointers(e, own) ? "}" : "0}");
        if (w.reals > 0)
            write_column(&e->tables, own, kind, true, pointers(e, own) > 3);
        if (w.wholes > 0)
            write_column(&e->tables, own, kind, false,
                         w.reals == 0 && pointers(e, own) > 3);
        text_add(&e->tables, "},\n");
    }
    text_line(&e->tables, "};");
}

static void write_firsts(Emit *e, const Members *m) {
    enum { IN_LINE = 10 };
    int64_t first = 0;
    text_add(&e->tables, "LARGE_TABLE int " OWN_NAME "_first%s[%d] = {",
             m->suffix, m->count);
    for (int i = 0; i < m->count; i++) {
        text_add(&e->tables, "%s%lld,", i % IN_LINE ? " " : "\n    ",
                 (long long)first);
        first += chunk_count(m->member[i].elements);
    }
    text_add(&e->tables, "\n};\n");
}

// ---- the loop ----

// A member's text with each marked number spelled out where its kind agrees on
// it, else taken from the table.
static void write_text(Text *t, const Kind *kind) {
    const Member *m = kind->like;
    int real = 0, whole = 0;
    const char **spelled =
        ARENA_ARRAY(t->arena, (size_t)m->num_numbers + 1, const char *);
    for (int j = 0; j < m->num_numbers; j++) {
        bool f = is_real(m->number[j]);
        if (kind->agrees[j])
            spelled[j] = m->number[j];
        else
            spelled[j] = arena_format(t->arena, "own.%c[%d]", f ? 'f' : 'u',
                                      f ? real++ : whole++);
    }
    Piece p;
    for (const char *s = m->text; piece_next(&s, &p);)
        if (p.mark == OF_MEMBER)
            text_add(t, "%s", spelled[strtol(p.s, NULL, 10)]);
        else
            piece_add(t, p);
}

static void write_case(const Emit *e, Text *t, const Kind *kind) {
    const Member *m = kind->like;
    text_line(t, "case %d: {", m->kind);
    t->indent++;
    for (int i = 0, at = 0; i < m->num_tensors; i++)
        if (is_pointer(e, m->tensor[i])) {
            DType d = e->g->node[m->tensor[i]].type->dtype;
            text_line(t, "%s *const p_%d = (%s *)(arena + own.at[%d]);",
                      memory_type(d), i + 1, memory_type(d), at++);
        }
    write_text(t, kind);
    text_line(t, "break;");
    t->indent--;
    text_line(t, "}");
}

static void write_part(Text *t, const Members *m) {
    text_line(t, "const int j = part_owner(" OWN_NAME "_first%s, %d, at);",
              m->suffix, m->count);
    text_line(t, "const int first = " OWN_NAME "_first%s[j];", m->suffix);
    text_line(t, "const " OWN_NAME "_member%s own = " OWN_NAME "_members%s[j];",
              m->suffix, m->suffix);
    text_line(t, "const int lo = (at - first) * %d;", CHUNK_ELEMENTS);
    text_line(t,
              "const int hi = lo + %d < own.elements ? lo + %d : "
              "own.elements;",
              CHUNK_ELEMENTS, CHUNK_ELEMENTS);
}

void members_loop(Emit *e, Text *t, const Members *m) {
    int count;
    Kind *kind = find_kinds(e, m, &count);
    write_rows(e, m, kind);
    write_firsts(e, m);
    text_line(t, "for (int at = block; at < %lld; at += blocks) {",
              (long long)m->parts);
    t->indent++;
    write_part(t, m);
    text_line(t, "switch (own.kind) {");
    for (int k = 0; k < count; k++)
        write_case(e, t, &kind[k]);
    text_line(t, "}");
    t->indent--;
    text_line(t, "}");
}
