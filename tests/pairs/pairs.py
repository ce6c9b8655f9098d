#!/usr/bin/env python3
"""Features in pairs: runs what table.txt says, and fails where it says nothing.

Of each two features the table has a cell: letters of trials, which trials.py
has under their names.  A trial counts for a cell only if one of its runs had
both features.  What is refused is listed with its code.
"""

import concurrent.futures
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import bench  # noqa: E402
import trials  # noqa: E402


def sections(path):
    """The lines of each [part] of the table."""
    found, lines = {}, []
    for line in open(path):
        line = line.split("#")[0].rstrip()
        if line.startswith("["):
            lines = found.setdefault(line.strip("[]"), [])
        elif line:
            lines.append(line)
    return found


def read_cells(lines):
    """{(row, column): letters}, of the triangle below the features."""
    columns, cells = lines[0].split(), {}
    for at, line in enumerate(lines[1:]):
        row, *letters = line.split()
        bench.insist(row == (columns + [None])[at + 1],
                     "the row", row, "is not in its place")
        bench.insist(len(letters) == at + 1, "the row", row, "has",
                     len(letters), "cells for", at + 1)
        cells.update({(row, c): x for c, x in zip(columns, letters)})
    bench.insist(len(cells) == len(columns) * (len(columns) - 1) // 2,
                 "rows are missing")
    return columns, cells


def run_trial(name):
    """What is wrong, or "", and the features that its runs had."""
    bench.trial_begin()
    try:
        getattr(trials, name)()
        return "", bench.trial.seen
    except bench.Failure as failure:
        return str(failure), bench.trial.seen


def refused(lines):
    """Yields what is wrong with combinations that a code answers."""
    for line in lines:
        code, settings = line.split(None, 1)
        keys = dict(s.split(": ", 1) for s in settings.split("; "))
        try:
            bench.build(bench.recipe(**keys))
            yield "not refused: " + settings
        except bench.Failure as failure:
            if "error[%s]" % code not in str(failure):
                yield "%s is not why: %s" % (code, failure)


def check(table):
    columns, cells = read_cells(table["cells"])
    trial = {}
    for line in table["trials"]:
        letter, name, state = line.split()[:3]
        trial[letter] = (name, state)
    runs = [n for n, s in trial.values() if s == "runs"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(runs, pool.map(run_trial, runs)))
    wrong = ["%s: %s" % (n, w) for n, (w, _) in results.items() if w]
    for (a, b), letters in cells.items():
        tried = False
        for name, state in (trial[x] for x in letters):
            seen = state == "runs" and any(
                {a, b} <= s for s in results[name][1])
            tried |= seen
            if state == "runs" and not seen and not results[name][0]:
                wrong.append(f"{name} has no run with {a} and {b}")
        if not tried and all(trial[x][1] == "runs" for x in letters):
            wrong.append(f"{a} and {b} are not tried")
    used = set("".join(cells.values()))
    wrong += ["no cell names " + trial[x][0] for x in trial if x not in used]
    unknown = set(columns) - set(bench.MARKS) - {"tail"}
    wrong += ["no mark of %s" % f for f in unknown]
    return wrong + list(refused(table["refused"]))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        trials.table_is_whole()
        wrong = check(sections(os.path.join(here, "table.txt")))
    except bench.Failure as failure:
        wrong = [str(failure)]
    finally:
        shutil.rmtree(bench.work)
    for w in wrong:
        print("FAILED:", w, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
