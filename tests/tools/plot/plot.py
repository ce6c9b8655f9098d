"""Reads a drawing of sinter plot as XML and compares it with what is expected:
plot.py FILE KEY=VALUE...

curves, charts and dots count elements; points are those of all curves, gaps the
breaks in them; text must stand whole in a label; bytes is the most that the file
may have; highest and lowest say that a curve reaches the top and the bottom of
its chart; hostile that no element is one that plot does not draw.
"""
import re
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {SVG + name for name in ("svg", "title", "text", "line", "g", "path", "circle")}
CHART = 170  # its height
LETTER = 6  # the width of most

path, *wanted = sys.argv[1:]
with open(path, "rb") as file:
    content = file.read()
root = xml.fromstring(content)
labels = [e.text for e in root.iter(SVG + "text")]
paths = [e.get("d") for e in root.iter(SVG + "path")]
points = [[tuple(map(float, p)) for p in re.findall(r"([\d.-]+) ([\d.-]+)", d)] for d in paths]
width, height = map(float, root.get("viewBox").split()[2:])
faults = []

for curve in points:
    for x, y in curve:
        if not (0 <= x <= width and 0 <= y <= height):
            faults.append(f"a point {x}, {y} is outside {width} by {height}")
for e in root.iter(SVG + "text"):
    if e.get("text-anchor") == "start" and float(e.get("x")) + LETTER * len(e.text) > width:
        faults.append(f"{e.text!r} is cut off")
for e in root.iter():
    if e.tag not in KNOWN:
        faults.append(f"there is a {e.tag}")
    for name, value in e.attrib.items():
        if "nan" in value or "inf" in value:
            faults.append(f"{e.tag} has {name} {value}")

counts = {
    "curves": len(paths),
    "charts": sum(e.get("text-anchor") == "start" and e.get("x") == "70.0"
                  for e in root.iter(SVG + "text")),
    "points": sum(map(len, points)),
    "dots": sum(1 for _ in root.iter(SVG + "circle")),
    "gaps": sum(d.count("M") - 1 for d in paths),
    "hostile": 1,
}
for word in wanted:
    key, value = word.split("=", 1)
    if key == "text":
        # An argument's broken bytes are what a drawing has as '?'.
        if not any(value in label for label in labels):
            faults.append(f"no label has {value!r}: {labels}")
    elif key == "bytes":
        if len(content) > int(value):
            faults.append(f"{len(content)} bytes")
    elif key in ("highest", "lowest"):
        ys = [y for curve in points for _, y in curve]
        span = max(ys) - min(ys)
        if abs(span - CHART) > 0.5:
            faults.append(f"curves span {span} of {CHART}: a spike is lost")
    elif counts[key] != int(value):
        faults.append(f"{counts[key]} {key}, not {value}")

print("\n".join(faults), file=sys.stderr)
sys.exit(bool(faults))
