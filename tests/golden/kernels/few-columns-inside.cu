// k00_tanh:
// %3..%38: slice slice mul slice slice mul add slice slice mul add slice ...
// 6976 bytes read and written (host: 6976)
KERNEL(256, 2) k00_tanh(
    const float *RESTRICT p0,
    const float *RESTRICT p1,
    float *RESTRICT p38)
{
    DECLARE_BLOCK;
    enum { ROWS = 64, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = 1, TY = NT / TX };
    const int ty = threadIdx.x / TX;
    BLOCK_RANGE(lo, hi, ROWS);
    const int i1 = 0 + 1;
    const int i2 = 0 + 2;
    const int i3 = 0 + 3;
    const int i4 = 0 + 4;
    const int i5 = 0 + 5;
    const int i6 = 0 + 6;
    const int i7 = 0 + 7;
    const int i8 = 0 + 8;
    SHARED float column[9 * C];
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = threadIdx.x; g < CG; g += NT) {
        const int c = g * VW;
        float v1[VW];
        load_f32(v1, p1 + c, VW);
        LANES_DO(k, VW) column[0 * C + c + k] = v1[k];
        float v1_1[VW];
        load_f32(v1_1, p1 + (size_t)i1 * 16 + c, VW);
        LANES_DO(k, VW) column[1 * C + c + k] = v1_1[k];
        float v1_2[VW];
        load_f32(v1_2, p1 + (size_t)i2 * 16 + c, VW);
        LANES_DO(k, VW) column[2 * C + c + k] = v1_2[k];
        float v1_3[VW];
        load_f32(v1_3, p1 + (size_t)i3 * 16 + c, VW);
        LANES_DO(k, VW) column[3 * C + c + k] = v1_3[k];
        float v1_4[VW];
        load_f32(v1_4, p1 + (size_t)i4 * 16 + c, VW);
        LANES_DO(k, VW) column[4 * C + c + k] = v1_4[k];
        float v1_5[VW];
        load_f32(v1_5, p1 + (size_t)i5 * 16 + c, VW);
        LANES_DO(k, VW) column[5 * C + c + k] = v1_5[k];
        float v1_6[VW];
        load_f32(v1_6, p1 + (size_t)i6 * 16 + c, VW);
        LANES_DO(k, VW) column[6 * C + c + k] = v1_6[k];
        float v1_7[VW];
        load_f32(v1_7, p1 + (size_t)i7 * 16 + c, VW);
        LANES_DO(k, VW) column[7 * C + c + k] = v1_7[k];
        float v1_8[VW];
        load_f32(v1_8, p1 + (size_t)i8 * 16 + c, VW);
        LANES_DO(k, VW) column[8 * C + c + k] = v1_8[k];
    }
    BARRIER();
    for (int i = lo + ty; i < hi; i += TY) {
        const float v2 = get_f32(p0 + (size_t)i * 9);
        const float v2_1 = get_f32(p0 + (size_t)i * 9 + i1);
        const float v2_2 = get_f32(p0 + (size_t)i * 9 + i2);
        const float v2_3 = get_f32(p0 + (size_t)i * 9 + i3);
        const float v2_4 = get_f32(p0 + (size_t)i * 9 + i4);
        const float v2_5 = get_f32(p0 + (size_t)i * 9 + i5);
        const float v2_6 = get_f32(p0 + (size_t)i * 9 + i6);
        const float v2_7 = get_f32(p0 + (size_t)i * 9 + i7);
        const float v2_8 = get_f32(p0 + (size_t)i * 9 + i8);
        NO_UNROLL(g, CG) {
            const int c = g * VW;
            float v1[VW];
            LANES_DO(k, VW) v1[k] = column[0 * C + c + k];
            float v1_1[VW];
            LANES_DO(k, VW) v1_1[k] = column[1 * C + c + k];
            float v1_2[VW];
            LANES_DO(k, VW) v1_2[k] = column[2 * C + c + k];
            float v1_3[VW];
            LANES_DO(k, VW) v1_3[k] = column[3 * C + c + k];
            float v1_4[VW];
            LANES_DO(k, VW) v1_4[k] = column[4 * C + c + k];
            float v1_5[VW];
            LANES_DO(k, VW) v1_5[k] = column[5 * C + c + k];
            float v1_6[VW];
            LANES_DO(k, VW) v1_6[k] = column[6 * C + c + k];
            float v1_7[VW];
            LANES_DO(k, VW) v1_7[k] = column[7 * C + c + k];
            float v1_8[VW];
            LANES_DO(k, VW) v1_8[k] = column[8 * C + c + k];
            float out38[VW];
            LANES_DO(k, VW) {
                const float v8 = v2_1 * v1_1[k];
                const float v9 = fma_of(v2, v1[k], v8);
                const float v13 = fma_of(v2_2, v1_2[k], v9);
                const float v17 = fma_of(v2_3, v1_3[k], v13);
                const float v21 = fma_of(v2_4, v1_4[k], v17);
                const float v25 = fma_of(v2_5, v1_5[k], v21);
                const float v29 = fma_of(v2_6, v1_6[k], v25);
                const float v33 = fma_of(v2_7, v1_7[k], v29);
                const float v37 = fma_of(v2_8, v1_8[k], v33);
                const float v38 = tanhf(v37);
                out38[k] = v38;
            }
            store_f32(p38 + (size_t)i * 16 + c, out38, VW);
        }
    }
}
