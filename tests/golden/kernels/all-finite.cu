// k00_all_finite:
// %3..%4: all_finite
// 40164 bytes read and written (host: 40164)
typedef struct {
    int kind, elements, first;
    size_t offset[1];
} k00_all_finite_entry;
LARGE_TABLE k00_all_finite_entry k00_all_finite_entries[2] = {
    // a
    {0, 40, 0, {HOST_GPU(256, 256)}},
    // b
    {1, 20000, 1, {HOST_GPU(512, 512)}}
};
LARGE_TABLE int k00_all_finite_first[3] = {0, 1, 6};
KERNEL(256) k00_all_finite(
    char *arena,
    float *RESTRICT p4,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    SHARED float shared[NT];
    float finite4[VW];
    LANES_DO(k, VW) finite4[k] = 0.0f;
    BLOCK_RANGE(from, to, 6);
    int j = chunk_owner(k00_all_finite_first, 2, from);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int chunk = from; chunk < to; chunk++) {
        j += k00_all_finite_first[j + 1] <= chunk;
        const k00_all_finite_entry entry = k00_all_finite_entries[j];
        const int lo = (chunk - entry.first) * 4096;
        const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
        switch (entry.kind) {
        case 0: {
            float *const p_1 = (float *)(arena + entry.offset[0]);
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_f32(v_1, p_1 + i, VW);
                LANES_DO(k, VW) {
                    finite4[k] = fma_of(i + k < hi ? v_1[k] : 0.0f, 0.0f, finite4[k]);
                }
            }
            break;
        }
        case 1: {
            act *const p_1 = (act *)(arena + entry.offset[0]);
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_act(v_1, p_1 + i, VW);
                LANES_DO(k, VW) {
                    finite4[k] = fma_of(i + k < hi ? v_1[k] : 0.0f, 0.0f, finite4[k]);
                }
            }
            break;
        }
        }
    }
    total_sum(partials + 0 + block, finite4, VW, shared, NT);
    if (last_block(counter, blocks)) {
        const float v4 = partials_sum(partials + 0, blocks, shared, NT) == 0.0f ? 1.0f : 0.0f;
        if (threadIdx.x == 0) put_f32(p4, v4);
    }
}
