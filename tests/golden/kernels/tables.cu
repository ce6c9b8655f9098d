// k00_add:
// %3..%4: mul add
// 528 bytes read and written (host: 528)
TABLE float k00_add_table2[33] = {
    34.0f, 35.0f, 36.0f, 37.0f, 38.0f, 39.0f, 40.0f, 41.0f, 42.0f, 43.0f,
    44.0f, 45.0f, 46.0f, 47.0f, 48.0f, 49.0f, 50.0f, 51.0f, 52.0f, 53.0f,
    54.0f, 55.0f, 56.0f, 57.0f, 58.0f, 59.0f, 60.0f, 61.0f, 62.0f, 63.0f,
    64.0f, 65.0f, 66.0f
};
LARGE_TABLE float k00_add_table1[33] = {
    1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f,
    11.0f, 12.0f, 13.0f, 14.0f, 15.0f, 16.0f, 17.0f, 18.0f, 19.0f, 20.0f,
    21.0f, 22.0f, 23.0f, 24.0f, 25.0f, 26.0f, 27.0f, 28.0f, 29.0f, 30.0f,
    31.0f, 32.0f, 33.0f
};
KERNEL(256, 2) k00_add(
    const float *RESTRICT p0,
    float *RESTRICT p4)
{
    DECLARE_BLOCK;
    enum { ROWS = 2, C = 33, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, k00_add_table2 + c, VW);
        float v1[VW];
        load_f32(v1, k00_add_table1 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            float v0[VW];
            load_f32(v0, p0 + (size_t)i * 33 + c, VW);
            float out4[VW];
            LANES_DO(k, VW) {
                const float v4 = fma_of(v0[k], v1[k], v2[k]);
                out4[k] = v4;
            }
            store_f32(p4 + (size_t)i * 33 + c, out4, VW);
        }
    }
}
