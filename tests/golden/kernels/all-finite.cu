// k00_all_finite:
// %3..%4: all_finite
// 40164 bytes read and written (host: 40164)
typedef struct {
    int kind, elements;
    size_t offset[1];
} k00_all_finite_entry;
LARGE_TABLE k00_all_finite_entry k00_all_finite_entries[2] = {
    // a
    {0, 40, {AT(256, 256)}},
    // b
    {1, 20000, {AT(512, 512)}}
};
LARGE_TABLE int k00_all_finite_first[2] = {0, 1};
KERNEL(256) k00_all_finite(
    char *arena,
    float *RESTRICT p4,
    float *RESTRICT part,
    int *RESTRICT counter)
{
    OWN_BLOCK;
    enum { NT = THREADS(256), VW = PART_LANES };
    SHARED float shared[NT];
    for (int chunk = block; chunk < 6; chunk += blocks) {
        const int j = chunk_owner(k00_all_finite_first, 2, chunk);
        const int first = k00_all_finite_first[j];
        const k00_all_finite_entry own = k00_all_finite_entries[j];
        const int lo = (chunk - first) * 4096;
        const int hi = lo + 4096 < own.elements ? lo + 4096 : own.elements;
        switch (own.kind) {
        case 0: {
            float *const p_1 = (float *)(arena + own.offset[0]);
            float s1[VW];
            LANES_DO(k, VW) s1[k] = 0.0f;
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_f32(v_1, p_1 + i, VW);
                LANES_DO(k, VW) s1[k] += i + k < hi && !is_finite(v_1[k]) ? 1.0f : 0.0f;
            }
            total_sum(part + 0 + (chunk - first), s1, VW, shared, NT);
            break;
        }
        case 1: {
            act *const p_1 = (act *)(arena + own.offset[0]);
            float s1[VW];
            LANES_DO(k, VW) s1[k] = 0.0f;
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_act(v_1, p_1 + i, VW);
                LANES_DO(k, VW) s1[k] += i + k < hi && !is_finite(v_1[k]) ? 1.0f : 0.0f;
            }
            total_sum(part + 1 + (chunk - first), s1, VW, shared, NT);
            break;
        }
        }
    }
    if (last_block(counter, blocks)) {
        const float v4 = parts_sum(part + 0, 6, shared, NT) == 0.0f ? 1.0f : 0.0f;
        if (threadIdx.x == 0) put_f32(p4, v4);
    }
}
