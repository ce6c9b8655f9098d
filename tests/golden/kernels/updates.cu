// k00_update:
// %9..%16: mul sub assign mul sub assign add assign
// 572 bytes read and written (host: 572)
typedef struct {
    int kind, elements, first;
    size_t offset[2];
    float f[1];
} k00_update_entry;
LARGE_TABLE k00_update_entry k00_update_entries[2] = {
    // a
    {0, 40, 0, {HOST_GPU(0, 0), HOST_GPU(1024, 1024)}, {0.1f}},
    // b
    {0, 7, 1, {HOST_GPU(256, 256), HOST_GPU(1280, 1280)}, {0.2f}}
};
LARGE_TABLE int k00_update_first[3] = {0, 1, 2};
KERNEL(256) k00_update(
    char *arena,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    int *const p2 = (int *)(arena + HOST_GPU(512, 512)); // run.step
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    const int v2 = get_i32(p2);
    BLOCK_RANGE(from, to, 2);
    int j = chunk_owner(k00_update_first, 2, from);
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
                    const float v_4 = fma_of(v_2[k], -entry.f[0], v_1[k]);
                    out_1_1[k] = v_4;
                }
                store_f32(p_1 + i, out_1_1, VW);
            }
            break;
        }
        }
    }
    if (last_block(counter, blocks) && threadIdx.x == 0) {
        const int v15 = v2 + 1;
        put_i32(p2, v15);
    }
}
