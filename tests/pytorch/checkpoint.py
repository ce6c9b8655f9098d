"""A trainer's checkpoint as arrays."""

import json
import struct

import numpy as np

TYPES = {"F32": np.float32, "I32": np.int32}


def load(path):
    """The tensors of a safetensors file by name."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[slice(*t["data_offsets"])], TYPES[t["dtype"]]
        ).reshape(t["shape"])
        for name, t in header.items()
    }
