// k00_sum:
// %2..%12: slice max sub exp sum argmax div cast pad sum
// 1092 bytes read and written (host: 1092)
KERNEL(256, 2) k00_sum(
    const act *RESTRICT p0,
    int *RESTRICT p8,
    act *RESTRICT p11,
    float *RESTRICT p12,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 10, VW = LANES(16) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(16, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    enum { WIDTH = 1 };
    enum { VECTORS_PER_THREAD = ((C + VW - 1) / VW + ROW_THREADS - 1) / ROW_THREADS };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE(lo, hi, ROWS);
    float s12[VW];
    LANES_DO(k, VW) s12[k] = 0.0f;
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const int row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const int i = row < hi ? row : hi - 1;
        const int end = row < hi ? C : 0;
        float s4[VW];
        LANES_DO(k, VW) s4[k] = -INF;
        float s8[VW];
        LANES_DO(k, VW) s8[k] = -INF;
        int at8[VW];
        LANES_DO(k, VW) at8[k] = row_thread * VW + k;
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            float v0[VW];
            load_act(v0, p0 + (size_t)i * 16 + c, VW);
            LANES_DO(k, VW) {
                const float x4 = c + k < C ? v0[k] : -INF;
                s4[k] = maximum(s4[k], x4);
                const float x8 = c + k < C ? v0[k] : -INF;
                const int more8 = beats(x8, s8[k]);
                at8[k] = more8 ? c + k : at8[k];
                s8[k] = more8 ? x8 : s8[k];
            }
        }
        const float v4 = row_max(lanes_max(s4, VW), ROW_THREADS, shared);
        const int v8 = row_argmax(lanes_max(s8, VW), lanes_argmax(s8, at8, VW), ROW_THREADS,
            shared);
        float s7[VW];
        LANES_DO(k, VW) s7[k] = 0.0f;
        float cached6[VECTORS_PER_THREAD][VW];
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            float v0_1[VW];
            load_act(v0_1, p0 + (size_t)i * 16 + c, VW);
            LANES_DO(k, VW) {
                const float v5 = v0_1[k] - v4;
                const float v6 = expf(v5);
                const float x7 = c + k < C ? v6 : 0.0f;
                s7[k] += x7;
                cached6[j][k] = v6;
            }
        }
        const float v7 = row_sum(lanes_sum(s7, VW), ROW_THREADS, shared);
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= end) break;
            float out11[VW];
            float v0_2[VW];
            load_act(v0_2, p0 + (size_t)i * 16 + c, VW);
            LANES_DO(k, VW) {
                const float v9 = cached6[j][k] / v7;
                const float v10 = v9;
                out11[k] = c + k < C ? v10 : 0;
                const float v5_1 = v0_2[k] - v4;
                s12[k] += c + k < C ? v5_1 : 0.0f;
            }
            place_act(p11 + (size_t)i * 16 + c, out11, VW);
        }
        if (row_thread == 0 && end == C) put_i32(p8 + (size_t)i, v8);
    }
    total_sum(partials + (size_t)block * WIDTH + 0, s12, VW, shared, NT);
    if (last_block(counter, blocks)) {
        NO_UNROLL(turn, (1 + THREADS_ALONG(1, NT) - 1) / THREADS_ALONG(1, NT)) {
            const int c = turn * THREADS_ALONG(1, NT) + threadIdx.x % THREADS_ALONG(1, NT);
            float s[1];
            grid_sum(s, 1, 1, c, 1, 1, partials + 0, WIDTH, blocks, THREADS_ALONG(1, NT),
                shared, NT);
            if (threadIdx.x < THREADS_ALONG(1, NT) && c < 1) put_f32(p12 + c, s[0]);
        }
    }
}
