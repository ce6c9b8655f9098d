#!/usr/bin/env python3
"""Compares the kernels of models with a column of tests/golden/nvrtc.txt.

usage: totals.py COLUMN LISTING

A line of the listing is MODEL KERNEL REGISTERS SHARED INSTRUCTIONS, and maybe
more; its first line names the compiler.  A cell of the table is INSTRUCTIONS/REGISTERS: the sum
over the kernels of a model, and the largest; it has no registers where they are
0.  The sum may grow or shrink by 1 %, registers may not grow.  BLESS=1 rewrites
the cells.  A cell of - and the totals of another compiler are not compared.
"""

import os
import sys

TABLE = os.path.join(os.environ["SINTER_SOURCE"], "tests/golden/nvrtc.txt")
SLACK = 0.01


def listing_read(path):
    """The compiler, and {model: (instructions, registers)}."""
    compiler, *lines = open(path).read().splitlines()
    totals = {}
    for line in lines:
        model, _, registers, _, instructions = line.split()[:5]
        count, most = totals.get(model, (0, 0))
        totals[model] = (count + int(instructions), max(most, int(registers)))
    return compiler, totals


def table_read():
    """Comments, columns and {model: {column: cell}}."""
    lines = open(TABLE).read().splitlines()
    head = [line for line in lines if line.startswith("#")]
    columns, *rows = [line.split() for line in lines[len(head):]]
    return head, columns[1:], {r[0]: dict(zip(columns[1:], r[1:]))
                               for r in rows}


def table_write(head, columns, rows):
    with open(TABLE, "w") as f:
        print(*head, sep="\n", file=f)
        for name, cells in [("model", dict(zip(columns, columns)))] + sorted(
                rows.items()):
            words = [cells.get(c, "-") for c in columns]
            print(f"{name:<16}", *(f"{w:>10}" for w in words), file=f)


def fault(cell, total):
    """The sentence about a total that is not that of its cell, or None."""
    if cell is None:
        return "the table has no row"
    if cell == "-":
        return None
    count, _, most = cell.partition("/")
    change = total[0] / int(count) - 1
    if total[1] > int(most or 0):
        return f"{total[1]} registers, at most {most}"
    if abs(change) > SLACK:
        return f"{total[0]} instructions, {change:+.1%} from {count}"
    return None


def main(column, path):
    compiler, totals = listing_read(path)
    head, columns, rows = table_read()
    if os.environ.get("BLESS"):
        for model, total in totals.items():
            rows.setdefault(model, {})[column] = (
                "%d/%d" % total if total[1] else str(total[0]))
        table_write([compiler] + head[1:], columns, rows)
        return 0
    if head[0] != compiler:
        print(f"{TABLE} is of {head[0]}, not of {compiler}: not compared")
        return 0
    faults = {m: fault(rows.get(m, {}).get(column), t)
              for m, t in totals.items()}
    for model, text in faults.items():
        if text:
            print(f"{model}, {column}: {text}")
    if any(faults.values()):
        print("if this is right, say why in the commit and bless the table:"
              f" BLESS=1 ctest -L {'ptx' if column == 'step' else 'nvrtc'}")
        return 1
    return 0


sys.exit(main(*sys.argv[1:]))
