// k00_sum:
// %2..%9: max sub exp sum div log sum
// 1284 bytes read and written (host: 1284)
KERNEL(256, 2) k00_sum(
    const float *RESTRICT p0,
    float *RESTRICT p7,
    float *RESTRICT p9,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 10, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    enum { WIDTH = 1 };
    enum { VECTORS_PER_THREAD = ((C + VW - 1) / VW + ROW_THREADS - 1) / ROW_THREADS };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE(lo, hi, ROWS);
    float s9[VW];
    LANES_DO(k, VW) s9[k] = 0.0f;
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const int row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const int i = row < hi ? row : hi - 1;
        const int end = row < hi ? C : 0;
        float s3[VW];
        LANES_DO(k, VW) s3[k] = -INF;
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 10 + c, VW);
            LANES_DO(k, VW) s3[k] = maximum(s3[k], v0[k]);
        }
        const float v3 = row_max(lanes_max(s3, VW), ROW_THREADS, shared);
        float s6[VW];
        LANES_DO(k, VW) s6[k] = 0.0f;
        float cached5[VECTORS_PER_THREAD][VW];
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            float v0_1[VW];
            load_f32(v0_1, p0 + (size_t)i * 10 + c, VW);
            LANES_DO(k, VW) {
                const float v4 = v0_1[k] - v3;
                const float v5 = expf(v4);
                s6[k] += v5;
                cached5[j][k] = v5;
            }
        }
        const float v6 = row_sum(lanes_sum(s6, VW), ROW_THREADS, shared);
        const float v8 = logf(v6);
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= end) break;
            float out7[VW];
            LANES_DO(k, VW) {
                const float v7 = cached5[j][k] / v6;
                out7[k] = v7;
            }
            store_f32(p7 + (size_t)i * 10 + c, out7, VW);
        }
        if (row_thread == 0 && end == C) {
            LANES_DO(k, 1) s9[k] += v8;
        }
    }
    total_sum(partials + (size_t)block * WIDTH + 0, s9, VW, shared, NT);
    if (last_block(counter, blocks)) {
        NO_UNROLL(turn, (1 + THREADS_ALONG(1, NT) - 1) / THREADS_ALONG(1, NT)) {
            const int c = turn * THREADS_ALONG(1, NT) + threadIdx.x % THREADS_ALONG(1, NT);
            float s[1];
            grid_sum(s, 1, 1, c, 1, 1, partials + 0, WIDTH, blocks, THREADS_ALONG(1, NT),
                shared, NT);
            if (threadIdx.x < THREADS_ALONG(1, NT) && c < 1) put_f32(p9 + c, s[0]);
        }
    }
}
