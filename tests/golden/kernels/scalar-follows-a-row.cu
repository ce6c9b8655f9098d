// k00_exp:
// %1..%2: max exp
// 44 bytes read and written (host: 44)
KERNEL(256) k00_exp(
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    OWN_BLOCK;
    enum { ROWS = 1, C = 10 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        float s1 = -INF;
        for (int c = lane; c < C; c += GANG) {
            const float v0 = get_f32(p0 + c);
            s1 = (v0 > s1) | (v0 != v0) ? v0 : s1;
        }
        const float v1 = gang_max(s1, GANG, shared);
        const float v2 = expf(v1);
        if (lane == 0) {
            put_f32(p2 + 0, v2);
        }
    }
}
