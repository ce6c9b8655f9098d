// k00_relu:
// %1..%3: transpose reshape relu
// 17179885568 bytes read and written (host: 17179885568)
KERNEL(256, 2) k00_relu(
    const float *RESTRICT p0,
    float *RESTRICT p3)
{
    DECLARE_BLOCK;
    enum { ROWS = 8388616, C = 256, VW = 1, CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int h = i % 8;
            const int n = i / 8;
            const size_t i1 = ((size_t)n * 8 + h) * 256 + c;
            const int i2 = i1 % 16;
            const int i3 = i1 / 16 % 128;
            const int i4 = i1 / 2048;
            float v0[VW];
            load_f32(v0, p0 + ((size_t)i4 * 16 + i2) * 128 + i3, VW);
            float out3[VW];
            LANES_DO(k, VW) {
                const float v3 = v0[k] < 0 ? 0 : v0[k];
                out3[k] = v3;
            }
            store_f32(p3 + (size_t)i * C + c, out3, VW);
        }
    }
}
