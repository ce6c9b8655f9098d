"""Writes the weights of gpt2.net under the names of Hugging Face's GPT-2.

usage: gpt2_names.py CHECKPOINT FILE
"""
import json
import re
import struct
import sys


def renamed(name):
    """h_2.ln_1.scale is h.1.ln_1.weight; h_2.attn.c_attn.bias.value loses
    its end."""
    name = re.sub(r"^h(_(\d+))?\.", lambda m: f"h.{int(m[2] or 1) - 1}.", name)
    name = re.sub(r"^(w[tp]e)\.value$", r"\1.weight", name)
    return re.sub(r"\.scale$", ".weight", name.removesuffix(".value"))


def is_weight(name):
    return re.match(r"(h(_\d+)?|w[tp]e|ln_f)\.(.*\.)?(value|scale|bias)$", name)


def main(checkpoint, path):
    with open(checkpoint, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    out, tensors = {}, b""
    mask = {"dtype": "F32", "shape": [1, 1, 1, 1]}
    for name, t in header.items():
        if name == "__metadata__" or not is_weight(name):
            continue
        first, last = t["data_offsets"]
        place = [len(tensors), len(tensors) + last - first]
        shape = t["shape"][1:] if name == "wpe.value" else t["shape"]
        out[renamed(name)] = {
            "dtype": t["dtype"], "shape": shape, "data_offsets": place}
        tensors += data[first:last]
    out["h.0.attn.bias"] = {
        **mask, "data_offsets": [len(tensors), len(tensors) + 4]}
    tensors += bytes(4)
    text = json.dumps(out).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + tensors)


main(*sys.argv[1:])
