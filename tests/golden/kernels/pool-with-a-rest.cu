// k00_max_pool_grad:
// %2..%2: max_pool_grad
// 2720 bytes read and written (host: 2720)
KERNEL(256, 2) k00_max_pool_grad(
    const unsigned char *RESTRICT p1,
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    DECLARE_BLOCK;
    enum { ROWS = 70, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 7;
            const int h = i / 7 % 5;
            const int n = i / 35;
            const int h1 = h / 2;
            const int w1 = w / 2;
            const int tap1 = (h - h1 * 2) * 2 + w - w1 * 2;
            float v0[VW];
            load_f32(v0, p0 + (((size_t)n * 2 + clamp_index(h1, 2)) * 3 + clamp_index(w1,
                3)) * 8 + c, VW);
            int v1[VW];
            load_u8(v1, p1 + (((size_t)n * 2 + clamp_index(h1, 2)) * 3 + clamp_index(w1,
                3)) * 8 + c, VW);
            float out2[VW];
            LANES_DO(k, VW) {
                const float v2 = h1 < 2 && w1 < 3 ? v1[k] == tap1 ? v0[k] : 0 : 0;
                out2[k] = v2;
            }
            store_f32(p2 + (size_t)i * C + c, out2, VW);
        }
    }
}
