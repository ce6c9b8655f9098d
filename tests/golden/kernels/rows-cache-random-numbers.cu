// k00_sub:
// %6..%11: uniform reshape lt select sum sub
// 1032 bytes read and written (host: 1032)
KERNEL(256, 2) k00_sub(
    const int *RESTRICT p1,
    const int *RESTRICT p2,
    const float *RESTRICT p0,
    float *RESTRICT p11)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 8, VW = LANES(C) };
    enum { NT = THREADS(256), ROW_THREADS = ROW_THREADS_OF(C, VW, NT, 1) };
    enum { SYNC_THREADS = SYNC_THREADS_OF(NT, ROW_THREADS) };
    enum { VECTORS_PER_THREAD = ((C + VW - 1) / VW + ROW_THREADS - 1) / ROW_THREADS };
    SHARED float shared[NT];
    const int row_thread = threadIdx.x % ROW_THREADS;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    const int v1 = get_i32(p1);
    const int v2 = get_i32(p2);
    for (int first = lo + SYNC_ROW(SYNC_THREADS, ROW_THREADS); first < hi; first += NT / ROW_THREADS) {
        const int row = first + threadIdx.x % SYNC_THREADS / ROW_THREADS;
        const int i = row < hi ? row : hi - 1;
        const int end = row < hi ? C : 0;
        float s10[VW];
        LANES_DO(k, VW) s10[k] = 0.0f;
        float cached9[VECTORS_PER_THREAD][VW];
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= C) break;
            const int i1 = (size_t)i * 8 + c;
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 8 + c, VW);
            LANES_DO(k, VW) {
                const float v6 = uniform(v1, 7, v2, i1 + k);
                const int v8 = v6 < 0.1f;
                const float v9 = v8 ? 0.0f : v0[k];
                s10[k] += v9;
                cached9[j][k] = v9;
            }
        }
        const float v10 = row_sum(lanes_sum(s10, VW), ROW_THREADS, shared);
        UNROLLED(j, VECTORS_PER_THREAD) {
            const int c = (row_thread + j * ROW_THREADS) * VW;
            if (c >= end) break;
            float out11[VW];
            LANES_DO(k, VW) {
                const float v11 = cached9[j][k] - v10;
                out11[k] = v11;
            }
            store_f32(p11 + (size_t)i * 8 + c, out11, VW);
        }
    }
}
