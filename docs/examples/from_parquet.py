"""Parquet files of images, as Hugging Face's datasets writes them, as shards.

    python3 docs/examples/from_parquet.py data/shards train train-*.parquet

A row has a struct `image` with the bytes of an image file, and a number
`label`.  Each file becomes a shard; the names of the classes are copied.
"""
import io
import json
import os
import sys
import tarfile

import pyarrow.parquet

out, part, *files = sys.argv[1:]
os.makedirs(out, exist_ok=True)


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


for k, file in enumerate(files):
    table = pyarrow.parquet.ParquetFile(file)
    with tarfile.open(f"{out}/{part}-{k:06d}.tar", "w") as tar:
        row = 0
        for batch in table.iter_batches(100, columns=["image", "label"]):
            for sample in batch.to_pylist():
                data = sample["image"]["bytes"]
                kind = {b"\x89PNG": "png", b"RIFF": "webp"}.get(data[:4], "jpg")
                add(tar, f"{k:06d}-{row:08d}.cls", b"%d" % sample["label"])
                add(tar, f"{k:06d}-{row:08d}.{kind}", data)
                row += 1

written = json.loads((table.schema_arrow.metadata or {}).get(b"huggingface",
                                                             b"{}"))
label = written.get("info", {}).get("features", {}).get("label", {})
with open(f"{out}/classes.txt", "w") as names:
    names.writelines(name + "\n" for name in label.get("names", []))
