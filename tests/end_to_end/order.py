"""The order of samples as docs/numerics.md has it, against what trainers do:
order.py PAGE.

Sample i has the target 2^i, the model's output is 0 and the loss |target|, so
the loss of a step times its number of samples is a sum of powers of two that
names them.  The trainers of order.sh are called by their recipe.
"""
import json
import math
import os
import struct
import subprocess
import sys

SAMPLES = 20


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) % 2**64
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    x = (x ^ x >> 27) * 0x94d049bb133111eb % 2**64
    return x ^ x >> 31


def random(key, counter):
    return mix(mix(key) ^ counter)


def order(seed, epoch, position, count):
    bits = 0
    while 2**bits < count:
        bits += 1
    low = bits // 2
    high = bits - low
    key = random(random(seed, 0x6f72646572), epoch)
    x = position
    while True:
        a, b = x >> low, x % 2**low
        for i in 0, 2, 4:
            a ^= random(key + i, b) % 2**high
            b ^= random(key + i + 1, a) % 2**low
        x = a << low | b
        if x < count:
            return x


def kept(samples, held):
    """The training samples that --validation leaves, and those it takes."""
    parts = [], []
    for i in range(samples):
        parts[(i + 1) * held // samples > i * held // samples].append(i)
    stay = samples - held
    assert parts[0] == [j * samples // stay for j in range(stay)]
    return parts


def steps(seed, epochs, samples, batch, accumulate, drop_last):
    """The samples of each step: a list of sets."""
    count = len(samples)
    batches = -(-count // batch)
    if drop_last:
        batches = count // batch // accumulate * accumulate
    for epoch in range(epochs):
        for first in range(0, batches, accumulate):
            last = min(first + accumulate, batches)
            places = range(first * batch, min(last * batch, count))
            yield {samples[order(seed, epoch, p, count)] for p in places}


def named(loss, count):
    total = round(loss * count)
    assert abs(loss * count - total) < 0.1, (loss, count)
    return {i for i in range(SAMPLES) if total >> i & 1}


def rows(trainer, seed, validation):
    out = f"{trainer}.{seed}.{validation}"
    command = [f"./{trainer}", "--data", "data", "--out", out, "--log-every=1",
               f"--seed={seed}", f"--metrics={out}.rows"]
    if validation:
        command.append(f"--validation={validation}")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in open(f"{out}.rows")]


def check(trainer, batch, accumulate, drop_last, seed, validation):
    stay, held = kept(SAMPLES, validation)
    expected = list(steps(seed, 3, stay, batch, accumulate, drop_last))
    found = rows(trainer, seed, validation)
    losses = [row["loss"] for row in found if row["split"] == "step"]
    assert len(losses) == len(expected), (trainer, len(losses), len(expected))
    for step, (loss, samples) in enumerate(zip(losses, expected)):
        got = named(loss, len(samples))
        assert got == samples, (trainer, seed, validation, step, got, samples)
    for row in found:
        if row["split"] == "test" and validation:
            assert named(row["loss"], len(held)) == set(held), (trainer, held)


def check_page(page):
    """The worked example of the page is what its formulas give."""
    for epoch in range(3):
        key = random(random(0, 0x6f72646572), epoch)
        samples = " ".join(str(order(0, epoch, p, 10)) for p in range(10))
        line = f"| {epoch} | `0x{key:x}` | {samples} |"
        assert line in page, line


def write_npy(path, numbers):
    head = ("{'descr': '<f4', 'fortran_order': False, "
            f"'shape': ({len(numbers)}, 1), }}").ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)))
        file.write(head.encode() + struct.pack(f"<{len(numbers)}f", *numbers))


def write_data():
    os.makedirs("data")
    for part in "train", "test":
        write_npy(f"data/{part}_x.npy", [0] * SAMPLES)
        write_npy(f"data/{part}_y.npy", [math.ldexp(1, i) for i in range(SAMPLES)])


if __name__ == "__main__":
    check_page(open(sys.argv[1]).read())
    write_data()
    for seed in 0, 7, 2**31 - 1:
        check("one", 1, 1, False, seed, 0)
        check("one", 1, 1, False, seed, 4)  # 16 samples: a power of two
        check("one", 1, 1, False, seed, 19)
        check("tail", 6, 1, False, seed, 0)
        check("tail", 6, 1, False, seed, 3)
        check("dropped", 6, 1, True, seed, 3)
        check("gathered", 3, 2, False, seed, 0)
        check("gathered", 3, 2, False, seed, 7)
        check("gathered_dropped", 3, 2, True, seed, 3)
