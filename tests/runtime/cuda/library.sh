#!/bin/sh
# A library's instance on the stand-in for a GPU has the outputs of one on the
# host.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
export SINTER_DOUBLE_THREADS=1

python3 -c 'import ctypes' 2>/dev/null || exit 77
cat >small.net <<'NET'
model Small(image: u8[N, 8, 8, 3]) -> f32[N, 2] {
  image |> normalize(mean=127, std=60) |> conv(4, 3) |> flatten |> linear(2)
}

train Small {
  data      = synthetic()
  batch     = 2
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build small.net --library -o libsmall
cat >both.py <<'PYTHON'
import ctypes

library = ctypes.CDLL("./libsmall.so")
library.small_create.restype = ctypes.c_void_p
library.small_create.argtypes = [ctypes.c_char_p, ctypes.c_int]
library.small_predict.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64,
                                                          ctypes.c_void_p]
library.small_begin.argtypes = [ctypes.c_void_p] + [ctypes.c_int64] * 2
library.small_free.argtypes = [ctypes.c_void_p]
library.small_error.restype = ctypes.c_char_p
image = (ctypes.c_uint8 * (2 * 8 * 8 * 3))(*[k % 251 for k in range(384)])
outputs = []
for device in b"host", b"cuda:0":
    model = library.small_create(device, 1)
    output = (ctypes.c_float * 4)()
    if (not model or library.small_begin(model, 100, 1) != 0 or
            library.small_predict(model, image, 2, output) != 0):
        raise SystemExit(library.small_error().decode())
    library.small_free(model)
    outputs.append(list(output))
apart = max(abs(a - b) for a, b in zip(*outputs))
print(outputs, apart)
if not apart <= 1e-4 or max(map(abs, outputs[0])) < 1e-2:
    raise SystemExit("the outputs differ")
PYTHON
expect 0 python3 both.py
exit 0
