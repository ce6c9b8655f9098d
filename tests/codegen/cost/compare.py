#!/usr/bin/env python3
"""Compares the estimates of `sinter show kernels --json` with machine code.

usage: compare.py LISTING FILE.json...

A line of the listing is MODEL KERNEL REGISTERS SHARED INSTRUCTIONS IN_FLIGHT.
Prints the median and the 90th percentile of the relative errors, and the worst
kernels; the exit status is 1 if a median is above LIMIT.  So it is if a kernel of
a training step that moves BULK bytes has fewer than ENOUGH bytes of loads in
flight on a multiprocessor, and tests/golden/in_flight.txt has no line of it or
one with more; BLESS=1 rewrites the lines of these models.
"""

import json
import os
import sys

LIMIT = 0.15
WORST = 8
BULK, ENOUGH = 8 << 20, 32 << 10
GOLDEN = os.path.join(os.environ["SINTER_SOURCE"], "tests/golden/in_flight.txt")
STEPS = "train", "update", "apply", "accumulate"
SHARED = {"sm_80": 164 << 10, "sm_90": 228 << 10, "sm_100": 228 << 10,
          "sm_120": 100 << 10}


def launches_read(path):
    """{(model, kernel)}: of the launches with one text, that of a training step
    which moves the most bytes."""
    launches = [k for k in json.load(open(path))["launches"] if k["estimate"]]
    launches.sort(key=lambda k: (k["step"] in STEPS, k["bytes"]))
    model = path.split("/")[-1][:-5]
    return {(model, k["text_of"]): k for k in launches}


def listing_read(path):
    """{(model, kernel): (registers, shared, instructions, in flight)}."""
    lines = [line.split() for line in open(path) if not line.startswith("#")]
    return {(w[0], w[1]): tuple(map(int, w[2:])) for w in lines}


def share(errors, part):
    return sorted(errors)[min(len(errors) - 1, int(part * len(errors)))]


def resident(registers, shared, arch):
    """Blocks of 256 threads, whose warps get registers in units of 256."""
    warp = -(-registers * 32 // 256) * 256
    threads = 1536 if arch == "sm_120" else 2048
    return min(65536 // (8 * warp), threads // 256,
               SHARED[arch] // (-(-shared // 128) * 128 + 1024))


# ---- estimates ----

def estimates(launch):
    e = launch["estimate"]
    loads = e["bytes_in_flight"] // max(256 * e["resident_blocks"], 1)
    return e["registers"], e["code"], loads


def errors_print(title, name, rows):
    """Prints the errors of (measured, estimated, model, kernel)."""
    error = [abs(e / m - 1) for m, e, _, _ in rows]
    median = share(error, 0.5)
    print(f"{title} {name}: {len(rows)} kernels, "
          f"error {median:.1%} median, {share(error, 0.9):.1%} at 90 %")
    for m, e, model, kernel in sorted(
            rows, key=lambda r: -abs(r[1] / r[0] - 1))[:WORST]:
        print(f"  {model:<16} {kernel[:44]:<44} {m:>6} {e:>6}")
    return median


def errors_compare(title, measured, known):
    worst = 0
    for i, (name, at) in enumerate(
            [("registers", 0), ("instructions", 2), ("bytes in flight", 3)]):
        rows = [(measured[key][at], estimates(known[key])[i], *key)
                for key in known
                if key in measured and measured[key][at] > 0
                and (at < 3 or known[key]["bytes"] >= BULK)]
        worst = max(worst, errors_print(title, name, rows))
    if worst > LIMIT:
        print(f"a median error is above {LIMIT:.0%}")
    return worst > LIMIT


# ---- loads in flight ----

def few_find(arch, measured, known):
    """{(model, kernel without its number): bytes}, their number and that of
    all; kernels with equal names are one line."""
    few, number, count = {}, 0, 0
    for (model, kernel), launch in known.items():
        if (model, kernel) not in measured or launch["bytes"] < BULK \
                or launch["step"] not in STEPS:
            continue
        count += 1
        registers, shared, _, loads = measured[model, kernel]
        blocks = min(resident(registers, shared, arch),
                     -(-launch["blocks"] // 132))
        bytes = 256 * blocks * loads
        name = model, kernel.partition("_")[2]
        if bytes < ENOUGH:
            number += 1
            few[name] = min(bytes, few.get(name, bytes))
    return few, number, count


def golden_read(arch):
    """The head of the file, its other lines, {(model, kernel): bytes}."""
    head, others, few = [], [], {}
    for line in open(GOLDEN):
        words = line.split()
        if line.startswith("#"):
            head.append(line)
        elif words[0] == arch:
            few[words[1], words[2]] = int(words[3])
        else:
            others.append(line)
    return head, others, few


def flight_compare(arch, measured, known):
    few, number, count = few_find(arch, measured, known)
    models = {model for model, _ in known}
    head, others, golden = golden_read(arch)
    print(f"{arch}: {count - number} of {count} bulk kernels have "
          f"{ENOUGH >> 10} KiB in flight")
    if os.environ.get("BLESS"):
        kept = {k: v for k, v in golden.items() if k[0] not in models} | few
        lines = others + [f"{arch} {m} {k} {v}\n" for (m, k), v in kept.items()]
        open(GOLDEN, "w").writelines(head + sorted(lines))
        return False
    bad = {k: v for k, v in few.items() if v < golden.get(k, ENOUGH)}
    for (model, kernel), bytes in bad.items():
        print(f"{model} {kernel}: {bytes} bytes in flight, of at least "
              f"{golden.get((model, kernel), ENOUGH)}")
    if bad:
        print("if this is right, say why in the commit and bless the list:"
              " BLESS=1 ctest -R '^cost$'")
    return bool(bad)


def main(listing, *files):
    measured = listing_read(listing)
    known = {}
    for path in files:
        known |= launches_read(path)
    if not known.keys() & measured.keys():
        print("no kernel is compared")
        return 1
    arch = listing.split("/")[-1]
    return errors_compare(arch, measured, known) | flight_compare(
        arch, measured, known)


sys.exit(main(*sys.argv[1:]))
