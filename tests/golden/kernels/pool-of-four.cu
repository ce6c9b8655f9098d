// k00_max_pool_index:
// %1..%2: max_pool max_pool_index
// 1344 bytes read and written (host: 1344)
KERNEL(256, 2) k00_max_pool_index(
    const float *RESTRICT p0,
    float *RESTRICT p1,
    unsigned char *RESTRICT p2)
{
    DECLARE_BLOCK;
    enum { ROWS = 8, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 2;
            const int h = i / 2 % 2;
            const int n = i / 4;
            float v1[VW];
            LANES_DO(k, VW) v1[k] = -INF;
            int v2[VW];
            LANES_DO(k, VW) v2[k] = 0;
            UNROLLED(r1, 2) {
                const int h2 = h * 2 + r1;
                UNROLLED(q1, 2) {
                    const int w3 = w * 2 + q1;
                    float v0[VW];
                    load_f32(v0, p0 + (((size_t)n * 4 + h2) * 4 + w3) * 8 + c, VW);
                    LANES_DO(k, VW) {
                        v2[k] = HOST_GPU(v0[k] > v1[k],
                            (r1 + q1 == 0) | (v0[k] > v1[k])) ? r1 * 2 + q1 : v2[k];
                        v1[k] = HOST_GPU(v0[k] > v1[k],
                            (r1 + q1 == 0) | (v0[k] > v1[k])) ? v0[k] : v1[k];
                        v2[k] = v0[k] != v0[k] ? r1 * 2 + q1 : v2[k];
                        v1[k] = v0[k] != v0[k] ? v0[k] : v1[k];
                    }
                }
            }
            float out1[VW];
            int out2[VW];
            LANES_DO(k, VW) {
                out1[k] = v1[k];
                out2[k] = v2[k];
            }
            store_f32(p1 + (size_t)i * C + c, out1, VW);
            store_u8(p2 + (size_t)i * C + c, out2, VW);
        }
    }
}
