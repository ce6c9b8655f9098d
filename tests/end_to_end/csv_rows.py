#!/usr/bin/env python3
"""The same rows: csv_rows.py FILE.csv FILE.jsonl"""

import csv
import json
import sys

with open(sys.argv[1], newline="") as file:
    table = list(csv.DictReader(file))
with open(sys.argv[2]) as file:
    rows = [json.loads(line) for line in file]
rows = [row for row in rows if row["split"] != "time"]
assert len(rows) == len(table) > 8, (len(rows), len(table))
for row, line in zip(rows, table):
    assert row.keys() <= line.keys(), row.keys() - line.keys()
    for key, text in line.items():
        value = row.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert float(text) == value, (key, text, value)
        else:
            assert text == (value or ""), (key, text, value)
