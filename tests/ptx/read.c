// Reads PTX: statements in the order of the text, names as soon as they come,
// but for labels, which branches may name before they are there.
#include "tests/ptx/module.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 256, MAX_NAMES = 64 };

_Noreturn void ptx_fail(int line, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fprintf(stderr, "ptx: line %d: ", line);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
    abort();
}

static void *grown(void *p, size_t bytes) {
    p = realloc(p, bytes);
    if (p == NULL)
        ptx_fail(0, "out of memory");
    return p;
}

static char *copy_of(const char *text) {
    return strcpy(grown(NULL, strlen(text) + 1), text);
}

// ---- types ----

static const struct {
    const char *name;
    int bytes;
    bool is_signed;
} types[NUM_TYPES] = {
    [PRED] = {"pred", 1, false},     [B8] = {"b8", 1, false},
    [U8] = {"u8", 1, false},         [S8] = {"s8", 1, true},
    [B16] = {"b16", 2, false},       [U16] = {"u16", 2, false},
    [S16] = {"s16", 2, true},        [F16] = {"f16", 2, false},
    [BF16] = {"bf16", 2, false},     [B32] = {"b32", 4, false},
    [U32] = {"u32", 4, false},       [S32] = {"s32", 4, true},
    [F32] = {"f32", 4, false},       [F16X2] = {"f16x2", 4, false},
    [BF16X2] = {"bf16x2", 4, false}, [B64] = {"b64", 8, false},
    [U64] = {"u64", 8, false},       [S64] = {"s64", 8, true},
    [F64] = {"f64", 8, false},
};

int type_bytes(Type t) {
    return types[t].bytes;
}

bool type_signed(Type t) {
    return types[t].is_signed;
}

// The place of a word in a table that NULL ends, or -1.
static int place_in(const char *const *table, const char *word) {
    for (int i = 0; table[i] != NULL; i++)
        if (strcmp(table[i], word) == 0)
            return i;
    return -1;
}

static int type_find(const char *word) {
    for (int i = 0; i < NUM_TYPES; i++)
        if (strcmp(types[i].name, word) == 0)
            return i;
    return -1;
}

// ---- words ----

typedef struct {
    char name[LONGEST_NAME];
    int first, count; // registers; count 0: the one that has this name
} Registers;

typedef struct {
    char *name;
    int at;
} Label;

// A variable of shared or local memory, or a parameter, of one kernel.
typedef struct {
    char name[LONGEST_NAME];
    Space space;
    uint64_t offset;
} Place;

typedef struct {
    const char *at;
    char word[LONGEST_NAME];
    int line;
    PtxModule *module;
    Kernel *kernel; // that is being read
    Registers names[MAX_NAMES];
    int num_names, depth;
    int scope[8]; // how many names there were where a block began
    Label *label, *branch;
    int num_labels, num_branches, max_labels, max_branches;
    Place *place;
    int num_places, max_places;
} Reader;

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' ||
           c == '.' || c == '@' || c == '!';
}

static void blanks_skip(Reader *r) {
    for (;; r->at++) {
        if (*r->at == '\n')
            r->line++;
        else if (r->at[0] == '/' && r->at[1] == '/')
            r->at += strcspn(r->at, "\n") - 1;
        else if (!isspace((unsigned char)*r->at))
            return;
    }
}

// The next word or sign; an empty one at the end of the text.
static const char *next(Reader *r) {
    blanks_skip(r);
    size_t length = 0;
    if (*r->at != '\0' && !is_word(*r->at))
        length = 1;
    while (is_word(r->at[length]) && (length == 0 || is_word(r->at[0])))
        length++;
    if (length >= LONGEST_NAME)
        ptx_fail(r->line, "a long word");
    memcpy(r->word, r->at, length);
    r->word[length] = '\0';
    r->at += length;
    return r->word;
}

static char peek(Reader *r) {
    blanks_skip(r);
    return *r->at;
}

static bool takes(Reader *r, char sign) {
    if (peek(r) != sign)
        return false;
    r->at++;
    return true;
}

static void needs(Reader *r, char sign) {
    if (!takes(r, sign))
        ptx_fail(r->line, "'%c' is wanted, not '%.20s'", sign, r->at);
}

static long long number_next(Reader *r) {
    bool minus = takes(r, '-');
    long long value = strtoll(next(r), NULL, 0);
    return minus ? -value : value;
}

// ---- names ----

static void registers_add(Reader *r, const char *name, int count) {
    if (r->num_names == MAX_NAMES)
        ptx_fail(r->line, "many kinds of registers");
    Registers *g = &r->names[r->num_names++];
    snprintf(g->name, sizeof g->name, "%s", name);
    g->first = r->kernel->num_registers;
    g->count = count;
    r->kernel->num_registers += count ? count : 1;
}

// The register of a name, or NOWHERE: the innermost of that name.
static int register_find(const Reader *r, const char *name) {
    static const char *const special[] = {"%tid.x",    "%ntid.x", "%ctaid.x",
                                          "%nctaid.x", "%laneid", NULL};
    int place = place_in(special, name);
    size_t length = strlen(name);
    if (place >= 0)
        return place;
    while (length > 0 && isdigit((unsigned char)name[length - 1]))
        length--;
    for (int i = r->num_names; i-- > 0;) {
        const Registers *g = &r->names[i];
        if (g->count == 0 && strcmp(g->name, name) == 0)
            return g->first;
        int number = atoi(name + length);
        if (g->count > 0 && name[length] != '\0' && number < g->count &&
            strncmp(g->name, name, length) == 0 && g->name[length] == '\0')
            return g->first + number;
    }
    return NOWHERE;
}

// Whether a name stands for an address: of this process, or in a space.
static bool address_find(const Reader *r, const char *name, Space *space,
                         uint64_t *address) {
    for (int i = 0; i < r->num_places; i++)
        if (strcmp(r->place[i].name, name) == 0) {
            *space = r->place[i].space;
            *address = r->place[i].offset;
            return true;
        }
    for (int i = 0; i < r->module->num_variables; i++) {
        const Variable *v = &r->module->variable[i];
        if (strcmp(v->name, name) == 0) {
            *space = v->space;
            *address = v->address;
            return true;
        }
    }
    return false;
}

static Place *place_add(Reader *r, Space space) {
    if (r->num_places == r->max_places) {
        r->max_places = r->max_places ? 2 * r->max_places : 64;
        r->place = grown(r->place, (size_t)r->max_places * sizeof *r->place);
    }
    r->place[r->num_places].space = space;
    return &r->place[r->num_places++];
}

static void label_add(Label **list, int *count, int *most, const char *name,
                      int at) {
    if (*count == *most) {
        *most = *most ? 2 * *most : 64;
        *list = grown(*list, (size_t)*most * sizeof **list);
    }
    (*list)[(*count)++] = (Label){copy_of(name), at};
}

// ---- operands ----

static bool is_number(const char *word) {
    return isdigit((unsigned char)word[0]);
}

// 12, 0x1F, 0f3F800000 or 0d3FF0000000000000.
static uint64_t bits_of(const char *word) {
    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'd'))
        return strtoull(word + 2, NULL, 16);
    return strtoull(word, NULL, 0);
}

static Operand operand_of(Reader *r, const char *word) {
    Space space;
    uint64_t address;
    int place = register_find(r, word);
    if (place != NOWHERE)
        return (Operand){true, (uint64_t)place};
    if (is_number(word))
        return (Operand){false, bits_of(word)};
    if (strcmp(word, "WARP_SZ") == 0)
        return (Operand){false, WARP};
    if (!address_find(r, word, &space, &address))
        ptx_fail(r->line, "nothing has the name '%s'", word);
    if (space == LOCAL && address == 0)
        return (Operand){true, R_LOCAL};
    if (space == LOCAL || space == PARAM)
        ptx_fail(r->line, "an address of '%s'", word);
    return (Operand){false, address};
}

static Operand operand_next(Reader *r) {
    bool minus = takes(r, '-');
    Operand o = operand_of(r, next(r));
    if (minus)
        o.value = -o.value;
    return o;
}

static void from_add(Reader *r, Instruction *i, Operand o) {
    if (i->num_from == MAX_FROM)
        ptx_fail(r->line, "too many operands");
    i->from[i->num_from++] = o;
}

static void to_add(Reader *r, Instruction *i, const char *name) {
    int place = strcmp(name, "_") == 0 ? R_ONE : register_find(r, name);
    if (place == NOWHERE || i->num_to == MAX_TO)
        ptx_fail(r->line, "'%s' is no register to write to", name);
    i->to[i->num_to++] = place;
}

// One operand, or {several}.
static void froms_next(Reader *r, Instruction *i) {
    if (!takes(r, '{')) {
        from_add(r, i, operand_next(r));
        return;
    }
    do
        from_add(r, i, operand_next(r));
    while (takes(r, ','));
    needs(r, '}');
}

static void tos_next(Reader *r, Instruction *i) {
    bool several = takes(r, '{');
    do
        to_add(r, i, next(r));
    while (several && takes(r, ','));
    if (several)
        needs(r, '}');
    if (takes(r, '|'))
        to_add(r, i, next(r));
}

// [register], [register + 4], [name + 4]
static void address_next(Reader *r, Instruction *i) {
    Space space;
    uint64_t address;
    needs(r, '[');
    const char *word = next(r);
    if (register_find(r, word) != NOWHERE || is_number(word)) {
        from_add(r, i, operand_of(r, word));
    } else if (address_find(r, word, &space, &address)) {
        bool local = space == LOCAL;
        from_add(r, i, (Operand){local, local ? (uint64_t)R_LOCAL : address});
        i->offset = local ? (int64_t)address : 0;
    } else {
        ptx_fail(r->line, "nothing has the name '%s'", word);
    }
    if (takes(r, '+'))
        i->offset += number_next(r);
    needs(r, ']');
}

// ---- instructions ----

static const char *const op_names[] = {
    [OP_ABS] = "abs",       [OP_ADD] = "add",
    [OP_AND] = "and",       [OP_ATOM] = "atom",
    [OP_BAR] = "bar",       [OP_BFE] = "bfe",
    [OP_BFI] = "bfi",       [OP_BRA] = "bra",
    [OP_CLZ] = "clz",       [OP_COPYSIGN] = "copysign",
    [OP_COS] = "cos",       [OP_CVT] = "cvt",
    [OP_CVTA] = "cvta",     [OP_DIV] = "div",
    [OP_EX2] = "ex2",       [OP_EXIT] = "exit",
    [OP_FENCE] = "fence",   [OP_FMA] = "fma",
    [OP_GRIDDEPCONTROL] = "griddepcontrol",
    [OP_LD] = "ld",         [OP_LG2] = "lg2",
    [OP_LOP3] = "lop3",     [OP_MAD] = "mad",
    [OP_MAX] = "max",       [OP_MEMBAR] = "membar",
    [OP_MIN] = "min",       [OP_MOV] = "mov",
    [OP_MUL] = "mul",       [OP_NEG] = "neg",
    [OP_NOT] = "not",       [OP_OR] = "or",
    [OP_POPC] = "popc",     [OP_PRMT] = "prmt",
    [OP_RCP] = "rcp",       [OP_REM] = "rem",
    [OP_RET] = "ret",       [OP_RSQRT] = "rsqrt",
    [OP_SELP] = "selp",     [OP_SETP] = "setp",
    [OP_SHF] = "shf",       [OP_SHFL] = "shfl",
    [OP_SHL] = "shl",       [OP_SHR] = "shr",
    [OP_SIN] = "sin",       [OP_SQRT] = "sqrt",
    [OP_ST] = "st",         [OP_SUB] = "sub",
    [OP_TANH] = "tanh",     [OP_XOR] = "xor",
    [NUM_OPS] = NULL};

// What nothing here depends on: where caches keep a value, and what is so
// anyway.
static bool is_indifferent(const char *part) {
    static const char *const parts[] = {
        "uni", "sync", "aligned", "gpu", "sys", "approx", "to", "full", NULL};
    return place_in(parts, part) >= 0;
}

static bool atom_part(Instruction *i, const char *part) {
    i->counts |= i->op == OP_ATOM && strcmp(part, "inc") == 0;
    return i->op == OP_ATOM && (i->counts || strcmp(part, "add") == 0);
}

// The order of accesses of several blocks.  Within a block all is visible at
// once, and loads that a barrier of blocks turns around are those of other
// blocks.
static bool order_part(Instruction *i, const char *part) {
    static const char *const names[] = {"cta",     "relaxed", "acquire",
                                        "release", "acq_rel", "sc",
                                        "gl",      NULL};
    int place = place_in(names, part);
    i->is_of_block |= place == 0;
    i->acquires |= place == 2 || place >= 4;
    i->releases |= place >= 3;
    i->is_volatile |= i->op == OP_LD && (place == 1 || place == 2);
    return place >= 0;
}

static bool dependence_part(Instruction *i, const char *part) {
    i->waits |= strcmp(part, "wait") == 0;
    return i->op == OP_GRIDDEPCONTROL &&
           (i->waits || strcmp(part, "launch_dependents") == 0);
}

static bool shuffle_part(Instruction *i, const char *part) {
    static const char *const names[] = {"idx", "bfly", "up", "down", NULL};
    int place = i->op == OP_SHFL ? place_in(names, part) : -1;
    if (place >= 0)
        i->shuffle = (Shuffle)place;
    return place >= 0;
}

// shf.l.wrap shifts two words.
static bool funnel_part(Instruction *i, const char *part) {
    static const char *const names[] = {"r", "l", "wrap", "clamp", NULL};
    int place = i->op == OP_SHF ? place_in(names, part) : -1;
    i->shifts_left |= place == 1;
    i->clamps |= place == 3;
    return place >= 0;
}

static bool compare_part(Instruction *i, const char *part) {
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",
                                        "ge",  "equ", "neu", "ltu", "leu",
                                        "gtu", "geu", "num", "nan", NULL};
    static const char *const whole[] = {"eq", "ne", "lo", "ls",
                                        "hi", "hs", NULL};
    if (i->op != OP_SETP)
        return false;
    int place = place_in(names, part);
    if (place < 0)
        place = place_in(whole, part);
    if (place >= 0)
        i->compare = (Compare)place;
    return place >= 0;
}

// rn, or rni: to a whole number.
static bool round_part(Instruction *i, const char *part) {
    static const char *const names[] = {"rn", "rz", "rm", "rp", NULL};
    char first[3] = {part[0], part[0] ? part[1] : '\0', '\0'};
    int place = place_in(names, first);
    bool whole = place >= 0 && strcmp(part + 2, "i") == 0;
    if (place < 0 || (part[2] != '\0' && !whole))
        return false;
    i->round = (Round)place;
    i->is_whole = whole;
    return true;
}

static bool space_part(Instruction *i, const char *part) {
    static const char *const names[] = {"generic", "global", "shared", "local",
                                        "const",   "param",  NULL};
    int place = place_in(names, part);
    if (place >= 0)
        i->space = (Space)place;
    return place >= 0;
}

static bool flag_part(Instruction *i, const char *part) {
    static const char *const names[] = {"lo", "hi", "wide", NULL};
    int place = place_in(names, part);
    if (place >= 0)
        i->half = (Half)place;
    else if (strcmp(part, "ftz") == 0)
        i->flushes = true;
    else if (strcmp(part, "sat") == 0)
        i->saturates = true;
    else if (i->op == OP_MAX && strcmp(part, "NaN") == 0)
        i->passes_nan = true;
    else if (strcmp(part, "volatile") == 0)
        i->is_volatile = true;
    else if (strcmp(part, "nc") == 0)
        i->is_constant = true;
    else if (part[0] == 'v' && isdigit((unsigned char)part[1]))
        i->vector = atoi(part + 1);
    else
        return false;
    return true;
}

// The parts of ld.global.nc.v4.f32: the first type is that of the result.
static Instruction instruction_of(Reader *r, char *word) {
    Instruction i = {.guard = NOWHERE, .vector = 1, .line = r->line};
    int num_types = 0;
    char *part = strtok(word, ".");
    int op = part ? place_in(op_names, part) : -1;
    if (op < 0)
        ptx_fail(r->line, "the instruction '%s' is not known here", word);
    i.op = (Op)op;
    while ((part = strtok(NULL, ".")) != NULL) {
        int type = type_find(part);
        if (type >= 0) {
            i.of = (Type)type;
            if (num_types++ == 0)
                i.type = (Type)type;
        } else if (!compare_part(&i, part) && !shuffle_part(&i, part) &&
                   !funnel_part(&i, part) &&
                   !round_part(&i, part) && !space_part(&i, part) &&
                   !flag_part(&i, part) && !order_part(&i, part) &&
                   !dependence_part(&i, part) &&
                   !is_indifferent(part) && !atom_part(&i, part)) {
            ptx_fail(r->line, "'.%s' of %s is not known here", part,
                     op_names[op]);
        }
    }
    i.acquires &= !i.is_of_block;
    i.releases &= !i.is_of_block;
    return i;
}

static void branch_next(Reader *r, Instruction *i) {
    label_add(&r->branch, &r->num_branches, &r->max_branches, next(r),
              r->kernel->count);
    i->target = -1;
}

static void operands_next(Reader *r, Instruction *i) {
    switch (i->op) {
    case OP_RET:
    case OP_EXIT:
    case OP_MEMBAR:
    case OP_FENCE:
    case OP_GRIDDEPCONTROL:
        return;
    case OP_BAR:
        from_add(r, i, operand_next(r));
        return;
    case OP_BRA:
        branch_next(r, i);
        return;
    case OP_ST:
        address_next(r, i);
        break;
    default:
        tos_next(r, i);
    }
    while (takes(r, ',')) {
        if (peek(r) == '[')
            address_next(r, i);
        else
            froms_next(r, i);
    }
}

static void code_add(Kernel *k, Instruction i) {
    if (k->count == k->max_count) {
        k->max_count = k->max_count ? 2 * k->max_count : 256;
        k->code = grown(k->code, (size_t)k->max_count * sizeof *k->code);
    }
    k->code[k->count++] = i;
    k->loads_constants |= i.is_constant;
}

// ---- variables ----

// Their places: a name stands for one, which is aligned.
static uint64_t place_new(size_t *used, size_t bytes, size_t align) {
    uint64_t at = (*used + align - 1) / align * align;
    *used = at + bytes;
    return at;
}

// .align 4 .b8 name[12]: from behind the space on.  Returns the bytes, and
// those of an element.
static size_t variable_next(Reader *r, size_t *align, size_t *each,
                            char *name) {
    int type = -1;
    *align = 1;
    for (next(r); r->word[0] == '.'; next(r)) {
        if (strcmp(r->word, ".align") == 0)
            *align = (size_t)number_next(r);
        else if ((type = type_find(r->word + 1)) < 0)
            ptx_fail(r->line, "'%s' of a variable", r->word);
    }
    if (type < 0)
        ptx_fail(r->line, "a variable without a type");
    size_t bytes = *each = (size_t)type_bytes((Type)type);
    strcpy(name, r->word);
    while (takes(r, '[')) {
        bytes *= (size_t)number_next(r);
        needs(r, ']');
    }
    return bytes;
}

// The numbers of {1, 2}; what follows them is 0.
static void initial_next(Reader *r, char *to, size_t bytes, size_t each) {
    if (!takes(r, '='))
        return;
    bool several = takes(r, '{');
    size_t at = 0;
    do {
        uint64_t value = operand_next(r).value;
        if (at == bytes)
            ptx_fail(r->line, "more numbers than there is room for");
        memcpy(to + at, &value, each);
        at += each;
    } while (several && takes(r, ','));
    if (several)
        needs(r, '}');
}

static void global_next(Reader *r, Space space) {
    char name[LONGEST_NAME];
    size_t align, each, bytes = variable_next(r, &align, &each, name);
    PtxModule *m = r->module;
    m->variable =
        grown(m->variable, (size_t)(m->num_variables + 1) * sizeof(Variable));
    Variable *v = &m->variable[m->num_variables++];
    *v = (Variable){.name = copy_of(name), .space = space, .bytes = bytes};
    if (space == SHARED) {
        v->address = place_new(&m->shared_bytes, bytes, align);
    } else {
        v->memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
        memset(v->memory, 0, bytes);
        v->address = (uint64_t)(uintptr_t)v->memory;
        initial_next(r, v->memory, bytes, each);
    }
    needs(r, ';');
}

static void own_next(Reader *r, Space space) {
    Kernel *k = r->kernel;
    size_t align, each;
    Place *p = place_add(r, space);
    size_t bytes = variable_next(r, &align, &each, p->name);
    p->offset = place_new(space == SHARED ? &k->shared_bytes : &k->local_bytes,
                          bytes, align);
    needs(r, ';');
}

// .reg .b32 %r<170>; or .reg .b16 l, h;
static void registers_next(Reader *r) {
    next(r); // the type, which instructions say again
    do {
        char name[LONGEST_NAME];
        int count = 0;
        strcpy(name, next(r));
        if (takes(r, '<')) {
            count = (int)number_next(r);
            needs(r, '>');
        }
        registers_add(r, name, count);
    } while (takes(r, ','));
    needs(r, ';');
}

// ---- kernels ----

static void parameter_next(Reader *r) {
    Kernel *k = r->kernel;
    int type = -1, count = k->is.num_parameters++;
    int *bytes = (int *)(void *)k->is.bytes;
    if (strcmp(next(r), ".param") != 0)
        ptx_fail(r->line, "a parameter is wanted, not '%s'", r->word);
    for (next(r); r->word[0] == '.'; next(r)) {
        if (strcmp(r->word, ".align") == 0)
            next(r);
        else if (strcmp(r->word, ".ptr") != 0)
            type = type_find(r->word + 1);
    }
    if (type < 0)
        ptx_fail(r->line, "parameter '%s'", r->word);
    bytes = grown(bytes, (size_t)(count + 1) * sizeof *bytes);
    k->offset = grown(k->offset, (size_t)(count + 1) * sizeof *k->offset);
    bytes[count] = type_bytes((Type)type);
    size_t used = (size_t)k->parameter_bytes;
    k->offset[count] =
        (int)place_new(&used, (size_t)bytes[count], (size_t)bytes[count]);
    k->parameter_bytes = (int)used;
    k->is.bytes = bytes;
    Place *p = place_add(r, PARAM);
    strcpy(p->name, r->word);
    p->offset = (uint64_t)k->offset[count];
}

// .maxntid 256, 1, 1 and its like, up to the {.
static void limits_next(Reader *r) {
    r->kernel->is.threads = 1024;
    while (peek(r) != '{') {
        bool most = strcmp(next(r), ".maxntid") == 0;
        long long value = number_next(r);
        if (most)
            r->kernel->is.threads = (int)value;
        while (takes(r, ','))
            number_next(r);
    }
}

static void guard_of(Reader *r, const char *word, Instruction *i) {
    i->is_negated = word[1] == '!';
    i->guard = register_find(r, word + 1 + i->is_negated);
    if (i->guard == NOWHERE)
        ptx_fail(r->line, "'%s' is no predicate", word);
}

static void instruction_next(Reader *r, const char *guard, char *word) {
    Instruction i = instruction_of(r, word);
    if (*guard != '\0')
        guard_of(r, guard, &i);
    operands_next(r, &i);
    needs(r, ';');
    r->kernel->is.waits |= i.is_volatile;
    code_add(r->kernel, i);
}

static void statement_next(Reader *r) {
    char word[LONGEST_NAME], guard[LONGEST_NAME] = "";
    strcpy(word, next(r));
    if (strcmp(word, ".reg") == 0) {
        registers_next(r);
    } else if (strcmp(word, ".shared") == 0) {
        own_next(r, SHARED);
    } else if (strcmp(word, ".local") == 0) {
        own_next(r, LOCAL);
    } else if (strcmp(word, ".loc") == 0 || strcmp(word, ".pragma") == 0) {
        r->at += strcspn(r->at, "\n");
    } else if (takes(r, ':')) {
        label_add(&r->label, &r->num_labels, &r->max_labels, word,
                  r->kernel->count);
    } else {
        if (word[0] == '@') {
            strcpy(guard, word);
            strcpy(word, next(r));
        }
        instruction_next(r, guard, word);
    }
}

static void block_next(Reader *r) {
    needs(r, '{');
    if (r->depth == (int)(sizeof r->scope / sizeof *r->scope))
        ptx_fail(r->line, "blocks in blocks");
    r->scope[r->depth++] = r->num_names;
    while (!takes(r, '}')) {
        if (peek(r) == '\0')
            ptx_fail(r->line, "the text ends in a kernel");
        if (peek(r) == '{')
            block_next(r);
        else
            statement_next(r);
    }
    r->num_names = r->scope[--r->depth];
}

static void branches_bind(Reader *r) {
    for (int b = 0; b < r->num_branches; b++) {
        Instruction *i = &r->kernel->code[r->branch[b].at];
        for (int l = 0; l < r->num_labels && i->target < 0; l++)
            if (strcmp(r->label[l].name, r->branch[b].name) == 0)
                i->target = r->label[l].at;
        if (i->target < 0)
            ptx_fail(i->line, "no label '%s'", r->branch[b].name);
    }
    for (int b = 0; b < r->num_branches; b++)
        free(r->branch[b].name);
    for (int l = 0; l < r->num_labels; l++)
        free(r->label[l].name);
    r->num_branches = r->num_labels = 0;
}

static void kernel_next(Reader *r) {
    PtxModule *m = r->module;
    m->kernel =
        grown(m->kernel, (size_t)(m->num_kernels + 1) * sizeof *m->kernel);
    Kernel *k = r->kernel = &m->kernel[m->num_kernels++];
    *k =
        (Kernel){.num_registers = NUM_SPECIAL, .shared_bytes = m->shared_bytes};
    r->num_names = r->num_places = 0;
    k->is.name = copy_of(next(r));
    needs(r, '(');
    while (!takes(r, ')')) {
        parameter_next(r);
        takes(r, ',');
    }
    limits_next(r);
    block_next(r);
    code_add(k, (Instruction){.op = OP_RET, .guard = NOWHERE, .line = r->line});
    branches_bind(r);
    k->is.instructions = k->count;
}

static void declaration_next(Reader *r) {
    next(r);
    if (strcmp(r->word, ".entry") == 0)
        kernel_next(r);
    else if (strcmp(r->word, ".const") == 0)
        global_next(r, CONST);
    else if (strcmp(r->word, ".global") == 0)
        global_next(r, GLOBAL);
    else if (strcmp(r->word, ".shared") == 0)
        global_next(r, SHARED);
    else if (strcmp(r->word, ".version") == 0 ||
             strcmp(r->word, ".target") == 0 || strcmp(r->word, ".file") == 0 ||
             strcmp(r->word, ".address_size") == 0)
        r->at += strcspn(r->at, "\n");
    else if (strcmp(r->word, ".section") == 0)
        r->at += strcspn(r->at, "}") + 1;
    else if (strcmp(r->word, ".visible") != 0)
        ptx_fail(r->line, "'%s' is not known here", r->word);
}

// ---- modules ----

PtxModule *ptx_read(const char *text) {
    PtxModule *m = grown(NULL, sizeof *m);
    Reader *r = grown(NULL, sizeof *r);
    *m = (PtxModule){.text = copy_of(text)};
    *r = (Reader){.at = m->text, .line = 1, .module = m};
    while (peek(r) != '\0')
        declaration_next(r);
    free(r->label);
    free(r->branch);
    free(r->place);
    free(r);
    return m;
}

void ptx_free(PtxModule *m) {
    for (int i = 0; i < m->num_kernels; i++) {
        free((void *)(uintptr_t)m->kernel[i].is.name);
        free((void *)(uintptr_t)m->kernel[i].is.bytes);
        free(m->kernel[i].offset);
        free(m->kernel[i].code);
    }
    for (int i = 0; i < m->num_variables; i++) {
        free(m->variable[i].name);
        free(m->variable[i].memory);
    }
    free(m->kernel);
    free(m->variable);
    free(m->text);
    free(m);
}

const PtxKernel *ptx_kernel(const PtxModule *m, int i) {
    return i < m->num_kernels ? &m->kernel[i].is : NULL;
}

const char *ptx_line(const PtxModule *m, const PtxKernel *k, int i,
                     int *length) {
    const Kernel *of = (const Kernel *)(const void *)k;
    const char *at = m->text;
    for (int line = 1; line < of->code[i].line; line++)
        at += strcspn(at, "\n") + 1;
    at += strspn(at, " \t");
    *length = (int)strcspn(at, "\n");
    return at;
}

void *ptx_variable(const PtxModule *m, const char *name, size_t *bytes) {
    for (int i = 0; i < m->num_variables; i++)
        if (m->variable[i].memory != NULL &&
            strcmp(m->variable[i].name, name) == 0) {
            *bytes = m->variable[i].bytes;
            return m->variable[i].memory;
        }
    return NULL;
}
