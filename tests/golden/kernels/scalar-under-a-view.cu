// k00_sum:
// %3..%3: sum
// 600 bytes read and written (host: 600)
KERNEL(256, 2) k00_sum(
    const float *RESTRICT p1,
    float *RESTRICT p3)
{
    DECLARE_BLOCK;
    enum { ROWS = 30, C = 4, VW = LANES(C) };
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
        LANES_DO(k, VW) s3[k] = 0.0f;
        for (int c = row_thread * VW; c < C; c += ROW_THREADS * VW) {
            float v1[VW];
            load_f32(v1, p1 + (size_t)i * 4 + c, VW);
            LANES_DO(k, VW) s3[k] += v1[k];
        }
        const float v3 = row_sum(lanes_sum(s3, VW), ROW_THREADS, shared);
        if (row_thread == 0 && end == C) put_f32(p3 + (size_t)i, v3);
    }
}
// k01_mul:
// %5..%7: broadcast reshape mul
// 244 bytes read and written (host: 244)
KERNEL(256, 2) k01_mul(
    const float *RESTRICT p0,
    const float *RESTRICT p3,
    float *RESTRICT p7)
{
    DECLARE_BLOCK;
    enum { ROWS = 1, C = 30, VW = LANES(5), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    const float v0 = get_f32(p0);
    float v5[VW];
    LANES_DO(k, VW) v5[k] = v0;
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v4[VW];
        load_f32(v4, p3 + c, VW);
        float v7[VW];
        LANES_DO(k, VW) v7[k] = v4[k] * v5[k];
        for (int i = lo + ty; i < hi; i += TY) {
            float out7[VW];
            LANES_DO(k, VW) out7[k] = v7[k];
            store_f32(p7 + c, out7, VW);
        }
    }
}
