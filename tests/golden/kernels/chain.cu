// k00_cast:
// %4..%9: mul cast mul add relu cast
// 8448 bytes read and written (host: 8448)
KERNEL(256, 2) k00_cast(
    const float *RESTRICT p1,
    const act *RESTRICT p0,
    const float *RESTRICT p2,
    act *RESTRICT p9)
{
    DECLARE_BLOCK;
    enum { ROWS = 64, C = 32, VW = LANES(C), CG = C / VW };
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
        float v4[VW];
        LANES_DO(k, VW) v4[k] = v1[k] * 0.5f;
        for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_act(v0, p0 + (size_t)i * 32 + c, VW);
            float out9[VW];
            LANES_DO(k, VW) {
                const float v5 = v0[k];
                const float v7 = fma_of(v4[k], v5, v2[k]);
                const float v8 = v7 < 0 ? 0 : v7;
                const float v9 = v8;
                out9[k] = v9;
            }
            store_act(p9 + (size_t)i * 32 + c, out9, VW);
        }
    }
}
