// Members: tensors that a kernel over parts walks over together.  What the
// files that write such kernels share.
#ifndef CODEGEN_MEMBER_H
#define CODEGEN_MEMBER_H

#include "codegen/emit.h"

typedef struct {
    NodeId root; // smallest of its nodes
    int64_t elements;
    Block body;     // of its case, with X_ENTRY for numbers
    int kind;       // members of a kind share a case
    NodeId *tensor; // in the order of their local numbers
    int num_tensors;
    const Expr **number;
    int num_numbers;
} Member;

// What one phase walks over.
typedef struct {
    Member *member;
    int count;
    int64_t parts;
    const char *suffix; // of the names of its tables
} Members;

// ---- member.c ----

// The member of each tensor that the group mentions.  Tells e which member
// owns the scalars that are computed from its tensors alone.
NodeId *member_roots(Emit *e);

// The members that a phase walks over, with their statements.
Members members_write(Emit *e, Scope *kernel, NodeId *root, int phase);

// Whether n is a tensor in memory; a view has the address of its base.
bool is_pointer(const Emit *e, NodeId n);

// ---- piece.c ----

// Whether a slice can only be read one element at a time.
bool piece_is_awkward(const Emit *e, NodeId n);

// Where element `number` of a tensor of type `inner` is in one of type `outer`
// that has `low` elements before it along each axis.
const Expr *piece_offset(Emit *e, Scope *s, Type inner, Type outer,
                         const Node *low, const Expr *number);

// ---- table.c ----

// Writes the loop over parts with its switch, and the tables that it reads.
void members_loop(Emit *e, Block *b, const Members *m);

// What a tensor is called in a comment, or "".
const char *tensor_label(const Emit *e, NodeId n);

#endif
