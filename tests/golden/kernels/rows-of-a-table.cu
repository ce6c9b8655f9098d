// k00_mul:
// %6..%7: gather mul
// 5440 bytes read and written (host: 5440)
KERNEL(256, 2) k00_mul(
    const float *RESTRICT p0,
    const int *RESTRICT p1,
    const float *RESTRICT p2,
    float *RESTRICT p7)
{
    DECLARE_BLOCK;
    enum { ROWS = 32, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG_ROW(CG, NT), TY = NT / TX };
    const int ty = threadIdx.x / TX;
    const int tx = ty < TY ? threadIdx.x % TX : CG;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v2[VW];
        load_f32(v2, p2 + c, VW);
        for (int i = lo + ty; i < hi; i += TY) {
            const int h = i % 8;
            const int n = i / 8;
            const int v1 = get_i32(p1 + (size_t)n * 8 + h);
            const int i1 = clamp_index(v1, 50);
            float v0[VW];
            load_f32(v0, p0 + (size_t)i1 * 16 + c, VW);
            float out7[VW];
            LANES_DO(k, VW) {
                const float v7 = v2[k] * v0[k];
                out7[k] = v7;
            }
            store_f32(p7 + (size_t)i * C + c, out7, VW);
        }
    }
}
// k01_gather_grad:
// %8..%10: mul reshape gather_grad
// 6464 bytes read and written (host: 6464)
KERNEL(256) k01_gather_grad(
    const float *RESTRICT p2,
    const act *RESTRICT p3,
    const int *RESTRICT p1,
    float *RESTRICT p10)
{
    DECLARE_BLOCK;
    enum { ROWS = 50, C = 16, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG(CG, NT), TY = NT / TX };
    enum { INDICES_PER_THREAD = HOST_GPU(1, 4), PREFETCH = HOST_GPU(1, 8) };
    SHARED int listed[2 * INDICES_PER_THREAD * NT];
    const int tx = threadIdx.x % TX;
    const int ty = threadIdx.x / TX;
    BLOCK_RANGE(lo, hi, ROWS);
    float zero[VW];
    LANES_DO(k, VW) zero[k] = 0.0f;
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        for (int i = lo + ty; i < hi; i += TY) store_f32(p10 + (size_t)i * C + c, zero, VW);
    }
    for (int from = 0; from < 32; from += INDICES_PER_THREAD * NT) {
        int named[INDICES_PER_THREAD];
        UNROLLED(m, INDICES_PER_THREAD) {
            const int at = from + threadIdx.x * INDICES_PER_THREAD + m;
            const int j = at < 32 ? at : 32 - 1;
            const int v4 = get_i32(p1 + j);
            named[m] = at < 32 ? clamp_index(v4, ROWS) : -1;
        }
        const int count = list_rows(listed, named, INDICES_PER_THREAD, from, lo, hi, NT);
        for (int g = tx; g < CG; g += TX) {
            const int c = g * VW;
            float sum[VW];
            int held = -1;
            float v2[VW];
            load_f32(v2, p2 + c, VW);
            for (int at = 0; at < count; at += PREFETCH) {
                float ahead[PREFETCH][VW];
                UNROLLED(m, PREFETCH) {
                    if (at + m >= count) break;
                    const int j = listed[2 * (at + m)];
                    const int i1 = j % 8;
                    const int i2 = j / 8;
                    float v3[VW];
                    load_act(v3, p3 + ((size_t)i2 * 8 + i1) * 16 + c, VW);
                    LANES_DO(k, VW) {
                        const float v8 = v2[k] * v3[k];
                        ahead[m][k] = v8;
                    }
                }
                UNROLLED(m, PREFETCH) {
                    if (at + m >= count) continue;
                    const int i = listed[2 * (at + m) + 1];
                    if ((i - lo) % TY != ty) continue;
                    if (i != held) {
                        if (held >= 0) store_f32(p10 + (size_t)held * C + c, sum, VW);
                        load_f32(sum, p10 + (size_t)i * C + c, VW);
                        held = i;
                    }
                    LANES_DO(k, VW) sum[k] += ahead[m][k];
                }
            }
            if (held >= 0) store_f32(p10 + (size_t)held * C + c, sum, VW);
        }
    }
}
