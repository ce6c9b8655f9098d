// k00_resize_grad:
// %12..%19: mul div broadcast mul div broadcast take resize_grad
// 3072 bytes read and written (host: 3072)
KERNEL(256) k00_resize_grad(
    const act *RESTRICT p0,
    act *RESTRICT p19)
{
    enum { ROWS = 48, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 6;
            const int h = i / 6 % 4;
            const int n = i / 24;
            float v19[VW];
            LANES_DO(k, VW) v19[k] = 0.0f;
            for (int r1 = (h * 3 + 3) / 4; r1 < ((h + 1) * 3 + 3) / 4; r1++)
                for (int q1 = (w * 3 + 5) / 6; q1 < ((w + 1) * 3 + 5) / 6; q1++) {
                    const int v12 = (r1) * 4;
                    const int v13 = v12 / 3;
                    const int v14 = v13;
                    const int i2 = clamp(v14, 4);
                    const int v15 = (q1) * 6;
                    const int v16 = v15 / 3;
                    const int v17 = v16;
                    const int i3 = clamp(v17, 6);
                    float v0[VW];
                    load_act(v0, p0 + (((size_t)n * 4 + i2) * 6 + i3) * 16 + c, VW);
                    LANES_DO(k, VW) {
                        v19[k] += v0[k];
                    }
                }
            float out19[VW];
            LANES_DO(k, VW) {
                out19[k] = v19[k];
            }
            store_act(p19 + (size_t)i * C + c, out19, VW);
        }
    }
}
// k01_cast:
// %20..%57: cast mul add maximum floor cast add sub broadcast broadcast reshape ...
// 7680 bytes read and written (host: 7680)
KERNEL(256) k01_cast(
    const act *RESTRICT p0,
    act *RESTRICT p57)
{
    enum { ROWS = 192, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 12;
            const int h = i / 12 % 8;
            const int n = i / 96;
            const float v20 = (float)(h);
            const float v21 = 0.5f * v20;
            const float v22 = -0.25f + v21;
            const float v23 = 0.0f < v22 ? v22 : 0.0f;
            const float v24 = floorf(v23);
            const float v27 = v23 - v24;
            const float v31 = (float)(w);
            const float v32 = 0.5f * v31;
            const float v33 = -0.25f + v32;
            const float v34 = 0.0f < v33 ? v33 : 0.0f;
            const float v35 = floorf(v34);
            const float v38 = v34 - v35;
            const int v25 = (int)v24;
            const int v26 = 1 + v25;
            const int v29 = v26;
            const int i1 = clamp(v29, 4);
            const int v36 = (int)v35;
            const int v37 = 1 + v36;
            const int v40 = v37;
            const int i2 = clamp(v40, 6);
            float v0[VW];
            load_act(v0, p0 + (((size_t)n * 4 + i1) * 6 + i2) * 16 + c, VW);
            const float v44 = 1.0f - v38;
            const int i3 = clamp(v29, 4);
            const int v39 = v36;
            const int i4 = clamp(v39, 6);
            float v0_1[VW];
            load_act(v0_1, p0 + (((size_t)n * 4 + i3) * 6 + i4) * 16 + c, VW);
            const int v28 = v25;
            const int i5 = clamp(v28, 4);
            const int i6 = clamp(v40, 6);
            float v0_2[VW];
            load_act(v0_2, p0 + (((size_t)n * 4 + i5) * 6 + i6) * 16 + c, VW);
            const int i7 = clamp(v28, 4);
            const int i8 = clamp(v39, 6);
            float v0_3[VW];
            load_act(v0_3, p0 + (((size_t)n * 4 + i7) * 6 + i8) * 16 + c, VW);
            const float v53 = 1.0f - v27;
            float out57[VW];
            LANES_DO(k, VW) {
                const float v50 = v38 * v0[k];
                const float v51 = v44 * v0_1[k];
                const float v52 = v50 + v51;
                const float v54 = v27 * v52;
                const float v45 = v38 * v0_2[k];
                const float v46 = v0_3[k] * v44;
                const float v47 = v45 + v46;
                const float v55 = v47 * v53;
                const float v56 = v54 + v55;
                const float v57 = v56;
                out57[k] = v57;
            }
            store_act(p57 + (size_t)i * C + c, out57, VW);
        }
    }
}
// k02_resize_grad:
// %58..%58: resize_grad
// 7680 bytes read and written (host: 7680)
KERNEL(256) k02_resize_grad(
    const act *RESTRICT p57,
    act *RESTRICT p58)
{
    enum { ROWS = 48, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) {
            const int w = i % 6;
            const int h = i / 6 % 4;
            const int n = i / 24;
            float v58[VW];
            LANES_DO(k, VW) v58[k] = 0.0f;
            for (int r1 = clamp(((2 * h - 1) * 8 - 4) / 8, 8); r1 <= clamp(((2 * h + 3) * 8 + 3) / 8, 8); r1++)
                for (int q1 = clamp(((2 * w - 1) * 12 - 6) / 12, 12); q1 <= clamp(((2 * w + 3) * 12 + 5) / 12, 12); q1++) {
                    const float share1 = blend_share(r1, h, 0.5f, 4)
                        * blend_share(q1, w, 0.5f, 6);
                    if (share1 == 0.0f) continue;
                    float v57[VW];
                    load_act(v57, p57 + (((size_t)n * 8 + r1) * 12 + q1) * 16 + c, VW);
                    LANES_DO(k, VW) {
                        v58[k] += v57[k] * share1;
                    }
                }
            float out58[VW];
            LANES_DO(k, VW) {
                out58[k] = v58[k];
            }
            store_act(p58 + (size_t)i * C + c, out58, VW);
        }
    }
}
