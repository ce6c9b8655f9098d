// The tree that the parser builds.
//
// Every node keeps its span.  No tree is deeper than MAX_DEPTH, so recursive
// walks are safe.
#ifndef FRONTEND_AST_H
#define FRONTEND_AST_H

#include "frontend/text/lex.h"
#include "ir/ir.h"

enum { MAX_NESTING = 200, MAX_DEPTH = 1000 };

typedef struct Expr Expr;
typedef struct Stmt Stmt;

typedef enum {
    EXPR_BAD, // a syntax error
    EXPR_NUMBER,
    EXPR_STRING,
    EXPR_BOOL,
    EXPR_NAME,
    EXPR_LIST,
    EXPR_EACH, // left for each item of right; item[0], if any, is its condition
    EXPR_IF,   // item: a condition, the value where it holds, and the other
    EXPR_KNOT, // left : right
    EXPR_CALL,
    EXPR_PIPE,
    EXPR_UNARY, // right
    EXPR_BINARY,
    EXPR_MEMBER, // left . name
    EXPR_INDEX,  // left [ right ]
    EXPR_UNIT,   // left, with a unit
} ExprKind;

typedef enum {
    UNIT_NONE,
    UNIT_EPOCH,
    UNIT_STEP,
    UNIT_PERCENT,
    UNIT_KIB,
    UNIT_MIB,
    UNIT_GIB
} Unit;

// A name and its location.
typedef struct {
    Atom name;
    Span at;
} Name;

// The names that an assignment, a `for` or a comprehension defines: one takes a
// value, several take the items of a list.
typedef struct {
    Name *name;
    int count;
} Targets;

// An argument of a call. name is NULL for a positional one.
typedef struct {
    Atom name;
    Span name_at;
    Expr *value;
    bool overrides; // overrides another argument of that name
} Argument;

// A stage of a chain, `|> call as name`. name is NULL if absent.
typedef struct {
    Expr *call;
    Atom name;
    Span name_at;
} Link;

struct Expr {
    ExprKind kind;
    int depth;
    Span at;
    Span op_at;    // UNARY, BINARY: the operator
    TokenKind op;  // UNARY, BINARY
    Unit unit;     // UNIT
    Atom text;     // STRING, NAME, MEMBER
    double number; // NUMBER
    bool boolean;  // BOOL
    Expr *left;    // CALL: the callee; PIPE: the first operand
    Expr *right;
    int count;          // of item, argument or stage
    Expr **item;        // LIST, EACH, IF
    Argument *argument; // CALL
    Link *stage;        // PIPE
    Targets to;         // EACH
};

// The operands of an expression, in no particular order; NULL for an absent
// one.
int expr_num_parts(const Expr *x);
const Expr *expr_part(const Expr *x, int i);

// u8[N, 28, 28, 1]
typedef struct {
    DType dtype;
    Span at;
    int rank;
    Expr *dim[MAX_RANK];
} TypeExpr;

typedef struct {
    Atom name;
    Span at;
    TypeExpr *type;  // NULL: any value
    Expr *otherwise; // NULL: must be given
} Param;

typedef struct {
    Stmt *stmt;
    int count;
    Span at;
} Block;

typedef struct {
    Atom name;
    Span name_at;
    Param *param;
    int num_params;
    TypeExpr *result; // NULL: any
    Param *output;    // of a model that names its outputs
    int num_outputs;
    Block body;
    bool is_model;
} Function;

typedef enum {
    STMT_ASSIGN, // to = value
    STMT_FUNCTION,
    STMT_FOR, // to in value
    STMT_IF,  // value
    STMT_WITH,
    STMT_VALUE,
} StmtKind;

struct Stmt {
    StmtKind kind;
    Span at;
    Targets to; // ASSIGN, FOR
    Expr *value;
    Function *function;
    Block body, otherwise; // FOR, IF, WITH; otherwise: IF
};

// A line of a train block: NAME = value, flags; or a clause, named by its first
// word.
typedef struct Entry Entry;
struct Entry {
    Atom name;
    Span at;     // of the name
    Expr *value; // NULL: a clause
    Atom *flag;  // words after the value
    Span *flag_at;
    int num_flags;
    Expr *every, *on, *keep; // of a clause, NULL if absent
    Expr *after, *when;      // freeze, stop
    Expr *best;              // checkpoint: a metric
    Expr *patience;          // stop: `when` is a metric that does not improve
    Atom glob;               // params, freeze: pattern of parameters
    Span glob_at;
    Entry *key; // the block of a clause
    int num_keys;
    Atom argument; // of a setting NAME.argument, else NULL
    Span argument_at;
    bool maybe_unused; // a setting may have replaced its only use
};

typedef struct {
    Atom model;
    Span model_at, at;
    Entry *entry;
    int num_entries;
} Train;

typedef struct {
    Atom path;
    Span at;
    Name *name;
    int num_names;
} Import;

typedef enum {
    ITEM_IMPORT,
    ITEM_LET,
    ITEM_FUNCTION,
    ITEM_MODEL,
    ITEM_TRAIN
} ItemKind;

typedef struct {
    ItemKind kind;
    Import import;
    Stmt let;
    Function *function; // also of a model
    Train train;
} Item;

typedef struct {
    Item *item;
    int count;
} File;

// Parses a file.  After a reported error the tree has holes and must not be
// used.
File *parse(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d);

// Parses a setting, NAME = expression or NAME.NAME = expression.
Entry parse_setting(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d);

#endif
