// k00_sum:
// %2..%9: max sub exp sum div log sum
// 1284 bytes read and written (host: 1284)
KERNEL(256) k00_sum(
    const float *RESTRICT p0,
    float *RESTRICT p7,
    float *RESTRICT p9,
    float *RESTRICT part,
    int *RESTRICT ticket)
{
    OWN_BLOCK;
    enum { ROWS = 16, C = 10 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    enum { WIDTH = 1 };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    float s9 = 0.0f;
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        float s3 = -INF;
        for (int c = lane; c < C; c += GANG) {
            const float v0 = get_f32(p0 + (size_t)i * 10 + c);
            s3 = (v0 > s3) | (v0 != v0) ? v0 : s3;
        }
        const float v3 = gang_max(s3, GANG, shared);
        float s6 = 0.0f;
        for (int c = lane; c < C; c += GANG) {
            const float v0_1 = get_f32(p0 + (size_t)i * 10 + c);
            const float v4 = v0_1 - v3;
            const float v5 = expf(v4);
            s6 += v5;
        }
        const float v6 = gang_sum(s6, GANG, shared);
        const float v8 = logf(v6);
        for (int c = lane; c < C; c += GANG) {
            const float v0_2 = get_f32(p0 + (size_t)i * 10 + c);
            const float v4_1 = v0_2 - v3;
            const float v5_1 = expf(v4_1);
            const float v7 = v5_1 / v6;
            put_f32(p7 + (size_t)i * 10 + c, v7);
        }
        if (lane == 0) {
            s9 += v8;
        }
    }
    total_sum(part + (size_t)block * WIDTH + 0, &s9, 1, shared, NT);
    if (last_block(ticket, blocks)) {
        for (int c = threadIdx.x; c < 1; c += NT) {
            const float a = grid_sum(part + 0 + c, WIDTH, blocks);
            put_f32(p9 + 0, a);
        }
    }
}
