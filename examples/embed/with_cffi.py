"""The same with cffi, which reads the header: with_cffi.py libmlp.so WEIGHTS."""
import sys

import cffi
import numpy as np

path = sys.argv[1]
with open(path.removesuffix(".so") + ".h") as file:
    lines = [line for line in file if not line.startswith(("#", "extern", "}"))
             or line.startswith("};")]
ffi = cffi.FFI()
ffi.cdef("".join(lines))
library = ffi.dlopen(path)


def check(status):
    if status != 0:
        raise RuntimeError(ffi.string(library.mlp_error()).decode())


model = ffi.gc(library.mlp_create(b"host", 0), library.mlp_free)
check(0 if model else 1)
check(library.mlp_load(model, sys.argv[2].encode()))
images = np.random.default_rng(1).integers(0, 256, (300, 28, 28, 1), np.uint8)
output = np.empty((len(images), library.mlp_outputs), np.float32)
check(library.mlp_predict(model, ffi.from_buffer("uint8_t[]", images),
                          len(images), ffi.from_buffer("float[]", output)))
print(output.argmax(1)[:10])
