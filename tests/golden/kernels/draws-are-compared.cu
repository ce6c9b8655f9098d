// k00_select:
// %7..%19: uniform reshape lt neg select lt select lt select lt select lt ...
// 1032 bytes read and written (host: 1032)
KERNEL(256, 2) k00_select(
    const int *RESTRICT p0,
    const int *RESTRICT p1,
    const float *RESTRICT p2,
    float *RESTRICT p19)
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
            int u7[VW];
            draw_lanes(u7, VW, v0, 7, v1, i1);
            float v2[VW];
            load_f32(v2, p2 + (size_t)i * 8 + c, VW);
            float out19[VW];
            LANES_DO(k, VW) {
                const int v18 = fraction(u7[k]) < v2[k];
                const int v16 = 0.1f < fraction(u7[k]);
                const int v14 = u7[k] < 0;
                const float v10 = -v2[k];
                const int v12 = u7[k] < 16777216;
                const int v9 = u7[k] < 1677722;
                const float v11 = v9 ? v2[k] : v10;
                const float v13 = v12 ? v11 : v10;
                const float v15 = v14 ? v10 : v13;
                const float v17 = v16 ? v15 : v10;
                const float v19 = v18 ? v17 : v10;
                out19[k] = v19;
            }
            store_f32(p19 + (size_t)i * 8 + c, out19, VW);
        }
    }
}
