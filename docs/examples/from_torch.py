"""Converts the weights of torchvision's resnet18 for photos.net.

    python3 docs/examples/from_torch.py resnet18.pth photos.safetensors

The first file is a state_dict, as torch.save writes it and torchvision
downloads it.  Names become those of photos.net, filters [K, C, R, S] become
[K, R, S, C], and the counters of batches are left out.
"""
import json
import re
import struct
import sys

import torch

KINDS = {"weight": "scale"}  # what a norm's parameters are called here


def name_of(layer):
    """The layer of photos.net: "layer2.1.bn2" is "layer2.batch_norm_5"."""
    whole = {"conv1": "stem.conv_1", "bn1": "stem.batch_norm_1", "fc": "head"}
    if layer in whole:
        return whole[layer]
    stage, block, kind, number = re.fullmatch(
        r"layer(\d)\.(\d)\.(conv|bn|downsample\.)(\d)", layer).groups()
    if kind == "downsample.":
        kind, number = ("conv", "bn")[int(number)], 3
    before = int(block) * (2 if stage == "1" else 3)
    op = {"conv": "conv", "bn": "batch_norm"}[kind]
    return f"layer{stage}.{op}_{before + int(number)}"


def converted(state):
    for name, tensor in state.items():
        layer, kind = name.rsplit(".", 1)
        if kind == "num_batches_tracked":
            continue
        to = name_of(layer)
        if "batch_norm" in to:
            kind = KINDS.get(kind, kind)
        if tensor.dim() == 4:
            tensor = tensor.permute(0, 2, 3, 1)
        yield f"{to}.{kind}", tensor.detach().float().contiguous().numpy()


def save(arrays, path):
    """A safetensors file: the length of a header, the header, the numbers."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.tobytes())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    state = torch.load(sys.argv[1], map_location="cpu")
    arrays = dict(converted(state))
    save(arrays, sys.argv[2])
    print(f"{sys.argv[2]}: {len(arrays)} tensors")


if __name__ == "__main__":
    main()
