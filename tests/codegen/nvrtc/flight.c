// Flight: the bytes that a thread loads before it waits, from machine code.
//
// An instruction of sm_70 and later has 16 bytes: the operation in bits 0..11,
// and from bit 105 on what the hardware schedules by.  A load counts up one of
// six counters, and an instruction waits until those of its mask are 0 again
// (Jia, Maggioni, Staiger and Scarpazza, "Dissecting the NVIDIA Volta GPU
// architecture via microbenchmarking", 2018, section 2).
#include "tests/codegen/nvrtc/nvrtc.h"

#include <stdlib.h>
#include <string.h>

enum { LOAD_GLOBAL = 0x981, BRANCH = 0x947, FENCE = 0x992, NUM_COUNTERS = 6 };

typedef struct {
    uint64_t low, high;
} Instruction;

static int field(uint64_t word, int bit, int bits) {
    return (int)(word >> bit & ((1u << bits) - 1));
}

static int operation(const Instruction *i) {
    return field(i->low, 0, 12);
}

// The bytes of a load of global memory, or 0.
static int loaded_bytes(const Instruction *i) {
    static const int size[] = {1, 1, 2, 2, 4, 8, 16, 32};
    return operation(i) == LOAD_GLOBAL ? size[field(i->high, 9, 3)] : 0;
}

// How far a branch at instruction number `at` jumps back, or 0.  The distance
// from the next instruction is in units of 4 bytes; from sm_90 on its low 8
// bits stand apart.
static int jump_back(const Instruction *i, int at, int arch) {
    int64_t units = (int64_t)(i->high << 46 | i->low >> 18) >> 16;
    if (operation(i) != BRANCH)
        return 0;
    if (arch >= 90)
        units = units * 256 + field(i->low, 16, 8);
    int64_t to = at + 1 + units / 4;
    return to >= 0 && to <= at ? at - (int)to + 1 : 0;
}

// The most bytes that are loaded and not waited for, in instructions that run
// `times` times.
static int flight_of(const Instruction *code, int count, int times) {
    int pending[NUM_COUNTERS] = {0}, all = 0, most = 0;
    for (int i = 0; i < count * times; i++) {
        const Instruction *own = &code[i % count];
        int waits = field(own->high, 52, NUM_COUNTERS);
        int counter = field(own->high, 46, 3), bytes = loaded_bytes(own);
        for (int c = 0; c < NUM_COUNTERS; c++) {
            if (waits >> c & 1) {
                all -= pending[c];
                pending[c] = 0;
            }
        }
        if (counter < NUM_COUNTERS) {
            pending[counter] += bytes;
            all += bytes;
        }
        most = all > most ? all : most;
    }
    return most;
}

// The instructions in front of a fence, behind which the last block adds what
// others computed: of a kernel of many phases the last one, else the first.
static int main_part(const Instruction *code, int count, bool phased) {
    int end = count;
    for (int i = 0; i < count; i++) {
        if (operation(&code[i]) == FENCE && (phased || end == count))
            end = i;
    }
    return end;
}

static int body_bytes(const Instruction *code, int count) {
    int bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += loaded_bytes(&code[i]);
    return bytes;
}

// Measures the innermost loop that loads the most bytes, or the whole kernel if
// it has no loop.
int bytes_in_flight(const char *text, int count, int arch, bool phased) {
    Instruction *code = memory_get((size_t)count * sizeof *code);
    memcpy(code, text, (size_t)count * sizeof *code);
    count = main_part(code, count, phased);
    int first = 0, length = count, most = 0, inner = -1;
    for (int i = 0; i < count; i++) {
        int body = jump_back(&code[i], i, arch), from = i - body + 1;
        int bytes = body_bytes(&code[from], body);
        if (body > 0 && from > inner && bytes > most) {
            most = bytes;
            first = from;
            length = body;
        }
        if (body > 1)
            inner = from > inner ? from : inner;
    }
    int flight = flight_of(code + first, length, most > 0 ? 2 : 1);
    free(code);
    return flight;
}
