// k00_update:
// %2..%3: sub assign
// 480 bytes read and written (host: 480)
typedef struct {
    int kind, elements, first;
    size_t offset[2];
} k00_update_entry;
LARGE_TABLE k00_update_entry k00_update_entries[1] = {
    // a_int_x__/___b_
    {0, 40, 0, {HOST_GPU(0, 0), HOST_GPU(256, 256)}}
};
LARGE_TABLE int k00_update_first[2] = {0, 1};
KERNEL(256) k00_update(
    char *arena)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    BLOCK_RANGE(from, to, 1);
    int j = chunk_owner(k00_update_first, 1, from);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int chunk = from; chunk < to; chunk++) {
        j += k00_update_first[j + 1] <= chunk;
        const k00_update_entry entry = k00_update_entries[j];
        const int lo = (chunk - entry.first) * 4096;
        const int hi = lo + 4096 < entry.elements ? lo + 4096 : entry.elements;
        switch (entry.kind) {
        case 0: {
            float *const p_1 = (float *)(arena + entry.offset[0]);
            float *const p_2 = (float *)(arena + entry.offset[1]);
            for (int i = lo + threadIdx.x * VW; i < hi; i += NT * VW) {
                float v_1[VW];
                load_f32(v_1, p_1 + i, VW);
                float v_2[VW];
                load_f32(v_2, p_2 + i, VW);
                float out_1_1[VW];
                LANES_DO(k, VW) {
                    const float v_3 = v_1[k] - v_2[k];
                    out_1_1[k] = v_3;
                }
                store_f32(p_1 + i, out_1_1, VW);
            }
            break;
        }
        }
    }
}
