// k00_pad:
// %1..%5: max sub exp cast pad
// 832 bytes read and written (host: 832)
KERNEL(256) k00_pad(
    const act *RESTRICT p0,
    act *RESTRICT p5)
{
    OWN_BLOCK;
    enum { ROWS = 16, C = 10 };
    enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {
        float s1 = -INF;
        for (int c = lane; c < C; c += GANG) {
            const float v0 = get_act(p0 + (size_t)i * 10 + c);
            s1 = (v0 > s1) | (v0 != v0) ? v0 : s1;
        }
        const float v1 = gang_max(s1, GANG, shared);
        for (int c = C + lane; c < 16; c += GANG) {
            put_act(p5 + (size_t)i * 16 + c, 0.0f);
        }
        for (int c = lane; c < C; c += GANG) {
            const float v0_1 = get_act(p0 + (size_t)i * 10 + c);
            const float v2 = v0_1 - v1;
            const float v3 = expf(v2);
            const float v4 = v3;
            put_act(p5 + (size_t)i * 16 + c, v4);
        }
    }
}
