// k00_pad:
// %1..%5: max sub exp cast pad
// 832 bytes read and written (host: 832)
KERNEL(256, 2) k00_pad(
    const act *RESTRICT p0,
    act *RESTRICT p5)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 10, VW = LANES(2) };
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
        float s1[VW];
        LANES_DO(k, VW) s1[k] = -INF;
        for (int c = row_thread * VW; c < C; c += ROW_THREADS * VW) {
            float v0[VW];
            load_act(v0, p0 + (size_t)i * 10 + c, VW);
            LANES_DO(k, VW) s1[k] = maximum(s1[k], v0[k]);
        }
        const float v1 = row_max(lanes_max(s1, VW), ROW_THREADS, shared);
        for (int c = C + row_thread; c < end + 6; c += ROW_THREADS) {
            put_act(p5 + (size_t)i * 16 + c, 0.0f);
        }
        for (int c = row_thread * VW; c < end; c += ROW_THREADS * VW) {
            float v0_1[VW];
            load_act(v0_1, p0 + (size_t)i * 10 + c, VW);
            float out5[VW];
            LANES_DO(k, VW) {
                const float v2 = v0_1[k] - v1;
                const float v3 = expf(v2);
                const float v4 = v3;
                out5[k] = v4;
            }
            store_act(p5 + (size_t)i * 16 + c, out5, VW);
        }
    }
}
