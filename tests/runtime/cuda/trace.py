"""Checks a trace of a run: trace.py FILE STEPS DEVICE SECONDS.

The file is in the trace event format.  Its tracks are those of the run; spans
of a track lie within one another or apart, all within the time that the run
took; each step has its launches, with lines of the model.
"""

import json
import sys


def fail(text):
    sys.exit(f"trace: {text}")


def nested(spans, track):
    """Spans in the file's order: what is within another comes after it."""
    open_ends = []
    for span in spans:
        begin, end = span["ts"], span["ts"] + span["dur"]
        while open_ends and open_ends[-1] <= begin + 0.002:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + 0.002:
            fail(f"on {track}, {span['name']} overlaps what is before it")
        open_ends.append(end)
    return True


METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def well_formed(events):
    """Perfetto merges thread 0 with another one."""
    names = []
    for e in events:
        numbers = e["pid"], e["tid"]
        if not all(type(number) is int and number > 0 for number in numbers):
            fail(f"{e} has no process or thread")
        if e["ph"] == "M":
            if [*e["args"]] != [METADATA[e["name"]]]:
                fail(f"{e} has other arguments")
            names += [e["tid"]] if e["name"] == "thread_name" else []
        elif e["ph"] != "X" or e["tid"] not in names:
            fail(f"{e} is no span of a named thread")
        elif not all(type(e[key]) in (int, float) for key in ("ts", "dur")):
            fail(f"{e} has no time")
    if len(names) != len(set(names)):
        fail(f"a thread has two names: {names}")


path, steps, device, seconds = sys.argv[1:]
with open(path) as file:
    trace = json.load(file)
events = trace["traceEvents"]
well_formed(events)
track = {
    e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"
}
spans = {name: [] for name in track.values()}
for e in events:
    if e["ph"] == "X":
        spans[track[e["tid"]]].append(e)

wanted = {"run", "copies", "kernels", "library calls", "loader 0"}
if not wanted <= set(spans):
    fail(f"tracks are {sorted(spans)}")
for name, list_ in spans.items():
    if name.startswith("loader"):
        list_.sort(key=lambda e: e["ts"])
    nested(list_, name)
    for e in list_:
        if e["ts"] < 0 or e["dur"] < 0:
            fail(f"{e['name']} began before the trace")
        if e["ts"] + e["dur"] > 1e6 * float(seconds):
            fail(f"{e['name']} ended after the run")

taken = [e for e in spans["run"] if e["name"] == "step"]
if [e["args"]["number"] for e in taken] != list(range(4, 4 + int(steps))):
    fail(f"steps {[e['args'] for e in taken]}")
for name in "take batch", "wait for data", "launch":
    if len([e for e in spans["run"] if e["name"] == name]) != int(steps):
        fail(f"not one '{name}' in each step")
if len(spans["copies"]) != int(steps):
    fail("not one copy for each step")

# A step of tiny.net is fourteen kernels, eight calls; a GPU merges some kernels.
launched = [e for e in spans["kernels"] if "lines" in e["args"]]
calls = spans["library calls"]
if len(calls) != 8 * int(steps):
    fail(f"{len(calls)} calls")
if device == "host" and len(launched) != 14 * int(steps):
    fail(f"{len(launched)} kernels")
if device != "host" and not 0 < len(launched) <= 14 * int(steps):
    fail(f"{len(launched)} kernels")
for e in launched + calls:
    if "tiny.net:" not in e["name"] or not e["args"]["lines"]:
        fail(f"{e} has no line of the model")
if device == "host":
    # Launches are made and over within the step that makes them.
    for e in launched + calls:
        if not any(
            s["ts"] <= e["ts"] and e["ts"] + e["dur"] <= s["ts"] + s["dur"] + 0.002
            for s in taken
        ):
            fail(f"{e['name']} is in no step")
else:
    if "one by one" not in trace["otherData"]["note"]:
        fail("nothing is said of the graph")
