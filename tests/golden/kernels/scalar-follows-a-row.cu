// k00_exp:
// %1..%2: max exp
// 44 bytes read and written (host: 44)
KERNEL(256, 2) k00_exp(
    const float *RESTRICT p0,
    float *RESTRICT p2)
{
    OWN_BLOCK;
    enum { ROWS = 1, C = 10, VW = LANES(C) };
    enum { NT = THREADS(256), GANG = GANG_OF(C, VW, NT) };
    SHARED float shared[NT];
    const int lane = threadIdx.x % GANG;
    CHUNK(lo, hi, ROWS);
    for (int first = lo; first < hi; first += NT / GANG) {
        const int own = first + threadIdx.x / GANG;
        const int end = own < hi ? C : 0;
        float s1[VW];
        LANES_DO(k, VW) s1[k] = -INF;
        for (int c = lane * VW; c < C; c += GANG * VW) {
            float v0[VW];
            load_f32(v0, p0 + c, VW);
            LANES_DO(k, VW) s1[k] = larger(s1[k], v0[k]);
        }
        const float v1 = gang_max(lanes_max(s1, VW), GANG, shared);
        const float v2 = expf(v1);
        if (lane == 0 && end == C) put_f32(p2, v2);
    }
}
