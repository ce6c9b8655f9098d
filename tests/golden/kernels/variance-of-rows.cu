// k00_sqrt:
// %1..%2: var sqrt
// 1048832 bytes read and written (host: 1048832)
KERNEL(256) k00_sqrt(
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    OWN_BLOCK;
    enum { ROWS = 64, C = 4096 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        const float v0 = get_f32(p0 + (size_t)i * 4096);
        const float pivot1 = v0;
        float s1 = 0.0f, q1 = 0.0f;
        for (int c = lane; c < C; c += GANG) {
            const float v0_1 = get_f32(p0 + (size_t)i * 4096 + c);
            const float d1 = v0_1 - pivot1;
            s1 += d1;
            q1 += d1 * d1;
        }
        s1 = gang_sum(s1, GANG, shared);
        q1 = gang_sum(q1, GANG, shared);
        const float b1 = (q1 - s1 * s1 / C) / C;
        const float v1 = b1 < 0.0f ? 0.0f : b1;
        const float v2 = sqrtf(v1);
        if (lane == 0) {
            put_f32(p2 + (size_t)i, v2);
        }
    }
}
