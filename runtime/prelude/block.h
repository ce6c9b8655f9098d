// What the threads of a block do together, in terms of SHUFFLE and BARRIER.
// The same text for CUDA and for its faithful execution on the host.  Every
// thread of the block calls each of these.
#ifndef SINTER_BLOCK_H
#define SINTER_BLOCK_H

DEVICE float larger(float a, float b) {
    return b > a || b != b ? b : a;
}

// Sums over neighbours of a warp, a power of two, in a tree.  All threads of
// the warp call it.
DEVICE float warp_sum(float v, int neighbours) {
    for (int step = neighbours / 2; step > 0; step /= 2)
        v += SHUFFLE(v, (threadIdx.x % 32) ^ step);
    return v;
}

DEVICE float warp_max(float v, int neighbours) {
    for (int step = neighbours / 2; step > 0; step /= 2)
        v = larger(v, SHUFFLE(v, (threadIdx.x % 32) ^ step));
    return v;
}

DEVICE float block_sum(float v, float *shared, int threads) {
    v = warp_sum(v, 32);
    BARRIER();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    BARRIER();
    v = (int)(threadIdx.x % 32) < threads / 32 ? shared[threadIdx.x % 32]
                                               : 0.0f;
    return warp_sum(v, 32);
}

DEVICE float block_max(float v, float *shared, int threads) {
    v = warp_max(v, 32);
    BARRIER();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    BARRIER();
    v = (int)(threadIdx.x % 32) < threads / 32 ? shared[threadIdx.x % 32]
                                               : -INF;
    return warp_max(v, 32);
}

// Over the gang of a row: one thread, some of a warp, or the block.
DEVICE float gang_sum(float v, int gang, float *shared) {
    return gang <= 32 ? warp_sum(v, gang) : block_sum(v, shared, gang);
}

DEVICE float gang_max(float v, int gang, float *shared) {
    return gang <= 32 ? warp_max(v, gang) : block_max(v, shared, gang);
}

// The smallest index at which the gang's largest value is.
DEVICE int gang_argmax(float v, int index, int gang, float *shared) {
    const float most = gang_max(v, gang, shared);
    const float at = v == most ? (float)-index : -INF;
    return gang == 1 ? index : (int)-gang_max(at, gang, shared);
}

// Sums v[0 .. n-1] over threads with the same place among the tx that stand
// side by side, and stores the result where `inside`.
DEVICE void columns_sum(float *out, const float *v, int n, int inside,
                        float *shared, int tx, int threads) {
    LANES_DO(k, n) {
        BARRIER();
        shared[threadIdx.x] = inside ? v[k] : 0.0f;
        for (int half = threads / 2; half >= tx; half /= 2) {
            BARRIER();
            if ((int)threadIdx.x < half)
                shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        if ((int)threadIdx.x < tx && inside)
            out[k] = shared[threadIdx.x];
    }
}

DEVICE void columns_max(float *out, const float *v, int n, int inside,
                        float *shared, int tx, int threads) {
    LANES_DO(k, n) {
        BARRIER();
        shared[threadIdx.x] = inside ? v[k] : -INF;
        for (int half = threads / 2; half >= tx; half /= 2) {
            BARRIER();
            if ((int)threadIdx.x < half)
                shared[threadIdx.x] =
                    larger(shared[threadIdx.x], shared[threadIdx.x + half]);
        }
        if ((int)threadIdx.x < tx && inside)
            out[k] = shared[threadIdx.x];
    }
}

DEVICE void total_sum(float *out, const float *v, int n, float *shared,
                      int threads) {
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += v[k];
    sum = block_sum(sum, shared, threads);
    if (threadIdx.x == 0)
        *out = sum;
}

DEVICE void total_max(float *out, const float *v, int n, float *shared,
                      int threads) {
    float most = -INF;
    for (int k = 0; k < n; k++)
        most = larger(most, v[k]);
    most = block_max(most, shared, threads);
    if (threadIdx.x == 0)
        *out = most;
}

// The sum of n numbers, in an order that is always the same; all threads get
// it.
DEVICE float parts_sum(const float *part, int n, float *shared, int threads) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += threads)
        sum += part[i];
    return block_sum(sum, shared, threads);
}

// Whether this is the last block of the launch to come here; what the others
// wrote before is then visible to it.  The ticket is 0 again afterwards.
DEVICE int last_block(int *ticket, int blocks) {
    SHARED int last;
    __threadfence();
    BARRIER();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1) == blocks - 1;
        if (last)
            *ticket = 0;
    }
    BARRIER();
    __threadfence();
    return last;
}

#endif
