// k00_var:
// %2..%4: sum var
// 4672 bytes read and written (host: 4672)
KERNEL(256, 2) k00_var(
    const float *RESTRICT p0,
    float *RESTRICT p3,
    float *RESTRICT p4,
    float *RESTRICT partials,
    int *RESTRICT counter)
{
    DECLARE_BLOCK;
    enum { ROWS = 144, C = 8, VW = LANES(C), CG = C / VW };
    enum { NT = THREADS(256), TX = THREADS_ALONG(CG, NT), TY = NT / TX };
    enum { WIDTH = 24 };
    SHARED float shared[REDUCE_LANES * NT];
    SHARED float samples[3 * VW * TX];
    const int tx = threadIdx.x % TX;
    const int ty = threadIdx.x / TX;
    BLOCK_RANGE(lo, hi, ROWS);
    GRID_DEPENDENCY_WAIT();
    LAUNCH_DEPENDENTS();
    for (int g0 = 0; g0 < CG; g0 += TX) {
        const int g = g0 + tx;
        const int c = g * VW;
        float s3[VW];
        LANES_DO(k, VW) s3[k] = 0.0f;
        float q4[VW];
        LANES_DO(k, VW) q4[k] = 0.0f;
        if (g < CG && ty < 3) {
            for (int j = ty; j < 3; j += TY) {
                const int r = j == 0 ? 0 : j == 1 ? ROWS / 2 : ROWS - 1;
                const int i1 = r % 6;
                const int i2 = r / 6 % 6;
                const int i3 = r / 36;
                float v0[VW];
                load_f32(v0, p0 + (((size_t)i3 * 6 + i2) * 6 + i1) * 8 + c, VW);
                LANES_DO(k, VW) samples[(j * VW + k) * TX + tx] = v0[k];
            }
        }
        BARRIER();
        float pivot4[VW];
        LANES_DO(k, VW) {
            pivot4[k] = median(samples[k * TX + tx], samples[(VW + k) * TX + tx],
                samples[(2 * VW + k) * TX + tx]);
        }
        if (g < CG && ty == 0) {
            LANES_DO(k, VW) put_f32(partials + (size_t)block * WIDTH + 16 + c + k, pivot4[k]);
        }
        if (g < CG) {
            for (int i = lo + ty; i < hi; i += TY) {
                float v0_1[VW];
                load_f32(v0_1, p0 + (size_t)i * C + c, VW);
                LANES_DO(k, VW) {
                    const float d4 = v0_1[k] - pivot4[k];
                    s3[k] += d4;
                    q4[k] = fma_of(d4, d4, q4[k]);
                }
            }
        }
        columns_sum(partials + (size_t)block * WIDTH + 0 + g0 * VW, s3, VW, C - g0 * VW, shared,
            TX, NT);
        columns_sum(partials + (size_t)block * WIDTH + 8 + g0 * VW, q4, VW, C - g0 * VW, shared,
            TX, NT);
    }
    if (last_block(counter, blocks)) {
        NO_UNROLL(turn, (8 + THREADS_ALONG(8, NT) - 1) / THREADS_ALONG(8, NT)) {
            const int c = turn * THREADS_ALONG(8, NT) + threadIdx.x % THREADS_ALONG(8, NT);
            const float pivot = get_f32(partials + (size_t)block * WIDTH + 16 + (c < 8 ? c :
                0));
            float s[2];
            grid_sum(s, 2, 1, c, 8 + 8, 8, partials + 0, WIDTH, blocks, THREADS_ALONG(8, NT),
                shared, NT);
            if (threadIdx.x < THREADS_ALONG(8, NT) && c < 8) {
                put_f32(p3 + c, fma_of(144.0f, pivot, s[0]));
                put_f32(p4 + c, variance_of_sums(s[0], s[1], 144.0f));
            }
        }
    }
}
