// Occupancy: how many blocks of a grid kernel share a multiprocessor, and how
// many rows a thread reads at a time.
//
// A launch has four blocks for each multiprocessor.  __launch_bounds__ asks for
// all four at once, or for two.  A thread has 256 bytes of registers with four
// resident blocks and 512 with two; a part of them is for indices and pointers,
// and the vectors of a thread may take the others before registers spill.

#include "codegen/emit.h"

#include <string.h>

// Bytes of vectors with four resident blocks, with two, and for a subroutine.
enum { VECTORS_OF_FOUR = 144, VECTORS_OF_TWO = 432, CALL_BYTES = 64 };

// Properties of a kernel's tree.
typedef struct {
    const Emit *e;
    Stmt *loop;    // over rows
    int64_t kept;  // bytes of vectors that a thread holds for all rows
    int64_t row;   // bytes of vectors that it reads or computes for one row
    bool calls;    // a division before the loop, which calls a subroutine
    int reads;     // loads of vectors of activations for one row
    bool is_plain; // rows are vectors, and are computed without calls
} Occupancy;

static bool is_loop(const Stmt *s) {
    return s->kind == S_FOR && is_named(s->step, "TY");
}

static bool has_loop(const Block *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        if (is_loop(s) || has_loop(&s->body))
            return true;
    return false;
}

// An array of lanes that is not an operand of a store.
static bool is_vector(const Stmt *s) {
    return s->kind == S_DECLARE && s->dim[0] != NULL && s->word == NULL &&
           strcmp(s->name->name, "out") != 0;
}

static unsigned facts_of(const Emit *e, const Stmt *s) {
    return s->node != NO_NODE && group_has(e->group, s->node)
               ? op_info[e->g->node[s->node].op].facts
               : 0;
}

static void find_element(void *context, const Expr *x) {
    bool *found = context;
    *found |= x->kind == X_INDEX;
}

// Whether s declares a vector that is computed from others.  The compiler can
// compute it again at each use, so it needs no registers of its own.
static bool is_derived(const Stmt *s) {
    const Stmt *fill = s->next;
    bool found = false;
    if (fill != NULL && fill->kind == S_REPEAT && fill->body.first != NULL)
        expr_visit(fill->body.first->value, find_element, &found);
    return found;
}

// Bytes of the vectors that b declares.
static int64_t bytes_of(const Occupancy *r, const Block *b) {
    int64_t bytes = 0;
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if (is_vector(s) && s->node != NO_NODE && !is_derived(s))
            bytes += vector_bytes(r->e, s->node);
        bytes += bytes_of(r, &s->body) + bytes_of(r, &s->other);
    }
    return bytes;
}

static void row_look(Occupancy *r, const Block *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if ((s->kind == S_DECLARE && is_call(s->value, LOAD)) ||
            (facts_of(r->e, s) & MATH))
            r->is_plain = false;
        if (s->kind == S_CALL && is_call(s->value, LOAD) && s->node != NO_NODE)
            r->reads += r->e->g->node[s->node].type->dtype == ACT;
        row_look(r, &s->body);
        row_look(r, &s->other);
    }
}

// Statements of the blocks around the loop, from the outermost in.
static void outer_look(Occupancy *r, const Block *b) {
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        if (is_loop(s)) {
            r->loop = s;
            r->row += bytes_of(r, &s->body);
            row_look(r, &s->body);
        } else if (has_loop(&s->body)) {
            outer_look(r, &s->body);
        } else { // such as the rows of a pivot
            r->row += bytes_of(r, &s->body);
        }
    }
    for (const Stmt *s = b->first; s != NULL && r->loop != NULL; s = s->next) {
        if (is_vector(s) && block_mentions(&r->loop->body, s->name))
            r->kept += SUM_BYTES;
        r->calls |= (facts_of(r->e, s) & DIVIDES) && has_loop(b) &&
                    type_count(r->e->g->node[s->node].type) > 1;
    }
}

// Threads that hold many vectors allow too few blocks to hide latency one row
// at a time.  The same holds for four resident blocks whose threads read one
// vector each, such as for a variance, whose pivot's rows are not held in the
// loop.  A function call or a bounds test needs half of the registers.
void choose_occupancy(Emit *e, Block *b) {
    Occupancy r = {.e = e, .is_plain = true};
    outer_look(&r, b);
    int64_t most = VECTORS_OF_TWO - (r.calls ? CALL_BYTES : 0);
    int64_t bytes = r.kept + r.row;
    if (!r.is_plain || r.reads == 0 || group_any(e, window_skips)) {
        e->min_blocks = bytes <= VECTORS_OF_TWO / 2 ? 2 : 0;
        return;
    }
    if (bytes <= VECTORS_OF_FOUR && !r.calls &&
        e->group->grid[DEVICE_PLAN] == device_grid(e->g))
        e->min_blocks = 4;
    else if (bytes <= most)
        e->min_blocks = 2;
    if (e->min_blocks == 4 ? r.reads == 1 && group_any(e, has_pivot)
                           : e->min_blocks == 2 && bytes + r.row <= most)
        r.loop->word = "TWO_AT_ONCE";
}
