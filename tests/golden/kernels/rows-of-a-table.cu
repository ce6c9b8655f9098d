// k00_mul:
// %4..%5: gather mul
// 5440 bytes read and written (host: 5440)
KERNEL(256) k00_mul(
    const float *RESTRICT p0,
    const int *RESTRICT p1,
    const float *RESTRICT p2,
    float *RESTRICT p5)
{
    enum { ROWS = 32, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, p2 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            const int h = i % 8;
            const int n = i / 8;
            const int v1 = get_i32(p1 + (size_t)n * 8 + h);
            const int i1 = clamp(v1, 50);
            float v0[VW];
            load_f32(v0, p0 + (size_t)i1 * 16 + c, VW);
            float out5[VW];
            LANES_DO(k, VW) {
                const float v5 = v2[k] * v0[k];
                out5[k] = v5;
            }
            store_f32(p5 + (size_t)i * C + c, out5, VW);
        }
    }
}
// k01_gather_grad:
// %6..%7: mul gather_grad
// 4416 bytes read and written (host: 4416)
KERNEL(256) k01_gather_grad(
    const float *RESTRICT p2,
    const act *RESTRICT p3,
    const int *RESTRICT p1,
    float *RESTRICT p7)
{
    enum { ROWS = 50, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, p2 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            float v7[VW];
            LANES_DO(k, VW) v7[k] = 0.0f;
            for (int j1 = 0; j1 < 32; j1++) {
                const int i2 = j1 / 8;
                const int i3 = j1 % 8;
                const int v1 = get_i32(p1 + (size_t)i2 * 8 + i3);
                if (clamp(v1, 50) != i) continue;
                float v3[VW];
                load_act(v3, p3 + ((size_t)i2 * 8 + i3) * 16 + c, VW);
                LANES_DO(k, VW) {
                    const float v6 = v2[k] * v3[k];
                    v7[k] += v6;
                }
            }
            float out7[VW];
            LANES_DO(k, VW) {
                out7[k] = v7[k];
            }
            store_f32(p7 + (size_t)i * 16 + c, out7, VW);
        }
    }
}
