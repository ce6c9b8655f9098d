// k00_sum:
// %2..%2: sum
// 600 bytes read and written (host: 600)
KERNEL(256) k00_sum(
    const float *RESTRICT p1,
    float *RESTRICT p2)
{
    enum { ROWS = 30, C = 4 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        float s2 = 0.0f;
        for (int c = lane; c < C; c += GANG) {
            const float v1 = get_f32(p1 + (size_t)i * 4 + c);
            s2 += v1;
        }
        const float v2 = gang_sum(s2, GANG, shared);
        if (lane == 0) {
            put_f32(p2 + (size_t)i, v2);
        }
    }
}
// k01_mul:
// %4..%6: broadcast reshape mul
// 244 bytes read and written (host: 244)
KERNEL(256) k01_mul(
    const float *RESTRICT p0,
    const float *RESTRICT p2,
    float *RESTRICT p6)
{
    enum { ROWS = 1, C = 30, VW = LANES(5), CG = C / VW };
    enum { NT = THREADS(256), TX = TILE(CG, NT), TY = NT / TX };
    const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    CHUNK(lo, hi, ROWS);
    const float v0 = get_f32(p0 + 0);
    for (int g = tx; g < CG; g += TX) {
        const int c = g * VW;
        float v3[VW];
        load_f32(v3, p2 + c, VW);
        float v4[VW];
        LANES_DO(k, VW) v4[k] = v0;
        float v6[VW];
        LANES_DO(k, VW) v6[k] = v3[k] * v4[k];
        for (int i = lo + ty; i < hi; i += TY) {
            float out6[VW];
            LANES_DO(k, VW) {
                out6[k] = v6[k];
            }
            store_f32(p6 + c, out6, VW);
        }
    }
}
