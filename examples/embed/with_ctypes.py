"""Predicts with the library of a model: with_ctypes.py libmlp.so WEIGHTS.

The arrays are the library's arguments as they are; nothing is copied.
"""
import ctypes
import sys

import numpy as np

library = ctypes.CDLL(sys.argv[1])
library.mlp_create.restype = ctypes.c_void_p
library.mlp_create.argtypes = [ctypes.c_char_p, ctypes.c_int]
library.mlp_error.restype = ctypes.c_char_p
library.mlp_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
library.mlp_predict.argtypes = [
    ctypes.c_void_p,
    np.ctypeslib.ndpointer(np.uint8, flags="C"), ctypes.c_int64,
    np.ctypeslib.ndpointer(np.float32, flags="C")]
library.mlp_free.argtypes = [ctypes.c_void_p]


def check(status):
    if status != 0:
        raise RuntimeError(library.mlp_error().decode())


model = library.mlp_create(b"host", 0)
check(0 if model else 1)
check(library.mlp_load(model, sys.argv[2].encode()))
images = np.random.default_rng(1).integers(0, 256, (300, 28, 28, 1), np.uint8)
output = np.empty((len(images), 10), np.float32)
check(library.mlp_predict(model, images, len(images), output))
print(output.argmax(1)[:10])
library.mlp_free(model)
