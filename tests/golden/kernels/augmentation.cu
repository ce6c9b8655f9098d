// k00_pad:
// %5..%10: shift flip cast sub cast pad
// 2772 bytes read and written (host: 2772)
TABLE float k00_pad_table4[3] = {0.25f, 0.5f, 0.75f};
KERNEL(256, 2) k00_pad(
    const unsigned char *RESTRICT p0,
    const int *RESTRICT p1,
    const int *RESTRICT p2,
    const unsigned char *RESTRICT p3,
    act *RESTRICT p10)
{
    DECLARE_BLOCK;
    enum { ROWS = 144, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    float v4[3];
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    load_f32(v4, k00_pad_table4, 3);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 6;
            const int h = i / 6 % 6;
            const int n = i / 36;
            float v10[VW];
            LANES_DO(k, VW) v10[k] = 0;
            {
                const int v3 = get_u8(p3 + n);
                const int w1 = v3 ? 5 - w : w;
                const int v1 = get_i32(p1 + n);
                const int h2 = h + v1;
                const int h3 = reflect(h2, 6);
                const int v2 = get_i32(p2 + n);
                const int w4 = w1 + v2;
                const int w5 = reflect(w4, 6);
                int v0[3];
                load_u8(v0, p0 + (((size_t)n * 6 + h3) * 6 + w5) * 3, 3);
                LANES_DO(k, 3) {
                    const float v7 = (float)v0[k];
                    const float v8 = v7 - v4[k];
                    const float v9 = v8;
                    v10[k] = v9;
                }
            }
            float out10[VW];
            LANES_DO(k, VW) out10[k] = v10[k];
            store_act(p10 + (size_t)i * C + c, out10, VW);
        }
    }
}
