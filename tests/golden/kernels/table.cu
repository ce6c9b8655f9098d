// k00_mul:
// %5..%5: mul
// 48 bytes read and written (host: 48)
TABLE float k00_mul_table2[3] = {1.0f, 2.0f, 4.0f};
KERNEL(256, 2) k00_mul(
    const float *RESTRICT p3,
    float *RESTRICT p5)
{
    DECLARE_BLOCK;
    enum { ROWS = 2, C = 3, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, k00_mul_table2 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            float v3[VW];
            load_f32(v3, p3 + (size_t)i * 3 + c, VW);
            float out5[VW];
            LANES_DO(k, VW) {
                const float v5 = v2[k] * v3[k];
                out5[k] = v5;
            }
            store_f32(p5 + (size_t)i * 3 + c, out5, VW);
        }
    }
}
// k01_mul:
// %6..%6: mul
// 64 bytes read and written (host: 64)
TABLE float k01_mul_table1[4] __attribute__((aligned(16))) = {1.0f, 2.0f, 3.0f, 4.0f};
KERNEL(256, 2) k01_mul(
    const float *RESTRICT p0,
    float *RESTRICT p6)
{
    DECLARE_BLOCK;
    enum { ROWS = 2, C = 4, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v1[VW];
        load_f32(v1, k01_mul_table1 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 4 + c, VW);
            float out6[VW];
            LANES_DO(k, VW) {
                const float v6 = v0[k] * v1[k];
                out6[k] = v6;
            }
            store_f32(p6 + (size_t)i * 4 + c, out6, VW);
        }
    }
}
