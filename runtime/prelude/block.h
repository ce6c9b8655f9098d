// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of all threads of a block, in terms of SHUFFLE and BARRIER. The
// text is the same for CUDA and for its faithful execution on the host.  Every
// thread of the block calls each of these.
#ifndef SINTER_BLOCK_H
#define SINTER_BLOCK_H

// Sums over neighbours of a warp, a power of two, in a tree.  All threads of
// the warp call it.
DEVICE float warp_sum(float v, int neighbours) {
    for (int step = neighbours / 2; step > 0; step /= 2)
        v += SHUFFLE(v, (threadIdx.x % 32) ^ step);
    return v;
}

DEVICE float warp_max(float v, int neighbours) {
    for (int step = neighbours / 2; step > 0; step /= 2)
        v = maximum(v, SHUFFLE(v, (threadIdx.x % 32) ^ step));
    return v;
}

DEVICE float block_sum(float v, float *shared, int threads) {
    v = warp_sum(v, 32);
    BARRIER();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    BARRIER();
    return warp_sum(shared[threadIdx.x % (threads / 32)], threads / 32);
}

DEVICE float block_max(float v, float *shared, int threads) {
    v = warp_max(v, 32);
    BARRIER();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = v;
    BARRIER();
    return warp_max(shared[threadIdx.x % (threads / 32)], threads / 32);
}

// Over the threads of a row: one thread, some of a warp, or the block.
DEVICE float row_sum(float v, int threads, float *shared) {
    return threads <= 32 ? warp_sum(v, threads) : block_sum(v, shared, threads);
}

DEVICE float row_max(float v, int threads, float *shared) {
    return threads <= 32 ? warp_max(v, threads) : block_max(v, shared, threads);
}

// Converts floats to integer keys of at most 2^30 in magnitude, and back, in
// the same order: the bits of a float's magnitude are in that order, and none
// of these integers has the bits of infinity.
DEVICE float key_float(int i) {
    return i < 0 ? -__int_as_float(-i) : __int_as_float(i);
}

DEVICE int float_key(float v) {
    return v < 0.0f ? -__float_as_int(-v) : __float_as_int(v);
}

// The smallest index of the row's largest value.
DEVICE int row_argmax(float v, int index, int threads, float *shared) {
    const int middle = 1 << 30;
    const float most = row_max(v, threads, shared);
    const float at = v == most || v != v ? key_float(middle - index) : -INF;
    return threads == 1 ? index
                        : middle - float_key(row_max(at, threads, shared));
}

DEVICE float combine(float a, float b, int largest) {
    return largest ? maximum(a, b) : a + b;
}

// The position in shared memory of lane k of the thread in place x of tx.
// Threads that each write their own lane use different banks, and so do
// REDUCE_LANES of them that read the lanes of one thread.
DEVICE int lane_offset(int k, int x, int tx) {
    return k * tx + (x ^ (k * (tx < 32 ? tx : 32) / REDUCE_LANES & ~7));
}

// The position in shared memory of lane k of n of the threads in place x.
// Threads of a warp that each write one of their lanes use different banks.
DEVICE int half_offset(int k, int x, int n) {
    return x * n + (k ^ (x >> 2 & (n - 1) & 3));
}

// columns_reduce for several rows of threads in a warp.  Two threads that add
// share the lanes: each sends the other half of its own, and goes on with its
// half of the sums.  The order of the additions is that of columns_reduce.
DEVICE void columns_halving(float *out, const float *v, int n, int columns,
                            float *shared, int tx, int threads, int largest) {
    float u[16]; // n is the lanes of a vector
    int own = n, first = 0, stores = 1;
    const int lane = threadIdx.x % 32, x = threadIdx.x % tx;
    UNROLLED(k, n) u[k] = v[k];
    UNROLLED(i, 5) {
        const int step = 16 >> i, upper = (lane & step) != 0;
        if (step < tx)
            break;
        if (own % 2 == 0) {
            own /= 2;
            UNROLLED(k, n) {
                if (k >= own)
                    break;
                const float other = upper ? u[k] : u[k + own];
                u[k] = combine(upper ? u[k + own] : u[k],
                               SHUFFLE(other, lane ^ step), largest);
            }
            first += upper ? own : 0;
        } else {
            UNROLLED(k, n)
            if (k < own)
                u[k] = combine(u[k], SHUFFLE(u[k], lane ^ step), largest);
            stores = stores && !upper;
        }
    }
    BARRIER();
    UNROLLED(k, n)
    if (stores && k < own)
        shared[threadIdx.x / 32 * n * tx + half_offset(first + k, x, n)] = u[k];
    BARRIER();
    const int at = threadIdx.x;
    if (at < n * tx && at < columns) {
        const float *const all = shared + half_offset(at % n, at / n, n);
        float a = *all;
        UNROLLED(r, threads / 32 - 1)
        a = combine(a, all[(r + 1) * n * tx], largest);
        out[at] = a;
    }
}

// Adds or compares v[0 .. n-1] over threads with the same place among the tx
// that are side by side, and stores the results at `out` and on, for so many
// columns.  A warp has several rows of threads, or a row several warps.  The
// rows of a warp come first, then the results of all warps, so threads wait
// only twice for REDUCE_LANES lanes.  The trip count at the end is a constant;
// otherwise NVRTC would unroll four turns, and three before them.
DEVICE void columns_reduce(float *out, const float *v, int n, int columns,
                           float *shared, int tx, int threads, int largest) {
    if (tx < 32 && n % 4 == 0 &&
        n * tx * (threads / 32) <= REDUCE_LANES * threads) {
        columns_halving(out, v, n, columns, shared, tx, threads, largest);
        return;
    }
    const int wide = tx < 32 ? 32 : tx, line = tx * REDUCE_LANES;
    UNROLLED(q, (n + REDUCE_LANES - 1) / REDUCE_LANES) {
        float u[REDUCE_LANES];
        BARRIER();
        UNROLLED(k, REDUCE_LANES) {
            u[k] = REDUCE_LANES * q + k < n ? v[REDUCE_LANES * q + k] : 0.0f;
            for (int step = 16; step >= tx; step /= 2)
                u[k] = combine(u[k], SHUFFLE(u[k], (threadIdx.x % 32) ^ step),
                               largest);
        }
        const int row = threadIdx.x / wide, x = threadIdx.x % wide;
        UNROLLED(k, REDUCE_LANES)
        if (x < tx)
            shared[row * line + lane_offset(k, x, tx)] = u[k];
        BARRIER();
        UNROLLED(turn, (line + threads - 1) / threads) {
            const int t = threadIdx.x + turn * threads;
            const int k = t % REDUCE_LANES, from = t / REDUCE_LANES;
            if (line < threads && t >= line)
                break;
            const int at = from * n + REDUCE_LANES * q + k;
            const float *const first = shared + lane_offset(k, from, tx);
            float a = *first;
            UNROLLED(r, threads / wide - 1)
            a = combine(a, first[(r + 1) * line], largest);
            if (REDUCE_LANES * q + k < n && at < columns)
                out[at] = a;
        }
    }
}

DEVICE void columns_sum(float *out, const float *v, int n, int columns,
                        float *shared, int tx, int threads) {
    columns_reduce(out, v, n, columns, shared, tx, threads, 0);
}

DEVICE void columns_max(float *out, const float *v, int n, int columns,
                        float *shared, int tx, int threads) {
    columns_reduce(out, v, n, columns, shared, tx, threads, 1);
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
        most = maximum(most, v[k]);
    most = block_max(most, shared, threads);
    if (threadIdx.x == 0)
        *out = most;
}

// Adds or compares v over the threads with the same place among the tx that are
// side by side; each gets the result of its place.
DEVICE float place_reduce(float v, float *shared, int tx, int threads,
                          int largest) {
    const int wide = tx < 32 ? 32 : tx, x = threadIdx.x % wide;
    for (int step = 16; step >= tx; step /= 2)
        v = combine(v, SHUFFLE(v, (threadIdx.x % 32) ^ step), largest);
    if (wide == threads)
        return v;
    BARRIER();
    shared[threadIdx.x] = v;
    BARRIER();
    v = shared[x];
    UNROLLED(r, threads / wide - 1)
    v = combine(v, shared[(r + 1) * wide + x], largest);
    return v;
}

// Adds or compares partial results of so many blocks, which are `step` numbers
// apart: n results, at column c, c + next and on; those from `end` on
// are none.  Threads have columns side by side and blocks one above the other;
// each loads those of several blocks before it adds the first, so that it waits
// for memory few times.
DEVICE void grid_reduce(float *v, int n, int at_a_time, int c, int end,
                        int next, const float *partials, int step, int count,
                        int tx, float *shared, int threads, int largest) {
    const int ty = threadIdx.x / tx, rows = threads / tx;
    const float none = largest ? -INF : 0.0f;
    const float *p = partials + (size_t)ty * step + c;
    UNROLLED(j, n) v[j] = none;
    NO_UNROLL(turn, (count + at_a_time * rows - 1) / (at_a_time * rows)) {
        UNROLLED(k, at_a_time) {
            const int is = ty + (turn * at_a_time + k) * rows < count;
            UNROLLED(j, n) {
                float x = none;
                if (is && c + j * next < end)
                    x = p[(size_t)(k * rows) * step + j * next];
                v[j] = combine(v[j], x, largest);
            }
        }
        p += (size_t)(at_a_time * rows) * step;
    }
    UNROLLED(j, n) v[j] = place_reduce(v[j], shared, tx, threads, largest);
}

DEVICE void grid_sum(float *v, int n, int at_a_time, int c, int end, int next,
                     const float *partials, int step, int count, int tx,
                     float *shared, int threads) {
    grid_reduce(v, n, at_a_time, c, end, next, partials, step, count, tx,
                shared, threads, 0);
}

DEVICE void grid_max(float *v, int n, int at_a_time, int c, int end, int next,
                     const float *partials, int step, int count, int tx,
                     float *shared, int threads) {
    grid_reduce(v, n, at_a_time, c, end, next, partials, step, count, tx,
                shared, threads, 1);
}

// The sum of n numbers in a fixed order; all threads get it.
DEVICE float partials_sum(const float *partials, int n, float *shared,
                          int threads) {
    enum { FEW = 8 * 32 }; // numbers that each warp adds for itself
    float sum = 0.0f;
    if (n <= FEW) {
        for (int i = threadIdx.x % 32; i < n; i += 32)
            sum += partials[i];
        return warp_sum(sum, 32);
    }
    for (int i = threadIdx.x; i < n; i += threads)
        sum += partials[i];
    return block_sum(sum, shared, threads);
}

// Lists the rows lo .. hi-1 that the threads name, `per` each, in the order of
// the threads: pairs of a number, which counts up from `from`, and the row.
// Returns their count.  The earlier list may be read until the first barrier;
// the second one is between two uses of the list.
DEVICE int list_rows(int *listed, const int *named, int per, int from, int lo,
                     int hi, int threads) {
    SHARED float counts[32];
    const int warp_lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int own = 0;
    UNROLLED(m, per) own += named[m] >= lo && named[m] < hi;
    float upto = (float)own;
    for (int step = 1; step < 32; step *= 2) {
        const float left = SHUFFLE(upto, (warp_lane - step) & 31);
        upto += warp_lane >= step ? left : 0.0f;
    }
    if (warp_lane == 31)
        counts[warp] = upto;
    BARRIER();
    upto -= (float)own;
    float count = 0.0f;
    for (int w = 0; w < threads / 32; w++) {
        upto += w < warp ? counts[w] : 0.0f;
        count += counts[w];
    }
    int at = (int)upto;
    UNROLLED(m, per)
    if (named[m] >= lo && named[m] < hi) {
        listed[2 * at] = from + threadIdx.x * per + m;
        listed[2 * at++ + 1] = named[m];
    }
    BARRIER();
    return (int)count;
}

// Whether this is the last block of the launch to arrive; the others' writes
// are then visible to it.  Resets the block counter `counter` to 0.
//
// One add that releases and acquires is enough, and no weaker one is (PTX ISA,
// "Memory Consistency Model").  A thread's writes come before the barrier, so
// before the add of thread 0, which releases them.  The last block's add reads
// the counter after all other adds, so it acquires what they released, and the
// second barrier comes before the loads of that block's threads.  Nothing
// compares the order of two counters, which a sequentially consistent fence is
// for.  The next user of the counter is another launch.
DEVICE int last_block(int *counter, int blocks) {
    SHARED int last;
    BARRIER();
    if (threadIdx.x == 0) {
        last = counter_add(counter, 1) == blocks - 1;
        if (last)
            *counter = 0;
    }
    BARRIER();
    return last;
}

// Several last blocks share the work of the last one: parts of the columns.
//
// A block that ends its own work and finds that all have begun waits for the
// others.  It gives up when `most` have begun to wait after it; the last ones
// each take a share, the last of them the first.  They wait for blocks that
// run, and need no others to be resident; where blocks run one by one, only the
// last finds that all have begun, and its wait ends at once.
//
// The lower half of counter[0] counts blocks that have begun, the upper half
// those that have waited but the last one, which have read counter[1] for the
// last time.  The lower half of counter[1] counts blocks that have ended their
// work, the upper half those of them that began to wait.  There are fewer than
// 2^15 blocks.
//
// The first add orders nothing: the block that begins last reads its own, so
// one block waits at least.  The add to counter[1] releases and acquires as in
// last_block.  A block with a share has read it after all adds, by a load that
// orders nothing, and the fence behind that makes it an acquire.  counter_leave
// releases this read, and the fence in last_blocks_end acquires it, so that the
// reset comes after it.
DEVICE void block_begins(int *counter) {
    if (threadIdx.x == 0)
        (void)counter_begin(counter);
}

// The shares of a waiting block: the first, the distance to the next, and the
// number of blocks that wait.  Returns whether it has one.
DEVICE int shares_of_waiting(int *counter, int blocks, int most, int own,
                             int *shares) {
    int now;
    do {
        now = counter_read(counter + 1);
    } while (now % COUNTED < blocks && now / COUNTED - own <= most);
    FENCE();
    shares[2] = now / COUNTED;
    shares[0] = shares[2] - 1 - own;
    shares[1] = shares[2] < most ? shares[2] : most;
    if (shares[0] > 0)
        (void)counter_leave(counter);
    return now % COUNTED == blocks && shares[0] < most;
}

DEVICE int last_blocks(int *counter, int blocks, int most, int *shares) {
    SHARED int works, first, step;
    BARRIER();
    if (threadIdx.x == 0) {
        const int waits = counter_read(counter) % COUNTED == blocks;
        const int before = counter_add(counter + 1, waits ? 1 + COUNTED : 1);
        shares[0] = shares[1] = 0;
        works = waits && shares_of_waiting(counter, blocks, most,
                                           before / COUNTED, shares);
        first = shares[0];
        step = shares[1];
    }
    BARRIER();
    shares[0] = first;
    shares[1] = step;
    return works;
}

// Resets the counters.  The block that began to wait last does it, when the
// others have read them for the last time.
DEVICE void last_blocks_end(int *counter, const int *shares) {
    if (threadIdx.x > 0 || shares[0] > 0)
        return;
    while (counter_read(counter) / COUNTED != shares[2] - 1) {
    }
    FENCE();
    counter[0] = counter[1] = 0;
}

#endif
