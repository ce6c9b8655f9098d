// k00_sum:
// %3..%3: sum
// 600 bytes read and written (host: 600)
KERNEL(256) k00_sum(
    const float *RESTRICT p1,
    float *RESTRICT p3)
{
    OWN_BLOCK;
    enum { ROWS = 30, C = 4 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        float s3 = 0.0f;
        for (int c = lane; c < C; c += GANG) {
            const float v1 = get_f32(p1 + (size_t)i * 4 + c);
            s3 += v1;
        }
        const float v3 = gang_sum(s3, GANG, shared);
        if (lane == 0) {
            put_f32(p3 + (size_t)i, v3);
        }
    }
}
// k01_mul:
// %5..%7: broadcast reshape mul
// 244 bytes read and written (host: 244)
KERNEL(256) k01_mul(
    const float *RESTRICT p0,
    const float *RESTRICT p3,
    float *RESTRICT p7)
{
    OWN_BLOCK;
    enum { ROWS = 1, C = 30, VW = LANES(5), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    const float v0 = get_f32(p0 + 0);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v4[VW];
        load_f32(v4, p3 + c, VW);
        float v5[VW];
        LANES_DO(k, VW) v5[k] = v0;
        float v7[VW];
        LANES_DO(k, VW) v7[k] = v4[k] * v5[k];
        for (int i = lo + ty; i < hi; i += TY) {
            float out7[VW];
            LANES_DO(k, VW) {
                out7[k] = v7[k];
            }
            store_f32(p7 + c, out7, VW);
        }
    }
}
