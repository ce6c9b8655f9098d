// k00_update:
// %11..%29: mul sub assign sub assign sub assign sub assign sub assign sub ...
// 4864 bytes read and written (host: 4864)
typedef struct {
    int kind, elements, first;
    size_t offset[2];
} k00_update_entry;
LARGE_TABLE k00_update_entry k00_update_entries[9] = {
    // p0
    {0, 64, 0, {HOST_GPU(0, 0), HOST_GPU(2304, 2304)}},
    // p1
    {0, 64, 1, {HOST_GPU(256, 256), HOST_GPU(2304, 2304)}},
    // p2
    {0, 64, 2, {HOST_GPU(512, 512), HOST_GPU(2304, 2304)}},
    // p3
    {0, 64, 3, {HOST_GPU(768, 768), HOST_GPU(2304, 2304)}},
    // p4
    {0, 64, 4, {HOST_GPU(1024, 1024), HOST_GPU(2304, 2304)}},
    // p5
    {0, 64, 5, {HOST_GPU(1280, 1280), HOST_GPU(2304, 2304)}},
    // p6
    {0, 64, 6, {HOST_GPU(1536, 1536), HOST_GPU(2304, 2304)}},
    // p7
    {0, 64, 7, {HOST_GPU(1792, 1792), HOST_GPU(2304, 2304)}},
    // p8
    {0, 64, 8, {HOST_GPU(2048, 2048), HOST_GPU(2304, 2304)}}
};
LARGE_TABLE int k00_update_first[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
KERNEL(256) k00_update(
    char *arena)
{
    DECLARE_BLOCK;
    enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };
    BLOCK_RANGE(from, to, 9);
    int j = chunk_owner(k00_update_first, 9, from);
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
                    const float v_4 = fma_of(v_2[k], -0.1f, v_1[k]);
                    out_1_1[k] = v_4;
                }
                store_f32(p_1 + i, out_1_1, VW);
            }
            break;
        }
        }
    }
}
