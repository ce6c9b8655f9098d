"""Writes data/*.npy and data/classes.txt from a CSV file: from-csv.py FILE.csv

The first line names the columns.  All are numbers but the last, which is the
class.  Commas, semicolons or tabs separate them.  Every fifth row, after
shuffling, is for the test.
"""
import csv
import os
import sys

try:
    import numpy
except ImportError:
    sys.exit("from-csv.py needs NumPy: apt-get install python3-numpy")


def rows_of(path):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=first.count))
            return [row for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        sys.exit(f"cannot read {path}: {error}")


def number(text, column, row):
    try:
        return float(text)
    except ValueError:
        sys.exit(f"column {column}, row {row}: {text!r} is not a number; "
                 "encode it as numbers, or drop the column")


if len(sys.argv) != 2:
    sys.exit(__doc__)
title, *rows = rows_of(sys.argv[1]) or [[]]
if len(title) < 2 or not rows:
    sys.exit(f"{sys.argv[1]} has {len(title)} columns and {len(rows)} rows "
             "below their names: it needs two columns and a row")
for i, row in enumerate(rows, 1):
    if len(row) != len(title):
        sys.exit(f"row {i} has {len(row)} columns, the first line {len(title)}")
    row[:-1] = [number(text, title[k], i) for k, text in enumerate(row[:-1])]
numpy.random.default_rng(0).shuffle(rows)
names = sorted({row[-1] for row in rows})
x = numpy.array([row[:-1] for row in rows], numpy.float32)
y = numpy.array([names.index(row[-1]) for row in rows], numpy.int64)
test = numpy.arange(len(rows)) % 5 == 0
os.makedirs("data", exist_ok=True)
for part, kept in (("train", ~test), ("test", test)):
    numpy.save(f"data/{part}_x.npy", x[kept])
    numpy.save(f"data/{part}_y.npy", y[kept])
with open("data/classes.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{name}\n" for name in names)
print(f"{x.shape[1]} columns, {len(names)} classes: {', '.join(names)}")
