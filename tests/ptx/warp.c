// Runs the threads of a warp together, and counts what their accesses take.
//
// One instruction is executed for all threads that are at it, and of several
// the one that comes first in the text: those that are ahead wait, so that
// branches meet again behind an if, and behind a loop when the last has left
// it.  On a GPU they do so where ptxas keeps the order that NVRTC has given.
//
// Of global memory a warp's access takes whole sectors.  Shared memory has 32
// banks of words of 4 bytes, and a bank gives one word in a turn, to all that
// ask for it; of accesses of 8 bytes the halves of a warp take turns, and of 16
// bytes the quarters.
#include "tests/ptx/module.h"

enum { SECTOR = 32, WORD = 4, BANKS = 32 };

// The threads that access memory, and where.
typedef struct {
    uint64_t address[WARP];
    int lane[WARP];
    int count;
} Lanes;

// ---- global memory ----

typedef struct {
    uint64_t at[WARP];
    uint32_t touched[WARP]; // a bit for each byte
    int count;
} Sectors;

static void sector_touch(Sectors *s, uint64_t address, int bytes) {
    uint64_t at = address / SECTOR;
    int i = s->count;
    while (i > 0 && s->at[i - 1] != at)
        i--;
    if (i == 0) {
        s->at[s->count] = at;
        s->touched[s->count] = 0;
        i = ++s->count;
    }
    s->touched[i - 1] |= ((1u << bytes) - 1) << address % SECTOR;
}

static void sectors_count(const Lanes *l, int bytes, PtxCount *to) {
    Sectors s = {.count = 0};
    int touched = 0;
    for (int i = 0; i < l->count; i++)
        sector_touch(&s, l->address[i], bytes);
    for (int i = 0; i < s.count; i++)
        touched += __builtin_popcount(s.touched[i]);
    to->sectors += (uint64_t)s.count;
    to->least_sectors += (uint64_t)(touched + SECTOR - 1) / SECTOR;
}

// ---- shared memory ----

// The most different words of one bank.
static int turns_of(const uint64_t *word, int count) {
    int most = 0, of_bank[BANKS] = {0};
    for (int i = 0; i < count; i++) {
        int seen = 0;
        for (int j = 0; j < i; j++)
            seen += word[j] == word[i];
        int *turns = &of_bank[word[i] % BANKS];
        *turns += seen == 0;
        most = *turns > most ? *turns : most;
    }
    return most;
}

static void turns_count(const Lanes *l, int bytes, PtxCount *to) {
    int words = (bytes + WORD - 1) / WORD, at_once = WARP / words;
    for (int i = 0; i < l->count;) {
        uint64_t word[BANKS];
        int part = l->lane[i] / at_once, count = 0;
        for (; i < l->count && l->lane[i] / at_once == part; i++)
            for (int j = 0; j < words; j++)
                word[count++] = l->address[i] / WORD + (uint64_t)j;
        to->turns += (uint64_t)turns_of(word, count);
        to->least_turns++;
    }
}

// ---- kinds ----

PtxKind ptx_kind(const PtxKernel *kernel, int number) {
    const Instruction *i = &((const Kernel *)kernel)->code[number];
    bool real = i->type == F16 || i->type == BF16 || i->type == F16X2 ||
                i->type == BF16X2 || i->type == F32 || i->type == F64;
    switch (i->op) {
    case OP_EX2:
    case OP_LG2:
    case OP_RCP:
    case OP_RSQRT:
    case OP_SIN:
    case OP_COS:
    case OP_SQRT:
    case OP_TANH:
        return PTX_SPECIAL;
    case OP_DIV:
        return real ? PTX_SPECIAL : PTX_INTEGER;
    case OP_SETP:
    case OP_SELP:
    case OP_MAX:
    case OP_MIN:
        return PTX_SELECT;
    case OP_CVT:
        return PTX_CONVERT;
    case OP_LD:
        return i->space == PARAM ? PTX_MOVE : PTX_MEMORY;
    case OP_ST:
    case OP_ATOM:
        return PTX_MEMORY;
    case OP_SHFL:
    case OP_BAR:
    case OP_FENCE:
    case OP_MEMBAR:
        return PTX_EXCHANGE;
    case OP_BRA:
    case OP_RET:
    case OP_EXIT:
        return PTX_BRANCH;
    case OP_MOV:
    case OP_CVTA:
        return PTX_MOVE;
    default:
        return real ? PTX_FLOAT : i->type == PRED ? PTX_SELECT : PTX_INTEGER;
    }
}

// ---- warps ----

static void access_count(const Lanes *l, const Instruction *i, PtxCount *to) {
    int bytes = type_bytes(i->type) * i->vector;
    if (l->count > 0 && i->space == SHARED)
        turns_count(l, bytes, to);
    else if (l->count > 0 && (i->space == GLOBAL || i->space == GENERIC))
        sectors_count(l, bytes, to);
}

// The first instruction in the text at which a thread is, or NOWHERE.
static int next_at(const Thread *first, int lanes) {
    int at = NOWHERE;
    for (int i = 0; i < lanes; i++)
        if (first[i].state == RUNS && (at == NOWHERE || first[i].at < at))
            at = first[i].at;
    return at;
}

// Addresses are taken first: a load may overwrite the register that has its
// own.
static void warp_step(const Kernel *k, const Memory *m, Thread *first,
                      int lanes, int at, PtxCount *to) {
    Lanes l = {.count = 0};
    Thread *meant[WARP];
    int count = 0;
    for (int lane = 0; lane < lanes; lane++) {
        Thread *t = &first[lane];
        if (t->state != RUNS || t->at != at)
            continue;
        meant[count++] = t;
        l.lane[l.count] = lane;
        l.count += thread_accesses(k, t, &l.address[l.count]);
    }
    to->warps++;
    to->lanes += (uint64_t)count;
    access_count(&l, &k->code[at], to);
    for (int i = 0; i < count; i++)
        thread_step(k, m, meant[i]);
}

void warp_counted(const Kernel *k, const Memory *m, Thread *first, int lanes,
                  PtxCount *count) {
    for (int at; (at = next_at(first, lanes)) != NOWHERE;)
        warp_step(k, m, first, lanes, at, &count[at]);
}
