// Entries of multi-tensor kernels (Entry): shared declarations.
#ifndef CODEGEN_MULTI_TENSOR_H
#define CODEGEN_MULTI_TENSOR_H

#include "codegen/emit.h"

enum { MAX_LANES = 64 }; // on any device

typedef struct {
    NodeId root; // smallest of its nodes
    int64_t elements;
    Stmts body;     // of its case, with X_ENTRY for differing numbers
    int kind;       // entries of a kind share a case
    NodeId *tensor; // by local number
    int num_tensors;
    const Expr **number;
    int num_numbers;
} Entry;

// The entries of one phase.
typedef struct {
    Entry *entry;
    int count;
    int64_t chunks, elements; // of all entries
    const char *suffix; // of the names of its tables
} Entries;

// ---- multi_tensor.c ----

// The entry of each tensor that the group mentions.  Sets e->owner for the
// scalars that depend on one entry's tensors only.
NodeId *entry_roots(Emit *e);

// The entries of a phase, with their statements.
Entries multi_tensor_write(Emit *e, Scope *kernel, NodeId *root, int phase);

// Declares the sums of the phase's tests for infinities and NaN in `kernel`,
// and stores them after the loop over chunks.
void multi_tensor_finite(Emit *e, Scope *kernel, Stmts *after, int phase);

// Whether n is a tensor in memory; a view has the address of its base.
bool is_pointer(const Emit *e, NodeId n);

// ---- multi_tensor_unroll.c ----

// Unrolls turns of a loop over elements i < hi, if they are assignments of
// vectors; returns how many, 1 for none.
int unroll_turns(Arena *a, Stmts *turn);

// The elements of so many turns of a block's threads.
const Expr *turn_elements(Arena *a, int turns);

// ---- multi_tensor_slice.c ----

// Whether a slice must be read one element at a time.
bool slice_is_scalarized(const Emit *e, NodeId n);

// The index expression, in a tensor of type `outer`, of element `number` of its
// slice of type `inner`; `low` is the slice's start on each axis.
const Expr *slice_offset(Emit *e, Scope *s, Type inner, Type outer,
                         const Node *low, const Expr *number);

// ---- multi_tensor_table.c ----

// Writes the loop over chunks with its switch, and the tables for it.
void multi_tensor_loop(Emit *e, Stmts *b, const Entries *entries);

// The offset of a tensor in the arena of the running device.
const Expr *planned_offset(const Emit *e, NodeId n);

// Whether a tensor is at the kernel's parameter `terms` plus its distance from
// the node shard_terms; else it is at `arena` plus its offset.
bool is_shard_term(const Emit *e, NodeId terms, NodeId n);

// A tensor's name for a comment, or "".
const char *tensor_label(const Emit *e, NodeId n);

#endif
