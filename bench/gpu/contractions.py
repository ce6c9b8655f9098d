#!/usr/bin/python3
"""Contractions of a model one by one: tile kernel, library call, and PyTorch.

usage: contractions.py TILES LIBRARY GRAPH STEPS DEVICE f16|bf16

TILES and LIBRARY are traces (--profile) of STEPS steps of one trainer with tile
kernels and without them, GRAPH is the output of sinter show plan for the same step.  Prints
a line for each distinct contraction: name, how many the step has, microseconds
of the tile kernel, of the library call with the kernels that the tile kernel
replaces, and of PyTorch's function alone, all means; "-" if there is none.
PyTorch has the operands in the L2 cache where they fit; a step has not.
"""
import json
import re
import statistics
import sys
import time

CONTRACTION = re.compile(
    r"^  %(\d+) = (conv|conv_grad_input|conv_grad_weight|matmul) %(\d+), %(\d+)"
    r" ?(\{[^}]*\})? ?: act\[([\d,]*)\](?:.*?# \S+ ?(.*))?")
VALUE = re.compile(r"^  %(\d+) = .*: \w+\[([\d,]*)\]")


def numbers(text):
    return [int(n) for n in text.split(",")] if text else []


class Contraction:
    def __init__(self, match, shape):
        _, self.op, a, b, words, to, layer = match.groups()
        self.shapes = shape[a], shape[b], numbers(to)
        self.attrs = {
            name: [int(n) for n in re.findall(r"-?\d+", value)]
            for name, value in re.findall(r"(\w+) = (\[[^]]*\]|-?\d+)",
                                          words or "")}
        self.layer = (layer or "").replace(" backward", "").strip()
        self.kind = self.op, self.shapes, tuple(
            (k, tuple(v)) for k, v in sorted(self.attrs.items()))
        self.kind = repr(self.kind)

    def one(self, name):
        return self.attrs.get(name, [0])[0]

    def text(self):
        sizes = " ".join("x".join(map(str, s)) for s in self.shapes[:2])
        stride = self.attrs.get("stride", [1, 1])
        return f"{self.layer} {self.op} {sizes}" + \
            ("" if stride == [1, 1] else f" stride {stride[0]}")


def read_graph(path):
    """The contractions of the step, in the order of their launches."""
    shape, found = {}, []
    for line in open(path):
        value = VALUE.match(line)
        if value:
            shape[value[1]] = numbers(value[2])
        match = CONTRACTION.match(line)
        if match:
            found.append(Contraction(match, shape))
    return found


def read_launches(path, steps):
    """The launches of a step in order: (name, whether a library call, us)."""
    events = json.load(open(path))["traceEvents"]
    track = {e["tid"]: e["args"]["name"] for e in events
             if e["name"] == "thread_name"}
    launches = sorted(
        (e["ts"], e["name"].split(" ")[0],
         track[e["tid"]] == "library calls", e["dur"])
        for e in events if e["ph"] == "X" and "lines" in e.get("args", {}))
    period, rest = divmod(len(launches), steps)
    if rest:
        sys.exit(f"{path}: {len(launches)} launches in {steps} steps")
    return [(*launches[i][1:3],
             statistics.mean(x[3] for x in launches[i::period]))
            for i in range(period)]


def is_tile(launch):
    return re.match(r"t\d", launch[0]) is not None


END = "", True, 0


def pair(tiles, library):
    """For each call of the library, in order: its time, and that of the tile
    kernel in its place or None.  A tile kernel is where the call was, or where
    a kernel behind it was, before the next call; that counts with the call."""
    found, waits, at = [], None, 0
    for i, (name, is_call, us) in enumerate(library):
        tile = tiles[at] if at < len(tiles) else END
        if not is_tile(tile) and tile[0] == name:
            at += 1
            if is_call:
                found.append([us, None])
        elif is_call:
            found.append([us, None])
            waits = found[-1]
            behind = library[i + 1] if i + 1 < len(library) else END
            after = tiles[at + 1] if at + 1 < len(tiles) else END
            if is_tile(tile) and (behind[1] or behind[0] == after[0]):
                waits[1] = tile[2]
                at += 1
        elif is_tile(tile) and waits:
            waits[0] += us
            waits[1] = tile[2]
            at += 1
        else:
            sys.exit(f"launch {i}, {name}, is not among the tile kernels'")
    if at != len(tiles):
        sys.exit(f"{tiles[at][0]} has no call")
    return found


def torch_function(c, torch, device, kind):
    """PyTorch's function for a contraction; images are channels_last."""
    def tensor(shape):
        return torch.randn(shape, device=device).to(kind)

    def images(shape):
        return tensor(shape).permute(0, 3, 1, 2)
    a, b, to = c.shapes
    if c.op == "matmul":
        x, y = tensor(a), tensor(b)
        x = x.mT if c.one("ta") else x
        y = y.mT if c.one("tb") else y
        return lambda: torch.matmul(x, y)
    pad, stride = c.attrs["pad"], c.attrs["stride"]
    dilation, groups = c.attrs["dilation"], c.one("groups")
    if pad[0] != pad[1] or pad[2] != pad[3]:
        return None
    around = [pad[0], pad[2]]
    if c.op == "conv":
        x, w = images(a), images(b)
        return lambda: torch.nn.functional.conv2d(
            x, w, None, stride, around, dilation, groups)
    of_input = c.op == "conv_grad_input"
    dy = images(a)
    x, w = (images(to), images(b)) if of_input else (images(b), images(to))
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, stride, around, dilation, False, [0, 0], groups,
        [of_input, not of_input, False])


def torch_us(c, torch, device, kind, most=20):
    run = torch_function(c, torch, device, kind)
    if run is None:
        return None
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    times = []
    for i in range(most):
        wait()
        began = time.perf_counter()
        for _ in range(10):
            run()
        wait()
        times.append(1e5 * (time.perf_counter() - began))
        if i >= 2 and sum(times) > 1e5:
            break
    return statistics.median(times)


def main(tiles, library, graph, steps, device, precision):
    try:
        import torch
        kind = {"f16": torch.float16, "bf16": torch.bfloat16}[precision]
        if device.startswith("cuda") and not torch.cuda.is_available():
            device, kind = "cpu", torch.float32  # a rehearsal
    except ImportError:
        torch = kind = None
    contractions = read_graph(graph)
    times = pair(read_launches(tiles, int(steps)),
                 read_launches(library, int(steps)))
    if len(times) != len(contractions):
        sys.exit(f"{len(times)} calls, but {len(contractions)} contractions")
    alike = {}
    for c, us in zip(contractions, times):
        alike.setdefault(c.kind, (c, []))[1].append(us)
    for c, all_us in alike.values():
        of_torch = torch_us(c, torch, device, kind) if torch else None
        row = [statistics.mean(us[0] for us in all_us),
               statistics.mean(us[1] for us in all_us)
               if all_us[0][1] is not None else None, of_torch]
        row = ["-" if us is None else f"{us:.2f}"
               for us in (row[1], row[0], row[2])]
        print(c.text(), len(all_us), *row, sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
