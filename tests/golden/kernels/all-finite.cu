// k00_all_finite:
// %3..%4: all_finite
// 40164 bytes read and written (host: 40164)
typedef struct {
    int is_act, first, elements;
    size_t at;
} k00_all_finite_member;
TABLE k00_all_finite_member k00_all_finite_members[2] = {
    {0, 0, 40, AT(256, 256)},
    {1, 1, 20000, AT(512, 512)},
};
KERNEL(256) k00_all_finite(
    char *arena,
    float *RESTRICT p4,
    float *RESTRICT part,
    int *RESTRICT ticket)
{
    enum { NT = THREADS(256), WIDTH = 1 };
    SHARED float shared[NT];
    int j = 0;
    while (j + 1 < 2 && k00_all_finite_members[j + 1].first <= (int)blockIdx.x) j++;
    const k00_all_finite_member own = k00_all_finite_members[j];
    const int lo = ((int)blockIdx.x - own.first) * 16384;
    const int hi = lo + 16384 < own.elements ? lo + 16384 : own.elements;
    int bad = 0;
    if (own.is_act) {
        const act *const p = (const act *)(arena + own.at);
        for (int i = lo + threadIdx.x; i < hi; i += NT)
            bad |= !is_finite(get_act(p + i));
    } else {
        const float *const p = (const float *)(arena + own.at);
        for (int i = lo + threadIdx.x; i < hi; i += NT)
            bad |= !is_finite(p[i]);
    }
    const float worst = (float)bad;
    total_sum(part + blockIdx.x, &worst, 1, shared, NT);
    if (last_block(ticket) && threadIdx.x == 0) {
        const float sum = grid_sum(part, WIDTH);
        put_f32(p4, sum == 0.0f ? 1.0f : 0.0f);
    }
}
