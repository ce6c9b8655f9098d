"""Draws pictures from what the compiler says of a model.

draw.py NAME SINTER MODEL.net OUT.svg

where NAME is kernel, memory, pipeline or step.  The same compiler and model give
the same bytes.
"""
import json
import math
import re
import subprocess
import sys

MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
INK, SOFT, RULE, PAPER = "#1d2126", "#5c646c", "#d8d8d2", "#fdfdfb"
FORWARD, BACKWARD, UPDATE, CALL = "#4c78b5", "#a4649b", "#7b8794", "#c2762a"


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(value):
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """Elements of an SVG file on a panel of its own, which suits light and dark
    pages."""

    def __init__(self, title, width, height):
        self.size, self.parts = (width, height), []
        self.parts.append(f"<title>{escaped(title)}</title>")
        self.rect(0.5, 0.5, width - 1, height - 1, PAPER, RULE, 8)

    def rect(self, x, y, width, height, fill, stroke="none", radius=0, title=None):
        inside = f"<title>{escaped(title)}</title>" if title else ""
        self.parts.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" fill="{fill}" stroke="{stroke}" rx="{radius}"'
            + (f">{inside}</rect>" if inside else "/>"))

    def text(self, x, y, text, fill=INK, size=12, anchor="start", mono=False, weight=None):
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" fill="{fill}" font-size="{size}"'
            + (f' text-anchor="{anchor}"' if anchor != "start" else "")
            + (f' font-family="{MONO}" xml:space="preserve"' if mono else "")
            + (f' font-weight="{weight}"' if weight else "")
            + f">{escaped(text)}</text>")

    def path(self, d, stroke, width=1.0, opacity=1.0, fill="none", arrow=False):
        self.parts.append(
            f'<path d="{d}" fill="{fill}" stroke="{stroke}" stroke-width="{number(width)}"'
            + (f' stroke-opacity="{opacity}"' if opacity < 1 else "")
            + (' marker-end="url(#arrow)"' if arrow else "") + "/>")

    def write(self, path):
        width, height = self.size
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" font-family="{SANS}">\n'
                '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{SOFT}"/>'
                "</marker></defs>\n" + "\n".join(self.parts) + "\n</svg>\n")


# ---- what the compiler says ----

def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def page_data(sinter, model):
    """The JSON in the page of sinter report."""
    page = said(sinter, "report", model, "-o", "-")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def checked(sinter, model):
    """The totals of sinter check for the plan that the page shows."""
    return json.loads(said(sinter, "check", "--json", "--target=cuda", model))


def facts(sinter, model):
    """The figures at the head of the report, as text."""
    check = checked(sinter, model)
    moved = next(s for s in check["steps"] if s["name"] == "train")["bytes_moved"]
    return (f"{check['model']}: {check['launches']} launches "
            f"({check['launches_without_joins']} unmerged), {bytes_text(moved)} moved, "
            f"arena {bytes_text(check['arena_bytes'])}, {check['parameters']:,} parameters")


def bytes_text(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "GiB"
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"


def is_update(launch):
    return any(o["op"] == "assign" for o in launch["operations"])


def is_backward(launch):
    written = {t["node"] for t in launch["writes"]}
    left = [o for o in launch["operations"] if o["node"] in written]
    return bool(left) and all(o["backward"] for o in left)


def pass_of(launch):
    return "update" if is_update(launch) else "backward" if is_backward(launch) else "forward"


COLOURS = {"forward": FORWARD, "backward": BACKWARD, "update": UPDATE}


# ---- a fused kernel beside the lines that it comes from ----

KINDS = {"batch_norm": FORWARD, "relu": BACKWARD, "add": CALL}
LINE, LETTER = 16, 7.25


def kernel_of(data):
    """The first forward kernel in which all three of KINDS share a launch."""
    for l in data["kernels"]["launches"]:
        kinds = {kind_of(o["path"]) for o in l["operations"]}
        if l["step"] == "train" and l["text"] and KINDS.keys() <= kinds and not is_backward(l):
            return l
    raise SystemExit("draw.py: no kernel computes batch_norm, relu and add")


def kind_of(path):
    return re.sub(r"_\d+$", "", (path or "").split(".")[-1])


def loop_of(text):
    """The loop over the rows, which is all of a kernel that computes elements."""
    lines = text.split("\n")
    first = next(i for i, s in enumerate(lines) if re.match(r" *(UNROLL_\d )?for \(int i = ", s))
    indent = lines[first][:-len(lines[first].lstrip())]
    last = next(i for i in range(first, len(lines)) if lines[i] == indent + "}")
    return [s.removeprefix(indent) for s in lines[first:last + 1]]


def colour_of(line, kinds):
    """The kind of the operation whose value the line computes."""
    found = re.search(r"\b(?:v|out)(\d+)(?:\[\w+\])? *(?:=|\[VW\];)", line)
    return kinds.get(int(found[1])) if found else None


def source_lines(data, numbers):
    """The lines with their numbers; long ones are broken at arrows."""
    text = data["sources"][0]["text"].split("\n")
    out = []
    for n in numbers:
        line = re.sub(r"  +as", " as", text[n - 1]).strip()
        parts = re.split(r"(?<=\S) (?=\|>)", line)
        rows = [parts[0]]
        for part in parts[1:]:
            if len(rows[-1]) + len(part) < 34:
                rows[-1] += " " + part
            else:
                rows.append("  " + part)
        out += [(n if i == 0 else None, row) for i, row in enumerate(rows)]
    return out


def kernel_picture(sinter, model, out):
    data = page_data(sinter, model)
    kernel = kernel_of(data)
    kinds = {o["node"]: kind_of(o["path"]) for o in kernel["operations"]}
    numbers = sorted({n for c in kernel["charges"] for n in (c["line"], c["own_line"]) if n})
    source, code = source_lines(data, numbers), loop_of(kernel["text"])
    left, top = 24, 72
    middle = left + LETTER * (4 + max(len(s) for _, s in source)) + 70
    width = math.ceil(middle + LETTER * max(map(len, code)) + 24)
    height = top + LINE * len(code) + 50
    p = Picture(f"{kernel['name']} beside its model lines", width, height)
    p.text(left, 28, data["sources"][0]["file"], weight=600, size=14)
    p.text(middle, 28, kernel["name"], weight=600, size=14)
    p.text(middle, 46, f"one launch: {bytes_text(kernel['bytes'])} read and written", SOFT)
    at = {}
    y = top + LINE * len(code) / 2 - LINE * (len(source) + 4 * len(numbers)) / 2
    for n, text in source:
        y += LINE if n is None else 5 * LINE
        if n is not None:
            p.text(left, y, f"{n:3d}", SOFT, mono=True)
        for kind, colour in KINDS.items():
            for found in re.finditer(rf"\b{kind}\b", text):
                x = left + LETTER * (4 + found.start())
                p.rect(x - 2, y - 12, LETTER * len(kind) + 4, 17, colour + "33", radius=3)
                at[kind] = (x + LETTER * len(kind) + 2, y - 4)
        p.text(left + LETTER * 4, y, text, mono=True)
    seen = set()
    for i, line in enumerate(code):
        y = top + LINE * i
        kind = colour_of(line, kinds)
        indent = len(line) - len(line.lstrip())
        if kind in KINDS:
            p.rect(middle + LETTER * indent - 2, y - 12, LETTER * (len(line) - indent) + 4, LINE,
                   KINDS[kind] + "33")
            if kind not in seen and kind in at:
                x0, y0 = at[kind]
                x1, y1 = middle + LETTER * indent - 4, y - 4
                p.path(f"M{number(x0)} {number(y0)}C{number(x0 + 60)} {number(y0)} "
                       f"{number(x1 - 60)} {number(y1)} {number(x1)} {number(y1)}", KINDS[kind], 1.4)
            seen.add(kind)
        p.text(middle, y, line, mono=True)
    x = left
    for kind, colour in KINDS.items():
        p.rect(x, height - 30, 12, 12, colour + "66", radius=2)
        p.text(x + 18, height - 20, kind, SOFT)
        x += 110
    p.text(x, height - 20, "v186 in the kernel is %186 of the graph.".replace("186", str(
        kernel["reads"][2]["node"])), SOFT)
    p.write(out)


# ---- memory over time ----

def memory_picture(sinter, model, out):
    m = page_data(sinter, model)["memory"]
    left, top, width, height = 84, 62, 780, 300
    fixed = m["states"] + m["inputs"]
    p = Picture("memory over time", left + width + 20, top + height + 74)
    p.text(20, 28, f"Memory of one training step: {bytes_text(m['arena_bytes'])}, planned before "
           "it runs", weight=600, size=14)
    across = lambda k: left + width * k / m["launches"]
    up = lambda b: top + height * (1 - b / m["arena_bytes"])
    for i in range(5):
        y = up(m["arena_bytes"] * i / 4)
        p.path(f"M{left} {number(y)}H{left + width}", RULE)
        p.text(left - 8, y + 4, bytes_text(m["arena_bytes"] * i / 4), SOFT, 11, "end")
    p.rect(left, up(fixed), width, up(0) - up(fixed), UPDATE)
    for b in m["buffers"]:
        end = min(b["to"] + 1, m["launches"])
        p.rect(across(b["from"]), up(b["offset"] + b["bytes"]),
               max(0.5, across(end) - across(b["from"])),
               max(0.4, up(b["offset"]) - up(b["offset"] + b["bytes"])),
               BACKWARD if b["backward"] else FORWARD, PAPER + "88")
    points = [f"{number(across(k))} {number(up(b + fixed))}H{number(across(k + 1))}"
              for k, b in enumerate(m["live"])]
    p.path("M" + "L".join(points), INK, 1.2)
    x = across(m["peak"] + 0.5)
    p.path(f"M{number(x)} {top}V{top + height}", CALL, 1.4)
    p.text(x, top - 8, f"peak: {bytes_text(m['live'][m['peak']] + fixed)} live", CALL, 12, "middle")
    p.text(left + width / 2, top + height + 20,
           f"time: launches 0 to {m['launches'] - 1}; height: address in the arena", SOFT, 12,
           "middle")
    x, y = left, top + height + 46
    for colour, text in ((FORWARD, "forward"), (BACKWARD, "backward"),
                         (UPDATE, "states and inputs")):
        p.rect(x, y, 12, 12, colour, radius=2)
        p.text(x + 18, y + 10, text, SOFT)
        x += 34 + 7 * len(text)
    p.path(f"M{x} {y + 6}h24", INK, 1.2)
    p.text(x + 30, y + 10, "bytes that are live", SOFT)
    p.write(out)


# ---- the pipeline ----

STAGES = (("graph", "grad"), ("typed", "simplified"), ("fused", "plan"))


def nodes_of(sinter, model, stage):
    text = said(sinter, "show", stage, model)
    return len(re.findall(r"^ *%\d+ =", text, re.M))


def passes_of(sinter):
    """The passes on graphs, and those on kernels, in their order."""
    names = [line.split()[0] for line in said(sinter, "passes").splitlines() if line.strip()]
    kernel = [name.removeprefix("kernel-") for name in names if name.startswith("kernel-")]
    # A kernel is built with its width, so sinter opt does not run that pass.
    return [name for name in names if not name.startswith("kernel-")], ["width"] + kernel


def box(p, x, y, width, height, title, lines, colour):
    p.rect(x, y, width, height, colour + "22", colour, 6)
    p.text(x + width / 2, y + 21, title, weight=600, size=13, anchor="middle")
    for i, line in enumerate(lines):
        p.text(x + width / 2, y + 40 + 15 * i, line, SOFT, 11, "middle")


def arrow(p, x0, x1, y, file):
    p.text((x0 + x1) / 2, y - 10, file, SOFT, 11, "middle")
    p.path(f"M{x0 + 6} {y}H{x1 - 4}", SOFT, 1.4, arrow=True)


def pass_row(p, names, columns, top, colour):
    """Numbered passes, row by row; returns the end."""
    for i, name in enumerate(names):
        x, y = 20 + 172 * (i % columns), top + 26 * (i // columns)
        p.rect(x, y, 162, 20, colour + "18", radius=4)
        p.text(x + 8, y + 14, f"{i + 1}", SOFT, 10)
        p.text(x + 28, y + 14, name, size=12, mono=True)
    return top + 26 * math.ceil(len(names) / columns)


def pipeline_picture(sinter, model, out):
    names, kernel_names = passes_of(sinter)
    check = checked(sinter, model)
    counts = {s: nodes_of(sinter, model, s) for pair in STAGES for s in pair}
    columns, top = 5, 224
    rows = math.ceil(len(names) / columns) + math.ceil(len(kernel_names) / columns)
    p = Picture("the pipeline", 900, top + 26 * rows + 76)
    p.text(20, 28, f"From a model file to a trainer: {check['model']}", weight=600, size=14)
    boxes = (("frontend", ["parses, checks shapes,", "expands functions", "", "train graph:",
                           f"{counts['graph']} nodes"], FORWARD),
             (f"{len(names)} passes", ["backward pass, types,", "fusion, order, memory", "",
                                       f"train graph: {counts['grad']}", "with gradients,",
                                       f"{counts['plan']} in the plan"], BACKWARD),
             ("codegen", ["a tree for each kernel,", f"{len(kernel_names)} passes on it,",
                          "one text for C and CUDA", "",
                          f"{check['launches_without_joins']} kernels and calls", "in a step"],
              CALL))
    files = ("model.net", "graph", "plan")
    x, y, wide, gap = 84, 48, 138, 60
    for i, (title, lines, colour) in enumerate(boxes):
        box(p, x, y, wide, 136, title, lines, colour)
        arrow(p, x - gap, x, y + 68, files[i])
        x += wide + gap
    for y, title, lines, file, to in (
            (48, "cc", ["steps, kernels in C", "and the runtime"], ".c", "trainer"),
            (120, "NVRTC", ["kernels in CUDA C,", "at start on a GPU"], ".cu", "cubin")):
        box(p, x, y, wide, 64, title, lines, UPDATE)
        arrow(p, x - gap, x, y + 32, file)
        arrow(p, x + wide, x + wide + gap, y + 32, to)
    p.text(20, top - 14, "The passes on graphs in their order; each result is verified:", SOFT)
    end = pass_row(p, names, columns, top, BACKWARD)
    p.text(20, end + 22, "The passes on kernels:", SOFT)
    end = pass_row(p, kernel_names, columns, end + 34, CALL)
    p.text(20, end + 22, "sinter passes lists all but width, which belongs to the building of a "
           "kernel; sinter show prints the stages between them.", SOFT)
    p.write(out)


# ---- the data flow of a step ----


def step_picture(sinter, model, out):
    data = page_data(sinter, model)
    launches = [l for l in data["kernels"]["launches"] if l["step"] == "train"]
    counted = next(s for s in data["steps"] if s["name"] == "train")
    forward = [l for l in launches if pass_of(l) == "forward"]
    rest = [l for l in launches if pass_of(l) != "forward"]
    row, top, wide = 17, 114, 330
    tall = max(len(forward), len(rest))
    height = top + row * tall + 60
    p = Picture("the data flow of a training step", 900, height)
    p.text(20, 28, f"One training step of {data['kernels']['model']}", weight=600, size=14)
    p.text(20, 48, f"{counted['launches_without_joins']} kernels and library calls. On CUDA, "
           f"merged cooperative launches make them {counted['launches']} launches.", SOFT)
    p.text(20, 66, "A curve is a tensor that goes through memory; the widest are the largest. "
           "A repeated name is a shared kernel.", SOFT)
    p.text(20, 100, "forward, downwards", FORWARD, weight=600)
    p.text(880 - wide, 100, "backward and update, upwards", BACKWARD, weight=600)
    at = {}
    for i, l in enumerate(forward):
        at[l["index"]] = (20, top + row * i, "forward")
    for i, l in enumerate(rest):
        at[l["index"]] = (880 - wide, top + row * (tall - 1 - i), "rest")
    writer = {}
    for l in launches:
        for t in l["reads"]:
            if t["node"] in writer:
                flow_draw(p, at[writer[t["node"]]], at[l["index"]], wide, row, t["bytes"])
        for t in l["writes"]:
            writer[t["node"]] = l["index"]
    for l in launches:
        x, y, _ = at[l["index"]]
        colour = COLOURS[pass_of(l)]
        p.rect(x, y, wide, row - 3, colour + ("55" if l["kind"] == "call" else "1c"),
               colour if l["kind"] == "call" else "none", 3)
        p.text(x + 6, y + 11, l["name"], INK, 10, mono=True)
    x, y = 20, height - 30
    for text, colours, filled in (("library call", (FORWARD, BACKWARD), True),
                                  ("kernel", (FORWARD, BACKWARD, UPDATE), False)):
        for colour in colours:
            p.rect(x, y, 24, 13, colour + ("55" if filled else "1c"),
                   colour if filled else "none", 3)
            x += 30
        p.text(x, y + 11, text, SOFT)
        x += 110
    p.text(x, y + 11, "blue: forward; purple: backward; grey: update", SOFT)
    p.write(out)


def flow_draw(p, start, end, wide, row, size):
    """A tensor from one launch to another: across, or along the margin."""
    x0, y0, side = start
    x1, y1, other = end
    y0, y1 = y0 + row / 2 - 1.5, y1 + row / 2 - 1.5
    thick = 0.6 + 0.35 * max(0, math.log2(size / 2**20 + 1))
    if side == other and abs(y1 - y0) <= row:
        return  # the next launch: it stands below or above
    if side == other:
        reach = min(90, 14 + abs(y1 - y0) / 6) * (1 if side == "forward" else -1)
        x = x0 + wide if side == "forward" else x0
        d = f"M{x} {number(y0)}C{number(x + reach)} {number(y0)} {number(x + reach)} {number(y1)} {x} {number(y1)}"
    else:
        d = (f"M{x0 + wide} {number(y0)}C{x0 + wide + 110} {number(y0)} "
             f"{x1 - 110} {number(y1)} {x1} {number(y1)}")
    p.path(d, SOFT, thick, 0.28)


PICTURES = {"kernel": kernel_picture, "memory": memory_picture,
            "pipeline": pipeline_picture, "step": step_picture}

if __name__ == "__main__":
    if sys.argv[1] == "facts":
        print(facts(*sys.argv[2:]))
    else:
        PICTURES[sys.argv[1]](*sys.argv[2:])
