// k00_resize_grad:
// %13..%20: mul div broadcast mul div broadcast take resize_grad
// 3072 bytes read and written (host: 3072)
KERNEL(256, 2) k00_resize_grad(
    const act *RESTRICT p0,
    act *RESTRICT p20)
{
    DECLARE_BLOCK;
    enum { ROWS = 48, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 6;
            const int h = i / 6 % 4;
            const int n = i / 24;
            float v20[VW];
            LANES_DO(k, VW) v20[k] = 0.0f;
            for (int r1 = (h * 3 + 3) / 4; r1 < ((h + 1) * 3 + 3) / 4; r1++) {
                const int v13 = r1 * 4;
                const int v14 = v13 / 3;
                const int v15 = v14;
                const int i2 = clamp_index(v15, 4);
                for (int q1 = (w * 3 + 5) / 6; q1 < ((w + 1) * 3 + 5) / 6; q1++) {
                    const int v16 = q1 * 6;
                    const int v17 = v16 / 3;
                    const int v18 = v17;
                    const int i3 = clamp_index(v18, 6);
                    float v0[VW];
                    load_act(v0, p0 + (((size_t)n * 4 + i2) * 6 + i3) * 16 + c, VW);
                    LANES_DO(k, VW) v20[k] += v0[k];
                }
            }
            float out20[VW];
            LANES_DO(k, VW) out20[k] = v20[k];
            store_act(p20 + (size_t)i * C + c, out20, VW);
        }
    }
}
// k01_cast:
// %21..%58: cast mul add maximum floor cast add sub broadcast broadcast reshape ...
// 7680 bytes read and written (host: 7680)
KERNEL(256, 2) k01_cast(
    const act *RESTRICT p0,
    act *RESTRICT p58)
{
    DECLARE_BLOCK;
    enum { ROWS = 192, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 12;
            const int h = i / 12 % 8;
            const int n = i / 96;
            const float v21 = (float)h;
            const float v22 = 0.5f * v21;
            const float v23 = -0.25f + v22;
            const float v24 = (0.0f < v23) | (v23 != v23) ? v23 : 0.0f;
            const float v25 = floorf(v24);
            const float v28 = v24 - v25;
            const float v32 = (float)w;
            const float v33 = 0.5f * v32;
            const float v34 = -0.25f + v33;
            const float v35 = (0.0f < v34) | (v34 != v34) ? v34 : 0.0f;
            const float v36 = floorf(v35);
            const float v39 = v35 - v36;
            const int v26 = int_of(v25);
            const int v27 = 1 + v26;
            const int v30 = v27;
            const int i1 = clamp_index(v30, 4);
            const int v37 = int_of(v36);
            const int v38 = 1 + v37;
            const int v41 = v38;
            const int i2 = clamp_index(v41, 6);
            float v0[VW];
            load_act(v0, p0 + (((size_t)n * 4 + i1) * 6 + i2) * 16 + c, VW);
            const float v45 = 1.0f - v39;
            const int v40 = v37;
            const int i3 = clamp_index(v40, 6);
            float v0_1[VW];
            load_act(v0_1, p0 + (((size_t)n * 4 + i1) * 6 + i3) * 16 + c, VW);
            const int v29 = v26;
            const int i4 = clamp_index(v29, 4);
            float v0_2[VW];
            load_act(v0_2, p0 + (((size_t)n * 4 + i4) * 6 + i2) * 16 + c, VW);
            float v0_3[VW];
            load_act(v0_3, p0 + (((size_t)n * 4 + i4) * 6 + i3) * 16 + c, VW);
            const float v54 = 1.0f - v28;
            float out58[VW];
            LANES_DO(k, VW) {
                const float v52 = v45 * v0_1[k];
                const float v53 = fma_of(v39, v0[k], v52);
                const float v47 = v0_3[k] * v45;
                const float v48 = fma_of(v39, v0_2[k], v47);
                const float v56 = v48 * v54;
                const float v57 = fma_of(v28, v53, v56);
                const float v58 = v57;
                out58[k] = v58;
            }
            store_act(p58 + (size_t)i * C + c, out58, VW);
        }
    }
}
// k02_resize_grad:
// %59..%59: resize_grad
// 7680 bytes read and written (host: 7680)
KERNEL(256, 2) k02_resize_grad(
    const act *RESTRICT p58,
    act *RESTRICT p59)
{
    DECLARE_BLOCK;
    enum { ROWS = 48, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 6;
            const int h = i / 6 % 4;
            const int n = i / 24;
            float v59[VW];
            LANES_DO(k, VW) v59[k] = 0.0f;
            for (int r1 = clamp_index(((2 * h - 1) * 8 - 4) / 8, 8); r1 <= clamp_index(((2 * h + 3) * 8 + 3) / 8, 8); r1++)
                for (int q1 = clamp_index(((2 * w - 1) * 12 - 6) / 12, 12); q1 <= clamp_index(((2 * w + 3) * 12 + 5) / 12, 12); q1++) {
                    const float share1 = blend_share(r1, h, 0.5f, 4) * blend_share(q1, w, 0.5f,
                        6);
                    if (share1 == 0.0f) continue;
                    float v58[VW];
                    load_act(v58, p58 + (((size_t)n * 8 + r1) * 12 + q1) * 16 + c, VW);
                    LANES_DO(k, VW) v59[k] = fma_of(v58[k], share1, v59[k]);
                }
            float out59[VW];
            LANES_DO(k, VW) out59[k] = v59[k];
            store_act(p59 + (size_t)i * C + c, out59, VW);
        }
    }
}
