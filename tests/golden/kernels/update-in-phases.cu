// k00_update:
// %8..%30: mul mul mul total all_finite lt div mul sum mul sub select assign ...
// 98196 bytes read and written (host: 98196)
typedef struct {
    int kind, elements, first;
    size_t offset[1];
} k00_update_entry_0;
LARGE_TABLE k00_update_entry_0 k00_update_entries_0[2] = {
    // da
    {0, 7000, 0, {HOST_GPU(28928, 28928)}},
    // dc
    {1, 9, 2, {HOST_GPU(43264, 43264)}}
};
LARGE_TABLE int k00_update_first_0[3] = {0, 2, 3};
typedef struct {
    int kind, elements, first;
    size_t offset[1];
} k00_update_entry_1;
LARGE_TABLE k00_update_entry_1 k00_update_entries_1[2] = {
    // da
    {0, 7000, 0, {HOST_GPU(28928, 28928)}},
    // dc
    {1, 9, 2, {HOST_GPU(43264, 43264)}}
};
LARGE_TABLE int k00_update_first_1[3] = {0, 2, 3};
typedef struct {
    int kind, elements, first;
    size_t offset[2];
} k00_update_entry_2;
LARGE_TABLE k00_update_entry_2 k00_update_entries_2[2] = {
    // a
    {0, 7000, 0, {HOST_GPU(0, 0), HOST_GPU(28928, 28928)}},
    // c
    {1, 9, 2, {HOST_GPU(28416, 28416), HOST_GPU(43264, 43264)}}
};
LARGE_TABLE int k00_update_first_2[3] = {0, 2, 3};
PHASED(256) k00_update(
    char *arena,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    SHARED float shared[NT];
    float *const p4 = (float *)(arena + HOST_GPU(43008, 43008)); // db
    float *const p1 = (float *)(arena + HOST_GPU(28160, 28160)); // b
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    PHASE(0) {
        float finite13[VW];
        LANES_DO(k, VW) finite13[k] = 0.0f;
        BLOCK_RANGE(from, to, 3);
        int j = chunk_owner(k00_update_first_0, 2, from);
        for (int chunk = from; chunk < to; chunk++) {
            j += k00_update_first_0[j + 1] <= chunk;
            const k00_update_entry_0 entry = k00_update_entries_0[j];
            const int lo = (chunk - entry.first) * 4096;
            const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
            switch (entry.kind) {
            case 0: {
                act *const p_1 = (act *)(arena + entry.offset[0]);
                float s1[VW];
                LANES_DO(k, VW) s1[k] = 0.0f;
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_act(v_1, p_1 + i, VW);
                    LANES_DO(k, VW) {
                        const float v_2 = v_1[k] * v_1[k];
                        s1[k] += i + k < hi ? v_2 : 0.0f;
                        finite13[k] = fma_of(i + k < hi ? v_1[k] : 0.0f, 0.0f, finite13[k]);
                    }
                }
                total_sum(partials + 0 + (chunk - entry.first), s1, VW, shared, NT);
                break;
            }
            case 1: {
                float *const p_1 = (float *)(arena + entry.offset[0]);
                float s1[VW];
                LANES_DO(k, VW) s1[k] = 0.0f;
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_f32(v_1, p_1 + i, VW);
                    LANES_DO(k, VW) {
                        const float v_2 = v_1[k] * v_1[k];
                        s1[k] += i + k < hi ? v_2 : 0.0f;
                        finite13[k] = fma_of(i + k < hi ? v_1[k] : 0.0f, 0.0f, finite13[k]);
                    }
                }
                total_sum(partials + 2 + (chunk - entry.first), s1, VW, shared, NT);
                break;
            }
            }
        }
        total_sum(partials + 3 + block, finite13, VW, shared, NT);
    }
    GRID_BARRIER(counter + 1);
    PHASE(1) {
        const float v4 = get_f32(p4);
        const float v12 = fma_of(v4, v4, partials_sum(partials + 0, 3, shared, NT));
        BLOCK_RANGE(from, to, 3);
        int j = chunk_owner(k00_update_first_1, 2, from);
        for (int chunk = from; chunk < to; chunk++) {
            j += k00_update_first_1[j + 1] <= chunk;
            const k00_update_entry_1 entry = k00_update_entries_1[j];
            const int lo = (chunk - entry.first) * 4096;
            const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
            switch (entry.kind) {
            case 0: {
                act *const p_1 = (act *)(arena + entry.offset[0]);
                float s1[VW];
                LANES_DO(k, VW) s1[k] = 0.0f;
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_act(v_1, p_1 + i, VW);
                    LANES_DO(k, VW) {
                        const float v_2 = v_1[k] / v12;
                        const float v_3 = v_2 * v_2;
                        s1[k] += i + k < hi ? v_3 : 0.0f;
                    }
                }
                total_sum(partials + 531 + (chunk - entry.first), s1, VW, shared, NT);
                break;
            }
            case 1: {
                float *const p_1 = (float *)(arena + entry.offset[0]);
                float s1[VW];
                LANES_DO(k, VW) s1[k] = 0.0f;
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_f32(v_1, p_1 + i, VW);
                    LANES_DO(k, VW) {
                        const float v_2 = v_1[k] / v12;
                        const float v_3 = v_2 * v_2;
                        s1[k] += i + k < hi ? v_3 : 0.0f;
                    }
                }
                total_sum(partials + 533 + (chunk - entry.first), s1, VW, shared, NT);
                break;
            }
            }
        }
    }
    GRID_BARRIER(counter + 1);
    PHASE(2) {
        const float v4 = get_f32(p4);
        const float v13 = partials_sum(partials + 3, blocks, shared,
            NT) + !is_finite(v4) == 0.0f ? 1.0f : 0.0f;
        const int v14 = 0.5f < v13;
        const float v12 = fma_of(v4, v4, partials_sum(partials + 0, 3, shared, NT));
        const float v1 = get_f32(p1);
        BLOCK_RANGE(from, to, 3);
        int j = chunk_owner(k00_update_first_2, 2, from);
        for (int chunk = from; chunk < to; chunk++) {
            j += k00_update_first_2[j + 1] <= chunk;
            const k00_update_entry_2 entry = k00_update_entries_2[j];
            const int lo = (chunk - entry.first) * 4096;
            const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
            switch (entry.kind) {
            case 0: {
                float *const p_1 = (float *)(arena + entry.offset[0]);
                act *const p_2 = (act *)(arena + entry.offset[1]);
                const float v_4 = partials_sum(partials + 531, 2, shared, NT);
                for (int i = lo + threadIdx.x * VW; i < hi; i += 2 * NT * VW) {
                    const int next = i + NT * VW < hi ? i + NT * VW : i;
                    float v_1[2 * VW];
                    load_f32(v_1, p_1 + i, VW);
                    load_f32(v_1 + VW, p_1 + next, VW);
                    float v_2[2 * VW];
                    load_act(v_2, p_2 + i, VW);
                    load_act(v_2 + VW, p_2 + next, VW);
                    float out_1_1[2 * VW];
                    LANES_DO(k, 2 * VW) {
                        const float v_3 = v_2[k] / v12;
                        const float v_6 = fma_of(v_3, -v_4, v_1[k]);
                        const float v_7 = v14 ? v_6 : v_1[k];
                        out_1_1[k] = v_7;
                    }
                    store_f32(p_1 + i, out_1_1, VW);
                    store_f32(p_1 + next, out_1_1 + VW, VW);
                }
                break;
            }
            case 1: {
                float *const p_1 = (float *)(arena + entry.offset[0]);
                float *const p_2 = (float *)(arena + entry.offset[1]);
                const float v_4 = partials_sum(partials + 533, 1, shared, NT);
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_f32(v_1, p_1 + i, VW);
                    float v_2[VW];
                    load_f32(v_2, p_2 + i, VW);
                    float out_1_1[VW];
                    LANES_DO(k, VW) {
                        const float v_3 = v_2[k] / v12;
                        const float v_6 = fma_of(v_3, -v_4, v_1[k]);
                        out_1_1[k] = v_6;
                    }
                    store_f32(p_1 + i, out_1_1, VW);
                }
                break;
            }
            }
        }
        if (last_block(counter, blocks) && threadIdx.x == 0) {
            const float v22 = v4 / v12;
            const float v23 = v1 - v22;
            put_f32(p1, v23);
        }
    }
}
