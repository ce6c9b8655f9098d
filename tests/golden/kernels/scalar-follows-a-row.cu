// k00_exp:
// %1..%2: max exp
// 44 bytes read and written (host: 44)
KERNEL(256, 2) k00_exp(
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    DECLARE_BLOCK;
    enum { ROWS = 1, C = 10, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const int row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const int end = row < hi ? C : 0;
        float s1[VW];
        LANES_DO(k, VW) s1[k] = -INF;
        for (int c = row_thread * VW; c < C; c += ROW_THREADS * VW) {
            float v0[VW];
            load_f32(v0, p0 + c, VW);
            LANES_DO(k, VW) s1[k] = maximum(s1[k], v0[k]);
        }
        const float v1 = row_max(lanes_max(s1, VW), ROW_THREADS, shared);
        const float v2 = expf(v1);
        if (row_thread == 0 && end == C) put_f32(p2, v2);
    }
}
