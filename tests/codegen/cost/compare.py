#!/usr/bin/env python3
"""Compares the estimates of `sinter show kernels --json` with machine code.

usage: compare.py LISTING FILE.json...

A line of the listing is MODEL KERNEL REGISTERS SHARED INSTRUCTIONS.  Prints the
median and the 90th percentile of the relative errors, and the worst kernels;
the exit status is 1 if a median is above LIMIT.
"""

import json
import sys

LIMIT = 0.15
WORST = 8


def estimates_read(path):
    """{kernel: (instructions, registers)}, with the texts' own names."""
    launches = json.load(open(path))["launches"]
    return {k["name"]: (k["estimate"]["code"], k["estimate"]["registers"])
            for k in launches if k["estimate"]}


def listing_read(path, known):
    """[(model, kernel, measured, estimated)] of all kernels with estimates."""
    for line in open(path):
        if line.startswith("#"):
            continue
        model, kernel, registers, _, instructions = line.split()
        if kernel in known.get(model, {}):
            yield (model, kernel, (int(instructions), int(registers)),
                   known[model][kernel])


def share(errors, part):
    return sorted(errors)[min(len(errors) - 1, int(part * len(errors)))]


def main(listing, *files):
    known = {p.split("/")[-1][:-5]: estimates_read(p) for p in files}
    rows = list(listing_read(listing, known))
    if not rows:
        print("no kernel is compared")
        return 1
    worst = 0
    for i, name in enumerate(["instructions", "registers"]):
        error = [abs(e[i] / m[i] - 1) for _, _, m, e in rows]
        median = share(error, 0.5)
        worst = max(worst, median)
        print(f"{listing.split('/')[-1]} {name}: {len(rows)} kernels, "
              f"error {median:.1%} median, {share(error, 0.9):.1%} at 90 %")
        rows.sort(key=lambda r: -abs(r[3][i] / r[2][i] - 1))
        for model, kernel, measured, estimated in rows[:WORST]:
            print(f"  {model:<16} {kernel[:44]:<44} {measured[i]:>6} "
                  f"{estimated[i]:>6}")
    if worst > LIMIT:
        print(f"a median error is above {LIMIT:.0%}")
    return worst > LIMIT


sys.exit(main(*sys.argv[1:]))
