// k00_var:
// %2..%3: var
// 68719476768 bytes read and written (host: 68719476768)
KERNEL(256, 4) k00_var(
    const act *RESTRICT p0,
    float *RESTRICT p3,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    const long long ROWS = 4294967296;
    enum { C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG(CG, NT), TY = NT / TX };
    enum { WIDTH = 16 };
    SHARED float shared[REDUCE_LANES * NT];
    SHARED float samples[3 * VW * TX];
    const int tx = threadIdx.x % TX;
    const int ty = threadIdx.x / TX;
    BLOCK_RANGE_OF(long long, lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g0 = 0; g0 < CG; g0 += TX) {
        const int g = g0 + tx;
        const int c = g * VW;
        float s3[VW];
        LANES_DO(k, VW) s3[k] = 0.0f;
        float q3[VW];
        LANES_DO(k, VW) q3[k] = 0.0f;
        if (g < CG && ty < 3) {
            for (int j = ty; j < 3; j += TY) {
                const long long r = j == 0 ? 0 : j == 1 ? ROWS / 2 : ROWS - 1;
                const int i1 = r % 65536;
                const int i2 = r / 65536;
                float v0[VW];
                load_act(v0, p0 + ((size_t)i2 * 65536 + i1) * 8 + c, VW);
                LANES_DO(k, VW) samples[(j * VW + k) * TX + tx] = v0[k];
            }
        }
        BARRIER();
        float pivot3[VW];
        LANES_DO(k, VW) {
            pivot3[k] = median(samples[k * TX + tx], samples[(VW + k) * TX + tx],
                samples[(2 * VW + k) * TX + tx]);
        }
        if (g < CG) {
            UNROLL_2 for (long long i = lo + ty; i < hi; i += TY) {
                float v0_1[VW];
                load_act(v0_1, p0 + (size_t)i * C + c, VW);
                LANES_DO(k, VW) {
                    const float d3 = v0_1[k] - pivot3[k];
                    s3[k] += d3;
                    q3[k] = fma_of(d3, d3, q3[k]);
                }
            }
        }
        columns_sum(partials + (size_t)block * WIDTH + 0 + g0 * VW, s3, VW, C - g0 * VW, shared,
            TX, NT);
        columns_sum(partials + (size_t)block * WIDTH + 8 + g0 * VW, q3, VW, C - g0 * VW, shared,
            TX, NT);
    }
    if (last_block(counter, blocks)) {
        NO_UNROLL(turn, (8 + THREADS_ALONG(8, NT) - 1) / THREADS_ALONG(8, NT)) {
            const int c = turn * THREADS_ALONG(8, NT) + threadIdx.x % THREADS_ALONG(8, NT);
            float s[2];
            grid_sum(s, 2, 13, c, 8 + 8, 8, partials + 0, WIDTH, blocks, THREADS_ALONG(8, NT),
                shared, NT);
            if (threadIdx.x < THREADS_ALONG(8, NT) && c < 8) {
                put_f32(p3 + c, variance_of_sums(s[0], s[1], 4294967296.0f));
            }
        }
    }
}
// k01_cast:
// %4..%6: max sub cast
// 137438953472 bytes read and written (host: 137438953472)
KERNEL(256, 2) k01_cast(
    const act *RESTRICT p0,
    act *RESTRICT p6)
{
    DECLARE_BLOCK;
    const long long ROWS = 4294967296;
    enum { C = 8, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    enum { VECTORS_PER_THREAD = ((C + VW - 1) / VW + ROW_THREADS - 1) / ROW_THREADS };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE_OF(long long, lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (long long first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const long long row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const long long i = row < hi ? row : hi - 1;
        const int end = row < hi ? C : 0;
        float s4[VW];
        LANES_DO(k, VW) s4[k] = -INF;
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            float v0[VW];
            load_act(v0, p0 + (size_t)i * C + c, VW);
            LANES_DO(k, VW) s4[k] = maximum(s4[k], v0[k]);
        }
        const float v4 = row_max(lanes_max(s4, VW), ROW_THREADS, shared);
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= end) break;
            float v0_1[VW];
            load_act(v0_1, p0 + (size_t)i * C + c, VW);
            float out6[VW];
            LANES_DO(k, VW) {
                const float v5 = v0_1[k] - v4;
                const float v6 = v5;
                out6[k] = v6;
            }
            store_act(p6 + (size_t)i * C + c, out6, VW);
        }
    }
}
