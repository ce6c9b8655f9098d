"""Looks at the pictures of the documents: pictures.py FOLDER CHECK.json FACTS.

All are whole and small; the screenshot's file says the FACTS of the model that it
shows; the terminal shows the arena of the host's plan, as CHECK.json has it, and a
run to its end; the curves are those of two runs.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

MOST, MAX_OF_ALL = 80_000, 500_000
SVG = "{http://www.w3.org/2000/svg}"
folder, check, facts = sys.argv[1:]
faults = []


def expect(holds, text):
    if not holds:
        faults.append(text)


def description(png):
    """The text that docs/pictures/quantize.py puts into a PNG file."""
    at = 8
    while at < len(png):
        length = int.from_bytes(png[at:at + 4], "big")
        if png[at + 4:at + 8] == b"tEXt":
            return png[at + 8:at + 8 + length].split(b"\0", 1)[1].decode("latin-1")
        at += 12 + length
    return None


def texts(name):
    """The lines of text of an SVG file."""
    root = xml.parse(os.path.join(folder, name)).getroot()
    return ["".join(e.itertext()) for e in root.iter(SVG + "text")]


sizes = {}
for name in os.listdir(folder):
    if name.endswith((".svg", ".png")):
        sizes[name] = os.path.getsize(os.path.join(folder, name))
        expect(sizes[name] <= MOST, f"{name} has {sizes[name]} bytes, of {MOST}")
        expect(name.endswith(".png") or texts(name), f"{name} has no text")
expect(sum(sizes.values()) <= MAX_OF_ALL, f"all have {sum(sizes.values())} bytes")

with open(os.path.join(folder, "report.png"), "rb") as file:
    said = description(file.read())
expect(said == facts, f"report.png shows {said}, and today it is {facts}; "
       "docs/pictures/make --only report")

lines = texts("terminal.svg")
with open(check, encoding="utf-8") as file:
    arena = f"{json.load(file)['arena_bytes'] / 2**20:.1f}"
expect(any(arena in line for line in lines) or not any("MiB" in line for line in lines),
       f"terminal.svg has no arena of {arena} MiB; docs/pictures/make --only terminal DIR")
expect(sum(line.startswith("$ ") for line in lines) >= 1, "terminal.svg has no command")
expect(any(re.search(r"\b5/5\b", line) for line in lines), "terminal.svg has no fifth epoch")

labels = texts("curves.svg")
for label in ("lr-0.4", "lr-0.05", "loss", "accuracy", "learning rate", "epoch"):
    expect(label in labels, f"curves.svg has no label {label}; docs/pictures/make --only curves DIR")

print("\n".join(faults), file=sys.stderr)
sys.exit(bool(faults))
