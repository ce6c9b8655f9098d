"""Checks the table of launches by time: slowest.py TRACE STEPS TEXT.

TEXT has the table that a run printed, TRACE what it was made of: the rows are
the ten launches that took longest in all, with their means and shares.
"""

import json
import re
import sys


def fail(text):
    sys.exit(f"slowest: {text}")


trace, steps, text = sys.argv[1:]
with open(trace) as file:
    events = json.load(file)["traceEvents"]
track = {
    e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"
}
alike = {}
for e in events:
    if e["ph"] != "X" or "lines" not in e["args"]:
        continue
    if track[e["tid"]] not in ("kernels", "library calls"):
        fail(f"{e} is on {track[e['tid']]}")
    name = e["name"].rsplit(" ", 1)[0]
    key = name, e["args"]["lines"], e["args"]["layer"]
    alike.setdefault(key, []).append((e["ts"], e["dur"]))
# A step may have several launches that are called the same; they take turns.
took = {}
for key, times in alike.items():
    turns, rest = divmod(len(times), int(steps))
    if rest:
        fail(f"{key} was launched {len(times)} times in {steps} steps")
    for i, (_, dur) in enumerate(sorted(times)):
        took.setdefault((*key, i % turns), []).append(dur)
whole = sum(sum(times) for times in took.values())
longest = sorted(took.items(), key=lambda item: -sum(item[1]))

with open(text) as file:
    lines = file.read().split("\n")
at = [i for i, line in enumerate(lines) if "launches by time" in line]
if len(at) != 1:
    fail(f"{len(at)} tables")
rows = []
for line in lines[at[0] + 1 :]:
    row = re.fullmatch(r" *([0-9.]+) +([0-9.]+) %  (.*)", line)
    if not row:
        break
    rows.append((float(row[1]), float(row[2]), row[3]))
if len(longest) < 12 or len(rows) != 11:
    fail(f"{len(longest)} launches, {len(rows)} rows")
# Half of a tenth of a microsecond or of a percent, and half of the trace's last
# digit for each end: launches that took as long may stand in any order.
NEAR = 0.05 + 0.001


def mean_of(times):
    return sum(times) / len(times)


for (mean, share, words), (_, times) in zip(rows[:10], longest):
    if abs(mean - mean_of(times)) > NEAR:
        fail(f"{words}: {mean}, not {mean_of(times)}")
    if abs(share - 100 * sum(times) / whole) > NEAR:
        fail(f"{words}: {share} %, not {100 * sum(times) / whole}")
    if not any(
        words == "  ".join(w for w in key[:3] if w)
        and abs(mean - mean_of(own)) <= NEAR
        for key, own in longest
    ):
        fail(f"{words} took no {mean}")
mean, share, words = rows[10]
rest = [t for _, times in longest[10:] for t in times]
if words != f"{len(longest) - 10} others":
    fail(f"{words}, not {len(longest) - 10}")
if abs(mean - mean_of(rest)) > NEAR:
    fail(f"others: {mean}, not {mean_of(rest)}")
if abs(share - 100 * sum(rest) / whole) > NEAR:
    fail(f"others: {share} %")
