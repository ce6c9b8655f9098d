// k00_argmax:
// %3..%3: argmax
// 17179869184 bytes read and written (host: 17179869184)
KERNEL(256, 2) k00_argmax(
    const float *RESTRICT p0,
    int *RESTRICT p3)
{
    DECLARE_BLOCK;
    enum { ROWS = 2, C = 2147483647, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const int row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const int i = row < hi ? row : hi - 1;
        const int end = row < hi ? C : 0;
        float s3[VW];
        LANES_DO(k, VW) s3[k] = -INF;
        int at3[VW];
        LANES_DO(k, VW) at3[k] = row_thread * VW + k;
        for (long long c = row_thread * VW; c < C; c += ROW_THREADS * VW) {
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 2147483647 + c, VW);
            LANES_DO(k, VW) {
                const int more3 = beats(v0[k], s3[k]);
                at3[k] = more3 ? c + k : at3[k];
                s3[k] = more3 ? v0[k] : s3[k];
            }
        }
        const int v3 = row_argmax(lanes_max(s3, VW), lanes_argmax(s3, at3, VW), ROW_THREADS,
            shared);
        if (row_thread == 0 && end == C) put_i32(p3 + (size_t)i, v3);
    }
}
// k01_abs:
// %4..%4: abs
// 17179869176 bytes read and written (host: 17179869176)
KERNEL(256, 2) k01_abs(
    const float *RESTRICT p1,
    float *RESTRICT p4)
{
    DECLARE_BLOCK;
    enum { ROWS = 1, C = 2147483647, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (long long g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v1[VW];
        load_f32(v1, p1 + c, VW);
        float v4[VW];
        LANES_DO(k, VW) v4[k] = v1[k] <= 0 ? 0 - v1[k] : v1[k];
        for (int i = lo + ty; i < hi; i += TY) {
            float out4[VW];
            LANES_DO(k, VW) out4[k] = v4[k];
            store_f32(p4 + c, out4, VW);
        }
    }
}
// k02_relu:
// %5..%5: relu
// 34359738352 bytes read and written (host: 34359738352)
KERNEL(256, 2) k02_relu(
    const float *RESTRICT p0,
    float *RESTRICT p5)
{
    DECLARE_BLOCK;
    enum { ROWS = 2, C = 2147483647, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (long long g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 2147483647 + c, VW);
            float out5[VW];
            LANES_DO(k, VW) {
                const float v5 = v0[k] < 0 ? 0 : v0[k];
                out5[k] = v5;
            }
            store_f32(p5 + (size_t)i * 2147483647 + c, out5, VW);
        }
    }
}
