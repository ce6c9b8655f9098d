// k00_cast:
// %4..%9: sub mul add cdf mul cast
// 67109632 bytes read and written (host: 67109632)
KERNEL(256, 2) k00_cast(
    const act *RESTRICT p0,
    const float *RESTRICT p3,
    const float *RESTRICT p1,
    const float *RESTRICT p2,
    act *RESTRICT p9)
{
    DECLARE_BLOCK;
    enum { ROWS = 262144, C = 64, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, p2 + c, VW);
        float v1[VW];
        load_f32(v1, p1 + c, VW);
        float v3[VW];
        load_f32(v3, p3 + c, VW);
        UNROLL_3 for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_act(v0, p0 + (size_t)i * 64 + c, VW);
            float out9[VW];
            LANES_DO(k, VW) {
                const float v4 = v0[k] - v3[k];
                const float v6 = fma_of(v1[k], v4, v2[k]);
                const float v7 = normal_cdf(v6);
                const float v8 = v6 * v7;
                const float v9 = v8;
                out9[k] = v9;
            }
            store_act(p9 + (size_t)i * 64 + c, out9, VW);
        }
    }
}
