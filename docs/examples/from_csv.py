"""Converts a table for a trainer that reads npy files.

    python3 docs/examples/from_csv.py TABLE.csv LABEL FOLDER

The first line of TABLE.csv has the names of its columns; LABEL is one of them.
Columns of numbers are standardised to mean 0 and deviation 1; a column with any
other text becomes one column for each of its values.  The label's values are
classes in the order of their names.  FOLDER gets train_x.npy, train_y.npy and
columns.json, which says what each column is, for use on new rows.
"""
import csv
import json
import os
import sys

import numpy as np


def column(name, texts):
    """Columns of numbers, and what is needed to make them again."""
    if "" in texts:
        sys.exit(f"row {texts.index('') + 2}: no value of {name}")
    try:
        values = np.array(texts, dtype=float)
    except ValueError:
        kinds = sorted(set(texts))
        return ([[text == kind for text in texts] for kind in kinds],
                [{"column": name, "is": kind} for kind in kinds])
    mean, deviation = values.mean(), values.std() or 1.0
    return ([(values - mean) / deviation],
            [{"column": name, "mean": mean, "deviation": deviation}])


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    table, label, folder = sys.argv[1:]
    with open(table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or label not in rows[0]:
        sys.exit(f"{table} has no column {label}")
    classes = sorted({row[label] for row in rows})
    numbers, meaning = [], []
    for name in rows[0]:
        if name != label:
            columns, says = column(name, [row[name] or "" for row in rows])
            numbers += columns
            meaning += says
    os.makedirs(folder, exist_ok=True)
    np.save(f"{folder}/train_x.npy", np.array(numbers, np.float32).T.copy())
    np.save(f"{folder}/train_y.npy",
            np.array([classes.index(row[label]) for row in rows], np.int32))
    with open(f"{folder}/columns.json", "w", encoding="utf-8") as file:
        json.dump({"columns": meaning, "classes": classes}, file, indent=1)
    print(f"{len(rows)} rows, {len(numbers)} columns, {len(classes)} classes")


if __name__ == "__main__":
    main()
