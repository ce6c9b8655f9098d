"""Stand-ins for the data that a reader of docs/your-data.md has, in the current
folder: archives of public data sets with a table for bench/fetch, folders of
photos, images as arrays, a table, a text, and with PyTorch a ResNet-18.
"""
import csv
import gzip
import hashlib
import io
import os
import struct
import sys
import tarfile

import numpy as np
from PIL import Image

random = np.random.default_rng(1)


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"batches/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def cifar(count):
    """Records of images whose brightness tells the class."""
    label = random.integers(0, 10, count)
    pixels = np.clip(label[:, None] * 25 + random.normal(0, 20, (count, 3072)),
                     0, 255)
    return np.hstack([label[:, None], pixels]).astype(np.uint8).tobytes()


def packed_idx(path, array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    head += b"".join(struct.pack(">I", size) for size in array.shape)
    with gzip.open(path, "wb") as file:
        file.write(head + array.tobytes())


def public_sets(folder):
    os.makedirs(folder)
    files = {f"data_batch_{i}.bin": cifar(200) for i in range(1, 6)}
    archive(f"{folder}/cifar-10-binary.tar.gz",
            {**files, "test_batch.bin": cifar(200)})
    for part, count in (("train", 600), ("t10k", 200)):
        packed_idx(f"{folder}/{part}-images-idx3-ubyte.gz",
                   random.integers(0, 256, (count, 28, 28)).astype(np.uint8))
        packed_idx(f"{folder}/{part}-labels-idx1-ubyte.gz",
                   random.integers(0, 10, count).astype(np.uint8))
    with open(f"{folder}/table", "w", encoding="utf-8") as table:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".gz"):
                kind = "cifar10" if name.startswith("cifar") else "mnist"
                with open(f"{folder}/{name}", "rb") as file:
                    md5 = hashlib.md5(file.read()).hexdigest()
                print(kind, md5, f"file://{os.path.abspath(folder)}/{name}",
                      file=table)


def picture(kind):
    """Stripes of one direction or spots, in any two colours."""
    height, width = random.integers(96, 140, 2)
    y, x = np.mgrid[0:height, 0:width] * 2 * np.pi / random.uniform(8, 16)
    wave = {"rows": np.sin(y), "columns": np.sin(x),
            "spots": np.sin(x) * np.sin(y)}[kind]
    share = (wave > random.uniform(-0.2, 0.2))[..., None]
    a, b = random.uniform(0, 255, (2, 3))
    noise = random.normal(0, 20, (height, width, 3))
    return Image.fromarray(np.clip(np.where(share, a, b) + noise, 0, 255)
                           .astype(np.uint8))


KINDS = ("columns", "rows", "spots")


def photos(folder, count):
    for kind in KINDS:
        os.makedirs(f"{folder}/{kind}")
        for i in range(count):
            picture(kind).save(f"{folder}/{kind}/{i:03}.jpg", quality=90)


def table(path, rows):
    """Flowers of two kinds that differ in their length."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["length", "width", "petals", "kind"])
        for _ in range(rows):
            tall = random.integers(0, 2)
            out.writerow([round(random.normal(3 + 2 * tall, 0.7), 2),
                          round(random.normal(1, 0.2), 2),
                          random.integers(5, 9),
                          ["anemone", "tulip"][tall]])


def text(path, words):
    some = ["the", "compiler", "reads", "a", "model", "and", "writes", "it"]
    with open(path, "w", encoding="utf-8") as file:
        file.write(" ".join(random.choice(some, words)))


def main():
    public_sets("build/mirror")
    photos("data/photos", 32)
    table("data/flowers.csv", 400)
    text("data/book.txt", 20000)


if __name__ == "__main__":
    sys.exit(main())
