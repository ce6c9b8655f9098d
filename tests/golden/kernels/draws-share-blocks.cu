// k00_neg:
// %6..%8: uniform reshape neg
// 456 bytes read and written (host: 456)
KERNEL(256, 2) k00_neg(
    const int *RESTRICT p0,
    const int *RESTRICT p1,
    float *RESTRICT p8)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 7, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    const int v0 = get_i32(p0);
    const int v1 = get_i32(p1);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int i1 = (size_t)i * 7 + c;
            int u6[VW];
            draw_lanes(u6, VW, v0, 8, v1, i1);
            float out8[VW];
            LANES_DO(k, VW) {
                const float v8 = -fraction(u6[k]);
                out8[k] = v8;
            }
            store_f32(p8 + (size_t)i * 7 + c, out8, VW);
        }
    }
}
// k01_abs:
// %9..%17: uniform reshape neg uniform reshape exp uniform reshape abs
// 1544 bytes read and written (host: 1544)
KERNEL(256, 2) k01_abs(
    const int *RESTRICT p0,
    const int *RESTRICT p1,
    float *RESTRICT p11,
    float *RESTRICT p14,
    float *RESTRICT p17)
{
    DECLARE_BLOCK;
    enum { ROWS = 16, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    const int v0 = get_i32(p0);
    const int v1 = get_i32(p1);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int i1 = (size_t)i * 8 + c;
            int u9[VW];
            draw_lanes(u9, VW, v0, 7, v1, i1);
            float out11[VW];
            float out14[VW];
            float out17[VW];
            LANES_DO(k, VW) {
                const float v11 = -fraction(u9[k]);
                out11[k] = v11;
                const float v12 = draw_one(v0, 9, v1, i1 + k + 3);
                const float v14 = expf(v12);
                out14[k] = v14;
                const float v15 = uniform(v0, 7, v1, i1 + k);
                const float v17 = v15 <= 0 ? 0 - v15 : v15;
                out17[k] = v17;
            }
            store_f32(p11 + (size_t)i * 8 + c, out11, VW);
            store_f32(p14 + (size_t)i * 8 + c, out14, VW);
            store_f32(p17 + (size_t)i * 8 + c, out17, VW);
        }
    }
}
