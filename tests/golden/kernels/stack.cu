// k00_stack:
// %5..%17: cast mul sum sqrt div cast mul sum sqrt div cast stack
// 1384 bytes read and written (host: 1384)
typedef struct {
    int kind, elements, first;
    size_t offset[1];
} k00_stack_entry_0;
LARGE_TABLE k00_stack_entry_0 k00_stack_entries_0[2] = {
    // da
    {0, 128, 0, {HOST_GPU(1024, 1024)}},
    // db
    {1, 45, 1, {HOST_GPU(1280, 1280)}}
};
LARGE_TABLE int k00_stack_first_0[3] = {0, 1, 2};
typedef struct {
    int kind, elements, first;
    size_t offset[1];
} k00_stack_entry_1;
LARGE_TABLE k00_stack_entry_1 k00_stack_entries_1[2] = {
    // da
    {0, 128, 0, {HOST_GPU(1024, 1024)}},
    // db
    {1, 128, 1, {HOST_GPU(1280, 1280)}}
};
LARGE_TABLE int k00_stack_first_1[3] = {0, 1, 2};
PHASED(256) k00_stack(
    char *arena,
    act *RESTRICT p17,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    SHARED float shared[NT];
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    PHASE(0) {
        BLOCK_RANGE(from, to, 2);
        int j = chunk_owner(k00_stack_first_0, 2, from);
        for (int chunk = from; chunk < to; chunk++) {
            j += k00_stack_first_0[j + 1] <= chunk;
            const k00_stack_entry_0 entry = k00_stack_entries_0[j];
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
                        const float v_2 = v_1[k];
                        s1[k] = fma_of(v_2, v_2, s1[k]);
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
                    }
                }
                total_sum(partials + 1 + (chunk - entry.first), s1, VW, shared, NT);
                break;
            }
            }
        }
    }
    GRID_BARRIER(counter + 1);
    PHASE(1) {
        BLOCK_RANGE(from, to, 2);
        int j = chunk_owner(k00_stack_first_1, 2, from);
        for (int chunk = from; chunk < to; chunk++) {
            j += k00_stack_first_1[j + 1] <= chunk;
            const k00_stack_entry_1 entry = k00_stack_entries_1[j];
            const int lo = (chunk - entry.first) * 4096;
            const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
            switch (entry.kind) {
            case 0: {
                act *const p_1 = (act *)(arena + entry.offset[0]);
                const float v_3 = partials_sum(partials + 0, 1, shared, NT);
                const float v_4 = sqrtf(v_3);
                for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                    float v_1[VW];
                    load_act(v_1, p_1 + i, VW);
                    float out1[VW];
                    LANES_DO(k, VW) {
                        const float v_2 = v_1[k];
                        const float v_5 = v_2 / v_4;
                        const float v_6 = v_5;
                        out1[k] = v_6;
                    }
                    store_act(p17 + 0 + i, out1, VW);
                }
                break;
            }
            case 1: {
                float *const p_1 = (float *)(arena + entry.offset[0]);
                const float v_2 = partials_sum(partials + 1, 1, shared, NT);
                const float v_3 = sqrtf(v_2);
                for (int i = lo + threadIdx.x; i < hi; i += NT) {
                    const int r1 = i / 16;
                    const int c1 = i % 16;
                    const int inside1 = r1 < 5 && c1 < 9;
                    const int x1 = inside1 ? r1 * 9 + c1 : 0;
                    const float v_1 = get_f32(p_1 + x1);
                    const float v_4 = v_1 / v_3;
                    const float v_5 = v_4;
                    put_act(p17 + 128 + i, inside1 ? v_5 : 0.0f);
                }
                break;
            }
            }
        }
    }
}
// k03_update:
// %20..%27: slice reshape sub assign slice reshape sub assign
// 1730 bytes read and written (host: 1730)
typedef struct {
    int kind, elements, first;
    size_t offset[2];
} k03_update_entry;
LARGE_TABLE k03_update_entry k03_update_entries[2] = {
    // a
    {0, 128, 0, {HOST_GPU(0, 0), HOST_GPU(2048, 2048)}},
    // b
    {1, 45, 1, {HOST_GPU(512, 512), HOST_GPU(2048, 2048)}}
};
LARGE_TABLE int k03_update_first[3] = {0, 1, 2};
KERNEL(256) k03_update(
    char *arena)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    BLOCK_RANGE(from, to, 2);
    int j = chunk_owner(k03_update_first, 2, from);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int chunk = from; chunk < to; chunk++) {
        j += k03_update_first[j + 1] <= chunk;
        const k03_update_entry entry = k03_update_entries[j];
        const int lo = (chunk - entry.first) * 4096;
        const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
        switch (entry.kind) {
        case 0: {
            float *const p_1 = (float *)(arena + entry.offset[0]);
            act *const p_2 = (act *)(arena + entry.offset[1]);
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_f32(v_1, p_1 + i, VW);
                float v_3[VW];
                load_act(v_3, p_2 + 0 + i, VW);
                float out_1_1[VW];
                LANES_DO(k, VW) {
                    const float v_4 = v_1[k] - v_3[k];
                    out_1_1[k] = v_4;
                }
                store_f32(p_1 + i, out_1_1, VW);
            }
            break;
        }
        case 1: {
            float *const p_1 = (float *)(arena + entry.offset[0]);
            act *const p_2 = (act *)(arena + entry.offset[1]);
            for (int i = lo + threadIdx.x; i < hi; i += NT) {
                const float v_1 = get_f32(p_1 + i);
                const int x1 = i % 9;
                const int x2 = i / 9;
                const float v_3 = get_act(p_2 + ((size_t)1 * 8 + x2) * 16 + x1);
                const float v_4 = v_1 - v_3;
                put_f32(p_1 + i, v_4);
            }
            break;
        }
        }
    }
}
