// Entries of multi-tensor kernels (Member): shared declarations.
#ifndef CODEGEN_MEMBER_H
#define CODEGEN_MEMBER_H

#include "codegen/emit.h"

typedef struct {
    NodeId root; // smallest of its nodes
    int64_t elements;
    Block body;     // of its case, with X_ENTRY for differing numbers
    int kind;       // entries of a kind share a case
    NodeId *tensor; // by local number
    int num_tensors;
    const Expr **number;
    int num_numbers;
} Member;

// The entries of one phase.
typedef struct {
    Member *member;
    int count;
    int64_t parts;
    const char *suffix; // of the names of its tables
} Members;

// ---- member.c ----

// The entry of each tensor that the group mentions.  Sets e->owner for the
// scalars that depend on one entry's tensors only.
NodeId *member_roots(Emit *e);

// The entries of a phase, with their statements.
Members members_write(Emit *e, Scope *kernel, NodeId *root, int phase);

// Whether n is a tensor in memory; a view has the address of its base.
bool is_pointer(const Emit *e, NodeId n);

// ---- piece.c ----

// Whether a slice must be read one element at a time.
bool piece_is_awkward(const Emit *e, NodeId n);

// The index expression, in a tensor of type `outer`, of element `number` of its
// slice of type `inner`; `low` is the slice's start on each axis.
const Expr *piece_offset(Emit *e, Scope *s, Type inner, Type outer,
                         const Node *low, const Expr *number);

// ---- table.c ----

// Writes the loop over chunks with its switch, and the tables for it.
void members_loop(Emit *e, Block *b, const Members *m);

// A tensor's name for a comment, or "".
const char *tensor_label(const Emit *e, NodeId n);

#endif
