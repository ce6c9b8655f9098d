// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random: numbers that are a function of where they are wanted.
#include "ir/ir.h"

static void philox_round(uint32_t x[4], uint32_t key0, uint32_t key1) {
    uint64_t a = (uint64_t)UINT32_C(0xd2511f53) * x[0];
    uint64_t b = (uint64_t)UINT32_C(0xcd9e8d57) * x[2];
    x[0] = (uint32_t)(b >> 32) ^ x[1] ^ key0;
    x[1] = (uint32_t)b;
    x[2] = (uint32_t)(a >> 32) ^ x[3] ^ key1;
    x[3] = (uint32_t)a;
}

static double number(uint32_t seed, uint32_t stream, uint32_t epoch,
                     uint32_t block, uint32_t word) {
    uint32_t x[4] = {block, epoch, 0, 0};
    for (int i = 0; i < 10; i++) {
        philox_round(x, seed, stream);
        seed += UINT32_C(0x9e3779b9);
        stream += UINT32_C(0xbb67ae85);
    }
    return (x[word] >> 8) * 0x1p-24;
}

double random_uniform(uint32_t seed, uint32_t stream, uint32_t epoch,
                      uint32_t index) {
    return number(seed, stream, epoch, index, 0);
}

double random_shared(uint32_t seed, uint32_t stream, uint32_t epoch,
                     uint32_t index) {
    return number(seed, stream, epoch, index / 4, index % 4);
}

int64_t stream_of(const char *name) {
    uint32_t hash = UINT32_C(2166136261);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return hash & INT32_MAX;
}
