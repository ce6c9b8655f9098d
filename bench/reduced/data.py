#!/usr/bin/python3
"""Subsets and conversions of CIFAR-10 for short trainings.

usage: data.py few|grey CIFAR10_DIR OUT_DIR

few: all training images and the first 1,000 test images.
grey: idx files of the middle 28 x 28 pixels of the images, in grey.
"""
import pathlib
import struct
import sys

SIDE, MIDDLE = 32, range(2, 30)
PLANE = SIDE * SIDE
RECORD = 1 + 3 * PLANE
FEW = 1000


def grey(record):
    """ITU-R 601 luma of the middle of an image with three planes, 0 to 255."""
    return bytes(
        (299 * record[p] + 587 * record[p + PLANE]
         + 114 * record[p + 2 * PLANE] + 500) // 1000
        for y in MIDDLE for p in range(1 + y * SIDE + MIDDLE[0],
                                       1 + y * SIDE + MIDDLE[-1] + 1))


def write_few(cifar10, out):
    out.mkdir(parents=True)
    for batch in cifar10.glob("data_batch_*.bin"):
        (out / batch.name).symlink_to(batch.resolve())
    test = (cifar10 / "test_batch.bin").read_bytes()
    (out / "test_batch.bin").write_bytes(test[:FEW * RECORD])


def write_idx(files, out, name):
    data = b"".join(f.read_bytes() for f in files)
    records = [data[i:i + RECORD] for i in range(0, len(data), RECORD)]
    images = b"".join(grey(r) for r in records)
    (out / f"{name}-images-idx3-ubyte").write_bytes(
        struct.pack(">IIII", 0x803, len(records), len(MIDDLE), len(MIDDLE))
        + images)
    (out / f"{name}-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", 0x801, len(records)) + bytes(r[0] for r in records))


def write_grey(cifar10, out):
    out.mkdir(parents=True)
    write_idx(sorted(cifar10.glob("data_batch_*.bin")), out, "train")
    write_idx([cifar10 / "test_batch.bin"], out, "t10k")


def main():
    makers = {"few": write_few, "grey": write_grey}
    if len(sys.argv) != 4 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    makers[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))


if __name__ == "__main__":
    main()
