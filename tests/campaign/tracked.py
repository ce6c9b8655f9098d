"""Compares the rows of a run with those in a tracker's files:
tracked.py METRICS.jsonl TRACKER.  The files are in the current folder."""
import glob
import json
import sqlite3
import struct
import sys


def trackio():
    (path,) = glob.glob("trackio/sinter.db")
    rows = sqlite3.connect(path).execute("select step, metrics from metrics")
    return [(step, json.loads(values)) for step, values in rows]


def records(data):
    """The records of a LevelDB log: blocks of 32 KiB, behind 7 bytes."""
    at, record = 7, b""
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def wandb():
    from wandb.proto import wandb_internal_pb2
    (path,) = glob.glob("wandb/offline-run-*/*.wandb")
    with open(path, "rb") as f:
        data = f.read()
    for text in records(data):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(text)
        if record.HasField("history"):
            yield record.history.step.num, {
                item.key or item.nested_key[0]: json.loads(item.value_json)
                for item in record.history.item}


expected, found = {}, {}
with open(sys.argv[1]) as f:
    for row in map(json.loads, f):
        for key, value in row.items():
            if key not in ("split", "step"):
                expected[row["step"], f"{row['split']}/{key}"] = value
for step, values in {"wandb": wandb, "trackio": trackio}[sys.argv[2]]():
    for key, value in values.items():
        if not key.startswith("_"):
            found[step, key] = value
assert len(expected) > 50, expected
assert found == expected, set(found.items()) ^ set(expected.items())
print(len(found), "values")
