// k00_avg_pool_grad:
// %2..%5: exp max_pool_grad cast avg_pool_grad
// 11424 bytes read and written (host: 11424)
KERNEL(256, 2) k00_avg_pool_grad(
    const float *RESTRICT p1,
    const unsigned char *RESTRICT p0,
    act *RESTRICT p4,
    float *RESTRICT p5)
{
    DECLARE_BLOCK;
    enum { ROWS = 36, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 3;
            const int h = i / 3 % 3;
            const int n = i / 9;
            float v1[VW];
            load_f32(v1, p1 + (size_t)i * C + c, VW);
            float dy2[VW];
            int v0_1[VW];
            load_u8(v0_1, p0 + (size_t)i * C + c, VW);
            int at0[VW];
            float dy2_2[VW];
            LANES_DO(k, VW) {
                const float v2_1 = expf(v1[k]);
                dy2[k] = v2_1;
                at0[k] = v0_1[k];
                dy2_2[k] = v2_1;
            }
            for (int r1 = 0; r1 < (h < 2 ? 2 : 3); r1++) {
                const int h2 = h * 2 + r1;
                for (int q1 = 0; q1 < 2; q1++) {
                    const int w3 = w * 2 + q1;
                    float out4[VW];
                    LANES_DO(k, VW) {
                        const float v3 = r1 < 2 && q1 < 2 ? at0[k] == r1 * 2 + q1 ? dy2[k] : 0 :
                            0;
                        const float v4 = v3;
                        out4[k] = v4;
                    }
                    place_act(p4 + (((size_t)n * 7 + h2) * 6 + w3) * 8 + c, out4, VW);
                }
            }
            float v5[VW];
            LANES_DO(k, VW) v5[k] = dy2_2[k] * 0.25f;
            for (int r4 = 0; r4 < 2; r4++) {
                const int h5 = h * 2 + r4;
                for (int q4 = 0; q4 < 2; q4++) {
                    const int w6 = w * 2 + q4;
                    float out5[VW];
                    LANES_DO(k, VW) out5[k] = v5[k];
                    place_f32(p5 + (((size_t)n * 6 + h5) * 6 + w6) * 8 + c, out5, VW);
                }
            }
        }
    }
}
