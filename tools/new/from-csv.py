"""Writes data/*.npy from a CSV file: a line of names, then numbers, and a class
in the last column.  Every fifth row, after shuffling, is for the test."""
import csv
import os
import sys

import numpy

with open(sys.argv[1], newline="") as file:
    rows = [row for row in csv.reader(file) if row][1:]
numpy.random.default_rng(0).shuffle(rows)
names = sorted({row[-1] for row in rows})
x = numpy.array([row[:-1] for row in rows], numpy.float32)
y = numpy.array([names.index(row[-1]) for row in rows], numpy.int64)
test = numpy.arange(len(rows)) % 5 == 0
os.makedirs("data", exist_ok=True)
for part, kept in (("train", ~test), ("test", test)):
    numpy.save(f"data/{part}_x.npy", x[kept])
    numpy.save(f"data/{part}_y.npy", y[kept])
print(f"{x.shape[1]} columns, {len(names)} classes: {', '.join(names)}")
