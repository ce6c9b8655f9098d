// k00_relu:
// %3..%3: relu
// 68719468512 bytes read and written (host: 68719468512)
KERNEL(256, 4) k00_relu(
    const act *RESTRICT p0,
    act *RESTRICT p3)
{
    DECLARE_BLOCK;
    enum { ROWS = 2147483391, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        UNROLL_2 for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_act(v0, p0 + (size_t)i * 8 + c, VW);
            float out3[VW];
            LANES_DO(k, VW) {
                const float v3 = v0[k] < 0 ? 0 : v0[k];
                out3[k] = v3;
            }
            store_act(p3 + (size_t)i * 8 + c, out3, VW);
        }
    }
}
// k01_relu:
// %4..%4: relu
// 68719468544 bytes read and written (host: 68719468544)
KERNEL(256, 4) k01_relu(
    const act *RESTRICT p1,
    act *RESTRICT p4)
{
    DECLARE_BLOCK;
    const long long ROWS = 2147483392;
    enum { C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE_OF(long long, lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        UNROLL_2 for (long long i = lo + ty; i < hi; i += TY) {
            float v1[VW];
            load_act(v1, p1 + (size_t)i * 8 + c, VW);
            float out4[VW];
            LANES_DO(k, VW) {
                const float v4 = v1[k] < 0 ? 0 : v1[k];
                out4[k] = v4;
            }
            store_act(p4 + (size_t)i * 8 + c, out4, VW);
        }
    }
}
