// k00_sqrt:
// %1..%2: var sqrt
// 1048832 bytes read and written (host: 1048832)
KERNEL(256, 2) k00_sqrt(
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    DECLARE_BLOCK;
    enum { ROWS = 64, C = 4096, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 4) };
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
        const float v0 = get_f32(p0 + (size_t)i * 4096);
        const float pivot1 = v0;
        float s1[VW];
        LANES_DO(k, VW) s1[k] = 0.0f;
        float q1[VW];
        LANES_DO(k, VW) q1[k] = 0.0f;
        for (int c = row_thread * VW; c < C; c += ROW_THREADS * VW) {
            float v0_1[VW];
            load_f32(v0_1, p0 + (size_t)i * 4096 + c, VW);
            LANES_DO(k, VW) {
                const float d1 = v0_1[k] - pivot1;
                s1[k] += d1;
                q1[k] = fma_of(d1, d1, q1[k]);
            }
        }
        const float sum1 = row_sum(lanes_sum(s1, VW), ROW_THREADS, shared);
        const float squares1 = row_sum(lanes_sum(q1, VW), ROW_THREADS, shared);
        const float b1 = (squares1 - sum1 * sum1 / C) / C;
        const float v1 = b1 < 0.0f ? 0.0f : b1;
        const float v2 = sqrtf(v1);
        if (row_thread == 0 && end == C) put_f32(p2 + (size_t)i, v2);
    }
}
