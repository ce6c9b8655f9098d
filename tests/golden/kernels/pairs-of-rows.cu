// k00_select:
// %3..%8: cdf mul eq reshape reshape select
// 8640 bytes read and written (host: 8640)
KERNEL(256, 2) k00_select(
    const float *RESTRICT p0,
    float *RESTRICT p8)
{
    DECLARE_BLOCK;
    enum { ROWS = 60, C = 24, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS / 2);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int pair = lo + ty; pair < hi; pair += TY) {
            const int h = pair % 5;
            const int n = pair / 5;
            float v0[VW];
            load_f32(v0, p0 + ((size_t)n * 5 + h) * 24 + c, VW);
            float v3[VW];
            LANES_DO(k, VW) v3[k] = normal_cdf(v0[k]);
            float v4[VW];
            LANES_DO(k, VW) v4[k] = v0[k] * v3[k];
            UNROLLED(w, 2) {
                const int i = 2 * pair + w;
                const int v5 = w == 0;
                float out8[VW];
                LANES_DO(k, VW) {
                    const float v8 = v5 ? v3[k] : v4[k];
                    out8[k] = v8;
                }
                store_f32(p8 + (size_t)i * C + c, out8, VW);
            }
        }
    }
}
