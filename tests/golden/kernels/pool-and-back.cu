// k00_max_pool_index:
// %3..%4: max_pool max_pool_index
// 870 bytes read and written (host: 870)
KERNEL(256, 2) k00_max_pool_index(
    const float *RESTRICT p0,
    float *RESTRICT p3,
    unsigned char *RESTRICT p4)
{
    DECLARE_BLOCK;
    enum { ROWS = 18, C = 3, VW = LANES(C), CG = C / VW };
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
            float v3[VW];
            LANES_DO(k, VW) v3[k] = -INF;
            int v4[VW];
            LANES_DO(k, VW) v4[k] = clamp_index(1 - h * 2, 2) * 3 + clamp_index(1 - w * 2, 2);
            for (int r1 = 0; r1 < 3; r1++) {
                const int h2 = h * 2 + r1 - 1;
                const int h4 = HOST_GPU(h2, clamp_index(h2, 5));
                const int r5 = HOST_GPU(r1, h4 - h * 2 + 1);
                UNROLLED(q1, 3) {
                    const int w3 = w * 2 + q1 - 1;
                    if (HOST_GPU(h2 < 0 || h2 >= 5 || w3 < 0 || w3 >= 5, 0)) continue;
                    const int w6 = HOST_GPU(w3, clamp_index(w3, 5));
                    const int q7 = HOST_GPU(q1, w6 - w * 2 + 1);
                    float v0[VW];
                    load_f32(v0, p0 + (((size_t)n * 5 + h4) * 5 + w6) * 3 + c, VW);
                    LANES_DO(k, VW) {
                        v4[k] = HOST_GPU(v0[k] > v3[k],
                            (r1 + q1 == 0) | (v0[k] > v3[k])) ? r5 * 3 + q7 : v4[k];
                        v3[k] = HOST_GPU(v0[k] > v3[k],
                            (r1 + q1 == 0) | (v0[k] > v3[k])) ? v0[k] : v3[k];
                        v4[k] = v0[k] != v0[k] ? r5 * 3 + q7 : v4[k];
                        v3[k] = v0[k] != v0[k] ? v0[k] : v3[k];
                    }
                }
            }
            float out3[VW];
            int out4[VW];
            LANES_DO(k, VW) {
                out3[k] = v3[k];
                out4[k] = v4[k];
            }
            store_f32(p3 + (size_t)i * C + c, out3, VW);
            store_u8(p4 + (size_t)i * C + c, out4, VW);
        }
    }
}
// k01_max_pool_grad:
// %5..%5: max_pool_grad
// 870 bytes read and written (host: 870)
KERNEL(256, 2) k01_max_pool_grad(
    const unsigned char *RESTRICT p4,
    const float *RESTRICT p1,
    float *RESTRICT p5)
{
    DECLARE_BLOCK;
    enum { ROWS = 50, C = 3, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 5;
            const int h = i / 5 % 5;
            const int n = i / 25;
            float v5[VW];
            LANES_DO(k, VW) v5[k] = 0.0f;
            for (int r1 = 0; r1 < 2; r1++) {
                const int h1 = (h + 1) / 2 - r1;
                const int a1 = h + 1 - h1 * 2;
                for (int q1 = 0; q1 < 2; q1++) {
                    const int w1 = (w + 1) / 2 - q1;
                    const int b1 = w + 1 - w1 * 2;
                    if (h1 < 0 || h1 >= 3 || a1 >= 3 || w1 < 0 || w1 >= 3 || b1 >= 3) continue;
                    float v1[VW];
                    load_f32(v1, p1 + (((size_t)n * 3 + h1) * 3 + w1) * 3 + c, VW);
                    int v4[VW];
                    load_u8(v4, p4 + (((size_t)n * 3 + h1) * 3 + w1) * 3 + c, VW);
                    LANES_DO(k, VW) v5[k] += v4[k] == a1 * 3 + b1 ? v1[k] : 0;
                }
            }
            float out5[VW];
            LANES_DO(k, VW) out5[k] = v5[k];
            store_f32(p5 + (size_t)i * C + c, out5, VW);
        }
    }
}
