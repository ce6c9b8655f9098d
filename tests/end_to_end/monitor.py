#!/usr/bin/env python3
"""Checks a run of monitor.net by the rows of its evaluations, with the rules of
docs/language.md: monitor.py RUN.  Prints the steps of its best checkpoints."""

import json
import math
import pathlib
import sys

EPOCH = 20
run = pathlib.Path(sys.argv[1])
rows = [json.loads(line) for line in open(run / "metrics.jsonl")]
test = {row["step"]: row for row in rows if row["split"] == "test"}
train = {row["step"]: row for row in rows if row["split"] == "train"}

best, best_at, reduced_at, rate = math.inf, 0, 0, 0.5
accuracy, kept = -1, []
reductions = 0
for step in sorted(test):
    row = test[step]
    # The rate of the epoch that ends with this evaluation.
    assert math.isclose(train[step]["lr"], rate, rel_tol=1e-6), (step, rate)
    if row["loss"] < best:
        best, best_at = row["loss"], step
    if row["accuracy"] > accuracy:
        accuracy = row["accuracy"]
        kept.append(step)
    assert row.get("stops", False) == (step - best_at >= 6 * EPOCH), step
    if step - max(best_at, reduced_at) >= 2 * EPOCH:
        reduced_at, rate = step, rate * 0.5
        reductions += 1
assert reductions > 1, reductions
assert len(kept) > 2 and max(test) < 30 * EPOCH, (kept, max(test))
assert test[max(test)]["stops"]
files = sorted(path.name for path in run.glob("best-*"))
assert files == [f"best-{step:08d}.safetensors" for step in kept], files
print(*kept)
