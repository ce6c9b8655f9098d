// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Planes: raw pixels, as Caffe's Datum has them.

#include "runtime/data/decode.h"

#include <stdlib.h>

bool rt_planes_decode(RtDecoding *d, RtError *e) {
    enum { COLOURS = 3 };
    size_t w = (size_t)d->w, plane = (size_t)d->h * w;
    size_t bytes = d->ready + d->left;
    if (!rt_image_begin(d, (uint32_t)d->h, (uint32_t)d->w, e) ||
        !rt_image_reserve(d, d->h, d->w, bytes + COLOURS * w, e))
        return false;
    uint8_t *all = rt_image_rest(d, &bytes, e), *row = malloc(COLOURS * w);
    if (all != NULL && row == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    bool good = all != NULL && row != NULL, grey = bytes == plane;
    for (size_t y = 0; good && y < (size_t)d->h; y++) {
        for (size_t x = 0; x < w; x++)
            for (size_t c = 0; c < COLOURS; c++) {
                size_t of = grey ? 0 : d->decoder->rgb ? c : COLOURS - 1 - c;
                row[COLOURS * x + c] = all[of * plane + y * w + x];
            }
        rt_resize_row(d->resize, row);
    }
    free(row);
    free(all);
    return good;
}
